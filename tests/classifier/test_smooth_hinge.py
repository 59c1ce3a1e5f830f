"""loss="smooth_hinge", and the one table that makes any loss a parameter."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.preprocessing import scale

from exclusivity import ERMClassifier, ERMClassifierCV, erm_path
from exclusivity.cli.main import main
from exclusivity.io import load_model, save_model, to_onnx
from exclusivity.objective.losses import LOSSES, OWN_LOSSES, SmoothHinge, register_loss
from exclusivity.objective.objective import ERMProblem
from exclusivity.solvers import NewtonOptions, solve_alm, solve_newton
from extending.pages import names_of


@given(m=st.floats(-1e6, 1e6) | st.floats(-0.5, 1.5), step=st.floats(1e-3, 1e3))
def test_the_loss_keeps_its_contract(m, step):
    loss, m, h = SmoothHinge(), np.array([m]), 1e-7
    assert loss.value(m) == pytest.approx(max(0.0, m[0]) ** 2 / 2 if m[0] <= 1 else m[0] - 0.5, rel=1e-14)
    rise = (loss.value(m + h) - loss.value(m - h)) / (2 * h)
    np.testing.assert_allclose(loss.slope(m), rise, atol=1e-6 + 1e-8 * abs(m[0]))
    value, slope, curvature, conjugate = loss.parts(m, conjugate=True)
    np.testing.assert_array_equal([value, slope], [loss.value(m), loss.slope(m)])
    np.testing.assert_array_equal(curvature, loss.curvature(m))
    np.testing.assert_allclose(
        conjugate, loss.conjugate(slope, np.ones(1)), rtol=1e-15, atol=1e-300
    )  # below, numbers have fewer digits
    np.testing.assert_allclose(slope * m, value + conjugate, rtol=1e-14, atol=1e-300)  # Fenchel
    root = loss.prox(m, step)
    np.testing.assert_allclose(root + step * loss.slope(root), m, atol=1e-13 * (step + abs(m[0])))
    alpha, cost = np.array([0.0, 1e-9, 0.3, 1.0, 2.0]), np.full(5, 2.0)
    assert np.all(alpha * m <= cost * loss.value(m) + loss.conjugate(alpha, cost) + 1e-12 * (1 + abs(m)))
    assert np.all(loss.conjugate(np.array([-1e-9, 2.1]), np.full(2, 2.0)) == np.inf)


def conic_optimum(X, y, K, C, gamma, beta, weights):
    """min F over all members: half of cvxpy's Huber function of the positive part."""
    W, b = cp.Variable((X.shape[1], K)), cp.Variable((1, K))
    row_sums = cp.sum(cp.abs(W), axis=1)
    penalty = gamma / 2 * cp.sum_squares(row_sums) + (1 - gamma) / 2 * cp.sum_squares(W)
    shortfall = 1 - cp.multiply(y[:, None], X @ W + np.ones((len(y), 1)) @ b)
    loss = cp.sum(cp.huber(cp.pos(shortfall), 1) / 2, axis=1)
    problem = cp.Problem(cp.Minimize(penalty + beta * cp.sum(row_sums) + C * (weights @ loss)))
    return problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)


@pytest.mark.parametrize(
    ("K", "gamma", "beta", "C"), [(1, 1.0, 0.0, 3.0), (3, 1.0, 0.5, 2.0), (4, 0.5, 0.0, 50.0)]
)
def test_it_is_the_optimum_of_a_conic_solver(K, gamma, beta, C):
    rng = np.random.default_rng(K)
    X, weights = rng.normal(size=(40, 5)), rng.uniform(0.5, 2, 40)
    y = np.where(X[:, 0] + rng.normal(size=40) > 0, 1.0, -1.0)
    best = conic_optimum(X, y, K, C, gamma, beta, weights)
    settings = {"n_members": K, "cost": C, "exclusivity": gamma, "sparsity": beta, "weights": weights}
    for kind in (np.asarray, sparse.csr_matrix):
        problem = ERMProblem.build(kind(X), y, loss=SmoothHinge(), **settings)
        regimes = ["interior"] if beta else ["semismooth", "interior", "iterative"]
        for found in [
            *(solve_newton(problem, tol=1e-9, options=NewtonOptions(regime)) for regime in regimes),
            solve_alm(problem, tol=1e-6),
        ]:
            assert found.converged
            assert best - 1e-8 * best <= found.objective <= best * (1 + found.gap) + 1e-8 * best


def test_many_rows_and_far_outliers():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(25_000, 4))  # enough for a sample of the rows to come first
    y = np.where(X @ [2, 1, 0, 0] + rng.normal(size=25_000) > 0, 1.0, -1.0)
    clf = ERMClassifier(2, loss="smooth_hinge", tol=1e-9).fit(X, y)
    assert clf.converged_.all()
    X[:500, 0] -= 10 * y[:500]  # one row in fifty far on the wrong side
    moved = ERMClassifier(2, loss="smooth_hinge", tol=1e-6).fit(X, y)
    squared = ERMClassifier(2, tol=1e-6).fit(X, y)
    assert moved.converged_.all()
    # The pull of an outlier is bounded by its cost; its square would win over the other rows.
    assert moved.score(X[500:], y[500:]) > squared.score(X[500:], y[500:]) + 0.02


def test_it_is_a_parameter_everywhere(tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    X, y = load_iris(return_X_y=True)
    clf = ERMClassifier(3, loss="smooth_hinge").fit(X, y)
    assert not hasattr(clf, "predict_proba")
    save_model(clf, tmp_path / "model.erm")
    assert load_model(tmp_path / "model.erm").loss == "smooth_hinge"
    session = runtime.InferenceSession(to_onnx(clf).SerializeToString())
    np.testing.assert_array_equal(session.run(None, {"X": X})[0], clf.predict(X))
    path = erm_path(X, y, Cs=[0.1, 1.0], loss="smooth_hinge", tol=1e-8)
    assert path.gaps.max() <= 1e-8
    chosen = ERMClassifierCV(loss="smooth_hinge", Cs=[0.1, 10.0], cv=3).fit(X, y)
    assert chosen.score(X, y) > 0.9


@pytest.mark.parametrize("exclusivity", [3.0, np.inf])
def test_members_that_compete(exclusivity):
    X, y = load_breast_cancer(return_X_y=True)
    X = scale(X)
    settings = {"exclusivity": exclusivity, "voting": "hard", "random_state": 0, "C": 0.1}
    clf = ERMClassifier(3, loss="smooth_hinge", **settings).fit(X, y)
    assert clf.converged_.all()
    assert clf.score(X, y) > 0.9
    assert clf.certify(X[:20]).max() >= 1 or exclusivity < np.inf


def test_blocks_of_rows_give_the_same():
    da = pytest.importorskip("dask.array")
    from exclusivity.dask import ERMClassifier as DaskClassifier

    X, y = load_iris(return_X_y=True)
    blocks, labels = da.from_array(X, chunks=(50, 4)), da.from_array(y, chunks=50)
    ours = DaskClassifier(3, loss="smooth_hinge", tol=1e-9).fit(blocks, labels)
    memory = ERMClassifier(3, loss="smooth_hinge", tol=1e-9).fit(X, y)
    np.testing.assert_allclose(ours.coef_, memory.coef_, atol=1e-4)
    sparse_too = DaskClassifier(3, loss="smooth_hinge", sparsity=0.5, tol=1e-6).fit(blocks, labels)
    assert sparse_too.converged_.all()


def test_the_command_takes_every_loss_of_the_table(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rows = [f"{value},{label}" for value, label in zip(range(20), "ab" * 10, strict=True)]
    (tmp_path / "rows.csv").write_text("\n".join(["x,kind", *rows]) + "\n")
    fit = ["fit", "rows.csv", "--target", "kind", "--quiet", "--folds", "0"]
    for name in OWN_LOSSES:
        assert main([*fit, "-o", f"{name}.erm", "--loss", name]) == 0
        assert load_model(f"{name}.erm")[-1].loss == name
    assert main([*fit, "-o", "m.erm", "--loss", "huber"]) == 2
    told = capsys.readouterr().err
    assert all(name in told for name in OWN_LOSSES)


def test_a_loss_of_ones_own_gets_a_name():
    own = names_of("add-a-loss.md")["Logistic"]
    X, y = load_breast_cancer(return_X_y=True)
    X = scale(X)
    try:
        register_loss("own", own)
        found = ERMClassifier(2, loss="own", tol=1e-9).fit(X, y)
    finally:
        LOSSES.pop("own", None)
    ours = ERMClassifier(2, loss="logistic", tol=1e-9).fit(X, y)
    np.testing.assert_allclose(found.coef_, ours.coef_, atol=1e-5)
    with pytest.raises(ValueError, match="there is a loss 'hinge' already"):
        register_loss("hinge", own)
    with pytest.raises(ValueError, match="'logistic', 'smooth_hinge'"):
        ERMClassifier(loss="own").fit(X, y)
    with pytest.raises(ValueError, match="p=1 is the power of the hinge, not of 'smooth_hinge'"):
        ERMClassifier(loss="smooth_hinge", p=1).fit(X, y)
