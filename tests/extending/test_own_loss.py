"""Losses that are not ours, behind the contract of ``MarginLoss``: certified by every solver that can."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import lambertw, xlogy

from exclusivity.objective.losses import MarginLoss
from exclusivity.objective.objective import ERMProblem, dual_bound
from exclusivity.solvers import NewtonOptions, solve_alm, solve_newton, solve_paper
from extending.pages import DOCS, names_of

Logistic = names_of("add-a-loss.md")["Logistic"]


class HuberisedHinge(MarginLoss):
    """0 below 0, m^2 / 2d up to d, m - d/2 above."""

    vanishes, largest_slope = True, 1.0

    def __init__(self, d=0.5):
        self.d = d

    def value(self, m):
        inner = np.clip(m, 0.0, self.d)
        return inner**2 / (2 * self.d) + np.maximum(m - self.d, 0.0)

    def slope(self, m):
        return np.clip(m / self.d, 0.0, 1.0)

    def curvature(self, m):
        return np.where((m > 0) & (m <= self.d), 1 / self.d, 0.0)

    def conjugate(self, alpha, cost):
        inside = self.d * alpha**2 / (2 * cost)
        return np.where((alpha >= 0) & (alpha <= cost), inside, np.inf)

    def prox(self, point, step):
        near = point / (1 + step / self.d)
        return np.where(point <= 0, point, np.where(near <= self.d, near, point - step))


class ShiftedSquare(MarginLoss):
    """max(0, m + d)^2: the margin is 1 + d, slopes have no bound, rows with m < 0 are active too."""

    active_curvature = 2.0

    def __init__(self, d=0.3):
        self.d = d

    def value(self, m):
        return np.maximum(m + self.d, 0.0) ** 2

    def slope(self, m):
        return 2 * np.maximum(m + self.d, 0.0)

    def curvature(self, m):
        return np.where(m + self.d > 0, 2.0, 0.0)

    def conjugate(self, alpha, cost):
        return np.where(alpha >= 0, alpha**2 / (4 * cost) - alpha * self.d, np.inf)

    def prox(self, point, step):
        return np.where(point + self.d > 0, (point - 2 * step * self.d) / (1 + 2 * step), point)


class Hyperbola(MarginLoss):
    """(m + sqrt(m^2 + 4)) / 2, positive everywhere; the page names what cancels for m < 0."""

    largest_slope = 1.0

    def value(self, m):
        root = np.hypot(m, 2.0)
        return np.where(m < 0, 2 / (root + np.abs(m)), (root + m) / 2)

    def slope(self, m):
        return self.value(m) / np.hypot(m, 2.0)

    def curvature(self, m):
        return 2 / np.hypot(m, 2.0) ** 3

    def conjugate(self, alpha, cost):
        a = np.clip(alpha / cost, 0.0, 1.0)
        return np.where((alpha >= 0) & (alpha <= cost), -2 * cost * np.sqrt(a * (1 - a)), np.inf)

    def prox(self, point, step):
        return Logistic.prox(self, point, step)


LOSSES = [Logistic(), HuberisedHinge(), ShiftedSquare(), Hyperbola()]
names = pytest.mark.parametrize("loss", LOSSES, ids=["logistic", "huberised", "shifted", "hyperbola"])


def test_the_page_describes_the_whole_contract():
    page = (DOCS / "add-a-loss.md").read_text(encoding="utf-8")
    methods = {name for name, value in vars(MarginLoss).items() if callable(value) and name[0] != "_"}
    assert {f"`{name}(" for name in methods} - set(re.findall(r"`\w+\(", page)) == set()
    declared = {f"| `{name}` |" for name in MarginLoss.__annotations__}
    assert declared - set(re.findall(r"\| `\w+` \|", page)) == set()


def test_the_formula_that_cancels_is_the_one_that_the_page_names():
    m = np.array([-1e8])
    assert (m + np.sqrt(m**2 + 4)) / 2 != pytest.approx(1e-8, rel=0.2)
    assert Hyperbola().value(m) == pytest.approx(1e-8, rel=1e-15)


@names
@given(m=st.floats(-20, 20), step=st.floats(0.01, 50))
def test_the_examples_keep_the_contract(loss, m, step):
    m, h = np.array([m]), 1e-6
    quotient = (loss.value(m + h) - loss.value(m - h)) / (2 * h)
    np.testing.assert_allclose(loss.slope(m), quotient, atol=1e-6)
    found = loss.prox(m, step)
    np.testing.assert_allclose(found + step * loss.slope(found), m, atol=1e-9 * (1 + step))
    alpha, cost = np.array([0.0, 0.3, 1.0, 2.0]), np.full(4, 2.0)
    assert np.all(alpha * m <= cost * loss.value(m) + loss.conjugate(alpha, cost) + 1e-12)
    slope = loss.slope(m)
    equal = slope * m - loss.value(m)
    np.testing.assert_allclose(loss.conjugate(slope, np.ones(1)), equal, atol=1e-9)


def data(kind, n_rows=60, n_features=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_features)) * (rng.random((n_rows, n_features)) < 0.7)
    y = np.where(X[:, 0] - X[:, 1] + rng.normal(size=n_rows) > 0.3, 1.0, -1.0)
    return (sparse.csr_matrix(X) if kind == "csr" else X), y, rng.uniform(0.5, 2.0, n_rows)


def optimum(problem):
    """By a quasi-Newton method that knows nothing of ours."""
    reduced = problem.reduced()
    X, y, costs = reduced.design.X, reduced.labels, reduced.cost * reduced.weights

    def value(at):
        w, b = at[:-1], at[-1] * problem.fit_intercept
        m = 1 - y * (X @ w + b)
        pull = -costs * y * problem.loss.slope(m)
        gradient = np.append(w + X.T @ pull, pull.sum() * problem.fit_intercept)
        return w @ w / 2 + costs @ problem.loss.value(m), gradient

    start = np.zeros(X.shape[1] + 1)
    found = minimize(value, start, jac=True, method="BFGS", options={"gtol": 1e-10, "maxiter": 2000})
    return problem.n_members * problem.kappa * found.fun


SOLVERS = {
    "newton": solve_newton,
    "semismooth": lambda problem, tol: solve_newton(
        problem, tol=tol, options=NewtonOptions(regime="semismooth")
    ),
    "iterative": lambda problem, tol: solve_newton(
        problem, tol=tol, options=NewtonOptions(regime="iterative")
    ),
    "alm": solve_alm,
}


@names
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("kind", ["dense", "csr"])
@pytest.mark.parametrize("shape", [(60, 4), (20, 50)], ids=["long", "wide"])
def test_every_solver_certifies_the_optimum(loss, solver, kind, shape):
    X, y, weights = data(kind, *shape)
    fit_intercept = shape == (60, 4)
    problem = ERMProblem.build(
        X, y, n_members=3, cost=2.0, loss=loss, weights=weights, fit_intercept=fit_intercept
    )
    found = SOLVERS[solver](problem, tol=1e-8)
    assert found.gap <= 1e-8
    best = optimum(problem)
    assert found.objective == pytest.approx(problem.value(found.weights, found.intercepts), rel=1e-10)
    assert found.objective <= best * (1 + 1e-8)
    assert dual_bound(problem, found.dual) <= best * (1 + 1e-9)


@names
def test_the_papers_algorithm_runs_on_its_prox(loss):
    X, y, _ = data("dense")
    problem = ERMProblem.build(X, y, n_members=3, cost=2.0, loss=loss)
    found = solve_paper(problem)
    assert optimum(problem) * (1 - 1e-9) <= found.objective <= 1.1 * optimum(problem)


def test_a_vanishing_loss_goes_through_the_interior_point_and_takes_a_penalty():
    X, y, weights = data("dense")
    problem = ERMProblem.build(X, y, n_members=3, cost=2.0, loss=HuberisedHinge(), weights=weights)
    interior = solve_newton(problem, tol=1e-9, options=NewtonOptions(regime="interior"))
    assert interior.gap <= 1e-9
    assert interior.objective == pytest.approx(optimum(problem), rel=1e-8)
    sparse_one = ERMProblem.build(X, y, n_members=3, cost=2.0, loss=HuberisedHinge(), sparsity=20.0)
    found = solve_newton(sparse_one, tol=1e-8)
    assert found.gap <= 1e-8
    assert np.any(found.weights == 0)


def test_what_cannot_use_a_loss_says_so_before_it_starts():
    X, y, _ = data("dense")
    problem = ERMProblem.build(X, y, loss=Logistic())
    with pytest.raises(ValueError, match=r"interior.* zero for m <= 0"):
        solve_newton(problem, options=NewtonOptions(regime="interior"))


def test_a_corner_without_a_rounding_is_an_error_that_names_the_loss():
    class Cornered(HuberisedHinge):
        has_corner = True

    with pytest.raises(NotImplementedError, match="Cornered has a corner"):
        Cornered().rounded(0.1)


def test_one_curvature_is_that_of_the_rows_with_a_slope():
    X, y, _ = data("dense", n_rows=200)
    found = [
        solve_newton(ERMProblem.build(X, y, n_members=3, loss=loss), tol=1e-10)
        for loss in (ShiftedSquare(0.0), ShiftedSquare(0.5), ShiftedSquare(-0.5))
    ]
    assert all(result.gap <= 1e-10 and result.n_iter <= 6 for result in found)


def test_an_active_curvature_bounds_the_loss_of_larger_shortfalls():
    loss, m, costs = ShiftedSquare(), np.linspace(-2.0, 3.0, 50), np.linspace(0.1, 2.0, 50)
    total, cost = float(costs @ loss.value(m)), float(costs.sum())
    for error in (1e-9, 0.1, 2.0):
        assert costs @ loss.value(m + error) <= loss.raised_total(total, cost, error) * (1 + 1e-14)
    same = np.full(50, 1.5)  # the bound is reached where all shortfalls are equal
    raised = loss.raised_total(float(costs @ loss.value(same)), cost, 0.1)
    assert raised == pytest.approx(costs @ loss.value(same + 0.1), rel=1e-12)


class Exponential(MarginLoss):
    """exp(-y f): neither its slope nor its curvature has a bound."""

    def value(self, m):
        return np.exp(m - 1)

    slope = curvature = value

    def conjugate(self, alpha, cost):
        return np.where(alpha >= 0, xlogy(alpha, np.maximum(alpha, 0.0) / cost), np.inf)

    def prox(self, point, step):
        return point - lambertw(step * np.exp(point - 1)).real


class CertifiedExponential(Exponential):
    def raised_total(self, total, cost, error):
        return total * np.exp(error)


@pytest.mark.parametrize("solve", [solve_newton, solve_alm, solve_paper])
def test_a_loss_without_bounds_says_what_errors_do_to_it(solve):
    X, y, _ = data("dense")
    with pytest.raises(NotImplementedError, match=r"Exponential .*raised_total"):
        solve(ERMProblem.build(X, y, loss=Exponential()))
    problem = ERMProblem.build(X, y, n_members=3, loss=CertifiedExponential())
    if solve is not solve_paper:
        found = solve(problem, tol=1e-8)
        assert found.gap <= 1e-8
        assert found.objective == pytest.approx(optimum(problem), rel=1e-7)
