"""Costs from 1e-320 to 1e300: an honest gap or a refusal, never the gap of numbers that have vanished."""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace

import dask.array as da
import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

import dask
from exclusivity import ERMClassifier, ERMClassifierCV, erm_path
from exclusivity.dask import ERMClassifier as DaskClassifier
from exclusivity.objective.losses import Logistic, PowerHinge, SmoothHinge
from exclusivity.objective.objective import LEAST_COST, ERMProblem

COSTS = [1e-320, 1e-308, 1e-300, 1e-290, 5e-280, 1e-250, 1e-160, 1e-100, 1e-10, 1e10, 1e100, 1e160, 1e300]
LOSSES = {
    "hinge": {"p": 1},
    "p=1.3": {"p": 1.3},
    "squared hinge": {"p": 2},
    "p=3": {"p": 3},
    "logistic": {"loss": "logistic"},
    "smooth hinge": {"loss": "smooth_hinge"},
}
REFUSED = r"C=.* times the smallest sample weight, .*, is below .*Raise C, multiply sample_weight"

rng = np.random.default_rng(0)
ROWS = rng.normal(size=(12, 3))
LABELS = np.where(ROWS[:, 0] + rng.normal(size=12) > 0, 1, -1)


def loss_of(name):
    return {"logistic": Logistic(), "smooth hinge": SmoothHinge()}.get(name) or PowerHinge(LOSSES[name]["p"])


def twin_value(name, weights, intercept, cost):
    """f / C of one member, in longer floats, whose exponents reach farther."""
    weights, shortfall = weights.astype(np.longdouble), 1 - LABELS * (ROWS @ weights + intercept)
    loss = loss_of(name).value(shortfall.astype(float)).astype(np.longdouble).sum()
    return weights @ weights / 2 / np.longdouble(cost) + loss


@cache
def other_points(name):
    """The optima of other costs."""
    settings = [{"C": C, "tol": 1e-9} | LOSSES[name] for C in (1e-9, 1.0, 1e3, 1e9)]
    models = [ERMClassifier(1, **each).fit(ROWS, LABELS) for each in settings]
    return [(model.coef_[0], model.intercept_[0]) for model in models] + [(np.zeros(3), 0.0)]


def assert_honest(name, model, cost):
    """No point known is better by more than the gap: neither zero nor the optimum of a cost not far off."""
    assert np.isfinite(model.coef_).all()
    here = twin_value(name, model.coef_[0], model.intercept_[0], cost)
    best = min(twin_value(name, *point, cost) for point in other_points(name))
    assert (here - best) / here <= model.dual_gap_[0] * (1 + 1e-6) + 1e-12


def fitted(fit, cost, kappa=1.0):
    """The model, or None where the cost is refused; it is for costs that are too small, and for no others."""
    if cost >= LEAST_COST * kappa:
        return fit()
    with pytest.raises(ValueError, match=REFUSED):
        fit()
    return None


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("solver", ["newton", "alm", "paper"])
def test_every_solver_is_honest_or_refuses(solver, name, cost):
    model = ERMClassifier(1, C=cost, solver=solver, max_iter=100, **LOSSES[name])
    if fitted(lambda: model.fit(ROWS, LABELS), cost) is not None:
        assert_honest(name, model, cost)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("exclusivity", [1.5, np.inf])
def test_members_that_compete_refuse_what_has_vanished(exclusivity, cost):
    model = ERMClassifier(2, C=cost, exclusivity=exclusivity, random_state=0)
    if fitted(lambda: model.fit(ROWS, LABELS), cost) is not None:
        assert np.isfinite(model.coef_).all()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("name", LOSSES)
def test_paths_dask_and_cross_validation_are_honest_or_refuse(name, cost):
    settings = LOSSES[name]
    path = fitted(lambda: erm_path(ROWS, LABELS, Cs=[cost], n_estimators=1, **settings), cost)
    blocks = da.from_array(ROWS, chunks=(5, 3)), da.from_array(LABELS, chunks=5)
    with dask.config.set(scheduler="synchronous"):  # each of hundreds of steps takes long there
        model = fitted(lambda: DaskClassifier(1, C=cost, max_iter=20, **settings).fit(*blocks), cost)
    chosen = ERMClassifierCV(n_estimators=1, Cs=[cost], cv=2, **settings)
    fitted(lambda: chosen.fit(ROWS, LABELS), cost)
    if path is not None:
        of_path = SimpleNamespace(coef_=path.coefs[0], intercept_=path.intercepts[0], dual_gap_=path.gaps[0])
        for found in (of_path, model, chosen):
            assert_honest(name, found, cost)


def test_small_products_with_weights_are_refused():
    weights = np.ones(12)
    weights[3] = 1e-300
    with pytest.raises(ValueError, match=r"C=2 times the smallest sample weight, 1e-300, is below 1e-279"):
        ERMClassifier(10, C=2.0).fit(ROWS, LABELS, sample_weight=weights)
    weights[3] = 0.0  # what the message says
    assert ERMClassifier(10, C=2.0).fit(ROWS, LABELS, sample_weight=weights).converged_.all()


def test_the_smallest_cost_grows_with_what_members_share():
    problem = ERMProblem.build(ROWS, LABELS, cost=2e-280, n_members=1)
    assert problem.cost == 2e-280
    with pytest.raises(ValueError, match=r"is below 3e-280"):
        ERMProblem.build(ROWS, LABELS, cost=2e-280, n_members=3)


@pytest.mark.parametrize("as_rows", [np.asarray, sparse.csr_matrix], ids=["dense", "csr"])
@pytest.mark.parametrize(
    ("p", "cost", "rows"),
    [(1, 1e295, [[-7e118], [4e118]]), (1.0001, 5e235, [[-2e106, 3e105], [5e105, -1e106], [-1e106, -8e105]])],
)
def test_products_of_costs_and_rows_that_are_infinite_leave_finite_weights(p, cost, rows, as_rows):
    labels = np.arange(len(rows)) % 2
    with pytest.warns(ConvergenceWarning):
        model = ERMClassifier(1, C=cost, p=p, sparsity=1e-3).fit(as_rows(rows), labels)
    assert np.isfinite(model.coef_).all()
    assert model.dual_gap_[0] == 1
