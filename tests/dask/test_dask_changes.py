"""Rows that are not the same when they are computed again, and labels that are missing."""

import dask.array as da
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import sparse

from dask import delayed
from exclusivity.dask import ERMClassifier
from exclusivity.dask._rows import checked_block, encoded_block

N_ROWS, WIDTH = 130, 3


def table(kind=np.float64):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(N_ROWS, WIDTH)).astype(kind)
    return X, np.where(X[:, 0] + rng.normal(size=N_ROWS) > 0, "yes", "no"), rng.integers(1, 4, N_ROWS) + 0.0


class Source:
    """Blocks of which the second is another one from its ``nth`` computation on."""

    def __init__(self, nth, change):
        self.parts, self.nth, self.change, self.n_made = table(), nth, change, 0

    def make(self, number):
        self.n_made += number == 1
        X, y, weights = (part.copy() for part in self.parts)
        return self.change(X, y, weights) if number == 1 and self.n_made >= self.nth else (X, y, weights)

    def arrays(self):
        whole = [delayed(self.make, pure=False)(number) for number in range(2)]
        shapes = [(N_ROWS, WIDTH), (N_ROWS,), (N_ROWS,)]
        return [
            da.concatenate(
                [da.from_delayed(one[at], shape, meta=np.empty((0,) * len(shape))) for one in whole]
            )
            for at, shape in enumerate(shapes)
        ]


def other_rows(X, y, weights):
    return X + 1, y, weights


def one_number(X, y, weights):
    X[17, 1] = np.nextafter(X[17, 1], 9)
    return X, y, weights


def one_label(X, y, weights):
    y[17] = "no" if y[17] == "yes" else "yes"
    return X, y, weights


def a_new_class(X, y, weights):
    y[17] = "zzz"
    return X, y, weights


def other_weights(X, y, weights):
    return X, y, weights[::-1]


def another_order(X, y, weights):
    order = np.random.default_rng(0).permutation(N_ROWS)
    return X[order], y[order], weights[order]


CHANGES = [other_rows, one_number, one_label, a_new_class, other_weights, another_order]


@pytest.mark.parametrize("nth", [2, 3])
@pytest.mark.parametrize("change", CHANGES)
def test_a_block_that_changes_is_named(local, change, nth):
    source = Source(nth, change)
    with pytest.raises(RuntimeError, match=r"block 1 of the rows changed .* had other values\. Its source"):
        ERMClassifier(3, persist=False).fit(*source.arrays())


def test_the_number_of_rows_is_named(local):
    source = Source(2, lambda *parts: tuple(part[:50] for part in parts))
    with pytest.raises(RuntimeError, match="it had 50 rows instead of 130"):
        ERMClassifier(3, persist=False).fit(*source.arrays())


def test_rows_that_are_kept_may_come_from_a_source_that_changes(local):
    source = Source(2, other_rows)
    kept = ERMClassifier(3, persist=True, tol=1e-10).fit(*source.arrays())
    calm = ERMClassifier(3, persist=False, tol=1e-10).fit(*Source(99, other_rows).arrays())
    np.testing.assert_allclose(kept.objective_, calm.objective_, rtol=1e-9)


def test_a_source_at_rest_is_asked_again_and_again(local):
    source = Source(99, other_rows)
    assert ERMClassifier(3, persist=False).fit(*source.arrays()).converged_.all()
    assert source.n_made > 2


@pytest.mark.parametrize("form", [np.asarray, np.asfortranarray, sparse.csr_matrix])
@pytest.mark.parametrize("kind", [np.float64, np.float32])
@settings(max_examples=20, deadline=None)
@given(row=st.integers(0, N_ROWS - 1), column=st.integers(0, WIDTH - 1), step=st.integers(-3, 3))
def test_every_number_counts(form, kind, row, column, step):
    X, y, weights = table(kind)
    before = checked_block(form(X), y, weights).fingerprint
    X.view(f"i{X.itemsize}")[row, column] += step
    assert (checked_block(form(X), y, weights).fingerprint == before) == (step == 0)


@pytest.mark.parametrize("labels", [str, object])
@settings(max_examples=20, deadline=None)
@given(row=st.integers(0, N_ROWS - 1), label=st.sampled_from(["yes", "no", "maybe"]))
def test_every_label_counts(labels, row, label):
    X, y, weights = table()
    y = y.astype("U5").astype(labels)
    before = checked_block(X, y, weights).fingerprint
    is_same = y[row] == label
    y[row] = label
    assert (checked_block(X, y, weights).fingerprint == before) == is_same


def test_the_layout_of_the_same_numbers_does_not_count():
    X, y, weights = table()
    wide = np.zeros((N_ROWS, 2 * WIDTH))
    wide[:, ::2] = X
    found = {checked_block(form, y, weights).fingerprint for form in (X, np.asfortranarray(X), wide[:, ::2])}
    assert len(found) == 1


def test_rows_of_weight_zero_belong_to_the_fingerprint():
    X, y, weights = table()
    weights[:] = 0
    block = checked_block(X, y, weights)
    assert len(block.y) == 0
    assert block.fingerprint.n_rows == N_ROWS
    encoded = encoded_block(block, np.array(["no", "yes"]), 0, block.fingerprint)
    assert len(encoded.codes) == 0


@pytest.mark.parametrize("kind", ["string[pyarrow]", "string[python]", "category", "boolean", "object"])
def test_missing_labels_of_a_series(local, kind):
    pandas, frames = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    X, y, _ = table()
    if kind.endswith("[pyarrow]"):
        pytest.importorskip("pyarrow")
    labels = pandas.Series(y == "yes" if kind == "boolean" else y).astype(kind)
    labels[5] = None
    parts = [
        frames.from_pandas(pandas.DataFrame(X).add_prefix("x"), npartitions=2),
        frames.from_pandas(labels, npartitions=2),
    ]
    found = r"\." if kind == "boolean" else ": the label of row 5 of a block is missing"  # numbers, to them
    with pytest.raises(ValueError, match="Input y contains NaN" + found):
        ERMClassifier(3).fit(*parts)
