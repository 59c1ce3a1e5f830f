"""What is claimed of the solvers, judged on a finished document.

A claim holds or fails where both sides finished at least one comparison, or where only the rivals did. Where
no rival got there, or nothing was measured, there is no verdict.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import inf, isfinite
from statistics import median
from typing import Any

from exclusivity.benchmark.measures import LEVELS, level_name, reached

LINEAR_SVC = ("tron-1", "tron-10", "dcd-1", "dcd-10")
TRON = ("tron-1", "tron-10", "liblinear-tron", "liblinear-free")
DCD = ("dcd-1", "dcd-10", "liblinear-dcd")
PEGASOS = ("sgd",)

HOLDS, FAILS, IN_PART = "holds", "fails", "holds in part"
NO_RIVAL, NOT_MEASURED = "no rival got there", "not measured"
NO_VERDICT = (NO_RIVAL, NOT_MEASURED)
"""Outcomes that say nothing about a claim."""


@dataclass(frozen=True)
class Bar:
    """A claim: the time of ``own`` is at most ``factor`` times that of the fastest rival.

    Attributes
    ----------
    statement : str
    workloads : tuple of str
        Names, or kinds of full-size workloads.
    factor : float
    powers : tuple of int
    levels : tuple of pairs
        (own accuracy, the rival's accuracy); every pair is a comparison.
    certified : bool
        Whether the own accuracy is the recomputed gap, not the true excess.
    own : str
        The solver that the claim is about.
    rivals : tuple of str or None
        None: all that are not ours.
    costs : tuple of float or None
        None: all that were run.
    share : float
        How many of the comparisons must hold: 1 is all of them, 1/2 says that of the median.
    """

    statement: str
    workloads: tuple[str, ...]
    factor: float
    powers: tuple[int, ...]
    levels: tuple[tuple[float, float], ...]
    certified: bool = False
    own: str = "newton"
    rivals: tuple[str, ...] | None = None
    costs: tuple[float, ...] | None = None
    share: float = 1.0


_LARGE = ("dense-500k", "dense-2m")
_TEXT_LEVELS = ((1e-4, 1e-4),)
_SAME = tuple((level, level) for level in LEVELS)

BARS = (
    Bar(
        "dense, p = 2: certified 1e-6 within 1/4 of the fastest peer's time to 1e-4",
        _LARGE,
        1 / 4,
        (2,),
        ((1e-6, 1e-4),),
        certified=True,
    ),
    Bar(
        "ijcnn1, p = 2: certified 1e-6 within 1/2 of the fastest peer's time to 1e-4",
        ("ijcnn1",),
        1 / 2,
        (2,),
        ((1e-6, 1e-4),),
        certified=True,
    ),
    Bar(
        "dense, p = 1: certified 1e-6 within 1/3 of the fastest peer's time to 1e-4",
        _LARGE,
        1 / 3,
        (1,),
        ((1e-6, 1e-4),),
        certified=True,
    ),
    Bar(
        "ijcnn1, p = 1: certified 1e-6 within 1/3 of the fastest peer's time to 1e-6",
        ("ijcnn1",),
        1 / 3,
        (1,),
        ((1e-6, 1e-6),),
        certified=True,
    ),
    Bar(
        "150 rows, p = 2: not slower than LinearSVC to the same accuracy",
        ("paper",),
        1.0,
        (2,),
        _SAME,
        rivals=LINEAR_SVC,
    ),
    Bar(
        "150 rows, p = 1: at most twice LinearSVC's time to the same accuracy",
        ("paper",),
        2.0,
        (1,),
        _SAME,
        rivals=LINEAR_SVC,
    ),
    Bar(
        "150 rows, p = 2: the median of these ratios is at most 1.2",
        ("paper",),
        1.2,
        (2,),
        _SAME,
        rivals=LINEAR_SVC,
        share=1 / 2,
    ),
    Bar(
        "150 rows, p = 1: the median of these ratios is at most 1",
        ("paper",),
        1.0,
        (1,),
        _SAME,
        rivals=LINEAR_SVC,
        share=1 / 2,
    ),
    Bar(
        "ten classes: at most 1/2 of LinearSVC's time to 1e-4",
        ("classes",),
        1 / 2,
        (1, 2),
        ((1e-4, 1e-4),),
        rivals=LINEAR_SVC,
    ),
    Bar(
        "sparse: at most twice the fastest peer's time to 1e-6",
        ("sparse",),
        2.0,
        (1, 2),
        ((1e-6, 1e-6),),
    ),
    Bar(
        "sparse: at most the fastest peer's time to 1e-6 in 3 of 4 comparisons",
        ("sparse",),
        1.0,
        (1, 2),
        ((1e-6, 1e-6),),
        share=3 / 4,
    ),
    Bar(
        "text, C = 1 and 10: certified 1e-4 within LinearSVC's time to 1e-4 in 3 of 4 comparisons",
        ("text",),
        1.0,
        (1, 2),
        _TEXT_LEVELS,
        certified=True,
        rivals=LINEAR_SVC,
        costs=(1.0, 10.0),
        share=3 / 4,
    ),
    Bar(
        "text: certified 1e-4 within 1.5 times LinearSVC's time to 1e-4",
        ("text",),
        1.5,
        (1, 2),
        _TEXT_LEVELS,
        certified=True,
        rivals=LINEAR_SVC,
    ),
    Bar(
        "text, every module against the rest, p = 2: certified 1e-4 within 1/2 of LinearSVC's time to 1e-4",
        ("text-words-classes", "text-chars-classes"),
        1 / 2,
        (2,),
        _TEXT_LEVELS,
        certified=True,
        rivals=LINEAR_SVC,
    ),
)

FOOTNOTE = tuple(
    Bar(
        f"the paper's footnote: PSVM is faster than {name} (here: to 1e-4)",
        ("paper", "ijcnn1", "one-hot", "dense", "sparse", "classes", "text"),
        1.0,
        (1, 2),
        ((1e-4, 1e-4),),
        own="psvm",
        rivals=rivals,
    )
    for name, rivals in (("TRON", TRON), ("DCD", DCD), ("Pegasos", PEGASOS))
)


PATH = "path of 30 values of C, 100,000 x 50: less than five cold fits (see benchmarks/path.py)"
"""No comparison of single fits can tell: a script measures it."""


@dataclass(frozen=True)
class Verdict:
    """A claim and what was found.

    ``ratio`` is the worst of all comparisons (None: not measured, or the own solver did not get there),
    ``middle`` their median; ``unrivalled`` counts those that no rival finished, which are no comparisons.
    """

    statement: str
    factor: float
    outcome: str
    ratio: float | None = None
    middle: float | None = None
    comparisons: int = 0
    holding: int = 0
    unrivalled: int = 0
    worst: str = ""


def judge(document: dict[str, Any]) -> list[dict[str, Any]]:
    """A verdict on every bar and on the paper's footnote.

    Only workloads of full size count: what ``--quick`` measures on small ones proves nothing here.
    """
    ours = {name for name, peer in document["peers"].items() if peer["ours"]}
    verdicts = [_judge(bar, document["cases"], ours) for bar in BARS]
    verdicts.append(Verdict(PATH, 1.0, NOT_MEASURED))
    verdicts += [_judge(bar, document["cases"], ours, partly=True) for bar in FOOTNOTE]
    return [asdict(verdict) for verdict in verdicts]


def _judge(bar: Bar, cases: Sequence[dict[str, Any]], ours: set[str], *, partly: bool = False) -> Verdict:
    found = [
        (ratio, f"{case['workload']}, p = {case['p']}, C = {case['cost']:.3g}, to {level_name(own)}")
        for case in cases
        if _applies(bar, case)
        for own, rival in bar.levels
        if (ratio := _ratio(bar, case, own, rival, ours)) is not None
    ]
    rivalled = [(ratio, where) for ratio, where in found if ratio > 0]
    unrivalled = len(found) - len(rivalled)
    if not rivalled:
        outcome = NO_RIVAL if unrivalled else NOT_MEASURED
        return Verdict(bar.statement, bar.factor, outcome, unrivalled=unrivalled)
    ratios = [ratio for ratio, _ in rivalled]
    holding = sum(ratio <= bar.factor for ratio in ratios)
    worst, where = max(rivalled)
    outcome = HOLDS if holding >= bar.share * len(rivalled) else IN_PART if partly and holding else FAILS
    return Verdict(
        bar.statement,
        bar.factor,
        outcome,
        ratio=worst if isfinite(worst) else None,
        middle=middle if isfinite(middle := median(ratios)) else None,
        comparisons=len(rivalled),
        holding=holding,
        unrivalled=unrivalled,
        worst=where if isfinite(worst) else f"{where}: not reached",
    )


def _applies(bar: Bar, case: dict[str, Any]) -> bool:
    small = case["workload"].startswith("small-")
    named = case["workload"] in bar.workloads or case["kind"] in bar.workloads
    asked = bar.costs is None or case["cost"] in bar.costs
    return case["p"] in bar.powers and named and asked and not small


def _ratio(
    bar: Bar, case: dict[str, Any], own_level: float, rival_level: float, ours: set[str]
) -> float | None:
    """Own time over the fastest rival's; 0: no rival got there; inf: only rivals did; None: nobody did."""
    ran = {run["peer"] for run in case["runs"]}
    rivals = [name for name in ran if (name in bar.rivals if bar.rivals else name not in ours)]
    if bar.own not in ran or not rivals:
        return None
    curves = case["curves"]
    points = [reached(curves.get(name, []), rival_level) for name in rivals]
    times = [point["seconds"] for point in points if point]
    mine = reached(curves.get(bar.own, []), own_level, by="gap" if bar.certified else "excess")
    if mine is None:
        return inf if times else None
    return mine["seconds"] / min(times) if times else 0.0
