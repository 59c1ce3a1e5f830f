"""What a peer is: a name, what it does with the intercept, a ladder of settings, and a fit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from exclusivity.problem.arrays import Matrix

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

Floats = NDArray[np.float64]

PENALISED = "a constant feature of value {}, penalised with the weights"
FREE = "free, not penalised"


@dataclass(frozen=True)
class Setting:
    """One run: the problem's two numbers, the step of the ladder, and the threads it may use."""

    cost: float
    p: int
    step: float
    threads: int = 1


@dataclass(frozen=True, eq=False)
class Solution:
    """What a fit gives: weights of shape (n_features, n_problems), intercepts of shape (n_problems,)."""

    weights: Floats
    intercepts: Floats

    @classmethod
    def of_estimator(cls, model: BaseEstimator) -> Solution:
        """From ``coef_`` and ``intercept_``."""
        weights = np.atleast_2d(np.asarray(model.coef_, dtype=float)).T
        intercepts = np.broadcast_to(np.asarray(model.intercept_, dtype=float), weights.shape[1:])
        return cls(weights, np.array(intercepts))

    @classmethod
    def stack(cls, pairs: list[tuple[Any, float]]) -> Solution:
        """From one vector and one number per binary problem."""
        weights = np.column_stack([np.asarray(weights, dtype=float).ravel() for weights, _ in pairs])
        return cls(weights, np.array([intercept for _, intercept in pairs], dtype=float))


Action = Callable[[], Solution]
"""What is timed. It may be called again, and starts from nothing every time."""


@dataclass(frozen=True)
class Peer:
    """A solver in the benchmark.

    Attributes
    ----------
    name : str
        What ``--peers`` calls it.
    title : str
        What it is.
    module : str
        What must be importable; without it the peer is skipped with a message.
    intercept : str
        What it does with the intercept.
    prepare : callable
        ``prepare(X, y, setting)`` gives the action that is timed. Only conversions that a user of the
        package would not pay for again may happen here.
    ladder, quick_ladder : tuple of float
        From coarse to fine: tolerances, or numbers of epochs.
    step : str
        What the numbers of the ladder are.
    powers : tuple of int
        The p it can minimise.
    ours : bool
        Whether it is part of this package.
    yardstick : bool
        Whether it minimises another objective, so that only the time to its own convergence can be told: that
        is shown apart, and no claim counts it.
    certify : callable or None
        ``certify(X, y, setting)`` gives one dual vector per binary problem, outside of the timing.
    """

    name: str
    title: str
    module: str
    intercept: str
    prepare: Callable[[Any, Floats, Setting], Action]
    ladder: tuple[float, ...] = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
    quick_ladder: tuple[float, ...] = (1e-1, 1e-2, 1e-4, 1e-6)
    step: str = "tol"
    powers: tuple[int, ...] = (1, 2)
    ours: bool = False
    yardstick: bool = False
    certify: Callable[[Any, Floats, Setting], list[Floats]] | None = None

    def absence(self) -> str | None:
        """Why it cannot run here; None where it can."""
        if find_spec(self.module.partition(".")[0]) is None:
            return f"{self.module} is not installed (pip install 'exclusivity[bench]')"
        return None

    def steps(self, quick: bool) -> tuple[float, ...]:
        """The ladder."""
        return self.quick_ladder if quick else self.ladder


def with_constant(X: Matrix) -> Any:
    """X and a column of ones, for solvers that know no intercept: dense, or CSR.

    Examples
    --------
    >>> with_constant(np.array([[2.0], [3.0]])).tolist()
    [[2.0, 1.0], [3.0, 1.0]]
    """
    ones = np.ones((X.shape[0], 1))
    return sparse.hstack([X, ones], format="csr") if sparse.issparse(X) else np.hstack([X, ones])


def binary_labels(y: Floats) -> list[Floats]:
    """-1/+1 labels of every binary problem: y itself for two classes, else one class against the rest.

    Examples
    --------
    >>> binary_labels(np.array([0.0, 2.0, 1.0]))[2]
    array([-1.,  1., -1.])
    """
    classes = np.unique(y)
    if len(classes) == 2:
        return [np.where(y == classes[1], 1.0, -1.0)]
    return [np.where(y == each, 1.0, -1.0) for each in classes]
