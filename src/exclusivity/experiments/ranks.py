"""Ranks of methods over data sets, and whether they mean anything: Friedman's test and Nemenyi's distance.

J. Demsar, "Statistical Comparisons of Classifiers over Multiple Data Sets", JMLR 7, 2006.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from exclusivity.problem.arrays import Floats

# Means of trials that are equal in exact arithmetic may differ in their last digit.
_DECIMALS = 9


def ranks(errors: Mapping[str, float]) -> dict[str, float]:
    """1 for the lowest error; ties share the mean of their ranks.

    Examples
    --------
    >>> ranks({"a": 20.0, "b": 10.0, "c": 20.0})
    {'a': 2.5, 'b': 1.0, 'c': 2.5}
    """
    values = stats.rankdata(np.round(list(errors.values()), _DECIMALS))
    return dict(zip(errors, map(float, values), strict=True))


def rank_if_added(error: float, others: Sequence[float]) -> float:
    """The rank that one more method would take among others.

    Examples
    --------
    >>> rank_if_added(15.0, [10.0, 20.0])
    2.0
    """
    return float(stats.rankdata(np.round([error, *others], _DECIMALS))[0])


@dataclass(frozen=True)
class Friedman:
    """Friedman's test of whether the methods differ at all."""

    statistic: float
    p_value: float


def friedman(rank_matrix: Floats) -> Friedman | None:
    """The test on an (n_sets, n_methods) matrix of ranks; None for fewer than two sets or three methods."""
    n_sets, n_methods = rank_matrix.shape
    if n_sets < 2 or n_methods < 3:
        return None
    sums = rank_matrix.sum(axis=0)
    ties = sum(
        float(np.sum(counts**3 - counts))
        for counts in (np.unique(row, return_counts=True)[1] for row in rank_matrix)
    )
    correction = 1 - ties / (n_sets * n_methods * (n_methods**2 - 1))
    if correction == 0:  # all methods equal everywhere
        return Friedman(0.0, 1.0)
    spread = 12 / (n_sets * n_methods * (n_methods + 1)) * np.sum(sums**2) - 3 * n_sets * (n_methods + 1)
    statistic = float(spread / correction)
    return Friedman(statistic, float(stats.chi2.sf(statistic, n_methods - 1)))


def critical_difference(n_methods: int, n_sets: int, alpha: float = 0.05) -> float:
    """Nemenyi: average ranks that differ by less than this cannot be told apart.

    Examples
    --------
    >>> round(critical_difference(4, 14), 2)
    1.25
    """
    q = stats.studentized_range.ppf(1 - alpha, n_methods, np.inf) / np.sqrt(2)
    return float(q * np.sqrt(n_methods * (n_methods + 1) / (6 * n_sets)))


def groups(average_ranks: Mapping[str, float], distance: float) -> list[list[str]]:
    """Maximal groups of at least two methods, by rank, whose ranks differ by less than ``distance``.

    Examples
    --------
    >>> groups({"a": 1.0, "b": 1.5, "c": 3.0}, 1.0)
    [['a', 'b']]
    """
    ordered = sorted(average_ranks, key=lambda name: average_ranks[name])
    found: list[list[str]] = []
    last_end = 0
    for start, first in enumerate(ordered):
        end = start
        while end < len(ordered) and average_ranks[ordered[end]] - average_ranks[first] < distance:
            end += 1
        if end - start >= 2 and end > last_end:
            found.append(ordered[start:end])
            last_end = end
    return found
