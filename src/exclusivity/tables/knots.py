"""Piecewise linear curves of one number: where they may bend, and the functions that span them."""

from __future__ import annotations

import numpy as np

from exclusivity.problem.arrays import Floats, Ints

# Standardised values that differ by less are one value: a curve needs room to climb.
_CLOSEST = 1e-9
# Up to so many comparisons of all values are quicker than a search for each.
_FEW_KNOTS = 16


def place_knots(values: Floats, n_knots: int) -> Floats:
    """Where a curve through these values may bend: increasing, the smallest and the largest among them.

    Knots are quantiles. A value that more than its share of the rows have (a zero, as a rule) gets a knot of
    its own, and the quantiles are those of the other values: ties take no knots away. Of up to ``n_knots``
    distinct values each is a knot.

    Parameters
    ----------
    values : ndarray
        Finite numbers, standardised.
    n_knots : int
        How many, about; at least 2.

    Returns
    -------
    knots : ndarray
        Empty where there are less than three: a straight line says it all.

    Examples
    --------
    >>> place_knots(np.r_[np.zeros(90), np.arange(1.0, 11.0)], 4)
    array([ 0. ,  1. ,  5.5, 10. ])
    """
    values = np.sort(values)
    starts = np.flatnonzero(np.r_[True, values[1:] != values[:-1]])
    distinct = values[starts]
    if len(distinct) <= n_knots:
        return _apart(distinct)
    counts = np.diff(starts, append=len(values))
    is_heavy = counts * (n_knots - 1) > len(values)
    heavy = distinct[is_heavy]
    light = values if not len(heavy) else np.repeat(distinct[~is_heavy], counts[~is_heavy])
    shares = np.linspace(0, 1, max(2, n_knots - len(heavy)))
    return _apart(np.unique(np.concatenate([heavy, np.quantile(light, shares), distinct[[0, -1]]])))


def _apart(knots: Floats) -> Floats:
    """Knots with room between them; none where a straight line is all that is left."""
    keep = np.r_[True, np.diff(knots) > _CLOSEST]
    kept = knots[keep]
    return kept if len(kept) > 2 else np.empty(0)


def hats(values: Floats, knots: Floats) -> tuple[Ints, Floats]:
    """The two hat functions that are not zero at each value.

    Hat number j is 1 at knot j, 0 at every other knot, and linear between them; outside of the knots
    everything stays as it is at the nearest one. So all hats add up to 1, and none leaves [0, 1].

    Parameters
    ----------
    values : ndarray
        Finite numbers.
    knots : ndarray
        At least two, increasing.

    Returns
    -------
    first : ndarray of int
        The number of the lower hat; the upper one is the next.
    upper : ndarray
        The value of the upper hat; that of the lower one is 1 minus this.

    Examples
    --------
    >>> hats(np.array([0.25, 7.0]), np.array([0.0, 1.0, 2.0]))
    (array([0, 1]), array([0.25, 1.  ]))
    """
    inner = knots[1:-1]
    if len(inner) <= _FEW_KNOTS:
        count = np.zeros(len(values), dtype=np.int8)
        for knot in inner:
            count += (values >= knot).view(np.int8)
        first = count.astype(np.intp)
    else:
        first = np.searchsorted(inner, values, side="right")
    upper = values - knots[first]
    upper /= (knots[1:] - knots[:-1])[first]
    return first, within(upper, 0.0, 1.0)


def within(values: Floats, low: float, high: float) -> Floats:
    """Numbers that are too small or too large, replaced in place; quicker than ``np.clip`` on few."""
    np.maximum(values, low, out=values)
    return np.minimum(values, high, out=values)
