"""The input column behind every column of a transformed table, and labels for ``feature_groups``.

A certificate speaks about the columns that the model sees. It carries over to the columns of the raw table
only if every transformed column depends on ONE raw column: then a broken input stays within its own columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import getattr_static
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from sklearn import feature_selection as selection, preprocessing
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.utils.validation import check_is_fitted

from exclusivity._typing import Ints
from exclusivity.tables._encoder import TableEncoder

_ONE_TO_ONE = (
    *(preprocessing.StandardScaler, preprocessing.MinMaxScaler, preprocessing.MaxAbsScaler),
    *(preprocessing.RobustScaler, preprocessing.QuantileTransformer, preprocessing.PowerTransformer),
    *(preprocessing.Binarizer, preprocessing.OrdinalEncoder),
)
_SELECTORS = (
    *(selection.RFE, selection.RFECV, selection.SelectFromModel, selection.SequentialFeatureSelector),
    *(selection.SelectFdr, selection.SelectFpr, selection.SelectFwe, selection.SelectKBest),
    *(selection.SelectPercentile, selection.GenericUnivariateSelect, selection.VarianceThreshold),
)
_FROM_ALL = "makes every new column from all old ones"
_FROM_ROW = "fills a missing value from the other columns of the row"
_REASONS = {
    "Normalizer": "divides every value by the length of the whole row",
    **dict.fromkeys(
        ["PCA", "IncrementalPCA", "KernelPCA", "TruncatedSVD", "Nystroem", "RBFSampler"], _FROM_ALL
    ),
    "PolynomialFeatures": "multiplies columns with each other, or adds a constant one",
    "FunctionTransformer": "may do anything to a row, unless its func is a numpy ufunc (np.log1p)",
    **dict.fromkeys(["KNNImputer", "IterativeImputer"], _FROM_ROW),
}


def column_sources(transformer: BaseEstimator) -> Ints:
    """Return the number of the input column behind every output column of a fitted transformer.

    Parameters
    ----------
    transformer : fitted transformer
        A TableEncoder, scalers, column-wise encoders, splines, bins and imputers, feature selectors, and a
        ColumnTransformer, FeatureUnion or Pipeline of these.

    Returns
    -------
    sources : ndarray of int, shape (n_columns_out,)

    Raises
    ------
    ValueError
        If an output column may depend on several input columns.

    Examples
    --------
    >>> from sklearn.preprocessing import OneHotEncoder
    >>> column_sources(OneHotEncoder().fit([["red", "s"], ["blue", "m"], ["red", "l"]]))
    array([0, 0, 1, 1, 1])
    """
    check_is_fitted(transformer)
    for kinds, read in _READERS:
        if is_exactly(transformer, kinds):
            return read(transformer)
    raise _mixing(transformer)


def is_exactly(estimator: object, kinds: tuple[type, ...]) -> bool:
    """Return whether an estimator is of one of these classes and does what the class does.

    A derived class may override any step of a computation, and an attribute of the object itself may hide a
    method: what is known about the class says nothing about these.
    """
    return type(estimator) in kinds and not hides_methods(estimator)


def hides_methods(estimator: object) -> bool:
    """Return whether an attribute of the object stands in front of a method or property of its class."""
    kind = type(estimator)
    return any(hasattr(getattr_static(kind, name, None), "__get__") for name in vars(estimator))


def learns_by_columns(transformer: BaseEstimator) -> bool:
    """Return whether a transformer makes one column of each, and learned it from that column alone.

    Of more rows than ``subsample`` a QuantileTransformer draws some. In sparse rows it does so column by
    column from one stream of random numbers, so that the draws depend on the columns before; whether rows
    were sparse, or that many, a fitted one does not tell.
    """
    if is_exactly(transformer, (preprocessing.QuantileTransformer,)):
        return transformer.subsample is None
    return is_exactly(transformer, _ONE_TO_ONE)


def _mixing(transformer: BaseEstimator) -> ValueError:
    name = type(transformer).__name__
    bases = type(transformer).__mro__[1:]
    reason = _REASONS.get(name, "is not known to keep columns apart")
    if any(base in kinds for kinds, _ in _READERS for base in bases):
        reason = "is derived from a known class and may override what that does"
    elif hides_methods(transformer):
        reason = "has attributes in front of its methods, which may do anything to a row"
    return ValueError(
        f"{name} {reason}: a broken input column could reach every member, so that a certificate would be "
        "void. Scalers, splines, bins, column-wise encoders and imputers, and feature selectors keep it "
        "valid; certify the model behind this step on its own, model.certify(transformed), if only "
        "ITS columns can break."
    )


def join_groups(groups: Ints, sources: Ints) -> Ints:
    """Return the finest grouping that keeps together columns of one group and columns of one source.

    Examples
    --------
    >>> join_groups(np.array([0, 1, 2, 2]), np.array([0, 0, 1, 2]))
    array([0, 0, 1, 1])
    """
    # A graph of groups and sources with an edge for each column.
    ends = groups, int(groups.max()) + 1 + sources
    n_nodes = int(ends[1].max()) + 1
    graph = sparse.csr_array((np.ones(len(groups)), ends), shape=(n_nodes, n_nodes))
    components = connected_components(graph, directed=False)[1]
    return np.asarray(np.unique(components[groups], return_inverse=True)[1], dtype=np.intp)


def _identity(transformer: BaseEstimator) -> Ints:
    return np.arange(transformer.n_features_in_)


def _imputed(transformer: BaseEstimator) -> Ints:
    # Columns without any value are left out, unless asked to stay; indicators of missing values come last.
    statistics = transformer.statistics_
    is_empty = np.asarray(statistics != statistics, dtype=bool)  # noqa: PLR0124 -- NaN of any type
    kept = np.flatnonzero(~is_empty | transformer.keep_empty_features)
    if not transformer.add_indicator:
        return kept
    return np.concatenate([kept, transformer.indicator_.features_]).astype(np.intp)


def _repeated(counts: Sequence[int]) -> Ints:
    return np.repeat(np.arange(len(counts)), counts)


def _function(transformer: BaseEstimator) -> Ints:
    # None is what a ColumnTransformer makes of "passthrough"; a ufunc of one argument minds no neighbour.
    func = transformer.func
    is_elementwise = isinstance(func, np.ufunc) and (func.nin, func.nout, func.signature) == (1, 1, None)
    if func is None or (is_elementwise and not transformer.kw_args):
        return _identity(transformer)
    raise _mixing(transformer)


def _in_equal_parts(transformer: BaseEstimator) -> Ints:
    # As many columns of each input, one input after the other.
    n_in = transformer.n_features_in_
    return _repeated([len(transformer.get_feature_names_out()) // n_in] * n_in)


def _powers(transformer: BaseEstimator) -> Ints:
    is_used = transformer.powers_ > 0
    if np.any(is_used.sum(axis=1) != 1):
        raise _mixing(transformer)
    return np.asarray(is_used.argmax(axis=1))


def _binned(transformer: BaseEstimator) -> Ints:
    if transformer.encode == "ordinal":
        return _identity(transformer)
    return _repeated(transformer.n_bins_)


def _pipeline(pipeline: BaseEstimator) -> Ints:
    sources: Ints | None = None
    for step in (step for _, step in pipeline.steps if step is not None and step != "passthrough"):
        below = column_sources(step)
        if sources is not None and len(sources) != getattr(step, "n_features_in_", len(sources)):
            raise ValueError(
                f"{type(step).__name__} was fitted to {step.n_features_in_} columns, and the steps before it "
                f"make {len(sources)}: fit the pipeline as a whole."
            )
        sources = below if sources is None else sources[below]
    if sources is None:
        raise ValueError("This Pipeline has no step that tells how many columns there are.")
    return sources


def _union(transformer: BaseEstimator) -> Ints:
    parts = [step for _, step in transformer.transformer_list if step != "drop"]
    if not parts:
        raise ValueError("This FeatureUnion has no part that makes columns.")
    return np.concatenate([column_sources(step) for step in parts])


def _columns(transformer: BaseEstimator) -> Ints:
    blocks = transformer.output_indices_
    sources = np.empty(max(block.stop for block in blocks.values()), dtype=np.intp)
    for name, step, _ in transformer.transformers_:
        block = blocks[name]
        if block.stop > block.start:
            chosen = np.atleast_1d(transformer._transformer_to_input_indices[name])
            sources[block] = chosen if isinstance(step, str) else chosen[column_sources(step)]
    return sources


_READERS: tuple[tuple[tuple[Any, ...], Callable[[Any], Ints]], ...] = (
    ((Pipeline,), _pipeline),
    ((ColumnTransformer,), _columns),
    ((FeatureUnion,), _union),
    ((TableEncoder,), lambda encoder: encoder.sources_),
    (_ONE_TO_ONE, _identity),
    ((SimpleImputer,), _imputed),
    ((MissingIndicator,), lambda indicator: np.asarray(indicator.features_, dtype=np.intp)),
    ((preprocessing.OneHotEncoder,), lambda encoder: _repeated(encoder._n_features_outs)),
    ((preprocessing.KBinsDiscretizer,), _binned),
    ((preprocessing.SplineTransformer, preprocessing.TargetEncoder), _in_equal_parts),
    ((preprocessing.PolynomialFeatures,), _powers),
    ((preprocessing.FunctionTransformer,), _function),
    (_SELECTORS, lambda selector: np.asarray(selector.get_support(indices=True), dtype=np.intp)),
)


def feature_groups_from_transformer(transformer: BaseEstimator) -> list[Any]:
    """Return one label per output column of a fitted transformer: the name or number of its input column.

    Parameters
    ----------
    transformer : fitted transformer
        A ColumnTransformer, OneHotEncoder, scaler, selector, or a Pipeline of these.

    Returns
    -------
    labels : list
        Names of input columns where the transformer has seen names, else their numbers.

    Examples
    --------
    >>> from sklearn.compose import make_column_transformer
    >>> from sklearn.preprocessing import OneHotEncoder, StandardScaler
    >>> rows = [["red", 1.5], ["blue", 2.5], ["green", 0.5]]
    >>> columns = make_column_transformer((OneHotEncoder(), [0]), (StandardScaler(), [1]))
    >>> feature_groups_from_transformer(columns.fit(rows))
    [0, 0, 0, 1]
    """
    sources = column_sources(transformer)
    names = getattr(transformer, "feature_names_in_", None)
    return [int(source) if names is None else str(names[source]) for source in sources]
