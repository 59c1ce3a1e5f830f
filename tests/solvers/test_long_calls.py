"""No single product takes all rows of large data: Ctrl-C is heard between two calls, never inside one."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from exclusivity.objective.objective import ERMProblem
from exclusivity.rows import design as design_module
from exclusivity.rows.design import DesignMatrix
from exclusivity.solvers import Start, solve_alm, solve_newton, solve_paper

N_ROWS, N_FEATURES, K = 60_000, 8, 6
# Numbers in the largest operand of one product: the blocks of DesignMatrix, and chunks of 2^20 or less.
LIMIT = N_ROWS * min(N_FEATURES, K) // 2


class Watched(np.ndarray):
    """An array that notes the largest operand of every matrix product it takes part in."""

    largest = 0

    def __array_ufunc__(self, ufunc, method, *inputs, out=(), **kwargs):
        plain = [np.asarray(value) if isinstance(value, Watched) else value for value in inputs]
        if ufunc is np.matmul:
            Watched.largest = max(Watched.largest, *(np.size(value) for value in plain))
        results = tuple(np.asarray(o) if isinstance(o, Watched) else o for o in out)
        if results:
            kwargs["out"] = results
        answer = getattr(ufunc, method)(*plain, **kwargs)
        if isinstance(answer, np.ndarray) and answer.size >= N_ROWS:
            return answer.view(Watched)  # what is as long as X stays under watch
        return answer


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N_ROWS, N_FEATURES))
    y = np.where(X[:, 0] + 0.5 * rng.standard_normal(N_ROWS) > 0, 1.0, -1.0)
    built = ERMProblem.build(X.view(Watched), y, n_members=K, p=1)
    object.__setattr__(built.rows, "weights", built.weights.view(Watched))
    Watched.largest = 0
    return built


@pytest.mark.parametrize("solve", [solve_alm, solve_paper, solve_newton])
def test_no_product_takes_all_rows(solve, problem):
    solve(problem, max_iter=3)
    assert 0 < Watched.largest < LIMIT


def test_nor_does_a_warm_start(problem):
    start = Start(np.zeros((N_FEATURES, K)), np.zeros(K))
    solve_alm(problem, max_iter=2, start=start)
    assert 0 < Watched.largest < LIMIT


@pytest.mark.parametrize("shape", [(400, 30), (50, 300)])
@pytest.mark.parametrize("n_columns", [None, 1, 5])
def test_sparse_products_in_views_are_the_same(shape, n_columns, monkeypatch):
    rng = np.random.default_rng(1)
    X = sparse.csr_array((rng.random(shape) < 0.2).astype(float))
    X.data[:] = rng.integers(-4, 5, X.nnz)  # whole numbers: no order of summation changes anything
    tail = () if n_columns is None else (n_columns,)
    weights, values = (rng.integers(-4, 5, (n, *tail)).astype(float) for n in reversed(shape))
    monkeypatch.setattr(design_module, "_CALL_NUMBERS", 16)
    design = DesignMatrix(X)
    if shape[0] > shape[1]:
        assert len(list(design._views(n_columns or 1))) > 5
    np.testing.assert_array_equal(design.times(weights), X.toarray() @ weights)
    np.testing.assert_array_equal(design.transposed_times(values), X.toarray().T @ values)
    pieces = [view.X.toarray() for view in design._views(1)]
    np.testing.assert_array_equal(np.concatenate(pieces), X.toarray())


def test_views_survive_rows_without_numbers(monkeypatch):
    monkeypatch.setattr(design_module, "_CALL_NUMBERS", 1)
    X = sparse.csr_array(np.diag([0.0, 0.0, 3.0, 0.0, 5.0, 0.0])[:, 2:5])
    design = DesignMatrix(X)
    np.testing.assert_array_equal(design.times(np.ones(3)), X.toarray().sum(axis=1))
    np.testing.assert_array_equal(design.transposed_times(np.ones(6)), X.toarray().sum(axis=0))
    empty = DesignMatrix(sparse.csr_array((4, 3)))
    np.testing.assert_array_equal(empty.times(np.ones(3)), np.zeros(4))
