"""The figures of ``paper.md``: ``make paper-figures``, or ``python paper/figures.py``.

Both are drawn by the functions that draw the README's and the documentation's pictures, so that they show the
same measurements: models are trained on the spot, gains over random groups come from
``docs/research/partitions.md``.
"""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt

PAPER = Path(__file__).parent


def script(name: str) -> dict[str, Any]:
    """Return the functions of a script; they are no package."""
    return runpy.run_path(str(PAPER.parent / "scripts" / f"{name}.py"))


def equivalence(file: Path) -> None:
    """Thirty members are one SVM, and cost what one costs."""
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
    panels = script("readme_picture")
    panels["equivalence"](axes[0])
    panels["price_of_members"](axes[1])
    for panel in axes:
        panel.spines[["top", "right"]].set_visible(False)
    figure.savefig(file, dpi=150)


def votes(file: Path) -> None:
    """Votes under damage, and what learned groups gain over random ones."""
    figure = plt.figure(figsize=(11, 3.4), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=[2, 3])
    panel = left.subplots()
    script("readme_picture")["broken_features"](panel)
    script("docs_pictures")["partitions"](right)
    right.axes[0].tick_params(axis="x", labelrotation=30)
    for axes in (panel, *right.axes):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(file, dpi=150)


FIGURES = {"equivalence.png": equivalence, "votes.png": votes}


def main() -> None:
    """Draw them beside the paper."""
    for name, draw in FIGURES.items():
        draw(PAPER / name)
        plt.close("all")


if __name__ == "__main__":
    main()
