"""The experiments of Figure 1: errors against lambda, objective per iteration, training time against rows."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from exclusivity import ERMClassifier
from exclusivity.baselines import PSVMClassifier
from exclusivity.experiments.methods import certified_erm, matched_svm
from exclusivity.experiments.published import COST, FIGURE_MEMBERS, LAMBDA_RANGE
from exclusivity.experiments.splits import Split, generator, random_split
from exclusivity.experiments.tasks import Result, Sets, pick
from exclusivity.experiments.trials import error_percent, has_members, member_spread, timed_fit
from exclusivity.problem.arrays import Floats


def lambda_grid(n_points: int) -> list[float]:
    """``n_points`` costs over the paper's range, evenly on the axis of its plot (from 0.05 to 4)."""
    low, high = LAMBDA_RANGE
    return [round(float(value), 4) for value in np.linspace(low, high, n_points)]


def run_sweep(
    sets: Sets, *, dataset: str, fingerprint: str, seed: int, trial: int, costs: Sequence[float]
) -> Result:
    """Panels 1 and 2: one half of the rows for training, the other for testing, every cost in turn.

    Returns
    -------
    result : dict
        ``curves``: a list of ``{"p", "system", "members", "train": [...], "test": [...], "spread"}``, errors
        in % at every cost. Systems: "ERM" at lambda by the paper's algorithm, "optimum", the certified
        optimum of the same objective, "PSVM" at lambda, and "SVM", one SVM at the matched cost
        lambda/members. ``spread``: the farthest that any member was from the mean.
    """
    data = pick(sets, dataset, fingerprint)
    split = random_split(data.X, data.y, len(data.y) // 2, generator(seed, f"sweep {dataset}", trial))
    curves = []
    for p in (2, 1):
        curves.append(_curve(split, p, "PSVM", 1, costs))
        for members in FIGURE_MEMBERS:
            curves.append(_curve(split, p, "ERM", members, costs))
            curves.append(_curve(split, p, "optimum", members, costs))
            curves.append(_curve(split, p, "SVM", members, costs))
    return {"curves": curves}


def _curve(split: Split, p: int, system: str, members: int, costs: Sequence[float]) -> dict[str, Any]:
    train, test, spread = [], [], 0.0
    for cost in costs:
        model = _system(system, p, members, cost)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # a looser point of one curve among many
            model.fit(split.X_train, split.y_train)
        train.append(error_percent(model.predict(split.X_train), split.y_train))
        test.append(error_percent(model.predict(split.X_test), split.y_test))
        spread = max(spread, member_spread(model) if has_members(model) else 0.0)
    return {"p": p, "system": system, "members": members, "train": train, "test": test, "spread": spread}


def _system(system: str, p: int, members: int, cost: float) -> Any:
    if system == "ERM":
        return ERMClassifier(members, C=cost, p=p, solver="paper")
    if system == "optimum":
        return certified_erm(members, p, cost)
    if system == "PSVM":
        return PSVMClassifier(cost, p=p)
    return matched_svm(p, cost / members)


def run_convergence(
    sets: Sets, *, dataset: str, fingerprint: str, p: int, members: int, max_iter: int
) -> Result:
    """Panel 3: the objective after every iteration of Algorithm 2 on all rows.

    Returns
    -------
    result : dict
        ``objective``: up to ``max_iter`` iterations, whatever the stopping rule says. ``rule``: the iteration
        at which the paper's rule (a change below 0.05) stops; None if it has not by then. ``gap``: relative
        duality gap of the last iterate.
    """
    data = pick(sets, dataset, fingerprint)
    model = ERMClassifier(
        members, C=COST, p=p, solver="paper", solver_options={"change": 0.0}, max_iter=max_iter
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(data.X, data.y)
    objective = model.history_[0].objective
    return {
        "objective": [float(value) for value in objective],
        "rule": stopping_iteration(objective),
        "gap": float(model.dual_gap_[0]),
    }


def stopping_iteration(objective: Floats, change: float = 0.05) -> int | None:
    """The first iteration (from 1) whose objective differs by less than ``change`` from the one before.

    Examples
    --------
    >>> stopping_iteration([4.0, 3.0, 2.99, 2.98])
    3
    """
    small = np.flatnonzero(np.abs(np.diff(objective)) < change)
    return int(small[0]) + 2 if small.size else None


def run_scaling(sets: Sets, *, dataset: str, fingerprint: str, seed: int, trial: int, rows: int) -> Result:
    """Panel 4: CPU seconds and iterations on ``rows`` random rows, for the figure's ERMs and both PSVMs."""
    data = pick(sets, dataset, fingerprint)
    order = generator(seed, f"scaling {dataset}", trial).permutation(len(data.y))[:rows]
    split = Split(data.X[order], data.y[order], data.X[:0], data.y[:0], 0)
    _warm_up()
    seconds, iterations = {}, {}
    for p in (1, 2):
        models = {f"L{p}-ERM{k}": _system("ERM", p, k, COST) for k in FIGURE_MEMBERS}
        models[f"L{p}-PSVM"] = _system("PSVM", p, 1, COST)
        for name, model in models.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                seconds[name] = timed_fit(model, split)[1]
            iterations[name] = int(model.n_iter_[0])
    return {"seconds": seconds, "iterations": iterations}


@cache
def _warm_up() -> None:
    y = np.where(np.arange(20) % 2 == 0, 1.0, -1.0)
    X = y[:, None] + np.arange(20.0)[:, None] / 10
    for p in (1, 2):
        for system in ("ERM", "PSVM"):
            _system(system, p, 2, COST).fit(X, y)
