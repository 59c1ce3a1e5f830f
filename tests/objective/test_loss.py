"""The power hinge against its definition, grids, golden sections and 60-digit arithmetic."""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st
from scipy.optimize import minimize_scalar

from exclusivity.objective.losses import PowerHinge
from exclusivity.rows.design import weighted_total

POWERS = [1, 1.001, 1.1, 1.5, 2, 2.5, 3, 10, 50]
CURVED = POWERS[1:]
EPS = np.finfo(float).eps

powers = st.sampled_from(POWERS)
curved = st.sampled_from(CURVED)
steps = st.floats(-8, 8).map(lambda exponent: 10.0**exponent)
magnitudes = st.floats(-12, 12).map(lambda exponent: 10.0**exponent)
points = st.one_of(magnitudes, magnitudes.map(lambda m: -m), st.just(0.0), st.floats(-3, 3))
moderate = st.floats(-4, 4).map(lambda m: m if abs(m) > 1e-9 else 0.0)


def hinge(m, p):
    """The loss of one number, from the definition."""
    return m**p if m > 0 else 0.0


def moreau(m, p, step, v):
    """What the proximal map minimises. Values beyond the floats are infinite."""
    with np.errstate(over="ignore"):
        return step * np.power(max(m, 0.0), float(p)) + (m - v) ** 2 / 2


def brute_minimum(function, low, high):
    """The minimum of a convex function on [low, high] >= 0: a dense grid, then a golden section."""
    if high <= low:
        return function(low)
    grid = np.concatenate([np.linspace(low, high, 201), high * np.logspace(-40, 0, 201)])
    grid = np.unique(grid[(grid >= low) & (grid <= high)])
    values = np.array([function(m) for m in grid])
    best = int(values.argmin())
    # Two neighbours on each side: both grids have points that are equal but for rounding.
    a, b = grid[max(best - 2, 0)], grid[min(best + 2, len(grid) - 1)]
    ratio = (5**0.5 - 1) / 2
    for _ in range(120):
        left, right = b - ratio * (b - a), a + ratio * (b - a)
        a, b = (a, right) if function(left) <= function(right) else (left, b)
    return min(values[best], function((a + b) / 2))


# --- value and derivative -----------------------------------------------------------------------------


@pytest.mark.parametrize("p", POWERS)
def test_value_is_the_positive_part_to_the_power(p):
    shortfall = np.array([[-2.0, -1e-300, -0.0, 0.0], [1e-6, 0.3, 1.0, 2.5]])
    expected = [[hinge(m, p) for m in row] for row in shortfall.tolist()]
    before = shortfall.copy()
    # One ulp per multiplication that a different algorithm for the power may take.
    np.testing.assert_allclose(PowerHinge(p).value(shortfall), expected, rtol=4 * EPS * p)
    np.testing.assert_array_equal(shortfall, before)  # value() works in place, but not in its input


@pytest.mark.parametrize("p", POWERS)
def test_total_weighs_rows(p):
    rng = np.random.default_rng(0)
    shortfall, weights = rng.normal(size=(7, 3)), rng.uniform(0.1, 3, 7)
    expected = sum(weights[i] * hinge(shortfall[i, k], p) for i in range(7) for k in range(3))
    assert weighted_total(weights, PowerHinge(p).value(shortfall)) == pytest.approx(expected, rel=1e-13)


@given(p=powers, m=st.one_of(st.floats(-3, -1e-2), st.floats(1e-2, 3)))
@settings(max_examples=150, deadline=None)
def test_derivative_is_the_difference_quotient(p, m):
    """Central differences err by h^2 |f'''|/6 + eps |f|/h, with |f'''| <= p^3 f/m^3."""
    h = 1e-4 * abs(m) / p
    quotient = (hinge(m + h, p) - hinge(m - h, p)) / (2 * h)
    scale = max(hinge(m, p) * p / abs(m), 1e-12)
    assert PowerHinge(p).slope(np.array([m]))[0] == pytest.approx(quotient, abs=1e-7 * scale)


def test_derivative_at_the_kink():
    at_zero = np.array([0.0, -0.0])
    for p in POWERS:
        np.testing.assert_array_equal(PowerHinge(p).slope(at_zero), [0.0, 0.0])


# --- proximal map -------------------------------------------------------------------------------------


@given(p=powers, step=steps, v=points)
@settings(max_examples=300, deadline=None)
def test_prox_is_not_beaten_by_brute_force(p, step, v):
    """The objective is 1-strongly convex: a value within d of the minimum means |m - m*| <= sqrt(2 d)."""
    m = PowerHinge(p).prox(np.array([v]), step)[0]
    reference = brute_minimum(lambda x: moreau(x, p, step, v), 0.0, v) if v > 0 else moreau(v, p, step, v)
    # m^p is evaluated to a few p ulps, and m found to within the backward error of the next test.
    assert moreau(m, p, step, v) <= reference * (1 + 8 * p * EPS) + (4 * EPS * (1 + p) * v) ** 2 / 2


def stationarity(m, p, step, v):
    """(m + step p m^(p-1) - v) / v in 60 digits, from the very doubles that the code works with."""
    with localcontext() as context:
        context.prec = 60
        m, p, step, v = (Decimal(float(x)) for x in (m, p, step, v))
        return float((m + step * p * m ** (p - 1) - v) / v) if m > 0 else -1.0


@given(p=curved, step=steps, v=magnitudes)
@settings(max_examples=300, deadline=None)
def test_prox_solves_the_stationarity_condition(p, step, v):
    """A backward error of a few ulps: the condition holds for a point that differs from v by rounding."""
    m = float(PowerHinge(p).prox(np.array([v]), step)[0])
    if m > 1e-307:
        assert abs(stationarity(m, p, step, v)) <= 4 * EPS * (1 + p)
    else:  # the root is smaller than any (normal) double: then the condition is already passed here
        assert stationarity(1e-307, p, step, v) >= 0


@pytest.mark.parametrize("p", POWERS)
def test_prox_leaves_zero_and_negative_points(p):
    point = np.array([-1e12, -3.0, -1e-12, 0.0])
    np.testing.assert_array_equal(PowerHinge(p).prox(point, 1e3), point)


@pytest.mark.parametrize("p", POWERS)
def test_prox_of_a_matrix_is_the_prox_of_its_entries(p):
    """One call mixes points that converge after different numbers of steps."""
    rng = np.random.default_rng(1)
    point = rng.choice([-1, 1], size=(40, 5)) * 10.0 ** rng.uniform(-12, 12, size=(40, 5))
    before, step = point.copy(), 0.37
    together = PowerHinge(p).prox(point, step)
    single = [[PowerHinge(p).prox(np.array([v]), step)[0] for v in row] for row in point]
    # Extra safeguarded steps at a converged entry may move it within its tolerance of 4 p ulps, and
    # rounding of the residual is amplified by at most max(1, 1/(p - 1)).
    np.testing.assert_allclose(together, single, rtol=16 * EPS * p * (1 if p == 1 else max(1, 1 / (p - 1))))
    np.testing.assert_array_equal(point, before)


@pytest.mark.parametrize(("p", "v", "step"), [(3, 5.2e-162, 1.4e161), (2.1, 8.6e290, 6.1e-29)])
def test_prox_ends_where_the_power_leaves_the_floats(p, v, step):
    """m^(p-1) is subnormal or infinite: no root can be told there, but the map stays between 0 and v."""
    assert 0 <= PowerHinge(p).prox(np.array([v]), step)[0] <= v


@given(p=powers, step=steps, u=points, v=points)
@settings(max_examples=200, deadline=None)
def test_prox_is_firmly_non_expansive(p, step, u, v):
    """(Pu - Pv)^2 <= (Pu - Pv)(u - v): monotone, and no step is longer than the step of the points."""
    a, b = PowerHinge(p).prox(np.array([u, v]), step)
    rounding = 16 * p * EPS * (abs(u) + abs(v))
    if p < 2 and p > 1:
        rounding *= 1 / (p - 1)
    assert (a - b) ** 2 <= (a - b) * (u - v) + rounding * (abs(u - v) + rounding)


@given(p=powers, step=st.floats(-3, 3).map(lambda e: 10.0**e), v=moderate)
@settings(max_examples=150, deadline=None)
def test_moreau_identity(p, step, v):
    """prox_{tf}(v) + t prox_{f*/t}(v/t) = v, the second map by minimising with our own conjugate."""
    loss, cost = PowerHinge(p), np.ones(1)
    m = loss.prox(np.array([v]), step)[0]
    # The dual variable is a subgradient at m <= v, so that it lies below the derivative at v.
    upper = 1.0 if p == 1 else p * max(v, 0.0) ** (p - 1)

    def dual(a):
        return loss.conjugate(np.array([a]), cost)[0] / step + (a - v / step) ** 2 / 2

    found = minimize_scalar(dual, bounds=(0.0, upper), method="bounded", options={"xatol": 1e-10 * upper})
    candidates = [0.0, upper, float(found.x)]
    best = min(candidates, key=dual)
    # A minimiser found from values is good to sqrt(eps) of where the parabola (a - v/t)^2/2 stands.
    scale = abs(v) / step + upper
    assert m + step * best == pytest.approx(v, abs=1e-6 * step * scale)


# --- conjugate ----------------------------------------------------------------------------------------


@given(p=curved, alpha=st.floats(1e-3, 20), cost=st.floats(1e-2, 1e2))
@settings(max_examples=200, deadline=None)
def test_conjugate_is_the_supremum(p, alpha, cost):
    def negative(m):
        with np.errstate(over="ignore"):
            return cost * np.power(m, float(p)) - alpha * m

    assume(-60 < np.log(alpha / (p * cost)) / (p - 1) < 60)  # log m: farther out there is no grid
    high = 1.0
    while negative(high) <= negative(high / 2):
        high *= 2
    supremum = -brute_minimum(negative, 0.0, high)
    value = PowerHinge(p).conjugate(np.array([alpha]), np.array([cost]))[0]
    # alpha m and cost m^p cancel: what is left of them is a share 1 - 1/p.
    m = (alpha / (p * cost)) ** (1 / (p - 1))
    assert value == pytest.approx(supremum, rel=1e-9, abs=64 * EPS * p * alpha * m)


@pytest.mark.parametrize("p", POWERS)
def test_conjugate_outside_its_domain_is_unbounded(p):
    loss = PowerHinge(p)
    far = -(10.0 ** np.arange(1, 8))
    assert np.all(np.diff(-1e-3 * far - 2.0 * loss.value(far)) > 0)  # alpha m grows as m falls
    assert loss.conjugate(np.array([-1e-3]), np.array([2.0]))[0] == np.inf
    assert loss.conjugate(np.array([0.0]), np.array([2.0]))[0] == 0.0


def test_conjugate_of_the_hinge_is_a_box():
    cost = np.full(4, 2.0)
    np.testing.assert_array_equal(
        PowerHinge(1).conjugate(np.array([0.0, 1.0, 2.0, np.nextafter(2, 3)]), cost), [0.0, 0.0, 0.0, np.inf]
    )


def test_conjugate_formula_of_the_squared_hinge():
    """alpha^2 / (4 c), math.md section 5."""
    alpha, cost = np.array([0.0, 0.5, 3.0]), np.array([1.0, 2.0, 0.1])
    np.testing.assert_allclose(PowerHinge(2).conjugate(alpha, cost), alpha**2 / (4 * cost), rtol=4 * EPS)


def test_conjugate_beyond_the_floats_is_infinite_without_a_warning():
    """0.001 (3/1.001)^1001 is about 1e474: the bound then says nothing, and no user can act on it."""
    assert PowerHinge(1.001).conjugate(np.array([3.0]), np.array([1.0]))[0] == np.inf


@given(p=powers, m=moderate, alpha=st.floats(-1, 8), cost=st.floats(0.1, 10))
@settings(max_examples=200, deadline=None)
def test_fenchel_young_inequality(p, m, alpha, cost):
    with np.errstate(over="ignore"):
        conjugate = PowerHinge(p).conjugate(np.array([alpha]), np.array([cost]))[0]
    assert cost * hinge(m, p) + conjugate >= alpha * m - 16 * EPS * p * (abs(alpha * m) + cost * hinge(m, p))


@given(p=powers, m=moderate, cost=st.floats(0.1, 10))
@settings(max_examples=200, deadline=None)
def test_fenchel_young_equality_at_the_derivative(p, m, cost):
    loss = PowerHinge(p)
    alpha = cost * loss.slope(np.array([m]))
    total = cost * hinge(m, p) + loss.conjugate(alpha, np.array([cost]))[0]
    # The conjugate raises alpha to p/(p-1), which multiplies its relative rounding by as much.
    slack = 16 * EPS * p * (1 if p == 1 else p / (p - 1))
    assert total == pytest.approx(alpha[0] * m, rel=slack, abs=1e-300)


# --- parameters ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("p", [0.5, 0, -1, np.nextafter(1, 0), np.nan, np.inf, -np.inf])
def test_power_below_one_or_not_finite_is_refused(p):
    with pytest.raises(ValueError, match="p must be a finite number >= 1"):
        PowerHinge(p)


@pytest.mark.parametrize("p", [1, 1.5, 2, 6])
def test_raised_totals_bound_the_loss_of_larger_shortfalls(p):
    rng = np.random.default_rng(0)
    m, costs, error = rng.normal(size=50), rng.uniform(0.1, 3, 50), 0.01
    loss = PowerHinge(p)
    total, raised = (float(costs @ loss.value(shortfall)) for shortfall in (m, m + error))
    assert raised <= loss.raised_total(total, float(costs.sum()), error) * (1 + 1e-14)
    assert loss.raised_total(total, 1.0, 1e200) == (np.inf if p >= 2 else pytest.approx(1e200**p, rel=1e-6))
