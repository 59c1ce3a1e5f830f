"""From ballots to radii and sets of classes: ``certify`` and ``certify_set`` of whatever counts votes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from exclusivity._errors import check_number
from exclusivity.classifier._fitted import snapshot
from exclusivity.classifier.votes.ballots import Ballots
from exclusivity.classifier.votes.reach import grouped
from exclusivity.classifier.votes.runoff import runoff_threats
from exclusivity.classifier.votes.threats import hard_threats, radius_of
from exclusivity.problem.arrays import Bools, Ints, Matrix

_BLOCK_NUMBERS = 1 << 21


class Voters(Protocol):
    """Members that vote, and how their votes are counted: ``voting`` is "hard" or "runoff"."""

    voting: str
    classes_: NDArray[Any]

    def _certain_votes(self, X: Matrix) -> Ints:
        """Class numbers, (n_samples, n_members); ``UNDECIDED`` where rounding might turn a vote.

        Members that are all equal are asked once: a change that turns one of them turns all, so that their
        number has no say in what it takes.
        """

    def _ballots(self, X: Matrix) -> Iterator[Ballots]:
        """The ballots of blocks of rows, one block after the other."""


def threats_of(voters: Voters, X: Matrix, supports: Bools, *, all_classes: bool = True) -> Ints:
    """How many groups have to change before each class can win, (n_samples, n_classes).

    Without ``all_classes`` all but the smallest number of each row may be lower than need be.

    Parameters
    ----------
    voters : Voters
    X : rows, as the voters take them
    supports : ndarray of bool, shape (n_members, n_groups)
    """
    n_classes = len(voters.classes_)
    if voters.voting == "hard" or n_classes == 2:
        return hard_threats(voters._certain_votes(X), supports, n_classes, all_classes=all_classes)
    blocks = [
        runoff_threats(ballots, supports, n_classes, all_classes=all_classes)
        for ballots in voters._ballots(X)
    ]
    return np.concatenate(blocks)


def radii_of(voters: Voters, X: Matrix, supports: Bools, top_k: int) -> Ints:
    """How many groups may change before more than ``top_k`` classes can win, (n_samples,)."""
    n_classes = len(voters.classes_)
    check_top_k(top_k, n_classes)

    def radii(rows: Matrix) -> Ints:
        return radius_of(threats_of(voters, rows, supports, all_classes=top_k > 1), supports.shape[1], top_k)

    # Votes and threats of all rows may not fit in memory, and all that is kept of a row is a number.
    step = max(1, _BLOCK_NUMBERS // (len(supports) + n_classes))
    if not (isinstance(X, np.ndarray) or sparse.issparse(X)) or X.shape[0] <= step:
        return radii(X)
    return np.concatenate([radii(X[start : start + step]) for start in range(0, X.shape[0], step)])


def check_top_k(top_k: int, n_classes: int) -> None:
    """Raise unless some class could be outside of so many."""
    check_number({"top_k": top_k}, "top_k", least=1, integer=True)
    if top_k >= n_classes:
        raise ValueError(
            f"top_k={top_k}, and there are {n_classes} classes: no more of them can ever win. Give a number "
            f"from 1 to {n_classes - 1}."
        )


def winnable(threats: Ints, r: int) -> Bools:
    """Which classes can win when ``r`` groups change, (n_samples, n_classes)."""
    check_number({"r": r}, "r", least=0, integer=True)
    return np.asarray(threats <= r)


class CertifiedVotes:
    """``certify`` and ``certify_set`` for a classifier that is one of the ``Voters``."""

    voting: str
    classes_: NDArray[Any]
    groups_: Ints
    supports_: Any

    def certify(self, X: Matrix, *, top_k: int = 1) -> Ints:
        """How many features may take any finite value without changing the prediction.

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
        at = snapshot(self)
        return radii_of(at, X, at._groups_of_members(), top_k)

    def certify_set(self, X: Matrix, r: int) -> Bools:
        """The classes that could win when any ``r`` features take any finite values.

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
        at = snapshot(self)
        return winnable(threats_of(at, X, at._groups_of_members()), r)

    def _groups_of_members(self) -> Bools:
        """Which member uses which feature group."""
        check_is_fitted(self)
        self._require_votes()
        return grouped(self._asked_supports, self.groups_)

    @property
    def _asked_supports(self) -> Bools:
        """Which columns the members use that ``_certain_votes`` and ``_ballots`` ask."""
        return np.asarray(self.supports_)

    def _require_votes(self) -> None:
        """Raise where no votes are counted."""

    def _certain_votes(self, X: Matrix) -> Ints:
        raise NotImplementedError

    def _ballots(self, X: Matrix) -> Iterator[Ballots]:
        raise NotImplementedError
