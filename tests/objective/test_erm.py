"""The ERM objective against loops, and its reduction to one SVM against a conic solver."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import sparse

from conic import objective_by_loops, solve_conic
from exclusivity.objective.losses import PowerHinge
from exclusivity.objective.objective import ERMProblem, ExclusivityRegulariser
from exclusivity.rows.design import DesignMatrix, weighted_total

N, M, K, COST = 14, 4, 3, 1.3


def data(seed=3):
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(N) % 5 < 2, 1.0, -1.0)
    return rng.normal(size=(N, M)) + 0.5 * y[:, None], y, rng.uniform(0.3, 3.0, N)


def build(p=2, gamma=1.0, beta=0.0, weights=None, **kwargs):
    X, y, _ = data()
    return ERMProblem.build(
        X, y, n_members=K, cost=COST, p=p, exclusivity=gamma, sparsity=beta, weights=weights, **kwargs
    )


# --- objective ----------------------------------------------------------------------------------------


@given(
    p=st.sampled_from([1, 1.5, 2, 3]),
    gamma=st.sampled_from([0.0, 0.3, 1.0, 5.0]),
    beta=st.sampled_from([0.0, 0.5]),
    weighted=st.booleans(),
    members=st.integers(1, 5),
    scale=st.sampled_from([0.0, 1e-3, 1.0, 30.0]),
    seed=st.integers(0, 100),
)
@settings(max_examples=100, deadline=None)
def test_objective_is_its_definition(p, gamma, beta, weighted, members, scale, seed):
    X, y, weights = data()
    weights = weights if weighted else None
    rng = np.random.default_rng(seed)
    W, b = scale * rng.normal(size=(M, members)), rng.normal(size=members)
    problem = ERMProblem.build(
        X, y, n_members=members, cost=COST, p=p, exclusivity=gamma, sparsity=beta, weights=weights
    )
    expected = objective_by_loops(X, y, W, b, COST, p, gamma, beta, weights)
    assert problem.value(W, b) == pytest.approx(expected, rel=1e-12)
    scores = np.array([[X[i] @ W[:, k] + b[k] for k in range(members)] for i in range(N)])
    np.testing.assert_allclose(problem.scores(W, b), scores, rtol=1e-12, atol=1e-12)


def test_objective_does_not_depend_on_the_storage_of_X():
    X, y, weights = data()
    X[np.abs(X) < 0.5] = 0
    W, b = np.random.default_rng(0).normal(size=(M, K)), np.array([0.1, -0.2, 0.3])
    values = [
        ERMProblem.build(kind(X), y, n_members=K, weights=weights).value(W, b)
        for kind in (np.ascontiguousarray, np.asfortranarray, sparse.csr_array, sparse.csr_matrix)
    ]
    np.testing.assert_allclose(values, values[0], rtol=1e-14)


def test_weight_two_is_a_repeated_row():
    X, y, _ = data()
    repeats = np.random.default_rng(1).integers(1, 4, size=N)
    W, b = np.random.default_rng(0).normal(size=(M, K)), np.array([0.1, -0.2, 0.3])
    weighted = ERMProblem.build(X, y, n_members=K, weights=repeats)
    repeated = ERMProblem.build(np.repeat(X, repeats, axis=0), np.repeat(y, repeats), n_members=K)
    assert weighted.value(W, b) == pytest.approx(repeated.value(W, b), rel=1e-13)


@given(
    p=st.sampled_from([1, 1.001, 1.5, 2, 3, 10]),
    members=st.integers(1, 6),
    scale=st.floats(-3, 1).map(lambda e: 10.0**e),
    seed=st.integers(0, 10_000),
)
@settings(max_examples=150, deadline=None)
def test_loss_of_the_mean_is_at_most_the_mean_loss(p, members, scale, seed):
    """Proposition 1, on the problem's own scores and losses: mean over the K members against their mean."""
    X, y, weights = data()
    problem = ERMProblem.build(X, y, n_members=members, p=p, weights=weights)
    rng = np.random.default_rng(seed)
    W, b = scale * rng.normal(size=(M, members)), scale * rng.normal(size=members)
    shortfall = 1 - y[:, None] * problem.scores(W, b)
    mean_loss = weighted_total(weights, problem.loss.value(shortfall)) / members
    ensemble = problem.scores(W.mean(axis=1, keepdims=True), b.mean(keepdims=True))
    loss_of_mean = weighted_total(weights, problem.loss.value(1 - y[:, None] * ensemble))
    assert loss_of_mean <= mean_loss * (1 + 1e-13 * p)
    if scale > 1 and members > 1:
        assert loss_of_mean < mean_loss  # members that differ: strictly


# --- the equivalence theorem --------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("beta", [0.0, 0.5])
@pytest.mark.parametrize("gamma", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("p", [1, 1.5, 2, 3])
def test_full_problem_is_the_reduced_one(p, gamma, beta, weighted):
    """Section 2: min F = K kappa min f, and the mean member of the full optimum solves the reduced SVM."""
    X, y, weights = data()
    weights = weights if weighted else None
    problem = build(p, gamma, beta, weights)
    reduced = problem.reduced()
    kappa = 1 + gamma * (K - 1)
    assert (reduced.n_members, reduced.kappa) == (1, 1.0)
    full, W, b = solve_conic(X, y, K, COST, p, gamma, beta, weights)
    # What the oracle is told about the reduced problem comes out of the object under test.
    f, w, _ = solve_conic(
        reduced.design.X,
        reduced.labels,
        reduced.n_members,
        reduced.cost,
        reduced.loss.p,
        reduced.regulariser.exclusivity,
        reduced.regulariser.sparsity,
        reduced.weights,
    )
    assert full == pytest.approx(K * kappa * f, rel=1e-7)
    assert problem.kappa == pytest.approx(kappa, rel=1e-15)
    # f is 1-strongly convex in w: an excess of 1e-9 leaves 5e-5.
    np.testing.assert_allclose(W.mean(axis=1), w[:, 0], atol=1e-4)
    if gamma < 1:  # then all members are the same at the optimum
        np.testing.assert_allclose(W, np.repeat(w, K, axis=1), atol=1e-4 / (1 - gamma))
    # The mean member is no worse in f than the reduced optimum says.
    mean = reduced.value(W.mean(axis=1, keepdims=True), b.mean(keepdims=True))
    assert mean == pytest.approx(f, rel=1e-7)


@given(
    p=st.sampled_from([1, 1.5, 2, 3]),
    gamma=st.floats(0, 1),
    beta=st.floats(0, 2),
    members=st.integers(1, 6),
    seed=st.integers(0, 100),
)
@settings(max_examples=60, deadline=None)
def test_equal_members_cost_k_kappa_times_one(p, gamma, beta, members, seed):
    X, y, weights = data()
    problem = ERMProblem.build(
        X, y, n_members=members, cost=COST, p=p, exclusivity=gamma, sparsity=beta, weights=weights
    )
    rng = np.random.default_rng(seed)
    w, b = rng.normal(size=(M, 1)), rng.normal(size=1)
    kappa = 1 + gamma * (members - 1)
    one = objective_by_loops(X, y, w, b, COST / kappa, p, gamma, beta / kappa, weights)
    assert problem.reduced().value(w, b) == pytest.approx(one, rel=1e-12)
    equal = problem.value(np.repeat(w, members, axis=1), np.repeat(b, members))
    assert equal == pytest.approx(members * kappa * one, rel=1e-12)


def test_reduced_keeps_data_loss_and_intercept():
    problem = build(p=1.5, gamma=0.3, beta=0.5, weights=data()[2], fit_intercept=False)
    reduced = problem.reduced()
    assert reduced.design is problem.design
    assert reduced.labels is problem.labels
    assert reduced.weights is problem.weights
    assert reduced.loss.p == 1.5
    assert not reduced.fit_intercept
    again = reduced.reduced()
    assert (again.n_members, again.cost, again.regulariser) == (1, reduced.cost, reduced.regulariser)


def test_convexity():
    assert build(gamma=1.0).objective.is_convex
    assert build(gamma=0.0).objective.is_convex
    problem = build(gamma=np.nextafter(1, 2))
    assert not problem.objective.is_convex
    with pytest.raises(ValueError, match="makes the problem non-convex"):
        problem.reduced()
    with pytest.raises(ValueError, match="makes the problem non-convex"):
        problem.objective.require_convex()
    build(gamma=1.0).objective.require_convex()


# --- construction -------------------------------------------------------------------------------------


def test_defaults_are_the_paper_with_one_member():
    X, y, _ = data()
    problem = ERMProblem.build(X, y.astype(int))
    assert (problem.n_members, problem.cost, problem.loss, problem.fit_intercept) == (
        1,
        1.0,
        PowerHinge(2),
        True,
    )
    assert problem.regulariser == ExclusivityRegulariser(1.0, 0.0)
    assert problem.labels.dtype == np.float64
    np.testing.assert_array_equal(problem.weights, np.ones(N))
    assert problem.design.X is X
    with pytest.raises(dataclasses.FrozenInstanceError):
        problem.cost = 2.0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": np.ones(N - 1)}, "X has 14 rows"),
        ({"y": np.ones((N, 1))}, "X has 14 rows"),
        ({"weights": np.ones(N + 1)}, "X has 14 rows"),
        ({"y": np.r_[0.0, np.ones(N - 1)]}, r"labels must be -1 or \+1"),
        ({"y": np.r_[2.0, np.ones(N - 1)]}, r"labels must be -1 or \+1"),
        ({"y": np.r_[np.nan, np.ones(N - 1)]}, r"labels must be -1 or \+1"),
        ({"weights": np.r_[0.0, np.ones(N - 1)]}, "weights must be positive and finite"),
        ({"weights": np.r_[-1.0, np.ones(N - 1)]}, "weights must be positive and finite"),
        ({"weights": np.r_[np.inf, np.ones(N - 1)]}, "weights must be positive and finite"),
        ({"weights": np.r_[np.nan, np.ones(N - 1)]}, "weights must be positive and finite"),
        ({"n_members": 0}, "n_members must be at least 1; got 0"),
        ({"n_members": -3}, "n_members must be at least 1"),
        ({"cost": 0.0}, "cost must be a positive finite number"),
        ({"cost": -1.0}, "cost must be a positive finite number"),
        ({"cost": np.inf}, "cost must be a positive finite number"),
        ({"cost": np.nan}, "cost must be a positive finite number"),
        ({"p": 0.9}, "p must be a finite number >= 1"),
        ({"exclusivity": -0.1}, "exclusivity must be a number >= 0"),
        ({"sparsity": np.nan}, "sparsity must be a finite number >= 0"),
    ],
)
def test_invalid_values_are_refused(change, message):
    X, y, _ = data()
    arguments = {"X": X, "y": y} | change
    with pytest.raises(ValueError, match=message):
        ERMProblem.build(**arguments)


def test_invalid_X_is_refused():
    with pytest.raises(TypeError, match="integers or booleans; got 2-d complex128"):
        ERMProblem.build(np.ones((N, M), dtype=complex), data()[1])
    assert DesignMatrix(np.ones((N, M))).n_features == M
