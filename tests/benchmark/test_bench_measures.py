"""Objectives, bounds, curves and times against numbers made by hand."""

import numpy as np
import pytest
from scipy import sparse

from benchmark.bench_fakes import tiny
from exclusivity.benchmark.measures import Judge, curve, fastest_peer, reached, reference, table_rows
from exclusivity.benchmark.peers import Solution, binary_labels


def run(peer, step, seconds, objective, bound=None, repeat=0, status="done"):
    if status != "done":
        return {"peer": peer, "step": step, "repeat": repeat, "status": status}
    return {
        "peer": peer,
        "step": step,
        "repeat": repeat,
        "status": status,
        "seconds": seconds,
        "cpu_seconds": seconds / 2,
        "extra_bytes": int(100 * seconds),
        "product_seconds": 0.25,
        "product_cpu_seconds": 0.5,
        "objective": objective,
        "own": objective,
        "bound": bound,
    }


@pytest.mark.parametrize(
    ("p", "weight", "intercept", "own", "best"),
    [
        # 1/2 w^2 + C sum max(0, 1 - w -+ b)^p with C = 2; the best intercept for either p is 0 by symmetry.
        (1, 0.5, 0.0, 0.125 + 2 * 1.0, 0.125 + 2 * 1.0),
        (1, 0.5, 2.0, 0.125 + 2 * (0 + 2.5), 0.125 + 2 * 1.0),
        (2, 0.5, 0.25, 0.125 + 2 * (0.0625 + 0.5625), 0.125 + 2 * 0.5),
    ],
)
@pytest.mark.parametrize("wrap", [np.asarray, sparse.csr_matrix])
def test_the_objective_is_ours(wrap, p, weight, intercept, own, best):
    X, y = tiny()
    value = Judge(wrap(X), y, cost=2.0, p=p).value(Solution(np.array([[weight]]), np.array([intercept])))
    assert value["own"] == pytest.approx(own, abs=1e-12)
    assert value["objective"] == pytest.approx(best, abs=1e-12)


def test_several_classes_add_up():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((12, 3)), np.tile([0.0, 1.0, 5.0], 4)
    W, b = rng.standard_normal((3, 3)), rng.standard_normal(3)
    expected = 0.0
    for k, label in enumerate((0.0, 1.0, 5.0)):
        margins = 1 - np.where(y == label, 1, -1) * (X @ W[:, k] + b[k])
        expected += W[:, k] @ W[:, k] / 2 + 0.3 * (np.maximum(margins, 0) ** 2).sum()
    assert Judge(X, y, cost=0.3, p=2).value(Solution(W, b))["own"] == pytest.approx(expected)
    assert len(binary_labels(y)) == 3


def test_a_diverged_solver_is_infinitely_bad():
    X, y = tiny()
    value = Judge(X, y, cost=1.0, p=2).value(Solution(np.array([[np.nan]]), np.array([0.0])))
    assert value == {"objective": np.inf, "own": np.inf}


def test_the_bound_is_recomputed_and_repaired():
    X, y = tiny()
    judge = Judge(X, y, cost=1.0, p=1)
    # D = 2 a - (2 a)^2 / 2 is 1/2 at a = 1/2; an infeasible vector is clipped to the box: a = 1 gives 0.
    at = Solution(np.array([[1.0]]), np.zeros(1))
    assert judge.bound(at, np.array([[0.5, 0.5]])) == pytest.approx(0.5)
    assert judge.bound(at, np.array([[9.0, 9.0]])) == pytest.approx(0.0)


def test_for_p_above_one_the_weights_bring_their_own_bound():
    X, y = tiny()
    judge = Judge(X, y, cost=1.0, p=2)
    optimum = Solution(np.array([[0.8]]), np.zeros(1))  # w = 4 (1 - w)
    assert judge.bound(optimum, np.zeros((1, 2))) == pytest.approx(judge.value(optimum)["own"])


def test_reference_is_the_best_of_all_with_its_error():
    runs = [run("a", 1, 1.0, 2.0, bound=1.9), run("b", 1, 1.0, 2.5, bound=1.95), run("c", 1, 1.0, None)]
    assert reference(runs) == {"objective": 2.0, "peer": "a", "error": pytest.approx(0.025)}
    assert reference([run("a", 1, 0, 0, status="limit")])["objective"] is None


def test_points_are_medians_of_time_and_worst_of_accuracy():
    runs = [run("a", 0.1, 1.0, 2.2, bound=1.98), run("a", 0.1, 5.0, 2.4), run("a", 0.1, 2.0, 2.2)]
    (point,) = curve([*runs, run("a", 0.01, 0, 0, status="limit")], best=2.0)
    assert point == {
        "step": 0.1,
        "seconds": 2.0,
        "excess": pytest.approx(0.2),
        "gap": pytest.approx(0.1),
        "extra_bytes": 500,
        "passes": 8.0,
        "repeats": 3,
    }
    (point,) = curve(runs, best=2.0, clock="cpu")
    assert (point["seconds"], point["passes"]) == (1.0, 2.0)


def test_a_repeat_that_diverged_leaves_no_excess():
    (point,) = curve([run("a", 1, 1.0, 2.0), run("a", 1, 1.0, None)], best=2.0)
    assert point["excess"] is None
    assert reached([point], 1.0) is None


def test_the_time_to_a_level_is_that_of_the_fastest_point_there():
    points = [
        {"seconds": 3.0, "excess": 1e-3, "gap": 1e-2},
        {"seconds": 2.0, "excess": 1e-5, "gap": 2e-4},
        {"seconds": 9.0, "excess": 0.0, "gap": None},
    ]
    assert reached(points, 1e-2)["seconds"] == 2.0
    assert reached(points, 1e-6)["seconds"] == 9.0
    assert reached(points, 1e-3, by="gap")["seconds"] == 2.0
    assert reached(points, 1e-6, by="gap") is None


def test_ratios_are_to_the_fastest_peer_not_to_us():
    def point(seconds, excess):
        return {"seconds": seconds, "excess": excess, "extra_bytes": 7, "passes": seconds, "gap": None}

    curves = {
        "ours": [point(1.0, 1e-7)],
        "slow": [point(8.0, 1e-5)],
        "fast": [point(4.0, 1e-3), point(5.0, 1e-4)],
    }
    case = {"curves": curves}
    assert fastest_peer(case, 1e-2, {"ours"}) == ("fast", 4.0)
    assert fastest_peer(case, 1e-6, {"ours"}) is None
    rows = {row["peer"]: row for row in table_rows(case, {"ours"})}
    assert rows["ours"]["times"]["1e-4"] == {"seconds": 1.0, "ratio": 0.2}
    assert rows["ours"]["times"]["1e-6"] == {"seconds": 1.0, "ratio": None}
    assert rows["slow"]["times"]["1e-2"] == {"seconds": 8.0, "ratio": 2.0}
    assert rows["fast"]["times"]["1e-6"] == {"seconds": None, "ratio": None}
    assert rows["fast"]["passes"] == {"1e-2": 4.0, "1e-4": 5.0}
