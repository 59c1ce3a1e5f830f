"""Gram matrices of active rows that are kept up to date, and what problems with the same rows share."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import sparse

from exclusivity import ERMClassifier
from exclusivity.objective.objective import ERMProblem
from exclusivity.rows.design import DesignMatrix
from exclusivity.solvers import newton as solver_module, solve_newton, sums as curvature_module
from exclusivity.solvers.dispatch import SOLVERS, solve_all
from exclusivity.solvers.newton import make_system
from exclusivity.solvers.sums import ActiveGram


def from_scratch(X, costs, active):
    bordered = np.column_stack([X, np.ones(len(X))])
    return (bordered[active].T * costs[active]) @ bordered[active]


@given(
    seed=st.integers(0, 2**32 - 1),
    kind=st.sampled_from(["dense", "csr"]),
    chunk=st.sampled_from([8, 1 << 20]),
)
def test_rows_may_come_and_go_in_any_order(seed, kind, chunk):
    rng = np.random.default_rng(seed)
    X, costs = rng.normal(size=(40, 3)), rng.uniform(0.1, 3, 40)
    design = DesignMatrix(sparse.csr_array(X) if kind == "csr" else X)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(curvature_module, "CHUNK_NUMBERS", chunk)
        gram = ActiveGram(design, costs)
        active = np.zeros(40, dtype=bool)
        for share in (1.0, 0.7, 0.05, 0.0, 1.0, 0.1):
            active = active ^ (rng.uniform(size=40) < share)
            np.testing.assert_allclose(
                gram.at(active), from_scratch(X, costs, active), rtol=1e-11, atol=1e-11
            )


def test_only_rows_that_change_are_read(monkeypatch):
    rng = np.random.default_rng(0)
    X, read = rng.normal(size=(100, 2)), []
    original = curvature_module.bordered_gram
    monkeypatch.setattr(
        curvature_module, "bordered_gram", lambda X, weights: read.append(len(X)) or original(X, weights)
    )
    gram = ActiveGram(DesignMatrix(X), np.ones(100))
    active = np.ones(100, dtype=bool)
    for change, expected in (
        (slice(0), 100),
        (slice(5), 5),
        (slice(0), 0),
        (slice(3, 9), 6),
        (slice(20, 90), 23),
    ):
        active = active.copy()
        active[change] ^= True
        read.clear()
        gram.at(active)
        assert sum(read) == expected, change


def test_a_huge_row_that_leaves_takes_no_digits_with_it():
    X = np.random.default_rng(1).normal(size=(30, 2))
    X[7] = 1e9
    active = np.ones(30, dtype=bool)
    gram = ActiveGram(DesignMatrix(X), np.ones(30))
    gram.at(active)
    active = np.arange(30) != 7
    np.testing.assert_allclose(gram.at(active), from_scratch(X, np.ones(30), active), rtol=1e-12)


def test_a_known_sum_of_all_rows_is_where_it_begins(monkeypatch):
    X = np.random.default_rng(2).normal(size=(50, 3))
    whole = from_scratch(X, np.ones(50), np.ones(50, dtype=bool))
    monkeypatch.setattr(ActiveGram, "_sum_over", lambda self, rows: np.zeros((4, 4)))  # nothing is read
    gram = ActiveGram(DesignMatrix(X), np.ones(50), whole)
    np.testing.assert_array_equal(gram.at(np.ones(50, dtype=bool)), whole)


def rows(n_rows=120, n_features=5, seed=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_features))
    return X, np.where(X[:, 0] + rng.normal(size=n_rows) > 0, 1.0, -1.0)


def test_problems_that_differ_in_labels_share_a_matrix(monkeypatch):
    X, y = rows()
    one = ERMProblem.build(X, y, n_members=3, cost=0.5)
    other = one.changed(labels=np.where(X[:, 1] > 0, 1.0, -1.0))
    lone = ERMProblem.build(X, y, cost=0.5)
    made = []
    spec = SOLVERS["newton"]
    monkeypatch.setitem(
        SOLVERS, "newton", dataclasses.replace(spec, make_system=lambda p: made.append(p) or make_system(p))
    )
    together = solve_all([one, other, lone], "newton", tol=1e-10)
    assert made == [one], "one matrix for two of them, none for the third"
    for problem, result in zip((one, other, lone), together, strict=True):
        alone = solve_newton(problem, tol=1e-10)
        assert result.converged
        np.testing.assert_allclose(result.weights, alone.weights, rtol=1e-9, atol=1e-12)
        assert result.n_iter == alone.n_iter


@pytest.mark.parametrize(
    "settings", [{"p": 1}, {"p": 3}, {"p": 1.5, "sparsity": 0.1}], ids=["p=1", "p=3", "penalty"]
)
def test_no_matrix_is_made_where_none_is_used(settings):
    X, y = rows()
    assert make_system(ERMProblem.build(X, y, **settings)) is None
    wide = ERMProblem.build(X[:4], np.array([1.0, -1.0, 1.0, -1.0]))
    assert make_system(wide) is None
    assert make_system(ERMProblem.build(X, y)) is not None


def test_ten_classes_are_as_certain_as_one_by_one():
    rng = np.random.default_rng(5)
    y = rng.integers(0, 10, 600)
    X = rng.normal(size=(600, 8)) + 2 * np.eye(10)[y][:, :8]
    model = ERMClassifier(n_estimators=3, tol=1e-9).fit(X, y)
    for code, objective in enumerate(model.objective_):
        single = ERMClassifier(n_estimators=3, tol=1e-9).fit(X, y == code)
        assert objective == pytest.approx(single.objective_[0], rel=2e-9)


@pytest.mark.parametrize("patience", [300.0, 3.0])
def test_long_problems_take_products_first_and_an_interior_point_if_need_be(monkeypatch, patience):
    X, y = rows(400, 4)
    problem = ERMProblem.build(X, y, p=1)
    expected = solve_newton(problem, tol=1e-9)
    monkeypatch.setattr(solver_module, "_MANY_FOR_HINGE", 1000)
    monkeypatch.setattr(solver_module, "_HINGE_SIDE", 1)
    monkeypatch.setattr(solver_module, "_LEAST_PASSES", patience)
    found = solve_newton(problem, tol=1e-6)
    assert found.converged
    assert found.objective == pytest.approx(expected.objective, rel=1e-6)
    has_interior_steps = bool(np.any(np.diff(found.history.passes) >= 7))
    assert has_interior_steps == (patience < 100)
    penalised = ERMProblem.build(X, y, p=1, sparsity=0.5)
    assert solve_newton(penalised, tol=1e-9).converged
