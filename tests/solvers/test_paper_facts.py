"""The numbered facts of math.md section 3 and the paper's statements of section 9, one test or more for each.

`algorithm2` below is a transcription of the paper's text (its symbols, its layout with samples as columns of
X, a loop over the rows of W); `solve_paper` has to walk through the same points. Fact 7 is in
test_ridge_systems.py, fact 11 in test_paper_table.py, Theorem 1 with the regulariser's tests.
"""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from conic import solve_conic
from exclusivity.objective.estimates import dual_from_scores
from exclusivity.objective.objective import ERMProblem, ExclusivityRegulariser, dual_bound
from exclusivity.solvers import AlmOptions, PaperOptions, solve_alm, solve_newton, solve_paper

LAM = 2.0

# The transcription inverts I + X X^T, the package factorises it: 1e-10 of the largest entry is far more than
# their roundings, and far less than any difference in the method would make.
SAME = 1e-10


# The paper's text ---------------------------------------------------------------------------------


def algorithm1(W, P, Q, mu, eps, gamma, beta):
    """The W solver, Eqs. (10) and (11), with the reweighting of fact 9 for gamma and beta."""
    H = W.copy()
    for j in range(len(H)):
        for _ in range(1000):
            size = np.abs(H[j])
            G = (gamma * size.sum() + beta) / (size + eps) + 1 - gamma  # the diagonal
            new = (mu * P[j] + Q[j]) / (G + mu)
            change = np.abs(new - H[j]).max()
            H[j] = new
            if change <= 1e-6 * np.abs(new).max():
                break
    return H


def algorithm2(
    X, y, C, p, iterations, *, start=None, E=None, rho=1.1, gamma=1.0, beta=0.0, s=None, weigh_loss_only=False
):
    """Algorithm 2. X is M x N as in the paper, C the number of components; all iterates, newest last."""
    M, N = X.shape
    s = np.ones(N) if s is None else s
    lam = LAM * s[:, None] if weigh_loss_only else LAM
    s = np.ones(N) if weigh_loss_only else s
    W, P, Q = (np.ones((M, C)), np.zeros((M, C)), np.ones((M, C))) if start is None else start
    b, Z, mu = np.zeros(C), np.zeros((N, C)), 1.0
    E = np.zeros((N, C)) if E is None else E
    Y = np.outer(y, np.ones(C))
    one = np.ones((N, 1))
    inverse = np.linalg.inv(np.eye(M) + X * s @ X.T)
    path = []
    for _ in range(iterations):
        W = algorithm1(W, P, Q, mu, 1e-12, gamma, beta)
        b = (Y - E - X.T @ P - Z / mu).T @ (s / s.sum())  # Eq. (12)
        S = Y - X.T @ P - one @ b[None] - Z / mu
        omega = Y * S > 0
        if p == 1:
            E = omega * np.sign(S) * np.maximum(np.abs(S) - lam / mu, 0) + ~omega * S  # Eq. (14)
        else:
            E = omega * S / (1 + 2 * lam / mu) + ~omega * S  # Eq. (15)
        target = Y - one @ b[None] - Z / mu
        P = inverse @ (W - Q / mu + X * s @ (target - E))  # Eq. (17)
        Z = Z + mu * (E - Y + X.T @ P + one @ b[None])  # Eq. (18)
        Q = Q + mu * (P - W)
        path.append(SimpleNamespace(W=W, b=b, E=E, P=P, Z=Z, Q=Q, mu=mu))
        mu = rho * mu
    return path


def erm_objective(X, y, W, b, p):
    """Eq. (5), samples as rows."""
    loss = np.maximum(0, 1 - y[:, None] * (X @ W + b)) ** p
    return np.sum(np.abs(W).sum(axis=1) ** 2) / 2 + LAM * loss.sum()


def exact_w_step(v, mu, gamma=1.0, beta=0.0):
    """Section 4 by brute force: for a support of the k largest entries the stationarity conditions
    (mu + 1 - gamma) x_i + gamma sum x = mu |v_i| - beta are linear; one k satisfies all conditions."""
    result = np.zeros_like(v)
    for row, out in zip(v, result, strict=True):
        order = np.argsort(-np.abs(row))
        pull = mu * np.abs(row[order]) - beta
        for k in range(len(row), 0, -1):
            x = np.linalg.solve((mu + 1 - gamma) * np.eye(k) + gamma * np.ones((k, k)), pull[:k])
            if np.all(x > 0) and np.all(pull[k:] <= gamma * x.sum() + 1e-12):
                out[order[:k]] = x * np.sign(row[order[:k]])
                break
    return result


def cosines(W):
    unit = W / np.linalg.norm(W, axis=0)
    return (unit.T @ unit)[np.triu_indices(W.shape[1], 1)]


# Data, and runs that keep their iterates ----------------------------------------------------------


def noisy(n_rows=40, n_features=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_features))
    return X, np.where(X[:, 0] + X[:, 1] + rng.normal(size=n_rows) > 0, 1.0, -1.0)


def paper_run(problem, max_iter, *, random_state=None, **options):
    points = []
    result = solve_paper(
        problem,
        max_iter=max_iter,
        options=PaperOptions(**({"change": 0} | options)),
        random_state=random_state,
        callback=lambda state: points.append((state.weights.copy(), state.intercepts.copy())),
    )
    return result, points


def erm(X, y, n_members=3, p=2, **knobs):
    return ERMProblem.build(X, y, n_members=n_members, cost=LAM, p=p, **knobs)


def assert_same_path(path, points):
    assert len(path) == len(points) > 0
    size = max(np.abs(step.W).max() for step in path), max(np.abs(step.b).max() for step in path)
    for step, (W, b) in zip(path, points, strict=True):
        np.testing.assert_allclose(W, step.W, rtol=0, atol=SAME * size[0])
        np.testing.assert_allclose(b, step.b, rtol=0, atol=SAME * size[1])


# solve_paper is Algorithm 2 -----------------------------------------------------------------------


@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("shape", [(40, 5), (15, 25)], ids=["M<N", "M>N"])
def test_solve_paper_is_algorithm_2(p, shape):
    X, y = noisy(*shape)
    _, points = paper_run(erm(X, y, p=p), 60)
    assert_same_path(algorithm2(X.T, y, 3, p, 60), points)


@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("rho", [1.0, 1.1])
def test_solve_paper_is_algorithm_2_from_a_random_start(p, rho):
    """W, P and Q are drawn in this order, unit normal."""
    X, y = noisy()
    rng = np.random.default_rng(11)
    start = tuple(rng.standard_normal((5, 3)) for _ in range(3))
    _, points = paper_run(erm(X, y, p=p), 25, start="random", rho=rho, random_state=11)
    assert_same_path(algorithm2(X.T, y, 3, p, 25, start=start, rho=rho), points)


@pytest.mark.parametrize("p", [1, 2])
def test_solve_paper_is_algorithm_2_on_real_data(p, cancer):
    X, y = cancer
    result = solve_paper(erm(X, y, 4, p))
    path = algorithm2(X.T, y, 4, p, result.n_iter)
    np.testing.assert_allclose(result.weights, path[-1].W, rtol=0, atol=SAME * np.abs(path[-1].W).max())
    np.testing.assert_allclose(result.intercepts, path[-1].b, rtol=SAME)
    objectives = [erm_objective(X, y, step.W, step.b, p) for step in path]
    np.testing.assert_allclose(result.history.objective, objectives, rtol=SAME)


# Fact 1: members ----------------------------------------------------------------------------------


@pytest.mark.parametrize("p", [1, 1.5, 2])
@pytest.mark.parametrize("rho", [1.0, 1.1])
@pytest.mark.parametrize("w_step", ["reweighted", "exact"])
def test_fact_1_members_stay_equal_from_the_papers_start(p, rho, w_step, cancer):
    """Columns are treated alike, but blocked matrix products round the fifth otherwise than the first four.

    Such differences are neither damped nor blown up: 1e-11 of the largest entry, for 100 or 2000 iterations.
    """
    _, points = paper_run(erm(*cancer, 5, p), 100, rho=rho, w_step=w_step)
    for W, b in points:
        np.testing.assert_allclose(W, np.repeat(W[:, :1], 5, axis=1), rtol=0, atol=1e-9 * np.abs(W).max())
        np.testing.assert_allclose(b, b[0], rtol=0, atol=1e-9)


@pytest.mark.parametrize(("p", "w_step"), [(1, "exact"), (2, "exact"), (2, "reweighted")])
def test_fact_1_growing_mu_freezes_random_members_apart_and_above_the_optimum(p, w_step, cancer):
    problem = erm(*cancer, 10, p)
    optimum = solve_newton(problem, tol=1e-6).objective
    result, points = paper_run(problem, 150, start="random", w_step=w_step, random_state=0)
    assert cosines(result.weights).min() < 0.9
    assert result.objective > 1.01 * optimum
    # Frozen: mu is beyond 1e6 and nothing moves any more.
    assert np.abs(points[-1][0] - points[-10][0]).max() < 1e-3 * np.abs(points[-1][0]).max()


@pytest.mark.parametrize("p", [1.5, 2])
def test_fact_1_constant_mu_makes_random_members_equal(p):
    """For p > 1 where the active rows span (noise in 5 dimensions sees to that)."""
    X, y = noisy(80)
    result, points = paper_run(erm(X, y, 4, p), 300, start="random", rho=1.0, w_step="exact", random_state=1)
    assert np.abs(np.diff(points[0][0], axis=1)).max() > 0.1
    np.testing.assert_allclose(result.weights, np.repeat(result.weights[:, :1], 4, axis=1), atol=1e-9)
    np.testing.assert_allclose(result.intercepts, result.intercepts[0], atol=1e-9)
    assert cosines(result.weights).min() > 1 - 1e-12


@pytest.mark.parametrize(("p", "cosine"), [(1, 0.9), (2, 1 - 1e-6)])
def test_fact_1_on_german(p, cosine, paper_set):
    X, y = paper_set("german.numer_scale")
    rows = np.random.default_rng(0).permutation(len(y))[:150]
    problem = erm(X[rows], y[rows], 5, p)
    optimum = solve_newton(problem, tol=1e-6).objective
    frozen, _ = paper_run(problem, 150, start="random", w_step="exact", random_state=0)
    assert cosines(frozen.weights).min() < 0.9
    assert frozen.objective > 1.01 * optimum
    constant, _ = paper_run(problem, 1500, start="random", rho=1.0, w_step="exact", random_state=0)
    assert cosines(constant.weights).min() > cosine
    assert constant.objective < (1 + 1e-4) * optimum


# Fact 2, Theorem 2: constant mu converges, growing mu stops short ---------------------------------


def check_constant_and_growing_mu(X, y, p, max_iter):
    problem = erm(X, y, 3, p)
    reference = solve_newton(problem, tol=2e-10)
    assert reference.converged
    optimum = reference.objective

    near = solve_paper(
        problem,
        max_iter=max_iter,
        options=PaperOptions(rho=1.0, change=0),
        callback=lambda state: state.record.objective < optimum * (1 + 5e-9),
    )
    assert abs(near.objective / optimum - 1) < 1e-8

    growing, points = paper_run(problem, 800)
    excess = growing.history.objective / optimum - 1
    assert growing.history.mu[-1] > 1e32
    assert excess.min() > 1e-6  # not at any iteration, the frozen end included
    assert np.abs(points[-1][0] - points[399][0]).max() < 1e-9 * np.abs(points[-1][0]).max()
    assert np.isfinite(growing.gap)
    assert growing.gap >= excess[-1] / (1 + excess[-1]) - 1e-9


@pytest.mark.parametrize(("p", "max_iter"), [(1, 4000), (2, 2000)])
def test_fact_2_on_breast_cancer(p, max_iter, cancer):
    check_constant_and_growing_mu(*cancer, p, max_iter)


@pytest.mark.parametrize(("name", "p"), [("german.numer_scale", 2), ("heart_scale", 1)])
def test_fact_2_on_sets_of_the_paper(name, p, paper_set):
    X, y = paper_set(name)
    rows = np.random.default_rng(0).permutation(len(y))[:150]
    check_constant_and_growing_mu(X[rows], y[rows], p, 3000)


# Facts 3 and 4: what the paper leaves open --------------------------------------------------------


@pytest.mark.parametrize("p", [1, 2])
def test_fact_3_the_missing_start_of_E_is_zero(p):
    X, y = noisy()
    _, points = paper_run(erm(X, y, p=p), 20)
    assert_same_path(algorithm2(X.T, y, 3, p, 20), points)
    np.testing.assert_allclose(points[0][1], y.mean(), atol=1e-14)  # b = mean(Y - 0 - 0 - 0)
    with_labels = algorithm2(X.T, y, 3, p, 20, E=np.outer(y, np.ones(3)))
    assert abs(with_labels[0].b).max() < 1e-14
    assert max(np.abs(step.W - W).max() for step, (W, _) in zip(with_labels, points, strict=True)) > 1e-2


def test_fact_3_matters_on_diabetes(paper_set):
    """L2-ERM_30: 25.6 % with zeros (see the table), 29.2 % with E = Y."""
    X, y = paper_set("diabetes_scale")
    errors = []
    for trial in range(10):
        order = np.random.default_rng(trial).permutation(len(y))
        train, test = order[:150], order[150:]
        path = algorithm2(X[train].T, y[train], 30, 2, 60, E=np.outer(y[train], np.ones(30)))
        objectives = np.array([erm_objective(X[train], y[train], step.W, step.b, 2) for step in path])
        last = path[1 + np.argmax(np.abs(np.diff(objectives)) < 0.05)]
        decisions = np.sign(X[test] @ last.W.mean(axis=1) + last.b.mean())
        errors.append(100 * np.mean(decisions != y[test]))
    np.testing.assert_allclose(np.mean(errors), 29.2, atol=0.3)


@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("change", [0.05, 0.5])
def test_fact_4_the_stopping_rule_is_an_absolute_change(p, change, cancer):
    result = solve_paper(erm(*cancer, 5, p), options=PaperOptions(change=change))
    changes = np.abs(np.diff(result.history.objective))
    assert changes[-1] < change
    assert np.all(changes[:-1] >= change)
    assert PaperOptions().change == 0.05


# Fact 5: Algorithm 1 is slow ----------------------------------------------------------------------


@pytest.mark.parametrize(("gamma", "beta"), [(1.0, 0.0), (0.4, 0.2)])
def test_fact_5_algorithm_1_needs_thousands_of_steps(gamma, beta):
    """Typical rows need more than 100 steps, and 3000 are enough for three quarters of them. Rows with an
    entry on the edge of the support converge like 1/n only: they are why "exact" exists."""
    rng = np.random.default_rng(3)
    v, mu = rng.normal(size=(60, 30)), 1.0
    regulariser = ExclusivityRegulariser(gamma, beta)
    exact = exact_w_step(v, mu, gamma, beta)
    np.testing.assert_allclose(regulariser.prox(v, mu), exact, atol=1e-13)

    def errors(steps):
        reached = regulariser.reweighted(v, mu, np.ones_like(v), eps=1e-12, max_iter=steps, tol=0.0)
        return np.abs(reached - exact).max(axis=1)

    assert errors(100).max() > 5e-3
    assert np.median(errors(100)) > 1e-5
    assert np.quantile(errors(3000), 0.75) < 1e-9
    assert errors(3000).max() < errors(100).max() / 10


def test_fact_5_a_zero_in_the_start_comes_back_slowly_or_not_at_all():
    """eps lifts it off zero and each step multiplies it by a constant: dozens of steps without a visible
    change, during which a tolerance on the change ends the loop."""
    v, start = np.array([[1.0, 0.9, -0.8]]), np.array([[1.0, 0.0, 1.0]])
    exact = exact_w_step(v, 5.0)
    assert abs(exact[0, 1]) > 0.3
    regulariser = ExclusivityRegulariser()
    stopped = regulariser.reweighted(v, 5.0, start, eps=1e-12, max_iter=1000, tol=1e-6)
    assert abs(stopped[0, 1]) < 1e-5
    patient = regulariser.reweighted(v, 5.0, start, eps=1e-12, max_iter=1000, tol=0.0)
    np.testing.assert_allclose(patient, exact, atol=1e-10)


# Fact 6: the two-block order ----------------------------------------------------------------------


def two_blocks(X, y, p, mu, iterations):
    """{W, E} given {P, b}, then (P, b) jointly on centred data, then the multipliers; one member."""
    mean, Xc = X.mean(axis=0), X - X.mean(axis=0)
    inverse = np.linalg.inv(np.eye(X.shape[1]) + Xc.T @ Xc)
    P, b, Z, Q = np.zeros(X.shape[1]), 0.0, np.zeros(len(y)), np.zeros(X.shape[1])
    objectives = []
    for _ in range(iterations):
        W = mu / (mu + 1) * (P + Q / mu)
        S = y - X @ P - b - Z / mu
        shrunk = np.sign(S) * np.maximum(np.abs(S) - LAM / mu, 0) if p == 1 else S / (1 + 2 * LAM / mu)
        E = np.where(y * S > 0, shrunk, S)
        R = y - E - Z / mu
        P = inverse @ (W - Q / mu + Xc.T @ R)
        b = R.mean() - mean @ P
        Z, Q = Z + mu * (E - y + X @ P + b), Q + mu * (P - W)
        objectives.append(erm_objective(X, y, W[:, None], np.array([b]), p))
    return np.array(objectives)


@pytest.mark.parametrize("p", [1, 2])
def test_fact_6_two_blocks_converge_for_constant_mu(p):
    X, y = noisy(60)
    optimum = solve_newton(erm(X, y, 1, p), tol=1e-10).objective
    for mu in (0.5, 3.0):
        objectives = two_blocks(X, y, p, mu, 2500)
        assert abs(objectives[-1] / optimum - 1) < 1e-8
        # ... and so does the package's form of it: with a constant mu, whichever it is.
        result = solve_alm(
            erm(X, y, 1, p), tol=1e-8, max_iter=3000, options=AlmOptions(mu0=mu, balance=False)
        )
        assert result.converged
        assert np.all(result.history.mu == mu)


@pytest.mark.parametrize("p", [1, 2])
def test_fact_6_constant_mu_is_slow_on_badly_scaled_data_and_balancing_is_not(p, raw_cancer):
    X, y = raw_cancer
    problem = erm(X, y, 1, p)
    result = solve_alm(problem, tol=1e-6)
    assert result.converged
    assert result.n_iter < 1000
    assert two_blocks(X, y, p, 10.0, 1000)[-1] > result.objective * (1 + 1e-4)


# Facts 8 and 9: sample weights, gamma and beta ----------------------------------------------------


@pytest.mark.parametrize("p", [1, 2])
def test_fact_8_weights_multiply_the_loss_and_the_penalty(p):
    X, y = noisy()
    s = np.random.default_rng(1).integers(1, 4, size=len(y)).astype(float)
    rows = np.repeat(np.arange(len(y)), s.astype(int))
    _, points = paper_run(erm(X, y, p=p, weights=s), 30)
    assert_same_path(algorithm2(X.T, y, 3, p, 30, s=s), points)
    repeated = algorithm2(X[rows].T, y[rows], 3, p, 30)
    assert_same_path(repeated, points)
    # Weighting the loss alone is another method: its decisions move by per cents before it converges.
    other = algorithm2(X.T, y, 3, p, 30, s=s, weigh_loss_only=True)
    scores = [X @ step.W.mean(axis=1) + step.b.mean() for step in (other[9], repeated[9])]
    assert np.linalg.norm(scores[0] - scores[1]) > 0.01 * np.linalg.norm(scores[1])


@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize(("gamma", "beta"), [(0.3, 0.0), (1.0, 0.5), (0.0, 0.0), (0.6, 0.2)])
def test_fact_9_gamma_and_beta_enter_through_the_reweighting(p, gamma, beta):
    X, y = noisy()
    rng = np.random.default_rng(5)
    start = tuple(rng.standard_normal((5, 3)) for _ in range(3))
    problem = erm(X, y, p=p, exclusivity=gamma, sparsity=beta)
    _, points = paper_run(problem, 12, start="random", random_state=5)
    assert_same_path(algorithm2(X.T, y, 3, p, 12, start=start, gamma=gamma, beta=beta), points)


@pytest.mark.parametrize(("gamma", "beta"), [(0.3, 0.0), (1.0, 0.5), (0.6, 0.2)])
def test_fact_9_with_gamma_and_beta_a_constant_mu_still_converges(gamma, beta):
    X, y = noisy()
    optimum, _, _ = solve_conic(X, y, 3, LAM, 2, gamma, beta)
    problem = erm(X, y, exclusivity=gamma, sparsity=beta)
    result, _ = paper_run(problem, 400, rho=1.0, w_step="exact")
    np.testing.assert_allclose(result.objective, optimum, rtol=1e-8)


# Fact 10: dual points -----------------------------------------------------------------------------


def section_5(X, y, alpha, c, p):
    """Repair alpha, then D(alpha); no beta."""
    alpha = np.clip(alpha, 0, c if p == 1 else np.inf)
    above, below = alpha[y > 0].sum(), alpha[y < 0].sum()
    alpha[y > 0] *= min(1, below / above) if above else 1
    alpha[y < 0] *= min(1, above / below) if below else 1
    loss = 0 if p == 1 else np.sum(alpha**2 / (4 * c))
    return alpha.sum() - np.sum((X.T @ (y * alpha)) ** 2) / 2 - loss


@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("rho", [1.0, 1.1])
@pytest.mark.parametrize("weighted", [False, True])
def test_fact_10_the_bound_of_the_history_comes_from_the_multipliers(p, rho, weighted):
    """alpha = -s y mean_k(Z) / kappa from the transcription's Z, repaired, D, and the best of all so far."""
    X, y = noisy()
    K = 3
    s = np.random.default_rng(4).uniform(0.3, 3, size=len(y)) if weighted else np.ones(len(y))
    result, _ = paper_run(erm(X, y, K, p, weights=s), 60, rho=rho)
    path = algorithm2(X.T, y, K, p, 60, rho=rho, s=s)
    bounds = [K * K * section_5(X, y, -s * y * step.Z.mean(axis=1) / K, s * LAM / K, p) for step in path]
    np.testing.assert_allclose(result.history.bound, np.maximum.accumulate(bounds), rtol=1e-8, atol=1e-8)
    optimum, _, _ = solve_conic(X, y, K, LAM, p, 1, 0, s)
    assert max(bounds) <= optimum * (1 + 1e-12)


@pytest.mark.parametrize("p", [1.5, 2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_fact_10_the_dual_point_of_given_scores(p, weighted):
    X, y = noisy()
    rng = np.random.default_rng(2)
    s = rng.uniform(0.3, 3, size=len(y)) if weighted else np.ones(len(y))
    problem = erm(X, y, p=p, weights=s)
    optimum, W, _ = solve_conic(X, y, 3, LAM, p, 1, 0, s)
    for noise in (0.0, 0.1, 1.0):
        w = W.mean(axis=1) + noise * rng.normal(size=5)

        def loss(b, w=w):
            return np.sum(s * np.maximum(0, 1 - y * (X @ w + b)) ** p)

        b = minimize_scalar(loss, bounds=(-30, 30), options={"xatol": 1e-10}, method="bounded").x
        alpha = s * LAM / 3 * p * np.maximum(0, 1 - y * (X @ w + b)) ** (p - 1)
        ours = dual_from_scores(problem, X @ w)
        np.testing.assert_allclose(
            ours, alpha, atol=1e-4
        )  # b from a bounded search: a parabola, 1e-8 at best
        assert abs(y @ ours) <= 1e-10 * ours.sum()  # feasible by the optimality of b
        bound = dual_bound(problem, ours)
        assert bound <= optimum * (1 + 1e-12)
        if noise == 0:
            assert bound >= optimum * (1 - 1e-6)  # at the optimum the dual point is optimal too


# Section 9 ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("p", [1, 1.5, 2, 3])
def test_proposition_1_on_every_iterate(p, cancer):
    X, y = cancer
    _, points = paper_run(erm(X, y, 4, p), 60, start="random", w_step="exact", random_state=3)

    def loss(W, b):
        return np.sum(np.maximum(0, 1 - y[:, None] * (X @ W + b)) ** p, axis=0)

    strict = 0
    for W, b in points:
        of_mean = loss(W.mean(axis=1, keepdims=True), b.mean(keepdims=True))[0]
        mean_of = loss(W, b).mean()
        assert of_mean <= mean_of * (1 + 1e-12)
        strict += of_mean < 0.99 * mean_of
    assert strict > 10  # members differ, so the inequality is not an equality in disguise


@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("start", ["ones", "random"])
def test_lemma_2_multipliers_stay_bounded_while_mu_grows(p, start):
    """mu ends at 2e8. (Beyond 1e12 or so Z = Z + mu (...) has only rounding, 1e-16 mu, left to add.)"""
    X, y = noisy()
    rng = np.random.default_rng(11)
    given = None if start == "ones" else tuple(rng.standard_normal((5, 3)) for _ in range(3))
    path = algorithm2(X.T, y, 3, p, 200, start=given)
    _, points = paper_run(erm(X, y, p=p), 200, start=start, random_state=11)
    assert_same_path(path, points)  # so these are the multipliers of solve_paper, too
    assert path[-1].mu > 1e8
    for name in ("Z", "Q"):
        size = np.array([np.abs(getattr(step, name)).max() for step in path])
        assert size[50:].max() <= 1.5 * size[:50].max()
        assert size[150:].max() <= 1.01 * size[100:150].max()
    if p == 1:  # The proof puts -y Z in [0, lambda]; P moves after E, so that holds only roughly.
        end = -y[:, None] * path[-1].Z
        assert end.min() >= -0.1 * LAM
        assert end.max() <= 1.1 * LAM
    # Feasibility, which is what the proof of Theorem 2 does show.
    last = path[-1]
    assert np.abs(last.P - last.W).max() < 1e-6
    assert np.abs(last.E - y[:, None] + X @ last.P + last.b).max() < 1e-6


@pytest.mark.parametrize("p", [1, 2])
def test_a_very_long_run_stays_finite(p):
    """mu doubles until it is capped; iterates, objective and bound stay what they were."""
    X, y = noisy()
    result, points = paper_run(erm(X, y, p=p), 700, rho=2.0)
    assert result.history.mu[-1] >= 1e99
    assert np.isfinite(result.history.objective).all()
    assert np.isfinite(result.history.bound).all()
    np.testing.assert_allclose(points[-1][0], points[300][0], rtol=1e-6, atol=1e-9)
