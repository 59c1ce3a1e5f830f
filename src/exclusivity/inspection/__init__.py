"""Plots and reports of fitted classifiers; plots need matplotlib (``pip install "exclusivity[plot]"``)."""

from exclusivity.inspection.additive import AdditiveDisplay
from exclusivity.inspection.displays import (
    CertifiedAccuracyDisplay,
    ComponentsDisplay,
    ConvergenceDisplay,
    PathDisplay,
)
from exclusivity.inspection.report import model_report

__all__ = [
    "AdditiveDisplay",
    "CertifiedAccuracyDisplay",
    "ComponentsDisplay",
    "ConvergenceDisplay",
    "PathDisplay",
    "model_report",
]
