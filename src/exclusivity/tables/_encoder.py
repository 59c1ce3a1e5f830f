"""TableEncoder: the columns of a table, each on its own, as features of linear models."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from exclusivity._typing import Ints, Matrix
from exclusivity.classifier._validation import check_choice, check_number, group_codes
from exclusivity.tables._checks import (
    categorical_places,
    check_table,
    classes_in,
    describe_odd_cells,
    determines,
    doubt_of_leak,
    doubt_of_levels,
    monotone_signs,
    warn_of_changes,
)
from exclusivity.tables._codes import (
    READERS,
    Code,
    MissingCode,
    NumberCode,
    assemble_dense,
    assemble_sparse,
    grouped,
    learn_code,
    missing_in,
    sparse_is_better,
)
from exclusivity.tables._columns import ColumnTable, DictionaryColumn, column_of, kind_of, odd_cells

_REFUSED = {
    "number": "it held numbers in fit, and here a cell holds {}; give a number, or nothing for a missing "
    "value",
    "date": "it held dates in fit, and here a cell holds {}; write it as 2024-12-31 or 2024-12-31 23:59:00, "
    "or leave it empty",
    "category": "a cell holds {}; expected a number of at most 4000 digits, a text, a date, or nothing",
}


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
    n_missing : int
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
    n_missing: int
    n_levels: int | None = None
    left_out: str = ""
    notation: str | None = None

    @property
    def width(self) -> int:
        """Number of output columns."""
        return 0 if self.code is None else self.code.width


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
    feature_groups : sequence of labels, dict, callable or None, default=None
        One label per input column, a dict of labels by column name, or a callable from column names to
        labels: input columns of one label (those of one sensor, say) go to one member together, and break
        together. Columns that a dict does not name are on their own; None: all are.
    monotonic_cst : array-like of int, dict or None, default=None
        1 for columns of numbers with which scores must not fall, -1 for those with which they must not rise,
        0 for the others; a dict has them by column name. Such a column gets ramps instead of hats, and the
        :class:`~exclusivity.ERMClassifier` behind this encoder keeps the signs of their weights: its score is
        monotone in the column, from any number to any other. Missing values are free. Two classes only.
    strict : bool, default=False
        Whether ``transform`` refuses cells that a column cannot hold (a word among numbers, an unknown form
        of a date), absent columns and unknown ones. By default such cells and all cells of absent columns
        count as missing values, unknown columns are ignored, and one warning names the columns.
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
    sklearn.compose.ColumnTransformer : Transformers of your own for some columns each.

    Notes
    -----
    In ``transform`` a category that the training rows did not have gives zeros; a number outside of the range
    seen in training, be it infinite, counts as the nearest end of that range. A missing value in a column
    without any in training gives the neutral value alone: the median of numbers, zeros for a category.
    Columns without information (constants, texts that are different in every row) are left out. The columns
    of a DataFrame are found by their names.

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
        monotonic_cst: Any = None,
        strict: bool = False,
        sparse_output: bool | str = "auto",
        dtype: DTypeLike = np.float64,
    ) -> None:
        self.numeric = numeric
        self.n_knots = n_knots
        self.categorical = categorical
        self.min_frequency = min_frequency
        self.max_levels = max_levels
        self.feature_groups = feature_groups
        self.monotonic_cst = monotonic_cst
        self.strict = strict
        self.sparse_output = sparse_output
        self.dtype = dtype

    def fit(self, X: Any, y: object = None) -> Self:
        """Learn kinds, ranges, knots and categories of the columns.

        Parameters
        ----------
        X : DataFrame of pandas or polars, pyarrow Table, or array-like of shape (n_samples, n_features)
            Training rows.
        y : array-like of shape (n_samples,), default=None
            Classes, for warnings alone: of columns that determine them, and of targets that are no classes.

        Returns
        -------
        self : TableEncoder
        """
        self._check_parameters()
        X, _ = check_table(self, X, reset=True)
        classes = classes_in(y, X.shape[0])
        names, columns, doubts = self._input_names(), [], []
        chosen = categorical_places(self.categorical, names, "categorical")
        for place, name in enumerate(names):
            column = column_of(X, place)
            is_declared = place in chosen or (isinstance(column, DictionaryColumn) and column.is_category)
            kind = "category" if place in chosen else kind_of(column)
            read = READERS[kind](column)
            count, cell = odd_cells(column, missing_in(read))
            if count:
                raise ValueError(f"Column {name!r}: {_REFUSED['category'].format(cell)}.")
            learned = self._learn_column(name, kind, read)
            if kind == "category" and not (is_declared or isinstance(X, ColumnTable)):
                doubts.append(doubt_of_levels(name, read[1], len(column) - learned.n_missing))
            if classes is not None:
                doubts.append(doubt_of_leak(name, determines(read, classes)))
            columns.append(learned)
        for doubt in filter(None, doubts):
            warnings.warn(doubt, UserWarning, stacklevel=2)
        if not any(column.width for column in columns):
            raise ValueError(
                f"No column of X (n_samples = {X.shape[0]}) tells rows apart; the first, "
                f"{columns[0].name!r}, is left out because {columns[0].left_out}."
            )
        self._groups()  # labels may not fit the columns
        self.columns_ = self._with_ramps(columns)
        self.sources_ = output_sources(self.columns_)
        codes = [column.code for column in self.columns_ if column.code is not None]
        is_better = sparse_is_better(codes, X.shape[0], np.dtype(self.dtype).itemsize)
        self.sparse_output_ = is_better if self.sparse_output == "auto" else bool(self.sparse_output)
        return self

    def transform(self, X: Any) -> Matrix:
        """Encode rows.

        Parameters
        ----------
        X : DataFrame of pandas or polars, pyarrow Table, or array-like of shape (n_samples, n_features)
            Rows with the columns of ``fit``: by name, or in the same order where they have no names.

        Returns
        -------
        rows : ndarray or CSR matrix of shape (n_samples, n_features_out)
            With attributes ``feature_groups``, ``monotonic_cst`` and ``missing`` (which groups have no value
            in a row), which classifiers of this package look for.
        """
        check_is_fitted(self)
        X, remarks = check_table(self, X, reset=False)
        leaves, groups = [], self._groups()
        # Columns that are left out tell nothing: a group is missing where all others of it are.
        missing = np.ones((X.shape[0], int(groups.max()) + 1), dtype=bool)
        for place, known in enumerate(self.columns_):
            if known.code is not None:
                column = column_of(X, place)
                read = READERS[known.kind](column)
                is_missing = missing_in(read)
                count, cell = odd_cells(column, is_missing)
                if count and self.strict:
                    raise ValueError(f"Column {known.name!r}: {_REFUSED[known.kind].format(cell)}.")
                remarks += describe_odd_cells(known, count, cell)
                missing[:, groups[place]] &= is_missing
                leaves += known.code.leaves(read)
        warn_of_changes(remarks, " (strict=True refuses such tables.)")
        assemble = assemble_sparse if self.sparse_output_ else assemble_dense
        rows = assemble(leaves, X.shape[0], self.dtype)
        return grouped(rows, groups[self.sources_], self._output_signs(), missing)

    def _learn_column(self, name: str, kind: str, read: Any) -> TableColumn:
        """Learn a column from what was read of its training rows."""
        n_knots = int(self.n_knots) if self.numeric == "spline" else 0
        code = learn_code(kind, read, n_knots, int(self.min_frequency), int(self.max_levels))
        is_missing = missing_in(read)
        n_rows, n_missing = len(is_missing), int(np.count_nonzero(is_missing))
        n_levels, why = len(read[1]) if kind == "category" else None, ""
        if code is None and 0 < n_missing < n_rows:
            code = MissingCode()
        elif code is None and n_missing == n_rows:
            why = "it has no value at all"
        elif code is None and kind == "date":
            why = "year, month, weekday and hour are the same"
        elif code is None and n_levels is not None and n_levels > 1:
            why = f"no level is in {self.min_frequency} rows or more, as in a column that names rows"
        elif code is None:
            why = "all its values are the same"
        return TableColumn(name, kind, code, n_missing, n_levels, why)

    def _with_ramps(self, columns: Sequence[TableColumn]) -> list[TableColumn]:
        """Return columns with ramps instead of hats where ``monotonic_cst`` has a sign; check these."""
        if self.monotonic_cst is None:
            return list(columns)
        if (getattr(self, "_sklearn_output_config", {}).get("transform") or "default") != "default":
            raise ValueError("monotonic_cst needs set_output(transform='default'): a DataFrame has no signs.")
        signs = monotone_signs(self.monotonic_cst, columns, ("number",))
        return [
            replace(column, code=replace(column.code, is_ramp=True))
            if sign and isinstance(column.code, NumberCode)
            else column
            for column, sign in zip(columns, signs, strict=True)
        ]

    def _output_signs(self) -> NDArray[Any] | None:
        """Return the sign of every output column; None where there are no rules."""
        if self.monotonic_cst is None:
            return None
        signs = np.array(monotone_signs(self.monotonic_cst, self.columns_, ("number",)))[self.sources_]
        ends = np.cumsum([column.width for column in self.columns_])
        codes = [column.code for column in self.columns_]
        signs[[end - 1 for end, code in zip(ends, codes, strict=True) if code and code.has_missing]] = 0
        return signs

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

    def _check_parameters(self) -> None:
        check_choice(vars(self), "numeric", ("linear", "spline"))
        for name, least in (("n_knots", 3), ("min_frequency", 1), ("max_levels", 1)):
            check_number(vars(self), name, least=least, integer=True)
        if not (isinstance(self.sparse_output, (bool, np.bool_)) or self.sparse_output == "auto"):
            raise ValueError(f"sparse_output must be True, False or 'auto'; got {self.sparse_output!r}.")
        if not isinstance(self.strict, (bool, np.bool_)):
            raise ValueError(f"strict must be True or False; got {self.strict!r}.")
        if np.dtype(self.dtype) not in (np.float64, np.float32):
            raise ValueError(f"dtype must be float64 or float32; got {self.dtype!r}.")

    def _input_names(self) -> list[str]:
        names = getattr(self, "feature_names_in_", range(self.n_features_in_))
        return [name if isinstance(name, str) else f"x{name}" for name in names]

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


def output_sources(columns: Sequence[TableColumn]) -> Ints:
    """Return the number of the input column behind every output column."""
    return np.repeat(np.arange(len(columns)), [column.width for column in columns])
