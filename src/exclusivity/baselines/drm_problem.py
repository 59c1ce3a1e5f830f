"""What the Diversity Regularized Machine minimises, as a function of its weight vectors alone.

    min  sum_t ( -nu rho_t + (1/N) sum_i xi_ti^2 )  +  mu sum_{t<t'} |w_t + w_t'|^2
    subject to   y_i x_i . w_t >= rho_t - xi_ti   and   |w_t| <= 1  (relaxed)  or  |w_t| = 1  (sphere).

For given margins m_i = y_i x_i . w the best rho and xi follow: with alpha_i = (2/N) max(0, rho - m_i), the
derivative with respect to rho vanishes where sum_i alpha_i = nu. So alpha is the projection of -(2/N) m onto
the simplex {alpha >= 0, sum alpha = nu}, and every member pays

    phi(w) = -nu rho + (N/4) |alpha|^2,     grad phi(w) = -X^T (y alpha),

a convex function with a Lipschitz gradient. The coupling is mu ((T - 2) sum_t |w_t|^2 + |sum_t w_t|^2).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy import sparse

from exclusivity.problem import DesignMatrix
from exclusivity.problem.arrays import Floats, Matrix

# Margins are told apart by differences of the size of nu.
_LARGEST_ROW = 1e10


def project_onto_simplex(points: Floats, total: float) -> tuple[Floats, Floats]:
    """The nearest point of {a >= 0, sum a = total} to every column, and the level subtracted from it.

    The projection is max(0, point - level). If the k largest entries stay positive, their sum minus total is
    k level; every other k gives less, so the level is the maximum over k.

    Examples
    --------
    >>> import numpy as np
    >>> project_onto_simplex(np.array([0.5, 0.9, -1.0]), 1.0)[0]
    array([0.3, 0.7, 0. ])
    """
    falling = np.sort(points, axis=0)[::-1]
    sizes = np.arange(1, len(points) + 1).reshape(-1, *[1] * (points.ndim - 1))
    level = np.max((np.cumsum(falling, axis=0) - total) / sizes, axis=0)
    return np.maximum(points - level, 0.0), level


@dataclass(frozen=True, eq=False)
class DRMProblem:
    """One binary DRM.

    Parameters
    ----------
    design : DesignMatrix
        The rows y_i x_i.
    n_members : int
        T.
    nu : float
        Weight of the margin rho, positive.
    mu : float
        Weight of the diversity, not negative.
    """

    design: DesignMatrix
    n_members: int
    nu: float
    mu: float

    @classmethod
    def build(cls, X: Matrix, y: Floats, *, n_members: int, nu: float, mu: float) -> Self:
        """A problem from rows and labels -1/+1; X stays float32 or sparse if it is.

        Examples
        --------
        >>> import numpy as np
        >>> problem = DRMProblem.build(np.eye(2), np.array([1.0, -1.0]), n_members=3, nu=0.5, mu=0.1)
        >>> problem.objective(np.zeros((2, 3)))
        -0.1875
        """
        signs = y.astype(X.dtype)
        signed = sparse.diags_array(signs).tocsr() @ X if sparse.issparse(X) else X * signs[:, None]
        problem = cls(DesignMatrix(signed), int(n_members), float(nu), float(mu))
        if problem.row_length() > _LARGEST_ROW * problem.nu:
            raise ValueError(
                f"X has rows as long as {problem.row_length():.1e}; beside margins of that size nu={nu:g} is "
                "lost in rounding. Scale the features (for example with StandardScaler)."
            )
        return problem

    def row_length(self) -> float:
        """The root mean squared length of the rows; 1 if all are zero."""
        squares = self.design.column_scatter(np.ones(self.design.n_rows), np.zeros(self.design.n_features))
        return float(np.sqrt(squares.sum() / self.design.n_rows)) or 1.0

    def fit(self, margins: Floats) -> tuple[Floats, Floats]:
        """The value of phi for every column of margins (or for one vector), and its alpha."""
        n_rows = len(margins)
        alpha, level = project_onto_simplex(margins * (-2 / n_rows), self.nu)
        rho = -level * n_rows / 2
        return np.asarray(-self.nu * rho + n_rows / 4 * np.sum(alpha**2, axis=0)), alpha

    def coupling(self, weights: Floats) -> float:
        """The diversity term, mu sum_{t<t'} |w_t + w_t'|^2."""
        total = weights.sum(axis=1)
        return float(self.mu * ((self.n_members - 2) * np.sum(weights**2) + total @ total))

    def objective(self, weights: Floats) -> float:
        """The value at an M x T matrix of weight vectors."""
        return float(self.fit(self.design.times(weights))[0].sum() + self.coupling(weights))

    def relaxed_bound(self, alpha: Floats) -> float:
        """A lower bound on the relaxed minimum from any alpha in the simplex.

        The relaxed problem is convex and does not change when members are permuted, so T copies of the mean
        member are at least as good as the members: the minimum is T times that of

            phi(w) + d |w|^2,   |w| <= 1,   d = 2 mu (T - 1),

        and for v = X^T (y alpha) the dual of this one problem is

            -(N/4) |alpha|^2 - |v|^2 / (4 d)  where |v| <= 2 d,   else   -(N/4) |alpha|^2 - |v| + d.
        """
        d = 2 * self.mu * (self.n_members - 1)
        length = float(np.linalg.norm(self.design.transposed_times(alpha)))
        pull = length**2 / (4 * d) if length < 2 * d else length - d
        return float(-self.n_members * (self.design.n_rows / 4 * (alpha @ alpha) + pull))
