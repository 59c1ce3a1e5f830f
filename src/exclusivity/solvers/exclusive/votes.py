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

For a run-off (see ``runoff``) the lead in the ramp is the mean of two: the one that a run-off certifies, with
soft votes and soft duels, (score of the true class - score of the other) / t cut off at -1 and 1; and the
smallest lead in a duel, which moves that bring nobody to the final still change. A search for a run-off ends
with moves that are judged by the votes themselves as well (``CountedBallot``): what soft votes found is close
enough to the end for counts to tell the last moves apart. Rows are scored as if left out (see ``surrogate``).

The scale t is half the spread of the member's own scores, so that neither C nor the strength of a member
changes how decided its votes are. The value is negated: smaller is better.

What a partition is worth on rows that its members have not seen: the rows on which votes are compared are
split into folds. Without the rows F of a fold, whose weights are s and whose centred rows and labels are X_F
and Y_F, the sums of all rows become

    G - X_F^T s X_F - W d d^T,     c - X_F^T s Y_F - W d e^T,     W = total - sum s,

where d and e are by how much the mean row and the mean labels move: d = -X_F^T s / W, e = -Y_F^T s / W. So no
pass over the rows is needed. Votes are counted there as the classifier counts them, not softly.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from exclusivity._typing import Bools, Floats, Ints
from exclusivity.solvers.exclusive.runoff import duels_of_truth, runoff_leads, sides_of_truth
from exclusivity.solvers.exclusive.surrogate import Columns, RidgeSums, RidgeSurrogate

Codes = Ints

_SHARPNESS = 0.5
_TINY = 1e-12
# Scores that differ by less than this share of their size are equal: rounding must not decide.
_TIE = 1e-9
# At most this share of a sum over rows, and more than that of any matrix of such sums, is rounding.
_ROUNDED = 1e-11


class Ballot:
    """The soft votes of all members on the rows of one surrogate, and what a move would make of them.

    Parameters
    ----------
    surrogate : RidgeSurrogate
    columns : sequence of ndarray
        The columns of every member, none of them empty.
    radius : int
        R, the largest number of broken features that counts.
    voting : {"hard", "runoff"}
        How votes among several classes are counted.
    """

    def __init__(
        self, surrogate: RidgeSurrogate, columns: Sequence[Columns], radius: int, voting: str = "hard"
    ) -> None:
        self.surrogate, self.has_final = surrogate, voting == "runoff"
        # More than (K - 1) / 2 broken features no vote of K members survives.
        self.highest_lead = 2 * min(radius, (len(columns) - 1) // 2) + 1
        self.signs = np.where(surrogate.truth == 1, 1.0, -1.0)
        self.members = [surrogate.fit(own) for own in columns]
        self.votes = self._votes_of(np.stack([member.scores for member in self.members]))

    @property
    def value(self) -> float:
        """Minus the smooth certified accuracy, summed over r."""
        return float(self._values(self.votes.sum(axis=0)[None])[0])

    def values_after(self, moved: Columns, source: int) -> Floats:
        """The value for each receiver of the columns ``moved``, which ``source`` gives away."""
        smaller = self._votes_of(self.surrogate.scores_without(self.members[source], moved)[None])[0]
        others = self.votes.sum(axis=0) - self.votes[source] + smaller
        joined = self._votes_of(self.surrogate.joined(self.members, moved))
        joined -= self.votes
        joined += others
        return self._values(joined)

    def change(self, member: int, columns: Columns) -> None:
        """Give a member these columns from now on."""
        self.members[member] = self.surrogate.fit(columns)
        self.votes[member] = self._votes_of(self.members[member].scores[None])[0]

    def _votes_of(self, centred: Floats) -> Floats:
        """Of centred scores (members, problems, rows).

        Two classes: (members, rows), from -1, wrong, to 1, right. More: (members, classes, rows), for a
        run-off with the duels of the true class behind them.
        """
        squares = (centred**2).mean(axis=1) @ self.surrogate.shares
        scale = (_SHARPNESS * np.sqrt(squares) + _TINY)[:, None]
        if centred.shape[1] == 1:
            votes = (centred[:, 0] + self.surrogate.label_means) * self.signs
            votes /= scale
            return np.asarray(np.clip(votes, -1.0, 1.0, out=votes))
        scores = centred + self.surrogate.label_means[:, None]
        scores -= scores.max(axis=1, keepdims=True)
        scores *= 2 / scale[:, :, None]
        cast = cast_votes(scores >= -_TIE, self.surrogate.truth)
        n_classes = scores.shape[1]
        ballots = np.empty((len(scores), 2 * n_classes, scores.shape[2])) if self.has_final else scores
        if self.has_final:
            duels_of_truth(scores, self.surrogate.truth, ballots[:, n_classes:])
        votes = np.exp(scores, out=ballots[:, :n_classes])
        votes *= 0.5 / votes.sum(axis=1, keepdims=True)
        votes += 0.5 * cast
        return ballots

    def _values(self, totals: Floats) -> Floats:
        """The value for each of several vote counts."""
        if totals.ndim == 2:
            lead = totals
        elif self.has_final:
            lead = np.mean(runoff_leads(totals, self.surrogate.truth), axis=0)
        else:
            lead = lead_of_truth(totals, self.surrogate.truth)
        # (lead + 1) / 2 up to the constant 1 / 2
        return np.asarray(np.clip(lead, -1.0, self.highest_lead) @ self.surrogate.row_weights / -2)


class CountedBallot(Ballot):
    """Soft votes among several classes, and behind them votes as they are counted.

    To the smooth certified accuracy comes the certified accuracy itself, both summed over r.
    """

    def _votes_of(self, centred: Floats) -> Floats:
        scores = centred + self.surrogate.label_means[:, None]
        counted = decided(scores, self.surrogate.truth, "runoff" if self.has_final else "hard")
        return np.concatenate([super()._votes_of(centred), counted], axis=1)

    def _values(self, totals: Floats) -> Floats:
        radius, n_classes = (self.highest_lead - 1) // 2, len(self.surrogate.label_means)
        soft, counted = np.split(totals, 2, axis=1)
        survived = ramp(counted, self.surrogate.truth, radius, len(self.members), n_classes)
        return np.asarray(super()._values(soft) - survived @ self.surrogate.row_weights)


def lead_of_truth(totals: Floats, truth: Codes) -> Floats:
    """Votes of the true class minus those of its strongest rival; totals are (..., classes, rows)."""
    rows = np.arange(len(truth))
    own = totals[..., truth, rows]
    rivals = totals.copy()
    rivals[..., truth, rows] = -np.inf
    return np.asarray(own - rivals.max(axis=-2))


def cast_votes(is_best: Bools, truth: Codes) -> Bools:
    """The vote of each (..., row) for one of the classes, or for every wrong one where several are best."""
    tied = np.nonzero(is_best.sum(axis=-2, dtype=np.int32) > 1)
    wrong = np.arange(is_best.shape[-2]) != truth[tied[-1], None]
    np.moveaxis(is_best, -2, -1)[tied] = wrong
    return is_best


def decided(scores: Floats, truth: Codes, voting: str = "hard") -> Floats:
    """Votes by scores (..., problems, rows): (..., classes, rows), behind them sides in a run-off."""
    if scores.shape[-2] == 1:
        is_second = (scores > 0).astype(float)
        return np.concatenate([1 - is_second, is_second], axis=-2)
    slack = _TIE * np.abs(scores).max(axis=-2, keepdims=True)
    votes = cast_votes(scores >= scores.max(axis=-2, keepdims=True) - slack, truth).astype(float)
    if voting == "hard":
        return votes
    return np.concatenate([votes, sides_of_truth(scores, truth, slack)], axis=-2)


def ramp(counts: Floats, truth: Codes, radius: int, n_members: int, n_classes: int) -> Floats:
    """For how many r = 0, ..., R each row is right whatever r features do."""
    highest = min(radius, (n_members - 1) // 2) + 1
    has_final = counts.shape[-2] > n_classes
    lead = runoff_leads(counts, truth)[0] if has_final else lead_of_truth(counts, truth)
    return np.clip(np.ceil(lead / 2), 0, highest)


N_FOLDS = 5


def held_out_values(
    surrogates: Sequence[RidgeSurrogate],
    groups: Ints,
    partitions: Sequence[Ints],
    radius: int,
    voting: str = "hard",
) -> tuple[Floats, Floats]:
    """Certified accuracy of rows left out in turn, each class counting the same, summed over r = 0 to R.

    Returns
    -------
    values : ndarray of shape (n_partitions,)
    errors : ndarray of shape (n_partitions,)
        The standard error of the difference to the first partition's value.
    """
    columns = [[np.flatnonzero(owners[groups] == k) for k in np.unique(owners)] for owners in partitions]
    values, variances = np.zeros(len(partitions)), np.zeros(len(partitions))
    for surrogate in surrogates:
        numbers = surrogate.row_numbers  # equal rows are one: a row of weight 2 then counts like two rows
        survived = _survived(surrogate, numbers % N_FOLDS, columns, radius, voting)
        value = survived @ surrogate.row_weights
        deviations = surrogate.row_weights * ((survived - survived[0]) - (value - value[0])[:, None])
        values += value
        variances += [np.sum(np.bincount(numbers, weights=row) ** 2) for row in deviations]
    return values, np.sqrt(variances)


def _survived(
    surrogate: RidgeSurrogate,
    places: Ints,
    partitions: Sequence[Sequence[Ints]],
    radius: int,
    voting: str,
) -> Floats:
    """For each partition and row, left out with its fold, for how many r it stays right."""
    n_classes = max(2, len(surrogate.label_means))
    voting = "hard" if n_classes == 2 else voting
    width = n_classes if voting == "hard" else 2 * n_classes
    counts = np.zeros((len(partitions), width, len(places)))
    for fold in np.unique(places):
        rows = np.flatnonzero(places == fold)
        others = without(surrogate, rows)
        for count, columns in zip(counts, partitions, strict=True):
            for own in columns:
                scores = others.fit(own).scores + others.label_means[:, None]
                count[:, rows] += decided(scores, others.truth, voting)
    pairs = zip(counts, partitions, strict=True)
    return np.stack(
        [ramp(count, surrogate.truth, radius, len(columns), n_classes) for count, columns in pairs]
    )


def without(surrogate: RidgeSurrogate, inside: Ints) -> RidgeSurrogate:
    """Ridge regressions of all rows but these, whose scores are those of these."""
    sums, rows, weights = surrogate.sums, surrogate.rows[inside], surrogate.weights[inside]
    labels = surrogate.labels[:, inside].T
    left = sums.total - weights.sum()
    weighted = weights[:, None] * rows
    shift, label_shift = -weighted.sum(axis=0) / left, -(weights @ labels) / left
    smaller = RidgeSums(
        shift,  # rows are centred already: this is by how much the mean moves
        sums.gram - rows.T @ weighted - left * np.outer(shift, shift),
        sums.label_means + label_shift,
        sums.moments - weighted.T @ labels - left * np.outer(shift, label_shift),
        left,
    )
    others = RidgeSurrogate(smaller, surrogate.cost, rows, surrogate.truth[inside], weights)
    # What is left where a fold holds nearly all of a sum is what rounding made of it: no regression of that.
    others.ridge = max(others.ridge, _ROUNDED * float(np.diagonal(surrogate.gram).mean()))
    return others
