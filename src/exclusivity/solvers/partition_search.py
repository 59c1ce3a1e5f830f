"""Partitions of the feature groups: a search that moves one group at a time, from several starts.

The value of a partition is how many broken features the votes survive, row by row. With disjoint supports
one broken feature changes one vote, and with it the lead of the true class over any other by 2 at most. So a
row is right, and stays right whatever r features do, if its lead exceeds 2 r. Over r = 0, ..., R the number
of such r is

    min(max(lead + 1, 0) / 2, R + 1)        (for the odd leads that an odd number of binary votes can have),

a ramp, and its mean over the rows, each class counting the same, is the sum of the balanced certified
accuracies at r = 0, ..., R. The search maximises it with soft votes in place of votes, because a count of
votes stands still under most moves:

* two classes: y score / t, cut off at -1 and 1;
* more: half the vote itself, half softmax(2 scores / t) over the classes.

Half of a vote among many classes is the vote, because a soft vote alone hides what a member with too few
features does: on a column that is nearly always zero the scores of many classes are equal on nearly all rows.
Split evenly they would do no harm; but the vote goes to one of them, row after row, and a certificate, which
cannot know to which, has to count it for every rival of the winner. So does this: a tie is a vote for every
wrong class. The scale t is half the spread of the member's own scores, so that neither C nor the strength of
a member changes how decided its votes are. The value is negated: smaller is better.

For a run-off let y be the true class of a row, v_c the votes of class c, and L_c = 2 u_yc - K the lead of y
over c among all K members. One broken feature changes one member. It takes y the victory only if (A) two
rivals push it out of the final, closing leads g <= h of v_y over them: a member closes each by 2 at most and
both together by 3; or if (B) a rival c beats it there, closing L_c by 2, and gets there, closing its distance
D_c to the best third class by 2. In units of 2 per member the lead of y is therefore

    min( max(h, 2 (g + h) / 3),  min_c max(L_c, D_c) ),

g and h the two smallest leads, and a row is certified at r if that exceeds 2 r. The lead in the ramp is the
mean of two: this one, with soft votes and soft duels, (score of the true class - score of the other) / t cut
off at -1 and 1; and the smallest lead in a duel, which moves that bring no class to the final still change.

Ridge regressions stand in for the members: quick to fit, quick to change. A member on the columns S is

    w = (G_SS + I / (2 C))^(-1) c_S,     G = X^T diag(s) X,  c = X^T diag(s) y   (all centred),

the squared loss where the SVM has max(0, m)^p. G and c are computed once; after that a member costs one small
matrix. When the columns J join the member, its matrix inverse grows by the Schur complement
Q = G_JJ + I / (2 C) - G_JS B with B = (G_SS + I / (2 C))^(-1) G_SJ, and its scores change by

    (X_J - X_S B) v,     v = Q^(-1) (c_J - B^T c_S).

For a run-off a row is scored by the regression without it. Let y be its label, f its score, s its
weight and M the inverse matrix of the member; leaving the row out makes its score

    y - (y - f) / (1 - h),     h = s (1 / sum s + x M x^T)   (x centred),

and columns that join add the squares of (x_J - x_S B) Q^(-1/2) to x M x^T.

Two passes of sums give G and c, wherever the rows are. Problems that share rows and weights (one against the
rest, in every class) are one part, with a column of c for each problem. The sums of a part are its means,
then G and c around these; rows in memory are one block, and the sums of several blocks add up.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import groupby
from numbers import Integral
from typing import Any, NamedTuple, Self

import numpy as np

from exclusivity._typing import Bools, Floats, Ints
from exclusivity.objective.objective import ERMProblem
from exclusivity.rows.design import RowList
from exclusivity.rows.source import RowBlock, RowSource
from exclusivity.solvers.base import SAMPLE_SEED, check_positive
from exclusivity.solvers.run import Target

Part = Sequence[ERMProblem]
"""Problems that share their rows and weights."""

MAX_COLUMNS = 2048
"""Beyond this many columns there is no Gram matrix: groups are assigned by strength."""

MAX_ROWS = 1000
"""Scores are compared on this many rows at most; the Gram matrix is that of all rows."""

# Sweeps over the groups: until no move helps, but three are nearly as good, and enough where there are many.
_MAX_SWEEPS = 5
_MIN_SWEEPS = 2
_MAX_TRIALS = 600
# A move, or a restart, must gain this share of the objective: less is rounding, which must not decide.
_LEAST_GAIN = 1e-6
# The scale of soft votes, as a share of the spread of a member's scores.
_SHARPNESS = 0.5
_TINY = 1e-12
# Scores that differ by less than this share of their size are equal: rounding must not decide.
_TIE = 1e-9
# Keeps the small systems solvable when C is so large that collinear columns have no ridge left.
_RELATIVE_RIDGE = 1e-6
# At least this share of a row's score is due to other rows; less would leave little but rounding errors.
_LEAST_OTHERS = 0.05


@dataclass(frozen=True)
class ExclusiveOptions:
    """The settings of the exclusive solver.

    Parameters
    ----------
    change : float
        For finite exclusivity: a member within the tolerance of its optimum still moves where that lowers the
        objective by more than this share. The run ends with a sweep in which no member moves. At ``inf`` one
        sweep is exact.
    restarts : int
        How many partitions the search starts from; the best one found is kept. 0 means no search: the given
        partition (or a balanced one, by the strength of the features) is used as it is.
    radius : int
        The search counts the rows whose vote survives up to this many broken features.
    voting : {"hard", "runoff"} or None
        The vote that it counts for; None: the one of the classifier, or "hard".
    partition : sequence of int or None
        Where the search starts: the member of every feature group, in the order of the group codes, or -1 for
        a group that is free.
    """

    change: float = 1e-4
    restarts: int = 2
    radius: int = 3
    voting: str | None = None
    partition: Sequence[int] | Ints | None = None

    def __post_init__(self) -> None:
        check_positive("change", self.change)
        for name in ("restarts", "radius"):
            value: Any = getattr(self, name)
            if not isinstance(value, Integral) or value < 0:
                raise ValueError(f"solver option {name} must be an integer >= 0; got {value!r}.")
        if self.voting not in (None, "hard", "runoff"):
            raise ValueError(f"solver option voting must be 'hard', 'runoff' or None; got {self.voting!r}.")


def find_partition(
    sums: MemorySums, groups: Ints, options: ExclusiveOptions | None, rng: np.random.Generator
) -> Ints:
    """Return the best partition found: the owner of every group.

    The first search starts from ``options.partition`` (its free groups given away, no member empty), or from
    the groups assigned by strength; the others from random partitions of equal sizes.
    """
    options, K, n_groups = options or ExclusiveOptions(), sums.n_members, int(groups.max()) + 1
    start = None if options.partition is None else np.asarray(options.partition)
    if start is not None:
        is_whole = start.shape == (n_groups,) and np.issubdtype(start.dtype, np.integer)
        if not is_whole or start.min() < -1 or start.max() >= K:
            raise ValueError(
                f"partition needs one member for each of the {n_groups} feature groups: one of the members 0 "
                f"to {K - 1}, or -1 for a group without one."
            )
        if options.restarts == 0:
            return start.astype(np.intp)
    is_searched = options.restarts > 0 and n_groups > K and len(groups) <= MAX_COLUMNS
    found = sums.ridge_sums(with_grams=is_searched)
    strength = strength_of(found, groups)
    strongest = np.argsort(-strength, kind="stable")
    first = assign_round_robin(strongest, K) if start is None else fill_members(start, K, strength)
    if not is_searched:
        return first
    pairs = zip(found, sums.sample(), strict=True)
    votes = [SoftVotes(*pair, rng, options.radius, options.voting) for pair in pairs]
    best, best_value = first, np.inf
    for restart in range(options.restarts):
        owners = first if restart == 0 else assign_round_robin(rng.permutation(n_groups), K)
        owners, value = improve_by_moves(owners, groups, votes, rng)
        if value < best_value - _LEAST_GAIN * abs(value):
            best, best_value = owners, value
    _, place, owners = np.unique(best, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(place))[owners]  # members in the order of their first groups


def improve_by_moves(
    owners: Ints, groups: Ints, votes: Sequence[SoftVotes], rng: np.random.Generator
) -> tuple[Ints, float]:
    """Move single groups, in random order, to the member where they help most; return the value reached."""
    columns = [np.flatnonzero(owners[groups] == k) for k in range(int(owners.max()) + 1)]
    owners, value = owners.copy(), sum(one.begin(columns).value for one in votes)
    for _ in range(min(_MAX_SWEEPS, max(_MIN_SWEEPS, _MAX_TRIALS // len(owners)))):
        before = value
        for group in rng.permutation(len(owners)):
            source, moved = int(owners[group]), np.flatnonzero(groups == group)
            if np.count_nonzero(owners == source) == 1:  # no member loses its last group
                continue
            values = np.asarray(sum(one.values_after(moved, source) for one in votes))
            values[source] = value
            least = _LEAST_GAIN * abs(value)
            receiver = int(np.argmax(values <= values.min() + least))  # the first of equals
            if value - values[receiver] <= least:
                continue
            owners[group], value = receiver, float(values[receiver])
            for one in votes:
                for member in (source, receiver):
                    one.change(member, np.flatnonzero(owners[groups] == member))
        if value == before:
            break
    return owners, value


def assign_round_robin(order: Ints, n_members: int) -> Ints:
    """Assign groups to members in this order, to and fro: sizes differ by one at most.

    Examples
    --------
    >>> assign_round_robin(np.array([0, 1, 2, 3]), 2)
    array([0, 1, 1, 0])
    """
    n_members = min(n_members, len(order))
    position = np.arange(len(order)) % (2 * n_members)
    owners = np.empty(len(order), dtype=np.intp)
    owners[order] = np.minimum(position, 2 * n_members - 1 - position)
    return owners


def fill_members(owners: Ints, n_members: int, strength: Floats) -> Ints:
    """Return the same partition with free groups given away, and no member empty while groups suffice.

    Free groups go, from the strongest on, to the member with the fewest; members that are still empty take
    the weakest group of the richest member.
    """
    owners = owners.copy()
    sizes = np.bincount(owners[owners >= 0], minlength=n_members)
    free = np.flatnonzero(owners < 0)
    for group in free[np.argsort(-strength[free], kind="stable")]:
        owners[group] = sizes.argmin()
        sizes[owners[group]] += 1
    while sizes.min() == 0 and sizes.max() > 1:
        rich, poor = sizes.argmax(), sizes.argmin()
        held = np.flatnonzero(owners == rich)
        owners[held[strength[held].argmin()]] = poor
        sizes[rich] -= 1
        sizes[poor] += 1
    return owners


# Soft votes


class RidgeMember(NamedTuple):
    """One member's ridge regression: its columns, their rows, the inverse matrix, and its centred scores.

    Scores are (problems, rows): sums over a few problems are quick that way. For held-out rows there are the
    ``leverages`` x M x^T of all rows, too.
    """

    columns: Ints
    rows: Floats
    inverse: Floats
    fitted: Floats
    leverages: Floats | None


class SoftVotes:
    """Ridge regressions in place of the members, for problems that share rows and weights, and their votes.

    Parameters
    ----------
    sums : RidgeSums
        Over all rows; one right-hand side for each problem.
    part : sequence of ERMProblem
        The problems on the rows from which some are drawn to compare votes. For a run-off rows are scored as
        if they and those equal to them were left out of the fit.
    rng : Generator
        Draws rows where they are many.
    radius : int
        R, the largest number of broken features that counts.
    voting : {"hard", "runoff"} or None
        How votes among several classes are counted; None: "hard".
    """

    def __init__(
        self, sums: RidgeSums, part: Part, rng: np.random.Generator, radius: int, voting: str | None = None
    ) -> None:
        self.sums, self.radius, self.has_final = sums, radius, voting == "runoff" and len(part) > 1
        self.ridge = max(1 / (2 * part[0].cost), _RELATIVE_RIDGE * float(np.diagonal(sums.gram).mean()))
        labels = labels_of(part)
        truth = labels.argmax(axis=1) if len(part) > 1 else (labels[:, 0] > 0).astype(np.intp)
        chosen = sample_classes(truth, rng)
        rows, self.truth, weights = part[0].design.rows(chosen), truth[chosen], part[0].weights[chosen]
        self.rows = np.asarray(rows.toarray() if hasattr(rows, "toarray") else rows, dtype=float) - sums.mean
        self.labels = labels[chosen].T - sums.label_means[:, None]
        # A row of weight 2 is two rows, here and in whatever is averaged over rows.
        self.shares = weights / weights.sum()
        # Every class counts the same, whatever its share: a constant vote must not look like a good one.
        totals = np.bincount(self.truth, weights=weights)
        self.row_weights = weights / (totals[self.truth] * np.count_nonzero(totals))
        if self.has_final:
            each = np.column_stack([self.truth, self.rows])
            equal = np.unique(each, axis=0, return_inverse=True)[1].ravel()
            self.left_weights = np.bincount(equal, weights=weights)[equal]

    def begin(self, columns: Sequence[Ints]) -> Self:
        """Give every member its columns, at least one."""
        # More than (K - 1) / 2 broken features no vote of K members survives.
        self.highest_lead = 2 * min(self.radius, (len(columns) - 1) // 2) + 1
        self.members = [self.fit(own) for own in columns]
        scores = [self.scores(member.fitted, member.leverages) for member in self.members]
        self.votes = self._votes_of(np.stack(scores))
        return self

    def change(self, member: int, columns: Ints) -> None:
        """Give a member these columns from now on."""
        one = self.members[member] = self.fit(columns)
        self.votes[member] = self._votes_of(self.scores(one.fitted, one.leverages)[None])[0]

    @property
    def value(self) -> float:
        """Return minus the smooth certified accuracy, summed over r."""
        return float(self._values(self.votes.sum(axis=0)[None])[0])

    def values_after(self, moved: Ints, source: int) -> Floats:
        """Return the value for each receiver of the columns ``moved``, which ``source`` gives away."""
        smaller = self._votes_of(self.scores_without(self.members[source], moved)[None])[0]
        others = self.votes.sum(axis=0) - self.votes[source] + smaller
        joined = self._votes_of(self.scores_with(self.members, moved))
        joined -= self.votes
        joined += others
        return self._values(joined)

    def fit(self, columns: Ints) -> RidgeMember:
        """Fit the member on these columns."""
        system = self.sums.gram[np.ix_(columns, columns)]
        system[np.diag_indices(len(columns))] += self.ridge
        inverse = np.asarray(np.linalg.inv(system), dtype=float)
        rows = self.rows[:, columns]
        fitted = (inverse @ self.sums.moments[columns]).T @ rows.T
        leverages = np.einsum("ij,ij->i", rows @ inverse, rows) if self.has_final else None
        return RidgeMember(columns, rows, inverse, fitted, leverages)

    def scores(self, fitted: Floats, leverages: Floats | None) -> Floats:
        """Return the scores (..., problems, rows) that count: for a run-off those of held-out rows."""
        if leverages is None:
            return fitted
        shares = self.left_weights * (1 / self.sums.total + leverages)
        scores = fitted - self.labels
        scores /= np.maximum(1 - shares, _LEAST_OTHERS)[..., None, :]
        scores += self.labels
        return scores

    def scores_with(self, members: Sequence[RidgeMember], columns: Ints) -> Floats:
        """Return the scores of every member with these columns added: (members, problems, rows)."""
        gram, rows = self.sums.gram, self.rows[:, columns]
        inner = gram[np.ix_(columns, columns)]
        inner[np.diag_indices(len(columns))] += self.ridge
        near, moments = gram[:, columns], self.sums.moments
        pairs = [(member, member.inverse @ near[member.columns]) for member in members]  # with B
        schur = np.stack([inner - near[member.columns].T @ part for member, part in pairs])
        right = np.stack([moments[columns] - part.T @ moments[member.columns] for member, part in pairs])
        weights = np.linalg.solve(schur, right)
        fitted = weights.transpose(0, 2, 1) @ rows.T
        for place, (member, part) in enumerate(pairs):
            fitted[place] += member.fitted - (part @ weights[place]).T @ member.rows.T
        if not self.has_final:
            return fitted
        new = rows - np.stack([member.rows @ part for member, part in pairs])
        leverages = np.einsum("kij,kij->ki", new @ np.linalg.inv(schur), new)
        return self.scores(fitted, leverages + [member.leverages for member in members])

    def scores_without(self, member: RidgeMember, columns: Ints) -> Floats:
        """Return the scores of a member that gives some of its columns away.

        With M its inverse matrix, w its weights and B those columns, the weights of the others become
        w - M[:, B] M[B, B]^-1 w[B], which is zero in B: no new inverse is needed. x M x^T loses the squares
        of x M[:, B] M[B, B]^(-1/2).
        """
        places = np.searchsorted(member.columns, columns)
        across = member.inverse[:, places]
        inner, weights = across[places], (member.inverse @ self.sums.moments[member.columns])[places]
        fitted, leverages = member.fitted - (across @ np.linalg.solve(inner, weights)).T @ member.rows.T, None
        if member.leverages is not None:
            old = member.rows @ across
            leverages = member.leverages - np.einsum("ij,ji->i", old, np.linalg.solve(inner, old.T))
        return self.scores(fitted, leverages)

    def _votes_of(self, centred: Floats) -> Floats:
        """Return the soft votes of centred scores (members, problems, rows).

        Two classes: (members, rows), from -1, wrong, to 1, right. More: (members, classes, rows), for a
        run-off with the duels of the true class behind them.
        """
        squares = (centred**2).mean(axis=1) @ self.shares
        scale = (_SHARPNESS * np.sqrt(squares) + _TINY)[:, None]
        if centred.shape[1] == 1:
            votes = (centred[:, 0] + self.sums.label_means) * np.where(self.truth == 1, 1.0, -1.0)
            return np.asarray(np.clip(votes / scale, -1.0, 1.0))
        scores = centred + self.sums.label_means[:, None]
        scores -= scores.max(axis=1, keepdims=True)
        scores *= 2 / scale[:, :, None]
        cast = cast_votes(scores >= -_TIE, self.truth)
        own = scores[:, self.truth, np.arange(len(self.truth))]
        duels = np.clip((own[:, None] - scores) / 2, -1.0, 1.0) if self.has_final else None
        votes = np.exp(scores, out=scores)
        votes *= 0.5 / votes.sum(axis=1, keepdims=True)
        votes += 0.5 * cast
        return votes if duels is None else np.concatenate([votes, duels], axis=1)

    def _values(self, totals: Floats) -> Floats:
        """Return the value for each of several vote counts."""
        rows = np.arange(totals.shape[-1])
        if totals.ndim == 2:
            lead = totals
        elif self.has_final:
            lead = np.mean(runoff_leads(totals, self.truth), axis=0)
        else:
            own = totals[..., self.truth, rows]
            totals[..., self.truth, rows] = -np.inf
            lead = own - totals.max(axis=-2)
        # (lead + 1) / 2 up to the constant 1 / 2
        return np.asarray(np.clip(lead, -1.0, self.highest_lead) @ self.row_weights / -2)


def cast_votes(is_best: Bools, truth: Ints) -> Bools:
    """Return the vote of each (..., row) for one class, or for every wrong one where several are best."""
    tied = np.nonzero(is_best.sum(axis=-2, dtype=np.int32) > 1)
    wrong = np.arange(is_best.shape[-2]) != truth[tied[-1], None]
    np.moveaxis(is_best, -2, -1)[tied] = wrong
    return is_best


def runoff_leads(totals: Floats, truth: Ints) -> tuple[Floats, Floats]:
    """Return the lead of the true class, and its smallest lead in a duel.

    Parameters
    ----------
    totals : ndarray of shape (..., 2 n_classes, rows)
        Votes of all classes, then leads of the true class in its duels. Overwritten.
    truth : ndarray of shape (rows,)
    """
    n_classes, rows = totals.shape[-2] // 2, np.arange(len(truth))
    own = totals[..., truth, rows]
    totals[..., truth, rows], totals[..., n_classes + truth, rows] = -np.inf, np.inf
    rivals, duels = np.split(totals, 2, axis=-2)
    best = rivals.max(axis=-2, keepdims=True)
    is_best = rivals == best
    second = np.where(is_best, -np.inf, rivals).max(axis=-2, keepdims=True)
    second = np.where(is_best.sum(axis=-2, keepdims=True, dtype=np.int32) > 1, best, second)
    least, next_least = own - best[..., 0, :], own - second[..., 0, :]
    pushed_out = np.maximum(next_least, (least + next_least) * (2 / 3))
    distance = np.where(is_best, second, best) - rivals
    beaten = np.maximum(duels, distance).min(axis=-2)
    return np.minimum(pushed_out, beaten), duels.min(axis=-2)


def sample_classes(truth: Ints, rng: np.random.Generator) -> Ints:
    """Draw at most ``MAX_ROWS`` rows: all of the small classes, as many of each large one as fit."""
    if len(truth) <= MAX_ROWS:
        return np.arange(len(truth))
    sizes, room, share = np.bincount(truth), MAX_ROWS, np.zeros(int(truth.max()) + 1, dtype=np.intp)
    for place, code in enumerate(np.argsort(sizes)):
        share[code] = min(sizes[code], room // (len(sizes) - place))
        room -= share[code]
    picked = [
        rng.choice(np.flatnonzero(truth == code), share[code], replace=False) for code in range(len(sizes))
    ]
    return np.sort(np.concatenate(picked))


# Sums over rows


class RidgeSums(NamedTuple):
    """The sums that ridge regressions need: mean row, mean labels, sum s, and around these means G and c.

    Without a search there are no regressions, and ``gram`` has the diagonal of G only, as one column.
    """

    mean: Floats
    label_means: Floats
    total: float
    gram: Floats
    moments: Floats


class MemorySums:
    """Sums over the rows of all problems, which are in memory."""

    parts: Sequence[Sequence[Any]]

    def __init__(self, problems: Sequence[ERMProblem]) -> None:
        self.parts, self.n_members = sharing_rows(problems), problems[0].n_members

    def reduce(self, question: Callable[..., Floats], *arguments: Sequence[Any]) -> list[Floats]:
        """Ask every part, each with its own of the arguments; answers are added up over all rows."""
        return [question(*one) for one in zip(self.parts, *arguments, strict=True)]

    def sample(self) -> Sequence[Part]:
        """Return the problems on rows in memory: all rows, or enough of them to compare votes."""
        return self.parts

    @cached_property
    def means(self) -> list[tuple[Floats, Floats, float]]:
        """The mean row and the mean labels of every part, and its sum s: one pass over the rows."""
        found = []
        for part, sums in zip(self.parts, self.reduce(first_sums), strict=True):
            mean, label_means = np.split(sums[:-1] / sums[-1], [-len(part)])
            found.append((mean, label_means, float(sums[-1])))
        return found

    def ridge_sums(self, with_grams: bool) -> list[RidgeSums]:
        """Return the sums of every part: one more pass."""
        totals = self.reduce(partial(second_sums, with_gram=with_grams), self.means)
        pairs = zip(self.means, totals, strict=True)
        return [RidgeSums(*means, *np.split(sums, [-len(means[1])], axis=1)) for means, sums in pairs]


class BlockSums(MemorySums):
    """Sums over rows that are reached block by block."""

    def __init__(self, rows: RowSource, targets: Sequence[Target]) -> None:
        # One-vs-rest problems share all rows; pairs of classes have rows of their own.
        has_pairs = targets[0].contrast.negative is not None
        self.parts = [[target] for target in targets] if has_pairs else [list(targets)]
        self._rows, self.n_members = rows, targets[0].objective.n_members

    def reduce(self, question: Callable[..., Floats], *arguments: Sequence[Any]) -> list[Floats]:
        """See ``MemorySums``."""
        return list(self._rows.total(OnParts(self.parts, question, arguments)))

    def sample(self) -> Sequence[Part]:
        """See ``MemorySums``."""
        drawn: RowList = self._rows.total(DrawPool()).rows
        return on_block(self.parts, RowBlock(drawn.X, drawn.labels, drawn.weights))


def on_block(parts: Sequence[Sequence[Target]], block: RowBlock) -> list[Part]:
    """Return the problems of every part on the rows of one block."""
    return [[target.rows_of(block) for target in part] for part in parts]


@dataclass(frozen=True, eq=False)
class OnParts:
    """Ask the problems on the rows of every block."""

    parts: Sequence[Sequence[Target]]
    question: Callable[..., Floats]
    arguments: tuple[Sequence[Any], ...]

    def answer(self, block: RowBlock, state: object) -> tuple[Floats, None]:
        """See ``Request``."""
        pairs = zip(on_block(self.parts, block), *self.arguments, strict=True)
        return np.array([self.question(*one) for one in pairs]), None


def first_sums(part: Part) -> Floats:
    """Return X^T s, Y^T s and sum s, one behind the other."""
    design, weights = part[0].design, part[0].weights
    return np.concatenate([design.transposed_times(weights), weights @ labels_of(part), [weights.sum()]])


def second_sums(part: Part, means: tuple[Floats, Floats, float], with_gram: bool) -> Floats:
    """Return, around the means, X^T s X, or only its diagonal, beside X^T s Y."""
    (mean, label_means, _), design, weights = means, part[0].design, part[0].weights
    covariances = design.transposed_times(weights[:, None] * (labels_of(part) - label_means))
    if with_gram:
        scatter = design.gram(weights, mean)
    elif design.is_sparse:  # right once it is summed over all blocks, whose mean this is
        scatter = design.column_scatter(weights, np.zeros_like(mean)) - weights.sum() * mean**2
    else:
        scatter = design.column_scatter(weights, mean)
    return np.column_stack([scatter, covariances])


def labels_of(part: Part) -> Floats:
    """Return the labels of all problems, side by side."""
    return np.stack([problem.labels for problem in part], axis=1)


def strength_of(sums: Sequence[RidgeSums], groups: Ints) -> Floats:
    """Compute the squared correlations of columns and labels, summed over each group."""
    strength = np.zeros(len(groups))
    for one in sums:
        scatter = np.diagonal(one.gram) if one.gram.shape[1] > 1 else one.gram[:, 0]
        # Labels are -1 and 1: sum s (y - mean)^2 = sum s (1 - mean^2).
        scales = scatter[:, None] * (one.total * (1 - one.label_means**2))
        shares = np.divide(one.moments**2, scales, out=np.zeros_like(scales), where=scales > 0)
        strength += shares.sum(axis=1)
    return np.bincount(groups, weights=strength).astype(float)


def sharing_rows(problems: Sequence[ERMProblem]) -> list[Part]:
    """Return one-vs-rest problems together (a member votes for its best class), all others each alone."""
    parts: list[Part] = []
    for _, run in groupby(problems, key=lambda problem: (id(problem.design), id(problem.weights))):
        part = list(run)
        n_positive = sum((problem.labels > 0).astype(np.intp) for problem in part)
        parts += [part] if len(part) > 1 and np.all(n_positive == 1) else [[one] for one in part]
    return parts


@dataclass(frozen=True, eq=False)
class RowPool:
    """At most ``MAX_ROWS`` rows of every class, those with the lowest random numbers."""

    rows: RowList
    numbers: Floats

    def __add__(self, other: RowPool) -> RowPool:
        """Return the same of both."""
        return RowPool(self.rows + other.rows, np.append(self.numbers, other.numbers)).cut()

    def cut(self) -> RowPool:
        """Return it without the rows that are too many; the order of the others stays."""
        order = np.lexsort((self.numbers, self.rows.labels))
        labels = self.rows.labels[order]
        places = np.arange(len(order)) - np.searchsorted(labels, labels)  # within each class
        keep = np.sort(order[places < MAX_ROWS])
        return RowPool(self.rows.take(keep), self.numbers[keep])


@dataclass(frozen=True)
class DrawPool:
    """The request for the ``RowPool`` of every block."""

    def answer(self, block: RowBlock, state: object) -> tuple[RowPool, None]:
        """See ``Request``."""
        n_rows = block.X.shape[0]
        # Blocks of different first rows draw different numbers, however often a block is made anew.
        head = np.frombuffer(np.asarray(block.weights[:8]).tobytes(), dtype=np.uint32)
        numbers = np.random.default_rng([SAMPLE_SEED, n_rows, *head]).random(n_rows)
        return RowPool(RowList(block.X, block.codes, block.weights), numbers).cut(), None
