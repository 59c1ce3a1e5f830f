"""What a fitted model is, in words and numbers: what ``erm inspect`` prints and the report shows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from exclusivity.classifier import note
from exclusivity.inspection import drawing
from exclusivity.solvers import History

_MOST = 10_000
"""Members and problems that are summed up: a summary of one takes far more memory than the one itself."""


@dataclass(frozen=True)
class MemberSummary:
    """One member: how many features it uses, and those that it weighs most.

    Attributes
    ----------
    number : int
        From 0, its place in ``components_``.
    n_features : int
        How many features it uses.
    strongest : tuple of (str, float)
        Names and weights of features, the largest first. For several binary problems the weight is the
        largest size in any of them.
    """

    number: int
    n_features: int
    strongest: tuple[tuple[str, float], ...]


@dataclass(frozen=True, eq=False)
class ProblemSummary:
    """How the fit of one binary problem ended.

    Attributes
    ----------
    name : str
        What is separated from what.
    objective, gap : float
        The value of the minimised function, and the proven relative distance from its optimum (NaN: none).
    n_iter : int
        Iterations.
    converged : bool
        Whether the tolerance was reached.
    history : History
        Every iteration.
    """

    name: str
    objective: float
    gap: float
    n_iter: int
    converged: bool
    history: History


@dataclass(frozen=True, eq=False)
class ModelSummary:
    """What a fitted model is.

    Attributes
    ----------
    kind : str
        The class of the classifier.
    steps : tuple of str
        What happens to rows before they reach it.
    parameters : dict
        The parameters of the classifier.
    chosen_C : float or None
        The C that an ``ERMClassifierCV`` chose.
    classes : tuple
        Its classes.
    n_features, n_members : int
        Sizes.
    note : str
        One sentence on the members: all equal, or how they share the features. May be empty.
    members_are_equal : bool
        Then ``members`` holds one of them.
    members : tuple of MemberSummary
        The first 10,000.
    problems : tuple of ProblemSummary
        The first 10,000.
    """

    kind: str
    steps: tuple[str, ...]
    parameters: dict[str, Any]
    chosen_C: float | None
    classes: tuple[Any, ...]
    n_features: int
    n_members: int
    note: str
    members_are_equal: bool
    members: tuple[MemberSummary, ...]
    problems: tuple[ProblemSummary, ...]


def summarise(model: BaseEstimator, *, feature_names: object = None, n_strongest: int = 5) -> ModelSummary:
    """Sum up a fitted model.

    Parameters
    ----------
    model : ERMClassifier, ERMClassifierCV or Pipeline that ends with one
        Fitted.
    feature_names : sequence of str, default=None
        Names of the features; None takes those seen in ``fit``.
    n_strongest : int, default=5
        How many features to name per member.

    Returns
    -------
    summary : ModelSummary

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from exclusivity import ERMClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> summary = summarise(ERMClassifier(30).fit(scale(X), y))
    >>> summary.note, len(summary.members)
    ('30 equal members = one SVM at cost C/30', 1)
    """
    fitted = drawing.last_step(model, "components_")
    names = drawing.input_names(model, feature_names)
    weights = fitted.components_
    # Members that are stored once need no comparison.
    members_are_equal = weights.strides[1] == 0 or bool(np.all(weights == weights[:, :1]))
    numbers = range(1 if members_are_equal else min(weights.shape[1], _MOST))
    steps = [step for _, step in model.steps[:-1]] if hasattr(model, "steps") else []
    return ModelSummary(
        kind=type(fitted).__name__,
        steps=tuple(repr(step) for step in steps if step is not None and step != "passthrough"),
        parameters=fitted.get_params(deep=False),
        chosen_C=getattr(fitted, "C_", None),
        classes=tuple(fitted.classes_.tolist()),
        n_features=weights.shape[2],
        n_members=weights.shape[1],
        note=note(fitted),
        members_are_equal=members_are_equal,
        members=tuple(_member(k, weights[:, k], names, n_strongest) for k in numbers),
        problems=tuple(_problems(fitted)),
    )


def _member(number: int, weights: NDArray[Any], names: list[str], n_strongest: int) -> MemberSummary:
    size = np.abs(weights).max(axis=0)
    order = np.argsort(-size, kind="stable")[:n_strongest]
    values = weights[0] if len(weights) == 1 else size
    strongest = tuple((names[j], float(values[j])) for j in order if size[j] > 0)
    return MemberSummary(number, int((size > 0).sum()), strongest)


def _problems(fitted: BaseEstimator) -> list[ProblemSummary]:
    names = drawing.problem_names(fitted.classes_, fitted.multi_class_)
    if len(fitted.history_) < len(names):  # exclusivity > 1: one descent for all problems
        names = ["all problems together"]
    names = names[:_MOST]
    columns = (fitted.objective_, fitted.dual_gap_, fitted.n_iter_, fitted.converged_, fitted.history_)
    return [
        ProblemSummary(name, float(objective), float(gap), int(n_iter), bool(converged), history)
        for name, objective, gap, n_iter, converged, history in zip(names, *columns, strict=False)
    ]
