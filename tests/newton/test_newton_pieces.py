"""The parts of solver "newton", each against plain numpy, finite differences or exact arithmetic."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import linalg, sparse

from exclusivity.objective.losses import PowerHinge
from exclusivity.objective.objective import (
    ERMProblem,
    ExclusivityRegulariser,
    dual_bound,
    member_costs,
    repair_dual,
)
from exclusivity.rows import design as design_module
from exclusivity.rows.design import DesignMatrix
from exclusivity.solvers import (
    NewtonOptions,
    Start,
    factorised as factorised_module,
    interior as interior_module,
    solve_newton,
)
from exclusivity.solvers.barrier import Barrier, dual_of, near_margin
from exclusivity.solvers.factorised import (
    DualSystem,
    LearningSystem,
    PrimalSystem,
    drive_factorised,
    robust_cholesky,
)
from exclusivity.solvers.interior import (
    InteriorPoint,
    SampleOptimum,
    drive_interior,
    drive_shrinking,
    solve_inside,
    with_exact_zeros,
)
from exclusivity.solvers.newton import MANY_ROWS, RowFacts, choose_regime, continue_run, sample_rows
from exclusivity.solvers.run import Guess, MemoryRows, Run
from exclusivity.solvers.sums import (
    Point,
    bordered_gram,
    bound_from_sums,
    curvature_rows,
    dual_weights_of,
    evaluate,
    slopes as slopes_of,
)
from newton.newton_cases import assert_honest, blobs, build

POWERS = [1, 1.2, 1.5, 2, 3]


# ---------------------------------------------------------------- the rounded corner of the loss


@settings(deadline=None, max_examples=80)
@given(
    st.sampled_from([1, 1.01, 1.2, 1.5, 1.9, 2, 2.5, 3]),
    st.sampled_from([1e-6, 1e-3, 0.1, 1.0]),
    st.floats(-2, 4),
)
def test_smoothed_hinge_lies_below_by_at_most_what_it_says(p, width, m):
    value = PowerHinge(p).rounded(width).parts(np.array([m]))[0][0]
    true = max(0.0, m) ** p
    most = (1 - p / 2) * width**p if p < 2 else 0.0
    assert true - most * (1 + 1e-12) - 1e-14 * true <= value <= true * (1 + 1e-14)
    if m > width:
        assert value == pytest.approx(true - most, rel=1e-13, abs=1e-13)


@pytest.mark.parametrize("p", [1, 1.2, 1.5, 1.9, 2, 2.5, 3])
@pytest.mark.parametrize("width", [0.05, 1.0])
def test_smoothed_hinge_slopes_and_curvatures_are_derivatives(p, width):
    loss, h = PowerHinge(p).rounded(width), 1e-6
    m = np.concatenate([np.linspace(-1, 3, 161) + 1e-3, [width / 3, 1.7 * width]])
    m = m[(np.abs(m) > 2 * h) & (np.abs(m - width) > 2 * h)]  # one-sided at the two joints
    value, slope, curvature, _ = loss.parts(m)
    ahead, behind = loss.parts(m + h), loss.parts(m - h)
    # Central differences: rounding eps/h = 2e-10 plus h^2 times a third derivative of at most p/width^2.
    np.testing.assert_allclose((ahead[0] - behind[0]) / (2 * h), slope, atol=2e-8)
    np.testing.assert_allclose((ahead[1] - behind[1]) / (2 * h), curvature, atol=2e-7)
    assert np.all(np.diff(slope[np.argsort(m)]) >= 0), "a convex loss has a growing slope"
    assert np.all(curvature >= 0)
    assert np.all(np.stack([value, slope, curvature])[:, m < 0] == 0)


@pytest.mark.parametrize("p", POWERS)
def test_smoothed_hinge_slopes_are_dual_feasible_and_joints_are_continuous(p):
    width = 0.25
    loss = PowerHinge(p).rounded(width)
    m = np.array([0.0, 1e-12, width - 1e-12, width, width + 1e-12])
    value, slope, _, _ = loss.parts(m)
    np.testing.assert_allclose(np.diff(value[:2]), 0, atol=1e-11)
    np.testing.assert_allclose(np.diff(value[2:]), 0, atol=1e-11)
    np.testing.assert_allclose(np.diff(slope[2:]), 0, atol=1e-9)
    if p == 1:
        assert np.all(loss.parts(np.linspace(-1, 9, 101))[1] <= 1)
    without = loss.parts(m, curvature=False)
    np.testing.assert_array_equal(without[0], value)
    np.testing.assert_array_equal(without[1], slope)
    assert without[2] is None


def test_smoothed_hinge_is_exact_without_a_width_and_for_p_from_2_on():
    m = np.linspace(-1, 2, 13)
    for p in (2, 2.5, 3):
        np.testing.assert_allclose(PowerHinge(p).rounded(0.5).parts(m)[0], np.maximum(m, 0) ** p, rtol=1e-15)
        assert PowerHinge(p).rounded(0.5).width == 0
    assert PowerHinge(1.5).width == 0
    assert PowerHinge(1.5).rounded(0.1).width == 0.1


def test_all_rows_of_a_zero_start_have_curvature():
    # m = 1 = width there: with the other one-sided curvature of p = 1 the first matrix would be empty.
    assert np.all(PowerHinge(1).rounded(1.0).parts(np.ones(3))[2] == 1)


# ---------------------------------------------------------------- sums over rows


def rows_case(p, *, n_rows=300, kind="dense", fit_intercept=True, seed=0):
    X, y = blobs(n_rows, 4, seed=seed)
    X[np.abs(X) < 0.4] = 0
    s = np.random.default_rng(seed).uniform(0.2, 3, size=n_rows)
    X = sparse.csr_matrix(X) if kind == "csr" else X
    problem = build(X, y, n_members=3, cost=2.0, p=p, exclusivity=0.5, weights=s, fit_intercept=fit_intercept)
    return problem.reduced()


def plain(problem, point, width):
    """Everything from its definition, row by row of a dense X."""
    X, y, c, p = np.asarray(problem.design.X), problem.labels, member_costs(problem), problem.loss.p
    m = 1 - y * (X @ point.weights + point.intercept)
    width = width if p < 2 else 0.0
    inner = (m > 0) & (m <= width)
    slope = np.where(
        inner, p * width ** (p - 2) * m if width else 0, p * np.maximum(m, 0) ** (p - 1) * (m > 0)
    )
    bend = np.where(m > 0, p * (p - 1) * np.where(m > 0, m, 1) ** (p - 2), 0)
    smooth = np.maximum(m, 0) ** p - (1 - p / 2) * width**p * (m > width)
    if width:
        bend = np.where(inner, p * width ** (p - 2), bend)
        smooth = np.where(inner, p / 2 * width ** (p - 2) * m**2, smooth)
    alpha = c * slope
    conjugate = np.zeros_like(m) if p == 1 else c * (p - 1) * (alpha / (p * c)) ** (p / (p - 1))
    Xb = np.column_stack([X, np.ones(len(y))])
    return {
        "loss": c @ np.maximum(m, 0) ** p,
        "smoothed": c @ smooth,
        "alpha": alpha,
        "weighted_sums": np.array([X[k].T @ alpha[k] for k in (y > 0, y < 0)]),
        "alpha_sums": np.array([alpha[k].sum() for k in (y > 0, y < 0)]),
        "conjugates": np.array([conjugate[k].sum() for k in (y > 0, y < 0)]),
        "curvature": Xb.T @ ((c * bend)[:, None] * Xb),
    }


POINT = Point(np.array([0.5, -0.3, 0.2, 0.4]), 0.1)


@pytest.mark.parametrize("p", POWERS)
@pytest.mark.parametrize("n_blocks", [1, 5])
def test_block_sums_are_the_sums(p, n_blocks, monkeypatch):
    if n_blocks > 1:
        monkeypatch.setattr(design_module, "_BLOCK_NUMBERS", 1)  # the least block: 64 of 300 rows
    problem, width = rows_case(p), 0.4
    assert sum(1 for _ in problem.design.blocks(1)) == n_blocks
    source = MemoryRows(problem)
    expected = plain(problem, POINT, width)
    sums = source.reduce(evaluate, POINT, PowerHinge(p).rounded(width), True)

    pulls, masses, conjugates = sums.by_class()
    assert sums.loss == pytest.approx(expected["loss"], rel=1e-13)
    assert sums.smoothed == pytest.approx(expected["smoothed"], rel=1e-13)
    np.testing.assert_allclose(pulls, expected["weighted_sums"], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(masses, expected["alpha_sums"], rtol=1e-12)
    np.testing.assert_allclose(conjugates, expected["conjugates"], rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(sums.curvature, expected["curvature"], rtol=1e-12, atol=1e-11)
    np.testing.assert_allclose(
        sums.negative_gradient.weights,
        expected["weighted_sums"][0] - expected["weighted_sums"][1],
        atol=1e-12,
    )
    assert sums.negative_gradient.intercept == pytest.approx(
        expected["alpha_sums"][0] - expected["alpha_sums"][1], abs=1e-12
    )

    assert source.passes == 1
    less = source.reduce(evaluate, POINT, PowerHinge(p).rounded(width), False)
    assert less.curvature is None
    assert less.loss == sums.loss
    assert (less + sums).curvature is None
    assert source.passes == 2


@pytest.mark.parametrize("p", POWERS)
def test_csr_rows_give_the_sums_of_dense_ones(p, monkeypatch):
    monkeypatch.setattr(design_module, "_BLOCK_NUMBERS", 1)
    dense, csr = MemoryRows(rows_case(p)), MemoryRows(rows_case(p, kind="csr"))
    loss = PowerHinge(p).rounded(0.4)
    a = dense.reduce(evaluate, POINT, loss, True)
    b = csr.reduce(evaluate, POINT, loss, True)
    for name in ("loss", "smoothed", "weighted_sums", "alpha_sums", "conjugates", "curvature"):
        np.testing.assert_allclose(getattr(a, name), getattr(b, name), rtol=1e-12, atol=1e-12, err_msg=name)
    step, lengths = Point(np.array([1.0, -2.0, 0.5, 0.0]), 0.3), np.array([1.0, 0.5, 0.125])
    np.testing.assert_allclose(
        dense.reduce(slopes_of, POINT, step, loss, lengths),
        csr.reduce(slopes_of, POINT, step, loss, lengths),
        rtol=1e-12,
    )
    active, csr_active = dense.reduce(curvature_rows, POINT, loss), csr.reduce(curvature_rows, POINT, loss)
    np.testing.assert_array_equal(active.X, csr_active.X.toarray())
    np.testing.assert_allclose(active.weights, csr_active.weights, rtol=1e-13)
    np.testing.assert_allclose(bordered_gram(active.X, active.weights), a.curvature, rtol=1e-12, atol=1e-11)


@pytest.mark.parametrize("p", POWERS)
def test_slopes_along_a_step_are_derivatives(p):
    source, loss = MemoryRows(rows_case(p)), PowerHinge(p).rounded(0.4)
    step, lengths, h = Point(np.array([1.0, -2.0, 0.5, 0.1]), 0.3), np.array([1.0, 0.3, 0.01]), 1e-6
    before = source.passes
    slopes = source.reduce(slopes_of, POINT, step, loss, lengths)
    assert source.passes == before + 1
    for length, slope in zip(lengths, slopes, strict=True):
        ahead, behind = (
            source.reduce(evaluate, POINT.moved(step, length + d), loss, False).smoothed for d in (h, -h)
        )
        # 300 rows with curvatures of up to a few tens: h times a jump of them at the joints, and rounding.
        assert slope == pytest.approx((ahead - behind) / (2 * h), rel=1e-5, abs=1e-3)


@pytest.mark.parametrize("p", POWERS)
def test_gradient_and_curvature_of_the_sums_are_derivatives(p):
    source, loss, h = MemoryRows(rows_case(p)), PowerHinge(p).rounded(0.4), 1e-6
    sums = source.reduce(evaluate, POINT, loss, True)
    for j in range(5):
        unit = Point(np.eye(5)[j, :4], float(j == 4))
        pair = [source.reduce(evaluate, POINT.moved(unit, d), loss, False) for d in (h, -h)]
        slope = (pair[0].smoothed - pair[1].smoothed) / (2 * h)
        assert slope == pytest.approx(
            -np.append(sums.negative_gradient.weights, sums.negative_gradient.intercept)[j],
            rel=1e-5,
            abs=1e-3,
        )
        change = [
            -np.append(each.negative_gradient.weights, each.negative_gradient.intercept) for each in pair
        ]
        bend = (change[0] - change[1]) / (2 * h)
        # A row on a joint within h would show up; for these data there is none.
        np.testing.assert_allclose(bend, sums.curvature[j], rtol=1e-4, atol=1e-2)


# ---------------------------------------------------------------- the bound from sums


@pytest.mark.parametrize("p", POWERS)
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("intercept", [0.1, 1.5, -1.5, 40.0, -40.0])
def test_bound_from_sums_is_the_bound_of_the_repaired_vector(p, fit_intercept, intercept):
    # At +-40 one class has no mass at all and nothing but zero is feasible.
    problem, width = rows_case(p, fit_intercept=fit_intercept), 0.4
    point = Point(POINT.weights, intercept)
    loss = PowerHinge(p).rounded(width if p < 2 else 0.0)
    sums = MemoryRows(problem).reduce(evaluate, point, loss, False)
    bound, factors = bound_from_sums(sums, problem.objective, problem.design.row_scale)

    alpha = plain(problem, point, width)["alpha"]
    scaled = alpha * np.where(problem.labels > 0, *factors)
    # Relative to the terms of the bound, which may cancel; each is rounded down as its own sums need it.
    size = abs(bound) + alpha.sum()
    assert bound == pytest.approx(dual_bound(problem, alpha), abs=1e-11 * size)
    np.testing.assert_allclose(scaled, repair_dual(problem, alpha), rtol=1e-9, atol=1e-12 * alpha.max())
    assert np.all((factors >= 0) & (factors <= 1))
    if abs(intercept) == 40 and fit_intercept:
        assert bound == pytest.approx(0, abs=1e-9 * size)


# ---------------------------------------------------------------- linear systems


def system_case(n_rows, n_features, *, scales=0.0, zeros=0.3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_features)) * 10 ** rng.uniform(-scales, scales, size=n_features)
    D = rng.uniform(0.1, 5, size=n_rows) * (rng.random(n_rows) >= zeros)
    D[0] = 1.0
    ridge = rng.uniform(0.5, 2, size=n_features)
    return X, D, ridge, rng.normal(size=n_features), float(rng.normal())


def bordered(X, D, ridge):
    Xb = np.column_stack([X, np.ones(len(D))])
    return Xb.T @ (D[:, None] * Xb) + np.diag(np.append(ridge, 0.0))


def exact_solution(X, D, ridge, r_w, r_b, has_intercept=True):
    """(dw, db, g) of the system in rational arithmetic, by Gauss-Jordan elimination."""
    Xb = [[Fraction(value) for value in (*row, 1.0)] for row in X]
    weights, right = [Fraction(d) for d in D], [Fraction(r) for r in (*r_w, r_b)]
    size = len(r_w) + has_intercept
    rows = [
        [sum(d * x[j] * x[k] for d, x in zip(weights, Xb, strict=True)) for k in range(size)] + [right[j]]
        for j in range(size)
    ]
    for j, value in enumerate(ridge):
        rows[j][j] += Fraction(value)
    for k in range(size):
        rows[k] = [value / rows[k][k] for value in rows[k]]
        for i in range(size):
            if i != k:
                rows[i] = [a - rows[i][k] * b for a, b in zip(rows[i], rows[k], strict=True)]
    z = [row[-1] for row in rows] + [Fraction(0)] * (not has_intercept)
    g = [d * sum(a * b for a, b in zip(x, z, strict=True)) for d, x in zip(weights, Xb, strict=True)]
    return np.array(z[:-1], dtype=float), float(z[-1]), np.array(g, dtype=float)


def assert_solves(found, expected, matrix, rel):
    """Equal in the norm of the matrix's diagonal: there errors of features of any size count alike."""
    scale = np.sqrt(np.diagonal(matrix))
    got, want = (np.append(dw, db) * scale for dw, db in (found, expected))
    np.testing.assert_allclose(got, want, rtol=0, atol=rel * np.linalg.norm(want))


@pytest.mark.parametrize("has_intercept", [True, False])
@pytest.mark.parametrize("shape", [(40, 6), (9, 9), (6, 20)])
def test_systems_solve_what_numpy_solves(shape, has_intercept):
    for seed in range(3):
        X, D, ridge, r_w, r_b = system_case(*shape, seed=seed)
        matrix = bordered(X, D, ridge)
        size = shape[1] + has_intercept
        solution = np.linalg.solve(matrix[:size, :size], np.append(r_w, r_b)[:size])
        expected = solution[: shape[1]], float(solution[-1]) if has_intercept else 0.0
        # Condition numbers are below 1e3 here.
        primal = PrimalSystem(bordered_gram(X, D) + np.diag(np.append(ridge, 0)), has_intercept)
        assert_solves(primal.solve(r_w, r_b), expected, matrix, 1e-11)
        for data in (X, sparse.csr_matrix(X), np.asfortranarray(X)):
            assert_solves(DualSystem(data, ridge, D, has_intercept).solve(r_w, r_b), expected, matrix, 1e-11)
        known = DualSystem(X, ridge, D, has_intercept, (X / ridge) @ X.T)
        dw, db, pulls = known.solve_with_multipliers(r_w, r_b)
        assert_solves((dw, db), expected, matrix, 1e-11)
        np.testing.assert_allclose(pulls, D * (X @ expected[0] + expected[1]), atol=1e-11)


@pytest.mark.parametrize("has_intercept", [True, False])
@pytest.mark.parametrize("shape", [(6, 3), (4, 4), (3, 6)])
def test_systems_of_features_from_1e_minus_6_to_1e6(shape, has_intercept):
    for seed in range(5):
        X, D, ridge, r_w, r_b = system_case(*shape, scales=6, seed=seed)
        r_w = r_w * np.abs(X).max(axis=0)  # gradients are of the size of the features
        dw, db, _ = exact_solution(X, D, ridge, r_w, r_b, has_intercept)
        matrix = bordered(X, D, ridge)
        scale = 1 / np.sqrt(np.diagonal(matrix))[: shape[1] + has_intercept]
        scaled = matrix[: len(scale), : len(scale)] * scale * scale[:, None]
        # A backward stable solution of the system with a unit diagonal: rounding times its condition number.
        rel = 1e-14 * np.linalg.cond(scaled) + 1e-13
        primal = PrimalSystem(bordered_gram(X, D) + np.diag(np.append(ridge, 0)), has_intercept)
        assert_solves(primal.solve(r_w, r_b), (dw, db), matrix, rel)
        if shape[0] < shape[1]:  # where it is used; for more rows its own matrix loses what the ridge decides
            found = DualSystem(X, ridge, D, has_intercept).solve(r_w, r_b)
            assert_solves(found, (dw, db), matrix, rel)


@pytest.mark.parametrize("has_intercept", [True, False])
def test_systems_without_an_active_row_have_only_the_ridge(has_intercept):
    X, _, ridge, r_w, _ = system_case(5, 3)
    D = np.zeros(5)
    # The gradient in b is zero then; the intercept has to stay where it is.
    for system in (
        PrimalSystem(bordered_gram(X, D) + np.diag(np.append(ridge, 0)), has_intercept),
        DualSystem(X, ridge, D, has_intercept),
    ):
        dw, db = system.solve(r_w, 0.0)
        np.testing.assert_allclose(dw, r_w / ridge, rtol=1e-15)
        assert db == 0


def test_rows_side_keeps_its_digits_when_row_weights_explode():
    # Near the optimum of an interior point D goes to 1e14 and beyond. g = D (X dw + db) by its definition is
    # then lost to rounding, and with it the direction of alpha: with M > N gaps once got stuck at 1e-7 to 1.
    rng = np.random.default_rng(3)
    X, ridge = rng.normal(size=(4, 7)) * 100, np.ones(7)
    D = np.array([1e14, 3e15, 1e-3, 2e13])
    r_w, r_b = rng.normal(size=7) * 10, 0.3
    exact_w, exact_b, exact_g = exact_solution(X, D, ridge, r_w, r_b)
    dw, db, g = DualSystem(X, ridge, D, True).solve_with_multipliers(r_w, r_b)
    np.testing.assert_allclose(dw, exact_w, atol=1e-12 * np.abs(exact_w).max())
    assert db == pytest.approx(exact_b, rel=1e-10)
    np.testing.assert_allclose(g, exact_g, atol=1e-11 * np.abs(exact_g).max())
    naive = D * (X @ dw + db)
    assert np.abs(naive - exact_g).max() > 1e-2 * np.abs(exact_g).max(), "else this test shows nothing"


def test_robust_cholesky_takes_semi_definite_matrices_and_refuses_others():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(8, 3))
    for matrix in (np.ones((6, 6)), A @ A.T, np.zeros((3, 3)), np.eye(4)):
        L = np.tril(robust_cholesky(matrix))
        np.testing.assert_allclose(L @ L.T, matrix, atol=1e-12 * max(np.trace(matrix), 1e-290))
    for matrix in (-np.eye(3), np.diag([1.0, -0.5]), np.full((2, 2), np.nan)):
        with pytest.raises(linalg.LinAlgError, match="not finite or far from positive definite"):
            robust_cholesky(matrix)


# ---------------------------------------------------------------- the interior point


@pytest.mark.parametrize("p", [1, 1.5, 2, 3])
@pytest.mark.parametrize("target", [1.0, 0.0])
def test_barrier_directions_solve_the_linearised_equations(p, target):
    rng = np.random.default_rng(5)
    costs, gain = rng.uniform(0.3, 3, size=9), rng.normal(size=9) * 2
    barrier = Barrier(costs, PowerHinge(p), target, gain, share=0.2)
    assert np.all(barrier.values > 0)
    np.testing.assert_allclose(barrier.values[2], barrier.values[3] - (target - gain))
    # Somewhere off that start, so that no residual is zero.
    barrier.values[:] = rng.uniform(0.2, 2, size=(4, 9))
    second = np.zeros((2, 9))
    for sigma_mu, correct in ((0.0, False), (0.07, True)):
        d_gain = rng.normal(size=9)
        if correct:
            second = barrier.steps[:2] * barrier.steps[2:]
        barrier.linearise(gain)
        barrier.right_side(sigma_mu, correct)
        barrier.solve(barrier.D * d_gain)
        (alpha, z, s, xi), goal = barrier.values, sigma_mu * costs
        d_alpha, d_z, d_s, d_xi = barrier.steps
        bend = costs * p * (p - 1) * xi ** (p - 2)
        near = {"rtol": 1e-10, "atol": 1e-10}
        # s = xi + gain - target
        np.testing.assert_allclose(s + d_s, xi + d_xi + gain + d_gain - target, **near)
        # c p xi^(p-1) = alpha + z
        slope = costs * p * xi ** (p - 1) + bend * d_xi
        np.testing.assert_allclose(slope, alpha + d_alpha + z + d_z, **near)
        # alpha s = z xi = c sigma mu, up to the predictor's second order
        np.testing.assert_allclose(alpha * s + alpha * d_s + s * d_alpha, goal - second[0], **near)
        np.testing.assert_allclose(z * xi + z * d_xi + xi * d_z, goal - second[1], **near)

    b = barrier
    assert b.complementarity == pytest.approx(alpha @ s + z @ xi)
    length = b.longest_step()
    assert 0 < length < np.inf
    values = list(zip(b.values, b.steps, strict=True))
    assert all(np.all(v + length * d >= -1e-12) for v, d in values)
    assert min((v + 1.01 * length * d).min() for v, d in values) < 0, "a longer step would be possible"
    after = b.complementarity_after(0.5 * length)
    slope, bend = b.complementarity_growth()
    assert after == pytest.approx(b.complementarity + 0.5 * length * slope + (0.5 * length) ** 2 * bend)
    b.move(0.5 * length)
    assert b.complementarity == pytest.approx(after)


def interior_iterates(X, y, costs, *, loss, l1, fit_intercept, start, linear=(0.0, 0.0)):
    """Points, dual vectors and complementarity."""
    problem = ERMProblem.build(X, y, loss=loss, sparsity=l1, weights=costs, fit_intercept=fit_intercept)
    method = InteriorPoint(MemoryRows(problem), start, linear=linear)
    for point, complementarity in method.iterates():
        yield point, method.state.barrier.alpha, complementarity


@pytest.mark.parametrize("shape", [(40, 5), (10, 25)])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("p", [1, 1.5, 2, 3])
def test_interior_path_shrinks_all_residuals_alike(p, fit_intercept, shape):
    X, y = blobs(*shape, seed=4)
    costs = np.random.default_rng(1).uniform(0.2, 2, size=len(y))
    start = Point(np.zeros(shape[1]), 0.0)
    path = []
    for each in interior_iterates(
        X, y, costs, loss=PowerHinge(p), l1=0.0, fit_intercept=fit_intercept, start=start
    ):
        path.append(each)
        if each[2] < 1e-9 * path[0][2]:
            break
    complementarity = np.array([mu for _, _, mu in path])
    assert complementarity[-1] < 1e-9 * complementarity[0]
    assert np.all(np.diff(complementarity) < 0), "it falls at every step of such well-behaved data"
    assert 5 < len(path) <= 30

    residual_w = np.array([w.weights - X.T @ (y * a) for w, a, _ in path])
    residual_b = np.array([y @ a for _, a, _ in path])
    norms = np.linalg.norm(residual_w, axis=1)
    assert np.all(norms[1:] <= norms[:-1] * (1 + 1e-9) + 1e-9 * norms[0])
    assert norms[-1] <= 1e-6 * norms[0]
    # These equations are linear: a step of length t leaves 1 - t of each, the same t for all.
    seen = norms[:-1] > 1e-5 * norms[0]
    ratio = norms[1:][seen] / norms[:-1][seen]
    for k in np.flatnonzero(seen):
        np.testing.assert_allclose(residual_w[k + 1], ratio[k] * residual_w[k], atol=1e-7 * norms[0])
        if fit_intercept:
            assert residual_b[k + 1] == pytest.approx(ratio[k] * residual_b[k], abs=1e-7 * costs.sum())
    assert np.all(path[-1][1] >= 0)


def test_interior_path_with_linear_rows_and_a_penalty_is_optimal():
    # Rows whose loss is linear for sure enter by (a_w, a_b): any vector may, and the optimality conditions of
    # 1/2|w|^2 + a_w.w + a_b b + l|w|_1 + sum c max(0, m) can be read off alpha.
    X, y = blobs(60, 5, seed=8)
    costs, linear_w, linear_b, l1 = np.full(60, 0.7), np.array([0.5, -1, 0, 2, 0.1]), -1.3, 0.4
    for rows in (X, sparse.csr_matrix(X)):
        path = interior_iterates(
            rows,
            y,
            costs,
            loss=PowerHinge(1),
            l1=l1,
            fit_intercept=True,
            start=Point(np.zeros(5), 0.0),
            linear=(linear_w, linear_b),
        )
        point, alpha, _ = next(found for found in path if found[2] < 1e-10)
        u = X.T @ (y * alpha) - linear_w
        np.testing.assert_allclose(point.weights, np.sign(u) * np.maximum(np.abs(u) - l1, 0), atol=1e-7)
        assert y @ alpha == pytest.approx(linear_b, abs=1e-8)
        m = 1 - y * (X @ point.weights + point.intercept)
        np.testing.assert_allclose(alpha[m > 1e-5], costs[m > 1e-5], atol=1e-6)
        np.testing.assert_allclose(alpha[m < -1e-5], 0, atol=1e-6)


def test_interior_path_ends_when_its_numbers_do(monkeypatch):
    X, y = blobs(12, 3, seed=1)
    start = Point(np.zeros(3), 0.0)

    def path(X, costs=1.0):
        with np.errstate(all="ignore"):
            return list(
                interior_iterates(
                    X,
                    y,
                    np.full(12, costs),
                    loss=PowerHinge(1),
                    l1=0.0,
                    fit_intercept=True,
                    start=start,
                )
            )

    assert len(path(X * 1e200)) == 1, "X^T X overflows: only the start is left"
    assert len(path(np.full_like(X, np.nan))) == 1
    assert len(path(X, 1e-280)) < 200, "products of the multipliers are close to where numbers vanish"
    assert len(path(X * 1e-160)) < 200
    monkeypatch.setattr(interior_module, "_MAX_ITER", 3)
    assert len(path(X)) == 3
    monkeypatch.setattr(PrimalSystem, "solve", lambda self, r_w, r_b: (r_w * np.inf, r_b))
    assert len(path(X)) == 1, "a step that is not finite is not taken"


class TooFar:
    """A borrowed Newton system that knows the way down, but not where to stop."""

    def solve(self, r_w, r_b):
        return 1e15 * r_w, 1e15 * r_b


def test_a_borrowed_system_that_is_useless_is_given_back(monkeypatch):
    made, factorised = [], factorised_module.ridged_system
    monkeypatch.setattr(
        factorised_module, "ridged_system", lambda *matrix: made.append(1) or factorised(*matrix)
    )
    problem = build(*blobs(50, 4, seed=1), p=3)
    run, start = Run(problem.objective, 1e-9, 100, None), Point(np.zeros(4), 0.0)
    drive_factorised(run, MemoryRows(problem.reduced()), Guess(start, TooFar()))
    result = run.result()
    assert result.converged
    objective, zero = result.history.objective, problem.value(np.zeros((4, 1)), np.zeros(1))
    assert objective[0] == zero, "no step that long helps, not even its 2^-23rd part"
    assert np.all(np.diff(objective) < 0)
    assert len(made) == len(objective) - 1, "its own systems from then on"


def test_newton_on_the_primal_ends_at_its_limit(monkeypatch):
    monkeypatch.setattr(factorised_module, "_MAX_ITER", 2)
    problem = build(*blobs(50, 4, seed=1), p=3, cost=100.0)
    run = Run(problem.objective, 1e-10, 100, None)
    drive_factorised(run, MemoryRows(problem.reduced()), Guess(Point(np.zeros(4), 0.0)))
    assert not run.is_over
    assert run.result().n_iter == 1
    rest = solve_newton(problem, tol=1e-10, options=NewtonOptions("semismooth"))
    assert rest.converged, "the interior point takes over"


def test_exact_zeros_follow_the_dual_vector():
    X, y = blobs(40, 8, seed=0, noise=0.3)
    problem = build(X, y, p=1, sparsity=8.0).reduced()
    alpha = solve_newton(problem, tol=1e-9).dual
    u = np.abs(X.T @ (y * alpha))
    point = with_exact_zeros(Point(np.ones(8), 2.0), dual_weights_of(problem, alpha), problem.penalty)
    np.testing.assert_array_equal(point.weights, (u > 8.0).astype(float))
    assert point.intercept == 2
    assert 0 < point.weights.sum() < 8


def interior_run(problem, monkeypatch, tol=1e-4, max_steps=None):
    """The result of an interior point on its own from zero, and the points that it certified."""
    proven, certify = [], InteriorPoint.certify
    monkeypatch.setattr(InteriorPoint, "certify", lambda self, at: proven.append(at) or certify(self, at))
    if max_steps is not None:
        step, done = InteriorPoint.step, []
        monkeypatch.setattr(
            InteriorPoint, "step", lambda method: len(done) < max_steps and (done.append(1) or step(method))
        )
    zero = Point(np.zeros(problem.design.n_features), 0.0)
    run = Run(problem.objective, tol, 100, None)
    drive_interior(run, MemoryRows(problem), Guess(zero))
    return run.result(problem.design.n_rows), proven


def test_an_interior_point_proves_only_what_is_near_its_end(monkeypatch):
    problem = build(*blobs(150, 8), p=1, cost=0.2)
    best = solve_newton(problem, tol=1e-9).objective
    result, proven = interior_run(problem, monkeypatch)
    assert result.converged
    assert_honest(result, best)
    assert len(proven) <= 2 < result.n_iter
    assert np.any(proven[0].weights), "zero is far"
    # A tolerance that zero meets is met there, at once.
    result, proven = interior_run(problem, monkeypatch, tol=1.0)
    assert result.converged
    assert not np.any(proven[0].weights)


@pytest.mark.parametrize("max_steps", [0, 1])
def test_an_interior_point_that_stalls_offers_where_it_began(monkeypatch, max_steps):
    problem = build(*blobs(150, 8), p=1, cost=0.2)
    best = solve_newton(problem, tol=1e-9).objective
    result, proven = interior_run(problem, monkeypatch, max_steps=max_steps)
    assert not result.converged
    assert result.n_iter == 1
    assert not np.any(proven[-1].weights)
    assert len(proven) == 1 + max_steps
    assert result.objective <= problem.value(np.zeros((8, 1)), np.zeros(1))
    assert_honest(result, best)


# ---------------------------------------------------------------- screening and sampling


@pytest.fixture(scope="module")
def many():
    """25,000 rows, p = 1, and their certified optimum without any screening or sampling."""
    X, y = blobs(25_000, 3, seed=6)
    problem = build(X, y, p=1, cost=0.1).reduced()
    assert problem.design.n_rows > MANY_ROWS
    return certified_by_interior(problem)


def certified_by_interior(problem):
    run = Run(problem.objective, 1e-9, 100, None)
    zero = Point(np.zeros(3), 0.0)
    drive_interior(run, MemoryRows(problem), Guess(zero))
    result = run.result()
    assert result.converged
    return problem, result


def penalised(problem, sparsity):
    return problem.changed(regulariser=ExclusivityRegulariser(1.0, sparsity))


def shortfall_at(problem, point):
    return 1 - problem.labels * (problem.design.X @ point.weights + point.intercept)


def working_set(problem, point, width, most):
    """The working set around a point, its optimum, and the dual vector of all rows there."""
    rows = MemoryRows(problem)
    inside = rows.reduce(near_margin, point, width, most)
    goal = 1e-9 * problem.value(point.weights[:, None], np.array([point.intercept]))
    found, sums, alpha = solve_inside(inside, problem.objective, point, goal)
    bound, factors = bound_from_sums(sums, problem.objective, problem.row_scale)
    return inside, found, bound, rows.reduce(dual_of, point, width, most, alpha, factors)


@pytest.mark.parametrize("most", [5000, 1500])
def test_a_working_set_around_the_right_margin_gives_the_optimum(many, most):
    problem, result = many
    optimum = Point(result.weights[:, 0], float(result.intercepts[0]))
    m = shortfall_at(problem, optimum)
    inside, point, bound, alpha = working_set(problem, optimum, 0.1, most)
    assert len(inside.shortfall) == min(np.count_nonzero(np.abs(m) <= 0.1), most) < 0.2 * len(m)
    assert inside.is_cut == (np.count_nonzero(np.abs(m) <= 0.1) > most)
    value = problem.value(point.weights[:, None], np.array([point.intercept]))
    assert value == pytest.approx(result.objective, rel=1e-8)
    assert bound == pytest.approx(result.objective, rel=1e-8)
    assert dual_bound(problem, alpha) == pytest.approx(bound, rel=1e-10)
    # Rows outside are what they looked like.
    np.testing.assert_array_equal(alpha[m < -0.1], 0)
    np.testing.assert_allclose(alpha[m > 0.1], member_costs(problem)[m > 0.1], rtol=1e-9)
    # A tolerance that rounding does not allow: it is solved as far as it goes.
    with np.errstate(all="ignore"):  # as in solve_newton
        last, *_ = solve_inside(inside, problem.objective, optimum, 0.0)
    value = problem.value(last.weights[:, None], np.array([last.intercept]))
    assert value == pytest.approx(result.objective, rel=1e-8)


WRONG = [
    Point(np.array([3.0, -2.0, 1.0]), 0.5),
    Point(np.zeros(3), 3.0),
    Point(np.full(3, 50.0), -900.0),
    Point(np.array([3e4, -2e4, 1e4]), 50.0),
]


@pytest.mark.parametrize("guess", WRONG)
@pytest.mark.parametrize("width", [1e-3, 0.1, 1.0])
def test_a_working_set_around_a_wrong_margin_is_honest(many, guess, width):
    problem, result = many
    inside = MemoryRows(problem).reduce(near_margin, guess, width, 5000)
    if not inside.can_balance(fit_intercept=True):
        return  # nothing is solved then: the intercept would run away
    _, point, bound, alpha = working_set(problem, guess, width, 5000)
    value = problem.value(point.weights[:, None], np.array([point.intercept]))
    assert bound <= result.objective * (1 + 1e-12)
    assert dual_bound(problem, alpha) <= result.objective * (1 + 1e-12)
    assert np.isfinite(value), "the rows inside must be able to hold the intercept"
    assert value - bound > 0.01 * value, "else the guess was not wrong at all"


# Truncated Newton takes over from a wide band.
@pytest.mark.parametrize("sparsity", [0.0, 5.0])
@pytest.mark.parametrize("guess", WRONG)
def test_a_wrong_margin_costs_time_but_nothing_else(many, guess, sparsity):
    problem, result = many if sparsity == 0 else certified_by_interior(penalised(many[0], sparsity))
    run = Run(problem.objective, 1e-6, 50, None)
    sample = sample_rows(problem)
    drive_shrinking(run, MemoryRows(problem), SampleOptimum(sample.problem, guess, sample.fraction))
    if not run.is_over:
        continue_run(run, MemoryRows(problem), "interior", Guess(run.best))
    found = run.result()
    assert found.converged
    assert found.objective == pytest.approx(result.objective, rel=1e-6)
    assert_honest(found, result.objective)
    assert found.n_iter <= 40
    assert np.all(np.diff(found.history.passes) > 0)


def test_what_bands_leave_open_is_closed_from_the_best_point(many):
    # No tolerance can be 0: once every row is inside, the plain interior point goes on from where they got.
    problem, result = certified_by_interior(penalised(many[0], 5.0))
    start = Start(WRONG[2].weights[:, None], np.array([WRONG[2].intercept]))
    whole = solve_newton(problem, tol=0.0, start=start, max_iter=40)
    objective = whole.history.objective
    assert problem.value(start.weights, start.intercepts) > 100 * result.objective
    good = int(np.argmax(objective < 1.01 * result.objective))
    assert objective[good] < 1.01 * result.objective
    assert good < 30
    assert np.all(objective[good:] < 1.1 * result.objective)
    assert_honest(whole, result.objective)


def test_bands_with_a_penalty_end_in_exact_zeros():
    X, y = blobs(21_000, 6, seed=2)
    X[:, 4:] = np.random.default_rng(0).normal(size=(21_000, 2)) * 0.01
    problem = build(X, y, p=1, cost=0.1, sparsity=20.0)
    result = solve_newton(problem, tol=1e-7)
    assert result.converged
    assert np.all(result.weights[4:] == 0)
    assert np.all(result.weights[:3] != 0)


def test_rows_outside_that_those_inside_cannot_balance_are_noticed():
    X, y = blobs(400, 2, seed=3)
    y = np.where(np.arange(400) % 2, 1.0, -1.0)
    problem = build(X, y, p=1).reduced()
    # Around zero all shortfalls are 1: a working set of any smaller width is empty.
    nothing = MemoryRows(problem).reduce(near_margin, Point(np.zeros(2), 0.0), 0.1, 400)
    assert len(nothing.shortfall) == 0
    assert not nothing.can_balance(fit_intercept=True)
    assert nothing.can_balance(fit_intercept=False), "without an intercept there is nothing to balance"
    whole = MemoryRows(problem).reduce(near_margin, Point(np.zeros(2), 0.0), 2.0, 400)
    assert len(whole.shortfall) == 400
    assert whole.can_balance(fit_intercept=True)


def test_the_first_width_shrinks_with_the_root_of_the_rows():
    def width(n_rows, cost, length):
        X = np.where(np.arange(n_rows) % 2, 1.0, -1.0)[:, None]  # scores of this length
        problem = build(X, X[:, 0], p=1, cost=cost)
        return SampleOptimum(problem, Point(np.array([length]), 0.0), 0.1).width()

    assert width(100, 4.0, 1.0) == pytest.approx(2 * width(400, 1.0, 1.0))
    assert width(400, 1.0, 7.0) == pytest.approx(7 * width(400, 1.0, 1.0))
    # Small scores are measured by the margin, unless costs are too small for alphas to matter.
    assert width(400, 1.0, 0.1) == width(400, 1.0, 1.0)
    assert width(400, 1e-3, 0.1) == pytest.approx(0.4 * width(400, 1.0, 1.0))
    assert width(400, 1.0, 0.0) == width(400, 1.0, 1.0)


def test_sample_is_deterministic_and_keeps_the_total_weight():
    rng = np.random.default_rng(0)
    X, y = blobs(MANY_ROWS + 5, 2)
    weights = rng.uniform(0.5, 2, size=len(y))
    problem = build(X, y, p=1.5, cost=3.0, weights=weights)
    sample, again = sample_rows(problem), sample_rows(problem)
    assert sample.fraction == pytest.approx(0.1, rel=1e-3)
    sample, again = sample.problem, again.problem
    assert sample.design.n_rows == len(y) // 10
    np.testing.assert_array_equal(sample.design.X, again.design.X)
    np.testing.assert_array_equal(sample.weights, again.weights)
    assert sample.weights.sum() == pytest.approx(weights.sum(), rel=1e-12)
    assert (sample.cost, sample.loss, sample.regulariser) == (problem.cost, problem.loss, problem.regulariser)
    # Each row of the sample is a row of the problem, in order, with its label and its share of the weight.
    position = {tuple(row): i for i, row in enumerate(X)}
    chosen = np.array([position[tuple(row)] for row in sample.design.X])
    assert np.all(np.diff(chosen) > 0)
    np.testing.assert_array_equal(sample.labels, y[chosen])
    ratio = sample.weights / weights[chosen]
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-12)
    csr = sample_rows(problem.changed(design=DesignMatrix(sparse.csr_matrix(X)))).problem
    np.testing.assert_array_equal(csr.design.X.toarray(), sample.design.X)


def test_no_sample_of_few_rows_or_of_one_class():
    X, y = blobs(MANY_ROWS + 5, 2)
    small = build(X[:MANY_ROWS], y[:MANY_ROWS])
    assert sample_rows(small) is None
    chosen = {tuple(row) for row in sample_rows(build(X, y)).problem.design.X}
    missed = next(i for i, row in enumerate(X) if tuple(row) not in chosen)
    lonely = -np.ones(len(y))
    lonely[missed] = 1
    problem = build(X, lonely, p=2)
    assert sample_rows(problem) is None
    assert solve_newton(problem, tol=1e-6).converged


# ---------------------------------------------------------------- regimes


def regime_of(p, n_rows, n_features, beta=0.0):
    X = np.broadcast_to(np.zeros(1), (n_rows, n_features))  # dense, without the memory
    problem = build(X, np.where(np.arange(n_rows) % 2, 1.0, -1.0), p=p, sparsity=beta)
    return choose_regime(problem.objective, RowFacts.of(problem), "auto")


def test_regimes_by_shape_p_and_penalty():
    assert regime_of(2, 50, 5) == "semismooth"
    assert regime_of(3, 50, 500) == "semismooth"
    assert regime_of(1.5, 50, 5) == "interior"
    assert regime_of(1.5, 20_001, 5) == "semismooth"
    assert regime_of(1, 50, 5) == "interior"
    assert regime_of(2, 50, 5, beta=0.1) == "semismooth"
    assert regime_of(1.5, 50, 5, beta=0.1) == "interior"
    for p in (1, 1.5, 2):
        assert regime_of(p, 4097, 4097) == "iterative"
        assert regime_of(p, 4097, 4096) != "iterative"
        assert regime_of(p, 4097, 4097, beta=0.1) == "iterative"


def test_regimes_that_cannot_are_refused():
    X, y = blobs(20, 2)
    with pytest.raises(ValueError, match="one of auto, semismooth, interior, iterative; got 'best'"):
        NewtonOptions("best")
    with pytest.raises(ValueError, match="needs p > 1"):
        solve_newton(build(X, y, p=1), options=NewtonOptions("semismooth"))
    with pytest.raises(ValueError, match="makes the problem non-convex"):
        solve_newton(build(X, y, exclusivity=2.0, n_members=2))


def test_a_system_learns_the_curvature_along_its_steps():
    rng = np.random.default_rng(0)
    A, B = (np.eye(4) + factor @ factor.T for factor in rng.normal(size=(2, 4, 4)))
    system = LearningSystem(PrimalSystem(A.copy(), has_intercept=True))
    steps = rng.normal(size=(3, 4))
    for step in steps:
        system.learn(step, B @ step)
        dw, db = system.solve(*split(B @ step))
        np.testing.assert_allclose([*dw, db], step, atol=1e-10)  # the secant condition of the last step
    inverse = np.array([[*dw, db] for dw, db in (system.solve(*split(unit)) for unit in np.eye(4))])
    np.testing.assert_allclose(inverse, inverse.T, atol=1e-10)
    assert np.linalg.eigvalsh(inverse).min() > 0
    system.learn(steps[0], -steps[0])  # no convex function has such a curvature: nothing to learn
    np.testing.assert_allclose(system.solve(*split(np.ones(4)))[0], inverse.sum(axis=0)[:3], atol=1e-10)


def split(vector):
    return vector[:-1], float(vector[-1])
