"""The report: every averaged measure at once."""

from __future__ import annotations

import warnings
from dataclasses import FrozenInstanceError, fields
from functools import partial

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.ensemble import AdaBoostClassifier, BaggingClassifier, RandomForestClassifier
from sklearn.linear_model import RidgeClassifier
from sklearn.tree import DecisionTreeClassifier

import exclusivity.diversity as dv
from exclusivity import ERMClassifier
from exclusivity.diversity import DiversityReport, diversity_report

IRIS = load_iris()
X = IRIS.data
NAMED = IRIS.target_names[IRIS.target]


def test_a_forest_is_measured_by_labels_alone():
    forest = RandomForestClassifier(6, max_depth=1, random_state=0).fit(X, NAMED)
    report = diversity_report(forest, X, NAMED)
    predictions = dv.member_predictions(forest, X)
    assert (report.n_members, report.n_samples) == (6, 150)
    assert report.member_accuracy == pytest.approx(np.mean(predictions == NAMED[:, None]))
    for field, measure in [
        ("q_statistic", partial(dv.pairwise_diversity, measure="q_statistic")),
        ("correlation", partial(dv.pairwise_diversity, measure="correlation")),
        ("disagreement", partial(dv.pairwise_diversity, measure="disagreement")),
        ("double_fault", partial(dv.pairwise_diversity, measure="double_fault")),
    ]:
        assert getattr(report, field) == dv.mean_over_pairs(measure(predictions, NAMED))
    assert report.kappa == dv.mean_over_pairs(dv.pairwise_diversity(predictions, measure="kappa"))
    assert report.interrater_kappa == dv.interrater_kappa(predictions, NAMED)
    assert (report.mutual_angular, report.exclusivity, report.relaxed_exclusivity) == (None, None, None)
    assert report.disagreement > 0


def test_linear_members_are_measured_by_weights_too():
    members = [RidgeClassifier(alpha).fit(X, NAMED) for alpha in (0.1, 10, 1000)]
    weights = dv.member_weights(members)
    report = diversity_report(members, X, NAMED, g=0.5)
    assert report.mutual_angular == dv.mutual_angular(weights, 0.5)
    assert (
        report.exclusivity
        == dv.mean_over_pairs(dv.pairwise_weight_diversity(weights, measure="exclusivity"))
        == 12
    )
    assert report.relaxed_exclusivity == dv.mean_over_pairs(
        dv.pairwise_weight_diversity(weights, measure="relaxed_exclusivity")
    )


@pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
def test_an_optimal_erm_has_no_diversity_by_any_measure(multi_class):
    erm = ERMClassifier(4, multi_class=multi_class).fit(X, NAMED)
    report = diversity_report(erm, X, NAMED)
    assert report.q_statistic == report.correlation == report.kappa == report.interrater_kappa == 1
    assert report.disagreement == report.mutual_angular == 0
    assert report.double_fault == pytest.approx(1 - report.member_accuracy)
    assert report.exclusivity == np.count_nonzero(erm.coef_)
    assert report.relaxed_exclusivity == pytest.approx(np.sum(erm.coef_**2))


def test_members_over_different_classes_have_no_comparable_weights():
    y = np.where(np.arange(150) == 0, "rare", NAMED)
    members = [RidgeClassifier().fit(X, y), RidgeClassifier().fit(X[1:], y[1:])]
    report = diversity_report(members, X, y)
    assert report.exclusivity is None
    assert report.disagreement == pytest.approx(0, abs=0.2)


def test_members_that_are_always_right_give_numbers_and_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tree = DecisionTreeClassifier(random_state=0)
        bagging = BaggingClassifier(tree, n_estimators=3, bootstrap=False, random_state=0).fit(X, NAMED)
        report = diversity_report(bagging, X, NAMED)
    numbers = [getattr(report, field.name) for field in fields(report)]
    assert np.all(np.isfinite([number for number in numbers if number is not None]))
    assert (report.q_statistic, report.double_fault) == (1.0, 0.0)


def test_from_predictions():
    report = DiversityReport.from_predictions([["a", "b"], ["b", "b"]], ["a", "b"], np.eye(2))
    assert report.disagreement == 0.5
    assert report.exclusivity == 0.0
    with pytest.raises(ValueError, match="one row for each of the 2 members; got 3"):
        DiversityReport.from_predictions([["a", "b"], ["b", "b"]], ["a", "b"], np.eye(3))


def test_the_table_shows_every_measure():
    forest = RandomForestClassifier(3, max_depth=2, random_state=0).fit(X, NAMED)
    lines = str(diversity_report(forest, X, NAMED)).splitlines()
    assert lines[0].startswith("3 members on 150 samples, mean accuracy 0.")
    assert len(lines) == 11
    assert all(line.split()[-1] in ("higher", "lower") for line in lines[2:])
    assert lines[-1].split() == ["relaxed", "exclusivity", "-", "lower"]
    assert max(map(len, lines)) <= 60


def test_a_report_does_not_change():
    report = DiversityReport.from_predictions([[0, 1], [1, 1]], [0, 1])
    with pytest.raises(FrozenInstanceError):
        report.kappa = 0.0


def test_one_member_is_no_ensemble():
    perfect_stump = AdaBoostClassifier(n_estimators=5, random_state=0).fit(X[:100], NAMED[:100])
    with pytest.raises(ValueError, match="two members"):
        diversity_report(perfect_stump, X[:100], NAMED[:100])


def test_true_labels_must_match_the_predictions():
    forest = RandomForestClassifier(3, random_state=0).fit(X, NAMED)
    with pytest.raises(ValueError, match="one is text and the other is not"):
        diversity_report(forest, X, IRIS.target)


def test_every_public_name_exists_and_is_documented():
    for name in dv.__all__:
        assert getattr(dv, name).__doc__


def test_an_unknown_measure_and_missing_labels_are_refused():
    with pytest.raises(ValueError, match="measure must be one of 'q_statistic'"):
        dv.pairwise_diversity([[0, 1]], [0], measure="q")
    with pytest.raises(ValueError, match="measure must be one of 'angle'"):
        dv.pairwise_weight_diversity([[0, 1], [1, 0]], measure="cosine")
    with pytest.raises(ValueError, match="give y_true"):
        dv.pairwise_diversity([[0, 1]])
