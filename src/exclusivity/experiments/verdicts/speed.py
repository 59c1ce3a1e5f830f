"""Verdicts on training times: Table 2 and panel 4 of Figure 1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from exclusivity.experiments.published import FIGURE_MEMBERS, TABLE2
from exclusivity.experiments.sets import LARGE
from exclusivity.experiments.verdicts.base import Verdict, choose, graded, unchecked

_SLOPE = 1.2
_FACTOR = 1.25


def table2_verdicts(table: Mapping[str, Any]) -> list[Verdict]:
    """All verdicts that a table-2 document supports."""
    return [erm_faster(table["ratios"]), drm_slower(table["ratios"])]


def erm_faster(ratios: Sequence[Mapping[str, Any]]) -> Verdict:
    """ERM against AdaBoost, Bagging and DRM of the same size."""
    kinds = {"Algorithm 2": _is_paper, "the certified solver": _is_certified}
    told, slowest = [], {}
    for kind, belongs in kinds.items():
        chosen = [row for row in ratios if belongs(row)]
        worst = min(chosen, key=lambda row: row["ratio"])
        slowest[kind] = worst["ratio"]
        faster = sum(row["ratio"] > 1 for row in chosen)
        told.append(
            f"{kind} faster in {faster} of {len(chosen)} comparisons (least ratio {worst['ratio']:.2f}: "
            f"{worst['competitor']} / {worst['erm']})"
        )
    by_paper, by_ours = (slowest[kind] > 1 for kind in kinds)
    outcome = graded(by_paper, by_ours)
    return Verdict(
        "erm-faster",
        "ERM trains faster than AdaBoost, Bagging and DRM, with 10 and with 30 members",
        "Table 2",
        outcome,
        "; ".join(told),
        choose(
            outcome,
            "Every ratio of training times in the same run is above one, with the paper's own algorithm "
            "already.",
            "With the certified solver every ratio is above one. The paper's algorithm is not the fastest "
            "everywhere: its competitors are better programmed here than the paper's were.",
            "Some competitor is faster than ERM by either solver.",
        ),
    )


def drm_slower(ratios: Sequence[Mapping[str, Any]]) -> Verdict:
    """The factor of 2000."""
    drm = [row for row in ratios if row["competitor"].startswith("DRM") and _is_paper(row)]
    factors = [row["ratio"] for row in drm]
    outcome = graded(min(factors) >= 1000, min(factors) >= 10)
    theirs = [row["paper_ratio"] for row in drm]
    return Verdict(
        "drm-2000",
        "DRM takes about 2000 times as long as ERM",
        "Table 2 and its text",
        outcome,
        f"{min(factors):.2f} to {max(factors):.2f} times (the paper's numbers: {min(theirs):.0f} to "
        f"{max(theirs):.0f})",
        choose(
            outcome,
            "As in the paper.",
            "DRM is slower, but not by that factor.",
            "The factor was a property of two programs. Solved by Newton steps, DRM takes about as long as "
            "Algorithm 2.",
        ),
    )


def _is_certified(row: Mapping[str, Any]) -> bool:
    return str(row["erm"]) not in TABLE2


def _is_paper(row: Mapping[str, Any]) -> bool:
    return str(row["erm"]) in TABLE2


def scaling_verdicts(document: Mapping[str, Any] | None) -> list[Verdict]:
    """Panel 4."""
    where = "Figure 1, fourth picture"
    linear = ("quasi-linear", "Training time is quasi-linear in the number of rows", where)
    loss = ("p-and-time", "The choice of p barely changes the training time", where)
    if document is None or document["dataset"] != LARGE:
        why = "ijcnn1 was not there; what is drawn in its place is too small to tell."
        return [unchecked(*linear, why), unchecked(*loss, why)]
    erm = [curve for curve in document["curves"] if "ERM" in curve["method"]]
    slopes, each = ([curve[name] for curve in erm] for name in ("slope", "iteration_slope"))
    outcome = graded(max(slopes) <= _SLOPE, max(each) <= _SLOPE)
    rows, counts = document["rows"], [curve["iterations"] for curve in erm]
    first = Verdict(
        *linear,
        outcome,
        f"time ~ rows^{min(slopes):.2f} to rows^{max(slopes):.2f} from {rows[0]} to {rows[-1]} rows; per "
        f"iteration rows^{min(each):.2f} to rows^{max(each):.2f}; iterations "
        f"{min(c[0] for c in counts):.0f} to {max(c[0] for c in counts):.0f} at first, "
        f"{min(c[-1] for c in counts):.0f} to {max(c[-1] for c in counts):.0f} at last",
        choose(
            outcome,
            "An iteration is linear in the rows, and their number hardly grows.",
            "An iteration is linear in the rows. Their number grows, because the stopping rule is an "
            "absolute change of an objective that grows with the rows.",
            f"The exponent is above {_SLOPE}, even per iteration.",
        ),
    )
    return [first, _p_and_time(loss, erm)]


def _p_and_time(names: tuple[str, str, str], erm: Sequence[Mapping[str, Any]]) -> Verdict:
    total = {curve["method"]: sum(curve["seconds"]) for curve in erm}
    by_p = {k: total[f"L1-ERM{k}"] / total[f"L2-ERM{k}"] for k in FIGURE_MEMBERS}
    by_k = [
        total[f"L{p}-ERM{large}"] / total[f"L{p}-ERM{small}"]
        for p in (1, 2)
        for small, large in pairwise(FIGURE_MEMBERS)
    ]
    far = max(max(ratio, 1 / ratio) for ratio in by_p.values())
    outcome = graded(far <= _FACTOR, far <= max(by_k))
    return Verdict(
        *names,
        outcome,
        "time for p = 1 over p = 2: "
        + ", ".join(f"{ratio:.2f} (ERM{k})" for k, ratio in by_p.items())
        + f"; five to ten to thirty members: factors {min(by_k):.2f} to {max(by_k):.2f}",
        choose(
            outcome,
            f"All within a factor of {_FACTOR}.",
            "p = 1 needs more iterations and so more time, but the number of members matters more, as the "
            "paper says.",
            "p matters more than the number of members.",
        ),
    )
