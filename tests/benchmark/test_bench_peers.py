"""Every peer minimises what its sentence on the intercept says, dense and sparse, two classes and three."""

import re
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy import sparse

from exclusivity import ERMClassifier
from exclusivity.benchmark import PEERS, WORKLOADS, Setting, find_workloads
from exclusivity.benchmark.generators import class_rows, one_hot_rows, overlapping_rows, text_rows
from exclusivity.benchmark.measures import Judge
from exclusivity.benchmark.peers import binary_labels
from exclusivity.benchmark.workloads import load_rows, save_rows
from exclusivity.problem import ERMProblem
from exclusivity.solvers import solve_newton

COST = 0.2
# skglm compiles for ten seconds on first use; its own test would outlast all others.
SWIFT = [name for name, peer in PEERS.items() if name != "skglm" and not peer.yardstick]
YARDSTICKS = [name for name, peer in PEERS.items() if peer.yardstick]
# How near it must come to the optimum of its own problem; stochastic gradients never quite arrive.
REACH = {"sgd": 0.3, "snapml-10": 2e-3}


def own_problem(peer, X, labels, p):
    """The problem that a peer says it solves: with a free intercept, or with a penalised constant feature."""
    found = re.search(r"a constant feature of value (\d+)", peer.intercept)
    if not found:
        return ERMProblem.build(X, labels, cost=COST, p=p), None
    scaling = float(found[1])
    rows = np.hstack([X, np.full((len(X), 1), scaling)])
    return ERMProblem.build(rows, labels, cost=COST, p=p, fit_intercept=False), scaling


def own_excess(peer, X, labels, p, w, b):
    problem, scaling = own_problem(peer, X, labels, p)
    w, b = (w, b) if scaling is None else (np.append(w, b / scaling), 0.0)
    best = solve_newton(problem, tol=1e-10).objective
    return problem.value(w[:, None], np.array([b])) / best - 1


# snapml 1.17 asks numpy for the CPU's features under a deprecated name.
@pytest.mark.filterwarnings("ignore:numpy.core:DeprecationWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("classes", "wrap"), [(2, np.asarray), (3, sparse.csr_matrix)])
@pytest.mark.parametrize(("name", "p"), [(name, p) for name in SWIFT for p in PEERS[name].powers])
def test_peers_solve_the_problem_they_say(name, p, classes, wrap):
    peer = PEERS[name]
    if peer.absence():
        pytest.skip(peer.absence())
    X, y = overlapping_rows(150, 4) if classes == 2 else class_rows(150, 4, 3)
    step = (1e-4 if peer.ours else 1e-7) if peer.step == "tol" else 300

    def solve():
        return peer.prepare(wrap(X), y, Setting(COST, p, step))()

    # In a thread of its own: loading snapml makes the processor round subnormal numbers to zero, in the
    # thread that loads it and those it starts, and the tests that come after need such numbers.
    with ThreadPoolExecutor(1) as thread:
        solution = thread.submit(solve).result()
    assert sys.float_info.min / 2 > 0
    assert solution.weights.shape == (4, 1 if classes == 2 else 3)
    for labels, w, b in zip(binary_labels(y), solution.weights.T, solution.intercepts, strict=True):
        assert -1e-9 < own_excess(peer, X, labels, p, w, b) < REACH.get(name, 2e-4)


@pytest.mark.parametrize("name", YARDSTICKS)
def test_yardsticks_are_logistic_regressions(name):
    X, y = overlapping_rows(150, 4)
    solution = PEERS[name].prepare(X, y, Setting(COST, 1, 1e-8))()
    constant = "constant" in PEERS[name].intercept
    rows = np.hstack([X, np.ones((150, 1))]) if constant else X
    ours = ERMClassifier(1, C=COST, loss="logistic", fit_intercept=not constant, tol=1e-10).fit(rows, y)
    assert solution.weights[:, 0] == pytest.approx(ours.coef_[0, :4], abs=1e-4)
    X, y = class_rows(150, 4, 3)
    assert PEERS[name].prepare(sparse.csr_matrix(X), y, Setting(COST, 2, 1e-2))().weights.shape == (4, 3)


def test_a_hessian_too_large_to_hold_is_refused():
    with pytest.raises(ValueError, match="Hessian would have 20,001 rows"):
        PEERS["logistic-newton-cholesky"].prepare(
            np.zeros((2, 20_000)), np.array([-1.0, 1.0]), Setting(1, 2, 1)
        )


def test_the_intercept_of_every_peer_is_stated():
    assert all(len(peer.intercept) > 5 for peer in PEERS.values())
    assert {name for name, peer in PEERS.items() if peer.ours} == {"newton", "alm", "psvm"}
    assert all("penalised" in PEERS[name].intercept for name in ("tron-1", "dcd-10", "liblinear-tron"))


def test_duals_of_our_solvers_certify():
    X, y = class_rows(120, 4, 3)
    for name in ("newton", "alm"):
        peer, setting = PEERS[name], Setting(COST, 1, 1e-4)
        solution, judge = peer.prepare(X, y, setting)(), Judge(X, y, cost=COST, p=1)
        gap = 1 - judge.bound(solution, np.stack(peer.certify(X, y, setting))) / judge.value(solution)["own"]
        assert 0 <= gap <= 1e-4


def test_generated_rows_are_what_they_say():
    X, y = one_hot_rows(4000)
    assert X.sum(axis=1).min() == X.sum(axis=1).max() == 14
    assert np.mean(y > 0) == pytest.approx(0.24, abs=0.01)
    X, y = text_rows(2000, 5000, 30)
    frequency = np.sort(np.diff(X.tocsc().indptr))[::-1]
    assert frequency[0] > 10 * frequency[200] > 50 * frequency[2000], (
        "a few terms are everywhere, most are rare"
    )
    assert 25 < X.nnz / 2000 <= 30
    assert 0.4 < np.mean(y > 0) < 0.8
    X, y = overlapping_rows(20_000, 10)
    wrong = np.mean(np.sign(X @ np.linalg.lstsq(X, y, rcond=None)[0]) != y)
    assert 0.1 < wrong < 0.3


@pytest.mark.parametrize("make", [lambda: overlapping_rows(30, 3), lambda: text_rows(30, 50, 5)])
def test_rows_survive_the_disk(make, tmp_path):
    X, y = make()
    save_rows(tmp_path, X, y)
    again, labels = load_rows(tmp_path)
    assert sparse.issparse(again) == sparse.issparse(X)
    assert abs(again - X).max() == 0
    assert np.array_equal(labels, y)


def test_groups_and_names_of_workloads():
    assert len(find_workloads(["paper"], quick=False)) == 8
    assert [each.name for each in find_workloads(["dense"], quick=True)] == ["small-dense"]
    assert [each.name for each in find_workloads(["dense-2m", "dense-2m"], quick=True)] == ["dense-2m"]
    assert not any(each.small for each in find_workloads(None, quick=False))
    assert {each.kind for each in find_workloads(None, quick=True)} == {
        "paper",
        "dense",
        "sparse",
        "classes",
        "text",
    }
    assert [each.name for each in find_workloads(["text"], quick=True)] == ["small-text"]
    assert len(find_workloads(["text"], quick=False)) == 4
    assert len(WORKLOADS) == 23


def test_paper_sets_have_150_rows_of_both_classes():
    X, y = WORKLOADS["paper-heart"].make()
    assert X.shape == (150, 13)
    assert set(y) == {-1.0, 1.0}
