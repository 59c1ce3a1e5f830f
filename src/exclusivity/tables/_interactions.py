"""Votes that survive broken columns of tables, and interactions of columns within their members.

A certificate asks that a column reaches one member, which may use all of its columns together. A linear SVM
does so on features whose products are a kernel,

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
from sklearn.pipeline import Pipeline
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from exclusivity._errors import check_number
from exclusivity._typing import Floats, Ints, Matrix
from exclusivity.classifier import ERMClassifier
from exclusivity.classifier._validation import signs_of_rows
from exclusivity.rows.sparse_rows import check_sparse
from exclusivity.tables._codes import grouped, row_blocks
from exclusivity.tables._encoder import TableEncoder

SEARCH_COST = 0.1
"""C of the additive members for which a partition is learned."""

# Directions of the landmarks' kernel matrix with less than this share of the largest are rounding.
_LEAST_DIRECTION = 1e-6
# Landmarks are drawn from so many rows: different ones have to be found among them.
_POOL = 4000


@dataclass(frozen=True, eq=False, slots=True)
class KernelMap:
    """The features of a member: its ``columns``, ``landmarks`` L, ``decay`` 1 / s, ``mixing`` U D^(-1/2)."""

    columns: Ints
    landmarks: Floats
    decay: float
    mixing: Floats

    @classmethod
    def learn(cls, rows: Floats, columns: Ints, n_landmarks: int, width: float, rng: Any) -> KernelMap | None:
        """Learn from rows of these columns; return None where all of them are equal."""
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
        sizes, directions = np.linalg.eigh(_kernel(landmarks, landmarks, decay))
        kept = sizes > _LEAST_DIRECTION * sizes[-1]
        return cls(columns, landmarks, decay, directions[:, kept] / np.sqrt(sizes[kept]))

    def features(self, rows: Floats) -> Floats:
        """Return the features of rows; values out of the landmarks' range count as its nearest end."""
        inside = np.clip(rows, self.landmarks.min(axis=0), self.landmarks.max(axis=0))
        return np.asarray(_kernel(inside, self.landmarks, self.decay) @ self.mixing)


def _kernel(rows: Floats, landmarks: Floats, decay: float) -> Floats:
    middle = landmarks.mean(axis=0)  # differences of numbers around zero lose fewer digits
    rows, landmarks = rows - middle, landmarks - middle
    squares = np.sum(rows**2, axis=1)[:, None] + np.sum(landmarks**2, axis=1) - 2 * (rows @ landmarks.T)
    return np.asarray(np.exp(-decay * np.maximum(squares, 0.0)))


class InteractionFeatures(TransformerMixin, BaseEstimator):
    """Divide columns among members, and give each features of all its columns together.

    A step between a :class:`~exclusivity.tables.TableEncoder` and an :class:`~exclusivity.ERMClassifier`: a
    member is then any smooth function of the columns that it owns, not a sum of curves. No feature depends
    on columns of two members, so that :func:`exclusivity.robustness.certify` takes the pipeline.

    Parameters
    ----------
    voters : ERMClassifier, default=None
        The members whose partition of the columns is learned; at ``exclusivity=inf``. None: nine members that
        vote, with C = 0.1 and balanced classes. The classifier that follows has as many members.
    n_landmarks : int, default=200
        Training rows that each member compares a row with, at most: its number of features, too. More come
        closer to the kernel, and take more time and memory.
    width : float, default=1.0
        Width of the kernel, in units of the summed variances of the columns.
    random_state : int, RandomState or None, default=None
        Of the landmarks; the search for a partition has that of ``voters``.

    Attributes
    ----------
    owners_ : ndarray of int, shape (n_features_in_,)
        The member of every input column; -1: of none.
    maps_ : list of KernelMap
        The features of each member; members whose columns do not vary have none.
    members_ : ndarray of int, shape (n_features_out,)
        The member behind every output column.
    n_features_in_ : int
        Number of input columns.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, where they have names.

    See Also
    --------
    exclusivity.make_robust_classifier : ``interactions=True`` adds this step.
    sklearn.kernel_approximation.Nystroem : The same for all columns together, which voids certificates.

    Notes
    -----
    Landmarks are rows of the training data, which a model file holds. The last digits of features depend on
    how many rows are transformed together. A certificate allows for the rounding of scores, not of features:
    a vote within some 1e-12 of a tie may differ between batches.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from exclusivity import ERMClassifier
    >>> from exclusivity.tables import InteractionFeatures
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 2))
    >>> y = X[:, 0] * X[:, 1] > 0  # no sum of two curves separates these classes
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
        """Learn the owner of every column, and the features of every member.

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
        if signs_of_rows(None, X) is not None:
            raise ValueError("monotonic_cst: no rule holds for members that use several columns together.")
        additive = self._additive_members().fit(X, y)
        X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32])
        rng = check_random_state(self.random_state)
        rows = X[np.sort(rng.permutation(X.shape[0])[:_POOL])]
        owners, maps = additive.partition_[additive.groups_], {}
        for member in range(additive.n_estimators):
            columns = np.flatnonzero(owners == member)
            if len(columns):
                own = _dense(rows[:, columns])
                maps[member] = KernelMap.learn(own, columns, self.n_landmarks, self.width, rng)
        self._store(owners, {member: learned for member, learned in maps.items() if learned})
        return self

    def _check_parameters(self) -> None:
        check_number(vars(self), "n_landmarks", least=2, integer=True)
        check_number(vars(self), "width", least=0, strict=True)

    def _additive_members(self) -> ERMClassifier:
        """Return members whose partition is wanted, and not their vote: that gives no warnings."""
        if not (self.voters is None or isinstance(self.voters, ERMClassifier)):
            raise TypeError(f"voters must be an ERMClassifier; got {type(self.voters).__name__}.")
        default = ERMClassifier(9, C=SEARCH_COST, exclusivity=np.inf, voting="hard", class_weight="balanced")
        voters: ERMClassifier = clone(default if self.voters is None else self.voters)
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
        """Keep the member of every column, and the features of members by their numbers."""
        if not maps:
            raise ValueError("No column of X varies: there is nothing to tell rows apart by.")
        self.owners_, self.maps_ = owners, list(maps.values())
        self.members_ = np.repeat(list(maps), [learned.mixing.shape[1] for learned in maps.values()])

    def transform(self, X: Matrix) -> Floats:
        """Return the features of rows, member after member.

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
        """Return the names of the output columns: the number of their member, and one of their own.

        Parameters
        ----------
        input_features : None
            Not used; there for scikit-learn.

        Returns
        -------
        names : ndarray of str
        """
        check_is_fitted(self)
        members, counts = np.unique(self.members_, return_counts=True)
        each = zip(members.tolist(), counts.tolist(), strict=True)
        return np.array([f"group{member}_{n}" for member, count in each for n in range(count)], dtype=object)

    @property
    def _n_features_out(self) -> int:
        return len(self.members_)

    def __sklearn_tags__(self) -> Tags:
        """Declare that classes are needed and sparse rows are taken."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _dense(rows: Any) -> Floats:
    return np.asarray(rows.toarray() if hasattr(rows, "toarray") else rows, dtype=float)


def make_robust_classifier(
    n_estimators: int = 9,
    *,
    C: float = 1.0,
    numeric: str = "spline",
    interactions: bool = False,
    **parameters: Any,
) -> Pipeline:
    """Make a classifier for tables whose predictions survive broken columns.

    A pipeline of two steps: "encoder", a :class:`~exclusivity.tables.TableEncoder`, and "classifier", an
    :class:`~exclusivity.ERMClassifier` whose members own different input columns and vote
    (``exclusivity=inf``, ``voting="hard"``, ``class_weight="balanced"``). After ``fit``
    :func:`exclusivity.robustness.certify` tells for every row how many input columns may take any value
    without changing the prediction.

    Parameters
    ----------
    n_estimators : int, default=9
        Members; at most as many as the table has columns. To survive r broken columns takes 2 r + 1.
    C : float, default=1.0
        Cost of errors of each member.
    numeric : {"linear", "spline"}, default="spline"
        Whether members are linear in numbers, or follow a piecewise linear curve of each.
    interactions : bool, default=False
        Whether members are functions of all their columns together, not sums of one curve of each: a step
        "interactions" (:class:`~exclusivity.tables.InteractionFeatures`) between the other two. Certified
        accuracy gains where the effect of a column depends on others; models are larger, and have no curves.
    **parameters : dict
        Other parameters of the classifier or of the encoder (``categorical``, ``min_frequency``, ...);
        ``feature_groups`` are of input columns, and go to the encoder.

    Returns
    -------
    model : Pipeline
        Not fitted.

    See Also
    --------
    exclusivity.robustness.certified_accuracy_scorer : Choose parameters by ``GridSearchCV``.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from exclusivity import make_robust_classifier
    >>> from exclusivity.robustness import certify
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> model = make_robust_classifier(random_state=0).fit(X[::2], y[::2])
    >>> bool(model.score(X[1::2], y[1::2]) > 0.93)
    True
    >>> bool(np.median(certify(model, X[1::2])) >= 3)
    True
    """
    own = TableEncoder().get_params()
    encoder = {name: parameters.pop(name) for name in own.keys() & parameters.keys()}
    voting: dict[str, Any] = {"exclusivity": np.inf, "voting": "hard", "class_weight": "balanced"}
    known = ERMClassifier().get_params()
    unknown = sorted(parameters.keys() - known.keys())
    if unknown:
        raise TypeError(
            f"{unknown[0]!r} is a parameter neither of ERMClassifier nor of TableEncoder; they have "
            f"{', '.join(sorted({*known, *own}))}."
        )
    classifier = ERMClassifier(n_estimators, C=C, **(voting | parameters))
    steps = [("encoder", TableEncoder(numeric, **encoder))]
    if interactions:
        steps.append(("interactions", interactions_for(classifier)))
    return Pipeline([*steps, ("classifier", classifier)])


def interactions_for(classifier: ERMClassifier) -> InteractionFeatures:
    """Return a step that divides the columns in place of the classifier, whose members get a group each."""
    if not np.isinf(classifier.exclusivity) or classifier.voting == "soft":
        raise ValueError(
            "interactions=True needs members with columns of their own and a vote: exclusivity=np.inf, and "
            f"voting='hard' or 'runoff'; got {classifier.exclusivity!r} and {classifier.voting!r}."
        )
    voters = clone(classifier).set_params(C=SEARCH_COST)
    classifier.set_params(partition="learned", feature_groups=None)
    return InteractionFeatures(voters, random_state=classifier.random_state)
