"""The search for groups counts the vote that they will serve."""

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.svm import LinearSVC

from exclusivity import ERMClassifier
from exclusivity.objective.objective import ERMProblem
from exclusivity.partition import FeaturePartitionClassifier
from exclusivity.solvers import ExclusiveOptions
from exclusivity.solvers.partition_search import (
    MemorySums,
    SoftVotes,
    runoff_leads,
)
from exclusivity.voting.rules import RULES
from robustness.runoff_oracle import preferences_of, random_election

X, Y = load_wine(return_X_y=True)
X = (X - X.mean(axis=0)) / X.std(axis=0)


def votes_of(rows=slice(None), weights=None, voting="runoff", radius=3):
    labels = [np.where(c == Y[rows], 1.0, -1.0) for c in range(3)]
    first = ERMProblem.build(X[rows], labels[0], weights=weights, n_members=5, cost=0.1, exclusivity=np.inf)
    problems = [first.changed(labels=own) for own in labels]
    (sums,) = MemorySums(problems).ridge_sums(with_grams=True)
    return SoftVotes(sums, problems, np.random.default_rng(0), radius, voting)


def test_the_lead_of_the_truth_is_what_a_run_off_certifies():
    """Where the true class wins: half the lead, rounded up, is how many members it takes to stop that."""
    rng, exact, n_won = np.random.default_rng(0), 0, 0
    for _ in range(300):
        rankings, _, n_classes = random_election(rng, abstain=0)
        n_members = len(rankings)
        threats = RULES["runoff"].min_changes(
            preferences_of(rankings, n_classes), np.eye(n_members, dtype=bool), n_classes
        )[0]
        for truth in range(n_classes):
            totals = np.zeros(2 * n_classes)
            for ranking in rankings:
                totals[ranking[0]] += 1
                for c in range(n_classes):
                    totals[n_classes + c] += 1 if ranking.index(truth) < ranking.index(c) else -1
            lead = runoff_leads(totals[:, None], np.array([truth]))[0][0]
            others = np.delete(threats, truth)
            if threats[truth] == 0 and others.min() > 0:
                n_won += 1
                assert np.ceil(lead / 2) <= others.min()
                exact += np.ceil(lead / 2) == others.min()
            else:
                assert lead <= 0
    assert n_won > 100
    assert exact > 0.95 * n_won


def test_soft_duels_are_leads_of_the_truth_cut_off_at_one():
    votes = votes_of()
    centred = np.random.default_rng(0).normal(size=(2, 3, len(Y)))
    duels = votes._votes_of(centred)[:, 3:]
    for member, found in zip(centred, duels, strict=True):
        scale = np.sqrt(np.mean(member**2)) / 2
        scores = (member + votes.sums.label_means[:, None]) / scale
        wanted = np.clip(scores[Y, np.arange(len(Y))] - scores, -1, 1)
        np.testing.assert_allclose(found, wanted, atol=1e-9)


def test_a_move_is_worth_what_it_leads_to():
    columns = [np.arange(13)[k::5] for k in range(5)]
    ballot = votes_of().begin(columns)
    moved, rest = columns[0][:1], columns[0][1:]
    values = ballot.values_after(moved, 0)
    for receiver in range(1, 5):
        after = [rest, *columns[1:]]
        after[receiver] = np.append(after[receiver], moved)
        assert values[receiver] == pytest.approx(votes_of().begin(after).value, abs=1e-9)


def test_scores_of_rows_left_out_are_those_of_fits_without_them():
    weights = 0.5 + np.random.default_rng(0).random(40)
    chosen = np.append(np.arange(0, 156, 4), 0)  # the first row twice
    votes, columns = votes_of(chosen, weights), np.array([0, 3, 5])
    member, extra, fewer = votes.fit(columns), np.array([1, 7]), np.array([3])
    joined = votes.scores_with([member, votes.fit(np.array([2, 4]))], extra)[0]
    for out in (0, 11, 39):
        equals = np.flatnonzero(chosen == chosen[out])
        others = np.setdiff1d(np.arange(40), equals)
        smaller = votes_of(chosen[others], weights[others], voting="hard")
        for scores, own in (
            (votes.scores(member.fitted, member.leverages), columns),
            (joined, np.array([0, 1, 3, 5, 7])),
            (votes.scores_without(member, fewer), np.array([0, 5])),
        ):
            coef = smaller.fit(own).inverse @ smaller.sums.moments[own]
            wanted = (X[chosen[out], own] - smaller.sums.mean[own]) @ coef + smaller.sums.label_means
            np.testing.assert_allclose(scores[:, out] + votes.sums.label_means, wanted, atol=1e-10)


def test_a_row_of_weight_two_is_two_rows():
    twice, double = votes_of(np.append(np.arange(60), 7), radius=2), np.ones(60)
    double[7] = 2
    heavy, columns = votes_of(slice(60), double, radius=2), [np.arange(13)[k::5] for k in range(5)]
    values = [one.begin(columns).value for one in (twice, heavy)]
    assert values[0] == pytest.approx(values[1])


def test_the_classifier_searches_for_its_own_vote():
    settings = {"C": 0.1, "exclusivity": np.inf, "random_state": 0}

    def found(voting, options=None):
        return ERMClassifier(4, voting=voting, solver_options=options, **settings).fit(X, Y).partition_

    assert np.array_equal(found("hard", {"voting": "runoff"}), found("runoff"))
    assert not np.array_equal(found("hard"), found("runoff"))
    assert np.array_equal(found("soft"), found("hard"))


def test_two_classes_are_searched_as_before():
    settings = {"C": 0.1, "exclusivity": np.inf, "random_state": 0}
    two = Y > 0
    first, second = (ERMClassifier(5, voting=voting, **settings).fit(X, two) for voting in ("hard", "runoff"))
    assert np.array_equal(first.partition_, second.partition_)
    assert np.array_equal(first.components_, second.components_)


def test_partitions_of_any_members_are_learned_for_their_vote():
    settings = {"partition": "learned", "random_state": 0}
    first, second = (
        FeaturePartitionClassifier(LinearSVC(C=0.1), 5, voting=voting, **settings).fit(X, Y).partition_
        for voting in ("hard", "runoff")
    )
    assert not np.array_equal(first, second)


def test_options_are_checked():
    with pytest.raises(ValueError, match="solver option voting must be 'hard', 'runoff' or None"):
        ExclusiveOptions(voting="soft")
