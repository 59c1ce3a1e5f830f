"""TableEncoder: the columns of a table, each on its own, as features of linear models."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted, validate_data

from exclusivity._errors import check_choice, check_number
from exclusivity._typing import Ints, Matrix
from exclusivity.classifier._validation import group_codes
from exclusivity.tables.assembling import assemble_dense, assemble_sparse, grouped, sparse_is_better
from exclusivity.tables.cells import (
    CellError,
    DictionaryColumn,
    as_array,
    column_of,
    frame_package,
    kind_of,
)
from exclusivity.tables.codes import Code, GapCode, Ready
from exclusivity.tables.doubts import warn_of_texts
from exclusivity.tables.summaries import SUMMARIES, LevelSummary, Rules, Summary


@dataclass(frozen=True, eq=False, slots=True)
class TableColumn:
    """One input column of a fitted :class:`TableEncoder`.

    Attributes
    ----------
    name : str
        Its name, or "x" and its number.
    kind : {"number", "category", "date"}
        What it holds.
    code : code or None
        How it becomes output columns; None where it is left out.
    n_gaps : int
        Missing values in the training rows.
    n_levels : int or None
        Categories in the training rows.
    left_out : str
        Why it is left out, or "".
    notation : str or None
        How its numbers were written, where ``erm`` read them from text: the decimal sign, if one was seen,
        ``'`` if thousands were set apart, ``%`` if per cent signs stood behind them.
    """

    name: str
    kind: str
    code: Code | None
    n_gaps: int
    n_levels: int | None = None
    left_out: str = ""
    notation: str | None = None

    @property
    def width(self) -> int:
        """Number of output columns."""
        return 0 if self.code is None else self.code.width


@contextmanager
def _named(name: str) -> Iterator[None]:
    """Name the column in errors about its cells."""
    try:
        yield
    except CellError as error:
        raise ValueError(f"Column {name!r}: {error}.") from error


class TableEncoder(TransformerMixin, BaseEstimator):
    """Encode the columns of a table, each on its own, as features of a linear model.

    Numbers become themselves, standardised, and with ``numeric="spline"`` a few hat functions as well, so
    that a linear model on top is a piecewise linear curve of each column. Categories, texts and booleans
    become one column per category, dates their parts. A missing value becomes a neutral value and, where the
    training rows had missing values in that column, an output column indicates it.

    Nothing is computed across columns, and nothing leaves its bounds, whatever a cell holds: a broken input
    column stays within its own output columns. An :class:`~exclusivity.ERMClassifier` behind this encoder
    in a pipeline takes those as its ``feature_groups`` without being told, and
    :func:`exclusivity.robustness.certify` speaks of input columns.

    Parameters
    ----------
    numeric : {"linear", "spline"}, default="spline"
        How numbers are encoded: as themselves, or as themselves and a piecewise linear curve.
    n_knots : int, default=6
        Where such a curve may bend: at so many quantiles of the training rows, at least 3. A column of
        fewer distinct values bends at each of them.
    categorical : sequence of str or int, default=None
        Columns (by name, or by number) that are categories though they hold numbers or dates.
    min_frequency : int, default=2
        Categories that fewer training rows have are pooled in one output column.
    max_levels : int, default=64
        So are all but the most frequent categories, so many of which get columns of their own.
    feature_groups : sequence of labels, callable or None, default=None
        One label per input column, or a callable from column names to labels: input columns of one label
        (those of one sensor, say) go to one member together, and break together. None: each on its own.
    sparse_output : bool or "auto", default="auto"
        Whether to give a CSR matrix. "auto": where the training rows, encoded, are large (64 MiB) and a
        sparse matrix is smaller.
    dtype : {numpy.float64, numpy.float32}, default=numpy.float64
        The type of the output.

    Attributes
    ----------
    columns_ : list of TableColumn
        What was learned of each input column: kind, code, missing values, and why it is left out, if it is.
    feature_groups_ : ndarray of shape (n_features_out,)
        The input column behind every output column: its name, or its number where there are no names. With
        ``feature_groups`` the number of its group.
    sources_ : ndarray of int, shape (n_features_out,)
        The same, by number.
    sparse_output_ : bool
        Whether the output is sparse.
    n_features_in_ : int
        Number of input columns.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, where they have names.

    See Also
    --------
    exclusivity.make_robust_classifier : This encoder and a vote that survives broken columns.
    sklearn.compose.ColumnTransformer : Transformers of your own for some columns each.

    Notes
    -----
    In ``transform`` a category that the training rows did not have gives zeros; a number outside of the range
    seen in training, be it infinite, counts as the nearest end of that range. A missing value in a column
    without any in training gives the neutral value alone: the median of numbers, zeros for a category.
    Columns without information (constants, texts that are different in every row) are left out. Text in a
    column of numbers is an error, unless it is a number itself.

    How ``transform`` reads a cell depends on the training rows and on that cell alone, whatever container it
    comes in. Categories are texts: 3, 3.0 and "3" are one, True is "True". Where the training rows had only
    one of True and 1, each counts as the other; so do False and 0.

    Examples
    --------
    >>> rows = [["red", 1.5], ["blue", None], ["red", 0.5], ["blue", 2.5]]
    >>> encoder = TableEncoder(numeric="linear").fit(rows)
    >>> encoder.get_feature_names_out().tolist()
    ['x0=blue', 'x0=red', 'x1', 'x1=(missing)']
    >>> encoder.transform([["green", 1e300]]).round(2).tolist()
    [[0.0, 0.0, 1.22, 0.0]]
    >>> encoder.feature_groups_.tolist()
    [0, 0, 1, 1]
    """

    columns_: list[TableColumn]
    sources_: Ints
    sparse_output_: bool
    n_features_in_: int

    def __init__(
        self,
        numeric: str = "spline",
        *,
        n_knots: int = 6,
        categorical: Sequence[str | int] | None = None,
        min_frequency: int = 2,
        max_levels: int = 64,
        feature_groups: object = None,
        sparse_output: bool | str = "auto",
        dtype: DTypeLike = np.float64,
    ) -> None:
        self.numeric = numeric
        self.n_knots = n_knots
        self.categorical = categorical
        self.min_frequency = min_frequency
        self.max_levels = max_levels
        self.feature_groups = feature_groups
        self.sparse_output = sparse_output
        self.dtype = dtype

    def fit(self, X: Any, y: object = None) -> Self:
        """Learn kinds, ranges, knots and categories of the columns.

        Parameters
        ----------
        X : DataFrame of pandas or polars, pyarrow Table, or array-like of shape (n_samples, n_features)
            Training rows.
        y : None
            Ignored; there for scikit-learn.

        Returns
        -------
        self : TableEncoder
        """
        self._learn_rows(X, encode=False)
        return self

    def fit_transform(self, X: Any, y: object = None) -> Matrix:
        """Learn from rows and encode them; each column is read once.

        Parameters
        ----------
        X : DataFrame of pandas or polars, pyarrow Table, or array-like of shape (n_samples, n_features)
            Training rows.
        y : None
            Ignored; there for scikit-learn.

        Returns
        -------
        rows : ndarray or CSR matrix of shape (n_samples, n_features_out)
            As of ``transform``.
        """
        return self._assemble(self._learn_rows(X, encode=True))

    def transform(self, X: Any) -> Matrix:
        """Encode rows.

        Parameters
        ----------
        X : DataFrame of pandas or polars, pyarrow Table, or array-like of shape (n_samples, n_features)
            Rows with the columns of ``fit``, in the same order.

        Returns
        -------
        rows : ndarray or CSR matrix of shape (n_samples, n_features_out)
            With an attribute ``feature_groups``, which classifiers of this package look for.
        """
        check_is_fitted(self)
        X = self._validate(X, reset=False)
        ready = []
        for place, learned in enumerate(self.columns_):
            if learned.code is not None:
                with _named(learned.name):
                    ready.append(learned.code.ready(column_of(X, place)))
        return self._assemble(ready)

    def _assemble(self, ready: Sequence[Ready]) -> Matrix:
        assemble = assemble_sparse if self.sparse_output_ else assemble_dense
        rows = assemble(self._codes(), ready, len(ready[0]), self.dtype)
        return grouped(rows, self._groups()[self.sources_])

    def _validate(self, X: Any, *, reset: bool) -> Any:
        """Return a frame or an array of the right width; cells are checked where columns are read."""
        if frame_package(X) is None:
            X = X if hasattr(X, "dtype") else as_array(X)
            return validate_data(self, X, reset=reset, dtype=None, ensure_all_finite=False)
        validate_data(self, X, reset=reset, skip_check_array=True)
        for what, count in zip(("sample(s)", "feature(s)"), X.shape, strict=True):
            if not count:
                raise ValueError(
                    f"Found a table with 0 {what} (shape={X.shape}) while a minimum of 1 is required."
                )
        return X

    def _learn_rows(self, X: Any, *, encode: bool) -> list[Ready]:
        """Learn column by column; return these as their codes read them, if they are to be encoded."""
        rules = self._rules()
        X = self._validate(X, reset=True)
        names, columns, ready = self._input_names(), [], []
        chosen = self._chosen(names)
        for place, name in enumerate(names):
            column = column_of(X, place)
            with _named(name):
                kind = "category" if place in chosen else kind_of(column)
                summary = SUMMARIES[kind].of(column)
                learned = _learn_column(name, kind, summary, rules)
                if encode and learned.code is not None:
                    ready.append(learned.code.ready(column))
            is_declared = place in chosen or (isinstance(column, DictionaryColumn) and column.is_category)
            if isinstance(summary, LevelSummary) and not is_declared:
                warn_of_texts(name, summary.counts)
            columns.append(learned)
        self._store(columns, X.shape[0])
        return ready

    def _store(self, columns: list[TableColumn], n_rows: int) -> None:
        """Keep what was learned of all columns of so many rows."""
        if not any(column.width for column in columns):
            raise ValueError(
                f"No column of X (n_samples = {n_rows}) tells rows apart; the first, {columns[0].name!r}, is "
                f"left out because {columns[0].left_out}."
            )
        self._groups()  # labels may not fit the columns
        self.columns_, self.sources_ = columns, output_sources(columns)
        is_better = sparse_is_better(self._codes(), n_rows, np.dtype(self.dtype).itemsize)
        self.sparse_output_ = is_better if self.sparse_output == "auto" else bool(self.sparse_output)

    def _codes(self) -> list[Code]:
        return [column.code for column in self.columns_ if column.code is not None]

    def _groups(self) -> Ints:
        """Return the number of the group of every input column."""
        return group_codes(self.feature_groups, self.n_features_in_, getattr(self, "feature_names_in_", None))

    @property
    def feature_groups_(self) -> NDArray[Any]:
        """The input column behind every output column: its name or number; or its group."""
        check_is_fitted(self)
        if self.feature_groups is not None:
            return self._groups()[self.sources_]
        names = getattr(self, "feature_names_in_", None)
        return self.sources_ if names is None else names[self.sources_]

    def get_feature_names_out(self, input_features: Sequence[str] | None = None) -> NDArray[Any]:
        """Return the names of the output columns.

        Parameters
        ----------
        input_features : sequence of str, default=None
            Names of the input columns; None: those seen in ``fit``, or x0, x1, ...

        Returns
        -------
        names : ndarray of str
        """
        check_is_fitted(self)
        found: dict[str, None] = {}
        for column, name in zip(self.columns_, _check_feature_names_in(self, input_features), strict=True):
            for wanted in [] if column.code is None else column.code.names(name):
                unique, number = wanted, 1
                while unique in found:
                    number += 1
                    unique = f"{wanted}_{number}"
                found[unique] = None
        return np.array(list(found), dtype=object)

    @property
    def bytes_per_row(self) -> int:
        """Memory that an encoded row takes."""
        check_is_fitted(self)
        itemsize = int(np.dtype(self.dtype).itemsize)
        if not self.sparse_output_:
            return itemsize * len(self.sources_)
        return sum(code.slots for code in self._codes()) * (itemsize + 4)

    def _rules(self) -> Rules:
        """Check the parameters; return those that codes depend on."""
        check_choice(vars(self), "numeric", ("linear", "spline"))
        for name, least in (("n_knots", 3), ("min_frequency", 1), ("max_levels", 1)):
            check_number(vars(self), name, least=least, integer=True)
        if not (isinstance(self.sparse_output, (bool, np.bool_)) or self.sparse_output == "auto"):
            raise ValueError(f"sparse_output must be True, False or 'auto'; got {self.sparse_output!r}.")
        if np.dtype(self.dtype) not in (np.float64, np.float32):
            raise ValueError(f"dtype must be float64 or float32; got {self.dtype!r}.")
        n_knots = int(self.n_knots) if self.numeric == "spline" else 0
        return Rules(n_knots, int(self.min_frequency), int(self.max_levels))

    def _input_names(self) -> list[str]:
        names = getattr(self, "feature_names_in_", range(self.n_features_in_))
        return [name if isinstance(name, str) else f"x{name}" for name in names]

    def _chosen(self, names: list[str]) -> set[int]:
        """Return the numbers of the columns that ``categorical`` names."""
        if isinstance(self.categorical, str):
            raise TypeError(f"categorical must be a sequence of columns; got the text {self.categorical!r}.")
        chosen = set()
        for column in [] if self.categorical is None else self.categorical:
            is_number = isinstance(column, (int, np.integer)) and not isinstance(column, bool)
            place = int(column) if is_number else names.index(column) if column in names else len(names)
            if not -len(names) <= place < len(names):
                raise ValueError(f"categorical names {column!r}, which is no column of X: {names[:20]}.")
            chosen.add(place % len(names))
        return chosen

    @property
    def _n_features_out(self) -> int:
        return len(self.sources_)

    def __sklearn_tags__(self) -> Tags:
        """Declare that missing values, texts and categories are handled."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.transformer_tags.preserves_dtype = []
        return tags


def _learn_column(name: str, kind: str, summary: Summary, rules: Rules) -> TableColumn:
    """Choose the code of a column from a summary of its training rows."""
    code: Code | None = summary.code(rules)
    n_rows, n_gaps, n_levels = summary.n_rows, summary.n_gaps, getattr(summary, "n_levels", None)
    if code is None and 0 < n_gaps < n_rows:
        code = GapCode()
    if code is not None:
        return TableColumn(name, kind, code, n_gaps, n_levels)
    if n_gaps == n_rows:
        why = "it has no value at all"
    elif kind == "date":
        why = "year, month, weekday and hour are the same"
    elif n_levels is not None and n_levels > 1:
        why = f"no level is in {rules.min_frequency} rows or more, as in a column that names rows"
    else:
        why = "all its values are the same"
    return TableColumn(name, kind, None, n_gaps, n_levels, why)


def output_sources(columns: Sequence[TableColumn]) -> Ints:
    """Return the number of the input column behind every output column."""
    return np.repeat(np.arange(len(columns)), [column.width for column in columns])


def learn_from_summaries(
    encoder: TableEncoder, kinds: Sequence[str], summaries: Sequence[Summary]
) -> TableEncoder:
    """Fit an encoder to the kinds and summaries of columns without names."""
    encoder.n_features_in_ = len(kinds)
    rules, names = encoder._rules(), encoder._input_names()
    columns = [_learn_column(*each, rules) for each in zip(names, kinds, summaries, strict=True)]
    encoder._store(columns, summaries[0].n_rows)
    return encoder
