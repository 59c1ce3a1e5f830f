"""Rows that can be made anywhere, the same on every machine: dense, one-hot, text-like, several classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Floats = NDArray[np.float64]

# Fourteen categorical variables with 123 values in all, as in the census data known as a9a.
CATEGORIES = (5, 8, 5, 16, 5, 7, 14, 6, 5, 2, 2, 2, 5, 41)
# The weight of a term falls as 1 / (rank + this): a few terms are everywhere, most are rare.
_ZIPF_OFFSET = 10.0


def overlapping_rows(n_rows: int, n_features: int, seed: int = 0) -> tuple[Floats, Floats]:
    """Gaussian rows of two classes that overlap: about one row in five on the wrong side.

    Examples
    --------
    >>> X, y = overlapping_rows(1000, 5)
    >>> X.shape, sorted(set(y.tolist()))
    ((1000, 5), [-1.0, 1.0])
    """
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, n_features))
    direction = rng.standard_normal(n_features) / np.sqrt(n_features)
    return X, np.where(X @ direction + 0.7 * rng.standard_normal(n_rows) + 0.3 > 0, 1.0, -1.0)


def one_hot_rows(n_rows: int, seed: int = 0) -> tuple[Any, Floats]:
    """0/1 features: one of the values of each of fourteen categorical variables, about a quarter positive.

    Examples
    --------
    >>> X, y = one_hot_rows(50)
    >>> X.shape, X.nnz, set(X.data.tolist())
    ((50, 123), 700, {1.0})
    """
    rng = np.random.default_rng(seed)
    columns, first = [], 0
    for size in CATEGORIES:
        shares = 1.0 / np.arange(1, size + 1)
        columns.append(first + rng.choice(size, n_rows, p=shares / shares.sum()))
        first += size
    indices = np.column_stack(columns).ravel().astype(np.int32)
    indptr = np.arange(0, len(indices) + 1, len(CATEGORIES), dtype=np.int32)
    X = sparse.csr_matrix((np.ones(len(indices)), indices, indptr), shape=(n_rows, first))
    scores = X @ rng.standard_normal(first) + 1.5 * rng.standard_normal(n_rows)
    return X, np.where(scores > np.quantile(scores, 0.76), 1.0, -1.0)


def text_rows(n_rows: int, n_terms: int, terms_per_row: int, seed: int = 0) -> tuple[Any, Floats]:
    """Rows of tf-idf weights of unit length over terms with Zipf-like frequencies.

    ``terms_per_row`` words are drawn for every row; repeated words count once, with a larger weight.

    Examples
    --------
    >>> X, y = text_rows(40, 500, 20)
    >>> bool(np.allclose(X.multiply(X).sum(axis=1), 1.0)), X.indices.dtype.name
    (True, 'int32')
    """
    rng = np.random.default_rng(seed)
    # The inverse of the distribution function of the density 1 / (rank + offset).
    spread = np.log((n_terms + _ZIPF_OFFSET) / _ZIPF_OFFSET)
    ranks = _ZIPF_OFFSET * (np.exp(rng.random(n_rows * terms_per_row) * spread) - 1)
    terms = rng.permutation(n_terms)[np.minimum(ranks.astype(np.int64), n_terms - 1)]
    rows = np.repeat(np.arange(n_rows), terms_per_row)
    counts = sparse.csr_matrix((np.ones(len(terms)), (rows, terms)), shape=(n_rows, n_terms))
    counts.sum_duplicates()
    documents = np.bincount(counts.indices, minlength=n_terms)
    weights = (1 + np.log(counts.data)) * np.log(1 + n_rows / (1.0 + documents[counts.indices]))
    lengths = np.sqrt(np.add.reduceat(weights**2, counts.indptr[:-1]))
    weights /= np.repeat(lengths, np.diff(counts.indptr))
    structure = (counts.indices.astype(np.int32), counts.indptr.astype(np.int32))
    X = sparse.csr_matrix((weights, *structure), shape=(n_rows, n_terms))
    scores = X @ rng.standard_normal(n_terms)
    scores /= scores.std()
    return X, np.where(scores + 0.5 * rng.standard_normal(n_rows) + 0.3 > 0, 1.0, -1.0)


def class_rows(n_rows: int, n_features: int, n_classes: int, seed: int = 0) -> tuple[Floats, Floats]:
    """Gaussian clouds around one centre per class, close enough to overlap.

    Examples
    --------
    >>> X, y = class_rows(200, 6, 4)
    >>> X.shape, np.unique(y).tolist()
    ((200, 6), [0.0, 1.0, 2.0, 3.0])
    """
    rng = np.random.default_rng(seed)
    centres = 2.0 * rng.standard_normal((n_classes, n_features)) / np.sqrt(n_features)
    y = rng.integers(n_classes, size=n_rows)
    return centres[y] + rng.standard_normal((n_rows, n_features)), y.astype(float)
