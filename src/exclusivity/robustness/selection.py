"""How many members, which C, which exclusivity and which curves, when r features may break."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.metrics import accuracy_score, balanced_accuracy_score
from sklearn.model_selection import StratifiedKFold, check_cv
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from exclusivity.baselines import FeaturePartitionClassifier
from exclusivity.classifier import ClassWeight, ERMClassifier, RandomState, check_number
from exclusivity.problem.arrays import Floats, Matrix
from exclusivity.robustness.certificates import certified_accuracy, certify
from exclusivity.tables import InteractionFeatures, TableEncoder, is_table, make_robust_classifier, take_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COSTS = (0.01, 0.1, 1.0, 10.0)
_EXCLUSIVITIES = (np.inf,)
_CURVES = ("linear", "spline")


@dataclass(frozen=True, eq=False)
class MemberChoice:
    """The outcome of :func:`choose_members`.

    Attributes
    ----------
    r : int
        The number of features that may break.
    best_params : dict
        The chosen ``n_estimators``, ``C``, ``exclusivity`` and ``numeric``, as far as the estimator has them.
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
    C: Sequence[float] = _COSTS,
    exclusivity: Sequence[float] = _EXCLUSIVITIES,
    numeric: Sequence[str] | None = None,
    class_weight: ClassWeight = "balanced",
    cv: Any = 5,
    random_state: RandomState = 0,
    n_jobs: int | None = None,
) -> MemberChoice:
    """Choose K, C and gamma by cross-validated balanced certified accuracy at ``r`` broken features.

    Of tables (DataFrames, arrays of Python objects) it chooses as well whether members are linear in numbers
    or follow curves of them.

    Parameters
    ----------
    X, y : training rows and labels
    r : int
        How many features (feature groups) may break at once.
    estimator : ERMClassifier, FeaturePartitionClassifier, or Pipeline that ends in one, default=None
        What is tuned; its other parameters (``feature_groups``, ``p``, ...) stay. Hard voting is set in place
        of soft voting, and ``class_weight`` where it has none of its own. None: for tables, and where
        ``numeric`` is given, what :func:`~exclusivity.make_robust_classifier` makes; otherwise a
        StandardScaler and an ERMClassifier.
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
    model = _template(estimator, numeric, class_weight, random_state)
    n_columns = X.shape[1] if hasattr(X, "shape") else np.shape(X)[1]
    members = _members_to_try(r, n_columns) if n_estimators is None else list(n_estimators)
    names = _tuned(model, C, exclusivity, numeric)
    to_try = {"n_estimators": members, "C": C, "exclusivity": exclusivity, "numeric": numeric or ()}
    combinations = list(product(*(to_try[name] for name in names)))
    if not combinations:
        raise ValueError("n_estimators, C, exclusivity and numeric must each have a value to try.")
    splitter = _folds(cv, y, random_state)
    splits = list(splitter.split(np.zeros(len(y)), y))
    settings = [
        {parameter: value for own, value in zip(names.values(), values, strict=True) for parameter in own}
        for values in combinations
    ]
    scores = Parallel(n_jobs=n_jobs)(
        delayed(_score)(clone(model).set_params(**setting), X, y, train, test, r)
        for setting in settings
        for train, test in splits
    )
    by_setting = np.array(scores).reshape(len(settings), len(splits), 3)
    chosen = [dict(zip(names, combination, strict=True)) for combination in combinations]
    table = [params | _summary(scores) for params, scores in zip(chosen, by_setting, strict=True)]
    best = int(np.argmax(by_setting[:, :, 0].mean(axis=1)))
    final = clone(model).set_params(**settings[best]).fit(X, y)
    return MemberChoice(r, chosen[best], final, table)


def _template(
    estimator: BaseEstimator,
    numeric: Sequence[str] | None,
    class_weight: ClassWeight,
    random_state: RandomState,
) -> BaseEstimator:
    """The estimator to tune, one that counts votes."""
    if estimator is not None:
        model = clone(estimator)
    elif numeric is not None:
        model = make_robust_classifier(class_weight=None)
    else:
        model = make_pipeline(StandardScaler(), ERMClassifier())
    last = model[-1] if isinstance(model, Pipeline) else model
    if isinstance(last, ERMClassifier):
        last.set_params(voting="hard" if last.voting == "soft" else last.voting)
    elif not isinstance(last, FeaturePartitionClassifier):
        raise TypeError(
            "estimator must be an ERMClassifier, a FeaturePartitionClassifier, or a Pipeline that ends in "
            f"one; got {estimator!r}."
        )
    _balance(last, class_weight)
    if last.random_state is None:
        last.set_params(random_state=random_state)
    return model


def _balance(last: BaseEstimator, class_weight: object) -> None:
    """Give the class weight to a classifier, or to the members that take one, unless they have their own."""
    is_partition = isinstance(last, FeaturePartitionClassifier)
    if is_partition and class_weight not in (None, "balanced"):
        raise ValueError(
            "members of a FeaturePartitionClassifier see numbers in place of the classes: class_weight must "
            f"be 'balanced' or None; got {class_weight!r}."
        )
    params = last.get_params()
    names = [name for name in params if name.split("__")[-1] == "class_weight" and params[name] is None]
    last.set_params(**dict.fromkeys(names, class_weight))


def _tuned(
    model: BaseEstimator, C: Sequence[float], exclusivity: Sequence[float], numeric: Sequence[str] | None
) -> dict[str, list[str]]:
    """What is tuned, and the parameters of the model that it is."""
    is_pipeline = isinstance(model, Pipeline)
    last = model[-1] if is_pipeline else model
    prefix = f"{model.steps[-1][0]}__" if is_pipeline else ""
    found = {name: [f"{prefix}{parameter}"] for name, parameter in _voting(last, C, exclusivity).items()}
    steps = model.steps if is_pipeline else []
    # Who divides the columns has as many members as the classifier that gets them.
    dividing = [name for name, step in steps if isinstance(step, InteractionFeatures)]
    found["n_estimators"] += [f"{name}__voters__n_estimators" for name in dividing]
    if numeric is None:
        return found
    encoders = [name for name, step in steps if isinstance(step, TableEncoder)]
    if len(encoders) != 1:
        raise ValueError(
            f"numeric was given, and {type(model).__name__} has {len(encoders)} TableEncoder steps, not one; "
            "leave numeric out, or give a Pipeline with one."
        )
    return found | {"numeric": [f"{encoders[0]}__numeric"]}


def _voting(last: BaseEstimator, C: Sequence[float], exclusivity: Sequence[float]) -> dict[str, str]:
    """What is tuned of the classifier, and its parameters."""
    if isinstance(last, ERMClassifier):
        return {"n_estimators": "n_estimators", "C": "C", "exclusivity": "exclusivity"}
    if exclusivity is not _EXCLUSIVITIES:
        raise ValueError(
            "members of a FeaturePartitionClassifier never share features: leave exclusivity out."
        )
    inner = [name for name in last.get_params() if name.startswith("estimator__") and name.endswith("__C")]
    if len(inner) == 1:
        return {"n_estimators": "n_estimators", "C": inner[0]}
    if C is not _COSTS:
        raise ValueError(
            f"C was given, and {last.estimator!r} has {len(inner)} parameters of that name, not one; leave C "
            "out, or tune them by a search of their own inside the FeaturePartitionClassifier."
        )
    return {"n_estimators": "n_estimators"}


def _members_to_try(r: int, n_columns: int) -> list[int]:
    if 2 * r + 1 > n_columns:
        raise ValueError(
            f"To survive {r} broken features a vote needs {2 * r + 1} members on different ones, and X has "
            f"{n_columns} columns; choose a smaller r."
        )
    return sorted({min(n, n_columns) for n in (2 * r + 1, 3 * r + 2, 5 * r + 4)})


def _folds(cv: object, y: ArrayLike, random_state: RandomState) -> Any:
    if isinstance(cv, (int, np.integer)):
        return StratifiedKFold(int(cv), shuffle=True, random_state=random_state)
    return check_cv(cv, y, classifier=True)


def _score(
    model: BaseEstimator, X: Matrix, y: ArrayLike, train: NDArray[Any], test: NDArray[Any], r: int
) -> tuple[float, float, float]:
    labels = np.asarray(y)
    model.fit(take_rows(X, train), labels[train])
    rows = take_rows(X, test)
    predicted, radii = model.predict(rows), certify(model, rows)
    return (
        certified_accuracy(radii, labels[test], predicted, r, balanced=True),
        float(accuracy_score(labels[test], predicted)),
        float(balanced_accuracy_score(labels[test], predicted)),
    )


def _summary(scores: Floats) -> dict[str, float]:
    summary = {}
    for column, name in enumerate(("certified", "accuracy", "balanced_accuracy")):
        summary[name] = float(scores[:, column].mean())
        summary[f"{name}_std"] = float(scores[:, column].std())
    return summary
