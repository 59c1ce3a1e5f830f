"""From member preferences to radii and sets of classes: ``certify`` and ``certify_set``."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exclusivity._errors import ParameterError, check_number
from exclusivity._typing import Bools, Ints, Matrix
from exclusivity.voting._changes import group_supports, radius_of
from exclusivity.voting.preferences import MemberPreferences
from exclusivity.voting.rules import VotingRule


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
        check_number({"top_k": top_k}, "top_k", least=1, integer=True)
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
        check_number({"r": r}, "r", least=0, integer=True)
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
