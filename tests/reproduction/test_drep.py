"""DREP against the description written out, for matrices of votes and for fitted ensembles."""

from __future__ import annotations

from math import ceil

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.ensemble import AdaBoostClassifier, BaggingClassifier, RandomForestClassifier, VotingClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.neighbors import NearestCentroid
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from exclusivity import ERMClassifier
from exclusivity.diversity import member_predictions
from reproduction.drep import PrunedEnsemble, drep_select, member_margins, vote
from reproduction.drm import DRMClassifier


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
    assert drep_select(names[labels], names[y], margins, rho=rho).tolist() == expected


@pytest.mark.parametrize("n_labels", [2, 4])
def test_majority_equals_the_vote_written_out(n_labels):
    for seed in range(5):
        labels, margins, _ = random_votes(seed, n_labels)
        for members in ([3], [5, 2], [1, 7, 0, 4]):
            found = vote(labels[:, members], margins[:, members])
            assert found.tolist() == vote_by_loops(labels.tolist(), margins.tolist(), members)


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
            np.mean(vote(labels[:, kept], np.zeros((len(y), len(kept)))) != y) for kept in (strict, patient)
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
}


@pytest.mark.parametrize("name", ENSEMBLES)
def test_fitted_ensembles(name, cancer):
    X, y = cancer
    ensemble = ENSEMBLES[name].fit(X[:250], y[:250])
    pruned = PrunedEnsemble.prune(ensemble, X[250:400], y[250:400], rho=0.5)
    labels, margins = member_predictions(ensemble, X[250:400]), member_margins(ensemble, X[250:400])
    assert margins.shape == labels.shape
    assert np.all(margins >= 0)
    kept = pruned.members.tolist()
    assert kept == drep_by_loops(labels.tolist(), margins.tolist(), y[250:400].tolist(), 0.5)
    labels, margins = member_predictions(ensemble, X[400:]), member_margins(ensemble, X[400:])
    predicted = pruned.predict(X[400:])
    assert predicted.tolist() == vote_by_loops(labels.tolist(), margins.tolist(), kept)
    assert np.mean(predicted == y[400:]) > 0.85


@pytest.mark.parametrize("name", ["bagging", "forest"])
def test_three_classes(name):
    X, y = load_iris(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    ensemble = ENSEMBLES[name].fit(X[::2], y[::2])
    pruned = PrunedEnsemble.prune(ensemble, X[1::2], y[1::2])
    labels, margins = member_predictions(ensemble, X[1::2]), member_margins(ensemble, X[1::2])
    expected = drep_by_loops(labels.tolist(), margins.tolist(), y[1::2].tolist(), 0.4)
    assert pruned.members.tolist() == expected
    assert np.mean(pruned.predict(X[1::2]) == y[1::2]) > 0.7


def test_members_of_an_erm_need_two_classes_and_lists_do_not():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="two classes; got 3"):
        PrunedEnsemble.prune(ERMClassifier(3).fit(X, y), X, y)
    members = [LogisticRegression(C=C, max_iter=2000).fit(X, y) for C in (0.01, 1, 100)]
    assert np.mean(PrunedEnsemble.prune(members, X, y).predict(X) == y) > 0.9


def test_margins_of_members():
    class Member:
        def __init__(self, scores):
            self.scores = np.array(scores)

        def decision_function(self, X):
            return self.scores

    class Mute:
        pass

    X = np.zeros((2, 1))
    members = [
        Member([-2.0, 0.5]),
        Member([[0.25, 0.75, 0.0], [5.0, -1.0, 4.0]]),
        Member([[3.0], [1.0]]),
        Mute(),
    ]
    np.testing.assert_array_equal(member_margins(members, X), [[2, 0.5, 1, 0], [0.5, 1, 1, 0]])


@pytest.mark.parametrize("rho", [0, 1.5, np.nan])
def test_rho_is_a_share(rho):
    with pytest.raises(ValueError, match="at most 1"):
        drep_select(np.zeros((4, 3)), np.zeros(4), rho=rho)
