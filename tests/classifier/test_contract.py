"""The contract of a scikit-learn classifier: attributes, weights, containers, composition, words."""

from __future__ import annotations

import copy
import inspect
import pickle
import re
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn import config_context
from sklearn.base import clone, is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_moons
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from sklearn.utils import estimator_html_repr
from sklearn.utils.class_weight import compute_class_weight

import exclusivity
from classifier.erm_cases import CONVEX_SOLVERS, DIVERSE, assert_same_weights, binary_data, class_data
from exclusivity import ERMClassifier
from exclusivity.classifier._ensemble import FittedState

by_solver = pytest.mark.parametrize("solver", CONVEX_SOLVERS)


@pytest.fixture(scope="module")
def two():
    return binary_data()


@pytest.fixture(scope="module")
def three():
    return class_data()


# Parameters and attributes


def test_the_signature_is_the_designed_one():
    designed = (
        "(n_estimators=10, *, C=2.0, loss='hinge', p=2, exclusivity=1.0, sparsity=0.0, "
        "coef_bounds=None, monotonic_cst=None, voting='soft', "
        "feature_groups=None, partition='learned', "
        "solver='auto', solver_options=None, tol=0.0001, max_iter=None, fit_intercept=True, "
        "class_weight=None, multi_class='ovr', warm_start=False, random_state=None, n_jobs=None, verbose=0)"
    )
    signature = inspect.signature(ERMClassifier)
    given = [
        parameter.replace(annotation=inspect.Parameter.empty) for parameter in signature.parameters.values()
    ]
    assert str(inspect.Signature(given)) == designed
    assert is_classifier(ERMClassifier())


def test_the_package_offers_the_class_lazily():
    assert exclusivity.ERMClassifier is ERMClassifier
    assert "ERMClassifier" in dir(exclusivity)
    with pytest.raises(AttributeError, match="no attribute 'Nonsense'"):
        exclusivity.Nonsense  # noqa: B018


@by_solver
@pytest.mark.parametrize("voting", ["soft", "hard"])
@pytest.mark.parametrize(
    ("n_classes", "multi_class", "n_problems"),
    [(2, "ovr", 1), (2, "ovo", 1), (3, "ovr", 3), (3, "ovo", 3), (5, "ovr", 5), (5, "ovo", 10)],
)
def test_attributes_and_their_shapes(solver, voting, n_classes, multi_class, n_problems):
    X, y = class_data(n_classes=n_classes)
    clf = ERMClassifier(7, solver=solver, multi_class=multi_class, voting=voting)
    assert clf.fit(X, y) is clf
    np.testing.assert_array_equal(clf.classes_, np.arange(n_classes))
    assert clf.n_features_in_ == 4
    assert not hasattr(clf, "feature_names_in_")
    assert clf.components_.shape == (n_problems, 7, 4)
    assert clf.component_intercepts_.shape == (n_problems, 7)
    if voting == "soft":
        assert clf.coef_.shape == (n_problems, 4)
        assert clf.intercept_.shape == (n_problems,)
    for name in ("objective_", "dual_gap_", "converged_", "n_iter_"):
        assert getattr(clf, name).shape == (n_problems,), name
    assert clf.converged_.dtype == bool
    assert np.issubdtype(clf.n_iter_.dtype, np.integer)
    assert len(clf.history_) == n_problems
    scores = (len(X),) if n_classes == 2 else (len(X), n_classes)
    assert clf.decision_function(X).shape == scores
    assert clf.component_decision_function(X).shape == (len(X), n_problems, 7)
    assert clf.predict(X).shape == (len(X),)
    assert clf.predict(X[:1]).shape == (1,)
    assert 0.5 < clf.score(X, y) <= 1


@by_solver
@pytest.mark.parametrize(
    "knobs", [{"p": 1}, {"p": 2, "sparsity": 1.0}, {"p": 1.5, "exclusivity": 0.3}], ids=str
)
def test_the_reported_objective_is_that_of_the_members(solver, knobs, two):
    X, y = two
    clf = ERMClassifier(3, C=1.5, solver=solver, **knobs).fit(X, y, sample_weight=1.0 + (y == 0))
    W, b = clf.components_[0].T, clf.component_intercepts_[0]
    sums, gamma = np.abs(W).sum(axis=1), clf.exclusivity
    penalty = gamma / 2 * (sums**2).sum() + (1 - gamma) / 2 * (W**2).sum() + clf.sparsity * sums.sum()
    shortfall = np.maximum(0, 1 - (2 * y - 1)[:, None] * (X @ W + b)) ** clf.p
    by_hand = penalty + 1.5 * ((1.0 + (y == 0)) @ shortfall).sum()
    np.testing.assert_allclose(clf.objective_[0], by_hand, rtol=1e-9)


@by_solver
def test_history_is_one_record_per_iteration(solver, three):
    X, y = three
    clf = ERMClassifier(3, solver=solver).fit(X, y)
    for problem, history in enumerate(clf.history_):
        assert len(history) == clf.n_iter_[problem]
        assert history.objective.shape == history.gap.shape == (len(history),)
        assert np.all(np.isfinite(history.objective))
        assert np.all(np.diff(history.bound[np.isfinite(history.bound)]) >= 0)


@by_solver
def test_without_intercept_there_is_none(solver, three):
    X, y = three
    clf = ERMClassifier(3, solver=solver, fit_intercept=False).fit(X, y)
    np.testing.assert_array_equal(clf.intercept_, 0)
    np.testing.assert_array_equal(clf.component_intercepts_, 0)


@by_solver
def test_sparsity_gives_exact_zeros(solver):
    X, y = binary_data(n_features=12, noise=0.1)
    X[:, 3:] = np.random.default_rng(0).standard_normal((len(X), 9))
    clf = ERMClassifier(4, solver=solver, sparsity=60.0).fit(X, y)
    if solver != "paper":  # whose reweighting makes entries small only
        assert 0 < np.count_nonzero(clf.coef_) < 12


# Weights


@by_solver
@pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
def test_balanced_counts_the_sample_weights(solver, multi_class, three):
    X, y = three
    weights = np.random.default_rng(0).uniform(0.2, 3, len(y)) * np.array([1, 2, 5])[y]
    totals = np.bincount(y, weights=weights)
    factors = weights.sum() / (3 * totals)
    np.testing.assert_allclose(
        factors, compute_class_weight("balanced", classes=np.arange(3), y=y, sample_weight=weights)
    )
    clf = ERMClassifier(3, solver=solver, multi_class=multi_class)
    manual = clone(clf).fit(X, y, weights * factors[y])
    balanced = clone(clf).set_params(class_weight="balanced").fit(X, y, weights)
    given = clone(clf).set_params(class_weight=dict(enumerate(factors))).fit(X, y, weights)
    np.testing.assert_allclose(balanced.components_, manual.components_, rtol=1e-9)
    np.testing.assert_allclose(given.components_, manual.components_, rtol=1e-9)
    plain = clone(clf).fit(X, y, weights)
    assert np.abs(plain.components_ - manual.components_).max() > 1e-3


def test_balanced_rows_of_weight_zero_do_not_count(two):
    X, y = two
    weights = np.where((y == 0) & (np.arange(len(y)) % 2 == 0), 0.0, 1.0)
    kept = weights > 0
    clf = ERMClassifier(3, class_weight="balanced")
    all_rows, few_rows = clone(clf).fit(X, y, weights), clone(clf).fit(X[kept], y[kept])
    np.testing.assert_array_equal(all_rows.components_, few_rows.components_)


@pytest.mark.parametrize("labels", [[0, 1], ["no", "yes"], [False, True], [-1, 1]], ids=str)
def test_class_weight_by_label(labels, two):
    X, y = two
    named = np.array(labels)[y]
    clf = ERMClassifier(3, class_weight={labels[1]: 4.0}).fit(X, named)
    manual = ERMClassifier(3).fit(X, named, np.where(y, 4.0, 1.0))
    np.testing.assert_array_equal(clf.components_, manual.components_)
    assert (clf.predict(X) == labels[1]).sum() >= (
        ERMClassifier(3).fit(X, named).predict(X) == labels[1]
    ).sum()


@by_solver
def test_weight_zero_is_an_absent_row(solver, three):
    X, y = three
    weights = np.random.default_rng(1).integers(0, 3, len(y)).astype(float)
    kept = weights > 0
    full = ERMClassifier(3, solver=solver).fit(X, y, weights)
    less = ERMClassifier(3, solver=solver).fit(X[kept], y[kept], weights[kept])
    np.testing.assert_array_equal(full.components_, less.components_)
    wild = np.where(kept[:, None], X, 1e6 * X)
    np.testing.assert_array_equal(
        ERMClassifier(3, solver=solver).fit(wild, y, weights).components_, less.components_
    )


@by_solver
@pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
def test_a_class_of_weight_zero_is_known_and_never_predicted(solver, multi_class, three):
    X, y = three
    clf = ERMClassifier(3, solver=solver, multi_class=multi_class).fit(X, y, (y != 1).astype(float))
    less = ERMClassifier(3, solver=solver, multi_class=multi_class).fit(X[y != 1], y[y != 1])
    np.testing.assert_array_equal(clf.classes_, [0, 1, 2])  # as LinearSVC has it inside a BaggingClassifier
    np.testing.assert_array_equal(clf.predict(X), less.predict(X))
    assert set(clf.predict(X)) == {0, 2}


def test_weights_of_any_container(two):
    X, y = two
    weights = np.arange(1, len(y) + 1)
    first = ERMClassifier(3).fit(X, y, weights)
    for other in (weights.tolist(), pd.Series(weights), pl.Series(weights), weights.astype(np.float32)):
        np.testing.assert_array_equal(ERMClassifier(3).fit(X, y, other).coef_, first.coef_)


# Containers


@pytest.mark.parametrize("library", [pd, pl], ids=["pandas", "polars"])
def test_frames_in_and_names_kept(library, three):
    X, y = three
    names = ["length", "width", "height", "mass"]
    labels = np.array(["ant", "bee", "cat"])[y]
    frame = library.DataFrame({name: X[:, i] for i, name in enumerate(names)})
    clf = ERMClassifier(3).fit(frame, library.Series(labels))
    np.testing.assert_array_equal(clf.feature_names_in_, names)
    np.testing.assert_array_equal(clf.classes_, ["ant", "bee", "cat"])
    plain = ERMClassifier(3).fit(X, labels)
    np.testing.assert_allclose(clf.coef_, plain.coef_, rtol=1e-9)
    np.testing.assert_array_equal(clf.predict(frame), plain.predict(X))
    np.testing.assert_array_equal(clf.predict(pd.DataFrame(X, columns=names)), plain.predict(X))
    assert clf.score(frame, library.Series(labels)) == plain.score(X, labels)


@pytest.mark.parametrize("kind", ["category", "string", "object", "Int64", "boolean"])
def test_labels_of_pandas_types(kind, two):
    X, y = two
    values = {"boolean": y == 1, "Int64": y}.get(kind, np.array(["no", "yes"])[y])
    labels = pd.Series(values).astype(kind)
    clf = ERMClassifier(3).fit(X, labels)
    assert len(clf.classes_) == 2
    assert (clf.predict(X) == labels.to_numpy()).mean() == clf.score(X, labels) > 0.8


def test_frames_of_float32_and_mixed_types(two):
    X, y = two
    frame = pd.DataFrame(X, columns=list("abcde"))
    assert ERMClassifier(3).fit(frame.astype(np.float32), y).coef_.dtype == np.float32
    mixed = frame.assign(a=(frame["a"] * 3).astype(int), b=frame["b"] > 0, c=frame["c"].astype("Float64"))
    clf = ERMClassifier(3).fit(mixed, y)
    assert_same_weights(clf, ERMClassifier(3).fit(mixed.to_numpy(dtype=float), y))


def test_lists_in(two):
    X, y = two
    clf = ERMClassifier(3).fit(X.tolist(), y.tolist())
    np.testing.assert_array_equal(clf.coef_, ERMClassifier(3).fit(X, y).coef_)


def test_fit_changes_neither_its_input_nor_its_parameters(two):
    X, y = two
    weights, options = np.linspace(0, 1, len(y)), {"mu0": 2.0}
    before = [a.copy() for a in (X, y, weights)]
    clf = ERMClassifier(3, solver="alm", solver_options=options, class_weight={1: 2.0})
    parameters = clf.get_params()
    clf.fit(X, y, weights)
    for array, copied in zip((X, y, weights), before, strict=True):
        np.testing.assert_array_equal(array, copied)
    assert clf.get_params() == parameters
    assert options == {"mu0": 2.0}
    assert clf.solver_options is options


# Copies


@by_solver
@pytest.mark.parametrize("how", [copy.copy, copy.deepcopy, lambda clf: pickle.loads(pickle.dumps(clf))])  # noqa: S301
def test_copies_predict_alike(solver, how, three):
    X, y = three
    clf = ERMClassifier(3, solver=solver).fit(X, y)
    twin = how(clf)
    np.testing.assert_array_equal(twin.decision_function(X), clf.decision_function(X))
    np.testing.assert_array_equal(twin.components_, clf.components_)
    np.testing.assert_array_equal(twin.history_[0].gap, clf.history_[0].gap)
    assert twin.get_params() == clf.get_params()
    assert repr(twin) == repr(clf)


def test_clones_are_not_fitted_and_options_are_not_shared(two):
    options = {"mu0": 2.0}
    clf = ERMClassifier(5, C=3, solver="alm", solver_options=options).fit(*two)
    twin = clone(clf)
    assert twin.get_params() == clf.get_params()
    assert twin.solver_options is not options
    with pytest.raises(NotFittedError):
        twin.predict(two[0])


def test_set_params_takes_effect_at_the_next_fit(two):
    X, y = two
    clf = ERMClassifier(3, C=2.0).fit(X, y)
    coef = clf.coef_.copy()
    assert clf.set_params(C=0.01, n_estimators=5) is clf
    np.testing.assert_array_equal(clf.coef_, coef)
    assert clf.components_.shape == (1, 3, 5)
    assert clf.fit(X, y).components_.shape == (1, 5, 5)
    assert np.linalg.norm(clf.coef_) < np.linalg.norm(coef)
    with pytest.raises(ValueError, match="Invalid parameter 'cost'"):
        clf.set_params(cost=1)


def test_parameters_changed_after_fit_do_not_break_predictions(three):
    X, y = three
    clf = ERMClassifier(3, multi_class="ovo").fit(X, y)
    before = clf.predict(X)
    clf.set_params(multi_class="ovr", exclusivity=0.1, n_estimators=50, p=1)
    np.testing.assert_array_equal(clf.predict(X), before)
    assert "3 equal members = one SVM at cost C/3" in repr(clf)


def test_a_second_fit_forgets_the_first(two, three):
    clf = ERMClassifier(3).fit(*three)
    frame = pd.DataFrame(two[0], columns=list("abcde"))
    clf.fit(frame, two[1])
    clf.fit(*two)
    fresh = ERMClassifier(3).fit(*two)
    assert not hasattr(clf, "feature_names_in_")
    np.testing.assert_array_equal(clf.coef_, fresh.coef_)
    assert set(vars(clf)) == set(vars(fresh))


@pytest.mark.parametrize(
    "ask",
    [
        lambda clf, X: clf.predict(X),
        lambda clf, X: clf.decision_function(X),
        lambda clf, X: clf.component_decision_function(X),
        lambda clf, X: clf.score(X, X[:, 0] > 0),
        lambda clf, X: clf.components_,
        lambda clf, X: clf.component_intercepts_,
        lambda clf, X: clf.coef_,
        lambda clf, X: clf.intercept_,
    ],
)
def test_nothing_before_fit(ask, two):
    with pytest.raises(NotFittedError, match="not fitted yet"):
        ask(ERMClassifier(), two[0])


def test_no_fitted_attribute_before_fit():
    clf = ERMClassifier()
    names = ["coef_", "intercept_", "components_", "component_intercepts_", "classes_", "objective_"]
    assert not [name for name in names if hasattr(clf, name)]
    assert not [name for name in vars(clf) if name.endswith("_")]


# Equal members are stored once, and said to be equal


def test_components_cannot_be_written_to(two):
    for settings in ({}, DIVERSE):
        clf = ERMClassifier(3, **settings).fit(*two)
        for array in (clf.components_, clf.component_intercepts_):
            with pytest.raises(ValueError, match="read-only"):
                array[...] = 0


def test_equal_members_cost_the_memory_of_one():
    X, y = class_data(n_rows=120, n_features=50)
    many, one = ERMClassifier(1000).fit(X, y), ERMClassifier(1).fit(X, y)
    assert many.components_.shape == (3, 1000, 50)
    assert many.components_.strides[1] == 0
    for clf in (many, one):
        clf.history_ = None
    assert len(pickle.dumps(many)) < 1.5 * len(pickle.dumps(one))
    revived = pickle.loads(pickle.dumps(many))  # noqa: S301
    np.testing.assert_array_equal(revived.components_, many.components_)
    assert revived.components_.strides[1] == 0


@by_solver
@pytest.mark.parametrize(
    "knobs", [{"p": 1}, {"p": 1.5}, {"p": 2}, {"exclusivity": 0.3}, {"sparsity": 1.0}], ids=str
)
def test_members_are_equal_for_exclusivity_up_to_one(solver, knobs, three):
    clf = ERMClassifier(5, solver=solver, **knobs).fit(*three)
    assert np.ptp(clf.components_, axis=1).max() <= 1e-12
    cost = 1 + 4 * knobs.get("exclusivity", 1.0)
    assert f"5 equal members = one SVM at cost C/{cost:g}" in repr(clf)


def test_repr_speaks_of_equal_members_only_when_there_are_some(two):
    said = "equal members"
    assert said not in repr(ERMClassifier(5))
    assert said not in repr(ERMClassifier(1).fit(*two))
    clf = ERMClassifier(5)
    plain = repr(clf)
    text = repr(clf.fit(*two))
    assert text.startswith(plain)
    assert "5 equal members = one SVM at cost C/5" in text
    different = ERMClassifier(5, **DIVERSE).fit(*two)
    assert np.ptp(different.components_, axis=1).max() > 1e-3
    assert said not in repr(different)
    assert said not in repr(clone(clf))
    assert "ERMClassifier" in repr(make_pipeline(StandardScaler(), clf))


def test_html_speaks_of_equal_members_only_when_there_are_some(two):
    equal, different = ERMClassifier(5).fit(*two), ERMClassifier(5, **DIVERSE).fit(*two)
    assert "5 equal members = one SVM at cost C/5" in equal._repr_html_()
    bundle = equal._repr_mimebundle_()
    assert "5 equal members" in bundle["text/html"]
    assert bundle["text/plain"] == repr(equal)
    for quiet in (ERMClassifier(5), different):
        assert "equal members" not in quiet._repr_html_()
        assert "equal members" not in quiet._repr_mimebundle_()["text/html"]
    for clf in (equal, different, ERMClassifier(5)):
        assert "<div" in clf._repr_html_()
        assert "ERMClassifier" in estimator_html_repr(clf)
        assert "ERMClassifier" in make_pipeline(StandardScaler(), clf)._repr_html_()
    with config_context(display="text"):
        assert "text/html" not in equal._repr_mimebundle_()
        assert not hasattr(equal, "_repr_html_")


# Words


LINE = re.compile(r"\[ERM\] (.+): iteration (\d+), objective [\d.e+-]+, gap [\d.e+-]+, \d+\.\d s")
LAST = re.compile(r"\[ERM\] (.+): ended after (\d+) iterations, objective [\d.e+-]+, gap ([\d.e+-]+), .+")


@by_solver
def test_verbose_two_prints_every_iteration(solver, three, capsys):
    X, y = three
    clf = ERMClassifier(3, solver=solver, verbose=2).fit(X, np.array(["ant", "bee", "cat"])[y])
    lines = capsys.readouterr().out.splitlines()
    assert all(LAST.fullmatch(line) for line in lines[-3:]), lines
    lines = lines[:-3]
    found = [LINE.fullmatch(line) for line in lines]
    assert all(found), lines
    assert len(lines) == clf.n_iter_.sum()
    assert found[0][1] == "ant against the rest"
    for name, n_iter in zip(["ant", "bee", "cat"], clf.n_iter_, strict=True):
        steps = [int(match[2]) for match in found if match[1].startswith(name)]
        assert steps == list(range(1, n_iter + 1))


def test_verbose_one_prints_now_and_then(two, capsys):
    X, y = two
    clf = ERMClassifier(3, p=1, solver="alm", verbose=1, tol=1e-6).fit(X, y)
    lines = capsys.readouterr().out.splitlines()
    assert 1 <= len(lines) < 20 < clf.n_iter_[0]
    assert all(LINE.fullmatch(line) for line in lines[:-1])
    assert lines[0].startswith("[ERM] 1 against 0: iteration 1,")


@by_solver
def test_the_last_line_is_about_the_answer(solver, two, capsys):
    X, y = two
    clf = ERMClassifier(3, solver=solver, verbose=1).fit(X, y)
    last = LAST.fullmatch(capsys.readouterr().out.splitlines()[-1])
    assert int(last[2]) == clf.n_iter_[0]
    assert float(last[3]) == pytest.approx(clf.dual_gap_[0], rel=0.06, abs=1e-300)


@by_solver
@pytest.mark.parametrize("p", [1, 2])
def test_no_gap_is_above_one(solver, p, two):
    """Neither loss nor penalty is ever negative: 0 is a bound before anything is proved."""
    X, y = two
    clf = ERMClassifier(3, p=p, C=100.0, solver=solver).fit(X, y)
    assert clf.dual_gap_[0] <= 1
    assert clf.history_[0].gap.max() <= 1
    assert clf.history_[0].bound.min() >= 0


def test_silence_is_the_default(two, capsys):
    ERMClassifier(3).fit(*two)
    captured = capsys.readouterr()
    assert captured.out == captured.err == ""


def test_the_warning_names_the_gap_and_what_to_do(three):
    X, y = three
    with pytest.warns(ConvergenceWarning) as caught:
        clf = ERMClassifier(3, solver="alm", max_iter=2, tol=1e-9).fit(X, np.array(["ant", "bee", "cat"])[y])
    texts = [str(w.message) for w in caught]
    assert len(texts) == 1
    worst = int(clf.dual_gap_.argmax())
    gap = clf.dual_gap_[worst]
    assert texts[0].startswith(
        f"{clf.classes_[worst]} against the rest: duality gap {gap:.1e} after 2 iterations"
    )
    assert texts[0].endswith("So ended 3 of 3 problems; this gap is the largest.")
    for advice in ("above tol=1e-09", "StandardScaler", "max_iter", "tol"):
        assert advice in texts[0]


def test_the_warning_points_at_the_caller(two):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ERMClassifier(3, solver="alm", max_iter=1, tol=1e-9).fit(*two)
    assert [w.category for w in caught] == [ConvergenceWarning]
    assert caught[0].filename == __file__


def test_the_papers_algorithm_stops_by_its_rule_and_is_honest_about_the_gap(two):
    clf = ERMClassifier(3, solver="paper").fit(*two)  # no warning: it did what it was asked for
    assert 1e-4 < clf.dual_gap_[0] < 0.5
    assert not clf.converged_[0]
    with pytest.warns(ConvergenceWarning, match="after 3 iterations"):
        ERMClassifier(3, solver="paper", max_iter=3).fit(*two)


# Composition


@pytest.fixture
def asking():
    """A pipeline whose classifier asks for the weights of the rows, where weights are routed."""
    with config_context(enable_metadata_routing=True):
        asks = ERMClassifier(3).set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        yield make_pipeline(StandardScaler().set_fit_request(sample_weight=False), asks)


def test_weights_are_routed_through_pipelines(two, asking):
    X, y = two
    weights = np.where(y, 8.0, 1.0)
    asking.fit(X, y, sample_weight=weights)
    Z = StandardScaler().fit_transform(X)
    np.testing.assert_allclose(asking[-1].coef_, ERMClassifier(3).fit(Z, y, weights).coef_)
    assert np.abs(asking[-1].coef_ - ERMClassifier(3).fit(Z, y).coef_).max() > 1e-3
    with pytest.raises(ValueError, match=r"sample_weight.* not explicitly set as requested"):
        make_pipeline(StandardScaler(), ERMClassifier()).fit(X, y, sample_weight=weights)


def test_weights_are_routed_through_cross_validation(two, asking):
    X, y = two
    weights = np.where(y, 8.0, 1.0)
    result = cross_validate(
        asking, X, y, cv=3, params={"sample_weight": weights}, return_estimator=True, return_indices=True
    )
    rows = result["indices"]["train"][0]
    scaled = StandardScaler().fit(X[rows])
    alone = ERMClassifier(3).fit(scaled.transform(X[rows]), y[rows], weights[rows])
    np.testing.assert_allclose(result["estimator"][0][-1].coef_, alone.coef_)


def test_grid_search(two):
    X, y = two
    grid = {"C": [0.01, 1.0], "n_estimators": [1, 5], "exclusivity": [0.0, 1.0], "voting": ["soft", "hard"]}
    search = GridSearchCV(ERMClassifier(), grid, cv=3).fit(X, y)
    assert search.best_score_ > 0.75
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    # K members at C are one member at C / K
    by_cost = GridSearchCV(ERMClassifier(1), {"C": [0.2]}, cv=3, scoring="roc_auc").fit(X, y)
    by_members = GridSearchCV(ERMClassifier(5), {"C": [1.0]}, cv=3, scoring="roc_auc").fit(X, y)
    assert by_cost.best_score_ == pytest.approx(by_members.best_score_, abs=5e-3)


@pytest.mark.parametrize("voting", ["soft", "hard"])
@pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
def test_probabilities_through_calibration(voting, multi_class, three):
    X, y = three
    model = CalibratedClassifierCV(ERMClassifier(3, voting=voting, multi_class=multi_class), cv=3).fit(X, y)
    probabilities = model.predict_proba(X)
    assert probabilities.shape == (len(X), 3)
    assert np.all((probabilities >= 0) & (probabilities <= 1))
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    assert model.score(X, y) > 0.7
    assert probabilities[np.arange(len(y)), y].mean() > 0.5


@pytest.mark.parametrize(
    "feature_map",
    [
        Nystroem(gamma=2.0, n_components=60, random_state=0),
        RBFSampler(gamma=2.0, n_components=200, random_state=0),
        PolynomialFeatures(degree=5, include_bias=False),
    ],
    ids=lambda feature_map: type(feature_map).__name__,
)
@pytest.mark.parametrize(
    "settings", [{"n_estimators": 10, "C": 100.0}, {"solver": "paper", "n_estimators": 3}], ids=str
)
def test_two_moons_need_a_feature_map(feature_map, settings):
    X, y = make_moons(200, noise=0.1, random_state=0)
    linear = make_pipeline(StandardScaler(), ERMClassifier(**settings))
    mapped = make_pipeline(StandardScaler(), feature_map, ERMClassifier(**settings))
    assert cross_val_score(linear, X, y, cv=3).mean() < 0.92
    assert cross_val_score(mapped, X, y, cv=3).mean() > 0.96


def test_the_fitted_state_is_all_that_a_fit_leaves_behind():
    """A copy by its state has every attribute, and a later fit leaves none of the one before."""
    X, y = binary_data()
    model = ERMClassifier(3, exclusivity=np.inf, random_state=0).fit(X, y)
    twin = FittedState.of(model).restore(ERMClassifier(3, exclusivity=np.inf, random_state=0))
    assert vars(twin).keys() == vars(model).keys()
    assert "partition_" in vars(model)
    model.set_params(exclusivity=1.0).fit(X, y)
    assert vars(twin).keys() - vars(model).keys() == {"partition_"}
    assert "partition_" not in vars(FittedState.of(model).restore(twin))


@pytest.mark.parametrize("params", [{}, {"exclusivity": np.inf}])
def test_unknown_solver_options_are_refused_before_rows_are_read(params):
    with pytest.raises(ValueError, match="Unknown solver option 'restart'"):
        ERMClassifier(3, solver_options={"restart": 1}, **params).fit("no rows", "no labels")
