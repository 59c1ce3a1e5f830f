"""Callbacks for ``ERMClassifier.set_callbacks`` (scikit-learn's callback protocol, 1.9 and newer)."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator


__all__ = ["TimeLimit"]


class TimeLimit:
    """End a fit after a number of seconds, with what it has reached by then.

    The limit is looked at after every iteration. A fit that was cut short has ``converged_ == False``
    and a valid ``dual_gap_``.

    Parameters
    ----------
    seconds : float
        How long a fit may take.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from exclusivity import ERMClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> clf = ERMClassifier(solver="alm", tol=1e-12, max_iter=10**6)
    >>> clf = clf.set_callbacks(TimeLimit(0.05)).fit(X, y)
    >>> bool(clf.converged_.all())
    False
    """

    def __init__(self, seconds: float) -> None:
        if not seconds > 0:
            raise ValueError(f"seconds must be positive; got {seconds!r}.")
        self.seconds = seconds

    def setup(self, estimator: BaseEstimator, context: object) -> None:
        """Start the clock."""
        self._end = monotonic() + self.seconds

    def on_fit_task_begin(self, estimator: BaseEstimator, context: object) -> None:
        """Nothing to do."""

    def on_fit_task_end(self, estimator: BaseEstimator, context: object) -> bool:
        """Return whether time is up."""
        return monotonic() >= self._end

    def teardown(self, estimator: BaseEstimator, context: object) -> None:
        """Nothing to do."""
