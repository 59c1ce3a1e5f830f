"""Breiman's strength, correlation and bound."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra.numpy import arrays

from reproduction.decompositions import raw_margins, strength_correlation

NAMES = np.array(["ant", "bee", "cicada"])
quick = settings(deadline=None, max_examples=40)
shapes = st.tuples(st.integers(1, 9), st.integers(3, 7))
tables = shapes.flatmap(lambda shape: arrays(int, shape, elements=st.integers(0, 2)))
margin_tables = shapes.flatmap(lambda shape: arrays(float, shape, elements=st.floats(-1, 1)))


def margins_by_definition(predictions, truth):
    rows = []
    for votes, y in zip(predictions.tolist(), truth.tolist(), strict=True):
        wrong = sorted({label for label in [*predictions.flat, *truth] if label != y})
        rival = max(wrong, key=votes.count) if wrong else None
        rows.append([float(vote == y) - float(vote == rival) for vote in votes])
    return rows


@quick
@given(codes=tables)
def test_raw_margins_follow_the_definition(codes):
    predictions, truth = NAMES[codes[:, 1:]], NAMES[codes[:, 0]]
    expected = margins_by_definition(predictions, truth)
    np.testing.assert_array_equal(raw_margins(predictions, truth), expected)
    np.testing.assert_array_equal(raw_margins(predictions.astype(object), truth), expected)
    # The mean raw margin is the margin of the vote: the true label's share minus the best other one's.
    shares = np.stack([np.mean(predictions == name, axis=1) for name in NAMES], axis=1)
    rows = np.arange(len(truth))
    own = shares[rows, codes[:, 0]]
    shares[rows, codes[:, 0]] = 0
    np.testing.assert_allclose(np.mean(expected, axis=1), own - shares.max(axis=1), atol=1e-15)


def test_two_classes_have_margins_of_one():
    margins = raw_margins([[0, 1], [1, 1]], [0, 1])
    np.testing.assert_array_equal(margins, [[1, -1], [1, 1]])


def test_one_label_only_is_always_right():
    np.testing.assert_array_equal(raw_margins([["a", "a"]], ["a"]), [[1, 1]])


def check_against_definition(margins):
    """Breiman's section 2.2, with the members as the distribution of theta."""
    result = strength_correlation(margins)
    n_members = margins.shape[1]
    means = margins.mean(axis=0)
    deviations = [math.sqrt(np.mean((margins[:, k] - means[k]) ** 2)) for k in range(n_members)]
    products = correlations = 0.0
    for k in range(n_members):
        for m in range(n_members):
            products += deviations[k] * deviations[m]
            correlations += np.mean((margins[:, k] - means[k]) * (margins[:, m] - means[m]))
    assert result.strength == pytest.approx(means.mean(), abs=1e-14)
    if products > 1e-6:
        assert result.correlation == pytest.approx(correlations / products, abs=1e-6)
    assert 0 <= result.correlation <= 1
    assert result.error == np.mean(margins.mean(axis=1) < 0)
    assert result.error <= result.bound * (1 + 1e-9) + 1e-12
    return result


@quick
@given(codes=tables)
def test_the_bound_holds_for_votes(codes):
    result = check_against_definition(raw_margins(codes[:, 1:], codes[:, 0]))
    if result.strength > 0:
        s = result.strength
        assert result.bound == pytest.approx(result.correlation * (1 - s**2) / s**2)


@quick
@given(margins=margin_tables)
def test_the_bound_holds_for_bounded_real_margins(margins):
    check_against_definition(margins)


@quick
@given(codes=tables, seed=st.integers(0, 99))
def test_permutations_change_nothing(codes, seed):
    rng = np.random.default_rng(seed)
    rows, members = rng.permutation(len(codes)), 1 + rng.permutation(codes.shape[1] - 1)
    names = np.array([None, ("b",), 3], dtype=object)
    first = strength_correlation(raw_margins(names[codes[:, 1:]], names[codes[:, 0]]))
    shuffled = codes[rows]
    second = strength_correlation(raw_margins(names[shuffled[:, members]], names[shuffled[:, 0]]))
    assert second.strength == pytest.approx(first.strength, abs=1e-14)
    assert second.correlation == pytest.approx(first.correlation, abs=1e-12)
    assert second.error == first.error


@quick
@given(codes=tables)
def test_equal_members_have_correlation_one(codes):
    equal = np.repeat(codes[:, 1:2], 3, axis=1)
    assert strength_correlation(raw_margins(equal, codes[:, 0])).correlation == pytest.approx(1, abs=1e-12)


def test_independent_members_have_little_correlation():
    rng = np.random.default_rng(0)
    margins = np.where(rng.random((5000, 40)) < 0.8, 1.0, -1.0)
    result = strength_correlation(margins)
    assert result.correlation == pytest.approx(1 / 40, abs=0.01)
    assert result.error <= result.bound < 0.1


@pytest.mark.parametrize(
    ("margins", "strength", "bound"),
    [
        ([[1, 1], [1, 1]], 1.0, 0.0),  # all always right
        ([[-1, -1], [-1, -1]], -1.0, math.inf),  # all always wrong
        ([[1, -1], [1, -1]], 0.0, math.inf),
        ([[0.1, 0.5, 0.3]] * 7, 0.3, (1 - 0.09) / 0.09),  # constant, and rounding would leave a deviation
    ],
)
def test_limits_where_no_margin_varies(margins, strength, bound):
    result = strength_correlation(margins)
    assert result.correlation == 1
    assert result.strength == pytest.approx(strength)
    assert result.bound == pytest.approx(bound)


def test_margins_too_small_to_square_give_no_nan():
    result = strength_correlation([[1e-200, 0.0], [0.0, 1e-200]])
    assert 0 <= result.correlation <= 1


@pytest.mark.parametrize(
    ("margins", "message"),
    [
        ([[1.5, 0.0]], r"\[-1, 1\]"),
        ([[np.nan, 0.0]], r"\[-1, 1\]"),
    ],
)
def test_unusable_margins_are_refused(margins, message):
    with pytest.raises(ValueError, match=message):
        strength_correlation(margins)
