"""Rows in memory: features, labels and weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from exclusivity.problem.arrays import Floats
from exclusivity.problem.design import DesignMatrix


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """N rows of a binary problem.

    Parameters
    ----------
    design : DesignMatrix
        Their features.
    labels : ndarray of shape (N,)
        -1 or +1.
    weights : ndarray of shape (N,)
        Sample weights s_i > 0. (Leave rows of weight 0 out: they have no dual variable.)
    """

    design: DesignMatrix
    labels: Floats
    weights: Floats

    def __post_init__(self) -> None:
        n_rows = self.design.n_rows
        if self.labels.shape != (n_rows,) or self.weights.shape != (n_rows,):
            raise ValueError(
                f"X has {n_rows} rows, but labels have shape {self.labels.shape} "
                f"and weights {self.weights.shape}."
            )
        if not np.all(np.abs(self.labels) == 1):
            raise ValueError("labels must be -1 or +1.")
        if not np.all(np.isfinite(self.weights) & (self.weights > 0)):
            raise ValueError("weights must be positive and finite; leave rows of weight 0 out.")


@dataclass(frozen=True)
class Contrast:
    """Which class numbers a binary problem sets against each other.

    Parameters
    ----------
    name : str
        For messages.
    positive : int
        The class whose rows have label +1.
    negative : int or None
        The class whose rows have label -1; None: all the rest.
    """

    name: str
    positive: int
    negative: int | None = None
