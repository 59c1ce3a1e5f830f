"""erm_path: what it returns, and that it is what single fits return."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from classifier.erm_cases import assert_same_weights, binary_data, class_data
from exclusivity import ERMClassifier, erm_path
from exclusivity.tables import TableEncoder

CS = [0.1, 1.0, 10.0]


@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
def test_every_point_is_a_fit(p, multi_class):
    X, y = class_data(4)
    names = np.array(["d", "a", "c", "b"])[y]
    path = erm_path(X, names, Cs=CS, p=p, multi_class=multi_class, tol=1e-7, class_weight="balanced")
    n_problems = 4 if multi_class == "ovr" else 6
    assert path.coefs.shape == (3, n_problems, 4)
    assert path.components.shape == (3, n_problems, 10, 4)
    assert path.intercepts.shape == path.gaps.shape == path.n_iter.shape == (3, n_problems)
    assert path.gaps.max() <= 1e-7
    np.testing.assert_array_equal(path.classes, ["a", "b", "c", "d"])
    for index, C in enumerate(CS):
        single = ERMClassifier(p=p, C=C, multi_class=multi_class, tol=1e-7, class_weight="balanced")
        single.fit(X, names)
        assert_same_weights(path.classifiers[index], single)
        np.testing.assert_allclose(path.objectives[index], single.objective_, rtol=1e-6)
        np.testing.assert_array_equal(path.coefs[index], path.classifiers[index].coef_)
        assert np.mean(path.classifiers[index].predict(X) == single.predict(X)) > 0.98


def test_the_paper_solver_is_run_anew_for_every_c():
    X, y = binary_data()
    options = {"solver": "paper", "solver_options": {"start": "random", "change": 1.0}, "random_state": 3}
    path = erm_path(X, y, Cs=CS[::-1], **options)
    for C, classifier in zip(CS[::-1], path.classifiers, strict=True):
        np.testing.assert_array_equal(
            classifier.components_, ERMClassifier(C=C, **options).fit(X, y).components_
        )


def test_members_that_compete():
    X, y = binary_data(n_features=6)
    options = {"n_estimators": 2, "exclusivity": np.inf, "random_state": 0}
    path = erm_path(X, y, Cs=CS, **options)
    assert np.isnan(path.gaps).all()
    for C, classifier in zip(CS, path.classifiers, strict=True):
        single = ERMClassifier(C=C, **options).fit(X, y)
        np.testing.assert_array_equal(classifier.partition_, single.partition_)
        np.testing.assert_array_equal(classifier.components_, single.components_)


def test_sample_weights_mean_repetition():
    X, y = binary_data()
    weights = np.random.default_rng(0).integers(0, 3, len(y))
    weighted = erm_path(X, y, Cs=4, sample_weight=weights, tol=1e-9)
    repeated = erm_path(np.repeat(X, weights, axis=0), np.repeat(y, weights), Cs=4, tol=1e-9)
    np.testing.assert_allclose(weighted.Cs, repeated.Cs)
    np.testing.assert_allclose(weighted.coefs, repeated.coefs, atol=1e-4 * np.abs(repeated.coefs).max())


def test_threads_change_nothing():
    X, y = class_data(4)
    one, two = (erm_path(X, y, Cs=5, p=1, n_jobs=n) for n in (1, 2))
    np.testing.assert_array_equal(one.coefs, two.coefs)


def test_float32_stays_and_names_are_kept():
    pd = pytest.importorskip("pandas")
    X, y = binary_data()
    frame = pd.DataFrame(X.astype(np.float32), columns=list("abcde"))
    path = erm_path(frame, y, Cs=2)
    assert path.coefs.dtype == np.float32
    assert path.classifiers[0].feature_names_in_.tolist() == list("abcde")
    assert path.classifiers[1].predict(frame).shape == y.shape


def test_a_path_that_falls_short_says_so():
    X, y = binary_data()
    with pytest.warns(ConvergenceWarning, match=r"above tol=1e-12: .* So ended 2 of 2 fits"):
        erm_path(X, y, Cs=[1.0, 2.0], tol=1e-12, max_iter=1, solver="alm")


def test_the_repr_of_a_path_is_one_line():
    X, y = binary_data()
    text = repr(erm_path(X, y, Cs=[0.5, 0.125, 2.0], n_estimators=3))
    assert text.startswith("<ERMPath: 3 values of C from 0.125 to 2, 2 classes, ")
    assert "3 members, largest gap " in text
    assert "no certificate" in repr(erm_path(X, y, Cs=[1.0], n_estimators=2, exclusivity=np.inf))


def test_verbose_lines(capsys):
    X, y = binary_data()
    erm_path(X, y, Cs=2, verbose=1)
    assert len(capsys.readouterr().out.splitlines()) == 1
    erm_path(X, y, Cs=2, verbose=2)
    assert len(capsys.readouterr().out.splitlines()) == 3
    erm_path(X, y, Cs=3, n_estimators=2, exclusivity=np.inf, verbose=1)
    assert len(capsys.readouterr().out.splitlines()) == 3
    erm_path(X, y, Cs=2)
    assert not capsys.readouterr().out


@pytest.mark.parametrize(
    ("Cs", "error"),
    [
        (0, ValueError),
        (-3, ValueError),
        (True, TypeError),
        (2.5, TypeError),
        ("10", TypeError),
        (["a"], TypeError),
        ([], ValueError),
        ([[1.0]], ValueError),
        ([1.0, 0.0], ValueError),
        ([1.0, np.nan], ValueError),
        ([np.inf], ValueError),
    ],
)
def test_wrong_cs(Cs, error):
    with pytest.raises(error, match="Cs must be"):
        erm_path(*binary_data(), Cs=Cs)


@pytest.mark.parametrize(
    ("given", "match"),
    [({"p": 0.5}, "p must"), ({"solver": "sgd"}, "solver must"), ({"multi_class": "all"}, "multi_class")],
)
def test_wrong_parameters(given, match):
    with pytest.raises(ValueError, match=match):
        erm_path(*binary_data(), **given)


def test_signs_and_groups_that_rows_of_an_encoder_carry_count():
    pd = pytest.importorskip("pandas")
    X, y = binary_data()
    table = pd.DataFrame(X, columns=list("abcde")).assign(f=np.where(X[:, 0] > 0, "low", "high"))
    rows = TableEncoder(monotonic_cst={"a": -1}).fit_transform(table)
    settings = {"n_estimators": 2, "exclusivity": np.inf, "random_state": 0}
    path, clf = erm_path(rows, y, Cs=[1.0], **settings), ERMClassifier(C=1.0, **settings).fit(rows, y)
    assert clf.groups_.max() == 5
    np.testing.assert_array_equal(path.classifiers[0].groups_, clf.groups_)
    np.testing.assert_allclose(path.classifiers[0].components_, clf.components_, atol=1e-9)
