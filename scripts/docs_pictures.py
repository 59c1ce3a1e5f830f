"""The pictures of the documentation, from the snippets and the tables of the pages themselves.

    python scripts/docs_pictures.py [quickstart choosing-c robustness tables detection partitions ...]

Snippets of a page are run as a reader would run them, and what they leave is drawn; tables are read as they
stand on the page. So run this again after either has changed. Pictures go to ``docs/images``.
"""

from __future__ import annotations

import io
import re
import runpy
import sys
from collections.abc import Callable, Iterator
from contextlib import chdir, redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from exclusivity.inspection import AdditiveDisplay, CertifiedAccuracyDisplay, PathDisplay
from exclusivity.robustness import certified_accuracy_curve, certify, corruption_curve

plt.switch_backend("Agg")
DOCS = Path(__file__).parent.parent / "docs"
BLUE, ORANGE, GREY = "#0072b2", "#d55e00", "#777777"
OUTCOMES = {"holds": "#1a7f37", "holds in part": "#b7791f", "fails": "#b3261e"}


def run_page(name: str) -> dict[str, Any]:
    """Run the snippets of a page, and return their variables."""
    text = (DOCS / f"{name}.md").read_text(encoding="utf-8")
    namespace: dict[str, Any] = {}
    with redirect_stdout(io.StringIO()), TemporaryDirectory() as folder, chdir(folder):
        for snippet in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
            exec(compile(snippet, name, "exec"), namespace)  # noqa: S102 -- our own pages
    plt.close("all")
    return namespace


def table_rows(name: str, header: str) -> Iterator[list[str]]:
    """Cells of the table below a header that starts as given, without emphasis."""
    text = (DOCS / f"{name}.md").read_text(encoding="utf-8")
    for line in text[text.index(header) :].splitlines()[2:]:
        if not line.startswith("|"):
            return
        yield [cell.strip().replace("*", "") for cell in line.strip("|").split("|")]


def quickstart(figure: Any) -> None:
    """Certified accuracy, and how many broken columns each prediction survives."""
    left, right = figure.subplots(1, 2)
    page = run_page("quickstart")
    CertifiedAccuracyDisplay.from_estimator(page["robust"], page["X_test"], page["y_test"], ax=left)
    right.bar(*np.unique(page["radii"], return_counts=True), color=BLUE)
    right.set(xlabel="broken columns that cannot change the prediction", ylabel="test rows")


def choosing_c(figure: Any) -> None:
    """Scores and coefficients against C."""
    page = run_page("choosing-c")
    left, right = figure.subplots(1, 2)
    PathDisplay.from_estimator(page["model"], ax=left)
    PathDisplay.from_path(page["path"], best_C=page["clf"].C_, ax=right)


def robustness(figure: Any) -> None:
    """Accuracy against broken instruments, and the radius of every prediction."""
    page = run_page("robustness")
    left, right = figure.subplots(1, 2)
    data = page["X_test"], page["y_test"]
    ks = list(range(5))
    settings: dict[str, Any] = {
        "ks": ks,
        "kinds": ["outliers"],
        "reference": page["X"],
        "feature_groups": page["instruments"],
        "random_state": 0,
    }
    for name, color in (("svm", GREY), ("vote", ORANGE)):
        curve = corruption_curve(page[name], *data, **settings)
        label = "one SVM" if name == "svm" else "vote of 9"
        left.plot(ks, 100 * curve.mean[0], "o-", color=color, label=label)
    radius = certify(page["vote"], data[0])
    proven = certified_accuracy_curve(radius, data[1], page["vote"].predict(data[0]), max_radius=ks[-1])
    left.plot(ks, 100 * np.asarray(proven), "s--", color=BLUE, label="vote of 9, proven for any values")
    left.set(xlabel="instruments broken in every row", ylabel="accuracy, %", xticks=ks, ylim=(0, 102))
    left.legend(frameon=False, loc="lower left")
    right.bar(*np.unique(radius, return_counts=True), color=BLUE)
    right.set(xlabel="certified radius of the prediction", ylabel="test rows")


def tables(figure: Any) -> None:
    """Draw what each column adds to the score."""
    page = run_page("tables")
    AdditiveDisplay.from_estimator(page["model"], page["train"].data, max_panels=8, ax=figure.subplots())


def detection(figure: Any) -> None:
    """Spam that is detected, against the number of words that the spammer adds."""
    example = DOCS.parent / "examples" / "good_words.py"
    with redirect_stdout(io.StringIO()):
        found = runpy.run_path(str(example))
    plt.close("all")
    axes = figure.subplots()
    for (name, detected), color in zip(found["detection"].items(), (GREY, ORANGE, BLUE), strict=True):
        axes.plot(found["words"], [100 * np.mean(rows) for rows in detected], "o-", color=color, label=name)
    axes.set(xlabel="words added to each spam", ylabel="spam detected, %", ylim=(0, 102))
    axes.set_title("one good mail in a hundred is lost")
    axes.legend(frameon=False)


def partitions(figure: Any) -> None:
    """Draw what learned groups gain over random ones, set by set."""
    axes = figure.subplots()
    rows = list(table_rows("research/partitions", "| set | clean accuracy | r = 1"))
    names = [row[0] for row in rows if row[0] not in {"mean", "lowest"}]
    for number, (r, color) in enumerate(((1, GREY), (2, BLUE), (3, ORANGE))):
        gains = [float(row[1 + r]) for row in rows[: len(names)]]
        axes.bar(np.arange(len(names)) + 0.27 * (number - 1), gains, 0.25, color=color, label=f"r = {r}")
    axes.axhline(0, color="black", linewidth=0.8)
    axes.set_xticks(range(len(names)), names, rotation=20)
    axes.set(ylabel="points above random groups", title="Balanced certified accuracy at r broken features")
    axes.legend(frameon=False)


def reproduction(figure: Any) -> None:
    """Verdicts, and the average ranks of Table 1 here and in the paper."""
    left, right = figure.subplots(1, 2, width_ratios=[2, 3])
    found = [row[2] for row in table_rows("paper", "| claim | where")]
    counts = [found.count(outcome) for outcome in OUTCOMES]
    left.barh(list(OUTCOMES), counts, color=list(OUTCOMES.values()))
    left.bar_label(left.containers[0], padding=3)
    left.invert_yaxis()
    left.set(title=f"{len(found)} claims", xticks=[], xlim=(0, 1.15 * max(counts)))
    ranks = {
        row[0]: tuple(float(rank) for rank in row[-1].split("<br>"))
        for row in table_rows("paper", "| | german | diabetes")
    }
    names = sorted(ranks, key=ranks.__getitem__)
    for place, name in enumerate(names):
        color = ORANGE if "ERM" in name else GREY
        here, published = ranks[name]
        right.plot([here, published], [place, place], color=color, linewidth=1)
        right.plot(here, place, "o", color=color)
        right.plot(published, place, "o", color=color, markerfacecolor="white")
    right.set_yticks(range(len(names)), names)
    right.invert_yaxis()
    right.set(title="Table 1, here (filled) and in the paper (rings)", xlabel="average rank, 1 is best")


PICTURES: dict[str, tuple[Callable[[Any], None], tuple[float, float]]] = {
    "quickstart": (quickstart, (11, 3.4)),
    "choosing-c": (choosing_c, (11, 3.6)),
    "robustness": (robustness, (10, 3.4)),
    "detection": (detection, (7, 3.2)),
    "tables": (tables, (10, 4.4)),
    "partitions": (partitions, (10, 3.2)),
    "reproduction": (reproduction, (10, 3.4)),
}


def main(names: list[str]) -> None:
    """Draw the pictures of the pages that are named, or all."""
    for name in names or PICTURES:
        draw, size = PICTURES[name]
        figure = plt.figure(figsize=size, layout="constrained")
        draw(figure)
        for axes in figure.axes:
            axes.spines[["top", "right"]].set_visible(False)
        figure.savefig(DOCS / "images" / f"{name}.png", dpi=100, metadata={"Software": None})


if __name__ == "__main__":
    main(sys.argv[1:])
