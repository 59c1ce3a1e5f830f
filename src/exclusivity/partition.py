"""Feature Partition Aggregation: any classifier on disjoint groups of features, a vote, and a certificate."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from copy import copy
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, has_fit_parameter, validate_data

from exclusivity._typing import Bools, Floats, Ints, Matrix, RandomState
from exclusivity.classifier._ensemble import MemberPredictions
from exclusivity.classifier._validation import (
    abstaining_members,
    check_choice,
    check_counted,
    check_jobs,
    check_number,
    fitted_attributes,
    group_codes,
    groups_of_rows,
    random_partition,
    read_partition,
    replace_fitted,
    require_labels,
    require_two_classes,
    sample_weights,
    scope_of,
    signs_of_rows,
    table_advice,
)
from exclusivity.objective.objective import ERMProblem
from exclusivity.rows.design import check_sparse
from exclusivity.solvers.partition_search import ExclusiveOptions, MemorySums, find_partition
from exclusivity.voting.members import VotingMembers
from exclusivity.voting.preferences import MemberPreferences
from exclusivity.voting.rules import RULES, VotingEnsemble

__all__ = ["FeaturePartitionClassifier"]

_SEED_LIMIT = np.iinfo(np.int32).max
# C of the linear models that stand in for the members while a partition is learned.
_SEARCH_COST = 0.1


@dataclass(repr=False, eq=False, match_args=False)
class FeaturePartitionClassifier(MemberPredictions, MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    """Train models of any kind on disjoint groups of features, and let them vote.

    Each feature reaches one member only, so that broken features cannot turn more votes than there are of
    them: the certificate of :meth:`certify` holds for any base estimator. ``ERMClassifier(exclusivity=np.inf,
    voting="hard")`` is the same with linear members.

    Parameters
    ----------
    estimator : classifier
        The kind of model that each member is.
    n_estimators : int, default=10
        Number of members; at most the number of features or groups can get some.
    feature_groups : sequence of labels, callable or None, default=None
        Columns that stay together: one label per column, or a callable from column names to labels.
    random_state : int, RandomState or None, default=None
        Draws the partition, or decides its search, and seeds the members.
    partition : {"random", "learned"} or sequence of labels, default="random"
        Who gets which features: drawn; chosen by the search of ``ERMClassifier(exclusivity=np.inf)``, for
        which linear models stand in for the members; or one member's label for each column or feature group,
        of as many members as ``n_estimators`` says.
    n_jobs : int or None, default=None
        Processes over the members in ``fit``.
    voting : {"hard", "runoff"}, default="hard"
        "hard": the class with most votes wins; among equals the one whose voters are surest, by their
        ``decision_function`` or ``predict_proba``; without these the first member's class, if that is one of
        them. "runoff": the two classes with most votes meet in a second round, in which every member votes
        for the one it scores higher; ties go to the class with the higher mean score, every member's scores
        taken relative to their mean and spread. Of two classes the two are the same. A member whose columns
        are all missing in a row (NaN, where members take it, or missing cells of a ``TableEncoder`` in front)
        abstains there, unless all columns are missing.

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
    certificate_scope_ : str
        What a radius is about: "test", values of the row to be predicted, where the partition was learned;
        "training and test", values of the same features in training rows too (their labels correct), where it
        was drawn; for labels that were given "training and test if the partition does not depend on the
        rows".
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
    >>> int(clf.certify(X[1::2]).max())
    4
    """

    estimator: BaseEstimator
    n_estimators: int = 10
    _: KW_ONLY
    feature_groups: object = None
    random_state: RandomState = None
    partition: ArrayLike = "random"
    n_jobs: int | None = None
    voting: str = "hard"

    def fit(self, X: Matrix, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Divide the features and train a member on each part.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training rows.
        y : array-like of shape (n_samples,)
            Class labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows, for members that take some.

        Returns
        -------
        self : FeaturePartitionClassifier
            The fitted classifier.
        """
        fresh = copy(self)  # other threads predict with the former members until these are complete
        fresh._fit(X, y, sample_weight)
        replace_fitted(self, fitted_attributes(fresh))
        return self

    def _fit(self, X: Matrix, y: ArrayLike, sample_weight: ArrayLike | None) -> None:
        check_number(self.get_params(deep=False), "n_estimators", least=1, integer=True)
        check_counted(self.get_params(deep=False))
        check_jobs(self.n_jobs)
        labels = groups_of_rows(self.feature_groups, X)
        if signs_of_rows(None, X) is not None:
            raise ValueError("monotonic_cst of a TableEncoder needs an ERMClassifier behind it.")
        check_sparse(X)
        require_labels(y)
        with table_advice(type(self).__name__):
            X, y = validate_data(self, X, y, **self._rows_allowed())
        check_classification_targets(y)
        classes, codes = np.unique(y, return_inverse=True)
        weights = sample_weights(sample_weight, X.shape[0])
        require_two_classes(classes[np.unique(codes[weights > 0])])
        groups = group_codes(labels, X.shape[1], getattr(self, "feature_names_in_", None))
        rng = check_random_state(self.random_state)
        partition = self._divide(X, codes, weights, groups, rng)
        owners = partition[groups]
        self.supports_ = owners == np.arange(int(partition.max()) + 1)[:, None]
        members = [_seeded(clone(self.estimator), rng) for _ in self.supports_]
        extra = {} if sample_weight is None else {"sample_weight": weights}
        self.estimators_ = Parallel(n_jobs=self.n_jobs)(
            delayed(_fit)(member, X[:, columns], codes, extra)
            for member, columns in zip(members, self.supports_, strict=True)
        )
        self.classes_, self.groups_, self.partition_ = classes, groups, partition
        self.certificate_scope_ = scope_of(self.partition)
        if self.voting == "runoff" and len(classes) > 2:  # refuse members that rank no classes now
            next(self._voters().preferences(X[:1]))

    def _divide(
        self, X: Matrix, codes: Ints, weights: Floats, groups: Ints, rng: np.random.RandomState
    ) -> Ints:
        """Return the owner of every feature group."""
        n_groups = int(groups.max()) + 1
        if not isinstance(self.partition, str):
            return read_partition(self.partition, groups, self.n_estimators)
        check_choice(self.get_params(deep=False), "partition", ("random", "learned"))
        if n_groups < self.n_estimators:
            warnings.warn(
                f"{self.n_estimators} members compete for {n_groups} features or groups: only {n_groups} of "
                f"them exist. Set n_estimators to {n_groups} or less.",
                UserWarning,
                stacklevel=4,
            )
        if self.partition == "learned":
            return _learn_partition(X, codes, weights, groups, self.n_estimators, rng, self.voting)
        return random_partition(n_groups, self.n_estimators, rng)

    def _winners(self, X: Matrix) -> Ints:
        rows = self._validate_rows(X)
        return self._voters().winners(rows, self._absent(X, rows))

    def _votes(self, X: Matrix) -> Ints:
        return self._voters().votes(X)

    def __sklearn_tags__(self) -> Any:
        """Declare that sparse rows and missing values are taken where members take them."""
        tags, inner = super().__sklearn_tags__(), get_tags(self.estimator).input_tags
        tags.input_tags.sparse, tags.input_tags.allow_nan = inner.sparse, inner.allow_nan
        return tags

    def _rows_allowed(self) -> dict[str, Any]:
        allow_nan = get_tags(self.estimator).input_tags.allow_nan
        return {
            "accept_sparse": "csr",
            "dtype": [np.float64, np.float32],
            "ensure_all_finite": "allow-nan" if allow_nan else True,
        }

    def _validate_rows(self, X: Matrix) -> Any:
        check_is_fitted(self)
        check_sparse(X)
        with table_advice(type(self).__name__):
            return validate_data(self, X, reset=False, **self._rows_allowed())

    def _absent(self, X: Matrix, rows: Matrix) -> Bools | None:
        """Return which members have nothing but missing values; X are rows as they were given."""
        found = abstaining_members(X, self.supports_)
        if found is None and not sparse.issparse(rows) and np.isnan(rows).any():
            found = np.stack([np.isnan(rows[:, used]).all(axis=1) for used in self.supports_], axis=1)
        return found

    def _voters(self, voting: str | None = None) -> VotingMembers:
        rule = RULES[self.voting if voting is None else voting]
        return VotingMembers(self.estimators_, self.supports_, len(self.classes_), rule)

    def _voting_ensemble(self, voting: str | None = None) -> VotingEnsemble:
        check_is_fitted(self)
        at = copy(self)
        voters = at._voters(voting)

        def preferences(X: Matrix) -> Iterator[MemberPreferences]:
            rows = at._validate_rows(X)
            return voters.preferences(rows, at._absent(X, rows))

        def predict(X: Matrix) -> NDArray[Any]:
            rows = at._validate_rows(X)
            return np.asarray(at.classes_[voters.winners(rows, at._absent(X, rows))])

        return VotingEnsemble(voters.rule, at.classes_, at.supports_, at.groups_, preferences, predict)


def _fit(member: BaseEstimator, X: Matrix, codes: Ints, extra: dict[str, Any]) -> Any:
    if extra and not has_fit_parameter(member, "sample_weight"):
        raise TypeError(
            f"sample_weight was given, and {type(member).__name__} takes none in fit; leave it out, or "
            "choose an estimator that does."
        )
    return member.fit(X, codes, **extra)


def _seeded(estimator: BaseEstimator, rng: Any) -> Any:
    """Return the estimator with all its random states drawn from ``rng``."""
    names = [name for name in estimator.get_params() if name.split("__")[-1] == "random_state"]
    return estimator.set_params(**{name: int(rng.randint(_SEED_LIMIT)) for name in sorted(names)})


def _learn_partition(
    X: Matrix,
    codes: Ints,
    weights: Floats,
    groups: Ints,
    n_members: int,
    rng: np.random.RandomState,
    voting: str,
) -> Ints:
    """Return the partition that ``ERMClassifier(exclusivity=np.inf)`` would choose, on standardised columns.

    Linear models stand in for the members, each class counts the same, and missing values become the mean.
    """
    if int(groups.max()) < n_members:
        return random_partition(int(groups.max()) + 1, n_members, rng)
    rows = weights > 0
    X, codes, weights = X[rows], codes[rows], weights[rows]
    X = StandardScaler(with_mean=not sparse.issparse(X)).fit_transform(X, sample_weight=weights)
    values = X.data if sparse.issparse(X) else X
    values[np.isnan(values)] = 0.0
    classes, codes = np.unique(codes, return_inverse=True)
    balanced = weights / np.bincount(codes, weights=weights)[codes] * len(codes) / len(classes)
    labels = [np.where(codes == code, 1.0, -1.0) for code in range(len(classes))]
    if len(classes) == 2:
        labels = labels[1:]
    first = ERMProblem.build(
        X.astype(float),
        labels[0],
        n_members=n_members,
        cost=_SEARCH_COST,
        weights=balanced,
        exclusivity=np.inf,
    )
    problems = [first.changed(labels=column) for column in labels]
    generator = np.random.default_rng(int(rng.randint(_SEED_LIMIT)))
    sums, options = MemorySums(problems), ExclusiveOptions(voting=RULES[voting].search)
    return find_partition(sums, groups, options, generator)
