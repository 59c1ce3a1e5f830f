"""The plots of the report as SVG text; none without matplotlib, which is optional."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from exclusivity.experiments.curves import pick_curve
from exclusivity.experiments.published import AVERAGE_RANKS, ERM_METHODS, FIGURE_MEMBERS, PAPER_METHODS
from exclusivity.pages import drawn

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Documents = Mapping[str, Mapping[str, Any]]

# Okabe and Ito: told apart by everybody, and in grey.
_COLOURS = {1: "#555555", 5: "#E69F00", 10: "#0072B2", 30: "#009E73"}
_DASHES = {1: (4, 2), 2: ()}
_SIZE = (5.2, 4.3)
_RC: dict[str, Any] = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e4e4e4",
    "legend.frameon": False,
    "legend.fontsize": 8.5,
}


def draw_all(documents: Documents) -> dict[str, str]:
    """Plot name -> SVG, for everything that the documents have data for; empty without matplotlib."""
    jobs: dict[str, Callable[[Axes], None]] = {}
    figure = documents.get("figure1", {})
    sweep, convergence, scaling = (figure.get(name) for name in ("sweep", "convergence", "scaling"))
    if sweep is not None:
        for p in (2, 1):
            jobs[f"errors-p{p}"] = partial(_errors, sweep, p)
            jobs[f"cost-p{p}"] = partial(_cost, sweep, p)
    if convergence is not None:
        jobs["convergence"] = partial(_convergence, convergence)
    if scaling is not None:
        jobs["scaling"] = partial(_scaling, scaling)
    table = documents.get("table1")
    if table is not None and table["cells"]:
        jobs["ranks"] = partial(_ranks, table)
        jobs["means"] = partial(_means, table)
    plots = {name: _svg(name, draw) for name, draw in jobs.items()}
    return {name: svg for name, svg in plots.items() if svg is not None}


def _svg(name: str, draw: Callable[[Axes], None]) -> str | None:
    def draw_with_legend(axes: Axes) -> None:
        draw(axes)
        # Below the axes: curves fill the panel, wherever they happen to run.
        axes.figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=3)

    return drawn(name, _SIZE, draw_with_legend, settings=_RC)


def _errors(sweep: Mapping[str, Any], p: int, axes: Axes) -> None:
    """Panels 1 and 2: testing errors solid, training errors dashed."""
    for members in (1, *FIGURE_MEMBERS):
        curve = pick_curve(dict(sweep), p, "PSVM" if members == 1 else "ERM", members)
        name = f"L{p}-PSVM" if members == 1 else f"L{p}-ERM{members}"
        axes.plot(sweep["costs"], curve["test"]["mean"], color=_COLOURS[members], label=name)
        axes.plot(sweep["costs"], curve["train"]["mean"], color=_COLOURS[members], dashes=(4, 2))
    axes.plot([], [], color="black", label="testing")
    axes.plot([], [], color="black", dashes=(4, 2), label="training")
    axes.set(xlabel="lambda", ylabel="error in %", title=f"p = {p}, half of {sweep['dataset']}")
    axes.set_ylim(bottom=0)


def _cost(sweep: Mapping[str, Any], p: int, axes: Axes) -> None:
    """K members at lambda beside one SVM at lambda/K."""
    for members in FIGURE_MEMBERS:
        paper, best, one = (
            pick_curve(dict(sweep), p, system, members)["test"]["mean"]
            for system in ("ERM", "optimum", "SVM")
        )
        colour = _COLOURS[members]
        axes.plot(sweep["costs"], one, color=colour, linewidth=5, alpha=0.3, label=f"SVM, lambda/{members}")
        axes.plot(sweep["costs"], best, color=colour, label=f"ERM{members}, optimum")
        axes.plot(sweep["costs"], paper, ":", color=colour, marker=".", label=f"ERM{members}, Algorithm 2")
    single = pick_curve(dict(sweep), p, "PSVM", 1)["test"]["mean"]
    axes.plot(sweep["costs"], single, color=_COLOURS[1], dashes=(4, 2), label="SVM, lambda")
    axes.set(xlabel="lambda", ylabel="testing error in %", title=f"p = {p}: members or cost?")


def _convergence(document: Mapping[str, Any], axes: Axes) -> None:
    """Panel 3."""
    for run in document["runs"]:
        steps = range(1, len(run["normalised"]) + 1)
        axes.plot(
            steps,
            run["normalised"],
            color=_COLOURS[run["members"]],
            dashes=_DASHES[run["p"]],
            label=f"L{run['p']}-ERM{run['members']}",
        )
    axes.set(
        xlabel="iteration",
        ylabel="objective, scaled to [0, 1]",
        title=f"Algorithm 2 on {document['dataset']}",
    )


def _scaling(document: Mapping[str, Any], axes: Axes) -> None:
    """Panel 4."""
    for curve in document["curves"]:
        p, system = curve["method"][1:].split("-")
        members = 1 if system == "PSVM" else int(system.removeprefix("ERM"))
        axes.plot(
            document["rows"],
            curve["seconds"],
            color=_COLOURS[members],
            dashes=_DASHES[int(p)],
            marker=".",
            label=curve["method"],
        )
    axes.set(
        xlabel="rows",
        ylabel=f"CPU seconds, {document['runs']} runs",
        title=f"Training time on {document['dataset']}",
    )
    axes.set_ylim(bottom=0)


def _ranks(table: Mapping[str, Any], axes: Axes) -> None:
    """Average ranks with the critical difference; bars join what cannot be told apart."""
    average = {row["method"]: row["rank"] for row in table["average_ranks"] if row["method"] in PAPER_METHODS}
    ordered = sorted(average, key=lambda name: average[name])
    height = {name: -number for number, name in enumerate(ordered)}
    for name in ordered:
        colour = _COLOURS[10] if name in ERM_METHODS else _COLOURS[1]
        axes.plot(average[name], height[name], "o", color=colour)
        axes.plot(AVERAGE_RANKS[name], height[name], "o", color=colour, markerfacecolor="none")
    for number, group in enumerate(table["groups"]):
        at = 10.6 + 0.35 * number
        axes.plot([at, at], [height[group[0]] + 0.25, height[group[-1]] - 0.25], color="#D55E00", linewidth=3)
    distance = table["critical_difference"]
    axes.plot([1, 1 + distance], [0.9, 0.9], color="#D55E00", linewidth=3)
    axes.annotate(
        f"critical difference {distance:.1f}", (1 + distance + 0.15, 0.9), va="center", fontsize=8.5
    )
    axes.plot([], [], "o", color="#222222", label="here")
    axes.plot([], [], "o", color="#222222", markerfacecolor="none", label="the paper")
    axes.set_yticks(list(height.values()), list(height))
    axes.set(xlabel="average rank (1 is best)", xlim=(0.7, 11.4), ylim=(-len(ordered) + 0.4, 1.5))


def _means(table: Mapping[str, Any], axes: Axes) -> None:
    """Our ERM means against the paper's."""
    cells = [cell for cell in table["cells"] if cell["method"] in ERM_METHODS]
    axes.axline((15, 15), slope=1, color="#999999", linewidth=1)
    for members in (10, 30):
        chosen = [cell for cell in cells if cell["method"].endswith(str(members))]
        axes.errorbar(
            [cell["paper_mean"] for cell in chosen],
            [cell["mean"] for cell in chosen],
            xerr=[cell["paper_std"] for cell in chosen],
            yerr=[cell["std"] for cell in chosen],
            fmt="o",
            markersize=4,
            elinewidth=0.8,
            color=_COLOURS[members],
            label=f"ERM, {members} members",
        )
    axes.set(
        xlabel="testing error in the paper, %",
        ylabel="testing error here, %",
        title="The ERM rows of Table 1",
    )
