"""scikit-learn's own checks on many configurations: all pass, none is excused."""

from __future__ import annotations

import logging
from functools import cache

import pytest
from sklearn.svm import LinearSVC
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import (
    check_class_weight_balanced_linear_classifier,
    check_estimator,
    estimator_checks_generator,
)

from classifier.erm_cases import CONVEX_SOLVERS, GAP_SOLVERS
from exclusivity import ERMClassifier

pytestmark = pytest.mark.filterwarnings(r"ignore:\d+ of \d+ members vote:UserWarning")

CONFIGURATIONS = [
    {},
    *({"solver": name, "p": 1, "n_estimators": 30, "tol": 1e-2} for name in GAP_SOLVERS),
    {"solver": "paper", "p": 1, "n_estimators": 1},
    {"solver": "paper", "p": 1.5, "exclusivity": 0.3, "n_estimators": 2, "solver_options": {"change": 1.0}},
    {
        "solver": "paper",
        "voting": "hard",
        "multi_class": "ovo",
        "n_estimators": 2,
        "solver_options": {"change": 1.0},
    },
    {"p": 1, "sparsity": 0.5, "exclusivity": 0.0},
    {"p": 1.5, "exclusivity": 0.3, "multi_class": "ovo", "voting": "hard", "n_estimators": 30},
    {"p": 3, "sparsity": 0.1},
    {"n_estimators": 1, "multi_class": "ovo"},
    {"n_estimators": 30, "exclusivity": 0.0, "voting": "hard"},
    {"exclusivity": 0.3, "sparsity": 0.2, "multi_class": "ovo", "solver": GAP_SOLVERS[0], "tol": 1e-3},
    {"n_estimators": 2, "class_weight": "balanced", "n_jobs": 2},
    {"n_estimators": 2, "warm_start": True},
    {"n_estimators": 2, "loss": "logistic", "sparsity": 0.1},
    {"n_estimators": 2, "coef_bounds": (-1.0, 1.0)},
    # Members that compete are the dearest to fit: at a small cost they need the fewest steps.
    {
        "exclusivity": 3.0,
        "voting": "hard",
        "n_estimators": 2,
        "C": 0.1,
        "tol": 1e-2,
        "solver_options": {"change": 0.1},
    },
    {"exclusivity": float("inf"), "voting": "soft", "n_estimators": 2},
    {"exclusivity": float("inf"), "voting": "hard", "n_estimators": 2},
    {"exclusivity": float("inf"), "multi_class": "ovo", "voting": "hard", "p": 1, "n_estimators": 2},
]

WEIGHT_CHECKS = {
    "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weight_equivalence_on_sparse_data",
}


def outcomes(estimator):
    """Every check's result, without a stop at the first failure."""
    return check_estimator(estimator, on_skip=None, on_fail=None)


@cache
def skips_of_linear_svc():
    return sum(result["status"] == "skipped" for result in outcomes(LinearSVC()))


def values(name):
    return {getattr(ERMClassifier(**configuration), name) for configuration in CONFIGURATIONS}


def test_the_configurations_are_as_many_and_as_different_as_promised():
    assert len(CONFIGURATIONS) >= 16
    assert values("solver") >= {"auto", *CONVEX_SOLVERS}
    assert values("p") >= {1, 1.5, 2, 3}
    assert values("exclusivity") >= {0, 0.3, 1, 3, float("inf")}
    assert values("n_estimators") >= {1, 10, 30}
    assert values("voting") == {"soft", "hard"}
    assert values("multi_class") == {"ovr", "ovo"}
    assert max(values("sparsity")) > 0


@pytest.mark.filterwarnings("ignore:.*members compete for")  # some checks have one feature only
@pytest.mark.parametrize("configuration", CONFIGURATIONS, ids=str)
@pytest.mark.filterwarnings("ignore:The search for a partition")  # checks have few features
def test_every_check_passes(configuration, caplog):
    caplog.set_level(logging.CRITICAL)
    results = outcomes(ERMClassifier(**configuration))
    failed = {r["check_name"]: r["exception"] for r in results if r["status"] not in ("passed", "skipped")}
    assert not failed
    assert not any(r["expected_to_fail"] for r in results)
    passed = {r["check_name"] for r in results if r["status"] == "passed"}
    assert passed >= WEIGHT_CHECKS
    assert len(results) - sum(r["status"] == "passed" for r in results) <= skips_of_linear_svc()


def test_the_checks_are_those_of_linear_svc_but_for_what_only_its_mixins_have():
    def names(estimator):
        return {check.func.__name__ for _, check in estimator_checks_generator(estimator)}

    missing = names(LinearSVC()) - names(ERMClassifier())
    assert missing <= {"check_sparsify_coefficients", "check_class_weight_balanced_linear_classifier"}


def test_balanced_weights_of_a_linear_classifier():
    check_class_weight_balanced_linear_classifier("ERMClassifier", ERMClassifier(n_estimators=3, tol=1e-10))


@pytest.mark.parametrize("configuration", CONFIGURATIONS, ids=str)
def test_no_tag_excuses_the_classifier(configuration):
    tags = get_tags(ERMClassifier(**configuration))
    assert not tags._skip_test
    assert not tags.classifier_tags.poor_score
    assert not tags.non_deterministic
    assert not tags.no_validation
    assert tags.classifier_tags.multi_class
    assert tags.input_tags.sparse
    assert not tags.input_tags.allow_nan
    assert tags.target_tags.required
