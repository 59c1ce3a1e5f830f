"""Weights between bounds: conjugate, its rounding, and which weights are at bounds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from exclusivity.objective.losses import PowerHinge
from exclusivity.objective.objective import (
    Bounds,
    ExclusivityRegulariser,
    Objective,
    Penalty,
)

vectors = st.lists(st.floats(-5, 5), min_size=3, max_size=3).map(np.array)
kinks = st.sampled_from([0.0, 0.7, np.array([0.0, 0.5, 2.0])])
ends = st.floats(-3, 3) | st.sampled_from([-np.inf, np.inf, 0.0])


@st.composite
def penalties(draw):
    pairs = [sorted((draw(ends), draw(ends))) for _ in range(3)]
    pairs = [(-1.0, 1.0) if np.isinf(low) and low == high else (low, high) for low, high in pairs]
    lower, upper = np.array(pairs).T
    return Penalty(draw(kinks), lower, upper)


def grid(penalty, w):
    """Each weight of w between its bounds."""
    return np.clip(w, penalty.lower, penalty.upper)


@given(penalties(), vectors, vectors)
def test_the_conjugate_is_fenchels(penalty, u, w):
    conjugate, w = penalty.largest_conjugate(u, 0.0, np.zeros(3)), grid(penalty, w)
    assert u @ w <= penalty.value(w) + conjugate + 1e-12
    attained = penalty.attained(u)
    assert u @ attained - penalty.value(attained) == pytest.approx(conjugate, rel=1e-12, abs=1e-12)
    excess = penalty.excess(w, u)
    assert excess >= -1e-12
    assert excess == pytest.approx(penalty.value(w) + conjugate - u @ w, rel=1e-9, abs=1e-9)


@given(penalties(), vectors, vectors)
def test_errors_only_raise_the_conjugate(penalty, u, error):
    moved = penalty.largest_conjugate(u + error, 0.0, np.zeros(3))
    length = float(np.linalg.norm(error))
    for reach, reaches in ((length, np.full(3, np.inf)), (np.inf, np.abs(error)), (length, np.abs(error))):
        assert penalty.largest_conjugate(u, reach, reaches) >= moved - 1e-12 * (1 + abs(moved))


@given(kinks, vectors, vectors)
def test_far_bounds_are_none(kinks, u, w):
    bounded, free = Penalty(kinks, np.full(3, -1e9), np.full(3, 1e9)), Penalty(kinks)
    assert bounded.is_bounded
    assert not free.is_bounded
    np.testing.assert_array_equal(bounded.attained(u), free.attained(u))
    assert bounded.value(w) == pytest.approx(free.value(w), rel=1e-14)
    assert bounded.excess(w, u) == pytest.approx(free.excess(w, u), rel=1e-14)
    for reach, reaches in ((0.0, np.zeros(3)), (0.1, np.full(3, 0.2)), (0.3, np.full(3, 0.01))):
        left, right = (one.largest_conjugate(u, reach, reaches) for one in (bounded, free))
        assert left == pytest.approx(right, rel=1e-12, abs=1e-15)


@given(penalties(), vectors, vectors, st.floats(0, 1))
def test_slopes_are_those_of_the_value(penalty, w, other, t):
    w, other = grid(penalty, w), grid(penalty, other)
    step, h = other - w, 1e-6
    if np.any(np.abs(w + t * step) < 1e-4) or not h < t < 1 - h:  # at a kink there is no one slope
        return
    # Without bounds, from which rounding may lead astray.
    free = Penalty(penalty.kinks)
    slope = (free.value(w + (t + h) * step) - free.value(w + (t - h) * step)) / (2 * h)
    assert penalty.slopes(w, step, np.array([t]))[0] == pytest.approx(slope, rel=1e-4, abs=1e-4)


def test_outside_it_costs_infinitely_much_and_nothing_settles_there():
    penalty = Penalty(0.0, np.array([0.0, -1.0]), np.array([np.inf, 1.0]))
    assert penalty.value(np.array([-1e-300, 0.0])) == np.inf
    assert penalty.value(np.array([0.0, 1.0])) == 0.5
    settled = penalty.settled(np.array([0.2, 1.5]), np.array([-3.0, 0.4]))
    np.testing.assert_array_equal(settled, [0.0, 1.0])
    np.testing.assert_array_equal(penalty.settled(np.array([0.2, 0.3]), np.array([1.0, 9.0])), [0.2, 1.0])


@given(vectors)
def test_equal_members_pay_the_penalty_of_one(w):
    bounds = Bounds(np.zeros(3), np.full(3, np.inf))
    objective = Objective(PowerHinge(2), ExclusivityRegulariser(0.5, 1.5), n_members=4, bounds=bounds)
    w = bounds.clip(w)
    whole = objective.regulariser.value(np.repeat(w[:, None], 4, axis=1))
    assert whole == pytest.approx(4 * objective.kappa * objective.penalty.value(w), rel=1e-12, abs=1e-12)
    assert objective.reduced().bounds is bounds


@pytest.mark.parametrize(
    ("lower", "upper", "message"),
    [
        ([0.0, 1.0], [1.0, 0.5], r"feature 1 has \[1, 0.5\]"),
        ([np.nan], [1.0], "must not be above"),
        ([np.inf], [np.inf], "infinite on the wrong side"),
        ([-np.inf], [-np.inf], "infinite on the wrong side"),
        ([0.0], [1.0, 2.0], "two vectors of one length"),
    ],
)
def test_what_is_no_interval_is_refused(lower, upper, message):
    with pytest.raises(ValueError, match=message):
        Bounds(np.array(lower), np.array(upper))


def test_bounds_of_some_columns_and_whether_zero_is_allowed():
    bounds = Bounds(np.array([0.0, 0.5]), np.array([1.0, 2.0]))
    assert not bounds.contain_zero
    assert bounds.of_columns(np.array([0])).contain_zero
