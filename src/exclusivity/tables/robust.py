"""make_robust_classifier: a table in, votes that survive broken columns out."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from exclusivity.classifier import ERMClassifier
from exclusivity.tables.encoder import TableEncoder
from exclusivity.tables.interactions import SEARCH_COST, InteractionFeatures


def make_robust_classifier(
    n_estimators: int = 9,
    *,
    C: float = 1.0,
    numeric: str = "spline",
    interactions: bool = False,
    **parameters: Any,
) -> Pipeline:
    """A classifier for tables as they come, whose predictions survive broken columns.

    A pipeline of two steps: "encoder", a :class:`~exclusivity.tables.TableEncoder`, and "classifier", an
    :class:`~exclusivity.ERMClassifier` whose members own different input columns and vote
    (``exclusivity=inf``, ``voting="hard"``, ``class_weight="balanced"``). After ``fit``
    :func:`exclusivity.robustness.certify` says, row by row, how many input columns may hold anything without
    changing the prediction.

    Parameters
    ----------
    n_estimators : int, default=9
        Members; at most as many as the table has columns. To survive r broken columns takes 2 r + 1.
    C : float, default=1.0
        Cost of errors of each member.
    numeric : {"linear", "spline"}, default="spline"
        Whether members are linear in numbers, or follow a piecewise linear curve of each.
    interactions : bool, default=False
        Whether members look at all their columns together, and not only at one curve of each: a third step,
        "interactions" (:class:`~exclusivity.tables.InteractionFeatures`), between the other two. Certified
        accuracy gains where the effect of a column depends on others; models are larger, and have no curves
        to look at.
    **parameters : dict
        Other parameters of the classifier or of the encoder (``categorical``, ``min_frequency``, ...);
        ``feature_groups`` are of input columns, and go to the encoder.

    Returns
    -------
    model : Pipeline
        Not fitted.

    See Also
    --------
    exclusivity.robustness.certified_accuracy_scorer : Choose parameters by ``GridSearchCV``.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from exclusivity import make_robust_classifier
    >>> from exclusivity.robustness import certify
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> model = make_robust_classifier(random_state=0).fit(X[::2], y[::2])
    >>> bool(model.score(X[1::2], y[1::2]) > 0.93)
    True
    >>> bool(np.median(certify(model, X[1::2])) >= 3)
    True
    """
    own = TableEncoder().get_params()
    encoder = {name: parameters.pop(name) for name in own.keys() & parameters.keys()}
    voting: dict[str, Any] = {"exclusivity": np.inf, "voting": "hard", "class_weight": "balanced"}
    known = ERMClassifier().get_params()
    unknown = sorted(parameters.keys() - known.keys())
    if unknown:
        raise TypeError(
            f"{unknown[0]!r} is a parameter neither of ERMClassifier nor of TableEncoder; they have "
            f"{', '.join(sorted({*known, *own}))}."
        )
    classifier = ERMClassifier(n_estimators, C=C, **(voting | parameters))
    steps = [("encoder", TableEncoder(numeric, **encoder))]
    if interactions:
        steps.append(("interactions", interactions_for(classifier)))
    return Pipeline([*steps, ("classifier", classifier)])


def interactions_for(classifier: ERMClassifier) -> InteractionFeatures:
    """A step that divides the columns as the classifier would have done; each member then has one group.

    The classifier is changed: nothing is left for it to divide.
    """
    if not np.isinf(classifier.exclusivity) or classifier.voting == "soft":
        raise ValueError(
            "interactions=True needs members with columns of their own and a vote: exclusivity=np.inf, and "
            f"voting='hard' or 'runoff'; got {classifier.exclusivity!r} and {classifier.voting!r}."
        )
    voters = clone(classifier).set_params(C=SEARCH_COST)
    classifier.set_params(partition="learned", feature_groups=None)
    return InteractionFeatures(voters, random_state=classifier.random_state)
