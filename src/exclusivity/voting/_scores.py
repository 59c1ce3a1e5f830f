"""From the scores of linear members to votes: one score per binary problem, one-vs-rest or one-vs-one.

``scores`` has shape (n_samples, n_problems, n_members) throughout; the averaged model is one member. ``xp``
is numpy, or the namespace of ``exclusivity.io.onnx`` that writes the same operations as an ONNX graph.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from exclusivity._typing import Bools, Floats, Ints

# Beyond this a margin only tells its sign; sums of such margins stay finite.
_LARGEST_MARGIN = 1e150


@dataclass(frozen=True, eq=False)
class Election:
    """All that a voting rule needs to know of the members, for some rows."""

    votes: Any
    """The class that each member votes for, (n_samples, n_members) of int."""
    liking: Any
    """Numbers between -0.49 and 0.49, which break ties, (n_samples, n_classes): the higher one wins."""
    n_classes: int
    prefer_first: Callable[[Any, Any], Any] | None = None
    """``prefer_first(first, second)``, with class numbers of shape (n_samples,), tells whether each member
    prefers the first class to the second, (n_samples, n_members). None where members rank no classes."""
    copies: int = 1
    """How many equal members each one stands for."""
    xp: Any = np

    @property
    def counts(self) -> Any:
        """The number of votes for each class, (n_samples, n_classes)."""
        return self.copies * votes_by_class(self.votes, self.n_classes, self.xp)


def election_of_scores(
    scores: Any, n_classes: int, multi_class: str, copies: int = 1, xp: Any = np, present: Any = None
) -> Election:
    """Return what members say about more than two classes; the mean of their margins breaks ties.

    ``present``, (n_samples, n_members), is 1 for members that vote and 0 for those that abstain; None: all
    vote.
    """
    scores = finite(scores, xp)
    votes, margins = _choices(scores, n_classes, multi_class, xp)
    if present is not None:
        votes = (votes + 1) * present - 1
        margins = margins * xp.expand_dims(present, axis=1)

    def prefer_first(first: Any, second: Any) -> Any:
        if multi_class == "ovo":
            prefers = _chosen(scores, pair_numbers(first, second, n_classes), xp) > 0
        else:
            prefers = _chosen(scores, first, xp) >= _chosen(scores, second, xp)
        return prefers if present is None else prefers.astype(np.int64) * present

    return Election(votes, squash(xp.mean(margins, axis=2), xp), n_classes, prefer_first, copies, xp)


def _chosen(scores: Any, numbers: Any, xp: Any) -> Any:
    """Return the scores of one problem in each row, (n_samples, n_members)."""
    index = xp.expand_dims(xp.expand_dims(numbers, axis=1), axis=2)
    return xp.squeeze(xp.take_along_axis(scores, index, axis=1), axis=1)


def votes_by_class(votes: Any, n_classes: int, xp: Any = np) -> Any:
    """Return how many members vote for each class, (n_samples, n_classes); negative votes are none."""
    return xp.sum(xp.expand_dims(votes, axis=1) == np.arange(n_classes)[:, None], axis=2)


def member_votes(scores: Any, n_classes: int, multi_class: str, xp: Any = np) -> Any:
    """Return the number of the class that each member votes for, (n_samples, n_members).

    A margin that is infinite or NaN votes like any other: NaN like zero, infinities by their sign.
    """
    scores = finite(scores, xp)
    if n_classes == 2:
        return (xp.take(scores, 0, axis=1) > 0).astype(np.intp)
    return _choices(scores, n_classes, multi_class, xp)[0]


def _choices(scores: Any, n_classes: int, multi_class: str, xp: Any) -> tuple[Any, Any]:
    """Return the votes of members, and their margins by class, for more than two classes."""
    if multi_class == "ovr":
        return xp.argmax(scores, axis=1), scores
    wins, margins = pair_tallies(scores, n_classes, xp)
    # Margins decide among the classes with most wins.
    ranked = xp.where(wins == xp.max(wins, axis=1, keepdims=True), margins, -np.inf)
    return xp.argmax(ranked, axis=1), margins


def class_scores(scores: Any, n_classes: int, multi_class: str, xp: Any = np) -> Any:
    """Return every member's score of every class, for more than two classes.

    The shape is (n_samples, n_classes, n_members). One-vs-rest scores are that already. Of one-vs-one scores
    each class gets one vote per pair it wins plus the squashed sum of its margins in all its pairs.
    """
    if multi_class == "ovr":
        return scores
    wins, margins = pair_tallies(scores, n_classes, xp)
    return wins + squash(margins, xp)


def pair_tallies(scores: Any, n_classes: int, xp: Any = np) -> tuple[Any, Any]:
    """Return how many pairs each class wins, and the sum of its margins in all its pairs (one-vs-one)."""
    is_first = _is_first(n_classes)
    first_wins = by_class(scores > 0, n_classes, xp)
    margins = by_class(scores, n_classes, xp) * np.where(is_first, 1.0, -1.0)
    return xp.sum(first_wins == is_first, axis=2), xp.sum(margins, axis=2)


def by_class(values: Any, n_classes: int, xp: Any = np) -> Any:
    """Return values of pairs, (n_samples, n_classes, n_classes - 1, n_members): one for each rival."""
    numbers = np.empty((n_classes, n_classes), dtype=np.int64)
    for pair, (i, j) in enumerate(combinations(range(n_classes), 2)):
        numbers[i, j] = numbers[j, i] = pair
    return xp.take(values, numbers[~np.eye(n_classes, dtype=bool)].reshape(n_classes, -1), axis=1)


def _is_first(n_classes: int) -> Bools:
    """Return whether a class is the first one of its pairs, in the shape of ``by_class``."""
    return (np.arange(n_classes - 1) >= np.arange(n_classes)[:, None])[:, :, None]


def pair_numbers(first: Any, second: Any, n_classes: int) -> Any:
    """Return the places of the pairs (first, second), first < second, in the order of one-vs-one problems."""
    return first * (2 * n_classes - first - 1) // 2 + second - first - 1


def finite(scores: Any, xp: Any = np) -> Any:
    """Return margins that can be added up: NaN is zero, and what is too large only keeps its sign."""
    return xp.clip(xp.where(xp.isnan(scores), 0.0, scores), -_LARGEST_MARGIN, _LARGEST_MARGIN)


def squash(scores: Any, xp: Any = np) -> Any:
    """Map increasingly into [-0.49, 0.49]: a margin that breaks ties and never outweighs a vote."""
    return 0.49 * scores / (1 + xp.abs(scores))


def top_two(scores: Any, n_classes: int, xp: Any = np) -> tuple[Any, Any]:
    """Return the two classes with the highest scores, the lower number first; of equals the first ones."""
    best = xp.argmax(scores, axis=1)
    others = xp.where(xp.expand_dims(best, axis=1) == np.arange(n_classes), -np.inf, scores)
    second = xp.argmax(others, axis=1)
    return xp.minimum(best, second), xp.maximum(best, second)


def winning_codes(scores: Floats) -> Ints:
    """Return the number of the class that the scores of ``decision_function`` choose, for every row."""
    return np.asarray(scores > 0 if scores.ndim == 1 else scores.argmax(axis=1), dtype=np.intp)
