"""Interactions within members: features of several columns at once, none of columns of two members.

A certificate asks that a column reaches one member. What the member does with its columns is its own affair:
it may look at all of them together. A linear SVM does so on features whose products are a kernel,

    k(x, x') = exp(-|x - x'|^2 / s),     s = width times the summed variances of the member's columns,

approximated from the landmarks L, a few training rows (Nystroem): with k(L, L) = U D U^T the features of x
are phi(x) = k(x, L) U D^(-1/2), and phi(x) . phi(x') = k(x, x') wherever one of the two is a landmark.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from exclusivity.classifier import ERMClassifier, check_number
from exclusivity.problem.arrays import Floats, Ints, Matrix
from exclusivity.problem.sparse_rows import check_sparse
from exclusivity.tables.assembling import row_blocks
from exclusivity.tables.grouped import grouped

SEARCH_COST = 0.1
"""C of the additive members for which a partition is learned."""

# Directions of the landmarks' kernel matrix with less than this share of the largest are rounding.
_LEAST_DIRECTION = 1e-6
# Landmarks are drawn from so many rows: different ones have to be found among them.
_POOL = 4000


@dataclass(frozen=True, eq=False, slots=True)
class KernelMap:
    """What one member makes of its columns.

    Attributes
    ----------
    columns : ndarray of int
        Which columns.
    landmarks : ndarray of shape (n_landmarks, n_columns)
        Different rows of them.
    decay : float
        1 / s.
    mixing : ndarray of shape (n_landmarks, n_directions)
        U D^(-1/2).
    """

    columns: Ints
    landmarks: Floats
    decay: float
    mixing: Floats

    @classmethod
    def learn(cls, rows: Floats, columns: Ints, n_landmarks: int, width: float, rng: Any) -> KernelMap | None:
        """From rows of these columns; None where all of them are equal."""
        distinct = np.unique(rows, axis=0)
        if len(distinct) == 1:
            return None
        chosen = rng.permutation(len(distinct))[:n_landmarks]
        with np.errstate(over="ignore", divide="ignore"):
            decay = float(1 / (width * np.var(rows, axis=0).sum()))
        if not 0 < decay < np.inf:
            raise ValueError(
                "the columns of a member are too large or too small for their squares to be added up; scale "
                "them first (a TableEncoder does)."
            )
        landmarks = distinct[np.sort(chosen)]
        sizes, directions = np.linalg.eigh(similarities(landmarks, landmarks, decay))
        kept = sizes > _LEAST_DIRECTION * sizes[-1]
        return cls(columns, landmarks, decay, directions[:, kept] / np.sqrt(sizes[kept]))

    def features(self, rows: Floats) -> Floats:
        """Of rows of the member's columns; values out of the landmarks' range count as its nearest end."""
        inside = np.clip(rows, self.landmarks.min(axis=0), self.landmarks.max(axis=0))
        return np.asarray(similarities(inside, self.landmarks, self.decay) @ self.mixing)


def similarities(rows: Floats, landmarks: Floats, decay: float) -> Floats:
    """The kernel of every row and every landmark."""
    middle = landmarks.mean(axis=0)  # differences of numbers around zero lose fewer digits
    rows, landmarks = rows - middle, landmarks - middle
    squares = np.sum(rows**2, axis=1)[:, None] + np.sum(landmarks**2, axis=1) - 2 * (rows @ landmarks.T)
    return np.asarray(np.exp(-decay * np.maximum(squares, 0.0)))


def default_voters() -> ERMClassifier:
    """Nine additive members that vote."""
    return ERMClassifier(9, C=SEARCH_COST, exclusivity=np.inf, voting="hard", class_weight="balanced")


class InteractionFeatures(TransformerMixin, BaseEstimator):
    """Divide columns among members, and give each features of all its columns together.

    A step between a :class:`~exclusivity.tables.TableEncoder` and an :class:`~exclusivity.ERMClassifier`:
    members are then no longer sums of curves of one column each, but any smooth function of the columns that
    they own. No feature knows columns of two members, so that certificates stay what they are:
    :func:`exclusivity.robustness.certify` takes the pipeline.

    Parameters
    ----------
    voters : ERMClassifier, default=None
        Whose partition is learned, on the columns as they come; at ``exclusivity=inf``. None: nine members
        that vote, of C = 0.1 and with balanced classes. The classifier that follows has as many members.
    n_landmarks : int, default=200
        How many training rows each member compares a row with, at most: its number of features, too. More
        come closer to the kernel, and take more time and memory.
    width : float, default=1.0
        How far a training row is felt, in units of the rows' own spread.
    random_state : int, RandomState or None, default=None
        Of the landmarks; the search for a partition has that of ``voters``.

    Attributes
    ----------
    owners_ : ndarray of int, shape (n_features_in_,)
        The member of every input column; -1: of none.
    maps_ : list of KernelMap
        What each member makes of its columns; members whose columns do not vary have none.
    members_ : ndarray of int, shape (n_features_out,)
        The member behind every output column.
    n_features_in_ : int
        Number of input columns.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, where they have names.

    See Also
    --------
    exclusivity.make_robust_classifier : ``interactions=True`` puts this step in its place.
    sklearn.kernel_approximation.Nystroem : The same for all columns together, which voids certificates.

    Notes
    -----
    Landmarks are rows of the training data, of each member's columns: whoever has the model has them.
    Curves of single columns (:class:`~exclusivity.inspection.AdditiveDisplay`) no longer exist.

    The last digits of features depend on how many rows are transformed together. A certificate allows for the
    rounding of scores, not of what is scored: a vote within some 1e-12 of a tie may differ between batches.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from exclusivity import ERMClassifier
    >>> from exclusivity.tables import InteractionFeatures
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 2))
    >>> y = X[:, 0] * X[:, 1] > 0  # no sum of two curves tells these classes apart
    >>> one = ERMClassifier(1, exclusivity=np.inf)
    >>> model = make_pipeline(InteractionFeatures(one, random_state=0), one).fit(X[:200], y[:200])
    >>> bool(model.score(X[200:], y[200:]) > 0.9)
    True
    """

    owners_: Ints
    maps_: list[KernelMap]
    members_: Ints
    n_features_in_: int

    def __init__(
        self,
        voters: ERMClassifier | None = None,
        *,
        n_landmarks: int = 200,
        width: float = 1.0,
        random_state: Any = None,
    ) -> None:
        self.voters = voters
        self.n_landmarks = n_landmarks
        self.width = width
        self.random_state = random_state

    def fit(self, X: Matrix, y: ArrayLike) -> Self:
        """Learn who owns which column, and the features of every member.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training rows. What a TableEncoder made of one column stays together.
        y : array-like of shape (n_samples,)
            Class labels.

        Returns
        -------
        self : InteractionFeatures
        """
        self._check_parameters()
        additive = self._silent_voters().fit(X, y)
        X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32])
        rng = check_random_state(self.random_state)
        pool = np.sort(rng.permutation(X.shape[0])[:_POOL])
        rows, owners = X[pool], additive.partition_[additive.groups_]
        found = {}
        for member in range(additive.n_estimators):
            columns = np.flatnonzero(owners == member)
            if len(columns):
                found[member] = KernelMap.learn(
                    _dense(rows[:, columns]), columns, self.n_landmarks, self.width, rng
                )
        self._store(owners, {member: learned for member, learned in found.items() if learned})
        return self

    def _check_parameters(self) -> None:
        check_number(vars(self), "n_landmarks", least=2, integer=True)
        check_number(vars(self), "width", least=0, strict=True)

    def _silent_voters(self) -> ERMClassifier:
        """Voters whose partition is asked for, and not their votes: nobody is told how those would be."""
        if not (self.voters is None or isinstance(self.voters, ERMClassifier)):
            raise TypeError(f"voters must be an ERMClassifier; got {type(self.voters).__name__}.")
        voters: ERMClassifier = default_voters() if self.voters is None else clone(self.voters)
        if not np.isinf(voters.exclusivity):
            raise ValueError(
                "voters need exclusivity=np.inf, so that every column has one owner; got "
                f"{voters.exclusivity!r}."
            )
        searches = isinstance(voters.partition, str) and voters.partition == "learned"
        if searches and voters.voting != "soft":
            voters.solver_options = {"voting": voters.voting} | (voters.solver_options or {})
        voters.voting = "soft"
        return voters

    def _store(self, owners: Ints, maps: dict[int, KernelMap]) -> None:
        """Keep what was learned: the member of every column, and what members make of theirs."""
        if not maps:
            raise ValueError("No column of X varies: there is nothing to tell rows apart by.")
        self.owners_, self.maps_ = owners, list(maps.values())
        self.members_ = np.repeat(list(maps), [learned.mixing.shape[1] for learned in maps.values()])

    def transform(self, X: Matrix) -> Floats:
        """The features of rows, member after member.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        rows : ndarray of shape (n_samples, n_features_out)
            With an attribute ``feature_groups``: the member of every column, which classifiers of this
            package look for.
        """
        check_is_fitted(self)
        check_sparse(X)
        X = validate_data(self, X, reset=False, accept_sparse="csr", dtype=[np.float64, np.float32])
        out = np.empty((X.shape[0], len(self.members_)), dtype=X.dtype)
        for block in row_blocks(X.shape[0]):
            rows = X[block]
            parts = [learned.features(_dense(rows[:, learned.columns])) for learned in self.maps_]
            np.concatenate(parts, axis=1, out=out[block], casting="same_kind")
        found: Floats = grouped(out, self.members_)
        return found

    def get_feature_names_out(self, input_features: object = None) -> NDArray[Any]:
        """Names of the output columns: the group of input columns behind them, and a number.

        Parameters
        ----------
        input_features : None
            Not used; there for scikit-learn.

        Returns
        -------
        names : ndarray of str
        """
        check_is_fitted(self)
        sizes = [learned.mixing.shape[1] for learned in self.maps_]
        places = np.concatenate([np.arange(size) for size in sizes])
        pairs = zip(self.members_, places, strict=True)
        return np.array([f"group{member}_{place}" for member, place in pairs], dtype=object)

    @property
    def _n_features_out(self) -> int:
        return len(self.members_)

    def __sklearn_tags__(self) -> Tags:
        """Needs classes; takes sparse rows."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _dense(rows: Any) -> Floats:
    return np.asarray(rows.toarray() if hasattr(rows, "toarray") else rows, dtype=float)
