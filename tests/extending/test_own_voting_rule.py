"""A voting rule of one's own is one class: predictions, certificates, other members and ONNX follow."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.tree import DecisionTreeClassifier

from exclusivity import ERMClassifier
from exclusivity.io import to_onnx
from exclusivity.partition import FeaturePartitionClassifier
from exclusivity.robustness import attack, certify, certify_set, corrupt, elect
from exclusivity.voting._changes import Tally, fewest_changes
from exclusivity.voting.preferences import MemberPreferences
from exclusivity.voting.rules import RULES, VotingRule

X, Y = load_wine(return_X_y=True)
X = (X - X.mean(axis=0)) / X.std(axis=0)
BONUS = np.array([2, 0, 0])


class IncumbentVoting(VotingRule):
    """Most votes win, and the first class has two from the start. No certificate for shared features."""

    def count(self, election):
        return election.counts + election.liking + self._bonus(election.n_classes)

    def _min_changes(self, preferences, reach, n_classes, all_classes):
        tally, bonus = Tally(preferences.votes, n_classes), self._bonus(n_classes)
        totals = tally.totals + bonus
        leads = totals[:, None] - totals[:, :, None] - tally.undecided[:, None, None]
        leads[:, np.arange(n_classes), np.arange(n_classes)] = 0
        return fewest_changes(leads, tally.n_members + 2), tally.undecided > 0

    def _bonus(self, n_classes):
        return 2 * (np.arange(n_classes) == 0)


@pytest.fixture
def rule(monkeypatch):
    monkeypatch.setitem(RULES, "incumbent", IncumbentVoting())
    return RULES["incumbent"]


def test_the_certificate_is_that_of_exhaustive_search(rule):
    rng = np.random.default_rng(0)
    for _ in range(60):
        votes = rng.integers(0, 3, 4)
        found = rule.min_changes(MemberPreferences(votes[None]), np.eye(4, dtype=bool), 3)[0]
        for c in range(3):
            reachable = [
                r
                for r in range(5)
                for changed in combinations(range(4), r)
                for new in product(range(3), repeat=r)
                if _could_win(votes, changed, new, c)
            ]
            assert found[c] <= min(reachable, default=5)
            assert found[c] == 0 or 0 not in reachable


def _could_win(votes, changed, new, c):
    after = votes.copy()
    after[list(changed)] = new
    totals = np.bincount(after, minlength=3) + BONUS
    return totals[c] == totals.max()


def test_a_classifier_votes_by_it(rule):
    clf = ERMClassifier(7, exclusivity=np.inf, voting="incumbent", partition="random", random_state=0)
    clf.fit(X, Y)
    counts = (clf.component_predict(X)[:, :, None] == clf.classes_).sum(axis=1)
    hard = elect(clf, X, "hard")
    assert np.array_equal(hard, clf.set_params(voting="hard").predict(X))
    clf.set_params(voting="incumbent")
    chosen = clf.predict(X)
    assert np.all(counts[np.arange(len(X)), chosen] + 2 * (chosen == 0) == (counts + BONUS).max(axis=1))
    assert 0 < np.mean(chosen != hard) < 0.5
    radius = clf.certify(X)
    assert radius.max() >= 2
    for seed in range(3):
        broken = corrupt(X, 1, random_state=seed)
        assert np.array_equal(clf.predict(broken)[radius >= 1], chosen[radius >= 1])
    assert not attack(clf, X[radius >= 1], 1, max_sets=0).succeeded.any()
    assert attack(clf, X[radius == 0], 1, max_sets=0).succeeded.mean() > 0.9


def test_members_of_any_kind_vote_by_it(rule):
    members = FeaturePartitionClassifier(DecisionTreeClassifier(), 7, voting="incumbent", random_state=0)
    members.fit(X, Y)
    votes = (members.component_predict(X)[:, :, None] == members.classes_).sum(axis=1)
    chosen = members.predict(X)
    assert np.all(votes[np.arange(len(X)), chosen] + 2 * (chosen == 0) == (votes + BONUS).max(axis=1))
    assert np.array_equal(certify_set(members, X, 1).sum(axis=1) == 1, certify(members, X) >= 1)


def test_a_graph_votes_by_it(rule):
    runtime = pytest.importorskip("onnxruntime")
    clf = ERMClassifier(7, exclusivity=np.inf, voting="incumbent", partition="random", random_state=0)
    graph = to_onnx(clf.fit(X, Y)).SerializeToString()
    labels, scores = runtime.InferenceSession(graph).run(None, {"X": X})
    assert np.array_equal(labels, clf.predict(X))
    assert np.allclose(scores, clf.decision_function(X), atol=1e-12)
