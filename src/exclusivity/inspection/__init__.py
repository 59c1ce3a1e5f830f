"""Pictures of fitted classifiers; matplotlib (``pip install "exclusivity[plot]"``) is needed to draw them."""

from exclusivity.inspection.certified import CertifiedAccuracyDisplay
from exclusivity.inspection.components import ComponentsDisplay
from exclusivity.inspection.convergence import ConvergenceDisplay
from exclusivity.inspection.path import PathDisplay

__all__ = ["CertifiedAccuracyDisplay", "ComponentsDisplay", "ConvergenceDisplay", "PathDisplay"]
