"""One member with a penalty per column, against the optimality conditions written out."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from exclusive.exclusive_cases import binary_problem
from exclusivity.objective.objective import ERMProblem
from exclusivity.solvers.exclusive import fit_member


def penalties_of_rivals(seed, n_features=12):
    """Some columns are free, some cost a little, some too much."""
    rng = np.random.default_rng(seed)
    return rng.choice([0.0, 1.0, 5.0, 500.0], n_features)


def violation(problem, penalties, member):
    """How far the squared hinge's optimum is missed: 0 must lie in the subdifferential, column by column."""
    X = problem.design.X.toarray() if problem.design.is_sparse else problem.design.X
    weights = member.weights[:, 0]
    shortfall = np.maximum(0.0, 1 - problem.labels * (X @ weights + member.intercepts))
    pulls = 2 * problem.cost * problem.weights * problem.labels * shortfall
    slope = weights - X.T @ pulls
    used = weights != 0
    missed = np.where(
        used,
        np.abs(slope + penalties * np.sign(weights)),
        np.maximum(np.abs(slope) - penalties, 0.0),
    )
    return max(missed.max(), abs(pulls.sum()))


def fit(problem, penalties, tol=1e-10):
    return fit_member(problem, np.arange(12), penalties, tol)


@pytest.mark.parametrize("seed", range(4))
def test_the_optimality_conditions_hold_on_all_columns(seed):
    problem, penalties = binary_problem(1, 0.0, seed=seed), penalties_of_rivals(seed)
    member = fit(problem, penalties, tol=1e-12)
    assert violation(problem, penalties, member) < 1e-3
    assert not np.any(member.weights[penalties == 500.0])
    assert np.all(member.weights[penalties == 0.0])


@pytest.mark.parametrize("p", [1, 2])
def test_sparse_rows_are_the_same_problem(p):
    dense, penalties = binary_problem(1, 0.0, p=p), penalties_of_rivals(2)
    rows = sparse.csr_array(dense.design.X)
    csr = ERMProblem.build(rows, dense.labels, exclusivity=0.0, p=p)
    one, other = (fit(problem, penalties) for problem in (dense, csr))
    np.testing.assert_allclose(one.weights, other.weights, atol=1e-4)


def test_a_huge_penalty_elsewhere_is_the_fit_on_the_free_columns():
    problem = binary_problem(1, 0.0)
    penalties = np.where(np.arange(12) < 5, 0.0, 1e6)
    member = fit(problem, penalties)
    alone = fit_member(problem, np.arange(5), 0.0, tol=1e-10)
    np.testing.assert_allclose(member.weights[:5], alone.weights, atol=1e-5)
    assert not np.any(member.weights[5:])
    assert member.converged
    assert alone.converged
