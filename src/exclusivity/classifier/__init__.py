"""The scikit-learn estimator: validates, encodes classes, builds problems, stores results."""

from exclusivity.classifier.erm import ERMClassifier

__all__ = ["ERMClassifier"]
