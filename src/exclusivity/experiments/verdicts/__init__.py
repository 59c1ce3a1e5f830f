"""A verdict for every claim of the paper, drawn from numbers and from nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from exclusivity.experiments.verdicts.accuracy import accuracy_verdicts
from exclusivity.experiments.verdicts.base import Outcome, Verdict
from exclusivity.experiments.verdicts.figure import convergence_verdict, sweep_verdicts
from exclusivity.experiments.verdicts.speed import scaling_verdicts, table2_verdicts
from exclusivity.experiments.verdicts.theory import theory_verdicts

__all__ = ["Outcome", "Verdict", "all_verdicts"]


def all_verdicts(documents: Mapping[str, Mapping[str, Any]]) -> list[Verdict]:
    """The verdicts on every document that there is.

    Parameters
    ----------
    documents : mapping
        Any of ``table1``, ``table2``, ``figure1``, ``theory``.
    """
    found: list[Verdict] = []
    if "table1" in documents:
        found += accuracy_verdicts(documents["table1"])
    if "table2" in documents:
        found += table2_verdicts(documents["table2"])
    if "figure1" in documents:
        figure = documents["figure1"]
        found += sweep_verdicts(figure["sweep"])
        found.append(convergence_verdict(figure["convergence"]))
        found += scaling_verdicts(figure["scaling"])
    if "theory" in documents:
        found += theory_verdicts(documents["theory"]["checks"])
    return found
