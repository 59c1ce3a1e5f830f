"""Labels for ``feature_groups``: which transformed columns come from the same source."""

from __future__ import annotations

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


def feature_groups_from_names(names: Iterable[str], sources: Iterable[str]) -> list[str]:
    """Return one label per column, by the names that encoders give to their output.

    A name is that of a raw column, or begins with it and an underscore (``colour_light_blue``); names of
    transformers may stand before (``encoder__colour_red``). Use :func:`feature_groups_from_transformer` where
    the fitted transformer is at hand: it does not have to read names, which are ambiguous.

    Parameters
    ----------
    names : iterable of str
        Output names: ``get_feature_names_out()``, the columns of a transformed DataFrame or of
        ``pandas.get_dummies``. Every column must have been made of one raw column.
    sources : iterable of str
        The names of all raw columns. Where a name may belong to several of them (``size_of_shoe_9`` to
        ``size`` and to ``size_of_shoe``), these get one label: a certificate then counts them as one, which
        is never too much.

    Returns
    -------
    labels : list of str
        For ``feature_groups``, also as a callable:
        ``functools.partial(feature_groups_from_names, sources=table.columns)``.

    Examples
    --------
    >>> names = ["encoder__colour_light_blue", "encoder__colour_red", "scaler__age"]
    >>> feature_groups_from_names(names, ["colour", "age"])
    ['colour', 'colour', 'age']
    >>> feature_groups_from_names(["size_s", "size_m", "size_of_shoe"], ["size", "size_of_shoe"])
    ['size', 'size', 'size']
    """
    known = list(sources)
    possible = [_possible_sources(name, known) for name in names]
    labels = list(range(len(known)))  # sources of one label are joined
    for several in (found for found in possible if len(found) > 1):
        joined = {labels[source] for source in several}
        labels = [min(joined) if label in joined else label for label in labels]
    return [known[labels[several[0]]] for several in possible]


def _possible_sources(name: str, known: list[str]) -> list[int]:
    """The numbers of all sources that a column of this name may come from."""
    parts = name.split("__")
    texts = ["__".join(parts[start:]) for start in range(len(parts))]
    found = [
        number
        for number, source in enumerate(known)
        if any(text == source or text.startswith(f"{source}_") for text in texts)
    ]
    if not found:
        raise ValueError(
            f"Column {name!r} does not start with any of the sources {sorted(known)}. Give the names of all "
            "raw columns, or use feature_groups_from_transformer."
        )
    return found
