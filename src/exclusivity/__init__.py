"""Ensembles of linear SVMs whose members are kept apart by the exclusivity regulariser."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from exclusivity.classifier import ERMClassifier

__version__ = "0.1.0"

__all__ = ["ERMClassifier", "__version__"]


def __getattr__(name: str) -> Any:
    # scikit-learn takes most of a second to import: `erm --help` should not wait for it.
    if name == "ERMClassifier":
        from exclusivity.classifier import ERMClassifier

        return ERMClassifier
    raise AttributeError(f"module 'exclusivity' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
