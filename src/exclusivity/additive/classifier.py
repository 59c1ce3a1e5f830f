"""RobustAdditiveClassifier: an additive model that is trained against the worst broken columns."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, Self

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags, assert_all_finite, compute_class_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from exclusivity.additive.certificates import (
    Score,
    breakable_groups,
    certified_radius,
    survives,
)
from exclusivity.additive.levels import ColumnLevels, Levels, learn_levels
from exclusivity.additive.objective import Quadratic, Reach, RobustObjective, Rows
from exclusivity.additive.solver import Solution, solve
from exclusivity.additive.threats import reach_of, threats_by_column
from exclusivity.classifier.fitting import group_codes
from exclusivity.problem.arrays import Bools, Floats, Ints
from exclusivity.problem.logistic import Logistic
from exclusivity.problem.loss import MarginLoss
from exclusivity.problem.power_hinge import PowerHinge
from exclusivity.tables._columns import (
    ColumnTable,
    as_array,
    column_of,
    frame_package,
)

_LOSSES: dict[str, MarginLoss] = {
    "squared_hinge": PowerHinge(2.0),
    "hinge": PowerHinge(1.0),
    "logistic": Logistic(),
}
_RIDGE = 0.05
_MIN_FREQUENCY = 10


def _has_probabilities(model: RobustAdditiveClassifier) -> bool:
    if model.loss != "logistic":
        raise AttributeError("predict_proba needs loss='logistic'; decision_function gives scores.")
    return True


class RobustAdditiveClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Additive classifier whose predictions provably survive up to r broken columns.

    The score of a row is a sum of one bounded function per column: piecewise linear for numbers and dates,
    one value per category, and a value for missing cells. Training minimises the loss that remains after an
    adversary has replaced the ``max_broken`` columns of each row that hurt most, by anything. The problem is
    convex, and its optimum is certified by a duality gap. :meth:`certify` tells for every prediction how many
    columns may contain anything without changing it.

    More than two classes are decided by pairwise duels: the class that wins all its duels is predicted.

    Parameters
    ----------
    max_broken : int, default=1
        The number r of broken columns (or groups) to train against. 0 is an ordinary additive model.
    C : float, default=0.1
        Cost of the loss of a row; smaller values regularise more.
    loss : {"squared_hinge", "hinge", "logistic"}, default="squared_hinge"
        The loss of a margin. "logistic" gives ``predict_proba``.
    n_knots : int, default=16
        The largest number of knots of a number, at quantiles of the training rows.
    smoothness : float, default=1.0
        Weight of the squared differences of neighbouring knots.
    feature_groups : sequence of labels, dict, callable or None, default=None
        Columns of one label break together, such as those of one sensor. A dict has labels by column name.
        None: each column alone.
    threats : str, tuple or dict, default="any"
        What a broken cell can contain: "any" value, nothing else ("trusted"), only larger ("increase") or
        smaller ("decrease") numbers, only a "missing" value, or numbers of an interval ``(low, high)``. A
        dict has threats by column; columns that it does not name can contain anything.
    monotonic_cst : array-like of int, dict or None, default=None
        1 for columns with which the score of the second class must not fall, -1 for those with which it must
        not rise, 0 for the others. Two classes only.
    categorical_features : "from_dtype", sequence of str or int, or None, default="from_dtype"
        Columns that are categories. "from_dtype": texts, booleans and categorical types.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes.
    tol : float, default=1e-2
        Relative duality gap at which training stops.
    max_iter : int, default=1000
        The largest number of evaluations of the objective, for each duel.
    warm_start : bool, default=False
        Start at the solution of the last fit where the columns have the same levels.
    n_jobs : int or None, default=None
        Threads for the duels of several classes.
    verbose : int, default=0
        Whether to print objective and gap.

    Attributes
    ----------
    classes_ : ndarray
        The classes.
    columns_ : list of ColumnLevels
        What was learned of each column: kind, knots, categories.
    points_ : ndarray of shape (n_duels, n_points)
        The values of all points of all columns, for each duel of two classes.
    intercept_ : ndarray of shape (n_duels,)
        The intercepts.
    objective_, dual_gap_ : ndarray of shape (n_duels,)
        The objective, and its proven relative distance from the optimum.
    converged_ : ndarray of bool of shape (n_duels,)
        Whether the gap is at most ``tol``.
    n_iter_ : ndarray of int of shape (n_duels,)
        Evaluations of the objective.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray
        Their names, where X has names.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = RobustAdditiveClassifier(max_broken=2).fit(X[::2], y[::2])
    >>> radii = model.certify(X[1::2])
    >>> right = model.predict(X[1::2]) == y[1::2]
    >>> [round(float(((radii >= r) & right).mean()), 2) for r in (0, 1, 2)]  # certified accuracy
    [0.94, 0.9, 0.85]
    """

    classes_: NDArray[Any]
    n_features_in_: int

    def __init__(
        self,
        max_broken: int = 1,
        *,
        C: float = 0.1,
        loss: str = "squared_hinge",
        n_knots: int = 16,
        smoothness: float = 1.0,
        feature_groups: Any = None,
        threats: Any = "any",
        monotonic_cst: Any = None,
        categorical_features: Any = "from_dtype",
        class_weight: Any = None,
        tol: float = 1e-2,
        max_iter: int = 1000,
        warm_start: bool = False,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.max_broken = max_broken
        self.C = C
        self.loss = loss
        self.n_knots = n_knots
        self.smoothness = smoothness
        self.feature_groups = feature_groups
        self.threats = threats
        self.monotonic_cst = monotonic_cst
        self.categorical_features = categorical_features
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.verbose = verbose

    # -- training ---------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : DataFrame of pandas or polars, pyarrow Table, or array-like of shape (n_samples, n_features)
            Training rows: numbers, dates, texts, categories, missing values.
        y : array-like of shape (n_samples,)
            Their classes.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights; a row of weight 2 counts as two rows.

        Returns
        -------
        self : RobustAdditiveClassifier
        """
        self._check_parameters()
        X = self._validated(X, reset=True)
        y = column_or_1d(y, warn=True)
        assert_all_finite(y, input_name="y")
        check_classification_targets(y)
        if len(y) != X.shape[0]:
            raise ValueError(f"X has {X.shape[0]} rows and y has {len(y)}; expected as many.")
        weight = _check_sample_weight(sample_weight, np.zeros((len(y), 1)), ensure_non_negative=True)
        classes, codes = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            raise ValueError(
                f"y has one class only, {classes[0]!r}; a classifier needs at least two classes."
            )
        old = (
            (getattr(self, "columns_", None), getattr(self, "_solutions", None)) if self.warm_start else None
        )
        names = self._names()
        self.columns_ = self._learn_columns(X, names, weight)
        self.classes_ = classes
        levels = self._levels = Levels(self.columns_)
        self._groups = self._group_codes(names)
        self._reach = self._reach_of(self.threats)
        left, share = levels.encode(X)
        cost = self.C * weight * compute_class_weight(self.class_weight, classes=classes, y=y)[codes]
        starts = self._starts(old)
        self._duels = list(combinations(range(len(classes)), 2))
        found = Parallel(n_jobs=self.n_jobs, prefer="threads")(
            delayed(self._solve)(left, share, cost, codes, duel, start)
            for duel, start in zip(self._duels, starts, strict=True)
        )
        self._keep(found)
        return self

    def _solve(
        self, left: Ints, share: Floats, cost: Floats, codes: Ints, duel: tuple[int, int], start: Any
    ) -> Solution:
        """Train the duel of two classes on their rows."""
        rows = {}
        for sign, code in zip((-1, 1), duel, strict=True):
            own = (codes == code) & (cost > 0)
            rows[sign] = Rows(left[own], share[own], cost[own])
            if not own.any():
                raise ValueError(f"All rows of the class {self.classes_[code]!r} have weight 0.")
        problem = RobustObjective(
            rows,
            self._levels,
            self._reach,
            Quadratic(self._levels.joined, _RIDGE, self.smoothness),
            _LOSSES[self.loss],
            np.arange(self.max_broken + 1),
            self._monotone(),
        )

        def report(count: int, objective: float, gap: float) -> None:
            names = " against ".join(str(self.classes_[code]) for code in duel)
            print(  # noqa: T201 -- asked for by verbose
                f"[{names}] evaluation {count}: objective {objective:.6g}, gap {gap:.1e}"
            )

        return solve(problem, self.tol, self.max_iter, start, report if self.verbose else None)

    def _starts(self, old: Any) -> list[Any]:
        count = len(self.classes_) * (len(self.classes_) - 1) // 2
        if old is None or old[0] is None or len(old[1]) != count:
            return [None] * count
        shapes = [[(c.kind, c.n_levels, c.n_points) for c in columns] for columns in (old[0], self.columns_)]
        return [(found.h, found.b) for found in old[1]] if shapes[0] == shapes[1] else [None] * count

    def _keep(self, found: Sequence[Solution]) -> None:
        self._solutions = list(found)
        self.points_ = np.array([self._levels.expand @ each.h for each in found])
        self.intercept_ = np.array([each.b for each in found])
        self.objective_ = np.array([each.objective for each in found])
        self.dual_gap_ = np.array([each.gap for each in found])
        self.n_iter_ = np.array([each.n_iter for each in found])
        self.converged_ = self.dual_gap_ <= self.tol
        if not self.converged_.all():
            warnings.warn(
                f"The duality gap is {self.dual_gap_.max():.1e} after {self.n_iter_.max()} evaluations, above"
                f" tol={self.tol:g}; certificates hold all the same. Increase max_iter, or tol.",
                ConvergenceWarning,
                stacklevel=3,
            )

    def _check_parameters(self) -> None:
        for name, least in (("max_broken", 0), ("n_knots", 2), ("max_iter", 1)):
            value = getattr(self, name)
            if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < least:
                raise ValueError(f"{name} must be an integer of at least {least}; got {value!r}.")
        for name, positive in (("C", True), ("smoothness", False), ("tol", True)):
            value = getattr(self, name)
            is_number = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
            if not is_number or not np.isfinite(value) or value < 0 or (positive and value == 0):
                bound = "above 0" if positive else "of at least 0"
                raise ValueError(f"{name} must be a finite number {bound}; got {value!r}.")
        if self.loss not in _LOSSES:
            raise ValueError(f"loss must be one of {tuple(_LOSSES)}; got {self.loss!r}.")

    def _learn_columns(self, X: Any, names: list[str], weight: Floats) -> list[ColumnLevels]:
        chosen = self._categorical(names)
        threats = threats_by_column(self.threats, names)
        columns = []
        for place, name in enumerate(names):
            column = column_of(X, place)
            ends = threats[place] if isinstance(threats[place], tuple) else ()
            columns.append(
                learn_levels(
                    name,
                    column,
                    weight,
                    self.n_knots,
                    _MIN_FREQUENCY,
                    is_category=place in chosen,
                    extra=ends,
                )
            )
        return columns

    def _categorical(self, names: list[str]) -> set[int]:
        given = self.categorical_features
        if given is None or (isinstance(given, str) and given == "from_dtype"):
            return set()
        if isinstance(given, str):
            raise ValueError(
                f"categorical_features must be 'from_dtype' or a sequence of columns; got {given!r}."
            )
        given = np.asarray(given).tolist()
        if given and all(isinstance(each, bool) for each in given):
            if len(given) != len(names):
                raise ValueError(f"categorical_features has {len(given)} entries; expected {len(names)}.")
            return {place for place, each in enumerate(given) if each}
        return {self._place(each, names, "categorical_features") for each in given}

    @staticmethod
    def _place(column: Any, names: Sequence[str], parameter: str) -> int:
        """Return the number of a column that is given by name or number."""
        if isinstance(column, (int, np.integer)) and -len(names) <= column < len(names):
            return int(column) % len(names)
        if column in names:
            return list(names).index(column)
        raise ValueError(f"{parameter} names the column {column!r}; expected one of {list(names)[:20]}.")

    def _group_codes(self, names: list[str]) -> Ints:
        groups = self.feature_groups
        if isinstance(groups, Mapping):
            for column in groups:
                self._place(column, names, "feature_groups")
            alone = [("", name) for name in names]
            groups = [groups.get(name, alone[place]) for place, name in enumerate(names)]
            groups = [str(label) for label in groups]
        return group_codes(groups, len(names), np.array(names, dtype=object))

    def _monotone(self) -> list[int]:
        given, names = self.monotonic_cst, self._names()
        if given is None:
            return []
        if len(self.classes_) > 2:
            raise ValueError("monotonic_cst is for two classes; there are more in y.")
        signs = [0] * len(names)
        if isinstance(given, Mapping):
            for column, sign in given.items():
                signs[self._place(column, names, "monotonic_cst")] = sign
        else:
            signs = np.asarray(given).tolist()
        if len(signs) != len(names) or any(sign not in (-1, 0, 1) for sign in signs):
            raise ValueError(
                f"monotonic_cst must have one of -1, 0 and 1 for each of {len(names)} columns; got {given!r}."
            )
        for column, sign in zip(self.columns_, signs, strict=True):
            if sign and column.kind == "category":
                raise ValueError(
                    f"monotonic_cst: column {column.name!r} holds categories, which have no order."
                )
        return [int(sign) for sign in signs]

    def _reach_of(self, threats: Any) -> Reach:
        return reach_of(self._levels, threats_by_column(threats, self._names(), self.columns_), self._groups)

    # -- prediction -------------------------------------------------------------------------------------

    def _names(self) -> list[str]:
        names = getattr(self, "feature_names_in_", None)
        return [f"x{j}" for j in range(self.n_features_in_)] if names is None else [str(n) for n in names]

    def _validated(self, X: Any, *, reset: bool) -> Any:
        """Return rows as a frame or an array; absent columns of a frame become missing values."""
        if frame_package(X) is None:
            X = X if hasattr(X, "dtype") else as_array(X)
            return validate_data(
                self, X, reset=reset, dtype=None, ensure_all_finite=False, accept_sparse=False
            )
        if not reset and hasattr(self, "feature_names_in_"):
            X = self._matched(X)
        else:
            validate_data(self, X, reset=reset, skip_check_array=True)
        if 0 in X.shape:
            raise ValueError(f"Found a table of shape {X.shape}; expected at least one row and one column.")
        return X

    def _matched(self, X: Any) -> Any:
        """Match the columns of a frame by name."""
        given = [str(name) for name in (X.column_names if hasattr(X, "column_names") else X.columns)]
        wanted = self._names()
        if given == wanted:
            return X
        absent = [name for name in wanted if name not in given]
        if len(absent) == len(wanted):
            raise ValueError(f"X has none of the columns of fit, {wanted[:20]}; it has {given[:20]}.")
        if absent:
            warnings.warn(
                f"X has no column {', '.join(map(repr, absent[:20]))}; all of its cells count as missing.",
                UserWarning,
                stacklevel=4,
            )
        nothing = np.full(X.shape[0], None, dtype=object)
        return ColumnTable([column_of(X, given.index(name)) if name in given else nothing for name in wanted])

    def _encoded(self, X: Any) -> tuple[Ints, Floats]:
        check_is_fitted(self)
        return self._levels.encode(self._validated(X, reset=False))

    def _scores(self) -> list[Score]:
        starts = self._levels.starts
        return [
            Score(points, float(b), starts) for points, b in zip(self.points_, self.intercept_, strict=True)
        ]

    def decision_function(self, X: Any) -> Floats:
        """Return the scores of rows.

        Parameters
        ----------
        X : table or array-like of shape (n_samples, n_features)
            Rows. An absent column of a frame counts as missing, with a warning.

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
            Two classes: positive for the second one. More: the smallest lead of each class in its duels.
        """
        return self._decide(*self._encoded(X))

    def _decide(self, left: Ints, share: Floats) -> Floats:
        leads = [score.decide(left, share) for score in self._scores()]
        if len(self.classes_) == 2:
            return leads[0]
        smallest = np.full((len(left), len(self.classes_)), np.inf)
        for (first, second), lead in zip(self._duels, leads, strict=True):
            np.minimum(smallest[:, first], -lead, out=smallest[:, first])
            np.minimum(smallest[:, second], lead, out=smallest[:, second])
        return smallest

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class of every row.

        Parameters
        ----------
        X : table or array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
        """
        winners = self._winners(self.decision_function(X))
        return np.asarray(self.classes_[winners])

    @staticmethod
    def _winners(scores: Floats) -> Ints:
        return (scores > 0).astype(np.intp) if scores.ndim == 1 else np.argmax(scores, axis=1)

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Floats:
        """Return the probabilities of the classes, for ``loss="logistic"``.

        They come from training against broken columns and are therefore nearer to 1/2 than those of an
        ordinary model. The probabilities r_cd of the duels of several classes are coupled as
        1 / (sum_d 1/r_cd - K + 2), normalised (Price et al. 1994); the largest may be that of another class
        than the one of ``predict`` where no class wins all its duels clearly.

        Parameters
        ----------
        X : table or array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
        """
        left, share = self._encoded(X)
        inverse = np.zeros((len(left), len(self.classes_)))
        for score, (first, second) in zip(self._scores(), self._duels, strict=True):
            odds = np.exp(np.clip(score.decide(left, share), -700, 700))
            inverse[:, first] += 1 + odds
            inverse[:, second] += 1 + 1 / odds
        found = 1 / (inverse - len(self.classes_) + 2)
        return np.asarray(found / found.sum(axis=1, keepdims=True))

    # -- certificates -----------------------------------------------------------------------------------

    def certify(self, X: Any, threats: Any = None) -> Ints:
        """Return how many columns of each row may break without changing its prediction.

        Parameters
        ----------
        X : table or array-like of shape (n_samples, n_features)
            Rows.
        threats : str, tuple or dict, default=None
            What broken cells can contain, as for the constructor; None: what the model was trained against.

        Returns
        -------
        radii : ndarray of int of shape (n_samples,)
            Whatever so many columns (or groups) contain, the prediction stays the same. Exact for two
            classes, a lower bound for more. -1: no certificate, the scores tie.
        """
        left, share = self._encoded(X)
        reach = self._reach if threats is None else self._reach_of(threats)
        winners = self._winners(self._decide(left, share))
        most = breakable_groups(reach, self._levels.starts)
        radii = np.full(len(left), most)
        for score, duel in zip(self._scores(), self._duels, strict=True):
            rows = np.flatnonzero(np.isin(winners, duel))
            sign = np.where(winners[rows] == duel[1], 1, -1)
            margin, damage = score.damages(left[rows], share[rows], reach, sign)
            found = certified_radius(margin, reach.by_group(damage), score.slack, most)
            radii[rows] = np.minimum(radii[rows], found)
        return radii

    def stands(self, X: Any, columns: Sequence[Any]) -> Bools:
        """Return which predictions cannot change whatever these columns contain.

        Parameters
        ----------
        X : table or array-like of shape (n_samples, n_features)
            Rows.
        columns : sequence of str or int
            Names or numbers of columns that may contain anything, all at once.

        Returns
        -------
        stands : ndarray of bool of shape (n_samples,)
        """
        left, share = self._encoded(X)
        names = self._names()
        places = sorted({self._place(column, names, "columns") for column in columns})
        threats = {place: "trusted" for place in range(len(names)) if place not in places}
        reach = self._reach_of({**threats, **dict.fromkeys(places, "any")})
        winners = self._winners(self._decide(left, share))
        found = np.ones(len(left), dtype=bool)
        for score, duel in zip(self._scores(), self._duels, strict=True):
            rows = np.flatnonzero(np.isin(winners, duel))
            sign = np.where(winners[rows] == duel[1], 1, -1)
            found[rows] &= survives(*score.damages(left[rows], share[rows], reach, sign), score.slack)
        return found

    def explain(self, X: Any) -> Floats:
        """Return what each column adds to the score of each row.

        Parameters
        ----------
        X : table or array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        contributions : ndarray of shape (n_samples, n_features)
            With the intercept they add up to the score. Two classes: in favour of the second class. More: in
            favour of the predicted class in the duel with its strongest rival.
        """
        left, share = self._encoded(X)
        winners = self._winners(self._decide(left, share))
        found = np.empty(left.shape)
        for number, sign, rows in self._weakest_duels(left, share, winners):
            side = 1 if len(self.classes_) == 2 else sign[:, None]
            found[rows] = side * self._scores()[number].contributions(left[rows], share[rows])
        return found

    def attack(self, X: Any, n_broken: int) -> Any:
        """Return rows in which so many columns (or groups) contain the worst that the threats allow.

        Parameters
        ----------
        X : ndarray or DataFrame of shape (n_samples, n_features)
            Rows.
        n_broken : int
            The number of columns or groups to break in each row.

        Returns
        -------
        X : ndarray or DataFrame
            A copy with changed cells: for two classes ``certify(X) + 1`` broken columns turn a prediction or
            make it a tie (up to rounding), unless no column is left that can break.
        """
        left, share = self._encoded(X)
        winners = self._winners(self._decide(left, share))
        target = np.full(left.shape, -1)
        for number, sign, rows in self._weakest_duels(left, share, winners):
            score = self._scores()[number]
            _, damage = score.damages(left[rows], share[rows], self._reach, sign)
            groups = self._reach.by_group(damage)
            order = np.argsort(-groups, axis=1, kind="stable")[:, :n_broken]
            is_broken = np.zeros(groups.shape, dtype=bool)
            np.put_along_axis(is_broken, order, True, axis=1)
            worst = score.worst_points(left[rows], share[rows], self._reach, sign)
            chosen = is_broken[:, self._reach.group] & (damage > 0)
            target[rows] = np.where(chosen, worst, -1)
        return self._with_cells(X, target)

    def _with_cells(self, X: Any, target: Ints) -> Any:
        """Return a copy of a table whose cells show other points; -1 leaves a cell as it is."""
        is_frame = hasattr(X, "iloc")
        changed: Any = X.copy() if hasattr(X, "copy") else np.array(X, dtype=object)
        if not is_frame and getattr(changed, "dtype", np.dtype(object)).kind not in "fO":
            changed = changed.astype(object)
        for place, column in enumerate(self.columns_):
            rows = np.flatnonzero(target[:, place] >= 0)
            if not len(rows):
                continue
            values = [
                column.value_of(point - self._levels.starts[place]) for point in target[rows, place].tolist()
            ]
            if is_frame:
                cells = changed[column.name].astype(object).to_numpy(copy=True)
                cells[rows] = values
                changed[column.name] = cells
            else:
                nothing = np.nan if changed.dtype.kind == "f" else None
                changed[rows, place] = [nothing if value is None else value for value in values]
        return changed

    def _weakest_duels(self, left: Ints, share: Floats, winners: Ints) -> Iterator[tuple[int, Ints, Ints]]:
        """Yield each duel with the rows whose predicted class has its smallest lead there, and its sign."""
        leads = np.full((len(left), len(self._duels)), np.inf)
        for number, (score, duel) in enumerate(zip(self._scores(), self._duels, strict=True)):
            rows = np.isin(winners, duel)
            sign = np.where(winners == duel[1], 1, -1)
            leads[rows, number] = (sign * score.decide(left, share))[rows]
        weakest = np.argmin(leads, axis=1)
        for number, duel in enumerate(self._duels):
            chosen = np.flatnonzero(weakest == number)
            if len(chosen):
                yield number, np.where(winners[chosen] == duel[1], 1, -1), chosen

    def __sklearn_tags__(self) -> Tags:
        """Declare that missing values, texts and categories are accepted."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags
