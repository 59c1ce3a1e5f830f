"""loss="logistic": the logistic regression of cost C / kappa, certified, with its probabilities."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import scale

from exclusivity import ERMClassifier, ERMClassifierCV, erm_path
from exclusivity.cli.main import main
from exclusivity.persistence import load_model, save_model, to_onnx
from exclusivity.problem import ERMProblem, Logistic, dual_bound
from exclusivity.solvers import NewtonOptions, solve_newton


@given(m=st.floats(-800, 800), step=st.floats(1e-3, 1e3))
def test_the_loss_keeps_its_contract(m, step):
    loss, m, h = Logistic(), np.array([m]), 1e-6
    np.testing.assert_allclose(loss.slope(m), (loss.value(m + h) - loss.value(m - h)) / (2 * h), atol=1e-6)
    value, slope, curvature = loss.parts(m)
    np.testing.assert_allclose(value, loss.value(m), rtol=1e-14)
    np.testing.assert_allclose(slope, loss.slope(m), rtol=1e-13)
    np.testing.assert_allclose(curvature, loss.curvature(m), rtol=1e-13)
    root = loss.prox(m, step)
    np.testing.assert_allclose(root + step * loss.slope(root), m, atol=1e-12 * (step + abs(m[0])))
    alpha, cost = np.array([0.0, 1e-9, 0.3, 1.0, 2.0]), np.full(5, 2.0)
    assert np.all(alpha * m <= cost * loss.value(m) + loss.conjugate(alpha, cost) + 1e-12 * (1 + abs(m)))
    at_slope = loss.conjugate(slope, np.ones(1))
    np.testing.assert_allclose(loss.conjugate_at(m, value, slope), at_slope, atol=1e-13)
    assert np.all(loss.conjugate(np.array([-1e-9, 2.1]), np.full(2, 2.0)) == np.inf)


def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return scale(X), y


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize(
    ("K", "exclusivity", "C", "tol"), [(1, 1.0, 0.1, 1e-11), (5, 1.0, 2.0, 3e-11), (30, 0.5, 30.0, 1e-10)]
)
def test_it_is_the_logistic_regression_of_another_cost(K, exclusivity, C, tol, fit_intercept, kind):
    X, y = cancer()
    weights = np.random.default_rng(0).integers(1, 4, len(y))
    kappa = 1 + exclusivity * (K - 1)
    ours = ERMClassifier(
        K, C=C, exclusivity=exclusivity, loss="logistic", fit_intercept=fit_intercept, tol=tol
    ).fit(kind(X), y, sample_weight=weights)
    theirs = LogisticRegression(
        C=C / kappa, tol=1e-12, solver="newton-cholesky", fit_intercept=fit_intercept, max_iter=1000
    ).fit(X, y, sample_weight=weights)
    assert ours.converged_.all()
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-6)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-6)
    np.testing.assert_allclose(ours.predict_proba(kind(X)), theirs.predict_proba(X), atol=1e-6)
    np.testing.assert_allclose(ours.predict_log_proba(X), theirs.predict_log_proba(X), atol=1e-4)


def test_many_classes_are_normalised_as_scikit_learn_does():
    X, y = load_iris(return_X_y=True)
    ours = ERMClassifier(3, C=3.0, loss="logistic", tol=1e-9).fit(X, y)
    theirs = OneVsRestClassifier(LogisticRegression(C=1, tol=1e-12, solver="newton-cholesky")).fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-6)
    np.testing.assert_allclose(ours.predict_proba(X).sum(axis=1), 1)
    np.testing.assert_array_equal(ours.classes_[ours.predict_proba(X).argmax(axis=1)], ours.predict(X))


@pytest.mark.parametrize("regime", ["semismooth", "iterative"])
@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_gaps_are_honest(regime, offset):
    X, y = cancer()
    problem = ERMProblem.build(X[:, :8] + offset, np.where(y == 1, 1.0, -1.0), cost=5.0, loss=Logistic())
    best = solve_newton(problem.changed(design=problem.design), tol=1e-13).objective
    for tol in (1e-2, 1e-5, 1e-9):
        found = solve_newton(problem, tol=tol, options=NewtonOptions(regime))
        assert found.converged
        assert (found.objective - best) / found.objective <= found.gap + 1e-12
        assert dual_bound(problem, found.dual) <= best * (1 + 1e-12)


def test_what_cannot_be_is_said():
    X, y = cancer()
    for settings, message in (
        ({"p": 1}, "p=1 is the power of the hinge"),
        ({"sparsity": 1.0}, "sparsity > 0"),
        ({"exclusivity": 3.0}, "between 1 and infinity"),
        ({"loss": "hinges"}, "'hinge', 'logistic'"),
        ({"solver_options": {"regime": "interior"}}, "Logistic is not"),
    ):
        with pytest.raises(ValueError, match=message):
            ERMClassifier(**{"loss": "logistic", **settings}).fit(X, y)
    hinge = ERMClassifier().fit(X, y)
    assert not hasattr(hinge, "predict_proba")
    assert not hasattr(hinge, "predict_log_proba")
    X, y = load_iris(return_X_y=True)
    for settings in ({"voting": "hard", "exclusivity": np.inf, "n_estimators": 2}, {"multi_class": "ovo"}):
        vote = ERMClassifier(**settings, loss="logistic", random_state=0).fit(X, y)
        assert vote.score(X, y) > 0.8
        assert not hasattr(vote, "predict_proba")


def test_any_finite_row_has_probabilities():
    X, y = cancer()
    clf = ERMClassifier(loss="logistic").fit(X, y)
    rows = np.array([np.full(30, 1e300), np.full(30, -1e300), np.zeros(30)])
    with np.errstate(over="ignore"):
        found = clf.predict_proba(rows)
    assert np.all(np.isfinite(found))
    np.testing.assert_allclose(found.sum(axis=1), 1)
    flowers = load_iris()
    clf = ERMClassifier(loss="logistic").fit(flowers.data, flowers.target)
    far = clf.predict_proba([[-1e12, 1e12, -1e12, -1e12], [1e12, 1e12, -1e12, 1e12]])
    np.testing.assert_allclose(far.sum(axis=1), 1)


def test_a_class_without_weight_is_never_likely():
    X, y = load_iris(return_X_y=True)
    clf = ERMClassifier(loss="logistic").fit(X, y, sample_weight=(y != 1).astype(float))
    assert clf.predict_proba(X)[:, 1].max() == 0
    assert clf.converged_.all()


def test_files_graphs_paths_and_folds_carry_it(tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    X, y = load_iris(return_X_y=True)
    for few in (2, 3):
        clf = ERMClassifier(3, loss="logistic").fit(X[y < few], y[y < few])
        save_model(clf, tmp_path / "model.erm")
        twin = load_model(tmp_path / "model.erm")
        np.testing.assert_array_equal(twin.predict_proba(X), clf.predict_proba(X))
        session = runtime.InferenceSession(to_onnx(clf).SerializeToString())
        _, _, probabilities = session.run(None, {"X": X})
        np.testing.assert_allclose(probabilities, clf.predict_proba(X), atol=1e-14)
    path = erm_path(X, y, Cs=[0.1, 1.0], loss="logistic", tol=1e-8)
    single = ERMClassifier(C=0.1, loss="logistic", tol=1e-8).fit(X, y)
    np.testing.assert_allclose(path.coefs[0], single.coef_, atol=1e-3)
    assert path.gaps.max() <= 1e-8
    chosen = ERMClassifierCV(loss="logistic", Cs=[0.1, 1.0, 10.0], scoring="neg_log_loss", cv=3).fit(X, y)
    assert chosen.predict_proba(X).shape == (150, 3)
    assert clone(chosen).loss == "logistic"


def test_blocks_of_rows_give_the_same():
    da = pytest.importorskip("dask.array")
    from exclusivity.dask import ERMClassifier as DaskClassifier

    X, y = load_iris(return_X_y=True)
    blocks, labels = da.from_array(X, chunks=(50, 4)), da.from_array(y, chunks=50)
    ours = DaskClassifier(3, loss="logistic", tol=1e-9).fit(blocks, labels)
    memory = ERMClassifier(3, loss="logistic", tol=1e-9).fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(blocks).compute(), memory.predict_proba(X), atol=1e-6)
    np.testing.assert_allclose(
        ours.predict_log_proba(blocks).compute(), memory.predict_log_proba(X), atol=1e-4
    )
    assert not hasattr(DaskClassifier().fit(blocks, labels), "predict_proba")


def test_the_command_writes_probabilities(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    X, y = load_iris(return_X_y=True)
    table = pytest.importorskip("pandas").DataFrame(X, columns=list("abcd"))
    rows = [",".join(map(str, [*row, label])) for row, label in zip(X.tolist(), y, strict=True)]
    (tmp_path / "iris.csv").write_text("\n".join(["a,b,c,d,species", *rows]) + "\n")
    fit = ["fit", "iris.csv", "--target", "species", "--quiet"]
    assert main([*fit, "-o", "odds.erm", "--loss", "logistic"]) == 0
    capsys.readouterr()
    assert main(["predict", "odds.erm", "iris.csv", "--proba", "--quiet"]) == 0
    first, *lines = capsys.readouterr().out.splitlines()
    assert first == "label,probability_0,probability_1,probability_2"
    numbers = np.array([list(map(float, line.split(",")[1:])) for line in lines])
    np.testing.assert_allclose(numbers.sum(axis=1), 1)
    np.testing.assert_allclose(numbers, load_model("odds.erm").predict_proba(table), atol=1e-12)
    assert main([*fit, "-o", "hinge.erm"]) == 0
    assert main(["predict", "hinge.erm", "iris.csv", "--proba", "--quiet"]) != 0
    assert "--loss logistic" in capsys.readouterr().err
