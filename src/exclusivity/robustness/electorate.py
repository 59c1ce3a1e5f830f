"""What a certificate needs of a fitted ensemble: who votes for what, and which columns reach whom."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.ensemble import BaggingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from exclusivity.baselines import MarginOf, Tally
from exclusivity.classifier import (
    UNDECIDED,
    VOTINGS,
    Ballots,
    CertifiedVotes,
    DoubtOf,
    Rankings,
    check_choice,
    snapshot,
)
from exclusivity.problem.arrays import Bools, Ints, Matrix
from exclusivity.problem.sparse_rows import check_sparse
from exclusivity.robustness.sources import column_sources, hides_methods, is_exactly, joined
from exclusivity.voting.ensembles import members_of

# Scores in memory at once: 32 MB.
_BLOCK_SCORES = 1 << 22


@dataclass(frozen=True, eq=False)
class Electorate:
    """A fitted classifier that decides by a vote of members on some columns each.

    Attributes
    ----------
    voters : Voters
        With a ``predict`` of their own.
    supports : ndarray of bool, shape (n_members, n_columns)
        Which member uses which of the model's columns.
    groups : ndarray of int, shape (n_columns,)
        What may break as a whole: the number of each column's feature group.
    transform : callable
        From rows of X to those that the voters see.
    """

    voters: Any
    supports: Bools
    groups: Ints
    transform: Callable[[Any], Any] = lambda X: X


def electorate_of(estimator: BaseEstimator, voting: str | None = None) -> Electorate:
    """The voters of a fitted estimator; an error that says what is missing if there is no vote.

    ``voting`` is the rule by which votes are counted; None: the estimator's own.
    """
    if voting is not None:
        check_choice({"voting": voting}, "voting", VOTINGS[1:])
    if is_exactly(estimator, (FrozenEstimator,)):
        return electorate_of(estimator.estimator, voting)
    if _is_of("sklearn", estimator) and hasattr(estimator, "best_estimator_"):
        return electorate_of(estimator.best_estimator_, voting)
    if is_exactly(estimator, (Pipeline,)):
        return _behind_steps(estimator, voting)
    check_is_fitted(estimator)
    if is_exactly(estimator, (BaggingClassifier,)):
        return _bagging(estimator, voting)
    if not isinstance(estimator, CertifiedVotes) or not _is_of("exclusivity", estimator):
        raise TypeError(
            f"There is no certificate for {type(estimator).__name__}: it needs members that vote on "
            "features of their own, counted as this package knows it. Give an ERMClassifier with "
            "voting='hard' or 'runoff', a FeaturePartitionClassifier, a BaggingClassifier whose members have "
            "no predict_proba, or a Pipeline that ends in one of these; of a search of another package its "
            "best_estimator_, and of a class derived from Pipeline sklearn.pipeline.Pipeline(model.steps)."
        )
    voters = snapshot(estimator)
    if voting is not None:
        voters.voting = voting
    voters._require_votes()
    return Electorate(voters, voters._asked_supports, voters.groups_)


def _is_of(package: str, estimator: BaseEstimator) -> bool:
    """Return whether the class is one of the package itself, and the object does what the class does."""
    return type(estimator).__module__.split(".")[0] == package and not hides_methods(estimator)


def _behind_steps(pipeline: BaseEstimator, voting: str | None) -> Electorate:
    """The voters of the last step, asked about rows of the pipeline; columns of one source break together."""
    inner, head = electorate_of(pipeline[-1], voting), pipeline[:-1]
    if all(step in (None, "passthrough") for _, step in head.steps):
        return inner
    sources = column_sources(head)

    def transform(X: Matrix) -> Any:
        check_sparse(X)
        return inner.transform(head.transform(X))

    return replace(inner, groups=joined(inner.groups, sources), transform=transform)


def _bagging(estimator: BaseEstimator, voting: str | None) -> Electorate:
    if voting is None and any(hasattr(member, "predict_proba") for member in estimator.estimators_):
        raise ValueError(
            "This BaggingClassifier averages the probabilities of its members, and one broken feature may "
            "move a mean past any majority; use a base estimator without predict_proba (LinearSVC), whose "
            "votes are counted, or count them yourself: elect(estimator, X, voting='hard') predicts, and "
            "certify(estimator, X, voting='hard') certifies that."
        )
    supports = np.zeros((len(estimator.estimators_), estimator.n_features_in_), dtype=bool)
    for member, columns in enumerate(estimator.estimators_features_):
        supports[member, columns] = True
    groups = np.arange(estimator.n_features_in_)
    return Electorate(BaggedVoters(estimator, voting or "hard"), supports, groups)


class BaggedVoters:
    """The members of a BaggingClassifier, whose votes are counted as ``voting`` says."""

    def __init__(self, estimator: BaseEstimator, voting: str) -> None:
        self.voting, self.classes_ = voting, estimator.classes_
        self._found = members_of(estimator)

    def predict(self, X: Matrix) -> Any:
        """The winners of the vote."""
        if self.voting == "runoff" and len(self.classes_) > 2:
            codes = np.concatenate([rankings.winners() for rankings in self._rankings(X)])
        else:
            sure = np.stack(self._ask(MarginOf, X), axis=1)
            codes = Tally.count(self._votes(X), sure, len(self.classes_)).winners()
        return self.classes_[codes]

    def _certain_votes(self, X: Matrix) -> Ints:
        return np.where(np.stack(self._ask(DoubtOf, X), axis=1), UNDECIDED, self._votes(X))

    def _ballots(self, X: Matrix) -> Iterator[Ballots]:
        return (rankings.ballots() for rankings in self._rankings(X))

    def _votes(self, X: Matrix) -> Ints:
        predicted = np.stack(self._found.predictions(X), axis=1)
        return np.searchsorted(self.classes_, predicted).astype(np.intp)

    def _ask(self, stand_in: Any, X: Matrix) -> list[Any]:
        """What stand-ins for the members "predict" for the same rows and columns."""
        stand_ins = [stand_in(member) for member in self._found.estimators]
        return replace(self._found, estimators=stand_ins, classes=None).predictions(X)

    def _rankings(self, X: Matrix) -> Iterator[Rankings]:
        rows, n_classes = self._found.rows(X), len(self.classes_)
        step = max(1, _BLOCK_SCORES // (n_classes * len(rows)))
        for start in range(0, rows[0].shape[0], step):
            block = [own[start : start + step] for own in rows]
            yield Rankings.of(self._found.estimators, block, n_classes)
