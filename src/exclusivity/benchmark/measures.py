"""What a run is worth: the true objective, the recomputed bound, curves, and times to an accuracy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median
from typing import Any, Final, Literal

import numpy as np

from exclusivity.benchmark.peers import Solution, binary_labels
from exclusivity.problem import ERMProblem, best_intercept, dual_bound, dual_from_scores
from exclusivity.problem.arrays import Floats

LEVELS = (1e-2, 1e-4, 1e-6)
# A gap recomputed in another order of summation may differ in its last digits.
_ROUNDING = 1e-12
_TICK = 1e-9
CLOCKS: Final = {"wall": "seconds", "cpu": "cpu_seconds"}


def level_name(level: float) -> str:
    """1e-4 and not 0.0001.

    Examples
    --------
    >>> [level_name(level) for level in LEVELS]
    ['1e-2', '1e-4', '1e-6']
    """
    return f"1e{round(math.log10(level))}"


class Judge:
    """One workload at one cost and power: evaluates everybody's solutions in float64.

    Examples
    --------
    >>> judge = Judge(np.array([[1.0], [-1.0]]), np.array([1.0, -1.0]), cost=1.0, p=1)
    >>> judge.value(Solution(np.array([[0.5]]), np.array([0.25])))["objective"]
    1.125
    """

    def __init__(self, X: object, y: Floats, *, cost: float, p: int) -> None:
        self._problems = [ERMProblem.build(X, labels, cost=cost, p=p) for labels in binary_labels(y)]

    def value(self, solution: Solution) -> dict[str, float]:
        """Sums over the binary problems.

        ``own`` is the objective at the solver's own intercepts; ``objective`` takes for each problem the
        better of that and of the best intercept for its weights, which favours solvers that penalise it.
        """
        own, best = 0.0, 0.0
        with np.errstate(all="ignore"):  # a solver that diverged gets an infinite objective
            for problem, w, b in zip(self._problems, solution.weights.T, solution.intercepts, strict=True):
                scores = problem.design.times(w[:, None])
                here = problem.value_at(w[:, None], scores + b)
                own += here
                best += min(here, self._with_best_intercept(problem, w[:, None], scores))
        return {"objective": _number(best), "own": _number(own)}

    @staticmethod
    def _with_best_intercept(problem: ERMProblem, weights: Floats, scores: Floats) -> float:
        if not np.all(np.isfinite(scores)):
            return np.inf
        return problem.value_at(weights, scores + best_intercept(problem, scores[:, 0]))

    def bound(self, solution: Solution, duals: Floats) -> float:
        """A lower bound on the optimum: for every problem the better of two dual vectors.

        One came from the solver; the other follows from the weights where the loss is smooth. Both are
        repaired and evaluated from scratch.
        """
        total = 0.0
        for problem, w, alpha in zip(self._problems, solution.weights.T, duals, strict=True):
            bounds = [dual_bound(problem, alpha)]
            if problem.loss.is_smooth:
                scores = problem.design.times(w[:, None])[:, 0]
                bounds.append(dual_bound(problem, dual_from_scores(problem, scores)))
            total += max(bounds)
        return total


def _number(value: float) -> float:
    return float(value) if np.isfinite(value) else np.inf


def reference(runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The best objective of all solvers, who found it, and how far from the optimum it can be at most."""
    known = [run for run in runs if run["status"] == "done" and run["objective"] is not None]
    if not known:
        return {"objective": None, "peer": None, "error": None}
    best = min(known, key=lambda run: run["objective"])
    bounds = [run["bound"] for run in known if run["bound"] is not None]
    error = max(1 - max(bounds) / best["objective"], 0.0) if bounds and best["objective"] > 0 else None
    return {"objective": best["objective"], "peer": best["peer"], "error": error}


def curve(
    runs: Sequence[dict[str, Any]], best: float, clock: Literal["wall", "cpu"] = "wall"
) -> list[dict[str, Any]]:
    """The points of one peer, coarse to fine: medians of its repeats, excess relative to ``best``."""
    points = []
    for step in dict.fromkeys(run["step"] for run in runs):
        done = [run for run in runs if run["step"] == step and run["status"] == "done"]
        if done:
            points.append(_point(step, done, best, CLOCKS[clock]))
    return points


def _point(step: float, done: Sequence[dict[str, Any]], best: float, clock: str) -> dict[str, Any]:
    objectives = [run["objective"] for run in done if run["objective"] is not None]
    gaps = [1 - run["bound"] / run["own"] for run in done if None not in (run["bound"], run["own"])]
    seconds = median(run[clock] for run in done)
    return {
        "step": step,
        "seconds": seconds,
        # Every repeat must have come this close: the worst counts.
        "excess": max(objectives) / best - 1 if len(objectives) == len(done) else None,
        "gap": max(*gaps, 0.0) if gaps else None,
        "extra_bytes": max(run["extra_bytes"] for run in done),
        "passes": seconds / max(median(run[f"product_{clock}"] for run in done), _TICK),
        "repeats": len(done),
    }


def reached(points: Sequence[dict[str, Any]], level: float, *, by: str = "excess") -> dict[str, Any] | None:
    """The fastest point whose excess (or certified ``gap``) is at most ``level``; None where there is none.

    Examples
    --------
    >>> points = [{"seconds": 1.0, "excess": 1e-3}, {"seconds": 4.0, "excess": 1e-5}]
    >>> reached(points, 1e-4)["seconds"]
    4.0
    """
    near = [point for point in points if point[by] is not None and point[by] <= level + _ROUNDING]
    return min(near, key=lambda point: point["seconds"]) if near else None


def table_rows(case: dict[str, Any], ours: set[str]) -> list[dict[str, Any]]:
    """One line per solver: seconds to every level, and the ratio to the fastest peer's."""
    rows = []
    fastest = {level: fastest_peer(case, level, ours) for level in LEVELS}
    for name, points in case["curves"].items():
        times: dict[str, Any] = {}
        for level in LEVELS:
            point, peer = reached(points, level), fastest[level]
            ratio = point["seconds"] / peer[1] if point and peer else None
            times[level_name(level)] = {"seconds": point["seconds"] if point else None, "ratio": ratio}
        known = [point for point in points if point["excess"] is not None]
        rows.append(
            {
                "peer": name,
                "times": times,
                "best_excess": min((point["excess"] for point in known), default=None),
                "extra_bytes": max((point["extra_bytes"] for point in points), default=None),
                "passes": {
                    level_name(level): point["passes"]
                    for level in LEVELS
                    if (point := reached(points, level))
                },
            }
        )
    return rows


def fastest_peer(case: dict[str, Any], level: float, ours: set[str]) -> tuple[str, float] | None:
    """Name and seconds of the fastest solver that is not ours to a true excess of ``level``."""
    times = {
        name: point["seconds"]
        for name, points in case["curves"].items()
        if name not in ours and (point := reached(points, level)) is not None
    }
    return min(times.items(), key=lambda item: item[1]) if times else None
