"""Fact 7 of math.md: one least-squares step, three ways to solve it, against dense least squares."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import sparse

from exclusivity.objective.objective import ERMProblem
from exclusivity.rows.design import DesignMatrix
from exclusivity.solvers import alm, solve_alm, solve_paper
from exclusivity.solvers.alm import RidgeSystem, shifted_solver

# Conjugate gradients stop at a relative residual of 1e-11 (in the norm of their preconditioner); with
# condition numbers up to 1e3 the solution is good for 1e-8. The factorisations are good for 1e-12 or better.
ACCURACY = {"primal": 1e-11, "dual": 1e-11, "iterative": 1e-8}


def least_squares(X, H, R, weights, ridge, fit_intercept):
    """min ridge/2 |P - H|^2 + 1/2 sum_i s_i |R_i - x_i P - b|^2, stacked into one dense problem."""
    n_features = X.shape[1]
    roots = np.sqrt(weights)[:, None]
    ones = roots if fit_intercept else np.zeros_like(roots)
    matrix = np.block([[roots * X, ones], [np.sqrt(ridge) * np.eye(n_features), np.zeros((n_features, 1))]])
    right = np.vstack([roots * R, np.sqrt(ridge) * H])
    solution = np.linalg.lstsq(matrix, right, rcond=None)[0]
    return solution[:-1], solution[-1] if fit_intercept else np.zeros(R.shape[1])


def case(shape, seed=0, n_columns=3, density=1.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=shape) + rng.normal(size=shape[1])
    X[rng.random(shape) > density] = 0.0
    H, R = rng.normal(size=(shape[1], n_columns)), rng.normal(size=(shape[0], n_columns))
    return X, H, R, rng.uniform(0.2, 3, size=shape[0]), rng


def check(system, X, H, R, weights, start):
    P, b = system.solve(H, R, start)
    expected, level = least_squares(X, H, R, weights, system.ridge, system.fit_intercept)
    tolerance = ACCURACY[system.kind]
    np.testing.assert_allclose(P, expected, rtol=0, atol=tolerance * np.abs(expected).max())
    np.testing.assert_allclose(b, level, rtol=0, atol=tolerance * max(1, np.abs(level).max()))


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_array, sparse.csr_matrix])
@pytest.mark.parametrize("penalty", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("shape", [(30, 6), (9, 20), (12, 12), (1, 4), (5, 1)], ids=str)
@pytest.mark.parametrize("kind", ["primal", "dual", "iterative"])
def test_every_system_solves_the_least_squares_problem(kind, shape, penalty, storage, fit_intercept):
    """Also in the shapes for which `RidgeSystem` would choose another one: the formulas hold for all."""
    X, H, R, weights, rng = case(shape, density=0.7)
    system = RidgeSystem(
        DesignMatrix(storage(X)), weights, ridge=penalty, fit_intercept=fit_intercept, kind=kind
    )
    check(system, X, H, R, weights, rng.normal(size=H.shape))


@settings(deadline=None, max_examples=60)
@given(
    st.integers(1, 40),
    st.integers(1, 40),
    st.integers(1, 4),
    st.floats(-2, 2),
    st.booleans(),
    st.booleans(),
    st.integers(0, 10**6),
)
def test_any_shape_and_penalty(n_rows, n_features, n_columns, log_penalty, fit_intercept, is_sparse, seed):
    X, H, R, weights, _ = case((n_rows, n_features), seed, n_columns, density=0.5)
    design = DesignMatrix(sparse.csr_array(X) if is_sparse else X)
    system = RidgeSystem(design, weights, ridge=10**log_penalty, fit_intercept=fit_intercept)
    check(system, X, H, R, weights, np.zeros_like(H))


def test_blocks_add_up():
    """More rows than one block holds: 700 x 120 and, on the N x N side, 75 x 1200."""
    for shape in ((700, 120), (75, 1200)):
        X, H, R, weights, _ = case(shape)
        check(
            RidgeSystem(DesignMatrix(X), weights, ridge=1.0, fit_intercept=True),
            X,
            H,
            R,
            weights,
            np.zeros_like(H),
        )


def test_conjugate_gradients_do_not_depend_on_their_start_and_accept_a_solution():
    X, H, R, weights, rng = case((50, 8))
    system = RidgeSystem(DesignMatrix(X), weights, ridge=1.0, fit_intercept=True, kind="iterative")
    solution, _ = system.solve(H, R, np.zeros_like(H))
    for start in (solution, 100 * rng.normal(size=H.shape)):
        before = start.copy()
        np.testing.assert_allclose(system.solve(H, R, start)[0], solution, rtol=1e-8)
        np.testing.assert_array_equal(start, before)
    zeros, level = system.solve(np.zeros_like(H), np.zeros_like(R), np.zeros_like(H))  # 0 / 0 in every column
    assert not zeros.any()
    assert not level.any()


@pytest.mark.parametrize(
    ("shape", "cap", "kind"),
    [
        ((30, 6), None, "primal"),
        ((12, 12), None, "primal"),
        ((12, 13), None, "dual"),
        ((30, 6), 8 * 6**2, "primal"),
        ((30, 6), 8 * 6**2 - 1, "iterative"),
        ((6, 30), 8 * 6**2, "dual"),
        ((6, 30), 8 * 6**2 - 1, "iterative"),
    ],
)
def test_which_system_is_chosen(shape, cap, kind, monkeypatch):
    monkeypatch.setattr(alm, "MEMORY_CAP", cap or alm.MEMORY_CAP)
    design = DesignMatrix(np.ones(shape))
    assert RidgeSystem(design, np.ones(shape[0]), ridge=1.0, fit_intercept=True).kind == kind


@pytest.mark.parametrize("solve", [solve_alm, solve_paper])
def test_no_square_matrix_of_the_larger_side(solve, monkeypatch):
    """M > N: only N x N is factorised; M <= N: only M x M."""
    sizes = []

    def spy(matrix, shift):
        sizes.append(matrix.shape)
        return shifted_solver(matrix, shift)

    monkeypatch.setattr(alm, "shifted_solver", spy)
    for shape, size in (((7, 60), (7, 7)), ((60, 7), (7, 7))):
        X, _, _, _, rng = case(shape)
        y = np.where(rng.random(shape[0]) < 0.5, 1.0, -1.0)
        solve(ERMProblem.build(X, y, n_members=2), max_iter=20)
        assert sizes.pop() == size
        assert not sizes  # factorised once for all iterations


@pytest.mark.parametrize("solve", [solve_alm, solve_paper])
def test_two_hundred_thousand_sparse_features_fit_in_small_memory(solve):
    """An M x M matrix would take 320 GB, a dense copy of X 32 MB; a dozen M x K arrays take 38 MB."""
    n_rows, n_features, n_members = 20, 200_000, 2
    X = sparse.csr_array(sparse.random(n_rows, n_features, 2e-4, format="csr", random_state=0))
    y = np.where(np.arange(n_rows) % 2, 1.0, -1.0)
    tracemalloc.start()
    try:
        result = solve(ERMProblem.build(X, y, n_members=n_members), max_iter=10, tol=1e-3)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert np.isfinite(result.objective)
    assert peak < 20 * 8 * n_features * n_members


def test_solvers_reach_the_same_optimum_with_conjugate_gradients():
    X, _, _, weights, rng = case((60, 8))
    y = np.where(X[:, 0] + rng.normal(size=60) > 0, 1.0, -1.0)
    problem = ERMProblem.build(X, y, n_members=3, weights=weights)
    factorised = solve_alm(problem, tol=1e-9)
    system = RidgeSystem(
        problem.design,
        weights,
        ridge=problem.kappa / (2 * problem.cost),
        fit_intercept=True,
        kind="iterative",
    )
    iterative = solve_alm(problem, tol=1e-9, system=system)
    assert iterative.converged
    np.testing.assert_allclose(iterative.objective, factorised.objective, rtol=2e-9)
    np.testing.assert_allclose(iterative.weights, factorised.weights, atol=1e-4)


# When rounding has eaten the ridge ----------------------------------------------------------------


def test_shifted_solver_solves():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(6, 6))
    matrix, right = A @ A.T, rng.normal(size=(6, 2))
    expected = np.linalg.solve(matrix + 0.3 * np.eye(6), right)
    np.testing.assert_allclose(shifted_solver(matrix, 0.3)(right), expected, rtol=1e-11)


def test_shifted_solver_falls_back_to_eigenvectors():
    """A singular matrix with a negative rounding: Cholesky fails, the eigenvalues are held at the shift."""
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(rng.normal(size=(5, 5)))[0]
    matrix = (basis * [1e3, 10.0, 1.0, 0.0, -1e-6]) @ basis.T
    right = rng.normal(size=(5, 2))
    expected = (basis / (np.array([1e3, 10.0, 1.0, 0.0, 0.0]) + 1e-7)[:, None].T) @ basis.T @ right
    solve = shifted_solver((matrix + matrix.T) / 2, 1e-7)
    np.testing.assert_allclose(solve(right), expected, rtol=1e-4)


def duplicated(scale, seed=0):
    """Two columns, each twice, at a huge scale: the difference of a pair is seen by the ridge alone."""
    rng = np.random.default_rng(seed)
    base = rng.normal(size=(30, 2)) * scale
    y = np.where(base[:, 0] / scale + rng.normal(size=30) > 0, 1.0, -1.0)
    return base, np.hstack([base, base]), y, rng


@pytest.mark.parametrize("scale", [1e7, 1e8])
def test_duplicated_huge_columns_are_solved_to_the_same_optimum(scale):
    """A column twice is that column times sqrt(2) once. (W shares the weight, |w|^2 halves.)"""
    base, twice, y, _ = duplicated(scale)
    expected = solve_alm(ERMProblem.build(np.sqrt(2) * base, y, n_members=2), tol=1e-8)
    result = solve_alm(ERMProblem.build(twice, y, n_members=2), tol=1e-8)
    assert expected.converged
    assert result.converged
    np.testing.assert_allclose(result.objective, expected.objective, rtol=2e-8)


@pytest.mark.parametrize("scale", [1e2, 1e4])
def test_the_difference_of_duplicated_columns_keeps_its_prior(scale):
    """P_1 - P_2 = H_1 - H_2 for a repeated column, up to the rounding of scale^2 against a ridge of 1."""
    _, twice, _, rng = duplicated(scale)
    H, R = rng.normal(size=(4, 2)), rng.normal(size=(30, 2))
    P, _ = RidgeSystem(DesignMatrix(twice), np.ones(30), ridge=1.0, fit_intercept=True).solve(H, R, H)
    np.testing.assert_allclose(P[:2] - P[2:], H[:2] - H[2:], atol=1e-13 * scale**2)
