"""Labels for ``feature_groups``: which transformed columns come from the same source."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from exclusivity.robustness.sources import column_sources

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator


def feature_groups_from_transformer(transformer: BaseEstimator) -> list[Any]:
    """One label per output column of a fitted transformer: the name or the number of its input column.

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


def feature_groups_from_names(names: Iterable[str], sources: Iterable[str] | None = None) -> list[str]:
    """One label per column from the names that ColumnTransformer and OneHotEncoder give to their output.

    A name is ``transformer__column`` or ``transformer__column_category``, with or without the first part. Use
    :func:`feature_groups_from_transformer` where the fitted transformer is at hand: it does not have to read
    names.

    Parameters
    ----------
    names : iterable of str
        Output names (``get_feature_names_out()``, or the columns of a transformed DataFrame).
    sources : iterable of str, default=None
        The names of the raw columns. Each output name belongs to the longest source that it starts with.
        None: the source is guessed, as what stands before the last underscore where several names of one
        transformer share that. The guess may put ``blood_pressure`` and ``blood_sugar`` together; a
        certificate stays valid then and counts them as one.

    Returns
    -------
    labels : list of str

    Examples
    --------
    >>> names = ["encoder__colour_red", "encoder__colour_blue", "scaler__age"]
    >>> feature_groups_from_names(names)
    ['colour', 'colour', 'age']
    >>> feature_groups_from_names(["size_s", "size_m", "size_of_shoe"], sources=["size", "size_of_shoe"])
    ['size', 'size', 'size_of_shoe']
    """
    names = list(names)
    if sources is not None:
        known = sorted(sources, key=len, reverse=True)
        return [_source_of(name, known) for name in names]
    stems = [name.rsplit("_", 1)[0] if "_" in _bare(name) else name for name in names]
    shared = Counter(stems)
    return [_bare(stem if shared[stem] > 1 else name) for name, stem in zip(names, stems, strict=True)]


def _source_of(name: str, known: list[str]) -> str:
    for text in (name, _bare(name)):
        for source in known:
            if text == source or text.startswith(f"{source}_"):
                return source
    raise ValueError(f"Column {name!r} does not start with any of the sources {sorted(known)}.")


def _bare(name: str) -> str:
    return name.split("__", 1)[1] if "__" in name else name
