"""Members of any kind: how they vote, each from its own columns, and how to read those of other ensembles.

A missing value is an erasure: a member whose columns are all missing in a row gives no vote. It would say a
constant, which takes 2 off a lead when one change turns it; an abstention takes 1. Where all columns of a row
are missing members vote all the same, without a certificate.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.stats import rankdata
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesClassifier,
    RandomForestClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.pipeline import Pipeline
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted, validate_data

from exclusivity._typing import Bools, Floats, Ints, Matrix
from exclusivity.rows.design import check_sparse
from exclusivity.voting.preferences import (
    UNDECIDED,
    Election,
    MemberPreferences,
    RankedPreferences,
    certain_votes,
    finite,
    score_slack,
    squash,
)
from exclusivity.voting.rules import RULES, VotingRule

# Scores in memory at once: 32 MB.
_BLOCK_SCORES = 1 << 22
_SCORES = ("decision_function", "predict_proba")


@dataclass(frozen=True, eq=False)
class VotingMembers:
    """Members of any kind, and the rule that counts their votes."""

    estimators: Sequence[Any]
    """Fitted classifiers; they predict numbers of classes."""
    columns: Sequence[Any]
    """The columns that each of them sees: numbers, or truths."""
    n_classes: int
    rule: VotingRule

    def votes(self, X: Matrix) -> Ints:
        """Return the class number that every member votes for, (n_samples, n_members)."""
        return np.stack([np.asarray(m.predict(rows), dtype=np.intp) for m, rows in self._views(X)], axis=1)

    def winners(self, X: Matrix, absent: Bools | None = None) -> Ints:
        """Return the class numbers that win; members that are ``absent`` in a row abstain.

        Hard: ties go to the class whose voters are surest, by the sum of their margins, then to the first
        member's, then to the first class. In a run-off they go, in both rounds, to the class that members
        score higher: on average, each member's scores counted from its mean and divided by their spread.
        """
        return np.concatenate([self._winners(*block) for block in self._blocks(X, absent)])

    def preferences(self, X: Matrix, absent: Bools | None = None) -> Iterator[MemberPreferences]:
        """Yield votes, and scores of classes where the rule asks for them, block by block."""
        for rows, abstaining in self._blocks(X, absent):
            doubtful = np.stack([doubtful_votes(*view) for view in self._views(rows)], axis=1)
            votes = np.where(doubtful, UNDECIDED, self.votes(rows))
            votes[abstaining] = -1
            yield RankedPreferences(votes, *self._scores(rows)) if self._ranks else MemberPreferences(votes)

    @property
    def _ranks(self) -> bool:
        return self.rule.ranks_classes and self.n_classes > 2

    def _blocks(self, X: Matrix, absent: Bools | None) -> Iterator[tuple[Matrix, Bools]]:
        absent = np.zeros((X.shape[0], len(self.estimators)), dtype=bool) if absent is None else absent
        step = max(1, _BLOCK_SCORES // (self.n_classes * len(self.estimators)))
        starts = range(0, X.shape[0], step)
        return ((X[start : start + step], absent[start : start + step]) for start in starts)

    def _views(self, X: Matrix) -> Iterator[tuple[Any, Matrix]]:
        """Yield members with the rows as they see them."""
        return ((m, X[:, columns]) for m, columns in zip(self.estimators, self.columns, strict=True))

    def _scores(self, X: Matrix) -> tuple[Floats, Floats]:
        """Return finite scores and their slack, (n_samples, n_classes, n_members) each."""
        found = [member_scores(*view, self.n_classes) for view in self._views(X)]
        scores, slack = (np.stack(parts, axis=2) for parts in zip(*found, strict=True))
        return finite(scores), slack

    def _winners(self, X: Matrix, absent: Bools) -> Ints:
        votes, abstaining = self.votes(X), absent & ~absent.all(axis=1, keepdims=True)
        votes[abstaining] = -1
        if not self._ranks:
            margins = np.stack([vote_margins(*view) for view in self._views(X)], axis=1)
            election = Election(votes, _liking_of_voters(votes, margins, self.n_classes), self.n_classes)
            rule = self.rule if self.n_classes > 2 else RULES["hard"]
            return np.asarray(rule.count(election).argmax(axis=1))
        scores, _ = self._scores(X)
        rows = np.arange(len(scores))

        def prefer_first(first: Ints, second: Ints) -> Bools:
            return np.asarray((scores[rows, first] >= scores[rows, second]) & ~abstaining)

        liking = squash((_standardised(scores) * ~abstaining[:, None]).mean(axis=2))
        election = Election(votes, liking, self.n_classes, prefer_first)
        return np.asarray(self.rule.count(election).argmax(axis=1))


def _liking_of_voters(votes: Ints, margins: Floats, n_classes: int) -> Floats:
    """Return ranks of classes by the margins of their voters; of equals the first member's is ahead."""
    is_vote = votes[:, :, None] == np.arange(n_classes)
    sums = np.einsum("ikc,ik->ic", is_vote, margins)
    ranks = rankdata(sums, method="dense", axis=1) - 1
    return np.asarray((2 * ranks + is_vote[:, 0]) * (0.49 / (2 * n_classes)))


def _standardised(scores: Floats) -> Floats:
    centred = scores - scores.mean(axis=1, keepdims=True)
    spread = np.abs(centred).max(axis=1, keepdims=True)
    return np.asarray(np.divide(centred, spread, out=np.zeros_like(centred), where=spread > 0))


def vote_margins(member: BaseEstimator, X: Matrix) -> Floats:
    """Return by how much a member's best score exceeds the second best; zero if it has no scores."""
    # A broken feature may have any finite value: what overflows still adds up to something.
    scores = next((finite(found) for found in _raw_scores(member, X)), np.zeros((X.shape[0], 1)))
    if scores.shape[1] == 1:
        return np.asarray(np.abs(scores[:, 0]))
    best = np.partition(scores, -2, axis=1)[:, -2:]
    return np.asarray(best[:, 1] - best[:, 0])


def doubtful_votes(member: BaseEstimator, X: Matrix) -> Bools:
    """Return whether rounding might turn a member's vote, for every row.

    Known for members that add up weighted columns: they have ``coef_``, ``intercept_`` and a
    ``decision_function`` with one score per row, or one per class. Others are taken as exact.
    """
    if isinstance(member, Pipeline):
        return doubtful_votes(member[-1], member[:-1].transform(X) if len(member) > 1 else X)
    if not _linear_weights(member).size or not hasattr(member, "decision_function"):
        return np.zeros(X.shape[0], dtype=bool)
    scores = next(_raw_scores(member, X))
    slack, n_classes = _linear_slack(member, X, scores), max(scores.shape[1], 2)
    return np.asarray(certain_votes(scores[..., None], slack[..., None], n_classes, "ovr")[:, 0] < 0)


def member_scores(member: BaseEstimator, X: Matrix, n_classes: int) -> tuple[Floats, Floats]:
    """Return a member's score of every class, and its rounding error where the member is linear, else zero.

    The member predicts class numbers; classes that it has never seen rank last.
    """
    if isinstance(member, Pipeline):
        return member_scores(member[-1], member[:-1].transform(X) if len(member) > 1 else X, n_classes)
    known = np.asarray(member.classes_, dtype=np.intp)
    ranks_pairs = getattr(member, "decision_function_shape", "ovr") != "ovr"
    widths = {1, 2} if len(known) == 2 else {len(known)}
    ways = ("predict_proba",) if ranks_pairs else _SCORES
    own = next((found for found in _raw_scores(member, X, ways) if found.shape[1] in widths), None)
    if own is None:
        way_out = "use voting='hard', or members that have one"
        if ranks_pairs:
            way_out = "set its decision_function_shape='ovr', or use voting='hard'"
        raise TypeError(
            f"A run-off needs members that rank classes, and {type(member).__name__} has neither a "
            f"decision_function nor a predict_proba with one column per class; {way_out}."
        )
    slack = _linear_slack(member, X, own)
    if len(known) == 2 and own.shape[1] == 1:
        own, slack = np.hstack([-own, own]), np.hstack([slack, slack])
    scores, slacks = np.full((len(own), n_classes), -np.inf), np.zeros((len(own), n_classes))
    scores[:, known], slacks[:, known] = own, slack
    return scores, slacks


def _raw_scores(member: BaseEstimator, X: Matrix, methods: Sequence[str] = _SCORES) -> Iterator[Floats]:
    """Yield what those of the methods that a member has say, with one column for one score per row."""
    for method in methods:
        if hasattr(member, method):
            scores = np.asarray(getattr(member, method)(X), dtype=float)
            yield scores[:, None] if scores.ndim == 1 else scores


def _linear_weights(member: BaseEstimator) -> Floats:
    """Return ``coef_`` as a matrix of one row per score, without rows where a member has none.

    That of an SVC with a linear kernel is sparse where it was fitted to sparse rows.
    """
    weights: Any = getattr(member, "coef_", np.empty((0, 0)))
    return np.atleast_2d(np.asarray(weights.toarray() if sparse.issparse(weights) else weights))


def _linear_slack(member: BaseEstimator, X: Matrix, scores: Floats) -> Floats:
    """Return the rounding errors of a member's scores, zero if it is not linear, or scores pairs."""
    weights = _linear_weights(member)
    if len(weights) != scores.shape[1] or not hasattr(member, "decision_function"):
        return np.zeros_like(scores)
    X = check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32])
    return score_slack(X, weights, np.asarray(member.intercept_), np.result_type(weights.dtype, np.float32))


@dataclass(frozen=True, eq=False)
class Members:
    """Fitted estimators, and what their ensemble does to rows before them and to labels after them."""

    estimators: Sequence[Any]
    classes: NDArray[Any] | None = None
    """Labels that the members' predictions number; None if members predict labels themselves."""
    checked_by: Any = None
    """The ensemble, if it converts X to an array before any member sees it; None if members take X as is."""
    columns: Sequence[Ints] | None = None
    """The features that each member sees; None for all."""

    def checked(self, X: Matrix) -> Any:
        """Return rows as the ensemble's own predict hands them on: members were trained without names."""
        check_sparse(X)
        if self.checked_by is None:
            return X
        how = {"accept_sparse": ["csr", "csc"], "dtype": None, "ensure_all_finite": False}
        return validate_data(self.checked_by, X, reset=False, **how)

    def predictions(self, X: Matrix) -> list[NDArray[Any]]:
        """Return the labels that each member predicts."""
        X = self.checked(X)
        parts = [X] * len(self.estimators) if self.columns is None else [X[:, own] for own in self.columns]
        return [self._labels(*pair) for pair in zip(self.estimators, parts, strict=True)]

    def weights(self) -> list[Floats]:
        """Return the (n_problems, n_features) weights of each member; a TypeError if one is not linear."""
        coefficients = [_coefficients(estimator) for estimator in self.estimators]
        if self.columns is None:
            return coefficients
        # A feature that was drawn twice has the sum of its weights.
        full = [np.zeros((self.checked_by.n_features_in_, len(own))) for own in coefficients]
        for target, columns, own in zip(full, self.columns, coefficients, strict=True):
            np.add.at(target, columns, own.T)
        return [target.T for target in full]

    def _labels(self, estimator: BaseEstimator, rows: Matrix) -> NDArray[Any]:
        if not hasattr(estimator, "predict") or isinstance(estimator, RegressorMixin):
            raise TypeError(f"Every member must be a fitted classifier; one is {estimator!r}.")
        predicted = np.asarray(estimator.predict(rows))
        if predicted.ndim != 1:
            raise ValueError(
                "Diversity is measured for one label per sample; "
                f"{estimator!r} predicts an array of shape {predicted.shape}."
            )
        # The trees of a forest give class numbers as floats.
        return predicted if self.classes is None else np.asarray(self.classes[predicted.astype(np.intp)])


def members_of(ensemble: BaseEstimator) -> Members:
    """Return the members of a list or of one of scikit-learn's ensembles; a TypeError for anything else."""
    if isinstance(ensemble, (list, tuple)):
        if not ensemble:
            raise ValueError("The list of classifiers is empty.")
        return Members(ensemble)
    forests = (RandomForestClassifier, ExtraTreesClassifier)
    known = (BaggingClassifier, *forests, AdaBoostClassifier, VotingClassifier, StackingClassifier)
    if not isinstance(ensemble, known):
        names = ", ".join(kind.__name__ for kind in known)
        raise TypeError(
            f"No members are known of {type(ensemble).__name__}; give an ERMClassifier, {names}, a Pipeline "
            "that ends in one of these, or a list of fitted classifiers."
        )
    check_is_fitted(ensemble)
    estimators, classes = ensemble.estimators_, ensemble.classes_
    if isinstance(classes, list):
        raise ValueError("Diversity is measured for one label per sample; this ensemble has several outputs.")
    if isinstance(ensemble, BaggingClassifier):
        return Members(estimators, classes, ensemble, ensemble.estimators_features_)
    if isinstance(ensemble, forests):
        return Members(estimators, classes, ensemble)
    if isinstance(ensemble, AdaBoostClassifier):
        return Members(estimators, checked_by=ensemble)
    # Members of a stack that came fitted were trained on the labels and not on their numbers.
    is_prefit = isinstance(ensemble, StackingClassifier) and str(ensemble.cv) == "prefit"
    return Members(estimators, None if is_prefit else classes)


def member_predictions(ensemble: BaseEstimator, X: Matrix) -> NDArray[Any]:
    """Return the label that each member of a fitted ensemble gives to each row.

    Parameters
    ----------
    ensemble : estimator or list of estimators
        A fitted ERMClassifier (or other classifier with its ``component_decision_function``),
        BaggingClassifier, RandomForestClassifier, ExtraTreesClassifier, AdaBoostClassifier,
        VotingClassifier or StackingClassifier, a Pipeline that ends in one of these, or a list of fitted
        classifiers.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Rows, as ``ensemble.predict`` takes them.

    Returns
    -------
    predictions : ndarray of shape (n_samples, n_members)
        Labels as in ``ensemble.classes_``, also where members only know their numbers. A member of an
        ERMClassifier chooses its best class, as in hard voting.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> iris = load_iris()
    >>> names = iris.target_names[iris.target]
    >>> forest = RandomForestClassifier(3, max_depth=1, random_state=0).fit(iris.data, names)
    >>> member_predictions(forest, iris.data[[0, 149]]).tolist()
    [['setosa', 'setosa', 'setosa'], ['virginica', 'versicolor', 'virginica']]
    """
    if isinstance(ensemble, Pipeline):
        head = ensemble[:-1]
        return member_predictions(ensemble[-1], head.transform(X) if len(head) else X)
    if hasattr(ensemble, "component_predict"):
        return np.asarray(ensemble.component_predict(X))
    if hasattr(ensemble, "component_decision_function"):  # taken for one-vs-rest scores
        scores = np.asarray(ensemble.component_decision_function(X))
        is_binary = len(ensemble.classes_) == 2
        best = (scores[:, 0] > 0).astype(np.intp) if is_binary else scores.argmax(axis=1)
        return np.asarray(ensemble.classes_[best])
    labels = members_of(ensemble).predictions(X)
    # Stacking numbers and strings would turn 1 into "1" silently.
    if len({column.dtype.kind in "UT" for column in labels if column.dtype.kind != "O"}) > 1:
        raise ValueError(
            "Some members predict strings and others numbers: were they trained on the same labels?"
        )
    return np.stack(labels, axis=1)


def member_weights(ensemble: BaseEstimator) -> Floats:
    """Return the weight vector of each member of a fitted ensemble of linear models.

    Parameters
    ----------
    ensemble : estimator or list of estimators
        A fitted ERMClassifier, an ensemble that :func:`member_predictions` takes and whose members have
        ``coef_``, or a list of fitted linear models. Of a Pipeline the last step: its weights belong to the
        transformed features.

    Returns
    -------
    weights : ndarray of shape (n_members, n_problems * n_features)
        The binary problems of a multi-class model one after the other, so that (relaxed) exclusivities add
        up over problems, as they do in the ERM objective. Features that a member of a BaggingClassifier
        does not see have weight zero.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.linear_model import RidgeClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> member_weights([RidgeClassifier(alpha).fit(X, y) for alpha in (0.1, 1, 10)]).shape
    (3, 30)
    """
    if isinstance(ensemble, Pipeline):
        return member_weights(ensemble[-1])
    if hasattr(ensemble, "component_decision_function"):
        components = np.asarray(ensemble.components_, dtype=float)
        return components.transpose(1, 0, 2).reshape(components.shape[1], -1)
    weights = members_of(ensemble).weights()
    shapes = {coefficients.shape for coefficients in weights}
    if len(shapes) > 1:
        raise ValueError(
            f"Members have coef_ of different shapes, {sorted(shapes)}: not trained on the same classes and "
            "features, they cannot be compared by weights."
        )
    return np.stack([coefficients.ravel() for coefficients in weights])


def _coefficients(estimator: BaseEstimator) -> Floats:
    """Return ``coef_`` as a dense (n_problems, n_features) array of float64."""
    if getattr(estimator, "coef_", None) is None:
        raise TypeError(
            f"Weight vectors exist for fitted linear models with coef_ only; one member is {estimator!r}."
        )
    return np.asarray(_linear_weights(estimator), dtype=float)
