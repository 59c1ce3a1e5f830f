"""How many members, which C, which exclusivity, lines, curves or more, when r features may break."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.metrics import accuracy_score, balanced_accuracy_score
from sklearn.model_selection import StratifiedKFold, check_cv
from sklearn.pipeline import Pipeline

from exclusivity.classifier import ClassWeight, RandomState, check_number
from exclusivity.problem.arrays import Floats, Matrix
from exclusivity.robustness.candidates import (
    COSTS,
    EXCLUSIVITIES,
    Candidate,
    candidates,
    last_step,
    members_to_try,
    template,
)
from exclusivity.robustness.certificates import certified_accuracy, certify
from exclusivity.tables import is_table, take_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_CURVES = ("linear", "spline")


@dataclass(frozen=True, eq=False)
class MemberChoice:
    """The outcome of :func:`choose_members`.

    Attributes
    ----------
    r : int
        The number of features that may break.
    best_params : dict
        The chosen ``n_estimators``, ``C``, ``exclusivity``, ``numeric`` and ``interactions``, as far as the
        estimator has them and they were tried.
    estimator : estimator
        Fitted with them on all rows.
    table : list of dict
        One record per combination: the parameters, and means and standard deviations over the folds of
        ``certified`` (balanced certified accuracy at r), ``accuracy`` and ``balanced_accuracy``.
    """

    r: int
    best_params: dict[str, Any]
    estimator: Any
    table: list[dict[str, Any]]

    def trade_off(self) -> list[dict[str, Any]]:
        """For every number of members the record that certifies most: what a larger K costs and gives."""
        best: dict[int, dict[str, Any]] = {}
        for record in self.table:
            known = best.get(record["n_estimators"])
            if known is None or record["certified"] > known["certified"]:
                best[record["n_estimators"]] = record
        return [best[n] for n in sorted(best)]

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw clean against certified accuracy over the number of members.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        ax : matplotlib Axes
        """
        import matplotlib.pyplot as plt  # noqa: PLC0415 -- an extra

        if ax is None:
            _, ax = plt.subplots()
        records = self.trade_off()
        members = [record["n_estimators"] for record in records]
        for name, label in (
            ("balanced_accuracy", "nothing broken"),
            ("certified", f"certified, {self.r} broken"),
        ):
            mean, spread = (np.array([record[key] for record in records]) for key in (name, f"{name}_std"))
            line = ax.plot(members, mean, marker="o", label=label)[0]
            ax.fill_between(members, mean - spread, mean + spread, alpha=0.2, color=line.get_color())
        ax.axvline(self.best_params["n_estimators"], color="grey", linestyle=":")
        ax.set(xlabel="members", ylabel="balanced accuracy", xticks=members)
        ax.legend()
        return ax


def choose_members(
    X: Matrix,
    y: NDArray[Any],
    r: int,
    *,
    estimator: BaseEstimator = None,
    n_estimators: Sequence[int] | None = None,
    C: Sequence[float] = COSTS,
    exclusivity: Sequence[float] = EXCLUSIVITIES,
    numeric: Sequence[str] | None = None,
    interactions: Sequence[bool] | None = None,
    class_weight: ClassWeight = "balanced",
    cv: Any = 5,
    random_state: RandomState = 0,
    n_jobs: int | None = None,
) -> MemberChoice:
    """Choose K, C and gamma by cross-validated balanced certified accuracy at ``r`` broken features.

    Of tables (DataFrames, arrays of Python objects) it chooses as well whether members are linear in numbers
    or follow curves of them, and, where ``interactions`` says so, whether they look at all their columns
    together.

    Parameters
    ----------
    X, y : training rows and labels
    r : int
        How many features (feature groups) may break at once.
    estimator : ERMClassifier, FeaturePartitionClassifier, or Pipeline that ends in one, default=None
        What is tuned; its other parameters (``feature_groups``, ``p``, ...) stay. Hard voting is set in place
        of soft voting, and ``class_weight`` where it has none of its own. None: for tables, and where
        ``numeric`` or ``interactions`` are given, what :func:`~exclusivity.make_robust_classifier` makes;
        otherwise a StandardScaler and an ERMClassifier.
        Members of a FeaturePartitionClassifier have no exclusivity; C is tried and ``class_weight`` set if
        they have it.
    n_estimators : sequence of int, default=None
        Numbers of members to try. With 2 r + 1 members the vote has to be unanimous; None tries 2 r + 1,
        3 r + 2 and 5 r + 4, up to the number of columns.
    C, exclusivity : sequence of float
        Values to try.
    numeric : sequence of {"linear", "spline"}, default=None
        What to try of a :class:`~exclusivity.tables.TableEncoder` in the pipeline; None: both for tables,
        and what the estimator says where one is given.
    interactions : sequence of bool, default=None
        Whether members look at all their columns together; ``[False, True]`` tries both, with every value of
        ``numeric``: lines, curves and interactions are then chosen by one rule. It takes a TableEncoder, an
        ERMClassifier and exclusivity infinity. None: what the estimator says. Not tried by default, for it
        takes time: 8 times that of lines and curves alone on 1,000 rows of 7 mixed columns (6 and 51 s),
        5 times on 569 rows of 30 numbers (24 and 114 s).
    class_weight : dict, "balanced" or None, default="balanced"
        Weights of the classes in training. What is judged is balanced accuracy, and members that count rows
        alike tend to vote for the larger class whatever they see. None: all rows weigh the same.
    cv : int or splitter, default=5
        Folds; of an integer stratified and shuffled by ``random_state``.
    random_state : int, RandomState or None, default=0
        The search for partitions, and the folds.
    n_jobs : int, default=None
        Processes over folds and combinations.

    Returns
    -------
    choice : MemberChoice

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> choice = choose_members(X, y, r=1, n_estimators=[3, 9], C=[0.1], cv=2)
    >>> choice.best_params["n_estimators"]
    9
    """
    check_number({"r": r}, "r", least=1, integer=True)
    if numeric is None and estimator is None and is_table(X):
        numeric = _CURVES
    encodes = numeric is not None or interactions is not None
    model = template(estimator, class_weight, random_state, encodes=encodes)
    n_columns = X.shape[1] if hasattr(X, "shape") else np.shape(X)[1]
    members = members_to_try(r, n_columns) if n_estimators is None else list(n_estimators)
    tried = candidates(model, members, C, exclusivity, numeric, interactions)
    if not tried:
        raise ValueError(
            "n_estimators, C, exclusivity, numeric and interactions must each have a value to try."
        )
    splits = list(_folds(cv, y, random_state).split(np.zeros(len(y)), y))
    scores = _scores(tried, X, y, splits, r, n_jobs)
    table = [each.record | _summary(own) for each, own in zip(tried, scores, strict=True)]
    best = tried[int(np.argmax(scores[:, :, 0].mean(axis=1)))]
    return MemberChoice(r, best.record, best.complete().fit(X, y), table)


def _folds(cv: object, y: ArrayLike, random_state: RandomState) -> Any:
    if isinstance(cv, (int, np.integer)):
        return StratifiedKFold(int(cv), shuffle=True, random_state=random_state)
    return check_cv(cv, y, classifier=True)


def _scores(
    tried: list[Candidate],
    X: Matrix,
    y: ArrayLike,
    splits: list[tuple[NDArray[Any], NDArray[Any]]],
    r: int,
    n_jobs: int | None,
) -> Floats:
    """Of every candidate and fold: what ``_judged`` gives."""
    together: dict[tuple[Any, ...], list[int]] = {}
    for place, candidate in enumerate(tried):
        together.setdefault(candidate.key, []).append(place)
    answers = Parallel(n_jobs=n_jobs)(
        delayed(_score_alike)([tried[place] for place in places], X, np.asarray(y), train, test, r)
        for places in together.values()
        for train, test in splits
    )
    scores = np.empty((len(tried), len(splits), 3))
    for number, places in enumerate(together.values()):
        own = answers[number * len(splits) : (number + 1) * len(splits)]
        scores[places] = np.swapaxes(own, 0, 1)
    return scores


def _score_alike(
    alike: list[Candidate], X: Matrix, y: NDArray[Any], train: NDArray[Any], test: NDArray[Any], r: int
) -> list[tuple[float, float, float]]:
    """Of candidates that differ in the classifier alone: what comes before it is fitted once."""
    model, rows = clone(alike[0].model), take_rows(X, train)
    first = model.steps[:-1] if isinstance(model, Pipeline) else []
    for _, step in first:
        rows = step.fit_transform(rows, y[train])
    found = []
    for candidate in alike:
        last = last_step(candidate.complete()).fit(rows, y[train])
        fitted = Pipeline([*first, ("last", last)]) if first else last
        found.append(_judged(fitted, take_rows(X, test), y[test], r))
    return found


def _judged(model: BaseEstimator, X: Matrix, y: NDArray[Any], r: int) -> tuple[float, float, float]:
    predicted, radii = model.predict(X), certify(model, X)
    return (
        certified_accuracy(radii, y, predicted, r, balanced=True),
        float(accuracy_score(y, predicted)),
        float(balanced_accuracy_score(y, predicted)),
    )


def _summary(scores: Floats) -> dict[str, float]:
    summary = {}
    for column, name in enumerate(("certified", "accuracy", "balanced_accuracy")):
        summary[name] = float(scores[:, column].mean())
        summary[f"{name}_std"] = float(scores[:, column].std())
    return summary
