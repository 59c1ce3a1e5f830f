"""How far computed sums may be off: what a certificate has to allow for.

Let u = 2^-53. A sum of n products, added in any order, is off by at most gamma_n sum |products| with
gamma_n = n u / (1 - n u). With the longest row r = max_i |x_i| (or feature by feature, whichever
is less) this gives

* scores:  |error of x_i . w + b|  <=  delta = gamma_(M+1) r |w| + u, and as much for 1 - y (x_i . w + b) but
  for a part relative to itself. The loss of the true shortfalls is at most that of all shortfalls raised by
  delta; where only the sum L = sum_i c_i max(0, m_i)^p is known, Minkowski's inequality gives

      sum_i c_i max(0, m_i + delta)^p  <=  (L^(1/p) + delta (sum_i c_i)^(1/p))^p ;

* pulls:  the vector X^T (y alpha) is off by at most gamma_n r sum_i alpha_i, n rows being added up;
* balance:  what was computed as sum_i y_i alpha_i = 0 is off by tau <= gamma_n sum_i alpha_i. With a free
  intercept the bound holds for sum y alpha = 0 only: taking the mass tau from rows of the heavier class makes
  it so, costs tau, and lengthens X^T (y alpha) by at most r tau.

The first and the last two grow with r: features far from zero cost digits. Sums of numbers of one sign
(losses, squares, conjugates) are off by their share gamma_n alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from exclusivity.problem.arrays import Floats

UNIT = 2.0**-53
"""The relative error of one rounding."""

LONG_UNIT = float(np.finfo(np.longdouble).eps) / 2
"""The same in numpy's longest floats: 2^-64 on most machines, and 2^-53 where there are none."""

_RUN = 4096
# (y m)^(p-1), logarithms times exponents of at most 745 before numbers vanish, and a few products.
_POWER_ROUNDINGS = 800


def gamma(n_roundings: float, unit: float = UNIT) -> float:
    """The relative error after so many roundings of ``unit`` in a row; infinite where nothing is left.

    Parameters
    ----------
    n_roundings : float
        How many roundings.
    unit : float
        The relative error of one.

    Examples
    --------
    >>> gamma(2**43) == 2**-10 / (1 - 2**-10)
    True
    """
    share = n_roundings * unit
    return share / (1 - share) if share < 1 else np.inf


def power_roundings(p: float) -> float:
    """Of one m^p, or of one conjugate of it, whose exponent p / (p - 1) magnifies errors."""
    if p in (1, 2):
        return 16.0
    return _POWER_ROUNDINGS + 4 * (p + p / (p - 1))


def run_terms(n_terms: int) -> int:
    """The longest chain of additions in :func:`weighted_total`."""
    return min(n_terms, _RUN) + n_terms // _RUN


def weighted_total(weights: Floats, values: Floats) -> float:
    """sum_i s_i sum_k v_ik, in runs: a single chain of a million additions could lose six digits."""
    # s^T V 1 as two products: several times faster than a sum along the short axis.
    starts = range(0, len(weights), _RUN)
    return float(sum((weights[at : at + _RUN] @ values[at : at + _RUN]).sum() for at in starts))


@dataclass(frozen=True, eq=False)
class RowScale:
    """What rounding errors of products with rows depend on.

    Parameters
    ----------
    length : float
        The longest row r = max_i |x_i|, or more.
    columns : ndarray of shape (n_features,)
        The largest |x_ij| of every feature: where features differ in their scales, sum_j |w_j| max_i |x_ij|
        is far below r |w|.
    n_terms : int
        So many numbers are in a row, at most.
    offset : float
        The length of what was subtracted from every row, if anything was: with it the intercept loses digits.
    """

    length: float
    columns: Floats
    n_terms: int
    offset: float = 0.0

    def __add__(self, other: RowScale) -> RowScale:
        """The scale of both sets of rows."""
        return RowScale(
            max(self.length, other.length),
            np.maximum(self.columns, other.columns),
            max(self.n_terms, other.n_terms),
            max(self.offset, other.offset),
        )

    def score_error(self, weights: Floats, intercepts: Floats | float) -> Floats:
        """Delta, how far the scores x_i . w_k + b_k may be off: one number for each column of ``weights``."""
        norms = np.sqrt(np.einsum("j...,j...->...", weights, weights))
        # One of the two may be beyond the range of numbers, or infinity times zero.
        reach = np.fmin(self.length * norms, self.columns @ np.abs(weights))
        error = gamma(self.n_terms + 2) * reach + UNIT * (norms > 0)
        if self.offset > 0:
            error = error + 2 * UNIT * (self.offset * norms + np.abs(intercepts))
        return np.asarray(error)


def lower_dual(
    *,
    mass: float,
    moved: float,
    pull: Floats,
    conjugate: float,
    n_roundings: float,
    l1: float | Floats,
    scale: RowScale,
    n_terms: float,
    has_intercept: bool,
    unit: float = UNIT,
) -> float:
    """D(alpha), rounded down: below the value of a vector that is feasible to the last digit.

    Parameters
    ----------
    mass : float
        The sum of alpha_i, before ``moved`` is taken from it.
    moved : float
        What has to be taken from rows to make alpha feasible; conjugates only fall by that.
    pull : ndarray of shape (n_features,)
        X^T (y alpha) with sum y alpha = 0 up to ``moved`` and rounding.
    conjugate : float
        The sum of loss*_i(alpha_i).
    n_roundings : float
        Of one conjugate; see ``MarginLoss``.
    l1 : float or ndarray of shape (n_features,)
        The penalty of one or of each feature.
    scale : RowScale
    n_terms : float
        The longest chain of additions behind these sums.
    has_intercept : bool
        Whether sum y alpha = 0 is needed.
    unit : float
        The relative error of one rounding in ``mass``, ``moved`` and ``pull``.
    """
    lost = gamma(n_terms + 8, unit) * mass
    moved = moved + lost if has_intercept else moved
    shrunk = np.maximum(np.abs(pull) - l1, 0.0)
    by_rows = float(np.linalg.norm(shrunk)) + (moved + lost) * scale.length
    by_columns = float(np.linalg.norm(shrunk + (moved + lost) * scale.columns))
    length = float(np.fmin(by_rows, by_columns)) * (1 + gamma(len(pull) + 2))
    conjugate += gamma(n_terms + n_roundings) * abs(conjugate)
    value = (mass - moved - lost) - length**2 / 2 - conjugate
    return value - 4 * UNIT * (mass + length**2 + conjugate)
