"""p = 1 on many distributed rows: bands of bounded size, and how they add up."""

from itertools import pairwise

import dask.array as da
import numpy as np
import pytest
from scipy import sparse

import exclusivity
from exclusivity.dask import ERMClassifier, _rows as rounds
from exclusivity.objective.objective import Contrast
from exclusivity.objective.problem import ERMProblem, member_costs
from exclusivity.rows.source import RowBlock
from exclusivity.solvers import blocks as sampling
from exclusivity.solvers.run import (OnTarget, Target)
from exclusivity.solvers! import shrinking
from exclusivity.solvers.barrier import (WorkingSet, near_margin)
from exclusivity.solvers.interior import solve_inside
from exclusivity.solvers.newton import solve_newton
from exclusivity.solvers.sums import Point
from exclusivity.solvers.sums import bound_from_sums

N_ROWS = 4000


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(11)
    X = rng.normal(size=(N_ROWS, 5)) * [1, 2, 0.5, 1, 3]
    y = (X @ [1.0, -0.5, 2.0, 0.0, 0.2] + 1.5 * rng.normal(size=N_ROWS) > 0.5).astype(int)
    return X, y, rng.integers(1, 4, size=N_ROWS).astype(float)


@pytest.fixture
def many(local, monkeypatch):
    """A few hundred rows count as many; the rounds are counted, by the name of what is asked."""
    asked, ask = [], rounds.Rows.ask
    monkeypatch.setattr(sampling, "MANY_ROWS", 800)
    monkeypatch.setattr(
        rounds.Rows,
        "ask",
        lambda self, questions: asked.append(name_of(questions[0].request)) or ask(self, questions),
    )
    return asked


def name_of(request):
    return request.question.__name__ if isinstance(request, OnTarget) else type(request).__name__


def as_dask(data, chunks=1000):
    X, y, weights = data
    return (
        da.from_array(X, chunks=(chunks, -1)),
        da.from_array(y, chunks=chunks),
        da.from_array(weights, chunks),
    )


def target_of(data, fit_intercept=True):
    X, y, weights = data
    whole = ERMProblem.build(
        X,
        np.where(y == 1, 1.0, -1.0),
        n_members=3,
        cost=2.0,
        p=1,
        weights=weights,
        fit_intercept=fit_intercept,
    ).reduced()
    return whole, Target(whole.objective, Contrast("1", 1, None))


def shortfall_of(whole, point):
    return 1 - whole.labels * (whole.design.times(point.weights) + point.intercept)


@pytest.mark.parametrize("is_sparse", [False, True], ids=["dense", "csr"])
@pytest.mark.parametrize("most", [0, 50, 10**6])
def test_a_band_is_the_same_however_rows_are_cut(data, most, is_sparse):
    X, y, weights = data
    if is_sparse:
        X = sparse.csr_matrix(X)
    whole, target = target_of((X, y, weights))
    point = Point(np.array([0.3, -0.2, 0.5, 0.0, 0.1]), -0.1)
    cuts = [0, 700, 700, 701, 2500, N_ROWS]
    blocks = [RowBlock(X[a:b], y[a:b].astype(np.int32), weights[a:b]) for a, b in pairwise(cuts)]
    request = OnTarget(target, near_margin, (point, 0.1, most))
    band = WorkingSet.combined([request.answer(block, None)[0] for block in blocks])
    m, costs = shortfall_of(whole, point), member_costs(whole)
    near = np.flatnonzero(np.abs(m) <= 0.1)
    inside = np.sort(near[np.argsort(np.abs(m[near]), kind="stable")][:most])
    assert band.is_cut == (most < len(near))
    np.testing.assert_allclose(band.shortfall, m[inside], atol=1e-12)
    np.testing.assert_allclose(band.rows.weights * band.cost, costs[inside])
    alpha = np.where(m > 0, costs, 0.0)
    alpha[inside] = 0.0
    np.testing.assert_allclose(band.sums.weighted_sums[0], X.T @ alpha)
    np.testing.assert_allclose(band.sums.weighted_sums[1], X.T @ (whole.labels * alpha))
    np.testing.assert_allclose(band.sums.alpha_sums, [alpha.sum(), whole.labels @ alpha])


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_bound_of_a_band_is_that_of_all_rows(data, fit_intercept):
    whole, target = target_of(data, fit_intercept)
    X, y, weights = data
    best = solve_newton(whole, tol=1e-10)
    start = Point(best.weights[:, 0] * 1.01, float(best.intercepts[0]))
    block = RowBlock(X, y.astype(np.int32), weights)
    for width, allowed in [(0.02, 0.1), (0.2, 1e-8), (np.inf, 1e-8)]:
        band = OnTarget(target, near_margin, (start, width, 10**6)).answer(block, None)[0]
        assert band.can_balance(fit_intercept)
        point, sums, _ = solve_inside(band, whole.objective, start, 1e-9 * best.objective)
        bound, _ = bound_from_sums(sums, whole.objective, whole.design.row_scale)
        value = whole.value(point.weights[:, None], np.array([point.intercept]))
        assert bound <= best.objective <= value * (1 + 1e-10)
        assert value - bound <= allowed * value


def test_a_band_of_one_class_cannot_balance(data):
    X, y, weights = data
    _, target = target_of(data)
    chosen = y == 1
    block = RowBlock(X[chosen], y[chosen].astype(np.int32), weights[chosen])
    band = OnTarget(target, near_margin, (Point(np.zeros(5), 0.0), 0.5, 100)).answer(block, None)[0]
    assert len(band.shortfall) == 0
    assert not band.can_balance(fit_intercept=True)
    assert band.can_balance(fit_intercept=False)


SETTINGS = [
    {},
    {"fit_intercept": False},
    {"C": 50.0},
    {"C": 1e-4},
    {"sparsity": 30.0},
    {"exclusivity": 0.3},
]


@pytest.mark.parametrize("params", SETTINGS, ids=str)
def test_bands_find_the_optimum_in_a_few_rounds(many, data, params):
    reference = exclusivity.ERMClassifier(3, p=1, tol=1e-10, **params).fit(*data)
    fitted = ERMClassifier(3, p=1, tol=1e-10, **params).fit(*as_dask(data))
    assert fitted.converged_[0]
    np.testing.assert_allclose(fitted.objective_, reference.objective_, rtol=1e-9)
    assert "near_margin" in many
    assert "linearise" not in many
    assert len(many) <= 14


@pytest.mark.parametrize("n_bytes", [2600, 4000, 20_000])
def test_what_bands_bring_is_bounded(many, data, monkeypatch, n_bytes):
    monkeypatch.setattr(sampling, "WORKING_BYTES", n_bytes)
    brought, solve = [], shrinking.solve_inside
    monkeypatch.setattr(
        shrinking,
        "solve_inside",
        lambda inside, *args: brought.append(inside.rows.X.nbytes) or solve(inside, *args),
    )
    reference = exclusivity.ERMClassifier(3, p=1, tol=1e-9).fit(*data)
    fitted = ERMClassifier(3, p=1, tol=1e-9).fit(*as_dask(data))
    assert fitted.converged_[0]
    np.testing.assert_allclose(fitted.objective_, reference.objective_, rtol=1e-8)
    assert brought
    assert max(brought) <= n_bytes


def test_more_rows_on_the_margin_than_a_band_holds(many, monkeypatch):
    monkeypatch.setattr(sampling, "WORKING_BYTES", 2600)
    rng = np.random.default_rng(0)
    X = np.repeat(rng.integers(-1, 2, size=(8, 5)).astype(float), 200, axis=0)
    y = rng.integers(0, 2, size=1600)
    rows = (X, y, np.ones(1600))
    reference = exclusivity.ERMClassifier(3, p=1, tol=1e-8).fit(*rows)
    fitted = ERMClassifier(3, p=1, tol=1e-8).fit(*as_dask(rows, 400))
    assert fitted.converged_[0]
    np.testing.assert_allclose(fitted.objective_, reference.objective_, rtol=1e-7)


def test_too_many_features_for_a_band_take_the_other_way(many, data, monkeypatch):
    monkeypatch.setattr(sampling, "WORKING_BYTES", 100)
    fitted = ERMClassifier(3, p=1).fit(*as_dask(data))
    assert fitted.converged_[0]
    assert "near_margin" not in many


def test_classes_share_the_rounds_and_a_warm_start_needs_fewer(many, data):
    X, y, weights = data
    y = y + (X[:, 1] > 2)
    rows = as_dask((X, y, weights))
    reference = exclusivity.ERMClassifier(3, p=1, tol=1e-8).fit(X, y, weights)
    fitted = ERMClassifier(3, p=1, tol=1e-8, warm_start=True).fit(*rows)
    n_cold = len(many)
    np.testing.assert_allclose(fitted.objective_, reference.objective_, rtol=1e-7)
    fitted.fit(*rows)
    assert len(many) - n_cold <= n_cold
    np.testing.assert_allclose(fitted.objective_, reference.objective_, rtol=1e-7)
