"""Figure 1: errors against lambda, objective per iteration, and training time against rows."""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from sklearn.exceptions import ConvergenceWarning

from exclusivity import ERMClassifier
from reproduction.data import DataSet, Floats, generator, random_split
from reproduction.psvm import PSVMClassifier
from reproduction.published import COST, FIGURE_MEMBERS, LAMBDA_RANGE
from reproduction.systems import certified_erm, erm_name, matched_svm, paper_erm
from reproduction.tables import error_percent, member_spread, timed_fit

# Panel 3: past the last stop by the paper's rule on ijcnn1.
MAX_ITER = 120


def lambda_grid(n_points: int) -> list[float]:
    """Return ``n_points`` costs, evenly spaced over the paper's range."""
    return [round(float(value), 4) for value in np.linspace(*LAMBDA_RANGE, n_points)]


def run_sweep(data: DataSet, seed: int, trial: int, costs: list[float]) -> list[dict[str, Any]]:
    """Train on half of the rows at every cost, for panels 1 and 2.

    Systems are "PSVM" at lambda, "ERM" at lambda by the paper's algorithm, "optimum", the certified optimum
    of the same objective, and "SVM", one SVM at the matched cost lambda/members. A record has ``train`` and
    ``test`` errors in % and the ``spread`` of the members.
    """
    split = random_split(data, len(data.y) // 2, generator(seed, f"sweep {data.name}", trial))
    systems = [("PSVM", 1), *((name, k) for k in FIGURE_MEMBERS for name in ("ERM", "optimum", "SVM"))]
    records = []
    for p in (2, 1):
        for system, members in systems:
            for cost in costs:
                model = _build(system, p, members, cost)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", ConvergenceWarning)  # a looser point among many
                    model.fit(split.X_train, split.y_train)
                records.append(
                    {
                        "trial": trial,
                        "p": p,
                        "system": system,
                        "members": members,
                        "lambda": cost,
                        "train": error_percent(model.predict(split.X_train), split.y_train),
                        "test": error_percent(model.predict(split.X_test), split.y_test),
                        "spread": member_spread(model),
                    }
                )
    return records


def _build(system: str, p: int, members: int, cost: float) -> Any:
    if system == "ERM":
        return paper_erm(members, p, cost)
    if system == "optimum":
        return certified_erm(members, p, cost)
    if system == "PSVM":
        return PSVMClassifier(cost, p=p)
    return matched_svm(p, cost / members)


def run_convergence(data: DataSet, p: int, members: int) -> list[dict[str, Any]]:
    """Run Algorithm 2 on all rows, whatever its stopping rule says, for panel 3.

    A record is one iteration: the ``objective``, and the relative duality ``gap`` of the last one.
    """
    model = ERMClassifier(
        members, C=COST, p=p, solver="paper", solver_options={"change": 0.0}, max_iter=MAX_ITER
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(data.X, data.y)
    return [
        {
            "p": p,
            "members": members,
            "iteration": step,
            "objective": float(value),
            "gap": float(model.dual_gap_[0]),
        }
        for step, value in enumerate(model.history_[0].objective, start=1)
    ]


def stopping_iteration(objective: Floats, change: float = 0.05) -> float:
    """Return the first iteration whose objective differs by less than ``change`` from the one before.

    This is the paper's stopping rule; infinity where it does not stop.

    Examples
    --------
    >>> stopping_iteration(np.array([4.0, 3.0, 2.99, 2.98]))
    3.0
    """
    small = np.flatnonzero(np.abs(np.diff(objective)) < change)
    return float(small[0]) + 2 if small.size else np.inf


def normalised(objective: Floats) -> Floats:
    """Scale so that the smallest value is 0 and the largest 1, as the paper draws it.

    Examples
    --------
    >>> normalised(np.array([4.0, 3.0, 2.0])).tolist()
    [1.0, 0.5, 0.0]
    """
    return np.asarray((objective - objective.min()) / (np.ptp(objective) or 1.0))


def run_scaling(data: DataSet, seed: int, trial: int, rows: int) -> list[dict[str, Any]]:
    """Time the figure's ERMs and both PSVMs on ``rows`` random rows, for panel 4."""
    order = generator(seed, f"scaling {data.name}", trial).permutation(len(data.y))[:rows]
    X, y = data.X[order], data.y[order]
    _warm_up()
    records = []
    for p in (1, 2):
        models = {erm_name(k, p): _build("ERM", p, k, COST) for k in FIGURE_MEMBERS}
        models[f"L{p}-PSVM"] = _build("PSVM", p, 1, COST)
        for name, model in models.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                seconds = timed_fit(model, X, y)[1]
            records.append(
                {
                    "rows": rows,
                    "trial": trial,
                    "system": name,
                    "seconds": seconds,
                    "iterations": int(model.n_iter_[0]),
                }
            )
    return records


@cache
def _warm_up() -> None:
    y = np.where(np.arange(20) % 2 == 0, 1.0, -1.0)
    X = y[:, None] + np.arange(20.0)[:, None] / 10
    for p in (1, 2):
        for system in ("ERM", "PSVM"):
            _build(system, p, 2, COST).fit(X, y)


def training_times(scaling: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return total CPU seconds and total iterations over the trials, each by rows (index) and system."""
    sums = scaling.pivot_table(index="rows", columns="system", aggfunc="sum", sort=True)
    return sums["seconds"], sums["iterations"]


def exponents(seconds: pd.DataFrame) -> pd.Series:
    """Fit the exponent a of seconds ~ rows^a for every system by least squares.

    Examples
    --------
    >>> float(exponents(pd.DataFrame({"svm": [3.0, 6.0, 12.0]}, index=[1, 2, 4])).round(6)["svm"])
    1.0
    """
    # CPU clocks tick: a run below their resolution reads zero.
    logs = np.log(np.maximum(seconds, 1e-6))
    return pd.Series(np.polyfit(np.log(seconds.index), logs, 1)[0], index=seconds.columns)


# Okabe and Ito's colours: distinguishable by everybody, and in grey.
_COLOURS = {1: "#555555", 5: "#E69F00", 10: "#0072B2", 30: "#009E73"}
_DASHES: dict[int, Any] = {1: (4, 2), 2: (None, None)}
_STYLE: Any = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e4e4e4",
    "legend.frameon": False,
    "legend.fontsize": 8,
}


def draw_figure1(
    sweep: pd.DataFrame | None, convergence: pd.DataFrame | None, scaling: pd.DataFrame | None, large: str
) -> Figure:
    """Draw the four pictures of Figure 1; a picture without data stays empty."""
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(11, 8.5), layout="constrained")
        axes = figure.subplots(2, 2)
        if sweep is not None:
            for p, panel in zip((2, 1), axes[0], strict=True):
                _draw_errors(panel, sweep, p)
        if convergence is not None:
            _draw_convergence(axes[1, 0], convergence, large)
        if scaling is not None:
            _draw_times(axes[1, 1], scaling, large)
    return figure


def draw_members_or_cost(sweep: pd.DataFrame) -> Figure:
    """Draw K members at lambda beside one SVM at lambda/K, which the paper does not compare with."""
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(11, 4.5), layout="constrained")
        for p, axes in zip((2, 1), figure.subplots(1, 2), strict=True):
            for k in FIGURE_MEMBERS:
                paper, best, one = (curve(sweep, p, name, k)["test"] for name in ("ERM", "optimum", "SVM"))
                colour = _COLOURS[k]
                axes.plot(one, color=colour, linewidth=5, alpha=0.3, label=f"SVM, lambda/{k}")
                axes.plot(best, color=colour, label=f"ERM{k}, optimum")
                axes.plot(paper, ":", color=colour, marker=".", label=f"ERM{k}, Algorithm 2")
            single = curve(sweep, p, "PSVM", 1)["test"]
            axes.plot(single, color=_COLOURS[1], dashes=(4, 2), label="SVM, lambda")
            axes.set(xlabel="lambda", ylabel="testing error in %", title=f"p = {p}: members or cost?")
            axes.legend(ncols=3)
    return figure


def curve(sweep: pd.DataFrame, p: int, system: str, members: int) -> pd.DataFrame:
    """Return the mean errors of one curve of panels 1 and 2, indexed by lambda."""
    chosen = (sweep["p"] == p) & (sweep["system"] == system) & (sweep["members"] == members)
    if not chosen.any():
        raise KeyError(f"no curve for p = {p}, {system}, {members} members")
    return sweep[chosen].groupby("lambda")[["train", "test"]].mean()


def _draw_errors(axes: Axes, sweep: pd.DataFrame, p: int) -> None:
    for members in (1, *FIGURE_MEMBERS):
        means = curve(sweep, p, "PSVM" if members == 1 else "ERM", members)
        name = f"L{p}-PSVM" if members == 1 else erm_name(members, p)
        axes.plot(means["test"], color=_COLOURS[members], label=name)
        axes.plot(means["train"], color=_COLOURS[members], dashes=(4, 2))
    axes.set(xlabel="lambda", ylabel="error in %", title=f"p = {p}: testing (solid), training (dashed)")
    axes.set_ylim(bottom=0)
    axes.legend(ncols=4)


def _draw_convergence(axes: Axes, convergence: pd.DataFrame, large: str) -> None:
    for (p, members), run in convergence.groupby(["p", "members"], sort=False):
        values, style = normalised(run["objective"].to_numpy()), {"dashes": _DASHES[p]}
        axes.plot(run["iteration"], values, color=_COLOURS[members], label=erm_name(members, p), **style)
    axes.set(
        xlabel="iteration", ylabel="objective, scaled to [0, 1]", title=f"Convergence of Algorithm 2, {large}"
    )
    axes.legend(ncols=2)


def _draw_times(axes: Axes, scaling: pd.DataFrame, large: str) -> None:
    totals = training_times(scaling)[0]
    for name in totals:
        p, members = int(name[1]), 1 if name.endswith("PSVM") else int(name.partition("ERM")[2])
        style: dict[str, Any] = {"dashes": _DASHES[p], "marker": "."}
        axes.plot(totals[name], color=_COLOURS[members], label=name, **style)
    runs = scaling["trial"].nunique()
    axes.set(xlabel="rows", ylabel=f"CPU seconds, {runs} runs", title=f"Training time, {large}")
    axes.set_ylim(bottom=0)
    axes.legend(ncols=2)
