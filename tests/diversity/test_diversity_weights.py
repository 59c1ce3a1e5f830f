"""Angles and exclusivities of weight vectors."""

from __future__ import annotations

import math
from functools import partial
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra.numpy import arrays

from exclusivity.diversity import (
    mean_over_pairs,
    mutual_angular,
    pairwise_weight_diversity,
)
from exclusivity.objective.objective import exclusivity, relaxed_exclusivity

pairwise_angle = partial(pairwise_weight_diversity, measure="angle")
pairwise_exclusivity = partial(pairwise_weight_diversity, measure="exclusivity")
pairwise_relaxed_exclusivity = partial(pairwise_weight_diversity, measure="relaxed_exclusivity")

MATRICES = [pairwise_angle, pairwise_exclusivity, pairwise_relaxed_exclusivity]
quick = settings(deadline=None, max_examples=40)
entries = st.one_of(st.just(0.0), st.integers(-4, 4).map(float), st.floats(-3, 3).map(lambda v: round(v, 3)))
shapes = st.tuples(st.integers(2, 5), st.integers(1, 6))
weight_arrays = shapes.flatmap(lambda shape: arrays(float, shape, elements=entries))


def angle_by_definition(u, v):
    lengths = math.sqrt(sum(a * a for a in u)) * math.sqrt(sum(b * b for b in v))
    if lengths == 0:
        return 0.0 if not (any(u) or any(v)) else math.pi / 2
    return math.acos(min(abs(sum(a * b for a, b in zip(u, v, strict=True))) / lengths, 1.0))


def off_diagonal_pairs(weights):
    return [(u.tolist(), v.tolist()) for u, v in combinations(weights, 2)]


# --- definitions --------------------------------------------------------------------------------------


@quick
@given(weights=weight_arrays)
def test_angles_follow_the_definition(weights):
    angles = pairwise_angle(weights)
    members = range(len(weights))
    for i, j in product(members, members):
        expected = angle_by_definition(weights[i].tolist(), weights[j].tolist())
        # The tolerance is the arc cosine's: it loses half of the digits near 1.
        assert angles[i, j] == pytest.approx(expected, abs=1e-7)
    np.testing.assert_array_equal(np.diag(angles), np.zeros(len(weights)))
    assert np.all((angles >= 0) & (angles <= math.pi / 2))


@quick
@given(weights=weight_arrays, g=st.floats(0, 5))
def test_mutual_angular_is_mean_minus_g_times_variance(weights, g):
    angles = [angle_by_definition(u, v) for u, v in off_diagonal_pairs(weights)]
    mean = sum(angles) / len(angles)
    variance = sum((angle - mean) ** 2 for angle in angles) / len(angles)
    assert mutual_angular(weights, g) == pytest.approx(mean - g * variance, abs=1e-6)
    assert -g * math.pi**2 / 16 - 1e-12 <= mutual_angular(weights, g) <= math.pi / 2


@quick
@given(weights=weight_arrays)
def test_exclusivities_are_those_of_the_problem(weights):
    hard, relaxed = pairwise_exclusivity(weights), pairwise_relaxed_exclusivity(weights)
    members = range(len(weights))
    for i, j in product(members, members):
        assert hard[i, j] == exclusivity(weights[i], weights[j])
        assert relaxed[i, j] == pytest.approx(relaxed_exclusivity(weights[i], weights[j]), rel=1e-14)
    pairs = off_diagonal_pairs(weights)
    shared = sum(sum(a != 0 and b != 0 for a, b in zip(u, v, strict=True)) for u, v in pairs)
    assert mean_over_pairs(hard) == pytest.approx(shared / len(pairs))


# --- properties ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("measure", MATRICES, ids=lambda measure: measure.keywords["measure"])
@quick
@given(weights=weight_arrays, seed=st.integers(0, 99))
def test_symmetry_signs_and_permutations(measure, weights, seed):
    rng = np.random.default_rng(seed)
    matrix = measure(weights)
    members, features = rng.permutation(len(weights)), rng.permutation(weights.shape[1])
    np.testing.assert_array_equal(matrix, matrix.T)
    np.testing.assert_array_equal(measure(-weights), matrix)
    np.testing.assert_allclose(measure(weights[members]), matrix[np.ix_(members, members)], atol=1e-15)
    np.testing.assert_allclose(measure(weights[:, features]), matrix, rtol=1e-13, atol=1e-14)


@quick
@given(weights=weight_arrays)
def test_equal_members_have_no_angle_and_share_all_they_use(weights):
    equal = np.repeat(weights[:1], 3, axis=0)
    assert mutual_angular(equal) == 0
    assert mean_over_pairs(pairwise_exclusivity(equal)) == np.count_nonzero(weights[0])
    squared_length = float(weights[0] @ weights[0])
    assert mean_over_pairs(pairwise_relaxed_exclusivity(equal)) == pytest.approx(squared_length)


def test_disjoint_members_are_orthogonal_and_share_nothing():
    weights = np.diag([1.0, -2.0, 3.0])
    assert mutual_angular(weights) == pytest.approx(math.pi / 2)
    assert mean_over_pairs(pairwise_exclusivity(weights)) == 0
    assert mean_over_pairs(pairwise_relaxed_exclusivity(weights)) == 0


def test_small_angles_keep_their_digits():
    assert pairwise_angle([[1.0, 0.0], [1.0, 1e-12]])[0, 1] == pytest.approx(1e-12, rel=1e-12)


@pytest.mark.parametrize("scale", [5e-324, 1e-200, 1e200, 1.7e308])
def test_lengths_do_not_matter_for_angles(scale):
    assert pairwise_angle([[1.0, 0.0], [scale, scale]])[0, 1] == pytest.approx(math.pi / 4)


def test_zero_vectors_are_orthogonal_to_others_and_equal_to_each_other():
    angles = pairwise_angle([[0.0, 0.0], [1.0, 2.0], [0.0, 0.0]])
    quarter = math.pi / 2
    np.testing.assert_allclose(angles, [[0, quarter, 0], [quarter, 0, quarter], [0, quarter, 0]])


# --- checks -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("measure", [*MATRICES, mutual_angular])
@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0, 2.0], "one row per member"),
        ([[1.0, 2.0]], "at least two members"),
        (np.empty((2, 0)), "one feature"),
        ([[1.0, np.nan], [1.0, 2.0]], "NaN or infinity"),
        ([[1.0, np.inf], [1.0, 2.0]], "NaN or infinity"),
    ],
)
def test_unusable_weights_are_refused(measure, weights, message):
    with pytest.raises(ValueError, match=message):
        measure(weights)


@pytest.mark.parametrize("g", [-1.0, np.nan, np.inf])
def test_unusable_g_is_refused(g):
    with pytest.raises(ValueError, match="g must be a number at least 0 and finite"):
        mutual_angular(np.eye(2), g)
