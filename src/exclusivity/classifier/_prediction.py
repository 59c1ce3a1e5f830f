"""Predictions of a fitted ensemble: scores, votes, labels, and what certificates need."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, log_expit
from sklearn.metrics import accuracy_score
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from exclusivity._typing import Bools, Floats, Ints, Matrix
from exclusivity.classifier._fitted import Ensemble, read_only, snapshot
from exclusivity.classifier._validation import abstaining_members, are_plain_labels, validate_rows
from exclusivity.objective.losses import LOSSES
from exclusivity.voting.preferences import (
    MemberPreferences,
    certain_preferences,
    member_votes,
    rough_slack,
    score_slack,
    winning_codes,
)
from exclusivity.voting.rules import RULES, CertifiedVotes, VotingEnsemble

# Scores in memory at once while votes are counted: 4 MB, and some temporary arrays of that size.
_BLOCK_SCORES = 1 << 19
_COUNTED_ROWS = 1 << 16


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


def probabilities_of(scores: Floats) -> Floats:
    """Compute the probabilities of all classes from log-odds: of two classes, or of each against the rest."""
    if scores.ndim == 1:
        return np.asarray(np.stack([expit(-scores), expit(scores)], axis=1))
    odds: Floats = expit(scores)
    # Where all are zero no class is any likelier than the others.
    totals = odds.sum(axis=1, keepdims=True)
    even = np.full_like(odds, 1 / odds.shape[1])
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
        at = snapshot(self)
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
        at = snapshot(self)
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


class EnsemblePredictions(MemberPredictions):
    """The methods and views of a fitted classifier that need no more than its members."""

    _ensemble: Ensemble
    _fitted_multi_class: str
    groups_: Ints
    loss: str
    sparsity: float
    voting: str

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
        return snapshot(self)._decided(X, lambda scores: scores)

    def score(self, X: Matrix, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Compute the accuracy: the share of rows, or of their weight, whose class is predicted.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows to classify.
        y : array-like of shape (n_samples,)
            Their labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Their weights.

        Returns
        -------
        score : float
            Between 0 and 1.
        """
        predicted = self.predict(X)
        # Whole numbers on both sides need no look at their kinds, which takes longer than the predictions.
        if sample_weight is None and predicted.dtype.kind in "biuf" and are_plain_labels(y, len(predicted)):
            return float(np.mean(predicted == y))
        return float(accuracy_score(y, predicted, sample_weight=sample_weight))

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
        return probabilities_of(self.decision_function(X))

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
            return np.asarray(np.log(probabilities_of(scores)))

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
        at = snapshot(self)
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
    def multi_class_(self) -> str:
        """The scheme that was fitted, "ovr" or "ovo"."""
        check_is_fitted(self)
        return self._fitted_multi_class

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
        at = snapshot(self)
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

    def _vote_counts(self, X: Matrix) -> Ints:
        """Count how often each member votes for each class, (n_estimators, n_classes)."""
        counts = np.zeros((self._ensemble.intercepts.shape[1], len(self.classes_)), dtype=np.intp)
        for start in range(0, X.shape[0], _COUNTED_ROWS):
            votes = self._votes(X[start : start + _COUNTED_ROWS])
            counts += [np.bincount(column, minlength=counts.shape[1]) for column in votes.T]
        return self._spread(counts, 0)

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
