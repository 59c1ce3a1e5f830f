"""Which methods the default tries, one after the other, and that one which stalls hands over."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.router import dense_rows, sparse_rows
from exclusivity.kernels import compiled
from exclusivity.objective.losses import Logistic
from exclusivity.objective.objective import Bounds, ERMProblem
from exclusivity.solvers.newton import (
    PATIENCE,
    NewtonOptions,
    RowFacts,
    choose_regime,
    is_steep,
    methods_for,
    patience_for,
    solve_newton,
)


def methods(problem, *, is_chosen=False):
    regime = choose_regime(problem.objective, RowFacts.of(problem), "auto")
    return methods_for(problem.reduced(), regime, is_chosen=is_chosen)


@pytest.mark.parametrize(
    ("shape", "p", "cost", "first"),
    [
        ((700, 400), 2, 0.01, ["newton-cg", "factorised", "interior", "newton-cg"]),
        ((700, 400), 2, 100.0, ["proximal", "factorised", "interior", "newton-cg"]),
        ((1500, 400), 2, 100.0, ["newton-cg", "factorised", "interior", "newton-cg"]),
        ((300, 500), 2, 0.01, ["newton-cg", "factorised", "interior", "newton-cg"]),
        ((300, 500), 2, 100.0, ["factorised", "interior", "newton-cg"]),
        ((500, 700), 2, 100.0, ["proximal", "factorised", "interior", "newton-cg"]),
        ((700, 100), 2, 0.01, ["factorised", "interior", "newton-cg"]),
        ((700, 400), 1, 0.01, ["newton-cg", "interior", "newton-cg"]),
        ((700, 300), 1, 100.0, ["interior", "newton-cg"]),
        ((2000, 500), 1, 100.0, ["interior", "newton-cg"]),
        ((700, 700), 1, 100.0, ["proximal", "interior", "newton-cg"]),
        ((2500, 100), 1, 100.0, ["newton-cg", "interior", "newton-cg"]),
        ((1000, 60), 1, 0.01, ["interior", "newton-cg"]),
    ],
)
def test_products_come_first_where_systems_take_longer(shape, p, cost, first):
    assert methods(ERMProblem.build(*dense_rows(*shape), p=p, cost=cost)) == first


@pytest.mark.parametrize(
    ("shape", "p", "option", "first"),
    [
        ((1500, 400), 2, {"sparsity": 5.0}, "newton-cg"),
        ((700, 400), 2, {"sparsity": 5.0}, "factorised"),
        ((700, 400), 2, {"bounds": 0.1}, "newton-cg"),
        ((300, 400), 2, {"bounds": 0.1}, "factorised"),
        ((2500, 100), 1, {"sparsity": 5.0}, "newton-cg"),
        ((1500, 100), 1, {"sparsity": 5.0}, "interior"),
        ((1500, 100), 1, {"bounds": 0.1}, "newton-cg"),
    ],
)
def test_with_kinks_and_bounds_products_come_first_where_rows_are_many(shape, p, option, first):
    if "bounds" in option:
        ends = np.full(shape[1], option["bounds"])
        option = {"bounds": Bounds(-ends, ends)}
    problem = ERMProblem.build(*dense_rows(*shape), p=p, cost=1.0, **option)
    assert methods(problem)[0] == first
    assert solve_newton(problem).converged


@pytest.mark.parametrize(("cost", "expected"), [(0.01, False), (100.0, True)])
def test_scales_of_features_make_no_loss_steep(cost, expected):
    X, y = dense_rows(700, 200)
    scales = 10.0 ** np.linspace(-2, 2, 200)  # the rows of the longest features are 40 times as long
    for rows in (X, X * scales, np.column_stack([X, np.zeros((700, 3))])):
        assert is_steep(ERMProblem.build(rows, y, cost=cost)) is expected
    wide = ERMProblem.build(X[:100] * scales, y[:100], cost=cost)
    assert is_steep(wide)  # fewer rows than features: no preconditioner evens these out


@pytest.mark.parametrize("cost", [0.01, 100.0])
def test_products_come_first_for_the_logistic_loss_and_have_time(cost):
    problem = ERMProblem.build(*dense_rows(300, 400), cost=cost, loss=Logistic())
    assert methods(problem)[0] == "newton-cg"
    assert patience_for("semismooth", RowFacts.of(problem), methods(problem)) == 2 * PATIENCE


def test_a_chosen_regime_has_the_first_turn():
    problem = ERMProblem.build(*dense_rows(700, 400), cost=0.01)
    assert methods(problem, is_chosen=True)[0] == "factorised"


@pytest.mark.skipif(compiled is None, reason="the package was installed without its kernels")
@pytest.mark.parametrize("p", [1, 2])
def test_the_kernel_comes_first_on_sparse_rows_with_few_features(p):
    assert methods(ERMProblem.build(*sparse_rows(1000, 100, 0.05), p=p))[0] == "newton-cg"


def test_patience_grows_with_the_system_and_falls_with_density():
    names = ["newton-cg", "interior"]
    few, many = RowFacts(2000, 400), RowFacts(2000, 1000)
    assert patience_for("interior", few, names) < patience_for("interior", many, names)
    assert patience_for("interior", few, names) < patience_for("interior", RowFacts(2000, 400, 0.5), names)
    assert patience_for("iterative", RowFacts(9000, 9000), ["newton-cg", "proximal"]) == np.inf
    # The gap of proximal steps on the hinge falls late, and then fast.
    assert patience_for("interior", few, ["proximal", "interior"]) > patience_for("interior", many, names)


def test_a_run_of_products_that_stalls_hands_over():
    X, y = dense_rows(400, 300, spread=3.0)  # so many scales that conjugate gradients come to nothing
    problem = ERMProblem.build(X, y, p=1, cost=1e-3)
    result = solve_newton(problem, tol=1e-6)
    exact = solve_newton(problem, tol=1e-6, options=NewtonOptions("interior"))
    assert result.converged
    assert result.objective == pytest.approx(exact.objective, rel=2e-6)


def test_steep_squared_hinges_take_few_steps():
    result = solve_newton(
        ERMProblem.build(*dense_rows(1000, 500), p=2, cost=100.0)
    )  # above 200 by semismooth steps
    assert result.converged
    assert result.n_iter < 50
