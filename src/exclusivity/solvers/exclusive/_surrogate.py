"""Ridge regressions in place of the members of a partition: quick to fit, quick to change.

A member on the columns S is replaced by the ridge regression of the labels on these columns,

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

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from exclusivity._typing import Floats, Ints, Matrix
from exclusivity.objective.problem import ERMProblem
from exclusivity.rows.design import RowList
from exclusivity.rows.source import RowBlock, RowSource
from exclusivity.solvers.base import SAMPLE_SEED
from exclusivity.solvers.blocks import Target

Part = Sequence[ERMProblem]
"""Problems that share their rows and weights."""

Question = Callable[..., Any]


@dataclass(frozen=True, eq=False)
class RidgeSums:
    """The sums that ridge regressions need: mean row, G, mean labels, c, and sum s.

    Without a search there are no regressions, and ``gram`` has the diagonal of G only, as one column.
    """

    mean: Floats
    gram: Floats
    label_means: Floats
    moments: Floats
    total: float


class PartitionSums(ABC):
    """Sums over the rows of all problems, wherever the rows are.

    Attributes
    ----------
    parts : sequence of parts
        The problems that share rows and weights, together.
    n_members : int
    """

    parts: Sequence[Any]
    n_members: int

    @abstractmethod
    def reduce(self, question: Question, *arguments: Sequence[Any]) -> Any:
        """Ask every part, each with its own of the arguments; answers are added up over all rows."""

    @abstractmethod
    def sample(self) -> Sequence[Part]:
        """Return the problems on rows in memory: all rows, or enough of them to compare votes."""

    @cached_property
    def means(self) -> list[Means]:
        """Return the means of every part: one pass over the rows."""
        found = []
        for sums, part in zip(self.reduce(first_sums), self.parts, strict=True):
            means, n_labels = sums[:-1] / sums[-1], len(part)
            found.append(Means(means[:-n_labels], means[-n_labels:], float(sums[-1])))
        return found

    def ridge_sums(self, with_grams: bool) -> list[RidgeSums]:
        """Return the sums of every part: one more pass."""
        question, found = partial(second_sums, with_gram=with_grams), []
        for sums, at in zip(self.reduce(question, self.means), self.means, strict=True):
            n_labels = len(at.labels)
            gram, moments = sums[:, :-n_labels].copy(), sums[:, -n_labels:].copy()  # read often
            found.append(RidgeSums(at.row, gram, at.labels, moments, at.total))
        return found


class MemorySums(PartitionSums):
    """Sums over rows in memory.

    Parameters
    ----------
    parts : sequence of parts
        See :func:`sharing_rows`.
    """

    def __init__(self, parts: Sequence[Part]) -> None:
        self.parts, self.n_members = parts, parts[0][0].n_members

    def reduce(self, question: Question, *arguments: Sequence[Any]) -> Any:
        """See ``PartitionSums``."""
        return [question(*one) for one in zip(self.parts, *arguments, strict=True)]

    def sample(self) -> Sequence[Part]:
        """See ``PartitionSums``."""
        return self.parts


class BlockSums(PartitionSums):
    """Sums over rows that are reached block by block."""

    def __init__(self, rows: RowSource, targets: Sequence[Target]) -> None:
        self._rows, self.n_members = rows, targets[0].objective.n_members
        # One-vs-rest problems share all rows; pairs of classes have rows of their own.
        has_pairs = targets[0].contrast.negative is not None
        self.parts = [[target] for target in targets] if has_pairs else [list(targets)]

    @property
    def totals(self) -> Floats:
        """Return the sum of weights of each target's rows."""
        return np.concatenate([[at.total] * len(at.labels) for at in self.means])

    def reduce(self, question: Question, *arguments: Sequence[Any]) -> Any:
        """See ``PartitionSums``."""
        found: Floats = self._rows.total(OnParts(self.parts, question, arguments))
        return found

    def sample(self) -> Sequence[Part]:
        """See ``PartitionSums``."""
        drawn: RowList = self._rows.total(DrawPool()).rows
        return _on_block(self.parts, RowBlock(drawn.X, drawn.labels, drawn.weights))


def _on_block(parts: Sequence[Sequence[Target]], block: RowBlock) -> list[Part]:
    return [[target.rows_of(block) for target in part] for part in parts]


@dataclass(frozen=True, eq=False)
class OnParts:
    """Ask the problems on the rows of every block."""

    parts: Sequence[Sequence[Target]]
    question: Question
    arguments: tuple[Sequence[Any], ...]

    def answer(self, block: RowBlock, state: object) -> tuple[Floats, None]:
        """See ``Request``."""
        pairs = zip(_on_block(self.parts, block), *self.arguments, strict=True)
        return np.array([self.question(*one) for one in pairs]), None


class Means(NamedTuple):
    """The mean row and the mean labels of a part, and sum s."""

    row: Floats
    labels: Floats
    total: float


def first_sums(part: Part) -> Floats:
    """Return X^T s, Y^T s and sum s, one behind the other."""
    design, weights = part[0].design, part[0].weights
    return np.concatenate([design.transposed_times(weights), weights @ labels_of(part), [weights.sum()]])


def second_sums(part: Part, means: Means, with_gram: bool) -> Floats:
    """Return, around the means, X^T s X, or only its diagonal, beside X^T s Y."""
    design, weights = part[0].design, part[0].weights
    covariances = design.transposed_times(weights[:, None] * (labels_of(part) - means.labels))
    if with_gram:
        scatter = design.gram(weights, means.row)
    elif design.is_sparse:  # right once it is summed over all blocks, whose mean this is
        squares = design.column_scatter(weights, np.zeros_like(means.row))
        scatter = squares - weights.sum() * means.row**2
    else:
        scatter = design.column_scatter(weights, means.row)
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


def surrogates_of(
    sums: Sequence[RidgeSums], parts: Sequence[Part], rng: np.random.Generator, left_out: bool = False
) -> list[RidgeSurrogate]:
    """Make a surrogate for every part; ``rng`` draws rows where they are many.

    With ``left_out`` rows of several classes are scored as if left out.
    """
    found = []
    for one, part in zip(sums, parts, strict=True):
        labels, first = labels_of(part), part[0]
        truth = labels.argmax(axis=1) if len(part) > 1 else (labels[:, 0] > 0).astype(np.intp)
        chosen = sample_classes(truth, rng)
        kind = LeftOutSurrogate if left_out and len(part) > 1 else RidgeSurrogate
        found.append(kind(one, first.cost, first.design.rows(chosen), truth[chosen], first.weights[chosen]))
    return found


def sharing_rows(problems: Sequence[ERMProblem]) -> list[Part]:
    """Return one-vs-rest problems together (a member votes for its best class), all others each alone."""
    runs = groupby(problems, key=lambda problem: (id(problem.design), id(problem.weights)))
    shared = [list(run) for _, run in runs]
    return [part for run in shared for part in ([run] if _is_one_vs_rest(run) else [[one] for one in run])]


def _is_one_vs_rest(problems: Sequence[ERMProblem]) -> bool:
    """Return whether every row is positive in exactly one problem."""
    positive = sum((problem.labels > 0).astype(np.intp) for problem in problems)
    return len(problems) > 1 and bool(np.all(positive == 1))


MAX_ROWS = 1000
"""Scores are compared on this many rows at most; the Gram matrix is that of all rows."""

# Keeps the small systems solvable when C is so large that collinear columns have no ridge left.
_RELATIVE_RIDGE = 1e-6
# At least this share of a row's score is due to other rows; less would leave little but rounding errors.
_LEAST_OTHERS = 0.05

Columns = Ints


@dataclass(frozen=True, eq=False)
class RidgeMember:
    """One member's ridge regression: its columns, their rows, the inverse matrix, and its centred scores.

    Scores are (problems, rows): sums over a few problems are quick that way. They may be those of held-out
    rows; ``fitted`` has those of the fit, and ``leverages`` x M x^T of every row, for held-out rows.
    """

    columns: Columns
    rows: Floats
    inverse: Floats
    scores: Floats
    fitted: Floats
    leverages: Floats


class RidgeSurrogate:
    """Ridge regressions on subsets of columns, for problems that share rows and weights.

    Parameters
    ----------
    sums : RidgeSums
        Over all rows; one right-hand side for each problem.
    cost : float
        C.
    X : ndarray or CSR matrix
        The few rows on which scores are compared.
    truth : ndarray of int
        Their classes: 0 and 1 for one problem, else the number of the problem whose label is 1.
    weights : ndarray
        Their weights.
    """

    def __init__(self, sums: RidgeSums, cost: float, X: Matrix, truth: Ints, weights: Floats) -> None:
        self.sums, self.cost, self.weights = sums, cost, weights
        self.gram, self.label_means, self.moments = sums.gram, sums.label_means, sums.moments
        self.ridge = max(1 / (2 * cost), _RELATIVE_RIDGE * float(np.diagonal(self.gram).mean()))
        self.truth = truth
        self.rows = _dense(X) - sums.mean
        # A row of weight 2 is two rows, here and in whatever is averaged over rows.
        self.shares = weights / weights.sum()
        # Every class counts the same, whatever its share: a constant vote must not look like a good one.
        totals = np.bincount(truth, weights=weights)
        self.row_weights = weights / (totals[truth] * np.count_nonzero(totals))

    @cached_property
    def labels(self) -> Floats:
        """Return -1 and 1, centred like all scores: one row of two classes, else one for each class."""
        n_problems = len(self.label_means)
        classes = np.arange(n_problems) if n_problems > 1 else np.ones(1)
        return np.where(self.truth == classes[:, None], 1.0, -1.0) - self.label_means[:, None]

    @cached_property
    def row_numbers(self) -> Ints:
        """Return a number for each row; equal rows of one class have the same."""
        rows = np.column_stack([self.truth, self.rows])
        return np.unique(rows, axis=0, return_inverse=True)[1].ravel()

    def fit(self, columns: Columns) -> RidgeMember:
        """Fit the member on these columns."""
        system = self.gram[np.ix_(columns, columns)]
        system[np.diag_indices(len(columns))] += self.ridge
        inverse = np.asarray(np.linalg.inv(system), dtype=float)
        rows = self.rows[:, columns]
        scores = (rows @ (inverse @ self.moments[columns])).T
        return RidgeMember(columns, rows, inverse, scores, scores, np.empty(0))

    def scores_with(self, members: Sequence[RidgeMember], columns: Columns) -> Floats:
        """Return the scores of every member with these columns added: (members, problems, rows)."""
        schur, right, solved = self._schur(members, columns)
        weights = np.linalg.solve(schur, right) if len(columns) > 1 else right / schur
        scores = np.stack([member.scores for member in members])
        scores += (self.rows[:, columns] @ weights).transpose(0, 2, 1)
        for place, (member, part) in enumerate(zip(members, solved, strict=True)):
            scores[place] -= (member.rows @ (part @ weights[place])).T
        return scores

    def _schur(self, members: Sequence[RidgeMember], columns: Columns) -> tuple[Floats, Floats, list[Floats]]:
        """Return Q and c_J - B^T c_S of every member, stacked, and their B."""
        inner = self.gram[np.ix_(columns, columns)]
        inner[np.diag_indices(len(columns))] += self.ridge
        near, moments = self.gram[:, columns], self.moments[columns]
        solved = [member.inverse @ near[member.columns] for member in members]
        pairs = list(zip(members, solved, strict=True))
        schur = np.stack([inner - near[member.columns].T @ part for member, part in pairs])
        right = np.stack([moments - part.T @ self.moments[member.columns] for member, part in pairs])
        return schur, right, solved

    def scores_without(self, member: RidgeMember, columns: Columns) -> Floats:
        """Return the scores of a member that gives some of its columns away.

        With M its inverse matrix, w its weights and B those columns, the weights of the others become
        w - M[:, B] M[B, B]^-1 w[B], which is zero in B: no new inverse is needed.
        """
        across, inner, weights = self._given_away(member, columns)
        return member.scores - (member.rows @ (across @ np.linalg.solve(inner, weights))).T

    def _given_away(self, member: RidgeMember, columns: Columns) -> tuple[Floats, Floats, Floats]:
        """Return M[:, B], M[B, B] and w[B]."""
        places = np.searchsorted(member.columns, columns)
        across = member.inverse[:, places]
        return across, across[places], (member.inverse @ self.moments[member.columns])[places]


class LeftOutSurrogate(RidgeSurrogate):
    """Ridge regressions, each row scored as if it, and those equal to it, were left out of the fit.

    A row of weight 2 then counts like two rows. The parameters are those of ``RidgeSurrogate``, for rows
    that are among those of the sums.
    """

    def __init__(self, sums: RidgeSums, cost: float, X: Matrix, truth: Ints, weights: Floats) -> None:
        super().__init__(sums, cost, X, truth, weights)
        self.left_weights = np.bincount(self.row_numbers, weights=weights)[self.row_numbers]

    def fit(self, columns: Columns) -> RidgeMember:
        """See ``RidgeSurrogate``."""
        member = super().fit(columns)
        leverages = np.einsum("ij,ij->i", member.rows @ member.inverse, member.rows)
        return replace(member, scores=self._left_out(member.fitted, leverages), leverages=leverages)

    def scores_with(self, members: Sequence[RidgeMember], columns: Columns) -> Floats:
        """See ``RidgeSurrogate``."""
        schur, right, solved = self._schur(members, columns)
        own = [member.rows @ part for member, part in zip(members, solved, strict=True)]
        new = self.rows[:, columns] - np.stack(own)
        inverse = np.linalg.inv(schur)
        fitted = np.stack([member.fitted for member in members])
        fitted += (inverse @ right).transpose(0, 2, 1) @ new.transpose(0, 2, 1)
        leverages = np.stack([member.leverages for member in members])
        leverages += np.einsum("kij,kij->ki", new @ inverse, new)
        return self._left_out(fitted, leverages)

    def scores_without(self, member: RidgeMember, columns: Columns) -> Floats:
        """See ``RidgeSurrogate``; x M x^T loses the squares of x M[:, B] M[B, B]^(-1/2)."""
        across, inner, weights = self._given_away(member, columns)
        old = member.rows @ across
        leverages = member.leverages - np.einsum("ij,ji->i", old, np.linalg.solve(inner, old.T))
        return self._left_out(member.fitted - (old @ np.linalg.solve(inner, weights)).T, leverages)

    def _left_out(self, fitted: Floats, leverages: Floats) -> Floats:
        """Return the scores (..., problems, rows) of held-out rows, from those of the fit."""
        shares = self.left_weights * (1 / self.sums.total + leverages)
        scores = fitted - self.labels
        scores /= np.maximum(1 - shares, _LEAST_OTHERS)[..., None, :]
        scores += self.labels
        return scores


def sample_classes(truth: Ints, rng: np.random.Generator) -> Columns:
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


def _dense(rows: object) -> Floats:
    return np.asarray(rows.toarray() if hasattr(rows, "toarray") else rows, dtype=float)


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
        order = np.argsort(self.numbers, kind="stable")
        keep = np.zeros(len(order), dtype=bool)
        for code in np.unique(self.rows.labels):
            keep[order[self.rows.labels[order] == code][:MAX_ROWS]] = True
        return self if keep.all() else RowPool(self.rows.take(keep), self.numbers[keep])


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
