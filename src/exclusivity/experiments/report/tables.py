"""Tables 1 and 2 as sections of the page: our number above, the paper's below."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from exclusivity.experiments.methods import METHODS
from exclusivity.experiments.published import ERM_METHODS
from exclusivity.pages import can_plot, duration, figure, gallery, paragraph, section, table, text, two_lines

_GROUPS = {
    "paper": "Table 1, the paper's ten methods",
    "single": "The three single machines (the paper's numbers from a comment in its source)",
    "ours": "Our own rows: the certified optimum of the same objective, and one SVM of the matched cost",
}


def panels(plots: Mapping[str, str], captions: Mapping[str, str]) -> str:
    """The plots that there are, side by side; notes in their place without matplotlib."""
    there = [name for name in captions if name in plots or not can_plot()]
    return gallery(figure(plots.get(name), captions[name]) for name in there)


def table1_section(document: Mapping[str, Any], plots: Mapping[str, str]) -> str:
    """Errors, ranks, the critical difference, ijcnn1."""
    if not document["cells"]:
        return section("table1", "Table 1", paragraph("None of its data sets was there."))
    pictures = panels(
        plots,
        {
            "ranks": rank_caption(document),
            "means": "Mean and standard deviation of the ERM rows, here and in the paper.",
        },
    )
    return section(
        "table1",
        "Table 1: testing errors",
        paragraph(
            "Mean and standard deviation of the testing error in %, over random splits with 150 training "
            "rows; in brackets the rank among the paper's ten methods (for other rows: the rank they would "
            "take). Below, in grey, the paper's."
        ),
        *(_error_table(document, group, caption) for group, caption in _GROUPS.items()),
        pictures,
        _ijcnn1(document),
        _complaints(document),
    )


def _error_table(document: Mapping[str, Any], group: str, caption: str) -> str:
    cells = {(cell["dataset"], cell["method"]): cell for cell in document["cells"]}
    datasets = list(dict.fromkeys(dataset for dataset, _ in cells))
    average = {row["method"]: row for row in document["average_ranks"]}
    rows = []
    for name, method in METHODS.items():
        if method.group == group and name in average:
            published, rank = average[name]["paper_rank"], f"{average[name]['rank']:.1f}"
            rank = text(rank) if published is None else two_lines(rank, f"{published:.1f}")
            rows.append([_name(name), *(_error_cell(cells[dataset, name]) for dataset in datasets), rank])
    return table(["method", *datasets, "avg. rank"], rows, caption)


def _name(name: str) -> str:
    return f'<span title="{text(METHODS[name].text)}">{text(name)}</span>'


def _error_cell(cell: Mapping[str, Any]) -> str:
    ours = f"{cell['mean']:.2f} ± {cell['std']:.2f} ({cell['rank']:g})"
    if cell["paper_mean"] is None:
        return text(ours)
    rank = "" if cell["paper_rank"] is None else f" ({cell['paper_rank']})"
    return two_lines(ours, f"{cell['paper_mean']:.2f} ± {cell['paper_std']:.2f}{rank}")


def rank_caption(document: Mapping[str, Any]) -> str:
    """What the plot of average ranks shows."""
    test, distance = document["friedman"], document["critical_difference"]
    caption = "Average ranks, here (filled) and in the paper (rings); ERM in blue. "
    if test is not None:
        caption += f"Friedman's test: p = {test['p_value']:.2g}. "
    return caption + (
        f"Nemenyi's critical difference at 5 % is {distance:.1f}: methods joined by an orange bar cannot be "
        "told apart."
    )


def _ijcnn1(document: Mapping[str, Any]) -> str:
    if not document["ijcnn1"]:
        return "<h3>ijcnn1</h3>" + paragraph("Not run: the set was not there.")
    rows = [
        [_name(cell["method"]), text(f"{100 - cell['mean']:.2f} ± {cell['std']:.2f}")]
        for cell in document["ijcnn1"]
    ]
    return "<h3>ijcnn1</h3>" + table(
        ["method", "accuracy in %"], rows, "150 training rows, all others for testing; not part of the ranks."
    )


def _complaints(document: Mapping[str, Any]) -> str:
    warnings = document["diagnostics"]["warnings"]
    if not warnings:
        return ""
    items = "".join(f"<li>{text(message)} ({count} times)</li>" for message, count in warnings.items())
    return f"<h3>Warnings of the methods</h3><ul>{items}</ul>"


def table2_section(document: Mapping[str, Any]) -> str:
    """Training times and ratios."""
    times = [
        [
            _name(row["method"]),
            text(duration(row["seconds"])),
            "" if row["paper_seconds"] is None else text(duration(row["paper_seconds"])),
        ]
        for row in document["rows"]
    ]
    ratios = [
        [
            text(f"{row['competitor']} / {row['erm']}"),
            text(f"{row['ratio']:.2f}"),
            "" if row["paper_ratio"] is None else text(f"{row['paper_ratio']:.1f}"),
        ]
        for row in document["ratios"]
        if row["erm"] in ERM_METHODS or row["erm"].endswith("certified")
    ]
    return section(
        "table2",
        "Table 2: training times",
        paragraph(
            "Mean CPU time of training over all sets and trials of Table 1, one BLAS thread, all methods on "
            "the same splits in one run. The paper's are Matlab's (DRM: C++) on another machine: compare "
            "ratios, not times."
        ),
        table(["method", "here", "paper"], times, "CPU time per training"),
        table(["ratio of times", "here", "paper"], ratios, "Above 1: ERM is faster"),
    )
