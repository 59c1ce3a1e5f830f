"""Exclusivity and relaxed exclusivity, Definitions 1 and 2 and the identities below them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra.numpy import arrays

from exclusivity.objective.objective import exclusivity, relaxed_exclusivity

entries = st.one_of(st.just(0.0), st.floats(-1e3, 1e3), st.sampled_from([1e-200, -1e-200, 5e-324]))
lengths = st.integers(1, 8)
vectors = lengths.flatmap(lambda n: arrays(float, n, elements=entries))
pairs = lengths.flatmap(lambda n: st.tuples(*[arrays(float, n, elements=entries)] * 2))


@given(u=vectors)
@settings(max_examples=100, deadline=None)
def test_identities_with_ones_and_with_itself(u):
    ones = np.ones(len(u))
    assert exclusivity(u, ones) == exclusivity(u, u) == sum(x != 0 for x in u.tolist())
    assert relaxed_exclusivity(u, ones) == pytest.approx(sum(abs(x) for x in u.tolist()), rel=1e-14)
    assert relaxed_exclusivity(u, u) == pytest.approx(sum(x * x for x in u.tolist()), rel=1e-14)


@given(pair=pairs)
@settings(max_examples=100, deadline=None)
def test_definitions_and_symmetry(pair):
    u, v = pair
    shared = [(abs(a), abs(b)) for a, b in zip(u.tolist(), v.tolist(), strict=True)]
    assert exclusivity(u, v) == exclusivity(v, u) == sum(a > 0 and b > 0 for a, b in shared)
    expected = sum(a * b for a, b in shared)
    assert relaxed_exclusivity(u, v) == pytest.approx(expected, rel=1e-14)
    assert relaxed_exclusivity(v, u) == pytest.approx(expected, rel=1e-14)


def test_tiny_entries_count_although_their_product_underflows():
    assert exclusivity([1e-200, 1.0], [1e-200, 0.0]) == 1


def test_disjoint_supports_share_nothing():
    assert exclusivity([1, 0, -2, 0], [0, 3, 0, 0]) == 0
    assert relaxed_exclusivity([1, 0, -2, 0], [0, 3, 0, 0]) == 0.0
    assert type(exclusivity([1], [1])) is int
    assert type(relaxed_exclusivity([1], [1])) is float


@pytest.mark.parametrize("measure", [exclusivity, relaxed_exclusivity])
@pytest.mark.parametrize(
    ("u", "v"), [([1, 2], [1, 2, 3]), ([[1, 2]], [[1, 2]]), (1.0, 2.0), ([1.0], 1.0), ([[1.0]], [1.0])]
)
def test_anything_but_two_vectors_of_one_length_is_refused(measure, u, v):
    with pytest.raises(ValueError, match="two vectors of one length"):
        measure(u, v)
