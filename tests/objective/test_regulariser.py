"""The exclusivity regulariser against loops, its proximal map against the enumeration of all supports."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st
from hypothesis.extra.numpy import arrays

from exclusivity.objective.objective import ExclusivityRegulariser, relaxed_exclusivity

gammas = st.one_of(st.sampled_from([0.0, 0.3, 1.0, 2.0, 10.0]), st.floats(0, 10))
betas = st.one_of(st.just(0.0), st.floats(0, 3))
mus = st.floats(-4, 5).map(lambda exponent: 10.0**exponent)
# Quarters make ties and zeros; the others are in general position.
entries = st.one_of(st.integers(-8, 8).map(lambda i: i / 4), st.floats(-5, 5))
rows = st.integers(1, 5).flatmap(lambda k: arrays(float, k, elements=entries))


def value_by_pairs(W, gamma, beta):
    """1/2 |W|_F^2 + gamma sum over unordered pairs of members of X_r(w_k, w_k') + beta |W|_1."""
    members = W.T
    value = sum(w * w for w in W.ravel()) / 2 + beta * sum(abs(w) for w in W.ravel())
    for u, v in combinations(members, 2):
        value += gamma * sum(abs(a) * abs(b) for a, b in zip(u, v, strict=True))
    return value


def prox_objective(x, v, mu, gamma, beta):
    """What the W step minimises for one row."""
    l1 = np.abs(x).sum()
    return mu / 2 * ((x - v) ** 2).sum() + gamma / 2 * l1**2 + (1 - gamma) / 2 * (x**2).sum() + beta * l1


def prox_by_enumeration(v, mu, gamma, beta):
    """The best stationary point over all supports, and its objective.

    A minimiser has the signs of v (turning a wrong sign round only brings x nearer to v). With the
    support S given, the sizes u_i = |x_i| solve mu (u_i - |v_i|) + gamma sum_S u + (1-gamma) u_i + beta = 0.
    A singular system (a = mu + 1 - gamma = 0) has a flat direction, which ends in a smaller support.
    """
    signs, K = np.where(v < 0, -1.0, 1.0), len(v)
    best = np.zeros(K)
    for size in range(1, K + 1):
        for support in map(list, combinations(range(K), size)):
            system = (mu + 1 - gamma) * np.eye(size) + gamma * np.ones((size, size))
            try:
                sizes = np.linalg.solve(system, mu * np.abs(v[support]) - beta)
            except np.linalg.LinAlgError:
                continue
            if np.all(sizes > 0):
                x = np.zeros(K)
                x[support] = signs[support] * sizes
                best = min(best, x, key=lambda candidate: prox_objective(candidate, v, mu, gamma, beta))
    return best, prox_objective(best, v, mu, gamma, beta)


# --- value --------------------------------------------------------------------------------------------


@given(
    W=st.tuples(st.integers(1, 4), st.integers(1, 5)).flatmap(
        lambda shape: arrays(float, shape, elements=entries)
    ),
    gamma=gammas,
    beta=betas,
)
@settings(max_examples=100, deadline=None)
def test_value_is_the_sum_over_unordered_pairs(W, gamma, beta):
    value = ExclusivityRegulariser(gamma, beta).value(W)
    assert value == pytest.approx(value_by_pairs(W, gamma, beta), rel=1e-12, abs=1e-12)
    # The same with the package's own measure, Definition 2 of the paper.
    shared = sum(relaxed_exclusivity(u, v) for u, v in combinations(W.T, 2))
    assert value == pytest.approx(
        (W**2).sum() / 2 + gamma * shared + beta * np.abs(W).sum(), rel=1e-12, abs=1e-12
    )


def test_value_of_the_paper_is_half_the_squared_mixed_norm():
    W = np.array([[1.0, -2.0, 0.0], [0.5, 0.5, 3.0]])
    assert ExclusivityRegulariser().value(W) == (3.0**2 + 4.0**2) / 2
    assert ExclusivityRegulariser(0.0).value(W) == (1 + 4 + 0.25 + 0.25 + 9) / 2
    # beta is the paper's extra column: 1/2 (|W_j|_1 + beta)^2 without its constant.
    assert ExclusivityRegulariser(1.0, 2.0).value(W) == ((3.0 + 2) ** 2 + (4.0 + 2) ** 2) / 2 - 2 * 2.0**2 / 2


@pytest.mark.parametrize(("gamma", "kappa"), [(0.0, 1.0), (0.3, 1.9), (1.0, 4.0), (2.0, 7.0)])
def test_kappa_is_the_stiffness_of_equal_members(gamma, kappa):
    """Four equal members cost 4 kappa times what one of them costs alone."""
    member = np.array([[0.5], [-2.0], [1.5]])
    regulariser = ExclusivityRegulariser(gamma)
    assert regulariser.kappa(4) == pytest.approx(kappa, rel=1e-15)
    assert regulariser.value(np.repeat(member, 4, axis=1)) == pytest.approx(
        4 * kappa * regulariser.value(member)
    )


# --- the exact W step ---------------------------------------------------------------------------------


@given(v=rows, mu=mus, gamma=gammas, beta=betas)
@settings(max_examples=400, deadline=None)
def test_prox_is_the_best_of_all_supports(v, mu, gamma, beta):
    curvature = mu + 1 - gamma
    assume(abs(curvature) >= 1e-6 * (1 + mu))  # nearer to zero: test_prox_where_the_curvature_nearly_vanishes
    x = ExclusivityRegulariser(gamma, beta).prox(v[None, :], mu)[0]
    best, objective = prox_by_enumeration(v, mu, gamma, beta)
    # An error of 1e-10 |v| in x (1e-16 divided by the curvature) costs (1 + mu + K gamma) 1e-20 |v|^2.
    scale = (1 + mu) * (1 + v @ v)
    assert prox_objective(x, v, mu, gamma, beta) <= objective + 1e-14 * scale
    if curvature > 0:
        # One minimiser; supports whose objectives differ by eps * objective cannot be told apart, and
        # then entries differ by sqrt(2 eps mu |v|^2 / curvature).
        np.testing.assert_allclose(x, best, atol=1e-7 * (1 + np.abs(v).max()) * max(1, mu / curvature) ** 0.5)
    assert np.all((x == 0) | (np.sign(x) == np.sign(v)))


@given(v=rows, mu=mus, gamma=gammas, beta=betas)
@settings(max_examples=200, deadline=None)
def test_prox_meets_the_optimality_conditions(v, mu, gamma, beta):
    """0 in mu (x - v) + (1-gamma) x + (gamma |x|_1 + beta) d|x|: enough where mu + 1 - gamma > 0."""
    curvature = mu + 1 - gamma
    assume(curvature >= 1e-6 * (1 + mu))
    x = ExclusivityRegulariser(gamma, beta).prox(v[None, :], mu)[0]
    pull = gamma * sum(abs(x)) + beta
    # x is good to eps mu |v| / curvature, and a change of x moves the pull gamma times as far.
    rounding = 1e-14 * (mu * np.abs(v).sum() + beta) * (1 + gamma / curvature) + 1e-300
    for entry, target in zip(x, v, strict=True):
        if entry != 0:
            assert mu * (entry - target) + (1 - gamma) * entry + pull * np.sign(entry) == pytest.approx(
                0, abs=rounding
            )
        else:
            assert mu * abs(target) <= pull + rounding


@given(v=rows, mu=mus, excess=st.floats(0, 9), beta=betas)
@settings(max_examples=200, deadline=None)
def test_prox_without_curvature_keeps_one_entry(v, mu, excess, beta):
    """For mu + 1 - gamma <= 0, the region that random gamma seldom hits."""
    gamma = mu + 1 + excess * (1 + mu)
    assert mu + 1 - gamma <= 1e-15 * gamma
    assume(mu + 1 - gamma <= 0)
    x = ExclusivityRegulariser(gamma, beta).prox(v[None, :], mu)[0]
    assert np.count_nonzero(x) <= 1
    objective = prox_by_enumeration(v, mu, gamma, beta)[1]
    scale = (1 + mu + gamma) * (1 + v @ v)
    assert prox_objective(x, v, mu, gamma, beta) == pytest.approx(objective, abs=1e-14 * scale)


@pytest.mark.parametrize("curvature", [1e-3, 1e-6, 1e-9, 1e-12, 3e-16, 0.0, -1e-12])
@pytest.mark.parametrize("beta", [0.0, 0.5])
def test_prox_where_the_curvature_nearly_vanishes(curvature, beta):
    """One entry survives, u = (mu |v| - beta)/(mu + 1), whatever the sign of the curvature mu + 1 - gamma.

    With the entries this far apart the minimiser hardly depends on the curvature, so no digits need be lost.
    """
    mu, v = 0.7, 3.1
    gamma = mu + 1 - curvature
    x = ExclusivityRegulariser(gamma, beta).prox(np.array([[1.1, -v, 0.2]]), mu)
    np.testing.assert_allclose(x, [[0.0, -(mu * v - beta) / (mu + 1), 0.0]], rtol=1e-9)


@given(v=rows, mu=mus, gamma=gammas, beta=betas, seed=st.integers(0, 1000))
@settings(max_examples=100, deadline=None)
def test_prox_commutes_with_permutations_and_signs(v, mu, gamma, beta, seed):
    if mu + 1 - gamma <= 0:
        sizes = np.sort(np.maximum(np.abs(v) - beta / mu, 0.0))
        assume(len(v) == 1 or sizes[-1] > sizes[-2])  # a tie for the one survivor has no equivariant answer
    rng = np.random.default_rng(seed)
    order, signs = rng.permutation(len(v)), rng.choice([-1.0, 1.0], len(v))
    prox = ExclusivityRegulariser(gamma, beta).prox
    # Sorted sums do not depend on the order: equal to the last bit.
    np.testing.assert_array_equal(
        prox((signs * v)[order][None], mu)[0], (signs * prox(v[None], mu)[0])[order]
    )


def test_prox_treats_rows_one_by_one_and_leaves_its_input():
    rng = np.random.default_rng(5)
    V = rng.normal(size=(50, 4)) * 10 ** rng.uniform(-3, 3, size=(50, 1))
    before = V.copy()
    for gamma in (0.0, 0.7, 1.0, 1.5, 4.0):
        prox = ExclusivityRegulariser(gamma, 0.1).prox
        np.testing.assert_array_equal(prox(V, 1.3), np.vstack([prox(v[None], 1.3) for v in V]))
    np.testing.assert_array_equal(V, before)


def test_prox_of_the_paper_by_its_formula():
    """tau = max_k cumsum_k / (mu + k), math.md section 4, on a row done by hand: mu = 1, v = (4, -2, 1).

    tau = max(4/2, 6/3, 7/4) = 2, x = (2, 0, 0): check mu (x_1 - v_1) + |x|_1 = 1 (2 - 4) + 2 = 0.
    """
    np.testing.assert_array_equal(
        ExclusivityRegulariser().prox(np.array([[4.0, -2.0, 1.0]]), 1.0), [[2, 0, 0]]
    )


# --- Algorithm 1 --------------------------------------------------------------------------------------


def run_algorithm_1(v, mu, regulariser, n_iter, *, start=None, eps=1e-12, tol=0.0):
    start = np.ones((1, len(v))) if start is None else start
    return regulariser.reweighted(v[None], mu, start, eps=eps, max_iter=n_iter, tol=tol)[0]


def random_instances(n, K=8):
    return np.random.default_rng(11).normal(size=(n, K))


def test_reweighting_converges_to_the_exact_step_but_slowly():
    """Theorem 1 and fact 3.5: some row is still off by 1e-3 after 100 steps and right after 3000."""
    regulariser, V = ExclusivityRegulariser(), random_instances(200)
    exact, error = regulariser.prox(V, 1.0), {}
    for n in (100, 3000):
        H = regulariser.reweighted(V, 1.0, np.ones(V.shape), eps=1e-12, max_iter=n, tol=0.0)
        error[n] = np.abs(H - exact).max(axis=1)
    assert np.any((error[100] > 1e-3) & (error[3000] < 1e-8))
    assert np.all(error[3000] <= np.maximum(error[100], 1e-9))
    assert np.median(error[3000]) < 1e-10
    # An entry just outside the support dies out with the ratio mu |v_i| / (gamma |x|_1), just below 1.
    assert error[3000].max() < 1e-2


@pytest.mark.parametrize(
    ("gamma", "beta", "mu"), [(0.0, 0.0, 2.0), (0.3, 0.5, 1.0), (1.0, 0.5, 3.0), (1.5, 0.2, 1.0)]
)
def test_reweighting_with_gamma_and_beta(gamma, beta, mu):
    """Fact 3.9, G = (gamma |W_j|_1 + beta)/(|W_jk| + eps) + 1 - gamma."""
    regulariser = ExclusivityRegulariser(gamma, beta)
    V = random_instances(12, K=4)
    exact = regulariser.prox(V, mu)
    errors = np.abs(
        regulariser.reweighted(V, mu, np.ones(V.shape), eps=1e-12, max_iter=5000, tol=0) - exact
    ).max(axis=1)
    assert np.median(errors) < 1e-9
    assert errors.max() < 1e-3


@given(v=rows, mu=st.floats(0.05, 50), gamma=st.floats(0, 1.04), beta=betas, seed=st.integers(0, 1000))
@settings(max_examples=60, deadline=None)
def test_reweighting_never_raises_the_objective(v, mu, gamma, beta, seed):
    """Each step minimises a majorant. (With eps -> 0; a positive eps adds an error of its order.)"""
    regulariser = ExclusivityRegulariser(gamma, beta)
    H = np.random.default_rng(seed).uniform(0.1, 2, size=(1, len(v)))
    values = [prox_objective(H[0], v, mu, gamma, beta)]
    for _ in range(40):
        H = regulariser.reweighted(v[None], mu, H, eps=1e-200, max_iter=1, tol=0.0)
        values.append(prox_objective(H[0], v, mu, gamma, beta))
    # The first step may turn signs to those of v; from then on as well as before, nothing goes up.
    assert np.all(np.diff(values) <= 1e-13 * (1 + abs(values[0])))


def test_reweighting_many_steps_are_single_steps_repeated():
    regulariser, V = ExclusivityRegulariser(0.8, 0.1), random_instances(6, K=3)
    H = np.ones(V.shape)
    for _ in range(25):
        H = regulariser.reweighted(V, 0.7, H, eps=1e-8, max_iter=1, tol=0.0)
    together = regulariser.reweighted(V, 0.7, np.ones(V.shape), eps=1e-8, max_iter=25, tol=0.0)
    np.testing.assert_array_equal(together, H)


def test_reweighting_one_step_is_equations_10_and_11():
    v, h, mu, eps, gamma, beta = [0.7, -1.2], [0.4, -0.1], 1.5, 1e-3, 0.6, 0.2
    expected = []
    for k in range(2):
        G = (gamma * (abs(h[0]) + abs(h[1])) + beta) / (abs(h[k]) + eps) + 1 - gamma
        expected.append(mu * v[k] / (G + mu))
    step = ExclusivityRegulariser(gamma, beta).reweighted(
        np.array([v]), mu, np.array([h]), eps=eps, max_iter=1, tol=0.0
    )
    np.testing.assert_allclose(step, [expected], rtol=1e-14)


def test_reweighting_keeps_zeros_of_its_start_nearly_zero():
    """So it does not converge to the exact step from there: Theorem 1 needs a start without zeros."""
    v, regulariser = np.array([3.0, 1.0, 2.9]), ExclusivityRegulariser()
    start = np.array([[1.0, 1.0, 0.0]])
    exact = regulariser.prox(v[None], 1.0)[0]
    assert exact[2] > 0.5
    stuck = run_algorithm_1(v, 1.0, regulariser, 5, start=start, eps=1e-12)
    assert 0 < stuck[2] < 1e-8
    assert np.abs(stuck - exact).max() > 0.5


def test_reweighting_stops_each_row_on_its_own():
    """A row that has converged is not touched any more while others go on."""
    regulariser, mu = ExclusivityRegulariser(), 1.0
    V = random_instances(30)
    tol = 1e-3
    together = regulariser.reweighted(V, mu, np.ones(V.shape), eps=1e-12, max_iter=500, tol=tol)
    single = np.vstack([run_algorithm_1(v, mu, regulariser, 500, tol=tol) for v in V])
    np.testing.assert_array_equal(together, single)
    # The rule holds at the point returned: one more step moves no row by more than about tol.
    again = regulariser.reweighted(V, mu, together, eps=1e-12, max_iter=1, tol=0.0)
    assert np.all(np.abs(again - together).max(axis=1) <= 1.1 * tol * np.abs(together).max(axis=1))
    full = regulariser.reweighted(V, mu, np.ones(V.shape), eps=1e-12, max_iter=500, tol=0.0)
    assert np.abs(full - together).max() > 1e-4  # and it did stop early


def test_reweighting_without_steps_returns_a_copy_of_its_start():
    start = np.array([[1.0, 2.0]])
    result = ExclusivityRegulariser().reweighted(start, 1.0, start, eps=1e-8, max_iter=0, tol=0.0)
    np.testing.assert_array_equal(result, start)
    result[0, 0] = 7.0
    assert start[0, 0] == 1.0


@pytest.mark.parametrize("gamma", [2.0, 2.5])
def test_reweighting_is_refused_without_curvature(gamma):
    with pytest.raises(ValueError, match="mu > exclusivity - 1"):
        run_algorithm_1(np.array([1.0, 2.0]), 1.0, ExclusivityRegulariser(gamma), 1)


# --- parameters ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [-1e-9, -1.0, np.nan, np.inf, -np.inf])
def test_sparsity_must_be_finite_and_not_negative(value):
    with pytest.raises(ValueError, match="sparsity must be a finite number >= 0"):
        ExclusivityRegulariser(sparsity=value)
    with pytest.raises(ValueError, match="sparsity must be a finite number >= 0"):
        ExclusivityRegulariser(sparsity=np.array([1.0, value]))


@pytest.mark.parametrize("value", [-1e-9, -1.0, np.nan, -np.inf])
def test_exclusivity_must_not_be_negative(value):
    with pytest.raises(ValueError, match="exclusivity must be a number >= 0, or infinite"):
        ExclusivityRegulariser(value)


# --- the limit gamma = inf, and one sparsity per feature -------------------------------------------------


def test_infinite_exclusivity_is_the_limit_of_large_values():
    disjoint, shared = np.array([[1.0, 0.0], [0.0, -2.0]]), np.array([[1.0, 1e-9], [0.0, -2.0]])
    limit = ExclusivityRegulariser(np.inf, 0.5)
    assert limit.value(disjoint) == ExclusivityRegulariser(1e9, 0.5).value(disjoint) == 2.5 + 1.5
    assert limit.value(shared) == np.inf
    points = np.random.default_rng(0).normal(size=(20, 4))
    np.testing.assert_allclose(limit.prox(points, 3.0), ExclusivityRegulariser(1e9, 0.5).prox(points, 3.0))
    assert np.all(np.count_nonzero(limit.prox(points, 3.0), axis=1) <= 1)
    assert limit.kappa(1) == 1
    assert limit.kappa(2) == np.inf


@pytest.mark.parametrize("gamma", [0.0, 1.0, 3.0])
def test_one_sparsity_per_feature_is_row_by_row(gamma):
    rng = np.random.default_rng(1)
    W, betas = rng.normal(size=(6, 3)), np.array([0.0, 0.1, 1.0, 0.0, 2.0, 0.5])
    whole = ExclusivityRegulariser(gamma, betas)
    rows = [ExclusivityRegulariser(gamma, beta) for beta in betas]
    assert whole.value(W) == pytest.approx(sum(rows[j].value(W[j : j + 1]) for j in range(6)))
    apart = np.vstack([rows[j].prox(W[j : j + 1], 4.0) for j in range(6)])
    np.testing.assert_allclose(whole.prox(W, 4.0), apart)
    settings = {"eps": 1e-12, "max_iter": 50, "tol": 0.0}
    apart = np.vstack([rows[j].reweighted(W[j : j + 1], 4.0, np.ones((1, 3)), **settings) for j in range(6)])
    np.testing.assert_allclose(whole.reweighted(W, 4.0, np.ones((6, 3)), **settings), apart)
