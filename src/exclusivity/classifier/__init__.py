"""The scikit-learn estimators: validate, encode classes, build problems, store results."""

from exclusivity.classifier.cv import ERMClassifierCV
from exclusivity.classifier.erm import ERMClassifier
from exclusivity.classifier.path import ERMPath, erm_path

__all__ = ["ERMClassifier", "ERMClassifierCV", "ERMPath", "erm_path"]
