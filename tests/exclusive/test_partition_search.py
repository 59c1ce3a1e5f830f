"""The search for a partition: stand-ins against ridge regression, values against loops.

Small problems, where everything can be counted.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy import sparse

from exclusive.exclusive_cases import binary_problem, one_vs_rest_problems
from exclusivity import ERMClassifier
from exclusivity.objective.objective import ERMProblem
from exclusivity.solvers import partition_search
from exclusivity.solvers.exclusive import ExclusiveOptions, solve_exclusive
from exclusivity.solvers.partition_search import (
    MemorySums,
    SoftVotes,
    assign_round_robin,
    fill_members,
    find_partition,
    sharing_rows,
    strength_of,
)


def rng():
    return np.random.default_rng(0)


def votes_of(problems, radius=3):
    (sums,) = MemorySums(problems).ridge_sums(with_grams=True)
    return SoftVotes(sums, problems, rng(), radius)


def value_of(problems, partition, radius=3):
    return votes_of(problems, radius).begin(columns_of(partition, problems[0].n_members)).value


def partition_of(problems, groups, options):
    return find_partition(MemorySums(problems), groups, options, rng())


def problems_of(kind):
    weights = np.random.default_rng(5).uniform(0.5, 2.0, 80)
    if kind == "binary":
        return [binary_problem(3, cost=0.3, weights=weights)]
    return one_vs_rest_problems(3)


def ridge_scores(problems, columns):
    """The centred scores by one least-squares problem on stacked rows, sqrt(s) (x, 1) and sqrt(1 / 2C) I."""
    first = problems[0]
    X, roots = first.design.X[:, columns], np.sqrt(first.weights)[:, None]
    ones = np.ones((len(X), 1))
    labels = np.stack([problem.labels for problem in problems], axis=1)
    penalty = np.sqrt(1 / (2 * first.cost)) * np.eye(len(columns), len(columns) + 1)
    left = np.vstack([roots * np.hstack([X, ones]), penalty])
    right = np.vstack([roots * labels, np.zeros((len(columns), len(problems)))])
    solution = np.linalg.lstsq(left, right, rcond=None)[0]
    centre = first.weights @ labels / first.weights.sum()
    return np.hstack([X, ones]) @ solution - centre


def value_by_loops(problems, partition, radius):
    """The objective of the search, one row and one member at a time."""
    labels = np.stack([problem.labels for problem in problems], axis=1)
    P, K = labels.shape[1], problems[0].n_members
    s = problems[0].weights
    truth = labels.argmax(axis=1) if P > 1 else (labels[:, 0] > 0).astype(int)
    top = 2 * min(radius, (K - 1) // 2) + 1
    total = 0.0
    scores = [ridge_scores(problems, np.flatnonzero(partition == k)) for k in range(K)]
    centre = s @ labels / s.sum()
    shares = s / (np.bincount(truth, weights=s)[truth] * len(np.unique(truth)))
    for i, own in enumerate(truth):
        counts = np.zeros(max(P, 2))
        for member in scores:
            scaled = (member[i] + centre) / (0.5 * np.sqrt(np.average((member**2).mean(axis=1), weights=s)))
            if P == 1:
                vote = np.clip(scaled[0], -1, 1)
                counts += [(1 - vote) / 2, (1 + vote) / 2]
            else:
                counts += np.exp(2 * scaled) / np.exp(2 * scaled).sum() / 2
                counts[np.argmax(scaled)] += 0.5
        lead = counts[own] - np.delete(counts, own).max()
        total -= shares[i] * np.clip(lead, -1, top) / 2
    return total


def columns_of(partition, n_members):
    return [np.flatnonzero(partition == k) for k in range(n_members)]


# --- stand-ins --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["binary", "one-vs-rest"])
def test_a_stand_in_is_a_ridge_regression(kind):
    problems = problems_of(kind)
    columns = np.array([1, 4, 5, 9])
    member = votes_of(problems).fit(columns)
    np.testing.assert_allclose(member.fitted.T, ridge_scores(problems, columns), atol=1e-9)


@pytest.mark.parametrize("kind", ["binary", "one-vs-rest"])
@pytest.mark.parametrize("extra", [[7], [0, 2, 11]])
def test_joining_columns_equals_fitting_all(kind, extra):
    problems = problems_of(kind)
    votes = votes_of(problems)
    members = [votes.fit(np.array(columns)) for columns in ([1], [3, 4, 5, 6], [8, 9])]
    joined = votes.scores_with(members, np.array(extra))
    for scores, member in zip(joined, members, strict=True):
        alone = votes.fit(np.append(member.columns, extra)).fitted
        np.testing.assert_allclose(scores, alone, atol=1e-10)


def test_collinear_columns_at_a_huge_cost_stay_finite():
    X = np.repeat(np.random.default_rng(0).normal(size=(30, 2)), 3, axis=1)
    problem = ERMProblem.build(X, np.sign(X[:, 0]), n_members=2, cost=1e12, exclusivity=np.inf)
    (result,) = solve_exclusive([problem], random_state=0)
    assert np.all(np.isfinite(result.weights))


@pytest.mark.parametrize("scale", [1e140, 1e-140])
def test_scales_at_the_ends_of_floating_point_are_searched(scale):
    dense = binary_problem(4)
    problem = ERMProblem.build(dense.design.X * scale, dense.labels, n_members=4, exclusivity=np.inf)
    partition = partition_of([problem], np.arange(12), ExclusiveOptions())
    assert sorted(set(partition)) == [0, 1, 2, 3]


def test_many_rows_are_sampled_with_a_share_for_every_class(monkeypatch):
    monkeypatch.setattr(partition_search, "MAX_ROWS", 50)
    X = np.random.default_rng(0).normal(size=(400, 4))
    y = np.where(np.arange(400) < 10, 1.0, -1.0)
    votes = votes_of([ERMProblem.build(X, y, n_members=2, exclusivity=np.inf)])
    assert np.bincount(votes.truth).tolist() == [40, 10]
    np.testing.assert_allclose(np.bincount(votes.truth, weights=votes.row_weights), 0.5)
    np.testing.assert_allclose(votes.sums.gram, (X - X.mean(axis=0)).T @ (X - X.mean(axis=0)))


# --- votes ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["binary", "one-vs-rest"])
@pytest.mark.parametrize("radius", [0, 1, 3])
def test_the_value_of_a_partition_against_loops(kind, radius):
    problems = problems_of(kind)
    partition = np.arange(12) % 3
    assert value_of(problems, partition, radius) == pytest.approx(value_by_loops(problems, partition, radius))


@pytest.mark.parametrize("kind", ["binary", "one-vs-rest"])
@pytest.mark.parametrize("moved", [[0], [0, 3]])
def test_values_after_a_move_equal_those_of_the_new_partition(kind, moved):
    problems = problems_of(kind)
    partition = np.arange(12) % 3
    ballot = votes_of(problems).begin(columns_of(partition, 3))
    rest = np.setdiff1d(np.flatnonzero(partition == 0), moved)
    values = ballot.values_after(np.array(moved), 0)
    for receiver in (1, 2):
        after = partition.copy()
        after[moved] = receiver
        assert values[receiver] == pytest.approx(value_of(problems, after))
    ballot.change(0, rest)
    ballot.change(2, np.append(np.flatnonzero(partition == 2), moved))
    assert ballot.value == pytest.approx(values[2])


def test_hard_votes_make_the_value_the_certified_accuracy(monkeypatch):
    """With undecided votes gone, minus the value + 1/2 is the sum of balanced certified accuracies."""
    monkeypatch.setattr("exclusivity.solvers.partition_search._SHARPNESS", 1e-9)
    problem = binary_problem(5, n_features=15)
    partition = np.arange(15) % 5
    value = value_of([problem], partition)
    scores = np.hstack([ridge_scores([problem], own) for own in columns_of(partition, 5)])
    right = np.sign(scores + problem.labels.mean()) == problem.labels[:, None]
    lead = 2 * right.sum(axis=1) - 5
    certified = [
        np.mean([np.mean(lead[problem.labels == label] > 2 * r) for label in (-1, 1)]) for r in range(3)
    ]
    assert 0.5 - value == pytest.approx(sum(certified))


# --- the search -------------------------------------------------------------------------------------------


def test_no_single_move_improves_what_the_search_returns():
    problem = binary_problem(3, n_features=9)
    partition = partition_of([problem], np.arange(9), ExclusiveOptions(restarts=1))
    best = value_of([problem], partition)
    for group, member in product(range(9), range(3)):
        after = partition.copy()
        after[group] = member
        if len(set(after)) == 3:
            assert value_of([problem], after) >= best - 1e-6 * abs(best)


def test_the_best_of_all_partitions_is_found_where_they_can_be_counted():
    problem = binary_problem(2, n_features=7, seed=3)
    everything = [np.array((0, *rest)) for rest in product(range(2), repeat=6) if any(rest)]
    best = min(value_of([problem], owners) for owners in everything)
    found = partition_of([problem], np.arange(7), ExclusiveOptions(restarts=20))
    assert value_of([problem], found) == pytest.approx(best)


def noisy_pairs(seed):
    """Columns 2i and 2i + 1 say nothing alone: their difference is the signal, their sum is noise."""
    generator = np.random.default_rng(seed)
    y = np.where(generator.random(300) < 0.5, -1.0, 1.0)
    noise = 5 * generator.normal(size=(300, 5))
    signal = y[:, None] + 0.8 * generator.normal(size=(300, 5))
    return np.stack([noise + signal, noise - signal], axis=2).reshape(300, 10), y


@pytest.mark.parametrize("seed", range(3))
def test_columns_that_help_only_together_end_together(seed):
    X, y = noisy_pairs(seed)
    problem = ERMProblem.build(X, y, n_members=5, exclusivity=np.inf)
    (result,) = solve_exclusive([problem], random_state=seed, options=ExclusiveOptions(restarts=10))
    assert np.array_equal(result.partition[::2], result.partition[1::2])


def test_a_warm_start_is_kept_when_it_is_the_best():
    X, y = noisy_pairs(0)
    problem = ERMProblem.build(X, y, n_members=5, exclusivity=np.inf)
    pairs = np.repeat(np.arange(5), 2)
    (result,) = solve_exclusive(
        [problem], random_state=0, options=ExclusiveOptions(restarts=1, partition=pairs)
    )
    assert np.array_equal(result.partition, pairs)


def test_the_seed_decides_between_random_starts():
    problem = binary_problem(4, n_features=16)
    runs = [solve_exclusive([problem], random_state=seed)[0].partition for seed in (0, 0, 1, 2, 3)]
    assert np.array_equal(runs[0], runs[1])
    assert any(not np.array_equal(runs[0], other) for other in runs[2:])


@pytest.mark.parametrize("n_rows", [20, 80])
def test_a_row_of_weight_two_counts_like_two_rows(n_rows):
    problem = binary_problem(5, n_rows=n_rows, n_features=30)
    X, y = problem.design.X, problem.labels
    times = 1 + 4 * (np.arange(n_rows) % 3 == 0)
    weighted = ERMProblem.build(X, y, n_members=5, exclusivity=np.inf, weights=times)
    repeated = ERMProblem.build(
        np.repeat(X, times, axis=0), np.repeat(y, times), n_members=5, exclusivity=np.inf
    )
    values = [value_of([p], np.arange(30) % 5, 2) for p in (weighted, repeated)]
    assert values[0] == pytest.approx(values[1], rel=1e-12)
    partitions = [solve_exclusive([p], random_state=0)[0].partition for p in (weighted, repeated)]
    assert np.array_equal(*partitions)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array, sparse.csr_matrix])
def test_very_many_columns_are_dealt_out_without_a_gram_matrix(monkeypatch, make):
    monkeypatch.setattr(partition_search, "MAX_COLUMNS", 8)
    dense = binary_problem(4)
    problem = ERMProblem.build(make(dense.design.X), dense.labels, n_members=4, exclusivity=np.inf)
    monkeypatch.setattr(type(problem.design), "gram", None)
    partition = partition_of([problem], np.arange(12), ExclusiveOptions())
    assert np.bincount(partition).tolist() == [3, 3, 3, 3]


def test_only_one_vs_rest_problems_vote_together():
    shared = one_vs_rest_problems(3)
    assert [len(part) for part in sharing_rows(shared)] == [3]
    assert [len(part) for part in sharing_rows(shared[:2])] == [1, 1]
    apart = [problem.changed(weights=problem.weights.copy()) for problem in shared]
    assert [len(part) for part in sharing_rows(apart)] == [1, 1, 1]


def rare_pixels(n_rows=600, seed=0):
    """Six classes, twelve columns that tell them apart, and twelve that are zero but on a few rows."""
    generator = np.random.default_rng(seed)
    codes = np.arange(n_rows) % 6
    signal = generator.normal(size=(6, 12))[codes] + generator.normal(size=(n_rows, 12))
    rare = (generator.random((n_rows, 12)) < 0.03) * generator.random((n_rows, 12)) * (codes > 1)[:, None]
    X = np.hstack([signal, rare])
    return (X - X.mean(axis=0)) / X.std(axis=0), codes


def shared_problems(X, codes, n_members):
    first = ERMProblem.build(
        X, np.where(codes == 0, 1.0, -1.0), n_members=n_members, exclusivity=np.inf, cost=0.1
    )
    labels = [np.where(codes == c, 1.0, -1.0) for c in np.unique(codes)]
    return [first.changed(labels=y) for y in labels]


def test_starved_members_are_not_taken_for_harmless():
    """On rare pixels alone a member votes for one class on nearly all rows, however even its scores are."""
    (X, codes), groups = rare_pixels(), np.arange(24)
    found = partition_of(shared_problems(X, codes, 9), groups, ExclusiveOptions())
    drawn = [np.random.default_rng(seed).permutation(groups % 9) for seed in range(4)]

    def certified(partition):
        """Certified accuracy on rows left out, summed over r."""
        model = ERMClassifier(9, C=0.1, exclusivity=np.inf, voting="hard", partition=partition)
        model.fit(X[:300], codes[:300])
        right = model.predict(X[300:]) == codes[300:]
        return sum(np.mean(right & (model.certify(X[300:]) >= r)) for r in range(4))

    assert certified(found) > 0.1 + max(map(certified, drawn))


# --- groups and starts ------------------------------------------------------------------------------------


def strength(problems, groups):
    return strength_of(MemorySums(problems).ridge_sums(with_grams=True), groups)


def test_strength_is_the_squared_correlation():
    problem = binary_problem()
    X, y = problem.design.X, problem.labels
    wanted = [np.corrcoef(X[:, j], y)[0, 1] ** 2 for j in range(12)]
    np.testing.assert_allclose(strength([problem], np.arange(12)), wanted)
    halves = strength([problem, problem], np.arange(12) // 6)
    np.testing.assert_allclose(halves, [2 * sum(wanted[:6]), 2 * sum(wanted[6:])])


def test_a_constant_column_has_no_strength():
    problem = ERMProblem.build(np.c_[np.ones(4), [1.0, 1, 0, 0]], np.array([1.0, 1, -1, -1]), n_members=2)
    np.testing.assert_allclose(strength([problem], np.arange(2)), [0.0, 1.0])


def test_feeding_gives_free_groups_away_and_fills_empty_members():
    strength = np.arange(8.0)
    fed = fill_members(np.array([0, 0, 0, 0, 0, -1, -1, 1]), 4, strength)
    assert fed[[6, 5]].tolist() == [2, 3]
    assert fed[7] == 1
    fed = fill_members(np.array([0, 0, 0, 1]), 3, np.arange(4.0))
    assert fed.tolist() == [2, 0, 0, 1]
    assert fill_members(np.array([0, 0]), 5, np.ones(2)).tolist() in ([0, 1], [1, 0])


def test_dealing_is_even():
    for n_groups, K in product(range(1, 12), range(1, 6)):
        sizes = np.bincount(assign_round_robin(np.arange(n_groups), K))
        assert len(sizes) == min(n_groups, K)
        assert sizes.max() - sizes.min() <= 1
