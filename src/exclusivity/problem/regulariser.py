"""The exclusivity regulariser: its value, its exact proximal map, and the paper's Algorithm 1.

For row j of the M x K matrix W (feature j across the members), with gamma = ``exclusivity`` and
beta = ``sparsity``, it charges

    gamma/2 |W_j|_1^2  +  (1 - gamma)/2 |W_j|_2^2  +  beta |W_j|_1 .

gamma = 1, beta = 0 is the paper's 1/2 |W^T|_{1,2}^2, Eq. (4); gamma = 0 leaves K independent SVMs;
beta > 0 is the extension of the paper's conclusion, W~ = [W, beta 1]. gamma = inf is the limit of growing
gamma: what two members share costs infinitely much, what one member has alone costs 1/2 w^2 + beta |w|.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from exclusivity.problem.arrays import Floats


@dataclass(frozen=True)
class ExclusivityRegulariser:
    """gamma/2 |W_j|_1^2 + (1-gamma)/2 |W_j|_2^2 + beta |W_j|_1, summed over the rows of W.

    Parameters
    ----------
    exclusivity : float
        The paper's gamma >= 0. Convex in W for gamma <= 1; at ``inf`` every feature belongs to one member.
    sparsity : float or ndarray of shape (n_features,)
        The penalty beta >= 0, for all features or for each.

    Examples
    --------
    >>> import numpy as np
    >>> ExclusivityRegulariser().value(np.array([[1.0, -2.0]]))
    4.5
    >>> ExclusivityRegulariser(np.inf).value(np.array([[1.0, -2.0]]))
    inf
    """

    exclusivity: float = 1.0
    sparsity: float | Floats = 0.0

    def __post_init__(self) -> None:
        if not self.exclusivity >= 0:
            raise ValueError(f"exclusivity must be a number >= 0, or infinite; got {self.exclusivity!r}.")
        if not np.all(np.isfinite(self.sparsity) & (np.asarray(self.sparsity) >= 0)):
            raise ValueError(f"sparsity must be a finite number >= 0; got {self.sparsity!r}.")

    @cached_property
    def has_l1(self) -> bool:
        """Whether any feature has an l1 penalty of its own, beta > 0."""
        return bool(np.any(self.sparsity))

    def kappa(self, n_members: int) -> float:
        """1 + gamma (K - 1): how many times stiffer K equal members are than one SVM."""
        return 1.0 if n_members == 1 else 1.0 + self.exclusivity * (n_members - 1)

    def value(self, weights: Floats) -> float:
        """The regulariser of the M x K matrix ``weights``."""
        row_sums = np.abs(weights).sum(axis=1)
        squares = np.einsum("jk,jk->", weights, weights)
        penalty = float(np.sum(self.sparsity * row_sums))
        gamma = self.exclusivity
        if np.isinf(gamma):
            is_shared = np.any(np.count_nonzero(weights, axis=1) > 1)
            return np.inf if is_shared else float(squares / 2) + penalty
        return float(gamma / 2 * (row_sums @ row_sums) + (1 - gamma) / 2 * squares) + penalty

    @property
    def _per_row(self) -> Floats:
        """Beta as a column, one entry or one per feature."""
        return np.asarray(self.sparsity, dtype=float)[..., None]

    def prox(self, point: Floats, mu: float) -> Floats:
        """argmin_x  mu/2 |x - v|^2 + regulariser(x) for every row v of ``point``, exactly.

        Soft-threshold v by beta/mu. With a = mu + 1 - gamma > 0 the rest is strictly convex:
        for z = mu v / a the solution is sign(z) max(|z| - tau, 0), where
        tau = max_k gamma (|z|_(1) + ... + |z|_(k)) / (a + gamma k) over the entries sorted
        downwards. For a <= 0 the mixed terms win and only the largest entry survives.
        """
        shrunk = np.maximum(np.abs(point) - self._per_row / mu, 0.0)
        gamma, a = self.exclusivity, mu + 1 - self.exclusivity
        if a > 0:
            counts = np.arange(1, point.shape[1] + 1)
            ordered = -np.sort(-shrunk, axis=1)
            sums = np.cumsum(ordered, axis=1)
            inside = a * ordered + gamma * (counts * ordered - sums) > 0
            k = np.maximum(inside.sum(axis=1, keepdims=True), 1)
            total = np.take_along_axis(sums, k - 1, axis=1)
            # = (mu/a) (shrunk - gamma total / (a + gamma k)), without the cancellation as a -> 0.
            size = np.maximum((shrunk + gamma / a * (k * shrunk - total)) * (mu / (a + gamma * k)), 0.0)
        else:
            rows, winner = np.arange(point.shape[0]), shrunk.argmax(axis=1)
            size = np.zeros_like(shrunk)
            size[rows, winner] = shrunk[rows, winner] * (mu / (mu + 1))
        return np.asarray(np.copysign(size, point))

    def reweighted(
        self, point: Floats, mu: float, start: Floats, *, eps: float, max_iter: int, tol: float
    ) -> Floats:
        """Algorithm 1 of the paper: the same minimiser as :meth:`prox`, approached by reweighting.

        Eq. (10): G_k = (gamma |H|_1 + beta) / (|H_k| + eps) + 1 - gamma, then
        Eq. (11): H = mu v / (G + mu), row by row, until no entry of a row moves by more than
        ``tol`` times its largest entry. An entry that is zero in ``start`` stays (nearly) zero, and
        entries that should vanish do so slowly: the price of dividing by |H_k|.
        """
        gamma, beta = self.exclusivity, np.broadcast_to(self._per_row, (len(point), 1))
        if mu + 1 - gamma <= 0:
            raise ValueError(
                f"Reweighting needs mu > exclusivity - 1 (here mu={mu:g}, exclusivity={gamma:g}); "
                "use the exact step."
            )
        result = np.array(start, dtype=float)
        active = np.arange(result.shape[0])
        for _ in range(max_iter):
            old = result[active]
            size = np.abs(old)
            stiffness = (gamma * size.sum(axis=1, keepdims=True) + beta[active]) / (size + eps) + 1 - gamma
            new = mu * point[active] / (stiffness + mu)  # Eq. (11)
            result[active] = new
            moved = np.abs(new - old).max(axis=1) > tol * np.abs(new).max(axis=1)
            active = active[moved]
            if active.size == 0:
                break
        return result
