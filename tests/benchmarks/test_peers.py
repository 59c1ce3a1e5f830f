"""Every peer minimises what its sentence on the intercept says, dense and sparse, two classes and three."""

import re
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy import sparse

from benchmarks.measure import objective
from benchmarks.peers import PEERS, POWER, Setting, Solution, binary_labels
from benchmarks.workloads import class_rows, overlapping_rows
from exclusivity.objective.losses import LOSSES
from exclusivity.objective.objective import ERMProblem
from exclusivity.solvers import solve_newton

COST = 0.2
# skglm compiles for ten seconds on first use; its own test would outlast all others.
CASES = [(name, loss) for name, peer in PEERS.items() if name != "skglm" for loss in peer.losses]
# How near it must come to the optimum of its own problem; stochastic gradients never quite arrive.
REACH = {"sgd": 0.3, "snapml-10": 2e-3}


def own_excess(peer, X, labels, loss, w, b):
    """The excess over the problem that a peer says it solves: a free intercept, or a penalised constant."""
    kind = {"loss": LOSSES["logistic"]()} if loss == "logistic" else {"p": POWER[loss]}
    found = re.search(r"a constant feature of value (\d+)", peer.intercept)
    if found:
        X = np.hstack([X, np.full((len(X), 1), float(found[1]))])
        w, b = np.append(w, b / float(found[1])), 0.0
    problem = ERMProblem.build(X, labels, cost=COST, fit_intercept=not found, **kind)
    best = solve_newton(problem, tol=1e-10).objective
    return problem.value(w[:, None], np.array([b])) / best - 1


# snapml 1.17 asks numpy for the CPU's features under a deprecated name.
@pytest.mark.filterwarnings("ignore:numpy.core:DeprecationWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("classes", "wrap"), [(2, np.asarray), (3, sparse.csr_matrix)])
@pytest.mark.parametrize(("name", "loss"), CASES)
def test_peers_solve_the_problem_they_say(name, loss, classes, wrap):
    peer = PEERS[name]
    if peer.absence():
        pytest.skip(peer.absence())
    if name == "psvm" and wrap is sparse.csr_matrix:
        wrap = np.asarray  # dense rows only
    X, y = overlapping_rows(150, 4) if classes == 2 else class_rows(150, 4, 3)
    step = (1e-4 if peer.ours else 1e-7) if peer.step == "tol" else 300

    def solve():
        return peer.prepare(wrap(X), y, Setting(loss, COST, step))()

    # In a thread of its own: loading snapml makes the processor round subnormal numbers to zero, in the
    # thread that loads it and those it starts, and the tests that come after need such numbers.
    with ThreadPoolExecutor(1) as thread:
        solution = thread.submit(solve).result()
    assert sys.float_info.min / 2 > 0
    assert solution.weights.shape == (4, 1 if classes == 2 else 3)
    for labels, w, b in zip(binary_labels(y), solution.weights.T, solution.intercepts, strict=True):
        assert -1e-9 < own_excess(peer, X, labels, loss, w, b) < REACH.get(name, 2e-4)


def test_finer_steps_come_closer():
    X, y = overlapping_rows(300, 5)
    for name in ("newton", "alm", "svc"):  # their intercepts are free, so the objective is theirs
        peer = PEERS[name]
        for loss in set(peer.losses) & {"hinge"}:
            values = [
                objective(X, y, peer.prepare(X, y, Setting(loss, COST, step))(), loss, COST)["objective"]
                for step in (peer.ladder[0], peer.ladder[-1])
            ]
            assert values[1] <= values[0] * (1 + 1e-12)
            assert list(peer.ladder) == sorted(peer.ladder, reverse=True)


def test_the_intercept_of_every_peer_is_stated():
    assert all("penalised" in peer.intercept for peer in PEERS.values())
    assert {name for name, peer in PEERS.items() if peer.ours} == {"newton", "alm", "psvm"}
    assert PEERS["liblinear-free"].intercept == PEERS["newton"].intercept


def test_an_absent_peer_says_so(monkeypatch):
    monkeypatch.setattr(PEERS["svc"], "module", "surely_not_installed", raising=False)
    assert PEERS["svc"].absence().startswith("surely_not_installed is not installed")
    assert PEERS["newton"].absence() is None


def test_solutions_of_one_model_or_of_several():
    class Model:
        def __init__(self, coef, intercept):
            self.coef_, self.intercept_ = coef, intercept

    joint = Solution.of(Model(np.arange(6.0).reshape(3, 2), 0.0))
    assert joint.weights.tolist() == [[0, 2, 4], [1, 3, 5]]
    assert joint.intercepts.tolist() == [0, 0, 0]
    apart = Solution.of(Model(sparse.csr_matrix([[1.0, 2.0]]), [3.0]), Model(np.array([4.0, 5.0]), 6.0))
    assert apart.weights.tolist() == [[1, 4], [2, 5]]
    assert apart.intercepts.tolist() == [3, 6]


def test_a_peer_of_dense_rows_says_so():
    with pytest.raises(ValueError, match="psvm takes dense rows only"):
        PEERS["psvm"].prepare(sparse.csr_matrix(np.eye(2)), np.array([0, 1]), Setting("hinge", COST, 1e-4))
