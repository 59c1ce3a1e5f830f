"""Objectives and bounds against numbers made by hand; fits in processes of their own."""

import multiprocessing
import sys

import numpy as np
import pytest
from scipy import sparse

from benchmarks import measure
from benchmarks.measure import (
    Plan,
    Runner,
    best_intercept,
    dual_vectors,
    losses,
    lower_bound,
    measured,
    objective,
    run_case,
    schedule,
    wanted,
)
from benchmarks.peers import PEERS, Setting, Solution
from benchmarks.workloads import class_rows, overlapping_rows
from exclusivity.objective.losses import LOSSES
from exclusivity.objective.objective import ERMProblem

TINY = np.array([[1.0], [-1.0]]), np.array([1.0, -1.0])
"""Two rows, 1 and -1. For the hinge the optimum at cost C >= 1/2 is w = 1, b = 0: objective 1/2."""


@pytest.mark.parametrize(
    ("loss", "weight", "intercept", "own", "best"),
    [
        # 1/2 w^2 + C sum max(0, 1 - w -+ b)^p with C = 2; the best intercept for either p is 0 by symmetry.
        ("hinge", 0.5, 0.0, 0.125 + 2 * 1.0, 0.125 + 2 * 1.0),
        ("hinge", 0.5, 2.0, 0.125 + 2 * (0 + 2.5), 0.125 + 2 * 1.0),
        ("squared_hinge", 0.5, 0.25, 0.125 + 2 * (0.0625 + 0.5625), 0.125 + 2 * 0.5),
        ("logistic", 0.0, 1.0, 2 * np.log((1 + np.e) * (1 + 1 / np.e)), 4 * np.log(2)),
    ],
)
@pytest.mark.parametrize("wrap", [np.asarray, sparse.csr_matrix])
def test_the_objective_is_evaluated_here(wrap, loss, weight, intercept, own, best):
    X, y = TINY
    solution = Solution(np.array([[weight]]), np.array([intercept]))
    value = objective(wrap(X), y, solution, loss, 2.0)
    assert value["own"] == pytest.approx(own, abs=1e-12)
    assert value["objective"] == pytest.approx(best, abs=1e-12)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
def test_the_objective_is_that_of_the_package(loss):
    X, y = overlapping_rows(60, 4)
    w, b = np.linspace(-1, 1, 4), 0.3
    kind = {"loss": LOSSES["logistic"]()} if loss == "logistic" else {"p": 1 if loss == "hinge" else 2}
    expected = ERMProblem.build(X, y, cost=0.7, **kind).value(w[:, None], np.array([b]))
    assert objective(X, y, Solution(w[:, None], np.array([b])), loss, 0.7)["own"] == pytest.approx(expected)


def test_several_classes_add_up():
    X, y = class_rows(30, 3, 3)
    W, b = np.arange(9.0).reshape(3, 3) / 9, np.array([0.1, -0.2, 0.3])
    parts = [
        objective(X, np.where(y == k, 1.0, -1.0), Solution(W[:, [k]], b[[k]]), "hinge", 0.3) for k in range(3)
    ]
    value = objective(X, y, Solution(W, b), "hinge", 0.3)
    assert value["own"] == pytest.approx(sum(part["own"] for part in parts))
    assert value["objective"] == pytest.approx(sum(part["objective"] for part in parts))


def test_a_diverged_solver_is_infinitely_bad():
    value = objective(*TINY, Solution(np.array([[np.nan]]), np.array([0.0])), "squared_hinge", 1.0)
    assert value == {"objective": np.inf, "own": np.inf}


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
def test_no_other_intercept_is_better(loss):
    rng = np.random.default_rng(0)
    scores, labels = 3 * rng.standard_normal(200), np.where(rng.random(200) < 0.3, 1.0, -1.0)
    best = best_intercept(scores, labels, loss)
    at = [losses(labels * (scores + best + step), loss).sum() for step in (0, -1e-3, 1e-3, -1, 1)]
    assert at[0] == min(at)


def test_bounds_are_made_feasible():
    X, y = TINY
    # D = 2 a - (2 a)^2 / 2 is 1/2 at a = 1/2; an infeasible vector is clipped to the box: a = 1 gives 0.
    assert lower_bound(X, y, [np.array([0.5, 0.5])], "hinge", 1.0) == pytest.approx(0.5)
    assert lower_bound(X, y, [np.array([9.0, 9.0])], "hinge", 1.0) == pytest.approx(0.0)
    # The class with the larger sum is scaled down to the other's: (0.5, 1) becomes (0.5, 0.5).
    assert lower_bound(X, y, [np.array([0.5, 1.0])], "hinge", 1.0) == pytest.approx(0.5)


@pytest.mark.parametrize(("loss", "weight"), [("squared_hinge", 0.8), ("logistic", 0.7388350311)])
def test_weights_of_a_smooth_loss_bring_their_own_bound(loss, weight):
    X, y = TINY
    optimum = Solution(np.array([[weight]]), np.zeros(1))  # w = 4 (1 - w); w (1 + exp(w)) = 2 cost
    cost = 1.0 if loss == "squared_hinge" else weight * (1 + np.exp(weight)) / 2
    alphas = dual_vectors(X, y, optimum, loss, cost)
    assert lower_bound(X, y, alphas, loss, cost) == pytest.approx(objective(X, y, optimum, loss, cost)["own"])


@pytest.mark.parametrize("name", ["newton", "alm"])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_duals_of_our_solvers_certify(name, loss):
    X, y = class_rows(120, 4, 3)
    setting = Setting(loss, 0.2, 1e-4)
    value = objective(X, y, PEERS[name].prepare(X, y, setting)(), loss, 0.2)["own"]
    bound = lower_bound(X, y, PEERS[name].duals(X, y, setting), loss, 0.2)
    assert -1e-12 <= 1 - bound / value <= 1e-4


@pytest.fixture(scope="module")
def runner():
    if "forkserver" not in multiprocessing.get_all_start_methods():
        pytest.skip("fits are measured in forks")
    X, y = overlapping_rows(60, 3)
    with Runner(X, y) as runner:
        yield runner


def test_a_fit_in_a_process_of_its_own(runner):
    (record,) = runner.run("newton", [Setting("hinge", 1.0, 1e-6)], 60.0)
    assert record["status"] == "done"
    assert -1e-12 <= 1 - record["bound"] / record["own"] <= 1e-6
    assert 0 < record["cpu"] < 60
    assert 0 < record["product_wall"] < record["wall"]


def test_a_fit_that_takes_too_long_is_ended_and_with_it_the_finer_steps(runner):
    short, endless = (Setting("hinge", 1.0, epochs) for epochs in (1, 10**9))
    # The first setting is tried on tiny rows beforehand, which is no part of the limit.
    found = [record["status"] for record in runner.run("sgd", [short, endless, endless], 2.0)]
    assert found == ["done", "limit", "not reached"]


@pytest.mark.usefixtures("runner")
def test_a_failure_is_reported():
    X = sparse.csr_matrix((2, 20_000))
    with Runner(X, np.array([-1.0, 1.0])) as wide:
        (record,) = wide.run("logistic-newton-cholesky", [Setting("logistic", 1.0, 1e-4)], 60.0)
    assert record["status"] == "failed"
    assert "Hessian would have 20,001 rows" in record["message"]


def test_all_peers_of_a_loss_take_part(runner):
    plan = Plan(quick=True, repeats=2, limit=60.0)
    runs = list(run_case(runner, ["newton", "tron-1", "dcd-1"], "hinge", 0.2, plan))
    assert {run["peer"] for run in runs} == {"newton", "dcd-1"}, "tron knows the squared hinge alone"
    assert [run["repeat"] for run in runs] == [0] * 8 + [1] * 8
    assert [run["peer"] for run in runs[8:12]] == ["dcd-1"] * 4, "another peer begins"
    assert {run["repeat"] for run in runs if "bound" in run} == {0}


def test_steps_that_are_slow_or_failed_are_not_repeated():
    ladder = (1e-2, 1e-4)
    assert wanted([], 1e-2, ladder)
    assert not wanted([{"step": 1e-4, "status": "done", "wall": 61.0}], 1e-4, ladder)
    assert not wanted([{"step": 1e-2, "status": "failed"}], 1e-4, ladder)
    assert list(schedule({}, 3, together=True)) == []


def test_short_fits_are_repeated_and_long_ones_are_not(monkeypatch):
    calls = []

    def fit():
        calls.append(None)
        return Solution(np.zeros((1, 1)), np.zeros(1))

    measured(fit)
    assert len(calls) == measure.ENOUGH_FITS
    calls.clear()
    monkeypatch.setattr(measure, "ENOUGH_SECONDS", 0.0)
    measured(fit)
    assert len(calls) == 1


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the peak cannot be started anew")
def test_peak_memory_is_that_of_the_fit(monkeypatch):
    monkeypatch.setattr(measure, "ENOUGH_SECONDS", 0.0)
    np.ones(20_000_000)  # a peak before the fit does not count

    def fit():
        return Solution(np.ones((10_000_000, 1)) * 1.0, np.zeros(1))

    _, numbers = measured(fit)
    assert 0.9 * 80e6 < numbers["extra_bytes"] < 2.5 * 80e6


def test_no_process_outlives_an_interrupt(runner, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(measure, "_outcome", interrupted)
    with pytest.raises(KeyboardInterrupt):
        runner.run("sgd", [Setting("hinge", 1.0, 10**9)], 60.0)
    assert not multiprocessing.active_children()
