"""The parameters that all ensembles have, by name and type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

ClassWeight = Mapping[Any, float] | str | None
RandomState = int | np.random.RandomState | None


class ErmParameters(Protocol):
    """The parameters of an ensemble, as ``ERMClassifier`` and its kin have them."""

    n_estimators: int
    C: float
    loss: str
    p: float
    exclusivity: float
    sparsity: float
    coef_bounds: Any
    monotonic_cst: Any
    voting: str
    feature_groups: object
    partition: ArrayLike
    solver: str
    solver_options: dict[str, Any] | None
    tol: float
    max_iter: int | None
    fit_intercept: bool
    class_weight: ClassWeight
    multi_class: str
    warm_start: bool
    random_state: RandomState
    n_jobs: int | None
    verbose: int


MINIMISED = (
    *("n_estimators", "C", "loss", "p", "exclusivity", "sparsity"),
    *("coef_bounds", "monotonic_cst", "fit_intercept", "multi_class"),
)
"""The parameters that say what is minimised on given rows; the others say how."""


def shared_parameters(estimator: BaseEstimator, kind: type[BaseEstimator]) -> dict[str, Any]:
    """The parameters of an estimator that another kind of estimator has, too."""
    names = kind._get_param_names()
    return {name: value for name, value in estimator.get_params(deep=False).items() if name in names}
