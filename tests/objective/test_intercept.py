"""The best intercept against brute force over b."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.optimize import minimize_scalar

from exclusivity.objective.estimates import best_intercept
from exclusivity.objective.objective import ERMProblem

POWERS = [1, 1.5, 2, 3]
ALL_POWERS = [1, 1.001, 1.1, 1.5, 2, 3, 10, 50]


def problem_of(labels, p, weights=None):
    labels = np.asarray(labels, dtype=float)
    return ERMProblem.build(np.ones((len(labels), 1)), labels, p=p, weights=weights)


def loss(b, labels, scores, p, weights):
    with np.errstate(over="ignore"):
        return sum(
            s * np.power(max(0.0, 1 - y * (f + b)), float(p))
            for y, f, s in zip(labels, scores, weights, strict=True)
        )


def brute_minimum(labels, scores, p, weights):
    """The minimal loss over b: all breakpoints, a grid between them, and a search around the best."""
    ends = np.unique(labels - scores)
    grid = np.unique(np.concatenate([ends, np.linspace(ends[0], ends[-1], 101)]))
    values = [loss(b, labels, scores, p, weights) for b in grid]
    best = int(np.argmin(values))
    low, high = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    if low == high:
        return values[best]
    found = minimize_scalar(
        loss,
        args=(labels, scores, p, weights),
        bounds=(low, high),
        method="bounded",
        options={"xatol": 1e-12},
    )
    return min(values[best], found.fun)


def row_lists(elements):
    row = st.tuples(st.sampled_from([-1.0, 1.0]), elements, st.sampled_from([0.25, 1.0, 1.0, 2.0, 16.0]))
    return st.lists(row, min_size=1, max_size=9).map(
        lambda rows: tuple(map(np.array, zip(*rows, strict=True)))
    )


quarters = st.integers(-20, 20).map(lambda i: i / 4)  # exact sums, many ties
reals = st.floats(-5, 5)


@pytest.mark.parametrize("p", ALL_POWERS)
@given(rows=row_lists(st.one_of(quarters, reals)))
@settings(max_examples=40, deadline=None)
def test_no_other_intercept_has_a_smaller_loss(p, rows):
    """One class only, ties and equal breakpoints are among the examples."""
    labels, scores, weights = rows
    b = best_intercept(problem_of(labels, p, weights), scores)
    # Around b the loss changes by slope * (rounding of b): 1e-14 * weight * p * (largest shortfall)^(p-1).
    worst = np.ptp(labels - scores) + 1e-14
    slack = 1e-13 * p * weights.sum() * np.power(worst, p - 1.0) + 1e-300
    if p < 2:  # a row at its kink: (rounding of the shortfall)^p instead
        slack += weights.sum() * 1e-14**p
    assert (
        loss(b, labels, scores, p, weights) <= brute_minimum(labels, scores, p, weights) * (1 + 1e-12) + slack
    )
    assert (labels - scores).min() <= b <= (labels - scores).max()


@pytest.mark.parametrize("p", POWERS)
def test_weight_two_is_a_repeated_row(p):
    rng = np.random.default_rng(4)
    labels, scores = np.where(rng.random(9) < 0.5, -1.0, 1.0), rng.normal(size=9)
    repeats = rng.integers(1, 4, size=9)
    weighted = best_intercept(problem_of(labels, p, repeats.astype(float)), scores)
    repeated = best_intercept(problem_of(np.repeat(labels, repeats), p), np.repeat(scores, repeats))
    assert weighted == pytest.approx(repeated, abs=1e-12)


@pytest.mark.parametrize("p", [1.1, 1.5, 2, 3, 10])
@pytest.mark.parametrize("seed", range(5))
def test_the_slope_vanishes(p, seed):
    """What the certificate needs: sum_i y_i alpha_i = 0 for alpha_i = s_i p max(0, m_i)^(p-1)."""
    rng = np.random.default_rng(seed)
    labels, scores, weights = (
        np.where(np.arange(30) % 3, 1.0, -1.0),
        rng.normal(size=30),
        rng.uniform(0.1, 3, 30),
    )
    b = best_intercept(problem_of(labels, p, weights), scores)
    alpha = [
        s * p * max(0.0, 1 - y * (f + b)) ** (p - 1) for y, f, s in zip(labels, scores, weights, strict=True)
    ]
    # b is good to 1e-14, and with random scores no row sits closer than 1e-4 to its kink.
    assert abs(labels @ alpha) <= 1e-10 * sum(alpha)


def test_squared_hinge_by_hand():
    """All rows active: the weighted mean of y - score. y - score = (1, -1), weights 3 and 1: b = 1/2."""
    assert best_intercept(problem_of([1, -1], 2, np.array([3.0, 1.0])), np.zeros(2)) == pytest.approx(
        0.5, abs=1e-13
    )


@pytest.mark.parametrize("p", ALL_POWERS)
@pytest.mark.parametrize("label", [-1.0, 1.0])
def test_one_class_has_no_loss(p, label):
    """Any b beyond all breakpoints is best. 0.4 and its like round to a shortfall of 1e-16 at the end."""
    for scores in map(np.array, ([0.4, -3.0], [-0.4, 3.0], [0.9, -2.9, 0.1], [1.8, 0.0, -0.7], [2.0])):
        labels = np.full(len(scores), label)
        b = best_intercept(problem_of(labels, p), scores)
        assert loss(b, labels, scores, p, np.ones(len(scores))) <= 1e-15


@pytest.mark.parametrize("p", ALL_POWERS)
def test_a_heavy_row_at_the_end_wins(p):
    """p = 1.1 turns a shortfall of 1e-16 into a slope of 0.03, times weight 100 more than the other row's."""
    labels, scores, weights = np.array([1.0, -1.0]), np.array([-3.0, 0.4]), np.array([1.0, 100.0])
    b = best_intercept(problem_of(labels, p, weights), scores)
    reference = brute_minimum(labels, scores, p, weights)
    assert loss(b, labels, scores, p, weights) <= reference * (1 + 1e-10)


@pytest.mark.parametrize("p", ALL_POWERS)
def test_separable_classes_that_leave_one_best_intercept(p):
    """Both slopes leave zero like |b - 1|^(p-1): flat, and slow to search when p > 2."""
    labels, scores = np.array([-1.0, -1.0, 1.0, 1.0]), np.array([-2.0, -2.5, 0.0, 0.25])
    b = best_intercept(problem_of(labels, p), scores)
    assert loss(b, labels, scores, p, np.ones(4)) <= 1e-13
    if p <= 3:  # above, slopes underflow before b is found to many digits
        assert b == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("width", [1e-3, 1e-6, 1e-9, 1e-12])
@pytest.mark.parametrize("p", ALL_POWERS)
def test_support_vectors_close_to_the_margin(p, width):
    """Nearly separable scores, as a large C leaves them: some margins in 1 +- width, the others beyond."""
    for seed in range(8):
        rng = np.random.default_rng(seed)
        labels, near = np.where(np.arange(20) % 2, 1.0, -1.0), rng.random(20) < 0.4
        scores = labels * (1 + np.where(near, width * rng.uniform(-1, 1, 20), rng.exponential(size=20)))
        b = best_intercept(problem_of(labels, p), scores)
        # b is good to 1e-14, which moves each of the 20 losses by at most 1e-14 p (3 width)^(p-1).
        reference = brute_minimum(labels, scores, p, np.ones(20))
        assert loss(b, labels, scores, p, np.ones(20)) <= reference * (1 + 1e-9) + 1e-12 * p * width ** (
            p - 1
        )


@pytest.mark.parametrize("p", ALL_POWERS)
def test_all_breakpoints_equal(p):
    """scores = y - b: the loss is zero at b, and only there (two classes)."""
    labels = np.array([1.0, -1.0, 1.0, -1.0])
    for b in (0.0, 0.75, -3.5):
        assert best_intercept(problem_of(labels, p), labels - b) == b
