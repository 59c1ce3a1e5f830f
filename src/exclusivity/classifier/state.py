"""All that a fit leaves behind, as one value: what a model file stores and a loaded classifier gets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from exclusivity.classifier.ensemble import Ensemble
from exclusivity.classifier.radius import Ints
from exclusivity.problem.arrays import Floats
from exclusivity.solvers import History


@dataclass(frozen=True, eq=False)
class FittedState:
    """The fitted part of an ``ERMClassifier``; its parameters are ``get_params()``.

    What ``warm_start=True`` keeps of the solver, some numbers per training row, is left out: a warm start
    without it begins at the same weights.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,)
    ensemble : Ensemble
    multi_class : {"ovr", "ovo"}
        As it was at the time of the fit, like ``exclusivity``.
    exclusivity : float
    objective, dual_gap : ndarray of shape (n_problems,), float64
    converged : ndarray of shape (n_problems,), bool
    n_iter : ndarray of shape (n_problems,), int64
    history : list of History
    n_features : int
    feature_names : ndarray of shape (n_features,), object, or None
    groups : ndarray of shape (n_features,), intp
        Numbers of the feature groups.
    partition : ndarray of shape (n_groups,), intp, or None
        The member that owns each group, where members compete for features.

    Examples
    --------
    >>> from exclusivity import ERMClassifier
    >>> model = ERMClassifier(2).fit([[0.0], [1.0]], [0, 1])
    >>> twin = FittedState.of(model).restore(ERMClassifier(2))
    >>> twin.predict([[0.1], [0.9]])
    array([0, 1])
    """

    classes: NDArray[Any]
    ensemble: Ensemble
    multi_class: str
    exclusivity: float
    objective: Floats
    dual_gap: Floats
    converged: NDArray[np.bool_]
    n_iter: NDArray[np.int64]
    history: list[History]
    n_features: int
    feature_names: NDArray[Any] | None
    groups: Ints
    partition: Ints | None

    @classmethod
    def of(cls, estimator: Any) -> Self:
        """The state of a fitted classifier."""
        check_is_fitted(estimator)
        return cls(
            classes=estimator.classes_,
            ensemble=estimator._ensemble,
            multi_class=estimator._fitted_multi_class,
            exclusivity=estimator._fitted_exclusivity,
            objective=estimator.objective_,
            dual_gap=estimator.dual_gap_,
            converged=estimator.converged_,
            n_iter=estimator.n_iter_,
            history=estimator.history_,
            n_features=estimator.n_features_in_,
            feature_names=getattr(estimator, "feature_names_in_", None),
            groups=estimator.groups_,
            partition=getattr(estimator, "partition_", None),
        )

    def restore(self, estimator: Any) -> Any:
        """Make an unfitted classifier the fitted one that this state was taken from."""
        optional = {"feature_names_in_": self.feature_names, "partition_": self.partition}
        estimator.__dict__.update(
            classes_=self.classes,
            _ensemble=self.ensemble,
            _fitted_multi_class=self.multi_class,
            _fitted_exclusivity=self.exclusivity,
            _starts=[],
            objective_=self.objective,
            dual_gap_=self.dual_gap,
            converged_=self.converged,
            n_iter_=self.n_iter,
            history_=self.history,
            groups_=self.groups,
            n_features_in_=self.n_features,
            **{name: value for name, value in optional.items() if value is not None},
        )
        return estimator
