"""What must not matter, checked on every iterate: repetition, order, labels' names, storage of X.

Nothing random happens between two runs that are compared, and every step (prox, ridge regression) is
non-expansive or nearly so, hence runs that are equal in exact arithmetic differ by some roundings only.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import sparse

from exclusivity.objective.objective import ERMProblem
from exclusivity.solvers import PaperOptions, solve_alm, solve_paper

# A negative tolerance is never reached and a change of zero hardly ever: both run for `max_iter` iterations.
SOLVERS = {
    "alm": (solve_alm, {"tol": -1.0, "max_iter": 60}),
    "paper": (solve_paper, {"max_iter": 30, "options": PaperOptions(change=0)}),
}
EVERY_SOLVER = pytest.mark.parametrize("solver", SOLVERS)
EVERY_P = pytest.mark.parametrize("p", [1, 2])
SHAPES = pytest.mark.parametrize("shape", [(30, 5), (8, 25)], ids=["M<N", "M>N"])

KNOBS = {"n_members": 3, "cost": 1.5}
TIGHT = 1e-12


def data(shape, seed=5):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=shape) + 0.5
    y = np.where(X[:, 0] - 0.5 + rng.normal(size=shape[0]) > 0, 1.0, -1.0)
    y[:2] = 1, -1
    return X, y, rng


def iterates(solver, X, y, **changes):
    """All (W, b) of a run, copied; `changes` go to the problem, and `arguments` to the solver."""
    solve, arguments = SOLVERS[solver]
    arguments = arguments | changes.pop("arguments", {})
    points = []
    solve(
        ERMProblem.build(X, y, **(KNOBS | changes)),
        callback=lambda state: points.append((state.weights.copy(), state.intercepts.copy())),
        **arguments,
    )
    return points


PLAIN = {}


def plain_iterates(solver, X, y, **changes):
    """The iterates of rows in their plain form, that several tests compare with: run once."""
    key = (
        solver,
        X.tobytes(),
        repr(sorted((name, np.asarray(value).tobytes()) for name, value in changes.items())),
    )
    if key not in PLAIN:
        PLAIN[key] = iterates(solver, X, y, **changes)
    return PLAIN[key]


def assert_same(left, right, rtol, change=lambda W, b: (W, b)):
    """Every iterate of `left`, changed by `change`, equals that of `right`, relative to the largest entry."""
    assert len(left) == len(right) > 10
    for index in (0, 1):
        size = max(np.abs(point[index]).max() for point in right)
        for one, other in zip(left, right, strict=True):
            np.testing.assert_allclose(change(*one)[index], other[index], rtol=0, atol=rtol * size)


@EVERY_SOLVER
@SHAPES
@pytest.mark.parametrize(
    ("p", "gamma", "beta"), [(1, 1, 0), (1.5, 1, 0), (2, 1, 0), (1, 0.5, 0.1), (2, 0.5, 0.1)]
)
def test_a_weight_is_a_number_of_repetitions(solver, shape, p, gamma, beta):
    X, y, rng = data(shape)
    counts = rng.integers(1, 4, size=len(y))
    rows = rng.permutation(np.repeat(np.arange(len(y)), counts))
    knobs = {"p": p, "exclusivity": gamma, "sparsity": beta}
    weighted = iterates(solver, X, y, weights=counts, **knobs)
    repeated = iterates(solver, X[rows], y[rows], **knobs)
    assert_same(weighted, repeated, TIGHT)
    # (On separable rows the last iterate need not depend on the weights, the first ones do.)
    unweighted = iterates(solver, X, y, **knobs)
    assert (
        max(np.abs(one[0] - other[0]).max() for one, other in zip(unweighted, weighted, strict=True)) > 1e-3
    )


@EVERY_SOLVER
@EVERY_P
def test_repetition_may_turn_more_features_than_rows_into_fewer(solver, p):
    """20 x 30 uses the N x N system, the 60 repeated rows the M x M one (condition number about 1e3)."""
    X, y, _ = data((20, 30))
    weighted = iterates(solver, X, y, p=p, weights=np.full(20, 3.0))
    repeated = iterates(solver, np.tile(X, (3, 1)), np.tile(y, 3), p=p)
    assert_same(weighted, repeated, 1e-11)


@settings(deadline=None, max_examples=25)
@given(
    st.sampled_from(sorted(SOLVERS)),
    st.sampled_from([1, 1.3, 2, 3]),
    st.lists(st.integers(1, 5), min_size=6, max_size=14),
    st.integers(1, 20),
    st.integers(0, 10**6),
)
def test_weights_are_repetitions_for_any_counts(solver, p, counts, n_features, seed):
    X, y, _ = data((len(counts), n_features), seed)
    rows = np.repeat(np.arange(len(counts)), counts)
    arguments = {"max_iter": 25}
    weighted = iterates(solver, X, y, p=p, weights=np.array(counts), arguments=arguments)
    repeated = iterates(solver, X[rows], y[rows], p=p, arguments=arguments)
    assert_same(weighted, repeated, 1e-10)  # counts may cross M = N with any conditioning


@EVERY_SOLVER
@EVERY_P
@SHAPES
def test_scaling_all_weights_is_scaling_the_cost(solver, p, shape):
    """F depends on s_i C only. The iterates of `paper` do not (its penalty terms carry s, not C), `alm`'s do
    up to its start mu0 = 2 C, which the test moves along."""
    X, y, _ = data(shape)
    if solver == "alm":
        heavy = iterates(solver, X, y, p=p, weights=np.full(len(y), 4.0), cost=0.5)
        costly = iterates(solver, X, y, p=p, cost=2.0)
        # ratio = kappa / (2 C), mu = 2 C: s mu = 4 * 1 = 1 * 4, and the Lagrangians are the same.
        assert_same(heavy, costly, 1e-11)
    else:
        problems = [
            ERMProblem.build(X, y, p=p, n_members=3, cost=0.5, weights=np.full(len(y), 4.0)),
            ERMProblem.build(X, y, p=p, n_members=3, cost=2.0),
        ]
        W, b = np.ones((X.shape[1], 3)), np.arange(3.0)
        np.testing.assert_allclose(problems[0].value(W, b), problems[1].value(W, b), rtol=1e-14)


@EVERY_SOLVER
@EVERY_P
@SHAPES
def test_the_order_of_rows_does_not_matter(solver, p, shape):
    X, y, rng = data(shape)
    weights, order = rng.uniform(0.5, 2, size=len(y)), rng.permutation(len(y))
    plain = plain_iterates(solver, X, y, p=p, weights=weights)
    permuted = iterates(solver, X[order], y[order], p=p, weights=weights[order])
    assert_same(plain, permuted, TIGHT)


@EVERY_SOLVER
@EVERY_P
@SHAPES
def test_the_order_of_features_does_not_matter(solver, p, shape):
    X, y, rng = data(shape)
    order = rng.permutation(X.shape[1])
    plain = iterates(solver, X, y, p=p, exclusivity=0.5)
    permuted = iterates(solver, X[:, order], y, p=p, exclusivity=0.5)
    assert_same(plain, permuted, TIGHT, change=lambda W, b: (W[order], b))


@EVERY_P
@SHAPES
def test_swapping_the_classes_mirrors_every_iterate_of_alm(p, shape):
    """It starts from zero and every step is odd in (y, P, b, U, V): not even rounding may differ."""
    X, y, _ = data(shape)
    plain, swapped = plain_iterates("alm", X, y, p=p), iterates("alm", X, -y, p=p)
    assert_same(plain, swapped, 0.0, change=lambda W, b: (-W, -b))


class Mirrored(np.random.Generator):
    """A generator whose normal numbers have the opposite sign."""

    def standard_normal(self, *args, **kwargs):
        return -super().standard_normal(*args, **kwargs)


@EVERY_P
@SHAPES
def test_swapping_the_classes_mirrors_paper_when_its_start_is_mirrored_too(p, shape):
    """The paper's start W = Q = 1 is not odd: a run with -y starts from the same point, not its mirror image.

    With a random start the mirror image can be had, and then every iterate is one.
    """
    X, y, _ = data(shape)
    options = PaperOptions(change=0, start="random")
    plain = iterates(
        "paper",
        X,
        y,
        p=p,
        arguments={"options": options, "random_state": np.random.Generator(np.random.PCG64(3))},
    )
    swapped = iterates(
        "paper", X, -y, p=p, arguments={"options": options, "random_state": Mirrored(np.random.PCG64(3))}
    )
    assert_same(plain, swapped, 0.0, change=lambda W, b: (-W, -b))


@EVERY_P
@SHAPES
def test_the_symmetry_that_holds_from_the_papers_start(p, shape):
    """(X, y) -> (-X, -y) leaves y x.w alone: W, P, Q stay as they are, and b, E, Z change sign."""
    X, y, _ = data(shape)
    plain, negated = plain_iterates("paper", X, y, p=p), iterates("paper", -X, -y, p=p)
    assert_same(plain, negated, 0.0, change=lambda W, b: (W, -b))


@pytest.mark.parametrize("p", [1, 2])
def test_swapping_the_classes_mirrors_the_limit_of_paper_from_its_own_start(p):
    """Not the iterates (the start is not odd), but with a constant mu the limit: w_e is unique."""
    X, y, _ = data((30, 3))
    runs = [
        iterates(
            "paper", X, labels, p=p, arguments={"options": PaperOptions(change=0, rho=1.0), "max_iter": 1000}
        )
        for labels in (y, -y)
    ]
    first = [run[0][0].mean(axis=1) for run in runs]
    assert np.abs(first[0] + first[1]).max() > 1e-3
    last = [run[-1][0].mean(axis=1) for run in runs]
    np.testing.assert_allclose(last[0], -last[1], atol=1e-6)


@EVERY_SOLVER
@EVERY_P
@SHAPES
@pytest.mark.parametrize("container", [sparse.csr_array, sparse.csr_matrix])
def test_sparse_equals_dense(solver, p, shape, container):
    X, y, rng = data(shape)
    X[rng.random(X.shape) < 0.6] = 0.0
    weights = rng.uniform(0.5, 2, size=len(y))
    plain = plain_iterates(solver, X, y, p=p, weights=weights)
    assert_same(
        iterates(solver, container(X), y, p=p, weights=weights), plain, 1e-11
    )  # centring rounds otherwise


@EVERY_SOLVER
@EVERY_P
@SHAPES
@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_array], ids=["dense", "csr"])
def test_float32_numbers_are_summed_in_float64(solver, p, shape, storage):
    """Both runs see the same numbers, and all sums are float64 sums: nothing may differ."""
    X, y, rng = data(shape)
    X[rng.random(X.shape) < 0.3] = 0.0
    single = storage(X.astype(np.float32))
    plain = iterates(solver, single.astype(np.float64), y, p=p)
    assert_same(iterates(solver, single, y, p=p), plain, TIGHT)


@EVERY_SOLVER
@EVERY_P
@SHAPES
def test_float32_is_close_to_float64(solver, p, shape):
    """Rounding X to float32 moves it by 6e-8, and iterates by a moderate multiple of that."""
    X, y, _ = data(shape)
    plain = plain_iterates(solver, X, y, p=p)
    assert_same(iterates(solver, X.astype(np.float32), y, p=p), plain, 1e-5)


@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize("shape", [(40, 5), (30, 200)], ids=["M<N", "M>N"])
def test_float32_reaches_the_same_certificate(p, shape, storage):
    X, y, rng = data(shape)
    X = (X + 2) * (rng.random(X.shape) < 0.3)
    single = storage(X.astype(np.float32))
    double = ERMProblem.build(single.astype(np.float64), y, p=p, **KNOBS)
    expected = solve_alm(double, tol=1e-10)
    result = solve_alm(ERMProblem.build(single, y, p=p, **KNOBS), tol=1e-10, max_iter=2 * expected.n_iter)
    assert expected.converged
    assert result.converged
    np.testing.assert_allclose(result.objective, expected.objective, rtol=1e-9)


@EVERY_SOLVER
@EVERY_P
@SHAPES
def test_fortran_order_equals_c_order(solver, p, shape):
    X, y, _ = data(shape)
    plain = plain_iterates(solver, X, y, p=p)
    assert_same(iterates(solver, np.asfortranarray(X), y, p=p), plain, TIGHT)
    strided = np.repeat(X, 2, axis=0)[::2]
    assert_same(iterates(solver, strided, y, p=p), plain, TIGHT)
