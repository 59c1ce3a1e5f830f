"""The robust additive model: column functions that are trained against the worst broken columns."""

from exclusivity.additive.classifier import RobustAdditiveClassifier

__all__ = ["RobustAdditiveClassifier"]
