"""Curves of true sub-optimality against time, one picture per case."""

from __future__ import annotations

from pathlib import Path
from typing import Any

# Below this, differences between objectives are rounding.
_FLOOR = 1e-9


def file_name(case: dict[str, Any]) -> str:
    """The picture of a case.

    Examples
    --------
    >>> file_name({"workload": "ijcnn1", "p": 2, "cost": 0.2})
    'ijcnn1-p2-C0.2.svg'
    """
    return f"{case['workload']}-p{case['p']}-C{case['cost']:.3g}.svg"


def draw_case(case: dict[str, Any], peers: dict[str, Any], folder: Path) -> Path:
    """Write the picture of one case as SVG and return its path. Needs matplotlib."""
    from matplotlib.backends.backend_svg import FigureCanvasSVG  # noqa: PLC0415 -- optional
    from matplotlib.figure import Figure  # noqa: PLC0415

    figure = Figure(figsize=(8, 5), layout="constrained")
    FigureCanvasSVG(figure)
    axes = figure.add_subplot()
    for number, (name, points) in enumerate(case["curves"].items()):
        known = sorted(
            (point["seconds"], max(point["excess"], _FLOOR))
            for point in points
            if point["excess"] is not None
        )
        if known:
            ours = peers[name]["ours"]
            axes.plot(
                *zip(*known, strict=True),
                marker="os^vDP*"[number % 7],
                linewidth=2.5 if ours else 1.2,
                linestyle="-" if ours else "--",
                label=name,
            )
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="seconds of one cold fit",
        ylabel="true relative excess of the objective",
        title=f"{case['title']}: p = {case['p']}, C = {case['cost']:.3g}",
    )
    axes.grid(True, which="major", alpha=0.3)
    if axes.lines:
        axes.legend(fontsize="small", loc="center left", bbox_to_anchor=(1.0, 0.5))
    path = folder / file_name(case)
    figure.savefig(path, metadata={"Date": None})
    return path
