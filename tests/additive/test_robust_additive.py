"""RobustAdditiveClassifier: optimality, exact radii and invariances, against slow references."""

import itertools
import os
import warnings

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.utils.estimator_checks import parametrize_with_checks

from additive.oracles import conic_optimum, exhaustive_labels, exhaustive_radius, phi, reachable, reached_from
from exclusivity.additive import RobustAdditiveClassifier, objective, sums
from exclusivity.additive.classifier import _RIDGE

# More of them (540 models, a million attacked rows): EXCLUSIVITY_ADDITIVE_MODELS=60
# EXCLUSIVITY_ADDITIVE_PROBLEMS=300 EXCLUSIVITY_ADDITIVE_ATTACKED=334000 pytest tests/additive
N_MODELS = int(os.environ.get("EXCLUSIVITY_ADDITIVE_MODELS", "15"))
N_ATTACKED = int(os.environ.get("EXCLUSIVITY_ADDITIVE_ATTACKED", "5000"))
N_PROBLEMS = int(os.environ.get("EXCLUSIVITY_ADDITIVE_PROBLEMS", "30"))
THREATS = ["any", "trusted", "increase", "decrease", "missing", (-0.5, 0.75)]


def random_table(rng, n_rows, n_columns):
    """Numbers and categories, some of them missing, and threats that fit them."""
    X, threats = np.empty((n_rows, n_columns), dtype=object), []
    for j in range(n_columns):
        if rng.random() < 0.3:
            X[:, j] = rng.choice(["a", "b", "c"], n_rows)
            threats.append(["any", "trusted", "missing"][rng.integers(3)])
        else:
            X[:, j] = np.round(rng.normal(size=n_rows), 1)
            threats.append(THREATS[rng.integers(len(THREATS))])
        if rng.random() < 0.5:
            X[rng.random(n_rows) < 0.2, j] = None
    return X, threats


@pytest.mark.parametrize("seed", range(N_PROBLEMS))
def test_optimum_is_that_of_a_conic_solver(seed):
    rng = np.random.default_rng(seed)
    n_rows, n_columns = 16, int(rng.integers(2, 6))
    X, threats = random_table(rng, n_rows, n_columns)
    y = np.arange(n_rows) % 2
    groups = rng.integers(0, 3, n_columns) if rng.random() < 0.5 else np.arange(n_columns)
    groups = np.unique(groups, return_inverse=True)[1]
    loss = ["squared_hinge", "hinge", "logistic"][seed % 3]
    monotone = None
    weight = rng.integers(1, 4, n_rows).astype(float)
    model = RobustAdditiveClassifier(
        int(rng.integers(0, 3)),
        C=0.5,
        clean_weight=[0.75, 0.3, 0.0][seed % 4 % 3],
        loss=loss,
        n_knots=4,
        feature_groups=groups,
        tol=1e-3,
        max_iter=5000,
        threats=dict(enumerate(threats)),
    )
    if rng.random() < 0.5:
        kinds = [c.kind for c in model.fit(X, y, weight).columns_]
        monotone = [0 if kind == "category" else int(rng.integers(-1, 2)) for kind in kinds]
        model.set_params(monotonic_cst=monotone)
    model.fit(X, y, weight)
    radii = range(model.max_broken + 1)
    best = conic_optimum(model, X, y, 0.5 * weight, threats, groups, radii, loss, monotone, _RIDGE)
    assert model.dual_gap_[0] <= model.tol
    assert best * (1 - 1e-7) <= model.objective_[0] <= best / (1 - model.dual_gap_[0]) * (1 + 1e-7)
    if monotone is not None:
        for place, sign in enumerate(monotone):
            start = model._levels.starts[place]
            curve = model.points_[0, start : start + len(model.columns_[place].knots)]
            assert (sign * np.diff(curve) >= -1e-12).all()


def dyadic_model(rng, n_classes):
    """A model with numbers that binary arithmetic is exact for."""
    n_columns = int(rng.integers(1, 6))
    X, threats = np.empty((16, n_columns), dtype=object), []
    for j in range(n_columns):
        if rng.random() < 0.3:
            X[:, j] = np.array(["a", "b", "c", None], dtype=object)[np.arange(16) % 4]
            threats.append(["any", "trusted", "missing"][rng.integers(3)])
        else:
            X[:, j] = np.array([0.0, 1.0, 2.0, 4.0])[rng.permutation(16) % 4]
            threats.append(["any", "trusted", "increase", "decrease", "missing", (1.0, 2.0)][rng.integers(6)])
    groups = np.unique(rng.integers(0, n_columns, n_columns), return_inverse=True)[1]
    model = RobustAdditiveClassifier(1, feature_groups=groups, threats=dict(enumerate(threats)), tol=0.5)
    model.fit(X, np.arange(16) % n_classes)
    model.points_ = rng.integers(-8, 9, model.points_.shape) / 8
    for place, column in enumerate(model.columns_):
        if not column.has_missing:  # a value inside the range, as a mean has it
            start, stop = model._levels.starts[place : place + 2]
            model.points_[:, stop - 1] = model.points_[:, start]
    model.intercept_ = rng.integers(-8, 9, model.intercept_.shape) / 8
    model._prepare()
    return model, threats, groups


def dyadic_cells(rng, model, n_rows):
    """Cells on knots, between them, beyond them, missing and unseen."""
    cells = np.empty((n_rows, len(model.columns_)), dtype=object)
    for j, column in enumerate(model.columns_):
        if column.kind == "category":
            cells[:, j] = rng.choice(np.array(["a", "b", "new", None], dtype=object), n_rows)
        else:
            cells[:, j] = rng.choice(np.array([-1, 0, 0.5, 1, 1.25, 3, 4, 9, None], dtype=object), n_rows)
    return cells


def label_by_definition(model):
    """Return a function from chosen points to a label; None for a tie of two classes."""
    starts, n_classes = model._levels.starts, len(model.classes_)

    def label_of(chosen):
        scores = [
            b + sum(float(row @ points[starts[j] : starts[j + 1]]) for j, row in enumerate(chosen))
            for points, b in zip(model.points_, model.intercept_, strict=True)
        ]
        if n_classes == 2:
            return None if scores[0] == 0 else int(scores[0] > 0)
        leads = np.full(n_classes, np.inf)
        for (c, d), lead in zip(itertools.combinations(range(n_classes), 2), scores, strict=True):
            leads[c], leads[d] = min(leads[c], -lead), min(leads[d], lead)
        return int(np.argmax(leads))

    return label_of


def other_threats(rng, model):
    """Threats for certify that the model was not trained against; ends of intervals are no knots."""
    numbers = ["any", "trusted", "increase", "decrease", "missing", (0.5, 1.25), (0.25, 3.0), (-2.0, 0.5)]
    kinds = [numbers if column.kind == "number" else numbers[:2] for column in model.columns_]
    return [each[rng.integers(len(each))] for each in kinds]


@pytest.mark.parametrize("n_classes", [2, 3, 4])
@pytest.mark.parametrize("mode", ["trained", "other threats", "attacked"])
def test_radius_against_exhaustive_search(n_classes, mode):
    rng = np.random.default_rng(n_classes)
    n_checked, n_exact = 0, 0
    for _ in range(N_MODELS):
        model, threats, groups = dyadic_model(rng, n_classes)
        cells = dyadic_cells(rng, model, 3)
        label_of = label_by_definition(model)
        settings = {}
        if mode == "other threats":
            threats = other_threats(rng, model)
            settings = {"threats": dict(enumerate(threats))}
        reach = reached_from if mode == "attacked" else reachable
        settings["attacked"] = mode == "attacked"
        radii, labels = model.certify(cells, **settings), model.predict(cells)
        can_win = {r: model.certify_set(cells, r, **settings) for r in (0, 1, 2)}
        for row in range(len(cells)):
            own = [phi(column, x) for column, x in zip(model.columns_, cells[row], strict=True)]
            if label_of(own) is None:
                assert radii[row] == -1
                continue
            search = (label_of, model.columns_, cells[row], threats, groups.tolist())
            true = exhaustive_radius(*search, labels[row], reach)
            n_checked += 1
            n_exact += radii[row] == true
            assert radii[row] <= true
            may_be_rough = n_classes > 2 or (
                mode == "attacked" and any(isinstance(t, tuple) for t in threats)
            )
            assert may_be_rough or radii[row] == true
            for r, sets in can_win.items():
                found = set(np.flatnonzero(sets[row]))
                possible = exhaustive_labels(*search, r, reach)
                assert possible - {None} <= found
                assert may_be_rough or None in possible or found == possible
                assert radii[row] < r or found == {labels[row]}
    assert n_checked > 1.6 * N_MODELS
    assert n_exact > 0.3 * n_checked


@pytest.mark.parametrize("load", [load_breast_cancer, load_wine, load_digits])
def test_broken_cells_of_a_real_table_do_not_change_certified_labels(load):
    """Break as many columns as are certified, in every row, again and again."""
    rng = np.random.default_rng(0)
    X, y = load(return_X_y=True)
    X, y = X[y < 4].astype(float), y[y < 4]
    X[rng.random(X.shape) < 0.01] = np.nan
    model = RobustAdditiveClassifier(2, C=0.03).fit(X[::2], y[::2])
    rows = X[1::2]
    labels, radii = model.predict(rows), model.certify(rows)
    assert (radii >= 1).mean() > 0.7
    values = [np.nan, np.inf, -np.inf, 1e300, -1e300, 0.0, -0.0, 5e-324, 1e3, -7.5, *X[0, :3]]
    for attempt in range(-(-N_ATTACKED // len(rows))):
        order = np.argsort(rng.random(rows.shape), axis=1)
        is_broken = np.argsort(order, axis=1) < np.maximum(radii, 0)[:, None]
        broken = np.where(is_broken, rng.choice(values, rows.shape), rows)
        if attempt == 0:
            broken = broken.astype(object)
            broken[is_broken] = rng.choice(
                np.array(["word", "7", None, "", 10**400], dtype=object), is_broken.sum()
            )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of words among numbers
            assert np.array_equal(model.predict(broken)[radii >= 0], labels[radii >= 0])
    for r in range(3):
        attacked = model.predict(model.attack(rows, r))
        assert np.array_equal(attacked[radii >= r], labels[radii >= r])


def test_invariances():
    """The optimum is unique: what does not change the problem changes neither objective nor scores."""
    rng = np.random.default_rng(1)
    X, y = load_breast_cancer(return_X_y=True)
    X, y = X[:150, :8], y[:150]
    tol = 1e-3
    model = RobustAdditiveClassifier(tol=tol, max_iter=5000).fit(X, y)

    def assert_same(X2, y2, sign=1, weight=None, old=model, rows=X):
        new = RobustAdditiveClassifier(tol=tol, max_iter=5000).fit(X2, y2, weight)
        assert new.objective_[0] == pytest.approx(old.objective_[0], rel=2 * tol)
        assert np.allclose(sign * new.decision_function(rows), old.decision_function(X), atol=0.1)
        return new

    order, columns = rng.permutation(len(X)), rng.permutation(8)
    assert_same(X[order], y[order])
    assert_same(X, 1 - y, sign=-1)
    assert_same(X[:, columns], y, rows=X[:, columns])
    assert_same(4 * X + 8, y, rows=4 * X + 8)
    weight = rng.integers(1, 3, len(X))
    twice = np.repeat(np.arange(len(X)), weight)
    repeated = RobustAdditiveClassifier(tol=tol, max_iter=5000).fit(X[twice], y[twice])
    weighted = assert_same(X, y, weight=weight, old=repeated)
    assert np.array_equal(weighted.columns_[0].knots, repeated.columns_[0].knots)


def test_several_classes():
    X, y = load_iris(return_X_y=True)
    model = RobustAdditiveClassifier().fit(X, y)
    scores = model.decision_function(X)
    assert np.array_equal(model.predict(X), model.classes_[np.argmax(scores, axis=1)])
    assert model.score(X, y) > 0.93
    assert ((model.certify(X) >= 0) == (scores.max(axis=1) > 0)).mean() > 0.99


def test_stands():
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    model = RobustAdditiveClassifier().fit(X[::2], y[::2])
    rows = X[1::2]
    labels = model.predict(rows)
    names = ["mean texture", "mean area", "worst area"]
    stands = model.stands(rows, names)
    assert stands.mean() > (model.certify(rows) >= 3).mean()
    rng = np.random.default_rng(0)
    for _ in range(20):
        broken = rows.copy()
        broken[names] = rng.choice([np.nan, 0.0, 1e9, -5.0], (len(rows), 3))
        assert np.array_equal(model.predict(broken)[stands], labels[stands])


@pytest.mark.parametrize("threats", ["any", "increase", "missing"])
def test_attack_reaches_what_certificates_exclude(threats):
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    model = RobustAdditiveClassifier(2, threats=threats).fit(X[::2], y[::2])
    rows = X[1::2]
    labels, radii = model.predict(rows), model.certify(rows)
    for r in range(4):
        attacked = model.predict(model.attack(rows, r))
        assert np.array_equal(attacked[radii >= r], labels[radii >= r])
        turned = radii < r if threats == "any" else (radii < r) & (radii < X.shape[1] - 1)
        assert not turned.any() or (attacked[turned] != labels[turned]).mean() > 0.98


def test_explain_adds_up():
    X, y = load_breast_cancer(return_X_y=True)
    model = RobustAdditiveClassifier().fit(X, y)
    assert np.allclose(model.explain(X).sum(axis=1) + model.intercept_[0], model.decision_function(X))
    X, y = load_iris(return_X_y=True)
    model = RobustAdditiveClassifier().fit(X, y)
    scores = np.sort(model.decision_function(X), axis=1)[:, -1]
    found = model.explain(X).sum(axis=1)
    assert (np.abs(found - scores)[:, None] - np.abs(model.intercept_)).min(axis=1).max() < 1e-9


def test_probabilities():
    X, y = load_iris(return_X_y=True)
    model = RobustAdditiveClassifier(loss="logistic").fit(X, y)
    found = model.predict_proba(X)
    assert np.allclose(found.sum(axis=1), 1)
    assert (model.classes_[found.argmax(axis=1)] == model.predict(X)).mean() > 0.98
    two = RobustAdditiveClassifier(loss="logistic").fit(X[50:], y[50:])
    assert np.allclose(two.predict_proba(X)[:, 1], 1 / (1 + np.exp(-two.decision_function(X))))
    assert not hasattr(RobustAdditiveClassifier(), "predict_proba")


def test_compiled_passes_agree_with_numpy(monkeypatch):
    if objective.compiled is None:
        pytest.skip("nothing is compiled here")
    rng = np.random.default_rng(0)
    for loss in ("squared_hinge", "hinge", "logistic"):
        X, threats = random_table(rng, 60, 5)
        model = RobustAdditiveClassifier(
            2, loss=loss, threats=dict(enumerate(threats)), feature_groups=[0, 0, 1, 2, 3]
        )
        calls = []
        smoothed = objective.RobustObjective.smoothed

        def both(problem, h, b, eps, calls=calls, smoothed=smoothed):
            fast = smoothed(problem, h, b, eps)
            with monkeypatch.context() as patched:
                patched.setattr(sums, "compiled", None)
                slow = smoothed(problem, h, b, eps)
            assert fast[0] == pytest.approx(slow[0], rel=1e-10)
            np.testing.assert_allclose(fast[1], slow[1], rtol=1e-8, atol=1e-9)
            assert fast[2].conjugate == pytest.approx(slow[2].conjugate, abs=1e-9)
            calls.append(1)
            return fast

        with monkeypatch.context() as patched:
            patched.setattr(objective.RobustObjective, "smoothed", both)
            model.fit(X, np.arange(60) % 2)
        assert len(calls) > 10


def test_anything_in_a_cell():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "number": rng.normal(size=60),
            "word": rng.choice(["x", "y"], 60),
            "flag": rng.random(60) > 0.5,
            "day": pd.date_range("2024-01-01", periods=60),
        }
    )
    y = np.where(frame["number"] + (frame["word"] == "x") > 0.5, "yes", "no")
    model = RobustAdditiveClassifier().fit(frame, y)
    assert [column.kind for column in model.columns_] == ["number", "category", "category", "date"]
    assert model.score(frame, y) > 0.85
    odd = pd.DataFrame(
        {
            "number": ["word", np.inf, None, 3],
            "word": ["new", None, 7, "x"],
            "flag": [None, True, "maybe", 0],
            "day": [None, "2024-02-03", "soon", 5],
        }
    )
    with pytest.warns(UserWarning, match="1 cell with no number, such as 'word'.* 2 cells with no date"):
        assert set(model.predict(odd)) <= {"yes", "no"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        assert np.array_equal(model.certify(odd), [model.certify(odd[i : i + 1])[0] for i in range(4)])
    with pytest.warns(UserWarning, match="column 'word' is absent, and all of its cells count as missing"):
        model.predict(frame[["day", "flag", "number"]])
    assert np.array_equal(model.predict(frame[frame.columns[::-1]]), model.predict(frame))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"max_broken": -1}, "max_broken must be an integer at least 0 and finite; got -1"),
        ({"C": 0}, "C must be a number above 0 and finite; got 0"),
        ({"loss": "log"}, "loss must be one of"),
        ({"threats": {"x9": "any"}}, "threats names 'x9', which is no column of X; there are 'x0', 'x1'."),
        ({"threats": "rise"}, "must be one of .*increase.*; got 'rise'"),
        ({"monotonic_cst": [1]}, "monotonic_cst must have 1, -1 or 0 for each of 2 columns"),
        ({"monotonic_cst": {1: 1}}, "monotonic_cst names 'x1', which holds categories, which have no order"),
        (
            {"threats": {1: "increase"}},
            "'increase' is for numbers and dates, and column 'x1' holds categories",
        ),
        ({"categorical_features": ["x7"]}, "categorical_features names 'x7', which is no column"),
    ],
)
def test_mistakes(parameters, message):
    X = np.array([[float(i), "ab"[i % 2]] for i in range(30)], dtype=object)
    with pytest.raises(ValueError, match=message):
        RobustAdditiveClassifier(**parameters).fit(X, np.arange(30) % 2)


def test_more_broken_columns_than_there_are():
    X, y = np.random.default_rng(0).normal(size=(30, 3)), np.arange(30) % 2
    with pytest.warns(UserWarning, match="max_broken=3 is more than the 2 columns or groups of X"):
        RobustAdditiveClassifier(3, feature_groups=["a", "a", "b"]).fit(X, y)
    RobustAdditiveClassifier(3).fit(X, y)  # all of them may break: no warning


@parametrize_with_checks([RobustAdditiveClassifier()])
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize("groups", [None, [0, 0, 1, 1, 2]])
@pytest.mark.parametrize("loss", ["squared_hinge", "hinge", "logistic"])
def test_newton_agrees_with_lbfgs(loss, groups, monkeypatch):
    if objective.compiled is None:
        pytest.skip("nothing is compiled here")
    rng = np.random.default_rng(0)
    X, threats = random_table(rng, 1200, 5)
    y = (X == "a").sum(axis=1) + rng.normal(size=1200) > 0.5
    settings = {"loss": loss, "feature_groups": groups, "threats": dict(enumerate(threats)), "tol": 1e-3}
    derivatives, hessian = [], objective.RobustObjective.hessian

    def checked(problem, h, b, eps):
        found = hessian(problem, h, b, eps)
        x, delta = np.append(h, b), 1e-7
        if not derivatives:
            for place in rng.choice(len(x), 3, replace=False):
                step = delta * (np.arange(len(x)) == place)
                ends = [problem.smoothed((x + s)[:-1], (x + s)[-1], eps)[1] for s in (step, -step)]
                derivatives.append(np.abs((ends[0] - ends[1]) / (2 * delta) - found[place]).max())
            derivatives.append(0.0)
            assert max(derivatives) < 1e-3 * np.abs(found).max()
        return found

    monkeypatch.setattr(objective.RobustObjective, "hessian", checked)
    fast = RobustAdditiveClassifier(2, **settings).fit(X, y)
    assert derivatives
    monkeypatch.setattr(objective.RobustObjective, "has_hessian", False)
    slow = RobustAdditiveClassifier(2, max_iter=5000, **settings).fit(X, y)
    for one, other in ((fast, slow), (slow, fast)):
        assert one.dual_gap_[0] <= 1e-3
        assert one.objective_[0] >= other.objective_[0] * (1 - other.dual_gap_[0]) * (1 - 1e-9)


def test_all_columns_trusted_is_an_ordinary_additive_model():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))  # enough rows for Newton's method
    y = (X[:, 0] + rng.normal(size=600) > 0).astype(int)
    trusted, plain = (
        RobustAdditiveClassifier(threats="trusted").fit(X, y),
        RobustAdditiveClassifier(0).fit(X, y),
    )
    assert trusted.objective_ == pytest.approx(plain.objective_, rel=2 * trusted.tol)
    assert (trusted.certify(X) == 0).all()  # there is no column that can break


def test_no_weight_on_clean_rows_without_kernels(monkeypatch):
    """A share of zero has no conjugate: the bound was lost where nothing is compiled."""
    for module in (sums, objective):
        monkeypatch.setattr(module, "compiled", None)
    X, y = load_breast_cancer(return_X_y=True)
    model = RobustAdditiveClassifier(clean_weight=0.0).fit(X[:100, :4], y[:100])
    assert model.converged_.all()
