"""DREP against the description written out, for matrices of votes and for fitted ensembles."""

from __future__ import annotations

from math import ceil

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.ensemble import AdaBoostClassifier, BaggingClassifier, RandomForestClassifier, VotingClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.neighbors import NearestCentroid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from exclusivity import ERMClassifier
from exclusivity.baselines import DRMClassifier, PrunedEnsemble, drep_prune, drep_select
from exclusivity.baselines.votes import Votes, lead, member_votes
from exclusivity.diversity import member_predictions


def vote_by_loops(labels, margins, members):
    """Most votes; then the largest sum of margins; then the first member's label; then the first label."""
    decided = []
    for i in range(len(labels)):
        votes, sums = {}, {}
        for k in members:
            votes[labels[i][k]] = votes.get(labels[i][k], 0) + 1
            sums[labels[i][k]] = sums.get(labels[i][k], 0.0) + margins[i][k]
        top = [c for c in sorted(votes) if votes[c] == max(votes.values())]
        top = [c for c in top if sums[c] == max(sums[d] for d in top)]
        decided.append(labels[i][members[0]] if labels[i][members[0]] in top else top[0])
    return decided


def drep_by_loops(labels, margins, y, rho):
    def error(members):
        return sum(v != t for v, t in zip(vote_by_loops(labels, margins, members), y, strict=True))

    rest = list(range(len(labels[0])))
    kept = [min(rest, key=lambda k: error([k]))]
    rest.remove(kept[0])
    while rest:
        current = vote_by_loops(labels, margins, kept)
        agreement = {k: sum(labels[i][k] == current[i] for i in range(len(y))) for k in rest}
        diverse = sorted(rest, key=lambda k: agreement[k])[: ceil(rho * len(rest))]
        best = min(diverse, key=lambda k: error([*kept, k]))
        if error([*kept, best]) >= error(kept):
            break
        kept.append(best)
        rest.remove(best)
    return kept


def random_votes(seed, n_labels=2, n_samples=40, n_members=12, with_margins=True):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_labels, n_samples)
    is_right = rng.random((n_samples, n_members)) < rng.uniform(0.4, 0.8, n_members)
    labels = np.where(is_right, y[:, None], rng.integers(0, n_labels, is_right.shape))
    # A few margins are equal, so that all levels of ties occur.
    margins = rng.integers(1, 5, labels.shape) / 4 if with_margins else np.zeros(labels.shape)
    return labels, margins, y


@pytest.mark.parametrize("with_margins", [True, False], ids=["margins", "labels only"])
@pytest.mark.parametrize("rho", [0.05, 0.4, 1.0])
@pytest.mark.parametrize("n_labels", [2, 4])
def test_equals_the_description_written_out(n_labels, rho, with_margins):
    for seed in range(8):
        labels, margins, y = random_votes(seed, n_labels, with_margins=with_margins)
        expected = drep_by_loops(labels.tolist(), margins.tolist(), y.tolist(), rho)
        found = drep_select(labels, y, margins=margins if with_margins else None, rho=rho)
        assert found.tolist() == expected
    names = np.array(["ant", "bee", "cow", "dog"])
    assert drep_select(names[labels], names[y], margins=-margins, rho=rho).tolist() == expected


@pytest.mark.parametrize("n_labels", [2, 4])
def test_majority_equals_the_vote_written_out(n_labels):
    for seed in range(5):
        labels, margins, _ = random_votes(seed, n_labels)
        for members in ([3], [5, 2], [1, 7, 0, 4]):
            votes = Votes(labels[:, members], margins[:, members])
            assert votes.majority().tolist() == vote_by_loops(labels.tolist(), margins.tolist(), members)


def test_margins_break_ties_and_without_them_one_member_is_all():
    without, with_margins = [], []
    for seed in range(10):
        labels, margins, y = random_votes(seed)
        margins = margins + (labels == y[:, None])  # members are surer where they are right
        without.append(len(drep_select(labels, y)))
        with_margins.append(len(drep_select(labels, y, margins=margins)))
    assert set(without) == {1}
    assert np.mean(with_margins) > 1.5


def test_patience_goes_on_and_takes_back():
    larger = 0
    for seed in range(10):
        labels, _, y = random_votes(seed)
        strict, patient = (drep_select(labels, y, patience=patience) for patience in (0, 1))
        assert patient[: len(strict)].tolist() == strict.tolist()
        errors = [
            np.mean(Votes(labels[:, kept], np.zeros((len(y), len(kept)))).majority() != y)
            for kept in (strict, patient)
        ]
        assert errors[1] < errors[0] if len(patient) > len(strict) else errors[1] == errors[0]
        larger += len(patient) > len(strict)
    assert larger > 0
    everything = drep_select(labels, y, patience=1000)
    assert len(everything) <= labels.shape[1]


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X), np.array(["malignant", "benign"])[y]


ENSEMBLES = {
    "bagging": BaggingClassifier(DecisionTreeClassifier(max_depth=2), 8, max_features=0.4, random_state=0),
    "forest": RandomForestClassifier(8, max_depth=2, random_state=0),
    "boosting": AdaBoostClassifier(n_estimators=8, random_state=0),
    "voting": VotingClassifier(
        [("r", RidgeClassifier()), ("n", NearestCentroid()), ("l", LogisticRegression())]
    ),
    "erm": ERMClassifier(4, solver="paper", solver_options={"start": "random"}, random_state=0),
    "drm": DRMClassifier(5, variant="sphere", mu=0.05, random_state=0),
    "pipeline": make_pipeline(StandardScaler(), RandomForestClassifier(6, max_depth=2, random_state=0)),
}


@pytest.mark.parametrize("name", ENSEMBLES)
def test_fitted_ensembles(name, cancer):
    X, y = cancer
    ensemble = ENSEMBLES[name].fit(X[:250], y[:250])
    kept = drep_prune(ensemble, X[250:400], y[250:400], rho=0.5)
    labels = member_predictions(ensemble, X[250:400])
    votes = member_votes(ensemble, X[250:400])
    np.testing.assert_array_equal(votes.labels, labels)
    assert votes.margins.shape == labels.shape
    assert np.all(votes.margins >= 0)
    expected = drep_by_loops(labels.tolist(), votes.margins.tolist(), y[250:400].tolist(), 0.5)
    assert kept.tolist() == expected

    pruned = PrunedEnsemble(ensemble, kept)
    every = member_votes(ensemble, X[400:])
    expected = vote_by_loops(every.labels.tolist(), every.margins.tolist(), kept.tolist())
    assert pruned.predict(X[400:]).tolist() == expected
    assert pruned.score(X[400:], y[400:]) == np.mean(np.array(expected) == y[400:])
    assert pruned.score(X[400:], y[400:]) > 0.85


@pytest.mark.parametrize("name", ["bagging", "forest", "erm", "drm"])
def test_three_classes(name):
    X, y = load_iris(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    ensemble = ENSEMBLES[name].fit(X[::2], y[::2])
    kept = drep_prune(ensemble, X[1::2], y[1::2])
    votes = member_votes(ensemble, X[1::2])
    assert kept.tolist() == drep_by_loops(
        votes.labels.tolist(), votes.margins.tolist(), y[1::2].tolist(), 0.4
    )
    assert PrunedEnsemble(ensemble, kept).score(X[1::2], y[1::2]) > 0.7


def test_one_vs_one_members_and_a_list_of_classifiers_on_sparse_rows():
    X, y = load_iris(return_X_y=True)
    erm = ERMClassifier(3, multi_class="ovo").fit(X, y)
    assert member_votes(erm, X).margins.shape == (150, 3)
    rows = sparse.csr_matrix(X)
    members = [LogisticRegression(C=C, max_iter=2000).fit(rows, y) for C in (0.01, 1, 100)]
    kept = drep_prune(members, rows, y)
    assert PrunedEnsemble(members, kept).score(rows, y) > 0.9
    assert PrunedEnsemble(make_pipeline(erm), [0, 2]).score(X, y) > 0.9


def test_margins_of_members():
    np.testing.assert_array_equal(lead(np.array([-2.0, 0.5])), [2, 0.5])
    np.testing.assert_array_equal(lead(np.array([[0.25, 0.75, 0.0], [5.0, -1.0, 4.0]])), [0.5, 1.0])
    np.testing.assert_array_equal(lead(np.array([[1.0], [1.0]])), [1, 1])  # a bootstrap sample of one class

    class Mute:
        def predict(self, X):
            return np.ones(len(X), dtype=int)

    votes = member_votes([Mute(), Mute()], np.zeros((3, 2)))
    np.testing.assert_array_equal(votes.margins, np.zeros((3, 2)))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"rho": 0}, ValueError, "rho must be a number above 0"),
        ({"rho": 1.5}, ValueError, "at most 1"),
        ({"rho": "much"}, TypeError, "rho must be a number"),
        ({"rho": np.nan}, ValueError, "rho"),
        ({"patience": -1}, ValueError, "patience"),
        ({"patience": 0.5}, TypeError, "patience must be an integer"),
        ({"margins": np.zeros((4, 2))}, ValueError, "margins must have the shape"),
        ({"margins": np.full((4, 3), np.nan)}, ValueError, "NaN"),
        ({"predictions": np.zeros(4)}, ValueError, "one row per sample"),
        ({"y_true": np.zeros(5)}, ValueError, "y_true must hold one label"),
    ],
)
def test_bad_arguments(arguments, error, message):
    given = {"predictions": np.zeros((4, 3), dtype=int), "y_true": np.zeros(4, dtype=int)} | arguments
    with pytest.raises(error, match=message):
        drep_select(**given)
