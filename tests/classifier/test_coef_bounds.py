"""coef_bounds and monotonic_cst: what they may look like, what they promise, and where they are refused."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.preprocessing import scale

from exclusivity import ERMClassifier, ERMClassifierCV, erm_path
from exclusivity.io import load_model, save_model

pd = pytest.importorskip("pandas")

NAMES = ["radius", "texture", "area", "smooth", "concave", "symmetry"]


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return pd.DataFrame(scale(X[:, :6]), columns=NAMES), y


def test_all_ways_to_give_bounds_are_one(cancer):
    X, y = cancer
    inf = np.inf
    same = [
        ((0.0, [inf, inf, inf, 0.3, inf, inf]), None),
        (([0] * 6, np.array([inf, inf, inf, 0.3, inf, inf])), None),
        ((0, {"smooth": 0.3}), None),
        ({name: (0, 0.3 if name == "smooth" else None) for name in NAMES}, None),
        ((None, {"smooth": 0.3}), [1, 1, 1, 1, 1, 1]),
        ({"smooth": (-1, 0.3)}, dict.fromkeys(NAMES, 1)),
        ([-inf, {"smooth": 0.3}], np.ones(6)),
    ]
    models = [ERMClassifier(3, coef_bounds=b, monotonic_cst=m, tol=1e-9).fit(X, y) for b, m in same]
    for model in models:
        np.testing.assert_array_equal(model.coef_, models[0].coef_)
        assert model.coef_.min() >= 0
        assert model.coef_[0, 3] <= 0.3
    assert np.count_nonzero(models[0].coef_ == 0) > 0, "zeros at a bound are exact"


@pytest.mark.parametrize("loss", [{"p": 1}, {"p": 1.5}, {"p": 2}, {"loss": "logistic"}])
@pytest.mark.parametrize("sparsity", [0.0, 2.0])
def test_scores_are_monotone_and_certified(cancer, loss, sparsity):
    X, y = cancer
    signs = {"radius": -1, "texture": 1, "area": -1}
    settings = {**loss, "sparsity": sparsity, "tol": 1e-7}
    model = ERMClassifier(5, monotonic_cst=signs, **settings).fit(X, y)
    assert model.converged_.all()
    before = model.decision_function(X)
    for name, sign in signs.items():
        moved = X.assign(**{name: X[name] + 1.0})
        assert np.all(sign * (model.decision_function(moved) - before) >= -1e-12)
    free = ERMClassifier(5, **settings).fit(X, y)
    assert model.objective_[0] > free.objective_[0], "the signs must cost something here"
    # Bounds that the solution keeps anyway cost nothing.
    kept = ERMClassifier(5, coef_bounds=(free.coef_[0] - 1, free.coef_[0] + 1), **settings).fit(X, y)
    assert kept.objective_[0] == pytest.approx(free.objective_[0], rel=3e-7)


def test_the_other_class_has_the_opposite_signs(cancer):
    X, y = cancer
    model = ERMClassifier(2, monotonic_cst={"texture": 1}, coef_bounds=(-0.5, 0.7), tol=1e-10).fit(X, y)
    other = ERMClassifier(2, monotonic_cst={"texture": -1}, coef_bounds=(-0.7, 0.5), tol=1e-10).fit(X, 1 - y)
    np.testing.assert_allclose(model.coef_, -other.coef_, atol=1e-4)


def test_float32_weights_are_inside_too(cancer):
    X, y = cancer
    bounds = (0.1, 1 / 3)
    model = ERMClassifier(3, coef_bounds=bounds).fit(X.astype(np.float32), y)
    assert model.coef_.dtype == np.float32
    stored = model.coef_.astype(float)
    assert stored.min() >= bounds[0]
    assert stored.max() <= bounds[1]
    assert model.converged_.all()
    with pytest.raises(ValueError, match="leave no float32 weight for column 'radius'"):
        ERMClassifier(3, coef_bounds=(0.1, 0.1)).fit(X.astype(np.float32), y)


@pytest.mark.parametrize("voting", ["soft", "hard"])
def test_members_on_features_of_their_own_keep_the_bounds(cancer, voting):
    X, y = cancer
    settings = {"exclusivity": np.inf, "voting": voting, "random_state": 0}
    model = ERMClassifier(2, monotonic_cst=[-1, 1, -1, 0, 0, 0], coef_bounds=(-0.4, 0.4), **settings)
    model.fit(X, y)
    members = model.components_[0]
    assert members[:, [0, 2]].max() <= 0
    assert members[:, 1].min() >= 0
    assert np.abs(members).max() <= 0.4
    assert model.converged_.all()
    with pytest.raises(ValueError, match=r"bounds of column 'radius', .* keep it from zero"):
        ERMClassifier(2, coef_bounds=({"radius": 0.1}, None), **settings).fit(X, y)


def test_many_classes_have_bounds_for_each_class_against_the_rest():
    X, y = load_iris(return_X_y=True)
    model = ERMClassifier(2, coef_bounds=(0, 0.5)).fit(X, y)
    assert model.coef_.shape == (3, 4)
    assert model.coef_.min() >= 0
    assert model.coef_.max() <= 0.5
    pairs = ERMClassifier(2, coef_bounds=(-0.2, 0.2), multi_class="ovo").fit(X, y)
    assert np.abs(pairs.coef_).max() <= 0.2
    with pytest.raises(ValueError, match="must be symmetric"):
        ERMClassifier(2, coef_bounds=(0, 0.5), multi_class="ovo").fit(X, y)
    with pytest.raises(ValueError, match=r"Fit the class that matters against the rest \(y == label\)"):
        ERMClassifier(2, monotonic_cst=[1, 0, 0, 0]).fit(X, y)
    assert ERMClassifier(2, monotonic_cst=[1, 0, 0, 0]).fit(X, y == 2).coef_[0, 0] >= 0


def test_paths_folds_and_files_carry_them(cancer, tmp_path):
    X, y = cancer
    settings = {"coef_bounds": (-0.5, np.full(6, 0.5)), "monotonic_cst": {"radius": -1}}
    for coefs in (
        erm_path(X, y, Cs=[0.1, 10.0], n_estimators=3, **settings).coefs,
        ERMClassifierCV(3, Cs=[0.1, 10.0], cv=2, **settings).fit(X, y).coef_[None],
    ):
        assert np.abs(coefs).max() <= 0.5
        assert coefs[:, :, 0].max() <= 0
    model = ERMClassifier(3, **settings).fit(X, y)
    save_model(model, tmp_path / "model.erm")
    loaded = load_model(tmp_path / "model.erm")
    np.testing.assert_array_equal(loaded.coef_, model.coef_)
    np.testing.assert_array_equal(clone(loaded).fit(X, y).coef_, model.coef_)
    again = clone(model).set_params(warm_start=True, coef_bounds=(-0.1, 0.1)).fit(X, y)
    again.set_params(coef_bounds=(-0.3, -0.01), monotonic_cst=None).fit(X, y)
    assert again.coef_.max() <= -0.01


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"coef_bounds": 1.0}, r"pair \(lower, upper\)"),
        ({"coef_bounds": "ab"}, r"pair \(lower, upper\)"),
        ({"coef_bounds": {"radius": 1.0}}, r"pair \(lower, upper\)"),
        ({"coef_bounds": (0, [1.0, 2.0])}, r"shape \(6,\); got shape \(2,\)"),
        ({"coef_bounds": (0, ["a"] * 6)}, "must hold numbers"),
        ({"coef_bounds": ({"radius": "x"}, None)}, "must hold numbers; got {'radius': 'x'}"),
        ({"coef_bounds": ({"weight": 0.0}, None)}, "names 'weight', which is no column of X"),
        ({"coef_bounds": (1.0, 0.0)}, "leave no float64 weight for column 'radius'"),
        ({"coef_bounds": (np.nan, 0.0)}, "leave no float64 weight"),
        ({"coef_bounds": (np.inf, np.inf)}, "leave no float64 weight"),
        ({"coef_bounds": ({"area": 0.1}, None), "monotonic_cst": {"area": -1}}, "weight for column 'area'"),
        ({"monotonic_cst": 1}, r"shape \(6,\); got shape \(\)"),
        ({"monotonic_cst": [2, 0, 0, 0, 0, 0]}, "1 .*, -1 .* or 0"),
        ({"monotonic_cst": {"area": 0.5}}, "1 .*, -1 .* or 0"),
        ({"coef_bounds": (0, 1), "solver": "paper"}, "solver='paper': .* use solver='newton'"),
        ({"monotonic_cst": [0] * 6, "solver": "alm"}, "monotonic_cst and solver='alm'"),
        ({"coef_bounds": (0, 1), "exclusivity": 2.0}, "Use exclusivity=np.inf"),
    ],
)
def test_what_cannot_be_is_said(cancer, settings, message):
    with pytest.raises(ValueError, match=message):
        ERMClassifier(2, **settings).fit(*cancer)


def test_names_need_columns_with_names(cancer):
    X, y = cancer
    with pytest.raises(ValueError, match="X has no column names"):
        ERMClassifier(2, monotonic_cst={"radius": 1}).fit(X.to_numpy(), y)


def test_signs_that_say_nothing_leave_the_free_problem(cancer):
    X, y = cancer
    free, same = (ERMClassifier(2, monotonic_cst=signs).fit(X, y) for signs in (None, [0] * 6))
    np.testing.assert_array_equal(free.coef_, same.coef_)
