"""Feature Partition Aggregation: random disjoint groups of features, one model each, a majority vote."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from exclusivity.baselines.votes import MarginOf, Tally
from exclusivity.classifier.certainty import DoubtOf
from exclusivity.classifier.groups import group_codes
from exclusivity.classifier.parameters import check_number
from exclusivity.classifier.radius import UNDECIDED, Bools, Ints, certified_radius, grouped

_SEED_LIMIT = np.iinfo(np.int32).max


class FeaturePartitionClassifier(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    """A vote of models of any kind on random disjoint groups of features.

    Each feature reaches one member only, so that broken features cannot turn more votes than there are of
    them: the certificate of :meth:`certify` holds for any base estimator. ``ERMClassifier(exclusivity=np.inf,
    voting="hard")`` chooses the groups instead of drawing them.

    Parameters
    ----------
    estimator : classifier
        The kind of model that each member is.
    n_estimators : int, default=10
        Number of members; at most the number of features or groups can get some.
    feature_groups : sequence of labels, callable or None, default=None
        Columns that stay together: one label per column, or a callable from column names to labels.
    random_state : int, RandomState or None, default=None
        Draws the partition, and seeds the members.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    estimators_ : list of classifiers
        The members.
    groups_ : ndarray of shape (n_features_in_,)
        The number of each column's feature group.
    partition_ : ndarray of shape (n_groups,)
        The member that owns each feature group.
    supports_ : ndarray of bool, shape (n_members, n_features_in_)
        Which member sees which column.
    n_features_in_ : int
        Number of features seen in ``fit``.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, when X had string column names.

    See Also
    --------
    exclusivity.ERMClassifier : Members that choose their features.

    References
    ----------
    Z. Hammoudeh and D. Lowd, "Provable Robustness Against a Union of L0 Adversarial Attacks",
    arXiv:2302.11628.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> clf = FeaturePartitionClassifier(DecisionTreeClassifier(), 9, random_state=0).fit(X[::2], y[::2])
    >>> clf.certify(X[1::2]).max()
    np.int64(4)
    """

    def __init__(
        self,
        estimator: Any,
        n_estimators: int = 10,
        *,
        feature_groups: Any = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.n_estimators = n_estimators
        self.feature_groups = feature_groups
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Draw the groups and train a member on each.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training rows.
        y : array-like of shape (n_samples,)
            Class labels.

        Returns
        -------
        self : FeaturePartitionClassifier
            The fitted classifier.
        """
        check_number(self.get_params(deep=False), "n_estimators", least=1, integer=True)
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32])
        check_classification_targets(y)
        classes, codes = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            raise ValueError(
                f"A classifier needs at least 2 classes in y; these rows have one class only: {classes[0]!r}."
            )
        groups = group_codes(self.feature_groups, X.shape[1], getattr(self, "feature_names_in_", None))
        rng = check_random_state(self.random_state)
        partition = _deal(int(groups.max()) + 1, self.n_estimators, rng)
        owners = partition[groups]
        self.supports_ = owners == np.arange(int(partition.max()) + 1)[:, None]
        self.estimators_ = [
            _seeded(clone(self.estimator), rng).fit(X[:, columns], codes) for columns in self.supports_
        ]
        self.classes_, self.groups_, self.partition_ = classes, groups, partition
        return self

    def component_predict(self, X: Any) -> NDArray[Any]:
        """The class that every member votes for.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows to classify.

        Returns
        -------
        labels : ndarray of shape (n_samples, n_members)
            Class labels.
        """
        return np.asarray(self.classes_[self._votes(self._validate_rows(X))])

    def predict(self, X: Any) -> NDArray[Any]:
        """The class with most votes; among equals the one whose voters are surest.

        Its ``decision_function`` or ``predict_proba`` tells how sure a member is; without these ties go to
        the first member's class, if that is one of them.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows to classify.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Class labels.
        """
        X = self._validate_rows(X)
        margins = [MarginOf(member).predict(X[:, columns]) for member, columns in self._members()]
        tally = Tally.count(self._votes(X), np.stack(margins, axis=1), len(self.classes_))
        return np.asarray(self.classes_[tally.winners()])

    def certify(self, X: Any) -> Ints:
        """How many features (groups) may take any finite value without changing the prediction.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows to certify.

        Returns
        -------
        radius : ndarray of int, shape (n_samples,)
            -1 where the vote is a tie, or might be one: where rounding might turn the vote of a linear
            member, it counts as if it could be for any class.
        """
        votes = self._certain_votes(X)
        return certified_radius(votes, grouped(self.supports_, self.groups_), len(self.classes_))

    def __sklearn_tags__(self) -> Any:
        """Sparse input is welcome where members take it."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = get_tags(self.estimator).input_tags.sparse
        return tags

    def _validate_rows(self, X: Any) -> Any:
        check_is_fitted(self)
        return validate_data(self, X, reset=False, accept_sparse="csr", dtype=[np.float64, np.float32])

    def _members(self) -> Iterator[tuple[Any, Bools]]:
        """The members with the columns that they see."""
        return zip(self.estimators_, self.supports_, strict=True)

    def _certain_votes(self, X: Any) -> Ints:
        """Class numbers, (n_samples, n_members); ``UNDECIDED`` where rounding might turn a vote."""
        X = self._validate_rows(X)
        doubts = [DoubtOf(member).predict(X[:, columns]) for member, columns in self._members()]
        return np.where(np.stack(doubts, axis=1), UNDECIDED, self._votes(X))

    def _votes(self, X: Any) -> Ints:
        return np.stack([member.predict(X[:, columns]) for member, columns in self._members()], axis=1)


def _deal(n_groups: int, n_members: int, rng: Any) -> Ints:
    """A random owner for every group; sizes differ by one at most."""
    if n_groups < n_members:
        warnings.warn(
            f"{n_members} members compete for {n_groups} features or groups: only {n_groups} of them exist. "
            f"Set n_estimators to {n_groups} or less.",
            UserWarning,
            stacklevel=3,
        )
    owners = np.arange(n_groups) % n_members
    return np.asarray(rng.permutation(owners))


def _seeded(estimator: Any, rng: Any) -> Any:
    """The estimator with all its random states drawn from ``rng``."""
    names = [name for name in estimator.get_params() if name.split("__")[-1] == "random_state"]
    return estimator.set_params(**{name: int(rng.randint(_SEED_LIMIT)) for name in sorted(names)})
