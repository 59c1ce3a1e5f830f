"""A summary of a fitted model, which ``erm inspect`` prints and the report shows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from exclusivity.additive import RobustAdditiveClassifier
from exclusivity.classifier._ensemble import note
from exclusivity.inspection import drawing
from exclusivity.inspection.additive import duel_names

# Members and problems in a summary: the summary of one takes more memory than the one itself.
_MOST = 10_000


class MemberSummary(NamedTuple):
    """The number of features of one member, and those with the largest weights.

    With several binary problems the weight of a feature is the largest absolute one of all of them.
    """

    number: int
    n_features: int
    strongest: tuple[tuple[str, float], ...]


class ProblemSummary(NamedTuple):
    """The end of the fit of one binary problem; the relative duality gap is NaN where there is no bound."""

    name: str
    objective: float
    gap: float
    n_iter: int
    converged: bool


class ModelSummary(NamedTuple):
    """A fitted model: ``steps`` come before it, ``note`` describes the members in one sentence or is empty.

    ``members`` holds one member if all are equal, and none of a robust additive model; at most 10,000 members
    and problems are kept.
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
    """Summarise a fitted classifier, or a pipeline that ends with one.

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
    is_robust = isinstance(model, RobustAdditiveClassifier)
    if is_robust:
        check_is_fitted(model)
    fitted = model if is_robust else drawing.last_step(model, "components_")
    steps = [step for _, step in model.steps[:-1]] if hasattr(model, "steps") else []
    ends = (fitted.objective_, fitted.dual_gap_, fitted.n_iter_, fitted.converged_)
    names = (duel_names(model) if is_robust else drawing.history_names(fitted))[:_MOST]
    problems = zip(names, *(end.tolist() for end in ends), strict=False)
    n_members, are_equal, members = 0, False, []
    if not is_robust:
        weights, features = fitted.components_, drawing.feature_names(model, feature_names)
        n_members = weights.shape[1]
        # Members that are stored once have a stride of zero.
        are_equal = weights.strides[1] == 0 or bool(np.all(weights == weights[:, :1]))
        for number in range(1 if are_equal else min(n_members, _MOST)):
            own = weights[:, number]
            size = np.abs(own).max(axis=0)
            values = own[0] if len(own) == 1 else size
            largest = [j for j in np.argsort(-size, kind="stable")[:n_strongest] if size[j] > 0]
            strongest = tuple((features[j], float(values[j])) for j in largest)
            members.append(MemberSummary(number, int((size > 0).sum()), strongest))
    return ModelSummary(
        kind=type(fitted).__name__,
        steps=tuple(repr(step) for step in steps if step is not None and step != "passthrough"),
        parameters=fitted.get_params(deep=False),
        chosen_C=getattr(fitted, "C_", None),
        classes=tuple(fitted.classes_.tolist()),
        n_features=fitted.n_features_in_,
        n_members=n_members,
        note=f"one function per column, trained against {fitted.max_broken} broken columns"
        if is_robust
        else note(fitted),
        members_are_equal=are_equal,
        members=tuple(members),
        problems=tuple(ProblemSummary(*problem) for problem in problems),
    )
