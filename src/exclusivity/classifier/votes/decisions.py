"""From the scores of members to scores of classes: soft and hard votes and run-offs, binary, ovr and ovo.

``scores`` has shape (n_samples, n_problems, n_members) throughout; the averaged model is one member. Equal
members are asked once, and each of their votes counts ``copies`` times.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from exclusivity._typing import Bools, Floats, Ints

# Beyond this a margin only tells its sign; sums of such margins stay finite.
_LARGEST_MARGIN = 1e150


def squashed(scores: Floats) -> Floats:
    """An increasing map into [-0.49, 0.49]: a margin that breaks ties and never outweighs a vote."""
    wide = np.asarray(scores, dtype=float)
    return np.asarray(0.49 * wide / (1 + np.abs(wide)))


def pair_tallies(scores: Floats, n_classes: int) -> tuple[Floats, Floats]:
    """One-vs-one: how many pairs each class wins, and the sum of its margins in all its pairs."""
    wins = np.zeros((scores.shape[0], n_classes, scores.shape[2]))
    margins = np.zeros_like(wins)
    for i, pairs in first_of_pairs(n_classes):
        own, first_wins = scores[:, pairs], scores[:, pairs] > 0
        wins[:, i] += first_wins.sum(axis=1)
        wins[:, i + 1 :] += ~first_wins
        margins[:, i] += own.sum(axis=1)
        margins[:, i + 1 :] -= own
    return wins, margins


def first_of_pairs(n_classes: int) -> Iterator[tuple[int, slice]]:
    """Every class with its place among one-vs-one problems: its pairs with all classes behind it."""
    end = 0
    for i in range(n_classes - 1):
        start, end = end, end + n_classes - 1 - i
        yield i, slice(start, end)


def class_scores(scores: Floats, n_classes: int, multi_class: str) -> Floats:
    """Every member's score of every class, (n_samples, n_classes, n_members), for more than two classes.

    One-vs-rest scores are that already. Of one-vs-one scores each class gets one vote per pair it wins
    plus the squashed sum of its margins in all its pairs.
    """
    if multi_class == "ovr":
        return scores
    wins, margins = pair_tallies(scores, n_classes)
    return np.asarray(wins + squashed(margins), dtype=scores.dtype)


def soft_decision(scores: Floats, n_classes: int, multi_class: str) -> Floats:
    """The decision of the averaged model (one member): (n_samples,) for two classes, else one per class."""
    if n_classes == 2:
        return np.asarray(scores[:, 0, 0])
    return class_scores(scores, n_classes, multi_class)[:, :, 0]


def member_votes(scores: Floats, n_classes: int, multi_class: str) -> Ints:
    """The number of the class that each member votes for, (n_samples, n_members).

    A margin that is infinite or NaN votes like any other: NaN like zero, infinities by their sign.
    """
    scores = finite(scores)
    if n_classes == 2:
        return (scores[:, 0] > 0).astype(np.intp)
    if multi_class == "ovr":
        return np.asarray(scores.argmax(axis=1))
    wins, margins = pair_tallies(scores, n_classes)
    most = wins.max(axis=1, keepdims=True)
    return np.asarray(np.where(wins == most, margins, -np.inf).argmax(axis=1))


def hard_decision(scores: Floats, n_classes: int, multi_class: str, copies: int = 1) -> Floats:
    """Votes of the members plus the squashed mean margin.

    Two classes: votes for the second class minus votes for the first. More: each member votes for its
    best class; votes are counted per class. A member whose margin is infinite or NaN has one vote like
    any other.
    """
    votes, margins = _first_round(scores, n_classes, multi_class, copies)
    return np.asarray(votes + margins)


def _first_round(scores: Floats, n_classes: int, multi_class: str, copies: int) -> tuple[Ints, Floats]:
    """Votes, and the squashed mean margins that break ties; see ``hard_decision``."""
    scores = finite(scores)
    best = member_votes(scores, n_classes, multi_class)
    if n_classes == 2:
        return copies * (2 * best - 1).sum(axis=1), squashed(scores[:, 0].mean(axis=1))
    votes = votes_by_class(best, n_classes)
    margins = scores if multi_class == "ovr" else pair_tallies(scores, n_classes)[1]
    return copies * votes, squashed(margins.mean(axis=2))


def votes_by_class(votes: Ints, n_classes: int) -> Ints:
    """How many members vote for each class, (n_samples, n_classes); negative votes are none."""
    rows, members = np.nonzero(votes >= 0)
    places = rows * n_classes + votes[rows, members]
    return np.bincount(places, minlength=len(votes) * n_classes).reshape(len(votes), n_classes)


def runoff_decision(scores: Floats, n_classes: int, multi_class: str, copies: int = 1) -> Floats:
    """Votes of the first round; those of the two finalists are all voters plus the votes of the second round.

    The finalists are the two classes that are first in ``hard_decision``. In the second round every member
    votes for the finalist that it scores higher; of one-vs-one members the problem of these two classes
    decides. The squashed mean margin breaks ties, in both rounds, and then the order of the classes. Two
    classes meet in the final at once, which is the hard vote.
    """
    votes, margins = _first_round(scores, n_classes, multi_class, copies)
    decision = np.asarray(votes + margins)
    if n_classes == 2:
        return decision
    finalists = top_two(decision)
    for_first = copies * _duel(finite(scores), finalists, n_classes, multi_class).sum(axis=1)
    n_members = copies * scores.shape[2]
    second_round = n_members + np.stack([for_first, n_members - for_first], axis=1)
    second_round = second_round + np.take_along_axis(margins, finalists, axis=1)
    np.put_along_axis(decision, finalists, second_round, axis=1)
    return decision


def top_two(scores: Floats) -> Ints:
    """The two classes with the highest scores, the lower number first; of equals the first ones."""
    best = scores.argmax(axis=1)
    others = scores.copy()
    np.put_along_axis(others, best[:, None], -np.inf, axis=1)
    return np.sort(np.stack([best, others.argmax(axis=1)], axis=1), axis=1)


def pair_numbers(first: Ints, second: Ints, n_classes: int) -> Ints:
    """The place of the pairs (first, second), first < second, in the order of one-vs-one problems."""
    return np.asarray(first * (2 * n_classes - first - 1) // 2 + second - first - 1)


def _duel(scores: Floats, pairs: Ints, n_classes: int, multi_class: str) -> Bools:
    """Whether each member prefers the first of two classes, (n_samples, n_members); equals go to it."""
    first, second = pairs.T
    rows = np.arange(len(scores))
    if multi_class == "ovo":
        return np.asarray(scores[rows, pair_numbers(first, second, n_classes)] > 0)
    return np.asarray(scores[rows, first] >= scores[rows, second])


def finite(scores: Floats) -> Floats:
    """Margins that can be added up: NaN is zero, and what is too large only keeps its sign."""
    return np.asarray(np.clip(np.nan_to_num(scores), -_LARGEST_MARGIN, _LARGEST_MARGIN))


def winning_codes(scores: Floats) -> Ints:
    """The number of the class that the scores of ``decision_function`` choose, for every row."""
    return np.asarray(scores > 0 if scores.ndim == 1 else scores.argmax(axis=1), dtype=np.intp)
