"""What a verdict is."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any


class Outcome(Enum):
    """What the numbers say about a claim."""

    HOLDS = "holds"
    PART = "holds in part"
    FAILS = "fails"
    UNCHECKED = "not checked"


@dataclass(frozen=True)
class Verdict:
    """One claim, judged.

    Attributes
    ----------
    key : str
        A short name, stable over versions.
    claim : str
        What is claimed.
    where : str
        Where the paper says it.
    outcome : Outcome
    number : str
        The measurement that decides.
    reason : str
        Why that number means this outcome.
    """

    key: str
    claim: str
    where: str
    outcome: Outcome
    number: str
    reason: str

    def as_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {**asdict(self), "outcome": self.outcome.value}


def graded(holds: bool, part: bool) -> Outcome:
    """Holds, else holds in part, else fails."""
    if holds:
        return Outcome.HOLDS
    return Outcome.PART if part else Outcome.FAILS


def choose(outcome: Outcome, holds: str, part: str, fails: str) -> str:
    """The sentence that belongs to an outcome."""
    return {Outcome.HOLDS: holds, Outcome.PART: part, Outcome.FAILS: fails}[outcome]


def unchecked(key: str, claim: str, where: str, why: str) -> Verdict:
    """A claim that this run says nothing about."""
    return Verdict(key, claim, where, Outcome.UNCHECKED, "none", why)
