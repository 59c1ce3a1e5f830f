"""loss="logistic": the logistic regression of cost C / kappa, certified, with its probabilities."""

from __future__ import annotations

import warnings

import cvxpy as cp
import numpy as np
import pytest
import sklearn
from hypothesis import given, strategies as st
from scipy import sparse
from scipy.special import expit
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import scale
from sklearn.utils.fixes import parse_version

from exclusivity import ERMClassifier, ERMClassifierCV, erm_path
from exclusivity.cli.main import main
from exclusivity.io import load_model, save_model, to_onnx
from exclusivity.objective.losses import Logistic
from exclusivity.objective.objective import ERMProblem, dual_bound
from exclusivity.solvers import NewtonOptions, solve_newton


@given(m=st.floats(-800, 800), step=st.floats(1e-3, 1e3))
def test_the_loss_keeps_its_contract(m, step):
    loss, m, h = Logistic(), np.array([m]), 1e-6
    np.testing.assert_allclose(loss.slope(m), (loss.value(m + h) - loss.value(m - h)) / (2 * h), atol=1e-6)
    value, slope, curvature, conjugate = loss.parts(m, conjugate=True)
    tiny = 1e-300  # subnormal numbers have fewer digits
    np.testing.assert_allclose(value, loss.value(m), rtol=1e-14, atol=tiny)
    np.testing.assert_allclose(slope, loss.slope(m), rtol=1e-13, atol=tiny)
    np.testing.assert_allclose(curvature, loss.curvature(m), rtol=1e-13, atol=tiny)
    root = loss.prox(m, step)
    np.testing.assert_allclose(root + step * loss.slope(root), m, atol=1e-12 * (step + abs(m[0])))
    alpha, cost = np.array([0.0, 1e-9, 0.3, 1.0, 2.0]), np.full(5, 2.0)
    assert np.all(alpha * m <= cost * loss.value(m) + loss.conjugate(alpha, cost) + 1e-12 * (1 + abs(m)))
    at_slope = loss.conjugate(slope, np.ones(1))
    np.testing.assert_allclose(conjugate, at_slope, atol=1e-13)
    assert np.all(loss.conjugate(np.array([-1e-9, 2.1]), np.full(2, 2.0)) == np.inf)


def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return scale(X), y


def test_it_is_called_what_it_is():
    X, y = cancer()
    told = repr(ERMClassifier(5, loss="logistic").fit(X, y))
    assert "5 equal members = one logistic regression at cost C/5" in told


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


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_with_sparsity_it_is_the_elastic_net(fit_intercept):
    X, y = cancer()
    X, y, (K, C, beta, kappa) = X[::3, :8], y[::3], (4, 3.0, 12.0, 4.0)
    weights = np.random.default_rng(0).integers(1, 3, len(y))
    ours = ERMClassifier(K, C=C, sparsity=beta, loss="logistic", fit_intercept=fit_intercept, tol=1e-11)
    ours.fit(X, y, sample_weight=weights)
    # 1/2 |w|^2 + l |w|_1 + c loss, times 1 - r, is scikit-learn's elastic net with r / (1 - r) = l.
    share = beta / kappa / (1 + beta / kappa)
    theirs = LogisticRegression(
        C=(1 - share) * C / kappa,
        l1_ratio=share,
        **({"penalty": "elasticnet"} if parse_version(sklearn.__version__) < parse_version("1.8") else {}),
        solver="saga",
        tol=1e-10,
        max_iter=100_000,
        fit_intercept=fit_intercept,
        random_state=0,
    ).fit(X, y, sample_weight=weights)
    assert ours.converged_.all()
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-6)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-6)
    np.testing.assert_array_equal(ours.coef_ == 0, np.abs(theirs.coef_) < 1e-7)
    assert 0 < np.count_nonzero(ours.coef_) < 8


@pytest.mark.parametrize("sparsity", [0.0, 3.0])
@pytest.mark.parametrize("regime", ["semismooth", "iterative"])
@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_gaps_are_honest(regime, offset, sparsity):
    X, y = cancer()
    signs = np.where(y == 1, 1.0, -1.0)
    problem = ERMProblem.build(X[:, :8] + offset, signs, cost=5.0, loss=Logistic(), sparsity=sparsity)
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


@pytest.mark.filterwarnings("ignore:The best C:UserWarning")
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


def test_a_vote_of_logistic_members_is_certified_everywhere(tmp_path):
    runtime, da = pytest.importorskip("onnxruntime"), pytest.importorskip("dask.array")
    from exclusivity.dask import ERMClassifier as DaskClassifier

    X, y = load_iris(return_X_y=True)
    X, weights = scale(X), np.random.default_rng(0).integers(1, 4, 150)
    settings = {"exclusivity": np.inf, "loss": "logistic", "random_state": 0, "C": 1.0, "tol": 1e-10}
    for voting in ("hard", "runoff"):
        vote = ERMClassifier(3, voting=voting, **settings).fit(X, y, sample_weight=weights)
        repeated = ERMClassifier(3, voting=voting, partition=vote.partition_, **settings)
        repeated.fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
        np.testing.assert_allclose(vote.components_, repeated.components_, atol=1e-4)
        # Every member is the logistic regression of cost C on the features that it owns.
        for k, support in enumerate(vote.supports_):
            alone = LogisticRegression(C=1.0, tol=1e-12, solver="newton-cholesky")
            alone.fit(X[:, support], y == 1, sample_weight=weights)
            np.testing.assert_allclose(vote.components_[1, k, support], alone.coef_[0], atol=1e-4)
        with pytest.raises(AttributeError) as refused:
            vote.predict_proba  # noqa: B018 -- asking for it is enough
        assert "favour another class than the vote does" in str(refused.value.__cause__)
        radii = vote.certify(X)
        assert radii.max() == 1
        broken = X.copy()
        broken[:, 2] = 1e6
        safe = radii >= 1
        np.testing.assert_array_equal(vote.predict(broken)[safe], vote.predict(X)[safe])
        save_model(vote, tmp_path / "vote.erm")
        twin = load_model(tmp_path / "vote.erm")
        np.testing.assert_array_equal(twin.certify(X), radii)
        session = runtime.InferenceSession(to_onnx(vote).SerializeToString())
        np.testing.assert_array_equal(session.run(None, {"X": X})[0], vote.predict(X))
        blocks, labels = da.from_array(X, chunks=(50, 4)), da.from_array(y, chunks=50)
        of_blocks = DaskClassifier(3, voting=voting, **{**settings, "tol": 1e-7})
        of_blocks.fit(blocks, labels, sample_weight=da.from_array(weights, chunks=50))
        assert np.mean(of_blocks.predict(blocks).compute() == vote.predict(X)) > 0.9
        assert of_blocks.converged_.all()


def conic_member(X, y, C, penalties):
    """min over one member of 1/2 |w|^2 + sum_j l_j |w_j| + C sum_i log(1 + exp(-y_i f_i)).

    On exponential cones the solver may stop a little early and say so. What counts is where: f is strongly
    convex in w, so that a subgradient of length r leaves about r^2 / 2.
    """
    w, b = cp.Variable(X.shape[1]), cp.Variable()
    loss = cp.sum(cp.logistic(-cp.multiply(y, X @ w + b)))
    problem = cp.Problem(cp.Minimize(cp.sum_squares(w) / 2 + penalties @ cp.abs(w) + C * loss))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Solution may be inaccurate")
        value = problem.solve(solver=cp.CLARABEL)
    pull = C * y * expit(-y * (X @ w.value + b.value))
    slope = w.value - X.T @ pull
    at_zero = np.maximum(np.abs(slope) - penalties, 0)
    residual = np.where(np.abs(w.value) > 1e-5, slope + penalties * np.sign(w.value), at_zero)
    assert np.hypot(np.linalg.norm(residual), pull.sum()) < 2e-3  # of values above 10: 1e-7 of them
    return value


@pytest.mark.parametrize("sparsity", [0.0, 0.3])
def test_members_that_compete_are_each_the_best_against_the_others(sparsity):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 6))
    y = np.where(X[:, :4].sum(axis=1) + rng.normal(size=60) > 0, 1.0, -1.0)
    n_shared = []
    for gamma in (1.2, 3.0, 100.0):
        clf = ERMClassifier(
            3, exclusivity=gamma, sparsity=sparsity, loss="logistic", random_state=0, C=2.0, tol=1e-7
        ).fit(X, y)
        assert clf.converged_.all()
        W, b = clf.components_[0], clf.component_intercepts_[0]
        for k in range(3):
            penalties = sparsity + gamma * np.abs(np.delete(W, k, axis=0)).sum(axis=0)
            value = W[k] @ W[k] / 2 + penalties @ np.abs(W[k])
            value += 2.0 * np.logaddexp(0, -y * (X @ W[k] + b[k])).sum()
            best = conic_member(X, y, 2.0, penalties)
            assert best * (1 - 1e-6) <= value <= best * (1 + 2e-6)
        n_shared.append(int((np.count_nonzero(W, axis=0) > 1).sum()))
    assert n_shared[0] > n_shared[2] == 0
    assert clf.predict_proba(X).shape == (60, 2)


def test_averaged_members_that_differ_have_probabilities_in_the_order_of_their_scores():
    X, y = load_iris(return_X_y=True)
    clf = ERMClassifier(2, exclusivity=np.inf, loss="logistic", random_state=0).fit(scale(X), y)
    found = clf.predict_proba(scale(X))
    np.testing.assert_array_equal(clf.classes_[found.argmax(axis=1)], clf.predict(scale(X)))
