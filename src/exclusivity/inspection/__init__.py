"""Fitted classifiers in pictures and in words; matplotlib (``pip install "exclusivity[plot]"``) draws."""

from exclusivity.inspection.additive import AdditiveDisplay
from exclusivity.inspection.certified import CertifiedAccuracyDisplay
from exclusivity.inspection.components import ComponentsDisplay
from exclusivity.inspection.convergence import ConvergenceDisplay
from exclusivity.inspection.panels import Panel
from exclusivity.inspection.path import PathDisplay
from exclusivity.inspection.report import model_report
from exclusivity.inspection.scores import Scores, scores_of
from exclusivity.inspection.summary import MemberSummary, ModelSummary, ProblemSummary, summarise

__all__ = [
    "AdditiveDisplay",
    "CertifiedAccuracyDisplay",
    "ComponentsDisplay",
    "ConvergenceDisplay",
    "MemberSummary",
    "ModelSummary",
    "Panel",
    "PathDisplay",
    "ProblemSummary",
    "Scores",
    "model_report",
    "scores_of",
    "summarise",
]
