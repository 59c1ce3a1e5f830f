"""The best point of a plane through the current one: a step by one product with X and one with X^T.

A point w + sum_j t_j d_j has the shortfalls m + sum_j t_j z_j with z_j = -y (X d_j). Once the z_j are known,

    q(t) = 1/2 |w + sum_j t_j d_j|^2 + sum_i theta_i(m_i + sum_j t_j z_ij)

is minimised over t by Newton's method in two or three numbers, with no more products: the directions are the
gradient and the last step, and the intercept is one more (d = 0, z = -y). On a quadratic these are the steps
of conjugate gradients. On a loss with corners they stay so while rows come and go, where a Newton system
would have to be made anew: every product sees the slopes as they are, and no system goes out of date.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack

from exclusivity._typing import Floats
from exclusivity.rows.design import UNIT
from exclusivity.solvers.newton.rounding import Balanced, RoundedLoss

_MAX_STEPS = 6
_MAX_CUTS = 8
# The search ends where another step would bring this share of what the first one did (tried: 0.001 to 0.1).
_ENOUGH = 0.01
# A step is shortened while the slope at its end is more than this share of that at its start, upwards.
_OVERSHOT = 0.5
# Keeps directions that are nearly the same apart.
_RIDGE = 1e-13


class Direction(NamedTuple):
    """A change of the weights, what it does to shortfalls, how long it is, and how far these may be off."""

    weights: Floats
    shortfall: Floats
    length: float
    error: float


class Plane:
    """The plane through a point that some directions span, the intercept being one more.

    Parameters
    ----------
    weights : ndarray of shape (n_features,)
        w, the point.
    directions : list of Direction
        The d_j with their z_j.
    y : ndarray of shape (n_rows,) or None
        The labels, where there is an intercept.
    """

    def __init__(self, weights: Floats, directions: list[Direction], y: Floats | None) -> None:
        self._directions = directions
        lines = [each.shortfall for each in directions]
        self._lines = np.array(lines if y is None else [*lines, -y])
        self._slopes, self._gram = np.zeros(len(self._lines)), np.zeros((len(self._lines),) * 2)
        for j, one in enumerate(directions):
            self._slopes[j], self._gram[j, j] = weights @ one.weights, one.length**2
            for k, other in enumerate(directions[:j]):
                self._gram[j, k] = self._gram[k, j] = one.weights @ other.weights

    def best(self, loss: RoundedLoss, here: Balanced) -> Floats | None:
        """The t of the minimiser of q, to within a hundredth of what there is to gain; None where nothing is.

        ``here`` holds m, slopes and curvatures at t = 0.
        """
        lines, lengths, first, h = self._lines, np.zeros(len(self._lines)), 0.0, here.curvatures
        gradient = self._slopes + lines @ here.slopes
        shortfall = here.shortfall
        for _ in range(_MAX_STEPS):
            step = _solved(self._gram + _curvature(lines, h), -gradient)
            gain = -float(gradient @ step)
            if not 0 < gain < np.inf or gain <= _ENOUGH * first:
                break
            first, length, along = max(first, gain), 1.0, step @ lines
            for _ in range(_MAX_CUTS):
                moved = shortfall + length * along
                alpha, h = loss.derivatives(moved)
                gradient = self._slopes + self._gram @ (lengths + length * step) + lines @ alpha
                at_end = float(gradient @ step)
                if at_end <= _OVERSHOT * gain:
                    break
                length *= gain / (gain + at_end)
            lengths, shortfall = lengths + length * step, moved
        return lengths if lengths.any() else None

    def step(self, lengths: Floats, longest_row: float) -> Direction:
        """The step to a point of the plane, without the intercept.

        Its parts may be larger than their sum: |t_j z_ij| <= |t_j| |d_j| |x_i| is what is rounded, in the
        shortfalls as in the weights.
        """
        used = lengths[: len(self._directions)]
        weights, error = used[0] * self._directions[0].weights, 0.0
        for t, each in zip(used[1:], self._directions[1:], strict=True):
            weights += t * each.weights
        for t, each in zip(used, self._directions, strict=True):
            error += abs(float(t)) * (each.error + 8 * UNIT * longest_row * each.length)
        return Direction(weights, used @ self._lines[: len(used)], float(weights @ weights) ** 0.5, error)


def _curvature(lines: Floats, h: Floats) -> Floats:
    """sum_i h_i z_ij z_ik, by products of vectors: of matrices so thin BLAS makes twice the time."""
    size = len(lines)
    total = np.empty((size, size))
    for j in range(size):
        weighted = lines[j] * h
        for k in range(j, size):
            total[j, k] = total[k, j] = weighted @ lines[k]
    return total


def _solved(matrix: Floats, right: Floats) -> Floats:
    """The solution of a tiny positive semi-definite system; lines that change nothing stay where they are."""
    scale = np.sqrt(matrix.diagonal())
    scale[scale == 0] = 1.0
    matrix = matrix / (scale * scale[:, None])
    matrix.reshape(-1)[:: len(matrix) + 1] = 1 + _RIDGE
    solution, info = lapack.dposv(matrix, right / scale)[1:]
    return np.asarray(solution / scale) if info == 0 else np.zeros_like(right)
