"""Figure 1 from its raw tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from exclusivity.experiments.tasks import Result

Document = dict[str, Any]


def sweep(dataset: str, costs: Sequence[float], results: Sequence[Result]) -> Document:
    """Panels 1 and 2: means and standard deviations over the trials, and the trials themselves."""
    curves = []
    for number, first in enumerate(results[0]["curves"]):
        curve: Document = {name: first[name] for name in ("p", "system", "members")}
        curve["spread"] = max(result["curves"][number]["spread"] for result in results)
        for part in ("train", "test"):
            trials = np.array([result["curves"][number][part] for result in results])
            spread = trials.std(axis=0, ddof=1) if len(trials) > 1 else np.zeros(trials.shape[1])
            curve[part] = {
                "mean": trials.mean(axis=0).tolist(),
                "std": spread.tolist(),
                "trials": trials.tolist(),
            }
        curves.append(curve)
    return {"dataset": dataset, "costs": list(costs), "curves": curves}


def pick_curve(document: Document, p: int, system: str, members: int) -> Document:
    """One curve of a sweep."""
    for curve in document["curves"]:
        if (curve["p"], curve["system"], curve["members"]) == (p, system, members):
            return dict(curve)
    raise KeyError(f"no curve for p = {p}, {system}, {members} members")


def convergence(dataset: str, results: Mapping[tuple[int, int], Result]) -> Document:
    """Panel 3: by (p, members) the objective, also scaled to [0, 1]."""
    return {
        "dataset": dataset,
        "runs": [
            {"p": p, "members": members, **result, "normalised": normalised(result["objective"])}
            for (p, members), result in results.items()
        ],
    }


def normalised(objective: Sequence[float]) -> list[float]:
    """Scaled so that the smallest value is 0 and the largest 1, as the paper draws it.

    Examples
    --------
    >>> normalised([4.0, 3.0, 2.0])
    [1.0, 0.5, 0.0]
    """
    values = np.asarray(objective, dtype=float)
    span = values.max() - values.min()
    return [float(value) for value in (values - values.min()) / (span or 1.0)]


def scaling(dataset: str, results: Mapping[int, Sequence[Result]]) -> Document:
    """Panel 4: total CPU seconds by method and rows, with log-log slopes, in all and per iteration."""
    sizes = list(results)
    curves = []
    for method in results[sizes[0]][0]["seconds"]:
        trials = [[float(run["seconds"][method]) for run in results[size]] for size in sizes]
        totals = [sum(runs) for runs in trials]
        iterations = [sum(run["iterations"][method] for run in results[size]) for size in sizes]
        each = [total / count for total, count in zip(totals, iterations, strict=True)]
        curves.append(
            {
                "method": method,
                "seconds": totals,
                "iterations": [count / len(trials[0]) for count in iterations],
                "slope": log_slope(sizes, totals),
                "iteration_slope": log_slope(sizes, each),
                "trials": trials,
            }
        )
    return {"dataset": dataset, "rows": sizes, "runs": len(results[sizes[0]]), "curves": curves}


def log_slope(sizes: Sequence[float], seconds: Sequence[float]) -> float | None:
    """The exponent a of seconds ~ sizes^a by least squares; None for a single size.

    Examples
    --------
    >>> round(log_slope([1, 2, 4], [3.0, 6.0, 12.0]), 6)
    1.0
    """
    if len(sizes) < 2:
        return None
    # CPU clocks tick: a run below their resolution reads zero.
    return float(np.polyfit(np.log(sizes), np.log(np.maximum(seconds, 1e-6)), 1)[0])
