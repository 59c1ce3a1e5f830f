"""Plots and reports of fitted classifiers; plots need matplotlib (``pip install "exclusivity[plot]"``)."""

from exclusivity.inspection.additive import AdditiveDisplay
from exclusivity.inspection.certified import CertifiedAccuracyDisplay
from exclusivity.inspection.components import ComponentsDisplay
from exclusivity.inspection.convergence import ConvergenceDisplay
from exclusivity.inspection.path import PathDisplay
from exclusivity.inspection.report import model_report

__all__ = [
    "AdditiveDisplay",
    "CertifiedAccuracyDisplay",
    "ComponentsDisplay",
    "ConvergenceDisplay",
    "PathDisplay",
    "model_report",
]
