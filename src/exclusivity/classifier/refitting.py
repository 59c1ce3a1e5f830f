"""Predictions while another thread fits the same classifier: by the former model or by the new one.

A fit works on a snapshot of the classifier and ends with :func:`replace_fitted`, one assignment. A prediction
takes a snapshot first and reads all fitted attributes from that. Both are single operations on the dictionary
of the object, between which no other thread runs.
"""

from __future__ import annotations

from typing import Any, TypeVar

Estimator = TypeVar("Estimator")

PRIVATE = ("_ensemble", "_fitted_exclusivity", "_fitted_multi_class", "_starts")
"""Fitted attributes whose names do not end with an underscore."""


def snapshot(estimator: Estimator) -> Estimator:
    """Return a shallow copy, whose attributes stay what they are when ``estimator`` is fitted anew.

    Examples
    --------
    >>> from exclusivity import ERMClassifier
    >>> model = ERMClassifier(2).fit([[0.0], [1.0]], [0, 1])
    >>> former = snapshot(model)
    >>> former.classes_ is model.fit([[0.0], [1.0]], ["no", "yes"]).classes_
    False
    """
    twin: Estimator = object.__new__(type(estimator))
    twin.__dict__.update(vars(estimator))
    return twin


def fitted_attributes(estimator: object) -> dict[str, Any]:
    """Return what a fit left behind: attributes that end with an underscore, and those of ``PRIVATE``."""
    attributes = dict(vars(estimator))  # a copy: another thread may add to it meanwhile
    return {name: value for name, value in attributes.items() if name.endswith("_") or name in PRIVATE}


def replace_fitted(estimator: object, fitted: dict[str, Any]) -> None:
    """Replace all fitted attributes at once; parameters and all else stay."""
    attributes = dict(vars(estimator))
    for name in fitted_attributes(estimator):
        del attributes[name]
    estimator.__dict__ = attributes | fitted
