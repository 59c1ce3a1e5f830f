"""Columns that name rows, told from all rows and from blocks that add up."""

from functools import reduce
from operator import add

import numpy as np
import pytest
from scipy import sparse

from exclusivity.tables.identifiers import MOST_KEPT, RowNames

RNG = np.random.default_rng(0)
N = 3 * MOST_KEPT
COLUMNS = {
    "numbers of rows": (np.arange(N), True),
    "the same shuffled": (RNG.permutation(N) * 7 - 1000, True),
    "each twice": (np.arange(N) // 2, False),
    "each twice, far apart": (np.arange(N) % (N // 2), False),
    "measurements": (np.arange(N) + 0.5, False),
    "one of them no whole number": (np.arange(N) + 0.5 * (np.arange(N) == N - 1), False),
    "always the same": (np.ones(N), False),
}
X = np.column_stack([values for values, _ in COLUMNS.values()]).astype(float)
EXPECTED = [place for place, (_, names) in enumerate(COLUMNS.values()) if names]


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix, sparse.csr_array])
@pytest.mark.parametrize("n_blocks", [1, 2, 7])
def test_blocks_say_what_all_rows_say(form, n_blocks):
    blocks = [RowNames.of(form(block)) for block in np.array_split(X, n_blocks)]
    assert reduce(add, blocks).columns == EXPECTED


def test_little_is_kept():
    found = RowNames.of(X) + RowNames.of(X + N * 7)
    assert [len(values) for values in found.kept.values()] == [MOST_KEPT] * len(EXPECTED)


def test_columns_with_zeros_name_no_rows():
    """But one zero is a number like others."""
    rows = np.zeros((30, 3))
    rows[:, 0] = np.arange(30)
    rows[:15, 1] = np.arange(15)
    assert RowNames.of(sparse.csr_matrix(rows)).columns == [0]


def test_no_rows():
    assert RowNames.of(np.empty((0, 2))) is None
