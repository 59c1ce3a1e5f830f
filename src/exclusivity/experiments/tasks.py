"""Units of work: one task is one checkpointed step, small enough to lose, large enough to be worth a line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from exclusivity.experiments.sets import ExperimentSet

Sets = Mapping[str, ExperimentSet]
Result = dict[str, Any]
"""What a task gives: plain JSON."""


@dataclass(frozen=True)
class Task:
    """A kind of work and everything that its numbers depend on.

    Attributes
    ----------
    kind : str
        A key of the table of kinds.
    params : dict
        Plain JSON. Together with the kind and the versions it identifies the result.
    """

    kind: str
    params: Mapping[str, Any]

    @property
    def key(self) -> str:
        """The task as text, equal for equal tasks."""
        return json.dumps([self.kind, dict(self.params)], sort_keys=True)

    @property
    def label(self) -> str:
        """A few words for the progress bar."""
        told = [str(self.params[name]) for name in ("dataset", "check") if name in self.params]
        if "trial" in self.params:
            told.append(f"trial {self.params['trial'] + 1}")
        return " ".join([self.kind, *told])


def pick(sets: Sets, dataset: str, fingerprint: str) -> ExperimentSet:
    """The set of a task, if it is the one that the task was made for."""
    data = sets[dataset]
    if data.fingerprint != fingerprint:
        raise ValueError(f"{dataset} is not the data that the task was made for.")
    return data
