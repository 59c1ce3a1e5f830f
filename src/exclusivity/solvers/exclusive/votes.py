"""What a partition is worth: how many broken features the votes survive, row by row.

With disjoint supports one broken feature changes one vote, and with it the lead of the true class over any
other by 2 at most. So a row is right, and stays right whatever r features do, if its lead exceeds 2 r. Over
r = 0, ..., R the number of such r is

    min(max(lead + 1, 0) / 2, R + 1)        (for the odd leads that an odd number of binary votes can have),

a ramp, and its mean over the rows, each class counting the same, is the sum of the balanced certified
accuracies at r = 0, ..., R. The search maximises it with soft votes in place of votes, because a count of
votes stands still under most moves:

* two classes: y score / t, cut off at -1 and 1;
* more: half the vote itself, half softmax(2 scores / t) over the classes.

Half of a vote among many classes is the vote, because a soft vote alone hides what a starved member does: on
a column that is nearly always zero the scores of many classes are equal on nearly all rows. Split evenly they
would do no harm; but the vote goes to one of them, row after row, and a certificate, which cannot know to
which, has to count it for every rival of the winner. So does this: a tie is a vote for every wrong class.

The scale t is half the spread of the member's own scores, so that neither C nor the strength of a member
changes how decided its votes are. The value is negated: smaller is better.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from exclusivity.problem.arrays import Bools, Floats, Ints
from exclusivity.solvers.exclusive.surrogate import Columns, RidgeSurrogate

Codes = Ints

_SHARPNESS = 0.5
_TINY = 1e-12
# Scores that differ by less than this share of their size are equal: rounding must not decide.
_TIE = 1e-9


class Ballot:
    """The soft votes of all members on the rows of one surrogate, and what a move would make of them.

    Parameters
    ----------
    surrogate : RidgeSurrogate
    columns : sequence of ndarray
        The columns of every member, none of them empty.
    radius : int
        R, the largest number of broken features that counts.
    """

    def __init__(self, surrogate: RidgeSurrogate, columns: Sequence[Columns], radius: int) -> None:
        self.surrogate = surrogate
        # More than (K - 1) / 2 broken features no vote of K members survives.
        self.highest_lead = 2 * min(radius, (len(columns) - 1) // 2) + 1
        self.signs = np.where(surrogate.truth == 1, 1.0, -1.0)
        self.members = [surrogate.fit(own) for own in columns]
        self.votes = self._soft_votes(np.stack([member.scores for member in self.members]))

    @property
    def value(self) -> float:
        """Minus the smooth certified accuracy, summed over r."""
        return float(self._values(self.votes.sum(axis=0)[None])[0])

    def values_after(self, moved: Columns, rest: Columns, source: int) -> Floats:
        """The value for each receiver of the columns ``moved``, when ``source`` keeps ``rest``."""
        smaller = self._soft_votes(self.surrogate.fit(rest).scores[None])[0]
        others = self.votes.sum(axis=0) - self.votes[source] + smaller
        joined = self._soft_votes(self.surrogate.joined(self.members, moved))
        joined -= self.votes
        joined += others
        return self._values(joined)

    def change(self, member: int, columns: Columns) -> None:
        """Give a member these columns from now on."""
        self.members[member] = self.surrogate.fit(columns)
        self.votes[member] = self._soft_votes(self.members[member].scores[None])[0]

    def _soft_votes(self, centred: Floats) -> Floats:
        """Of centred scores (members, rows, problems).

        Two classes: (members, rows), from -1, wrong, to 1, right. More: (members, rows, classes).
        """
        squares = (centred**2).mean(axis=2) @ self.surrogate.shares
        scale = (_SHARPNESS * np.sqrt(squares) + _TINY)[:, None]
        if centred.shape[2] == 1:
            votes = (centred[:, :, 0] + self.surrogate.label_means) * self.signs
            votes /= scale
            return np.asarray(np.clip(votes, -1.0, 1.0, out=votes))
        scores = centred + self.surrogate.label_means
        scores -= scores.max(axis=2, keepdims=True)
        scores *= 2 / scale[:, :, None]
        cast = cast_votes(scores >= -_TIE, self.surrogate.truth)
        votes = np.exp(scores, out=scores)
        votes *= 0.5 / votes.sum(axis=2, keepdims=True)
        votes[cast] += 0.5
        return votes

    def _values(self, totals: Floats) -> Floats:
        """The value for each of several vote counts."""
        lead = totals if totals.ndim == 2 else lead_of_truth(totals, self.surrogate.truth)
        # (lead + 1) / 2 up to the constant 1 / 2
        return np.asarray(np.clip(lead, -1.0, self.highest_lead) @ self.surrogate.row_weights / -2)


def lead_of_truth(totals: Floats, truth: Codes) -> Floats:
    """Votes of the true class minus those of its strongest rival; totals are (..., rows, classes)."""
    rows = np.arange(len(truth))
    own = totals[..., rows, truth]
    rivals = totals.copy()
    rivals[..., rows, truth] = -np.inf
    return np.asarray(own - rivals.max(axis=-1))


def cast_votes(is_best: Bools, truth: Codes) -> Bools:
    """The vote of each (..., row) for one of the classes, or for every wrong one where several are best."""
    tied = np.nonzero(np.count_nonzero(is_best, axis=-1) > 1)
    is_best[tied] = np.arange(is_best.shape[-1]) != truth[tied[-1], None]
    return is_best


def decided(scores: Floats, truth: Codes) -> Bools:
    """The votes of a member by its scores (rows, problems): (rows, classes)."""
    if scores.shape[1] == 1:
        is_second = scores > 0
        return np.hstack([~is_second, is_second])
    slack = _TIE * np.abs(scores).max(axis=1, keepdims=True)
    return cast_votes(scores >= scores.max(axis=1, keepdims=True) - slack, truth)


def ramp(counts: Floats, truth: Codes, radius: int, n_members: int) -> Floats:
    """For how many r = 0, ..., R each row is right whatever r features do."""
    highest = min(radius, (n_members - 1) // 2) + 1
    return np.clip(np.ceil(lead_of_truth(counts, truth) / 2), 0, highest)
