"""What a partition is worth: how many broken features the votes survive, row by row.

With disjoint supports one broken feature changes one vote, and with it the lead of the true class over any
other by 2 at most. So a row is right, and stays right whatever r features do, if its lead exceeds 2 r. Over
r = 0, ..., R the number of such r is

    min(max(lead + 1, 0) / 2, R + 1)        (for the odd leads that an odd number of binary votes can have),

a ramp, and its mean over the rows, each class counting the same, is the sum of the balanced certified
accuracies at r = 0, ..., R. The search maximises it with soft votes in place of votes, because a count of
votes stands still under most moves:

* two classes: y score / t, cut off at -1 and 1;
* more: softmax(2 scores / t) over the classes.

The scale t is half the spread of the member's own scores, so that neither C nor the strength of a member
changes how decided its votes are. The value is negated: smaller is better.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from exclusivity.problem.arrays import Floats
from exclusivity.solvers.exclusive.surrogate import Columns, RidgeSurrogate

_SHARPNESS = 0.5
_TINY = 1e-12


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
        raised = np.exp(scores * (2 / scale[:, :, None]))
        return np.asarray(raised / raised.sum(axis=2, keepdims=True))

    def _values(self, totals: Floats) -> Floats:
        """The value for each of several vote counts."""
        lead = totals if totals.ndim == 2 else self._lead(totals)
        # (lead + 1) / 2 up to the constant 1 / 2
        return np.asarray(np.clip(lead, -1.0, self.highest_lead) @ self.surrogate.row_weights / -2)

    def _lead(self, totals: Floats) -> Floats:
        """Votes of the true class minus those of its strongest rival."""
        rows, truth = np.arange(totals.shape[1]), self.surrogate.truth
        own = totals[:, rows, truth]
        rivals = totals.copy()
        rivals[:, rows, truth] = -np.inf
        return np.asarray(own - rivals.max(axis=2))
