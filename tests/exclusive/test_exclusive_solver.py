"""Solver "exclusive": exact members on disjoint features, monotone competition at finite exclusivity."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from exclusive.exclusive_cases import binary_problem, joint_objective, one_vs_rest_problems, two_class_rows
from exclusivity.objective.objective import ERMProblem, ExclusivityRegulariser, exclusivity
from exclusivity.solvers import Status, solve_newton
from exclusivity.solvers.exclusive import ExclusiveOptions, solve_exclusive

FINITE = [1.01, 2.0, 30.0, 1e4]


def columns_as_groups(problem):
    return np.arange(problem.design.n_features)


# --- gamma = inf ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("p", [1, 2, 1.5])
@pytest.mark.parametrize("sparsity", [0.0, 0.3])
def test_members_are_exact_on_disjoint_columns(p, sparsity):
    problem = binary_problem(4, p=p, sparsity=sparsity)
    (result,) = solve_exclusive([problem], tol=1e-7, random_state=0)
    members = result.weights.T
    assert all(exclusivity(members[i], members[j]) == 0 for i in range(4) for j in range(i))
    assert sorted(set(result.partition)) == [0, 1, 2, 3]
    for k in range(4):
        columns = np.flatnonzero(result.partition == k)
        single = ERMProblem.build(
            problem.design.X[:, columns], problem.labels, p=p, sparsity=sparsity, exclusivity=0.0
        )
        alone = solve_newton(single, tol=1e-9)
        mine = single.value(result.weights[columns, k][:, None], result.intercepts[[k]])
        assert mine == pytest.approx(alone.objective, rel=1e-6)
    assert result.status is Status.RULE
    assert result.converged
    assert np.isnan(result.gap)
    assert result.objective == pytest.approx(problem.value(result.weights, result.intercepts))
    assert result.history.objective[-1] == pytest.approx(result.objective)


def test_the_partition_is_shared_by_all_classes():
    problems = one_vs_rest_problems(4)
    results = solve_exclusive(problems, random_state=0)
    used = np.any([result.weights != 0 for result in results], axis=0)
    assert np.all(used.sum(axis=1) == 1)
    assert all(np.array_equal(result.partition, results[0].partition) for result in results)
    total = sum(result.objective for result in results)
    assert results[0].history.objective[-1] == pytest.approx(total)


def test_one_vs_one_problems_have_rows_of_their_own():
    X, y = two_class_rows(90)
    problems = [
        ERMProblem.build(X[rows], y[rows], n_members=3, exclusivity=np.inf)
        for rows in (slice(0, 60), slice(30, 90))
    ]
    first, second = solve_exclusive(problems, random_state=0)
    assert np.array_equal(first.partition, second.partition)
    assert np.all(((first.weights != 0) | (second.weights != 0)).sum(axis=1) == 1)


@pytest.mark.parametrize("gamma", [np.inf, 5.0])
def test_groups_stay_whole(gamma):
    groups = np.array([0, 0, 0, 1, 2, 2, 3, 4, 5, 5, 5, 5])
    problem = binary_problem(3, gamma)
    (result,) = solve_exclusive([problem], groups=groups, random_state=0)
    assert result.partition.shape == (6,)
    if np.isinf(gamma):
        users = [set(np.flatnonzero(row)) for row in result.weights]
        assert all(users[j] == {result.partition[groups[j]]} for j in range(12))
    objective = joint_objective([problem], groups, [result.weights], [result.intercepts])
    assert result.history.objective[-1] == pytest.approx(objective)


@pytest.mark.parametrize("gamma", [np.inf, 1e6])
def test_surplus_members_abstain(gamma):
    problem = binary_problem(5, gamma, n_features=3)
    (result,) = solve_exclusive([problem], random_state=0)
    idle = ~np.any(result.weights, axis=0)
    assert idle.sum() == 2 if np.isinf(gamma) else idle.sum() <= 2
    assert not np.any(result.intercepts[idle])


@pytest.mark.parametrize("n_features", [5, 6, 11])
def test_nobody_starves_while_groups_suffice(n_features):
    for seed in range(3):
        problem = binary_problem(5, n_features=n_features, seed=seed)
        (result,) = solve_exclusive([problem], random_state=seed)
        assert np.all(np.any(result.weights, axis=0))


# --- gamma finite -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("gamma", FINITE)
@pytest.mark.parametrize("p", [1, 2])
def test_competition_never_raises_the_objective(gamma, p):
    problem = binary_problem(3, gamma, p=p, sparsity=0.05)
    (result,) = solve_exclusive([problem], random_state=0)
    history = result.history.objective
    assert np.all(np.diff(history) <= 1e-12 * history[0])
    assert (
        history[-1]
        == pytest.approx(result.objective)
        == pytest.approx(
            joint_objective([problem], columns_as_groups(problem), [result.weights], [result.intercepts])
        )
    )
    assert result.converged


@pytest.mark.parametrize("gamma", FINITE)
def test_each_member_is_the_best_answer_to_the_others(gamma):
    """No change of one member lowers F: its subproblem is convex, so small and large moves must both fail."""
    problem = binary_problem(3, gamma)
    options = ExclusiveOptions(change=1e-9)
    (result,) = solve_exclusive([problem], tol=1e-8, options=options, random_state=0)
    best = problem.value(result.weights, result.intercepts)
    rng = np.random.default_rng(0)
    for _ in range(300):
        weights, intercepts = result.weights.copy(), result.intercepts.copy()
        k, scale = rng.integers(3), 10.0 ** rng.uniform(-6, 0)
        weights[:, k] += scale * rng.normal(size=12) * (rng.random(12) < 0.3)
        intercepts[k] += scale * rng.normal()
        assert problem.value(weights, intercepts) >= best * (1 - 1e-7)


@pytest.mark.parametrize("gamma", FINITE)
@pytest.mark.parametrize("tol", [1e-4, 1e-7])
def test_converged_means_that_every_member_is_at_its_optimum_given_the_others(gamma, tol):
    problem = binary_problem(3, gamma)
    (result,) = solve_exclusive([problem], tol=tol, random_state=0)
    assert result.converged
    sizes = np.abs(result.weights)
    for k in range(3):
        penalties = gamma * (sizes.sum(axis=1) - sizes[:, k])
        alone = problem.changed(n_members=1, regulariser=ExclusivityRegulariser(0.0, penalties))
        present = alone.value(result.weights[:, [k]], result.intercepts[[k]])
        best = solve_newton(alone, tol=1e-11).objective
        assert present - best <= tol * present


def test_a_run_that_is_cut_short_is_not_converged():
    (result,) = solve_exclusive([binary_problem(3, 1.5)], tol=1e-7, max_iter=7, random_state=0)
    assert not result.converged
    assert result.status is Status.MAX_ITER
    assert result.n_iter == 7


def test_sweeps_that_take_too_much_work_end_unless_the_user_says_how_many(monkeypatch):
    problem = binary_problem(3, 1.5)
    whole = solve_exclusive([problem], tol=1e-9, random_state=0)[0]
    assert whole.converged
    assert whole.n_iter > 6
    monkeypatch.setattr("exclusivity.solvers.exclusive._MOST_WORK", 1.0)
    cut = solve_exclusive([problem], tol=1e-9, random_state=0)[0]
    assert cut.status is Status.MAX_ITER
    assert cut.n_iter == 6  # one sweep on columns of their own, one of competition
    asked = solve_exclusive([problem], tol=1e-9, random_state=0, max_iter=300)[0]
    np.testing.assert_array_equal(asked.weights, whole.weights)


def test_growing_exclusivity_ends_in_disjoint_supports():
    shared = []
    for gamma in (1.5, 10.0, 100.0, 1e5):
        (result,) = solve_exclusive([binary_problem(3, gamma)], random_state=0)
        sizes = np.abs(result.weights)
        shared.append(float(np.sum(sizes.sum(axis=1) ** 2 - (sizes**2).sum(axis=1))))
    assert shared[0] > shared[-1] == 0


def test_finite_competition_couples_the_classes():
    problems = one_vs_rest_problems(3, 1e5)
    results = solve_exclusive(problems, random_state=0)
    used = np.any([result.weights != 0 for result in results], axis=0)
    assert np.all(used.sum(axis=1) <= 1)
    objective = joint_objective(
        problems, np.arange(12), [r.weights for r in results], [r.intercepts for r in results]
    )
    assert results[0].history.objective[-1] == pytest.approx(objective)


# --- around it --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gamma", [np.inf, 4.0])
def test_sparse_rows_give_the_same_members(gamma):
    problem = binary_problem(3, gamma)
    as_csr = ERMProblem.build(
        sparse.csr_array(problem.design.X), problem.labels, n_members=3, exclusivity=gamma
    )
    (dense,) = solve_exclusive([problem], random_state=0, tol=1e-8)
    (same,) = solve_exclusive([as_csr], random_state=0, tol=1e-8)
    assert np.array_equal(dense.partition, same.partition)
    np.testing.assert_allclose(dense.weights, same.weights, atol=1e-4)


@pytest.mark.parametrize("gamma", [np.inf, 4.0])
def test_results_depend_on_the_seed_only(gamma):
    problems = one_vs_rest_problems(4, gamma)
    runs = [solve_exclusive(problems, random_state=3, n_threads=threads) for threads in (1, 1, 2)]
    for other in runs[1:]:
        for before, after in zip(runs[0], other, strict=True):
            assert np.array_equal(before.weights, after.weights)


def test_a_given_partition_is_used_as_it_is_without_restarts():
    problem = binary_problem(3)
    wanted = np.array([0, 1, 2, -1, 0, 0, 0, 0, 2, 2, -1, 1])
    options = ExclusiveOptions(restarts=0, partition=wanted)
    (result,) = solve_exclusive([problem], options=options)
    assert np.array_equal(result.partition, wanted)
    assert np.array_equal(np.any(result.weights, axis=1), wanted >= 0)


def test_the_callback_sees_every_member_and_can_stop():
    problem, seen = binary_problem(4), []

    def stop_after_two(state):
        seen.append((state.record.objective, state.weights.shape))
        return len(seen) == 2

    (result,) = solve_exclusive([problem], callback=stop_after_two, random_state=0)
    assert result.status is Status.CALLBACK
    assert not result.converged
    assert result.n_iter == len(seen) == 2
    assert seen[1][0] < seen[0][0]
    assert seen[0][1] == (12, 4)


def test_max_iter_ends_the_competition_after_the_first_sweep():
    (result,) = solve_exclusive([binary_problem(4, 2.0)], max_iter=1, random_state=0)
    assert (result.n_iter, result.status, result.converged) == (4, Status.MAX_ITER, False)
    (result,) = solve_exclusive([binary_problem(4, 2.0)], max_iter=6, random_state=0)
    assert (result.n_iter, result.status) == (6, Status.MAX_ITER)


@pytest.mark.parametrize(
    "groups", [np.zeros(5, dtype=int), np.zeros(12), np.r_[np.zeros(11, dtype=int), 2]], ids=str
)
def test_bad_groups_are_refused(groups):
    with pytest.raises(ValueError, match=r"one code per feature.*without gaps"):
        solve_exclusive([binary_problem()], groups=groups)


@pytest.mark.parametrize(
    "partition", [[0, 1], [3] * 12, [-2] * 12, [0.5] * 12], ids=["short", "high", "low", "fractions"]
)
def test_bad_partitions_are_refused(partition):
    with pytest.raises(ValueError, match=r"one member for each of the 12.*members 0 to 2"):
        solve_exclusive([binary_problem()], options=ExclusiveOptions(partition=partition))


def test_bad_problems_are_refused():
    with pytest.raises(ValueError, match="needs exclusivity > 1"):
        solve_exclusive([binary_problem(3, 1.0)])
    with pytest.raises(ValueError, match="at least one problem"):
        solve_exclusive([])
    problem = binary_problem(3)
    with pytest.raises(ValueError, match="must share"):
        solve_exclusive([problem, problem.changed(n_members=2)])


@pytest.mark.parametrize("bad", [{"change": 0.0}, {"restarts": -1}, {"restarts": 1.5}])
def test_bad_options_are_refused(bad):
    with pytest.raises(ValueError, match=f"solver option {next(iter(bad))}"):
        ExclusiveOptions(**bad)
