"""DREP: prune an ensemble to few members that are accurate together and differ (Li, Yu, Zhou, ECML 2012)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from exclusivity.baselines.votes import Tally, Votes, member_votes
from exclusivity.classifier import check_number
from exclusivity.problem.arrays import Ints, Matrix
from exclusivity.voting.ensembles import label_codes, truth_vector


def drep_prune(
    ensemble: BaseEstimator, X_val: Matrix, y_val: ArrayLike, *, rho: float = 0.4, patience: int = 0
) -> Ints:
    """Choose members of a fitted ensemble by diversity regularised ensemble pruning.

    Start with the member that is most accurate on the validation rows. Then, of the n members left, look at
    the ceil(rho n) that agree least with the current vote, and add the one that gives the new vote the lowest
    error; stop when no candidate lowers the error.

    Parameters
    ----------
    ensemble : estimator or list of estimators
        A fitted ERMClassifier, DRMClassifier or scikit-learn ensemble, a Pipeline that ends in one, or a list
        of fitted classifiers: what :func:`exclusivity.diversity.member_predictions` takes.
    X_val : {array-like, sparse matrix} of shape (n_samples, n_features)
        Validation rows; better ones the ensemble was not trained on.
    y_val : array-like of shape (n_samples,)
        Their labels.
    rho : float, default=0.4
        The share of the members left that counts as diverse, in (0, 1]. 1 leaves diversity out of account.
    patience : int, default=0
        Additions in a row that may fail to lower the error; those at the end are taken back. 0 is the
        published rule.

    Returns
    -------
    members : ndarray of int
        Indices of the kept members, in the order in which they were chosen.

    See Also
    --------
    PrunedEnsemble : Predicts with the kept members.
    drep_select : The same from predictions.

    Notes
    -----
    Two members that disagree tie wherever they do. Ties go to the larger sum of real-valued margins
    (``decision_function`` or ``predict_proba``), and what is then still tied to the first member chosen.
    Where margins do not differ (fully grown trees are always sure of themselves), a second member cannot
    lower the error, and only one would be kept: use ``patience=1`` there.

    References
    ----------
    N. Li, Y. Yu and Z.-H. Zhou, "Diversity Regularized Ensemble Pruning", ECML PKDD 2012.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from exclusivity.baselines import drep_prune
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> forest = RandomForestClassifier(30, max_depth=3, random_state=0).fit(X[:300], y[:300])
    >>> members = drep_prune(forest, X[300:450], y[300:450])
    >>> 1 < len(members) < 30
    True
    """
    votes = member_votes(ensemble, X_val)
    return drep_select(votes.labels, y_val, margins=votes.margins, rho=rho, patience=patience)


def drep_select(
    predictions: ArrayLike,
    y_true: ArrayLike,
    *,
    margins: ArrayLike | None = None,
    rho: float = 0.4,
    patience: int = 0,
) -> Ints:
    """Choose members from their predictions; :func:`drep_prune` says how.

    Parameters
    ----------
    predictions : array-like of shape (n_samples, n_members)
        Predicted labels of any type.
    y_true : array-like of shape (n_samples,)
        True labels.
    margins : array-like of shape (n_samples, n_members), default=None
        How sure members are of their labels; the sign does not matter. Without them ties go to the first
        member chosen.
    rho : float, default=0.4
        The share of the members left that counts as diverse, in (0, 1].
    patience : int, default=0
        Additions in a row that may fail to lower the error.

    Returns
    -------
    members : ndarray of int
        Indices of the kept members, in the order in which they were chosen.

    Examples
    --------
    >>> y = [1, 1, 1, 1]
    >>> predictions = [[0, 1, 1], [1, 0, 1], [1, 1, 0], [1, 1, 0]]
    >>> drep_select(predictions, y, margins=[[1, 2, 2], [2, 1, 2], [2, 2, 1], [2, 2, 1]], rho=1).tolist()
    [0, 2]
    """
    check_number({"rho": rho}, "rho", least=0, strict=True)
    check_number({"patience": patience}, "patience", least=0, integer=True)
    if rho > 1:
        raise ValueError(f"rho is a share of the members left, at most 1; got {rho!r}.")
    votes = Votes.from_arrays(predictions, margins)
    truth = truth_vector(y_true, votes.labels)
    codes, n_labels = label_codes(np.concatenate([votes.labels, truth[:, None]], axis=1))
    codes, target = codes[:, :-1], codes[:, -1]
    errors = np.mean(codes != target[:, None], axis=0)
    kept = [int(errors.argmin())]
    left = [member for member in range(codes.shape[1]) if member not in kept]
    tally = Tally.count(codes[:, kept], votes.margins[:, kept], n_labels)
    lowest, n_best = errors[kept[0]], 1
    while left and len(kept) - n_best <= patience:
        agreement = np.mean(codes[:, left] == tally.winners()[:, None], axis=0)
        diverse = [left[place] for place in np.argsort(agreement, kind="stable")[: ceil(rho * len(left))]]
        tallies = [tally.plus(codes[:, member], votes.margins[:, member]) for member in diverse]
        errors = np.array([np.mean(candidate.winners() != target) for candidate in tallies])
        chosen = int(errors.argmin())
        tally = tallies[chosen]
        kept.append(diverse[chosen])
        left.remove(diverse[chosen])
        if errors[chosen] < lowest:
            lowest, n_best = errors[chosen], len(kept)
    return np.array(kept[:n_best])


@dataclass(frozen=True, eq=False)
class PrunedEnsemble:
    """The vote of some members of a fitted ensemble; the others are not asked.

    Parameters
    ----------
    ensemble : estimator or list of estimators
        What :func:`drep_prune` takes.
    members : sequence of int
        Indices of the members that vote, the one that breaks the last ties first.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from exclusivity.baselines import PrunedEnsemble, drep_prune
    >>> X, y = load_iris(return_X_y=True)
    >>> forest = RandomForestClassifier(20, max_depth=2, random_state=0).fit(X[::2], y[::2])
    >>> pruned = PrunedEnsemble(forest, drep_prune(forest, X[::2], y[::2]))
    >>> pruned.score(X[1::2], y[1::2]) > 0.9
    True
    """

    ensemble: Any
    members: Sequence[int] | Ints

    def predict(self, X: Matrix) -> NDArray[Any]:
        """The label with most votes; ties are broken as in :func:`drep_prune`.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows to classify.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Labels as members of the ensemble predict them.
        """
        return member_votes(self.ensemble, X, [int(member) for member in self.members]).majority()

    def score(self, X: Matrix, y: ArrayLike) -> float:
        """The share of rows whose label is predicted.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows to classify.
        y : array-like of shape (n_samples,)
            Their labels.

        Returns
        -------
        accuracy : float
            Between 0 and 1.
        """
        return float(np.mean(self.predict(X) == np.asarray(y)))
