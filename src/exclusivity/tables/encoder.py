"""TableEncoder: tables as they come, column by column, as numbers for linear models."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from exclusivity.classifier import group_codes
from exclusivity.problem.arrays import Ints, Matrix
from exclusivity.tables.assembling import assemble_dense, assemble_sparse, sparse_is_better
from exclusivity.tables.codes import Code, Ready
from exclusivity.tables.columns import TableColumn, learn_column, learned, output_names, output_sources
from exclusivity.tables.frames import Column, Table, as_array, column_of, maker_of
from exclusivity.tables.grouped import grouped
from exclusivity.tables.summaries import Rules, Summary
from exclusivity.tables.values import CellError

_NUMERIC = ("linear", "spline")
_DTYPES = (np.float64, np.float32)


@contextmanager
def _named(name: str) -> Iterator[None]:
    """Say which column it is that holds what it cannot."""
    try:
        yield
    except CellError as error:
        raise ValueError(f"Column {name!r}: {error}.") from error


def _ready(learned: TableColumn, column: Column) -> Ready:
    """A column that its code has looked at."""
    assert learned.code is not None  # noqa: S101 -- it has a width
    with _named(learned.name):
        return learned.code.ready(column)


class TableEncoder(TransformerMixin, BaseEstimator):
    """Encode the columns of a table, each on its own, as features of a linear model.

    Numbers become themselves, standardised, and with ``numeric="spline"`` a few hat functions as well, so
    that a linear model on top is a piecewise linear curve of each column. Categories, texts and booleans
    become one column per level, dates their parts. A gap becomes a neutral value and, where the
    training rows had gaps in that column, an output column that says so.

    Nothing is computed across columns, and nothing leaves its bounds, whatever a cell holds: a broken input
    column stays within its own output columns. An :class:`~exclusivity.ERMClassifier` behind this encoder
    in a pipeline takes those as its ``feature_groups`` without being told, and
    :func:`exclusivity.robustness.certify` speaks of input columns.

    Parameters
    ----------
    numeric : {"linear", "spline"}, default="spline"
        What becomes of numbers: themselves, or themselves and a piecewise linear curve.
    n_knots : int, default=6
        Where such a curve may bend: at so many quantiles of the training rows, at least 3. A column of
        fewer distinct values bends at each of them.
    categorical : sequence of str or int, default=None
        Columns (by name, or by number) that are categories though they hold numbers or dates.
    min_frequency : int, default=2
        A level that fewer training rows have shares one output column with other such levels.
    max_levels : int, default=64
        So do all levels but the most frequent ones, so many of which get columns of their own.
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
        What was learned of each input column: kind, levels, gaps, and why it is left out, if it is.
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
    In ``transform`` a level that the training rows did not have gives zeros; a number outside of the range
    seen in training, be it infinite, counts as the nearest end of that range. A gap in a column without gaps
    in training gives the neutral value alone: the median of numbers, zeros for a level. Columns without any
    information (constants, texts that are different in every row) are left out. Text in a column
    of numbers is an error, unless it is a number itself.

    How ``transform`` reads a cell depends on the training rows and on that cell alone, whatever container it
    comes in. Levels are texts: 3, 3.0 and "3" are one level, True is "True". Where the training rows had only
    one of True and 1, each counts as the other; so do False and 0.

    Standardised numbers have deviation 1; hats and levels are between 0 and 1, and so all columns are of a
    size that suits an SVM.

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

    def fit(self, X: Table, y: object = None) -> Self:
        """Learn kinds, ranges, knots and levels of the columns.

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
        for _ in self._learned(X):
            pass
        return self

    def fit_transform(self, X: Table, y: object = None) -> Matrix:
        """Learn from rows and encode them; each column is looked at once.

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
        ready = [_ready(learned, column) for learned, column in self._learned(X) if learned.width]
        return self._assembled(ready)

    def transform(self, X: Table) -> Matrix:
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
        X = self._validated(X, reset=False)
        return self._assembled(
            [_ready(each, column_of(X, place)) for place, each in enumerate(self.columns_) if each.width]
        )

    def _learned(self, X: Table) -> Iterator[tuple[TableColumn, Column]]:
        """Learn column by column; whoever asks for them all has a fitted encoder."""
        rules = self._rules()
        X = self._validated(X, reset=True)
        names = self._input_names()
        chosen = self._chosen(names)
        columns = []
        for place, name in enumerate(names):
            column = column_of(X, place)
            with _named(name):
                columns.append(learn_column(name, column, rules, is_category=place in chosen))
            yield columns[-1], column
        self._keep(columns, X.shape[0])

    def _keep(self, columns: list[TableColumn], n_rows: int) -> None:
        """What was learned of all columns of so many rows."""
        if not any(column.width for column in columns):
            raise ValueError(
                f"No column of X (n_samples = {n_rows}) tells rows apart; the first, {columns[0].name!r}, is "
                f"left out because {columns[0].left_out}."
            )
        self._groups()  # labels may not fit the columns
        self.columns_, self.sources_ = columns, output_sources(columns)
        sparse = self.sparse_output
        codes, itemsize = self._codes(), np.dtype(self.dtype).itemsize
        self.sparse_output_ = sparse_is_better(codes, n_rows, itemsize) if sparse == "auto" else bool(sparse)

    def _assembled(self, ready: list[Ready]) -> Matrix:
        assemble = assemble_sparse if self.sparse_output_ else assemble_dense
        groups = self._groups()[self.sources_]
        return grouped(assemble(self._codes(), ready, len(ready[0]), self.dtype), groups)

    def _groups(self) -> Ints:
        """The number of the group of every input column."""
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
        """Names of the output columns.

        Parameters
        ----------
        input_features : sequence of str, default=None
            Names of the input columns; None: those seen in ``fit``, or x0, x1, ...

        Returns
        -------
        names : ndarray of str
        """
        check_is_fitted(self)
        names = self._input_names() if input_features is None else [str(name) for name in input_features]
        seen = getattr(self, "feature_names_in_", None)
        if seen is not None and list(seen) != names:
            raise ValueError("input_features is not equal to feature_names_in_")
        if len(names) != self.n_features_in_:
            raise ValueError(
                f"input_features should have length equal to number of features ({self.n_features_in_}), got "
                f"{len(names)}"
            )
        return np.array(output_names(self.columns_, names), dtype=object)

    def _validated(self, X: Table, *, reset: bool) -> Any:
        """The rows as a frame or an array, of the right width; what is in them is looked at by columns."""
        if maker_of(X) is None:
            X = X if hasattr(X, "dtype") else as_array(X)
            return validate_data(self, X, reset=reset, dtype=None, ensure_all_finite=False)
        validate_data(self, X, reset=reset, skip_check_array=True)
        for what, count in zip(("sample(s)", "feature(s)"), X.shape, strict=True):
            if not count:
                raise ValueError(
                    f"Found a table with 0 {what} (shape={X.shape}) while a minimum of 1 is required."
                )
        return X

    @property
    def bytes_per_row(self) -> int:
        """Memory that an encoded row takes."""
        check_is_fitted(self)
        itemsize = int(np.dtype(self.dtype).itemsize)
        if not self.sparse_output_:
            return itemsize * len(self.sources_)
        return sum(code.slots for code in self._codes()) * (itemsize + 4)

    def _rules(self) -> Rules:
        if self.numeric not in _NUMERIC:
            raise ValueError(f"numeric must be one of {_NUMERIC}; got {self.numeric!r}.")
        for name, least in (("n_knots", 3), ("min_frequency", 1), ("max_levels", 1)):
            value = getattr(self, name)
            if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < least:
                raise ValueError(f"{name} must be an integer of at least {least}; got {value!r}.")
        if not (isinstance(self.sparse_output, (bool, np.bool_)) or self.sparse_output == "auto"):
            raise ValueError(f"sparse_output must be True, False or 'auto'; got {self.sparse_output!r}.")
        if np.dtype(self.dtype) not in _DTYPES:
            raise ValueError(f"dtype must be float64 or float32; got {self.dtype!r}.")
        n_knots = int(self.n_knots) if self.numeric == "spline" else 0
        return Rules(n_knots, int(self.min_frequency), int(self.max_levels))

    def _input_names(self) -> list[str]:
        names = getattr(self, "feature_names_in_", None)
        return [f"x{j}" for j in range(self.n_features_in_)] if names is None else [str(n) for n in names]

    def _chosen(self, names: list[str]) -> set[int]:
        """Numbers of the columns that are categories by decree."""
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

    def _codes(self) -> list[Code]:
        return [column.code for column in self.columns_ if column.code is not None]

    @property
    def _n_features_out(self) -> int:
        return len(self.sources_)

    def __sklearn_tags__(self) -> Tags:
        """Gaps, texts and categories are welcome."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.transformer_tags.preserves_dtype = []
        return tags


def learn_from_summaries(
    encoder: TableEncoder, kinds: Sequence[str], summaries: Sequence[Summary]
) -> TableEncoder:
    """Fit an encoder to columns that others have looked at, part by part; they have no names.

    Parameters
    ----------
    encoder : TableEncoder
        Not fitted.
    kinds : sequence of {"number", "category", "date"}
        What the columns hold.
    summaries : sequence of Summary
        Of all rows, in the order of the columns.
    """
    encoder.n_features_in_ = len(kinds)
    rules = encoder._rules()
    names = encoder._input_names()
    columns = [learned(*each, rules) for each in zip(names, kinds, summaries, strict=True)]
    encoder._keep(columns, summaries[0].n_rows)
    return encoder
