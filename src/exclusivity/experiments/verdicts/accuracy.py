"""Verdicts on Table 1: errors and ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy import stats

from exclusivity.experiments.methods import erm_name
from exclusivity.experiments.published import ERM_METHODS, MEMBERS, PAPER_METHODS, TABLE1
from exclusivity.experiments.verdicts.base import Outcome, Verdict, choose, graded, unchecked

_WHERE = "Table 1 and its text"
_NAMES = {
    "rows": ("erm-rows", "The errors of the four ERM rows are what Table 1 says", "Table 1"),
    **{
        name: (f"beats-{name.lower()}", f"ERM beats {name} in most cases", _WHERE)
        for name in ("AdaBoost", "Bagging", "DRM")
    },
    "top": ("top-five", "Four of the five best average ranks are ERM's", _WHERE),
    "strong": (
        "strong-sets",
        "ERM significantly outperforms the others on australian, sonar, heart and ionosphere",
        _WHERE,
    ),
}
_IJCNN1 = ("ijcnn1", "On ijcnn1 all competitors perform very closely to each other", _WHERE)
# The sets on which the paper's text sees ERM "significantly" ahead.
STRONG_SETS = ("australian", "sonar", "heart", "ionosphere")
_LEVEL = 0.05


def accuracy_verdicts(table: Mapping[str, Any]) -> list[Verdict]:
    """All verdicts that a table-1 document supports."""
    cells = table["cells"]
    if not cells:
        why = "None of the sets of Table 1 was there."
        return [*(unchecked(*names, why) for names in _NAMES.values()), ijcnn1_close(table["ijcnn1"])]
    means = {(cell["dataset"], cell["method"]): cell["mean"] for cell in cells}
    average = {row["method"]: row["rank"] for row in table["average_ranks"]}
    distance = table["critical_difference"]
    return [
        rows_reproduce(cells),
        *(beats(name, means, average, distance) for name in ("AdaBoost", "Bagging", "DRM")),
        top_five(average),
        strong_sets(cells),
        ijcnn1_close(table["ijcnn1"]),
    ]


def rows_reproduce(cells: Sequence[Mapping[str, Any]]) -> Verdict:
    """Whether our ERM means agree with the paper's."""
    if len(cells[0]["trials"]) < 2:
        return unchecked(*_NAMES["rows"], "One trial has no standard deviation.")
    erm = [cell for cell in cells if cell["method"] in ERM_METHODS]
    off = [cell for cell in erm if abs(cell["mean"] - cell["paper_mean"]) > cell["std"] + cell["paper_std"]]
    within = len(erm) - len(off)
    outcome = graded(not off, within >= 0.75 * len(erm))
    farthest = max(
        erm,
        key=lambda cell: abs(cell["mean"] - cell["paper_mean"]) / (cell["std"] + cell["paper_std"] or 1.0),
    )
    detail = (
        f"The farthest is {farthest['method']} on {farthest['dataset']}: {farthest['mean']:.2f} here, "
        f"{farthest['paper_mean']:.2f} there."
    )
    return Verdict(
        *_NAMES["rows"],
        outcome,
        f"{within} of {len(erm)} means within the two standard deviations added up",
        choose(
            outcome,
            "The paper's algorithm, taken to the letter, gives the paper's numbers. ",
            "Most cells agree, some do not. ",
            "The paper's numbers do not come out. ",
        )
        + detail,
    )


def beats(
    competitor: str,
    means: Mapping[tuple[str, str], float],
    average: Mapping[str, float],
    distance: float | None,
) -> Verdict:
    """ERM against one competitor of the same size, on every set."""
    datasets = list(dict.fromkeys(dataset for dataset, _ in means))
    pairs = [(erm_name(k, p), f"{competitor}{k}") for k in MEMBERS for p in (1, 2)]
    contests = [(dataset, erm, other) for dataset in datasets for erm, other in pairs]
    wins = sum(means[dataset, erm] < means[dataset, other] for dataset, erm, other in contests)
    theirs = sum(TABLE1[dataset, erm].mean < TABLE1[dataset, other].mean for dataset, erm, other in contests)
    share = wins / len(contests)
    outcome = graded(share >= 0.75, share > 0.5)
    ours = float(np.mean([average[erm] for erm, _ in pairs]))
    rank = float(np.mean([average[other] for _, other in pairs]))
    clear = distance is not None and abs(ours - rank) >= distance
    return Verdict(
        *_NAMES[competitor],
        outcome,
        f"{wins} of {len(contests)} comparisons won (the paper's numbers: {theirs}); "
        f"average rank {ours:.1f} against {rank:.1f}",
        choose(
            outcome,
            "ERM has the lower error nearly everywhere. ",
            "ERM has the lower error more often than not. ",
            f"{competitor} has the lower or the same error at least as often. ",
        )
        + ("The ranks differ by more" if clear else "The ranks differ by less")
        + f" than Nemenyi's critical difference{'' if distance is None else f' of {distance:.1f}'}.",
    )


def top_five(average: Mapping[str, float]) -> Verdict:
    """How many of the five best average ranks belong to ERM."""
    ten = sorted((name for name in PAPER_METHODS if name in average), key=lambda name: average[name])
    best = ten[:5]
    count = sum(name in ERM_METHODS for name in best)
    outcome = graded(count >= 4, count == 3)
    return Verdict(
        *_NAMES["top"],
        outcome,
        f"{count} of the top five: " + ", ".join(f"{name} {average[name]:.1f}" for name in best),
        choose(
            outcome,
            "As in the paper.",
            "ERM has most of the top five, with one place less than in the paper.",
            "With AdaBoost and Bagging as they really perform, other methods share the top.",
        ),
    )


def strong_sets(cells: Sequence[Mapping[str, Any]]) -> Verdict:
    """The four sets on which ERM is said to be significantly better."""
    present = [name for name in STRONG_SETS if any(cell["dataset"] == name for cell in cells)]
    if not present:
        return unchecked(*_NAMES["strong"], "None of the four sets was there.")
    first, clear, told = 0, 0, []
    for dataset in present:
        rows = [c for c in cells if c["dataset"] == dataset and c["method"] in PAPER_METHODS]
        erm = min((c for c in rows if c["method"] in ERM_METHODS), key=lambda c: c["mean"])
        other = min((c for c in rows if c["method"] not in ERM_METHODS), key=lambda c: c["mean"])
        p_value = paired_p_value(erm["trials"], other["trials"])
        ahead = erm["mean"] < other["mean"]
        first += ahead
        clear += ahead and p_value < _LEVEL
        told.append(
            f"{dataset} {erm['mean']:.1f} to {other['mean']:.1f} ({other['method']}, p = {p_value:.1g})"
        )
    outcome = graded(clear == len(present), first * 2 >= len(present))
    return Verdict(
        *_NAMES["strong"],
        outcome,
        f"best on {first} of {len(present)}, significantly on {clear}: best ERM to best other: "
        + "; ".join(told),
        choose(
            outcome,
            "ERM is ahead on all of them, and paired t-tests over the trials agree.",
            "ERM is ahead on some, but not significantly on all (paired t-tests over the trials, which are "
            "kind: trials share rows).",
            "Another method is at least as good on most of these sets.",
        ),
    )


def paired_p_value(first: Sequence[float], second: Sequence[float]) -> float:
    """Two-sided paired t-test; 1 where there are too few trials, 0 for a constant difference.

    Examples
    --------
    >>> paired_p_value([1.0], [2.0])
    1.0
    """
    difference = np.subtract(first, second)
    if len(difference) < 2 or not np.any(difference):
        return 1.0
    error = difference.std(ddof=1) / np.sqrt(len(difference))
    if error == 0:
        return 0.0
    return float(2 * stats.t.sf(abs(difference.mean()) / error, len(difference) - 1))


def ijcnn1_close(cells: Sequence[Mapping[str, Any]]) -> Verdict:
    """ijcnn1, which the paper left out because all methods are close."""
    ten = [cell for cell in cells if cell["method"] in PAPER_METHODS]
    if not ten:
        return unchecked(*_IJCNN1, "ijcnn1 was not there.")
    best, worst = min(ten, key=lambda c: c["mean"]), max(ten, key=lambda c: c["mean"])
    spread = worst["mean"] - best["mean"]
    typical = float(np.mean([cell["std"] for cell in ten]))
    outcome = graded(spread <= max(1.0, 2 * typical), spread <= max(2.0, 4 * typical))
    if outcome is Outcome.HOLDS:
        reason = "They lie within twice the spread of their own trials."
    else:
        reason = (
            f"{best['method']} and {worst['method']} differ by more than twice the spread of their trials."
        )
    return Verdict(
        *_IJCNN1,
        outcome,
        f"errors from {best['mean']:.1f} % ({best['method']}) to {worst['mean']:.1f} % ({worst['method']}); "
        f"mean standard deviation {typical:.1f}",
        reason,
    )
