"""A grid of costs that grows while its end predicts best, and a word where the best is at an end."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence

import numpy as np

from exclusivity._typing import Floats, Ints

Outcome = tuple[Floats, Floats, Floats]
"""Of one fold: score, mean number of iterations and largest gap of every C."""

Score = Callable[[Floats], list[Outcome]]
"""The outcomes of all folds for values of C."""

_MOST_DECADES = 3.0
_DECADES_AT_ONCE = 1.0


def search(Cs: Floats, score: Score, *, may_grow: bool) -> tuple[Floats, list[Outcome]]:
    """Score every C on every fold, and go on past an end of the grid that wins.

    A grid that was placed by a guess from the data (:func:`exclusivity.objective.cost_grid`) may end too
    early.
    While the largest, or the smallest, C has the best mean score to itself, a decade is added beyond it with
    the spacing of the grid, three decades at most on either side. Warns where the best is at an end still, or
    at an end of values that somebody chose (then ``may_grow`` is False). Of one or two values one is always
    at an end, which says nothing.

    Parameters
    ----------
    Cs : ndarray of shape (n_Cs,)
        The values to start with.
    score : callable
        Gives the outcomes of all folds for some values of C.
    may_grow : bool
        Whether values may be added.

    Returns
    -------
    Cs : ndarray
        The values tried; in increasing order where some were added.
    outcomes : list of tuples
        One per fold, each array in the order of ``Cs``.
    """
    first, outcomes = Cs, score(Cs)
    end = winning_end(Cs, outcomes)
    while may_grow and end and len(more := _beyond(Cs, first, end)):
        added = score(more)
        order = np.argsort(np.concatenate([Cs, more]), kind="stable")
        Cs = np.concatenate([Cs, more])[order]
        outcomes = [_joined(*pair, order) for pair in zip(outcomes, added, strict=True)]
        end = winning_end(Cs, outcomes)
    if end:
        _warn(Cs, end, may_grow)
    return Cs, outcomes


def winning_end(Cs: Floats, outcomes: Sequence[Outcome]) -> int:
    """1 or -1 where the largest or the smallest C alone has the best mean score, otherwise 0."""
    means = np.mean([scores for scores, *_ in outcomes], axis=0)
    best = np.flatnonzero(means == np.max(means, where=~np.isnan(means), initial=-np.inf))
    if len(Cs) < 3 or len(best) != 1:
        return 0
    return int(Cs[best[0]] == Cs.max()) - int(Cs[best[0]] == Cs.min())


def _joined(old: Outcome, new: Outcome, order: Ints) -> Outcome:
    scores, n_iter, gaps = (np.concatenate(pair)[order] for pair in zip(old, new, strict=True))
    return scores, n_iter, gaps


def _beyond(Cs: Floats, first: Floats, end: int) -> Floats:
    """The next values past an end: about a decade, and none farther out than the bound."""
    step = float(np.log10(first[-1] / first[0])) / (len(first) - 1)
    edge, start = (Cs[-1], first[-1]) if end > 0 else (Cs[0], first[0])
    so_far = abs(float(np.log10(edge / start)))
    at_once = max(1, round(_DECADES_AT_ONCE / step))
    room = int((_MOST_DECADES - so_far) / step + 1e-9)
    return np.asarray(edge * 10.0 ** (end * step * np.arange(1, min(at_once, room) + 1)))


def _warn(Cs: Floats, end: int, has_grown: bool) -> None:
    edge, word, others = (Cs.max(), "largest", "larger") if end > 0 else (Cs.min(), "smallest", "smaller")
    tried = (
        f"of {len(Cs)} values tried, {_MOST_DECADES:g} decades past the usual grid"
        if has_grown
        else f"of the {len(Cs)} values given"
    )
    warnings.warn(
        f"The best C, {edge:.3g}, is the {word} {tried}: {others} ones may predict better. Give "
        f"{others} values of C, or scale the features (StandardScaler).",
        UserWarning,
        stacklevel=4,
    )
