"""Voting rules: how the votes of members become a decision, and how many features have to change to turn it.

A rule is one class. ``count`` turns an ``Election``, which has added up the votes, into scores of classes:
predictions of every classifier that votes and ONNX graphs are made with it. ``_min_changes`` counts the
features that have to change before each class can win: a ``VotingEnsemble`` makes radii and sets of classes
of it. An entry in ``RULES`` makes the rule a value of ``voting=``.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from operator import index
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from exclusivity._errors import ParameterError
from exclusivity._typing import Bools, Floats, Ints, Matrix
from exclusivity.voting._changes import (
    Counts,
    Tally,
    check_votes,
    fewest,
    fewest_changes,
    fewest_of_each,
    group_supports,
    is_disjoint,
    largest_reaches,
    product,
    radius_of,
)
from exclusivity.voting.preferences import (
    FIRST,
    SECOND,
    UNDECIDED,
    Election,
    MemberPreferences,
    Sides,
    class_scores,
    election_of_scores,
    finite,
    member_votes,
    squash,
    top_two,
)

# Numbers in one temporary array of a block of rows: 4 MB, which stay near the processor.
BLOCK_NUMBERS = 1 << 19


class VotingRule:
    """Count the votes of members among several classes.

    Between two classes every rule is a majority vote.
    """

    counts_votes: ClassVar[bool] = True
    """True if a member has one vote, however large its scores are."""
    ranks_classes: ClassVar[bool] = False
    """True if ``count`` and ``_min_changes`` ask which of two classes members prefer."""
    search: ClassVar[str] = "hard"
    """The relaxed vote that the search for a partition maximises, see ``exclusivity.solvers.exclusive``."""

    def decide(
        self,
        scores: Any,
        n_classes: int,
        multi_class: str,
        copies: int = 1,
        xp: Any = np,
        present: Any = None,
    ) -> Any:
        """Return scores of classes from the scores of linear members.

        Parameters
        ----------
        scores : array of shape (n_samples, n_problems, n_members)
        n_classes : int
        multi_class : {"ovr", "ovo"}
        copies : int
            How many equal members each one stands for.
        xp : namespace
            numpy, or what writes the same operations as an ONNX graph.
        present : array of shape (n_samples, n_members) or None
            1 for members that vote in a row, 0 for those that abstain; None: all vote.

        Returns
        -------
        decision : array of shape (n_samples, n_classes)
            The highest score wins. Of two classes (n_samples,): votes for the second class minus votes for
            the first, plus the squashed mean margin, which breaks ties.
        """
        if n_classes > 2:
            return self.count(election_of_scores(scores, n_classes, multi_class, copies, xp, present))
        votes = 2 * member_votes(scores, n_classes, multi_class, xp) - 1
        margins = xp.take(finite(scores, xp), 0, axis=1)
        if present is not None:
            votes, margins = votes * present, margins * present
        return copies * xp.sum(votes, axis=1) + squash(xp.mean(margins, axis=1), xp)

    def count(self, election: Election) -> Any:
        """Return scores of more than two classes, (n_samples, n_classes); the highest one wins."""
        raise TypeError(f"{type(self).__name__} counts no votes")

    def min_changes(
        self, preferences: MemberPreferences, supports: Bools, n_classes: int, *, all_classes: bool = True
    ) -> Ints:
        """Return how many features have to change before each class can win.

        Parameters
        ----------
        preferences : MemberPreferences
        supports : ndarray of bool, shape (n_members, n_groups)
            Which member uses which feature (or group of columns) in any of its scores. Members that use none
            abstain: a constant vote would only fake robustness.
        n_classes : int
        all_classes : bool, default=True
            False: all but the smallest number of each row may be lower than need be, which takes less time.

        Returns
        -------
        changes : ndarray of int, shape (n_samples, n_classes)
            0 for the winner; more than the number of groups where no number of them is enough.

        Examples
        --------
        Four members for class 0 and one for class 1: two features tie them; for class 2 it takes as many.

        >>> votes = MemberPreferences(np.array([[0, 0, 0, 0, 1]]))
        >>> RULES["hard"].min_changes(votes, np.eye(5, dtype=bool), 3)
        array([[0, 2, 2]])

        Members that rank classes 012, 012, 102, 210 and 201: class 0 leads with two votes and meets class 2
        in a run-off, which three of five members like less. One feature is enough for class 2, and for class
        1, which it brings to the final.

        >>> from exclusivity.voting.preferences import certain_preferences
        >>> rankings = np.array([[0, 1, 2], [0, 1, 2], [1, 0, 2], [2, 1, 0], [2, 0, 1]])
        >>> scores = -np.argsort(rankings, axis=1).T[None].astype(float)
        >>> ranked = certain_preferences(scores, np.zeros_like(scores), 3, "ovr")
        >>> RULES["runoff"].min_changes(ranked, np.eye(5, dtype=bool), 3)
        array([[0, 1, 1]])
        """
        check_votes(preferences.votes, supports, n_classes)
        count = self._min_changes if n_classes > 2 else RULES["hard"]._min_changes
        uses_features: Bools = np.asarray(supports.any(axis=1))
        reach, n_rows = largest_reaches(supports[uses_features]), len(preferences.votes)
        changes, is_doubtful = np.empty((n_rows, n_classes), dtype=np.intp), np.empty(n_rows, dtype=bool)
        step = max(1, BLOCK_NUMBERS // (n_classes * max(n_classes, *reach.shape, 1)))
        for rows in (slice(start, start + step) for start in range(0, n_rows, step)):
            block = preferences.take(rows, uses_features)
            changes[rows], is_doubtful[rows] = count(block, reach, n_classes, all_classes)
        doubtful = np.flatnonzero(is_doubtful)
        if doubtful.size and preferences.finer is not None:
            finer = preferences.finer(doubtful)
            changes[doubtful] = self.min_changes(finer, supports, n_classes, all_classes=all_classes)
        return changes

    def _min_changes(
        self, preferences: MemberPreferences, reach: Floats, n_classes: int, all_classes: bool
    ) -> tuple[Counts, Bools]:
        """Return ``min_changes`` of members that use features, and in which rows rounding matters.

        ``reach``, (n_members, n_sets), has the sets of members that a feature reaches.
        """
        raise TypeError(f"{type(self).__name__} has no certificate")


class SoftVoting(VotingRule):
    """The mean of the members' margins; one broken feature moves it as far as it likes."""

    counts_votes = False

    def decide(
        self,
        scores: Any,
        n_classes: int,
        multi_class: str,
        copies: int = 1,
        xp: Any = np,
        present: Any = None,
    ) -> Any:
        """See ``VotingRule``; the only member is the averaged model."""
        if n_classes > 2:
            scores = class_scores(scores, n_classes, multi_class, xp)
            return xp.take(scores, 0, axis=2)
        return xp.take(xp.take(scores, 0, axis=2), 0, axis=1)


class HardVoting(VotingRule):
    """Plurality: every member votes for its best class, and the class with most votes wins."""

    def count(self, election: Election) -> Any:
        """Return the votes of each class, ties broken."""
        return election.counts + election.liking

    def _min_changes(
        self, preferences: MemberPreferences, reach: Floats, n_classes: int, all_classes: bool
    ) -> tuple[Counts, Bools]:
        tally = Tally(preferences.votes, n_classes)
        is_doubtful = tally.undecided > 0
        if not is_disjoint(reach):
            return tally.fewest_against(tally.totals.argmax(axis=1), reach), is_doubtful
        if all_classes:  # c has to pass all classes, and not the winner alone
            return fewest_changes(tally.leads(), tally.n_members), is_doubtful
        return tally.fewest_to_pass_winner(), is_doubtful


class RunoffVoting(VotingRule):
    """Two rounds: the two classes with most votes meet in a final, in which every member has a vote again.

    Scores of the finalists are all voters plus the votes of the final; of one-vs-one members the problem of
    these two classes decides.
    """

    ranks_classes = True
    search = "runoff"

    def count(self, election: Election) -> Any:
        """Return the votes of the first round, and those of the finalists above all others."""
        xp, n_classes, counts = election.xp, election.n_classes, election.counts
        if election.prefer_first is None:
            raise TypeError("a run-off needs members that rank classes")
        decision = counts + election.liking
        first, second = top_two(decision, n_classes, xp)
        n_voters = xp.sum(counts, axis=1)
        for_first = election.copies * xp.sum(election.prefer_first(first, second), axis=1)
        for finalist, votes in ((first, for_first), (second, n_voters - for_first)):
            is_finalist = xp.expand_dims(finalist, axis=1) == np.arange(n_classes)
            decision = xp.where(
                is_finalist, xp.expand_dims(n_voters + votes, axis=1) + election.liking, decision
            )
        return decision

    def _min_changes(
        self, preferences: MemberPreferences, reach: Floats, n_classes: int, all_classes: bool
    ) -> tuple[Counts, Bools]:
        """See ``VotingRule``; ``all_classes`` counts the final of A too, which takes twice the time."""
        found = _RunoffChanges(preferences, n_classes, reach, all_classes)
        return found.changes(), found.is_doubtful()


RULES: dict[str, VotingRule] = {"soft": SoftVoting(), "hard": HardVoting(), "runoff": RunoffVoting()}
"""The values of ``voting=``."""


class _RunoffChanges:
    """The minimal changes of one run-off for each of some rows, all members with features.

    A tie in either round counts as won by every class. Let w win the run-off, v_c be votes of the first
    round, m the number of undecided ones. For c to win,

    A. either another class f meets c in the final, and w is pushed out: both leads of w, g over c and h over
       f, have to go. A change lowers g by 2 (a voter of w) or 1, h likewise, and g + h by 3 (a voter of w) or
       1; an undecided vote lowers one of them by 1. And c has to win against f.
    B. or c meets w in the final and wins there: the lead of w in their duel falls by 2 for every changed
       member that prefers w, by 1 for one that has no preference. And c has to get there, level with every
       third class d. Disjoint supports: n changes are enough for that if sum_d max(q_d, 0) <= n,
       q_d = v_d - v_c - m - n (see ``_changes``). They include max(q_d, 0) voters of d, of whom p_d prefer w;
       so at most min(n - sum_d max(q_d - p_d, 0), u) changed members prefer w, where u is how many of all do.
       The smallest n that satisfies both is exact, but for members that vote for c and prefer w all the same.

    With shared features the r features that lower a lead most, one by one, bound what any r of them do; every
    condition has its own r, and all of them are necessary.
    """

    def __init__(
        self, preferences: MemberPreferences, n_classes: int, reach: Floats, all_classes: bool
    ) -> None:
        self.preferences, self.n_classes = preferences, n_classes
        self.reach, self.all_classes = reach, all_classes
        self.tally, self.rows = Tally(preferences.votes, n_classes), np.arange(len(preferences.votes))
        self.winner, second = top_two(self.tally.totals.astype(float), n_classes)
        # The sides of members, and the leads of the winners, in all duels of these.
        self.sides = preferences.against(self.winner)
        self.lead = self._leads(self.sides)
        undecided = self._undecided(self.sides)[self.rows, second]
        lost = np.flatnonzero(-self.lead[self.rows, second] > 2 * undecided)
        if lost.size:
            self.winner[lost] = second[lost]
            everyone = np.ones(self.tally.n_members, dtype=bool)
            self.sides[lost] = preferences.take(lost, everyone).against(second[lost])
            self.lead[lost] = self._leads(self.sides[lost])

    def _leads(self, sides: Sides) -> Counts:
        """Return the lead of the rival over each class, undecided votes against it, (n_rows, c)."""
        counts = [(sides == side).sum(axis=2, dtype=self.tally.kind) for side in (FIRST, SECOND)]
        return np.asarray(counts[0] - counts[1] - self._undecided(sides))

    def _undecided(self, sides: Sides) -> Counts:
        return np.asarray((sides == UNDECIDED).sum(axis=2, dtype=self.tally.kind))

    def is_doubtful(self) -> Bools:
        """Return the rows in which rounding matters."""
        undecided = self._undecided(self.sides)
        undecided[self.rows, self.winner] = 0
        return np.asarray((self.tally.undecided > 0) | undecided.any(axis=1))

    def changes(self) -> Counts:
        """Return the minimal changes of all classes, (n_rows, n_classes)."""
        changes: Counts = np.minimum(self._pairs_that_push_out().min(axis=2), self._duels_with_winner())
        changes[self.rows, self.winner] = 0
        return changes

    def _pairs_that_push_out(self) -> Counts:
        """Return A: the fewest features for a final of c and f that c wins, (n_rows, c, f)."""
        totals, undecided = self.tally.totals, self.tally.undecided[:, None]
        opponents = self._opponents()
        leads = totals[self.rows, self.winner][:, None] - totals
        both = leads[:, :, None] + leads[:, None, opponents] - undecided[:, :, None]
        if is_disjoint(self.reach):
            single, together = _divided(leads - undecided, 2), _divided(both, 3)
        else:
            single = self.tally.fewest_against(self.winner, self.reach)
            gains = (
                self.reach.sum(axis=0)
                + 2 * self.tally.reached(self.winner[:, None], self.reach)
                - self.tally.reached(UNDECIDED, self.reach)
            )
            together = fewest_of_each(gains, both)
        needed = np.maximum(np.maximum(single[:, :, None], single[:, None, opponents]), together)
        if self.all_classes:
            needed = np.maximum(needed, self._finals_without_winner())
        never = max(int(self.reach.shape[1]), self.tally.n_members) + 1  # more features than there are
        needed[:, opponents, np.arange(len(opponents))] = never
        needed[self.rows, self.winner] = never
        needed[np.broadcast_to((self.winner[:, None] == opponents)[:, None], needed.shape)] = never
        return needed

    def _opponents(self) -> Ints:
        """Return the f to look at: where c needs not win against f, one without votes is as good as another.

        Three of them, as one may be c and one the winner.
        """
        if self.all_classes:
            return np.arange(self.n_classes)
        voted = self.tally.voted
        without = np.setdiff1d(np.arange(min(self.n_classes, len(voted) + 3)), voted)[:3]
        return np.union1d(voted, without)

    def _finals_without_winner(self) -> Counts:
        """Return the fewest features for c to win a duel with f, (n_rows, c, f)."""
        leads = [
            self._leads(self.preferences.against(np.full_like(self.winner, f))) for f in range(self.n_classes)
        ]
        # A feature turns no more duel votes than it has members.
        most = max(int(self.reach.sum(axis=0).max(initial=0)), 1)
        return _divided(np.stack(leads, axis=2), 2 * most)

    def _duels_with_winner(self) -> Counts:
        """Return B: the fewest features for a final of c and the winner that c wins, (n_rows, c)."""
        if is_disjoint(self.reach):
            return self._by_members()
        step = max(1, BLOCK_NUMBERS // max(1, len(self.rows) * self.reach.shape[1]))
        blocks = (
            np.arange(start, min(start + step, self.n_classes)) for start in range(0, self.n_classes, step)
        )
        return np.concatenate([self._by_features(classes) for classes in blocks], axis=1)

    def _by_members(self) -> Counts:
        """Return B for disjoint supports."""
        tally, kind = self.tally, self.tally.kind
        voted = tally.voted
        leads = tally.leads()
        leads[:, voted, np.arange(len(voted))] = 0
        leads[np.broadcast_to((self.winner[:, None] == voted)[:, None], leads.shape)] = 0
        prefers = (self.sides == FIRST).astype(np.float32)
        is_vote = (tally.votes[:, :, None] == voted).astype(np.float32)
        of_voters = (prefers @ is_vote).astype(kind)
        liking, indifferent = ((self.sides == side).sum(axis=2, dtype=kind) for side in (FIRST, -1))
        return fewest_changes(leads, tally.n_members, (self.lead, liking, indifferent, of_voters))

    def _by_features(self, classes: Ints) -> Ints:
        """Return B for shared features: enough for the duel, and to pass the strongest third class."""
        tally, reach, rows = self.tally, self.reach, self.rows[:, None]
        sides = self.sides[:, classes]
        turned = product((2 * (sides == FIRST) + (sides == -1)).astype(np.float32), reach)
        others = tally.totals.copy()
        others[self.rows, self.winner] = -1
        best = others.argmax(axis=1)
        others[self.rows, best] = -1
        third = np.where(classes == best[:, None], others.argmax(axis=1)[:, None], best[:, None])
        gains = (
            reach.sum(axis=0)
            + product((tally.votes[:, None] == third[:, :, None]).astype(np.float32), reach)
            - product((tally.votes[:, None] == classes[:, None]).astype(np.float32), reach)
            - tally.reached(UNDECIDED, reach)[:, None]
        )
        behind = tally.totals[rows, third] - tally.totals[:, classes] - tally.undecided[:, None]
        flat = (-1, reach.shape[1])
        needed = np.maximum(
            fewest(turned.reshape(flat), self.lead[:, classes].ravel()),
            fewest(gains.reshape(flat), behind.ravel()),
        )
        return np.asarray(needed.reshape(behind.shape))


def _divided(numbers: Counts, by: int) -> Counts:
    """Divide and round up; 0 for negative numbers."""
    return np.maximum(-(-numbers // by), 0)


@dataclass(frozen=True, eq=False)
class VotingEnsemble:
    """Members that vote, each on some columns, and the rule that counts their votes."""

    rule: VotingRule
    classes: NDArray[Any]
    supports: Bools
    """Which member uses which column, (n_members, n_columns). Members that are all equal are one: a change
    that turns one of them turns all, so that their number does not matter."""
    groups: Ints
    """Numbers of what breaks as a whole: features, or groups of columns."""
    preferences: Callable[[Any], Iterator[MemberPreferences]]
    """Gives the preferences of these members for blocks of rows, one block after the other."""
    predict: Callable[[Any], NDArray[Any]]
    """Gives the labels of rows, as the rule decides."""

    def min_changes(self, X: Matrix, *, all_classes: bool = True) -> Iterator[Ints]:
        """Yield the minimal changes of every class for blocks of rows; see ``VotingRule.min_changes``."""
        supports, n_classes = group_supports(self.supports, self.groups), len(self.classes)
        for block in self.preferences(X):
            yield self.rule.min_changes(block, supports, n_classes, all_classes=all_classes)

    def radii(self, X: Matrix, top_k: int = 1) -> Ints:
        """Return how many groups may change before more than ``top_k`` classes can win, (n_samples,)."""
        if index(top_k) < 1:
            raise ParameterError("top_k", f"top_k must be an integer at least 1; got {top_k!r}.")
        if top_k >= len(self.classes):
            raise ParameterError(
                "top_k",
                f"top_k={top_k}, and there are {len(self.classes)} classes: no more of them can ever win. "
                f"Give a number from 1 to {len(self.classes) - 1}.",
            )
        n_groups = int(self.groups.max()) + 1
        blocks = self.min_changes(X, all_classes=top_k > 1)
        return np.concatenate([radius_of(changes, n_groups, top_k) for changes in blocks])

    def can_win(self, X: Matrix, r: int) -> Bools:
        """Return which classes can win when ``r`` groups change, (n_samples, n_classes)."""
        if index(r) < 0:
            raise ParameterError("r", f"r must be an integer at least 0; got {r!r}.")
        return np.concatenate([changes <= r for changes in self.min_changes(X)])


class CertifiedVotes:
    """``certify`` and ``certify_set`` for a classifier whose members vote."""

    @abstractmethod
    def _voting_ensemble(self, voting: str | None = None) -> VotingEnsemble:
        """Return the members that vote and the rule ``voting`` (None: the classifier's own)."""

    def certify(self, X: Matrix, *, top_k: int = 1) -> Ints:
        """Count the features that may take any finite value without changing the prediction.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows to certify, as ``predict`` takes them.
        top_k : int, default=1
            Count until more than so many classes could win; see :meth:`certify_set`.

        Returns
        -------
        radius : ndarray of int, shape (n_samples,)
            The prediction of a row with radius r stays the same whatever happens to r of its features (of its
            feature groups, if there are any), and whatever rows stand beside it: a member whose scores lie
            within their rounding errors counts as if it could say anything. -1 where there is a tie, or might
            be one. Exact for two classes and disjoint supports, a proven lower bound otherwise.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.datasets import load_breast_cancer
        >>> from exclusivity import ERMClassifier
        >>> X, y = load_breast_cancer(return_X_y=True)
        >>> X = (X - X.mean(axis=0)) / X.std(axis=0)
        >>> clf = ERMClassifier(9, exclusivity=np.inf, voting="hard", random_state=0).fit(X[::2], y[::2])
        >>> radius = clf.certify(X[1::2])
        >>> int(radius.max())
        4
        """
        return self._voting_ensemble().radii(X, top_k)

    def certify_set(self, X: Matrix, r: int) -> Bools:
        """Return the classes that could win when any ``r`` features take any finite values.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows to certify, as ``predict`` takes them.
        r : int
            How many features (feature groups) may change.

        Returns
        -------
        can_win : ndarray of bool, shape (n_samples, n_classes)
            In the order of ``classes_``; the prediction is always among them. Whatever happens to r features,
            ``predict`` gives one of these classes. A row with one class is certified at r: its radius is at
            least r. Exact for two classes and disjoint supports; otherwise no class is missing that could
            win, and some may be there that could not.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.datasets import load_iris
        >>> from exclusivity import ERMClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> clf = ERMClassifier(4, exclusivity=np.inf, voting="runoff", random_state=0).fit(X, y)
        >>> clf.certify_set(X[[0, 40]], 0)
        array([[ True, False, False],
               [ True, False, False]])
        >>> clf.certify_set(X[[0, 50]], 1)
        array([[ True, False, False],
               [ True,  True,  True]])
        """
        return self._voting_ensemble().can_win(X, r)
