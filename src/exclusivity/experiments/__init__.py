"""The paper's figure and tables, run again: tasks, checkpoints, documents, verdicts and the report."""

from exclusivity.experiments.progress import Progress as Progress, terminal_progress as terminal_progress
from exclusivity.experiments.provenance import (
    available_cpus as available_cpus,
    machine as machine,
    today as today,
    versions as versions,
)
from exclusivity.experiments.sets import Collection, ExperimentSet, collect
from exclusivity.experiments.study import PARTS, Settings, Study, default_trials as default_trials, reproduce
from exclusivity.experiments.verdicts import Outcome, Verdict
from exclusivity.experiments.writing import write_study

__all__ = [
    "PARTS",
    "Collection",
    "ExperimentSet",
    "Outcome",
    "Settings",
    "Study",
    "Verdict",
    "collect",
    "reproduce",
    "write_study",
]
