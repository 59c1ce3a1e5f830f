"""The paper's figure and tables, run again: tasks, checkpoints, documents, verdicts and the report."""

from exclusivity.experiments.sets import Collection, ExperimentSet, collect
from exclusivity.experiments.study import PARTS, Settings, Study, reproduce
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
