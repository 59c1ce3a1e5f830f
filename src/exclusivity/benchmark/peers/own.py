"""Our own solvers, through the estimators that a user calls."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from exclusivity import ERMClassifier
from exclusivity.baselines import PSVMClassifier
from exclusivity.benchmark.peers.base import FREE, Action, Floats, Peer, Setting, Solution, binary_labels
from exclusivity.problem import ERMProblem
from exclusivity.solvers import SolverResult, solve_alm, solve_newton

_SOLVERS: dict[str, Callable[..., SolverResult]] = {"newton": solve_newton, "alm": solve_alm}
_TOLERANCES = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-8)


def _erm(X: object, y: Floats, setting: Setting, *, solver: str) -> Action:
    model = ERMClassifier(1, C=setting.cost, p=setting.p, solver=solver, tol=setting.step)
    return lambda: Solution.of_estimator(model.fit(X, y))


def _duals(X: object, y: Floats, setting: Setting, *, solver: str) -> list[Floats]:
    """The estimator keeps no dual vectors: the same solver, run again. Any dual vector bounds any weights."""
    solve = _SOLVERS[solver]
    problems = (ERMProblem.build(X, labels, cost=setting.cost, p=setting.p) for labels in binary_labels(y))
    return [solve(problem, tol=setting.step).dual for problem in problems]


def _psvm(X: object, y: Floats, setting: Setting) -> Action:
    model = PSVMClassifier(C=setting.cost, p=setting.p, tol=setting.step, max_iter=100_000)
    return lambda: Solution.of_estimator(model.fit(X, y))


OWN = (
    Peer(
        "newton",
        "ERMClassifier(1, solver='newton')",
        "exclusivity",
        FREE,
        partial(_erm, solver="newton"),
        ladder=_TOLERANCES,
        quick_ladder=(1e-2, 1e-4, 1e-6, 1e-8),
        ours=True,
        certify=partial(_duals, solver="newton"),
    ),
    Peer(
        "alm",
        "ERMClassifier(1, solver='alm')",
        "exclusivity",
        FREE,
        partial(_erm, solver="alm"),
        ladder=_TOLERANCES[:-1],
        ours=True,
        certify=partial(_duals, solver="alm"),
    ),
    Peer("psvm", "PSVMClassifier (SVM-ALM)", "exclusivity", FREE, _psvm, ladder=_TOLERANCES[:-1], ours=True),
)
