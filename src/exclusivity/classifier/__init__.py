"""The scikit-learn estimators: validate, encode classes, build problems, store results."""

from exclusivity.classifier._erm import ERMClassifier
from exclusivity.classifier._path import ERMClassifierCV, ERMPath, erm_path

__all__ = ["ERMClassifier", "ERMClassifierCV", "ERMPath", "erm_path"]
