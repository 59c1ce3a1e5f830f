"""What a penalty on one member's weights gives: the contract between regularisers and solvers.

By the equivalence theorem (``Objective.reduced``) solvers minimise g(w) + sum_i c_i phi(m_i) over one member.
The penalty g is 1/2 |w|^2 plus, feature by feature, something convex that is smallest at zero. Its conjugate
g*(u) = sup_w u . w - g(w) is what the dual pays for u = X^T (y alpha); the w that attains it is the member
that goes with alpha.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from exclusivity.problem.arrays import Bools, Floats


class Penalty(ABC):
    """A penalty on the weights of one member.

    Attributes
    ----------
    is_smooth : bool
        Whether it is 1/2 |w|^2 and nothing else, so that Newton steps on the primal see all of it.
    kinks : float or ndarray of shape (n_features,)
        Half the jump of the slope at zero, for all features or for each; where it is positive weights can be
        exactly zero.
    """

    is_smooth: bool
    kinks: float | Floats

    @abstractmethod
    def value(self, weights: Floats) -> float:
        """g(w)."""

    @abstractmethod
    def prox(self, point: Floats, step: float) -> Floats:
        """argmin_w  step g(w) + |w - point|^2 / 2."""

    @abstractmethod
    def largest_conjugate(self, dual_weights: Floats, reach: float, reaches: Floats) -> float:
        """At least g*(u) for every u so close to ``dual_weights``: what rounding may have done to a sum.

        ``reach`` bounds the distance of the two vectors, ``reaches`` that of every feature.
        """

    @abstractmethod
    def uses(self, dual_weights: Floats) -> Bools:
        """Which weights of the w that attains g*(dual_weights) are not exactly zero."""
