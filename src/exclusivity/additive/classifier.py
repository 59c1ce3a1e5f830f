"""RobustAdditiveClassifier: an additive model that is trained against the worst broken columns."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from html import escape
from itertools import combinations
from typing import Any, Self

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags, assert_all_finite
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d

from exclusivity._errors import ParameterError
from exclusivity._typing import Bools, Floats, Ints
from exclusivity.additive.certificates import Adversary, Duels, winners
from exclusivity.additive.levels import ColumnLevels, Levels, Sample, learn_levels
from exclusivity.additive.objective import Quadratic, RobustObjective
from exclusivity.additive.solver import Solution, solve
from exclusivity.additive.sums import Encode, RobustSums
from exclusivity.additive.suspects import Suspects, find_suspects
from exclusivity.additive.threats import check_threats, reach_of, threats_by_column
from exclusivity.classifier._erm import ClassTotals
from exclusivity.classifier._validation import (
    check_choice,
    check_jobs,
    check_number,
    class_weights,
    require_labels,
    require_two_classes,
    sample_weights,
    warn_of_many_classes,
)
from exclusivity.objective.losses import Logistic, MarginLoss, PowerHinge
from exclusivity.rows.source import LocalBlocks, Question, RowBlock, RowSource
from exclusivity.tables._checks import (
    categorical_places,
    check_table,
    column_place,
    describe_odd_cells,
    group_labels,
    monotone_signs,
    number_labels,
    warn_of_changes,
    warn_of_table,
)
from exclusivity.tables._codes import READERS, missing_in
from exclusivity.tables._columns import (
    ColumnTable,
    DictionaryColumn,
    as_array,
    column_of,
    join_columns,
    missing,
    odd_cells,
    read_column,
)

_LOSSES: dict[str, MarginLoss] = {
    "squared_hinge": PowerHinge(2.0),
    "hinge": PowerHinge(1.0),
    "logistic": Logistic(),
}
_RIDGE = 0.05
_SAMPLE_ROWS = 200_000


class _InMemory(LocalBlocks):
    """A table in memory as one block."""

    def __init__(self, block: RowBlock) -> None:
        self.block, (self.n_rows, self.n_features) = block, block.X.shape

    def blocks(self) -> Iterator[RowBlock]:
        """See ``LocalBlocks``."""
        yield self.block


def has_probabilities(model: RobustAdditiveClassifier) -> bool:
    """Return True, or raise AttributeError where there are no probabilities."""
    if model.loss != "logistic":
        raise AttributeError("predict_proba needs loss='logistic'; decision_function gives scores.")
    return True


@dataclass(repr=False, eq=False, match_args=False)
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
    clean_weight : float, default=0.75
        The share of the loss that belongs to rows as they are; the rest belongs to rows with 1 to
        ``max_broken`` broken columns, in equal parts. Smaller values give larger certificates where many
        columns carry the signal; where few do, the model may end as a constant.
    loss : {"squared_hinge", "hinge", "logistic"}, default="squared_hinge"
        The loss of a margin. "logistic" gives ``predict_proba``.
    n_knots : int, default=16
        The largest number of knots of a number, at quantiles of the training rows.
    smoothness : float, default=1.0
        Weight of the squared differences of neighbouring knots.
    feature_groups : sequence of labels, dict, callable or None, default=None
        Columns of one label break together, such as those of one sensor. A dict has labels by column; a
        callable makes one label per column from the array of names. None: each column alone.
    threats : str, tuple or dict, default="any"
        What a broken cell can contain: "any" value, nothing else ("trusted"), only larger ("increase") or
        smaller ("decrease") numbers, only a "missing" value, or numbers of an interval ``(low, high)``. A
        dict has threats by column, or by label of a group; columns that it does not name can contain
        anything.
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
        Threads for the duels of several classes; -1: one per processor.
    verbose : int, default=0
        Print objective and gap of each smoothed problem where it is above 0.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes.
    columns_ : list of ColumnLevels
        What was learned of each column: kind, knots, categories, and how the training rows were spread.
    points_ : ndarray of shape (n_duels, n_points)
        The values of all points of all columns, one column after the other, for each duel of two classes, in
        the order of ``itertools.combinations(classes_, 2)``; positive values favour the second class.
    intercept_ : ndarray of shape (n_duels,)
        The intercepts.
    threats_ : list
        The threat of each column.
    feature_groups_ : ndarray of int of shape (n_features_in_,)
        The number of the group of each column.
    objective_, dual_gap_ : ndarray of shape (n_duels,)
        The objective, and its proven relative distance from the optimum.
    converged_ : ndarray of bool of shape (n_duels,)
        True where the gap is at most ``tol``.
    n_iter_ : ndarray of int of shape (n_duels,)
        Evaluations of the objective.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of str
        Their names, where X has names.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = RobustAdditiveClassifier(max_broken=2).fit(X[::2], y[::2])
    >>> radii = model.certify(X[1::2])
    >>> right = model.predict(X[1::2]) == y[1::2]
    >>> [round(float(((radii >= r) & right).mean()), 2) for r in (0, 1, 2)]  # certified accuracy
    [0.94, 0.91, 0.85]
    """

    max_broken: int = 1
    _: KW_ONLY
    C: float = 0.1
    clean_weight: float = 0.75
    loss: str = "squared_hinge"
    n_knots: int = 16
    smoothness: float = 1.0
    feature_groups: Any = None
    threats: Any = "any"
    monotonic_cst: Any = None
    categorical_features: Any = "from_dtype"
    class_weight: Any = None
    tol: float = 1e-2
    max_iter: int = 1000
    warm_start: bool = False
    n_jobs: int | None = None
    verbose: int = 0

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
        require_labels(y)
        y = column_or_1d(y, warn=True)
        assert_all_finite(y, input_name="y")
        check_classification_targets(y)
        if len(y) != X.shape[0]:
            raise ValueError(f"X has {X.shape[0]} rows and y has {len(y)}; expected as many.")
        weight = sample_weights(sample_weight, len(y))
        classes, codes = np.unique(y, return_inverse=True)
        warn_of_many_classes(len(classes), len(y), 2)
        totals = np.bincount(codes, weight).astype(float)
        source = _InMemory(RowBlock(X, codes.astype(np.int32), weight))
        self._fit_source(source, classes, totals, X, weight)
        warn_of_table(X, codes, self._texts(X))
        return self

    def fit_rows(
        self,
        rows: RowSource,
        classes: ArrayLike,
        *,
        feature_names: ArrayLike | None = None,
        keep_encoded: bool = True,
    ) -> Self:
        """Fit the model to rows that are reached block by block: files, threads, a cluster.

        Levels are those of 200,000 rows, evenly spaced; with no more rows, the model is that of :meth:`fit`.
        All rows count in training, and the duality gap is that of all rows.

        Parameters
        ----------
        rows : RowSource
            A source of rows, see :class:`exclusivity.rows.RowSource`. ``X`` of its blocks is a table of any
            kind that :meth:`fit` takes, the same kind and columns in all of them.
        classes : array-like of shape (n_classes,)
            The label of class 0, 1, ...; increasing.
        feature_names : array-like of str, shape (n_features,), default=None
            The names of the columns.
        keep_encoded : bool, default=True
            Whether blocks keep their encoded rows, twelve bytes for each cell. False: encode them in every
            pass.

        Returns
        -------
        self : RobustAdditiveClassifier
        """
        self._check_parameters()
        tables, weights = zip(*rows.total(Sample(max(1, -(-rows.n_rows // _SAMPLE_ROWS)))), strict=True)
        table = ColumnTable([join_columns(column) for column in zip(*tables, strict=True)])
        self.n_features_in_ = table.shape[1]
        self.__dict__.pop("feature_names_in_", None)
        if feature_names is not None:
            self.feature_names_in_ = np.asarray(feature_names, dtype=object)
        classes = np.asarray(classes)
        totals = rows.total(ClassTotals(len(classes), takes_tables=True))
        return self._fit_source(rows, classes, totals, table, np.concatenate(weights), keep_encoded)

    def _fit_source(
        self,
        source: RowSource,
        classes: NDArray[Any],
        totals: Floats,
        table: Any,
        weight: Floats,
        keep_encoded: bool = True,
    ) -> Self:
        """Learn the levels from a table with weights, encode the rows of a source, and solve the duels."""
        require_two_classes(classes)
        costs = self.C * class_weights(self.class_weight, classes, totals)
        if not (costs * totals).all():
            lacking = classes[costs * totals == 0].tolist()[0]
            raise ValueError(f"All rows of the class {lacking!r} have weight 0.")
        names = self._names()
        labels = group_labels(self.feature_groups, names)
        threats = threats_by_column(self.threats, names, labels)
        chosen = categorical_places(self.categorical_features, names, "categorical_features")
        columns = [
            learn_levels(
                name,
                column_of(table, place),
                weight,
                self.n_knots,
                is_category=place in chosen,
                extra=threat if isinstance(threat, tuple) else (),
            )
            for place, (name, threat) in enumerate(zip(names, threats, strict=True))
        ]
        check_threats(threats, columns)
        monotone = monotone_signs(self.monotonic_cst, columns, ("number", "date"))
        if self.monotonic_cst is not None and len(classes) > 2:
            message = "monotonic_cst is for two classes, and y has more; leave it out."
            raise ParameterError("monotonic_cst", message)
        starts = self._starts(columns, classes) if self.warm_start else {}
        self.classes_, self.threats_ = classes, threats
        self.feature_groups_ = number_labels(labels, len(names))
        if self.max_broken > (n_groups := len(np.unique(self.feature_groups_))):
            warnings.warn(
                f"max_broken={self.max_broken} is more than the {n_groups} columns or groups of X."
                " Choose a smaller number: few predictions survive if all columns break.",
                UserWarning,
                stacklevel=3,
            )
        encode = Encode(Levels(columns), costs)
        encoded = source.ask([Question(encode, None, keep_encoded)])[0]
        n_rows, cost, at_points = np.split(encoded.total, [len(classes), 2 * len(classes)])
        levels = encode.levels.with_rows(at_points)
        reach = reach_of(levels, threats, self.feature_groups_)
        quadratic = Quadratic(levels.joined, _RIDGE, self.smoothness)
        broken = np.full(self.max_broken, (1 - self.clean_weight) / max(1, self.max_broken))
        shares = np.append(1 - broken.sum(), broken)
        radii = np.flatnonzero(shares)
        sums = RobustSums((0, 1), reach, _LOSSES[self.loss], radii, shares[radii], encode)

        def duel(pair: tuple[int, int]) -> Solution:
            of_pair, own = replace(sums, classes=pair), list(pair)
            problem = RobustObjective(
                source, encoded.states, of_pair, levels, quadratic, n_rows[own].sum(), cost[own], monotone
            )

            def report(count: int, objective: float, gap: float) -> None:
                told = f"evaluation {count}: objective {objective:.6g}, gap {gap:.1e}"
                print("[{} against {}]".format(*classes[own]), told)  # noqa: T201 -- asked for by verbose

            return solve(problem, self.tol, self.max_iter, starts.get(pair), report if self.verbose else None)

        pairs = combinations(range(len(classes)), 2)
        found = Parallel(n_jobs=self.n_jobs, prefer="threads")(delayed(duel)(pair) for pair in pairs)
        self.columns_ = levels.columns
        self._keep(found, levels)
        return self

    def _starts(self, columns: list[ColumnLevels], classes: NDArray[Any]) -> dict[tuple[int, int], Any]:
        """Return the levels and intercepts of the last fit, where it had the same classes and levels."""
        if not hasattr(self, "points_") or not np.array_equal(self.classes_, classes):
            return {}
        shapes = [[(c.kind, c.n_levels, c.n_points) for c in each] for each in (self.columns_, columns)]
        if shapes[0] != shapes[1]:
            return {}
        is_level = np.concatenate([np.arange(c.n_points) < c.n_levels for c in columns])
        values = self.points_[:, is_level]
        pairs = combinations(range(len(classes)), 2)
        return dict(zip(pairs, zip(values, self.intercept_, strict=True), strict=True))

    def _keep(self, found: Sequence[Solution], levels: Levels) -> None:
        self.points_ = np.array([levels.expand @ each.h for each in found])
        self.intercept_ = np.array([each.b for each in found])
        self.objective_ = np.array([each.objective for each in found])
        self.dual_gap_ = np.array([each.gap for each in found])
        self.n_iter_ = np.array([each.n_iter for each in found])
        self.converged_ = self.dual_gap_ <= self.tol
        self._prepare()
        if not self.converged_.all():
            warnings.warn(
                f"The duality gap is {self.dual_gap_.max():.1e} after {self.n_iter_.max()} evaluations, above"
                f" tol={self.tol:g}; certificates hold all the same. Increase max_iter, or tol.",
                ConvergenceWarning,
                stacklevel=3,
            )

    def _prepare(self) -> None:
        """Make what predictions need of the fitted state.

        That is classes_, columns_, points_, intercept_, threats_ and feature_groups_: all that a model file
        has to keep.
        """
        self._levels = Levels(self.columns_)
        self._duels = Duels(self.points_, self.intercept_, self._levels.starts, len(self.classes_))
        self._reach = reach_of(self._levels, self.threats_, self.feature_groups_)
        self._adversary = Adversary(self._duels, self._reach)

    def _check_parameters(self) -> None:
        params = self.get_params(deep=False)
        for name, least in (("max_broken", 0), ("n_knots", 2), ("max_iter", 1), ("verbose", 0)):
            check_number(params, name, least=least, integer=name != "verbose")
        for name in ("C", "tol"):
            check_number(params, name, least=0, strict=True)
        check_number(params, "smoothness", least=0)
        check_number(params, "clean_weight", least=0)
        if self.clean_weight > 1:
            raise ParameterError(
                "clean_weight", f"clean_weight must be at most 1; got {self.clean_weight!r}."
            )
        check_choice(params, "loss", tuple(_LOSSES))
        check_jobs(self.n_jobs)

    def _texts(self, X: Any) -> list[tuple[str, Sequence[str], int]]:
        """Return each column's name, its texts unless it is declared a category, and its known rows."""
        chosen = categorical_places(self.categorical_features, self._names(), "categorical_features")
        found: list[tuple[str, Sequence[str], int]] = []
        for place, column in enumerate(self.columns_):
            cells = column_of(X, place)
            is_declared = place in chosen or (isinstance(cells, DictionaryColumn) and cells.is_category)
            texts = () if is_declared else (*column.categories, *column.rare)
            n_missing = missing_in(READERS["category"](cells)).sum() if texts else 0
            found.append((column.name, texts, len(cells) - int(n_missing)))
        return found

    # -- prediction -------------------------------------------------------------------------------------

    def _names(self) -> list[str]:
        names = getattr(self, "feature_names_in_", None)
        return [f"x{j}" for j in range(self.n_features_in_)] if names is None else [str(n) for n in names]

    def _validated(self, X: Any, *, reset: bool) -> Any:
        """Return rows as a frame or an array; for a prediction as columns, with a warning of odd ones."""
        X, remarks = check_table(self, X, reset=reset)
        if reset:
            return X
        columns = [column_of(X, place) for place in range(X.shape[1])]
        for place, (known, column) in enumerate(zip(self.columns_, columns, strict=True)):
            if known.kind == "date" or getattr(column, "dtype", np.dtype("O")).kind not in "iufb":
                columns[place] = read_column(column, known.kind)
                remarks += describe_odd_cells(known, *odd_cells(column, missing(columns[place])))
        warn_of_changes(remarks, stacklevel=6)  # of predict
        return ColumnTable(columns)

    def _over_rows(self, X: Any, question: Callable[[Ints, Floats], Any], levels: Any = None) -> Any:
        """Return the answers for all rows to a question about encoded rows."""
        X = self._validated(X, reset=False)
        answers = [question(left, weight) for left, weight in (levels or self._levels).blocks(X)]
        return answers[0] if len(answers) == 1 else np.concatenate(answers)

    def decision_function(self, X: Any) -> Floats:
        """Return the scores of rows.

        Parameters
        ----------
        X : table or array-like of shape (n_samples, n_features)
            Rows. Columns of a table are matched by name: absent ones count as missing, unknown ones are
            ignored, both with a warning.

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
            Two classes: positive for the second one. More: the smallest lead of each class in its duels.
        """
        check_is_fitted(self)
        return np.asarray(self._over_rows(X, self._duels.decide))

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class of every row.

        Parameters
        ----------
        X : table or array-like of shape (n_samples, n_features)
            Rows, as for :meth:`decision_function`.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
        """
        scores = self.decision_function(X)  # before classes_, which may not be there yet
        return np.asarray(self.classes_[winners(scores)])

    @available_if(has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Floats:
        """Return the probabilities of the classes, for ``loss="logistic"``.

        They come from training against broken columns and are therefore nearer to 1/2 than those of an
        ordinary model. The probabilities r_cd of the duels of several classes are coupled as
        1 / (sum_d 1/r_cd - K + 2), normalised (Price et al. 1994); the largest may be that of another class
        than the one of ``predict`` where no class wins all its duels clearly.

        Parameters
        ----------
        X : table or array-like of shape (n_samples, n_features)
            Rows, as for :meth:`decision_function`.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
        """
        check_is_fitted(self)
        return np.asarray(self._over_rows(X, self._duels.probabilities))

    # -- certificates -----------------------------------------------------------------------------------

    def _against(self, threats: Any, *, attacked: bool = False) -> tuple[Adversary, Levels]:
        """Return an adversary, and the levels that its rows must be encoded with."""
        if threats is None and not attacked:
            return self._adversary, self._levels
        names = self._names()
        labels = group_labels(self.feature_groups, names) if threats is not None else []
        found = self.threats_ if threats is None else threats_by_column(threats, names, labels)
        check_threats(found, self.columns_)
        columns, points = [], []
        for column, threat, start in zip(self.columns_, found, self._levels.starts, strict=False):
            own = self.points_[:, start : start + column.n_points]
            refined, values = column.with_knots(threat if isinstance(threat, tuple) else (), own)
            columns.append(refined)
            points.append(values)
        levels = Levels(columns)
        duels = Duels(np.hstack(points), self.intercept_, levels.starts, len(self.classes_))
        return Adversary(duels, reach_of(levels, found, self.feature_groups_, attacked=attacked)), levels

    def certify(self, X: Any, threats: Any = None, *, attacked: bool = False) -> Ints:
        """Return how many columns of each row may break without changing its prediction.

        Parameters
        ----------
        X : table or array-like of shape (n_samples, n_features)
            Rows, as for :meth:`decision_function`.
        threats : str, tuple or dict, default=None
            What broken cells can contain, as for the constructor; None: what the model was trained against.
        attacked : bool, default=False
            Rows are clean, and the certificate says what they can become. True: they may have been attacked
            already, and it says what they may have been. Threats that are not one-sided are the same.

        Returns
        -------
        radii : ndarray of int of shape (n_samples,)
            Whatever so many columns (or groups) contain, the prediction stays the same. Exact for two
            classes, a lower bound for more. -1: no certificate, the scores tie or no class wins all duels.
        """
        check_is_fitted(self)
        adversary, levels = self._against(threats, attacked=attacked)
        return np.asarray(self._over_rows(X, adversary.radii, levels))

    def certify_set(self, X: Any, r: int, threats: Any = None, *, attacked: bool = False) -> Bools:
        """Return which classes can be predicted when at most ``r`` columns of each row break.

        Parameters
        ----------
        X : table or array-like of shape (n_samples, n_features)
            Rows, as for :meth:`decision_function`.
        r : int
            The number of columns (or groups).
        threats : str, tuple or dict, default=None
            As for :meth:`certify`.
        attacked : bool, default=False
            As for :meth:`certify`.

        Returns
        -------
        can_win : ndarray of bool of shape (n_samples, n_classes)
            Other classes cannot. Exact for two classes; for more, some of these classes may be impossible.
        """
        check_is_fitted(self)
        check_number({"r": r}, "r", least=0, integer=True)
        adversary, levels = self._against(threats, attacked=attacked)
        return np.asarray(self._over_rows(X, partial(adversary.possible, r=r), levels))

    def stands(self, X: Any, columns: Sequence[Any]) -> Bools:
        """Return which predictions cannot change whatever these columns contain.

        Parameters
        ----------
        X : table or array-like of shape (n_samples, n_features)
            Rows, as for :meth:`decision_function`.
        columns : sequence of str or int
            Names or numbers of columns that may contain anything, all at once. Trusted columns are no
            exception here.

        Returns
        -------
        stands : ndarray of bool of shape (n_samples,)
        """
        check_is_fitted(self)
        if isinstance(columns, (str, int)):
            columns = [columns]
        names = self._names()
        chosen = np.zeros((len(names), 1), dtype=bool)
        chosen[[column_place(column, names, "columns") for column in columns]] = True
        adversary, levels = self._against("any")
        return np.asarray(self._over_rows(X, partial(adversary.stands, sets=chosen), levels))[:, 0]

    def attack(self, X: Any, n_broken: int) -> Any:
        """Return rows in which so many columns (or groups) contain the worst that the threats allow.

        Parameters
        ----------
        X : ndarray, DataFrame of pandas or polars, or pyarrow Table of shape (n_samples, n_features)
            Rows.
        n_broken : int
            The number of columns or groups to break in each row.

        Returns
        -------
        X : ndarray or DataFrame
            A copy with changed cells: for two classes ``certify(X) + 1`` broken columns turn a prediction or
            make it a tie (up to rounding), unless no column is left that can break. Frames of polars and
            tables of Arrow come back as frames of pandas.
        """
        check_is_fitted(self)
        check_number({"n_broken": n_broken}, "n_broken", least=0, integer=True)
        if hasattr(X, "to_pandas") and not hasattr(X, "iloc"):
            X = X.to_pandas()
        target = self._over_rows(X, partial(self._adversary.worst_rows, r=n_broken))
        return self._with_cells(X, target)

    def _with_cells(self, X: Any, target: Ints) -> Any:
        """Return a copy of a table whose cells show other points; -1 leaves a cell as it is."""
        is_frame = hasattr(X, "iloc")
        changed: Any = X.copy() if hasattr(X, "copy") else as_array(X).copy()
        if not is_frame and changed.dtype.kind not in "fO":
            changed = changed.astype(object)
        for place, column in enumerate(self.columns_):
            rows = np.flatnonzero(target[:, place] >= 0)
            if not len(rows):
                continue
            points = (target[rows, place] - self._levels.starts[place]).tolist()
            values = [column.value_of(point) for point in points]
            if is_frame:
                name = column.name if column.name in changed.columns else changed.columns[place]
                cells = changed[name].astype(object).to_numpy(copy=True)
                cells[rows] = values
                changed[name] = cells
            else:
                nothing = np.nan if changed.dtype.kind == "f" else None
                changed[rows, place] = [nothing if value is None else value for value in values]
        return changed

    # -- reading the model --------------------------------------------------------------------------------

    def explain(self, X: Any) -> Floats:
        """Return what each column adds to the score of each row.

        Parameters
        ----------
        X : table or array-like of shape (n_samples, n_features)
            Rows, as for :meth:`decision_function`.

        Returns
        -------
        contributions : ndarray of shape (n_samples, n_features)
            With the intercept they add up to the score. Two classes: in favour of the second class. More: in
            favour of the predicted class in the duel with its strongest rival.
        """
        check_is_fitted(self)
        return np.asarray(self._over_rows(X, self._adversary.explain))

    def suspects(self, X: Any) -> Suspects:
        """Compare the columns of new rows with those of the training rows.

        Parameters
        ----------
        X : table or array-like of shape (n_samples, n_features)
            New rows, at least some dozens to say anything about distributions.

        Returns
        -------
        suspects : Suspects
            One entry per column, the most suspicious first; the columns that look broken; and the share of
            predictions that stand whatever those contain.
        """
        check_is_fitted(self)
        return find_suspects(self, self._validated(X, reset=False))

    def to_frame(self) -> Any:
        """Return the model as a scorecard: a pandas DataFrame with one line per level of each column.

        Returns
        -------
        scorecard : DataFrame
            Columns ``column``, ``kind``, ``level`` (a knot, a category, or a word in brackets), ``share`` of
            the training rows, and a column of values for each duel, named after the class that positive
            values favour (``"b"``, or ``"b against a"`` where there are several duels). Between two knots
            values are interpolated. The line ``(intercept)`` comes first.
        """
        import pandas as pd  # noqa: PLC0415 -- only for tables

        check_is_fitted(self)
        lines: list[tuple[str, str, Any, float]] = [("(intercept)", "", "", 1.0)]
        for column in self.columns_:
            shares = [*column.shares.tolist(), *[0.0] * (not column.has_missing)]
            lines += [
                (column.name, column.kind, level, share)
                for level, share in zip(column.labels(), shares, strict=True)
            ]
        frame = pd.DataFrame(lines, columns=["column", "kind", "level", "share"])
        for (first, second), b, points in zip(
            combinations(self.classes_.tolist(), 2), self.intercept_, self.points_, strict=True
        ):
            name = str(second) if len(self.classes_) == 2 else f"{second} against {first}"
            frame[name] = np.append(b, points)
        return frame

    def _html_repr(self) -> str:
        """Return scikit-learn's diagram, and below it the duality gap."""
        diagram = str(super()._html_repr())
        if not hasattr(self, "dual_gap_"):
            return diagram
        words = (
            f"{len(self.classes_)} classes, {self.n_features_in_} columns, trained against {self.max_broken} "
            f"broken; at most {self.dual_gap_.max():.1e} above the optimum (relative duality gap)"
        )
        return f"{diagram}<p>{escape(words)}</p>"

    def __sklearn_tags__(self) -> Tags:
        """Declare that missing values, texts and categories are accepted."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags
