"""The products of DesignMatrix against plain numpy on a float64 copy of the matrix."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from exclusivity.rows import design as design_module
from exclusivity.rows.design import DesignMatrix

# All sums have at most 400 terms of size about one and are done in float64.
TIGHT = {"rtol": 1e-12, "atol": 1e-12}
SHAPES = [(300, 60), (75, 400), (5, 3), (1, 1)]  # more rows, more columns than one block; less than one


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """So that small matrices consist of several blocks, however the size of a block is tuned."""
    monkeypatch.setattr(design_module, "_BLOCK_NUMBERS", 1 << 13)
    monkeypatch.setattr(design_module, "_MIN_BLOCK_ROWS", 64)


def csr(dense, index_dtype=np.int32, container=sparse.csr_array):
    matrix = container(dense)
    matrix.indices, matrix.indptr = matrix.indices.astype(index_dtype), matrix.indptr.astype(index_dtype)
    return matrix


KINDS = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "strided": lambda dense: np.repeat(dense, 2, axis=1)[:, ::2],
    "csr_array int32": csr,
    "csr_array int64": lambda dense: csr(dense, np.int64),
    "csr_matrix": lambda dense: csr(dense, container=sparse.csr_matrix),
}


@pytest.fixture(params=SHAPES, ids=str)
def shape(request):
    return request.param


@pytest.fixture(params=[np.float64, np.float32], ids=["float64", "float32"])
def dtype(request):
    return request.param


@pytest.fixture(params=KINDS, ids=str)
def pair(request, shape, dtype):
    """(DesignMatrix, the same numbers as a dense float64 matrix)."""
    rng = np.random.default_rng(sum(shape))
    dense = (rng.normal(size=shape) + 0.5).astype(dtype)
    dense[rng.random(shape) < 0.6] = 0
    given = KINDS[request.param](dense)
    assert given.dtype == dtype
    if sparse.issparse(given):
        assert given.indices.dtype == (np.int64 if "int64" in request.param else np.int32)
    return DesignMatrix(given), dense.astype(float)


def random_weights(n):
    return np.random.default_rng(n).uniform(0.2, 3, n)


def test_shape_and_storage(pair, dtype):
    design, dense = pair
    assert (design.n_rows, design.n_features) == dense.shape
    assert design.X.dtype == dtype  # not widened as a whole
    assert design.is_sparse == sparse.issparse(design.X)


@pytest.mark.parametrize("n_columns", [0, 1, 7, 1000])
def test_blocks_cover_all_rows_once_and_in_order(pair, n_columns):
    design, dense = pair
    end = 0
    for rows, block in design.blocks(n_columns):
        assert rows.start == end
        end = rows.stop
        np.testing.assert_array_equal(block.toarray() if design.is_sparse else block, dense[rows])
    assert end == design.n_rows


def test_large_matrices_are_split(shape):
    """So that the tests above and below do put blocks together; the products have up to 300 columns."""
    assert (len(list(DesignMatrix(np.zeros(shape)).blocks(1))) > 1) == (shape in SHAPES[:2])
    assert (len(list(DesignMatrix(csr(np.ones(shape))).blocks(300))) > 1) == (shape in SHAPES[:2])


@pytest.mark.parametrize("columns", [(), (1,), (300,)], ids=["vector", "one column", "many columns"])
def test_products(pair, columns):
    design, dense = pair
    rng = np.random.default_rng(3)
    right, left = rng.normal(size=(dense.shape[1], *columns)), rng.normal(size=(dense.shape[0], *columns))
    forward, backward = design.times(right), design.transposed_times(left)
    assert forward.dtype == backward.dtype == np.float64
    np.testing.assert_allclose(forward, dense @ right, **TIGHT)
    np.testing.assert_allclose(backward, dense.T @ left, **TIGHT)


def test_row_scale(pair):
    design, dense = pair
    longest = np.linalg.norm(dense.astype(float), axis=1).max()
    np.testing.assert_array_equal(design.row_scale.columns, np.abs(dense).max(axis=0))
    most = longest if design.is_sparse else np.linalg.norm(np.abs(dense).max(axis=0).astype(float))
    assert longest * (1 - 1e-15) <= design.row_scale.length <= most * (1 + 1e-12)
    counts = np.count_nonzero(dense, axis=1) if design.is_sparse else np.array([dense.shape[1]])
    assert design.row_scale.n_terms == counts.max()


def test_mean(pair):
    design, dense = pair
    weights = random_weights(len(dense))
    expected = (weights[:, None] * dense).sum(axis=0) / weights.sum()
    np.testing.assert_allclose(design.mean(weights), expected, **TIGHT)


@pytest.mark.parametrize("centre", [True, False])
def test_gram(pair, centre):
    design, dense = pair
    weights = random_weights(len(dense))
    mean = design.mean(weights) if centre else np.zeros(dense.shape[1])
    gram = design.gram(weights, mean)
    assert gram.dtype == np.float64
    assert type(gram) is np.ndarray
    centred = dense - mean
    np.testing.assert_allclose(gram, centred.T @ (weights[:, None] * centred), **TIGHT)


@pytest.mark.parametrize("centre", [True, False])
def test_column_scatter(pair, centre):
    design, dense = pair
    weights = random_weights(len(dense))
    mean = design.mean(weights) if centre else np.zeros(dense.shape[1])
    scatter = design.column_scatter(weights, mean)
    assert scatter.dtype == np.float64
    np.testing.assert_allclose(scatter, weights @ (dense - mean) ** 2, **TIGHT)


@pytest.mark.parametrize("centre", [True, False])
def test_kernel(pair, centre):
    design, dense = pair
    mean = design.mean(random_weights(len(dense))) if centre else np.zeros(dense.shape[1])
    centred = dense - mean
    kernel = design.kernel(mean)
    assert kernel.dtype == np.float64
    assert type(kernel) is np.ndarray
    np.testing.assert_allclose(kernel, centred @ centred.T, **TIGHT)


def test_scatter_of_a_constant_sparse_column_is_not_negative():
    """sum x^2 - n mean^2 may round below zero; a square sum may not."""
    X = np.full((1000, 3), [0.1, 0.3, 1e3 / 3])
    weights = random_weights(1000)
    design = DesignMatrix(csr(X))
    scatter = design.column_scatter(weights, design.mean(weights))
    assert np.all(scatter >= 0)
    assert np.all(scatter <= 1e-12 * weights.sum() * X[0] ** 2)


@pytest.mark.parametrize("container", [sparse.csc_array, sparse.coo_array, sparse.csc_matrix])
def test_other_sparse_formats_are_refused(container):
    with pytest.raises(TypeError, match="must be CSR"):
        DesignMatrix(container(np.eye(3)))


@pytest.mark.parametrize(
    "X",
    [
        np.eye(3, dtype=object),
        np.eye(3, dtype=np.float16),
        np.eye(3, dtype=complex),
        np.ones(3),
        np.ones((2, 2, 2)),
        sparse.csr_array(np.eye(3, dtype=complex)),
    ],
    ids=["object", "float16", "complex", "1-d", "3-d", "sparse complex"],
)
def test_other_dtypes_and_dimensions_are_refused(X):
    with pytest.raises(TypeError, match="matrix of float32, float64, integers or booleans"):
        DesignMatrix(X)


def test_some_rows_are_taken_with_what_rounding_does_to_all(pair):
    design, dense = pair
    rows = np.arange(0, design.n_rows, 3)
    some = design.taken(rows)
    np.testing.assert_allclose(some.times(np.ones(some.n_features)), dense[rows].sum(axis=1), rtol=1e-13)
    assert some.row_scale is design.row_scale


def test_sparse_blocks_are_cut_once_by_stored_numbers_and_share_them():
    counts = np.repeat([200, 1], [50, 5000])  # a few long rows, many short ones
    indptr = np.append(0, np.cumsum(counts))
    X = sparse.csr_array((np.ones(indptr[-1]), np.arange(indptr[-1]) % 300, indptr), shape=(5050, 300))
    design = DesignMatrix(X)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(design_module, "_BLOCK_NUMBERS", 3000)
        blocks = list(design.blocks(0))
        again = list(design.blocks(0))
    assert len(blocks) == 5
    assert all(block.nnz <= 3300 for _, block in blocks)
    parts = [part for view in design._cuts.into(5) for part in (view.X, view.transposed)]
    assert all(np.shares_memory(part.data, X.data) for part in parts)
    assert all(np.shares_memory(part.indices, X.indices) for part in parts)
    assert all(one is other for (_, one), (_, other) in zip(blocks, again, strict=True))


@pytest.mark.parametrize("far", [0.0, 1e6])
def test_sparse_features_far_from_zero_are_found_without_a_dense_copy(far):
    rng = np.random.default_rng(0)
    dense = rng.normal(size=(40, 3)) * (rng.random((40, 3)) < 0.5)
    dense[:, 1] = rng.normal(size=40) + far
    centres = [DesignMatrix(X)._far_centre() for X in (dense, sparse.csr_array(dense))]
    np.testing.assert_array_equal(*centres)
    assert np.any(centres[0]) == (far > 0)
