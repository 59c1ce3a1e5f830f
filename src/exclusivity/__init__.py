"""Classifiers for tables whose predictions provably survive broken columns, and certified linear SVMs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from exclusivity.additive import RobustAdditiveClassifier
    from exclusivity.classifier import ERMClassifier, ERMClassifierCV, erm_path
    from exclusivity.versions import show_versions

__version__ = "0.3.0"

__all__ = [
    "ERMClassifier",
    "ERMClassifierCV",
    "RobustAdditiveClassifier",
    "__version__",
    "erm_path",
    "show_versions",
]


def __getattr__(name: str) -> Any:
    # scikit-learn takes most of a second to import: `erm --help` should not wait for it.
    if name in ("ERMClassifier", "ERMClassifierCV", "erm_path"):
        from exclusivity import classifier

        return getattr(classifier, name)
    if name == "RobustAdditiveClassifier":
        from exclusivity.additive import RobustAdditiveClassifier

        return RobustAdditiveClassifier
    if name == "show_versions":
        from exclusivity.versions import show_versions

        return show_versions
    raise AttributeError(f"module 'exclusivity' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
