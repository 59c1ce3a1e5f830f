"""A fitted ensemble: its members and attributes, and what it predicts."""

from __future__ import annotations

import dataclasses
import re
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from html import escape
from inspect import cleandoc, signature
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit
from sklearn.base import BaseEstimator
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from exclusivity._typing import Bools, Floats, Ints, Matrix
from exclusivity.classifier._validation import TEST, abstaining_members, replace_fitted, validate_rows
from exclusivity.objective.losses import LOSSES
from exclusivity.objective.objective import ExclusivityRegulariser
from exclusivity.rows.design import DesignMatrix
from exclusivity.solvers.base import History
from exclusivity.voting.preferences import (
    MemberPreferences,
    certain_preferences,
    member_votes,
    rough_slack,
    score_slack,
    winning_codes,
)
from exclusivity.voting.rules import RULES, CertifiedVotes, VotingEnsemble

Class = TypeVar("Class", bound=type)


def shared_parameters(estimator: BaseEstimator, kind: type[BaseEstimator]) -> dict[str, Any]:
    """Return the parameters of an estimator that another kind of estimator has, too."""
    names = kind._get_param_names()
    return {name: value for name, value in estimator.get_params(deep=False).items() if name in names}


def describe_parameters_like(source: type) -> Callable[[Class], Class]:
    """Complete the section "Parameters" of a class by the entries of ``source`` that it does not have."""

    def complete(kind: Class) -> Class:
        if kind.__doc__ and source.__doc__:  # python -OO leaves docstrings out
            head, own, tail = _parameter_section(kind.__doc__)
            entries = _parameter_section(source.__doc__)[1] | own
            kind.__doc__ = head + "\n".join(entries[name] for name in signature(kind).parameters) + tail
        return kind

    return complete


def _parameter_section(docstring: str) -> tuple[str, dict[str, str], str]:
    """Split a docstring into what precedes the entries of its parameters, these by name, and the rest."""
    head, title, rest = cleandoc(docstring).partition("Parameters\n----------\n")
    body, blank, tail = rest.partition("\n\n")
    entries = re.split(r"\n(?=\S)", body)
    return head + title, {entry.split(" :")[0]: entry for entry in entries}, blank + tail


@dataclass(frozen=True, eq=False)
class Ensemble:
    """The members of every binary problem.

    Attributes
    ----------
    weights : ndarray of shape (n_problems, n_stored, n_features)
        n_stored is ``n_members``, or 1 when all members are equal.
    intercepts : ndarray of shape (n_problems, n_stored)
    n_members : int
    """

    weights: Floats
    intercepts: Floats
    n_members: int

    @property
    def members_are_equal(self) -> bool:
        """True if the ensemble is one model, repeated."""
        return bool(self.intercepts.shape[1] == 1)

    @property
    def copies(self) -> int:
        """The number of members that each stored one stands for."""
        return int(self.n_members // self.intercepts.shape[1])

    @property
    def supports(self) -> Bools:
        """True where a stored member uses a column in any of its problems, (n_stored, n_features).

        A vote among several classes depends on all scores of the member.
        """
        return np.asarray((self.weights != 0).any(axis=0))

    @property
    def n_voters(self) -> int:
        """The number of members that use features."""
        return int(self.supports.any(axis=1).sum()) * self.copies

    def spread(self, values: NDArray[Any], axis: int) -> NDArray[Any]:
        """Repeat values of the stored members, along an axis, for all members: a view that costs nothing."""
        if self.copies == 1:
            return values
        shape = list(values.shape)
        shape[axis] *= self.copies
        return np.broadcast_to(values, shape)

    def voters(self) -> Self:
        """Return the members that use features; all of them if none does.

        A member without features says the same about every row: its vote would only hide how few others
        there are.
        """
        uses_features = (self.weights != 0).any(axis=(0, 2))
        if self.members_are_equal or uses_features.all() or not uses_features.any():
            return self
        weights, intercepts = (a.compress(uses_features, axis=1) for a in (self.weights, self.intercepts))
        return type(self)(weights, intercepts, weights.shape[1])

    def mean(self) -> Self:
        """Return the averaged model as an ensemble of one."""
        if self.members_are_equal:
            return type(self)(self.weights, self.intercepts, 1)
        # Sums go in the order of memory: one order, so that a loaded model gives the same bits.
        stored = map(np.ascontiguousarray, (self.weights, self.intercepts))
        weights, intercepts = (values.mean(axis=1, keepdims=True) for values in stored)
        return type(self)(weights, intercepts, 1)

    def scores(self, X: Matrix) -> Floats:
        """Compute the margins of the stored members, (n_samples, n_problems, n_stored).

        In float64 whatever the types of X and the weights: float32 would overflow or cancel too early.
        """
        with np.errstate(over="ignore", invalid="ignore"):  # a broken feature may have any finite value
            flat = DesignMatrix(X).times(self.weights.reshape(-1, self.weights.shape[2]).T.astype(float))
            return flat.reshape(-1, *self.intercepts.shape) + self.intercepts

    def slack(self, X: Matrix, measure: Callable[..., Floats]) -> Floats:
        """Bound how far ``scores`` may be apart in another batch or arithmetic; an array of their shape."""
        n_problems, n_stored, n_features = self.weights.shape
        flat = measure(X, self.weights.reshape(-1, n_features), self.intercepts.ravel())
        return flat.reshape(-1, n_problems, n_stored)

    def rounded(self, scores: Floats) -> Floats:
        """Round scores to the precision of the weights."""
        with np.errstate(over="ignore"):  # beyond float32 an infinity has the right sign
            return scores.astype(self.intercepts.dtype, copy=False)


def read_only(values: NDArray[Any]) -> NDArray[Any]:
    """Return a view that cannot be written to."""
    view = values.view()
    view.flags.writeable = False
    return view


_OPTIONAL = ("feature_names", "history", "partition")
_ATTRIBUTES = {
    "ensemble": "_ensemble",
    "exclusivity": "_fitted_exclusivity",
    "n_features": "n_features_in_",
    "feature_names": "feature_names_in_",
}
"""Fields whose attributes have another name than the field with an underscore at its end."""


@dataclass(frozen=True, eq=False)
class FittedState:
    """The fitted attributes of an ``ERMClassifier``, under their names without underscores.

    They are what a model file holds beside the parameters, with a ``history`` of None where it came from one.
    What ``warm_start=True`` keeps of the solver, some numbers per training row, is left out: a warm start
    without it begins at the same weights.
    """

    classes: NDArray[Any]
    ensemble: Ensemble
    multi_class: str
    exclusivity: float
    objective: Floats
    dual_gap: Floats
    converged: Bools
    n_iter: NDArray[np.int64]
    history: Sequence[History] | None
    n_features: int
    feature_names: NDArray[Any] | None
    groups: Ints
    partition: Ints | None
    certificate_scope: str = TEST

    @classmethod
    def of(cls, estimator: BaseEstimator) -> Self:
        """Collect the state of a fitted classifier."""
        check_is_fitted(estimator)
        attributes, values = vars(copy(estimator)), {}
        for field in dataclasses.fields(cls):
            name = _ATTRIBUTES.get(field.name, f"{field.name}_")
            values[field.name] = attributes.get(name) if field.name in _OPTIONAL else attributes[name]
        return cls(**values)

    def restore(self, estimator: BaseEstimator) -> BaseEstimator:
        """Make a classifier the fitted one of this state, whatever it was fitted to before."""
        pairs = ((_ATTRIBUTES.get(field, f"{field}_"), value) for field, value in vars(self).items())
        fitted = {name: value for name, value in pairs if value is not None}
        replace_fitted(estimator, fitted | {"_starts": []})
        return estimator


def note(estimator: BaseEstimator) -> str:
    """Describe the members of a fitted classifier in a sentence: all equal, or on which features; or ""."""
    ensemble = getattr(estimator, "_ensemble", None)
    if ensemble is None or ensemble.n_members == 1:
        return ""
    if not ensemble.members_are_equal:
        return _difference(estimator.supports_) if estimator._fitted_exclusivity > 1 else ""
    kappa = ExclusivityRegulariser(estimator._fitted_exclusivity).kappa(ensemble.n_members)
    model = "logistic regression" if LOSSES[estimator.loss].is_log_odds else "SVM"
    return f"{ensemble.n_members} equal members = one {model} at cost C/{kappa:g}"


def _difference(supports: Bools) -> str:
    n_features = supports.sum(axis=1)
    n_members = int((n_features > 0).sum())
    share = "no two of them on the same one" if supports.sum(axis=0).max() <= 1 else "some of them shared"
    least, most = n_features[n_features > 0].min(), n_features.max()
    count = f"{least} to {most} features" if least < most else f"{most} feature{'s' * bool(most > 1)}"
    sizes = f"{count} each, {share}"
    surplus = f"; {len(supports) - n_members} without features abstain" if n_members < len(supports) else ""
    return f"{n_members} members on {sizes}{surplus}"


# Scores in memory at once while votes are counted: 4 MB, and some temporary arrays of that size.
_BLOCK_SCORES = 1 << 19


def has_probabilities(estimator: Any) -> bool:
    """Return True if the scores are log-odds; else raise an AttributeError that says how to get them."""
    if estimator.loss not in tuple(LOSSES) or not LOSSES[estimator.loss].is_log_odds:
        raise AttributeError(
            f"loss={estimator.loss!r} gives scores, not probabilities; set loss='logistic', or calibrate "
            "them with sklearn.calibration.CalibratedClassifierCV."
        )
    if estimator.voting != "soft":
        raise AttributeError(
            f"voting={estimator.voting!r}: a vote has no probabilities, and the mean of the members' own may "
            "favour another class than the vote does. Call set_params(voting='soft') for the averaged model, "
            "or read the members' log-odds off component_decision_function."
        )
    if estimator.multi_class == "ovo" and len(getattr(estimator, "classes_", ())) > 2:
        raise AttributeError(
            "multi_class='ovo': pairs of classes do not agree on one probability; set multi_class='ovr'."
        )
    return True


def _probabilities(scores: Floats) -> Floats:
    """Return the probabilities of all classes from log-odds: of two classes, or of each against the rest."""
    if scores.ndim == 1:
        return np.asarray(np.stack([expit(-scores), expit(scores)], axis=1))
    odds: Floats = expit(scores)
    # Where all are zero no class is any likelier than the others.
    totals, even = odds.sum(axis=1, keepdims=True), np.full_like(odds, 1 / odds.shape[1])
    return np.asarray(np.divide(odds, totals, out=even, where=totals > 0))


class MemberPredictions(CertifiedVotes):
    """Predict from a snapshot of the classifier: a fit in another thread does not change what is read."""

    classes_: NDArray[Any]

    def predict(self, X: Matrix) -> NDArray[Any]:
        """Predict the class of every row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows to classify.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Class labels.
        """
        at = copy(self)
        codes = at._winners(X)  # before classes_, which may not be there yet
        return np.asarray(at.classes_[codes])

    def component_predict(self, X: Matrix) -> NDArray[Any]:
        """Predict the class that every member votes for, as in hard voting.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows to classify.

        Returns
        -------
        labels : ndarray of shape (n_samples, n_members)
            Class labels. A member without features (an empty row of ``supports_``) gives the same label to
            every row; hard voting does not count it. A read-only view when all members are equal.
        """
        at = copy(self)
        check_is_fitted(at)
        return at._spread(at.classes_[at._votes(at._validate_rows(X))], 1)

    @abstractmethod
    def _winners(self, X: Matrix) -> Ints:
        """Return the number of each row's class; raise where there was no fit."""

    @abstractmethod
    def _votes(self, X: Matrix) -> Ints:
        """Return the class number that every stored member votes for in checked rows."""

    @abstractmethod
    def _validate_rows(self, X: Matrix) -> Matrix:
        """Check rows as ``predict`` takes them."""

    def _spread(self, values: NDArray[Any], axis: int) -> NDArray[Any]:
        """Repeat values of the stored members along an axis, where each stands for several."""
        return values


class EnsemblePredictions(MemberPredictions, BaseEstimator):
    """The methods and views of a fitted classifier that need no more than its members."""

    _ensemble: Ensemble
    multi_class_: str
    groups_: Ints
    loss: str
    sparsity: float
    voting: str

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        """Return the usual repr, with a remark when all members are equal or on different features."""
        plain, sentence = super().__repr__(N_CHAR_MAX), note(self)
        return f"{plain}  # {sentence}" if sentence else plain

    def _html_repr(self) -> str:
        """Return scikit-learn's diagram with the remark below it."""
        diagram, sentence = str(super()._html_repr()), note(self)
        return f"{diagram}<p>{escape(sentence)}</p>" if sentence else diagram

    def decision_function(self, X: Matrix) -> Floats:
        """Compute scores of the classes; their order decides ``predict``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows to score.

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
            Two classes: positive means ``classes_[1]``. Soft voting gives the averaged margin; hard voting
            the difference of votes plus a margin term smaller than half a vote, which breaks ties. A run-off
            among more classes gives the votes of the first round, and for the two finalists the number of
            voters plus their votes in the second round, with the same margin term. Members without features
            do not vote.
        """
        return copy(self)._decided(X, lambda scores: scores)

    def __sklearn_is_fitted__(self) -> bool:
        """Return whether there are members; validation alone already sets other attributes."""
        return hasattr(self, "_ensemble")

    def _validate_rows(self, X: Matrix) -> Matrix:
        return validate_rows(self, X, reset=False)

    def _winners(self, X: Matrix) -> Ints:
        return self._decided(X, winning_codes)

    def _spread(self, values: NDArray[Any], axis: int) -> NDArray[Any]:
        return self._ensemble.spread(values, axis)

    def _decided(self, X: Matrix, take: Callable[[Floats], NDArray[Any]]) -> NDArray[Any]:
        """Apply ``take`` to the scores of the classes, block by block: all of them may not fit in memory."""
        check_is_fitted(self)
        rule, scheme = RULES[self.voting], (len(self.classes_), self.multi_class_)
        ensemble = self._ensemble.voters() if rule.counts_votes else self._ensemble.mean()
        abstaining = abstaining_members(X, ensemble.supports) if rule.counts_votes else None
        present = None
        if abstaining is not None:  # where all would abstain, all vote
            present = np.where(abstaining.all(axis=1, keepdims=True), 1, ~abstaining)

        def decide(rows: Matrix, block: slice) -> NDArray[Any]:
            votes = None if present is None else present[block]
            found = rule.decide(ensemble.scores(rows), *scheme, ensemble.copies, present=votes)
            return take(ensemble.rounded(found))

        return _by_blocks(decide, self._validate_rows(X), ensemble)

    @available_if(has_probabilities)
    def predict_proba(self, X: Matrix) -> Floats:
        """Compute the probability of every class; for ``loss="logistic"`` only.

        Two classes: 1 / (1 + exp(-score)). More: that of each class against the rest, divided by their sum,
        as scikit-learn's ``OneVsRestClassifier`` does. Always in the order of ``decision_function``, hence of
        ``predict``: where members differ (``exclusivity > 1``) it is the geometric mean of their odds, which
        is too modest, as every member sees only some of the features.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows to score.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``; every row sums to 1.
        """
        return _probabilities(self.decision_function(X))

    @available_if(has_probabilities)
    def predict_log_proba(self, X: Matrix) -> Floats:
        """Compute the logarithm of :meth:`predict_proba`.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows to score.

        Returns
        -------
        logarithms : ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``.
        """
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.asarray(np.stack([log_expit(-scores), log_expit(scores)], axis=1))
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(_probabilities(scores)))

    def component_decision_function(self, X: Matrix) -> Floats:
        """Compute the margins of every member in every binary problem.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows to score.

        Returns
        -------
        scores : ndarray of shape (n_samples, n_problems, n_estimators)
            A read-only view when all members are equal.
        """
        at = copy(self)
        check_is_fitted(at)
        scores = at._ensemble.rounded(at._ensemble.scores(at._validate_rows(X)))
        return at._spread(scores, 2)

    @property
    def components_(self) -> Floats:
        """Weights of the members, (n_problems, n_estimators, n_features), read-only."""
        check_is_fitted(self)
        return read_only(self._spread(self._ensemble.weights, 1))

    @property
    def component_intercepts_(self) -> Floats:
        """Intercepts of the members, (n_problems, n_estimators), read-only."""
        check_is_fitted(self)
        return read_only(self._spread(self._ensemble.intercepts, 1))

    @property
    def supports_(self) -> Bools:
        """True where a member uses a feature in any of its scores, (n_estimators, n_features).

        A read-only view when all members are equal.
        """
        check_is_fitted(self)
        return self._spread(self._ensemble.supports, 0)

    @property
    def coef_(self) -> Matrix:
        """Weights of the averaged model, (n_problems, n_features), read-only."""
        self._require_soft("coef_")
        return read_only(self._ensemble.mean().weights[:, 0])

    @property
    def intercept_(self) -> Floats:
        """Intercepts of the averaged model, (n_problems,), read-only."""
        self._require_soft("intercept_")
        return read_only(self._ensemble.mean().intercepts[:, 0])

    @property
    def penalty(self) -> str:
        """Either "l1", where ``sparsity`` sets weights to exactly zero, or "l2".

        ``SelectFromModel`` asks for it: features count as chosen above 1e-5, or above the mean.
        """
        return "l1" if self.sparsity > 0 else "l2"

    def _voting_ensemble(self, voting: str | None = None) -> VotingEnsemble:
        """Return the stored members and the rule ``voting`` (None: that of the classifier)."""
        at = copy(self)
        at.voting = at.voting if voting is None else voting
        check_is_fitted(at)
        if not RULES[at.voting].counts_votes:
            raise ValueError(
                "certify needs voting='hard' or 'runoff', and this classifier has voting='soft': one broken "
                "feature moves a mean of margins as far as it likes. Call set_params(voting='hard'); the "
                "members stay as they are, no new fit is needed."
            )
        supports = at._ensemble.supports
        return VotingEnsemble(
            RULES[at.voting], at.classes_, supports, at.groups_, at._preferences, at.predict
        )

    def _preferences(self, X: Matrix) -> Iterator[MemberPreferences]:
        """Yield rough preferences of the stored members, block by block, and the way to finer ones."""
        scheme, ensemble = (len(self.classes_), self.multi_class_), self._ensemble
        absent = abstaining_members(X, ensemble.supports)
        X = self._validate_rows(X)

        def of_block(rows: Matrix, abstaining: Bools | None) -> MemberPreferences:
            scores = ensemble.scores(rows)

            def finer(some: Ints) -> MemberPreferences:
                slack = ensemble.slack(rows[some], score_slack)
                own = None if abstaining is None else abstaining[some]
                return certain_preferences(scores[some], slack, *scheme, abstaining=own)

            slack = ensemble.slack(rows, rough_slack)
            return certain_preferences(scores, slack, *scheme, finer, abstaining)

        for block in _blocks(X.shape[0], ensemble):
            yield of_block(X[block], None if absent is None else absent[block])

    def _votes(self, X: Matrix) -> Ints:
        """Return class numbers, (n_samples, n_stored)."""
        scheme = (len(self.classes_), self.multi_class_)

        def vote(rows: Matrix, _: slice) -> Ints:
            return np.asarray(member_votes(self._ensemble.scores(rows), *scheme))

        return _by_blocks(vote, X, self._ensemble)

    def _require_soft(self, name: str) -> None:
        check_is_fitted(self)
        if self.voting != "soft":
            raise AttributeError(
                f"{name} does not exist under voting={self.voting!r}: a vote of members is not one linear "
                "model. Use components_ and component_intercepts_, or voting='soft'."
            )


def _by_blocks(decide: Callable[[Any, slice], NDArray[Any]], X: Matrix, ensemble: Ensemble) -> NDArray[Any]:
    """Decide on blocks of rows: the scores of all members take far more memory than what comes of them."""
    blocks = _blocks(X.shape[0], ensemble)
    if len(blocks) == 1:
        return decide(X, blocks[0])
    return np.concatenate([decide(X[rows], rows) for rows in blocks])


def _blocks(n_rows: int, ensemble: Ensemble) -> list[slice]:
    step = max(1, _BLOCK_SCORES // ensemble.intercepts.size)
    return [slice(start, start + step) for start in range(0, n_rows, step)]
