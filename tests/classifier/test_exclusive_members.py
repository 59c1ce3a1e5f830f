"""ERMClassifier with exclusivity above 1: members on different features, groups, votes and certificates."""

from __future__ import annotations

import re
import warnings
from time import process_time

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from classifier.erm_cases import CONVEX_SOLVERS, DIVERSE, binary_data, class_data
from exclusivity import ERMClassifier
from exclusivity.classifier._validation import group_codes

X2, Y2 = binary_data(n_rows=90, n_features=8)
X4, Y4 = class_data(n_classes=4, n_rows=96, n_features=8)
GROUPS = ["a", "b", "a", "c", "c", "d", "e", "a"]


def exclusive(n_estimators=3, exclusivity=np.inf, voting="hard", **kwargs):
    return ERMClassifier(
        n_estimators, exclusivity=exclusivity, voting=voting, **{"random_state": 0, **kwargs}
    )


def shares(clf):
    """How many members use each feature."""
    return (np.abs(clf.components_).sum(axis=0) > 0).sum(axis=0)


@pytest.mark.parametrize(
    ("X", "y", "multi_class"), [(X2, Y2, "ovr"), (X4, Y4, "ovr"), (X4, Y4, "ovo")], ids=["2", "ovr", "ovo"]
)
@pytest.mark.parametrize("solver", ["auto", "exclusive"])
def test_infinite_exclusivity_gives_every_feature_to_one_member(X, y, multi_class, solver):
    clf = exclusive(solver=solver, multi_class=multi_class).fit(X, y)
    assert shares(clf).max() == 1
    assert np.array_equal(clf.supports_, (clf.components_ != 0).any(axis=0))
    used = clf.supports_.any(axis=0)
    assert np.array_equal(clf.supports_.argmax(axis=0)[used], clf.partition_[used])
    assert clf.supports_.any(axis=1).all()
    assert clf.converged_.all()
    assert np.isnan(clf.dual_gap_).all()
    assert clf.score(X, y) > 0.7
    for history in clf.history_:
        assert np.all(np.diff(history.objective) <= 1e-9 * history.objective[0])


def test_finite_exclusivity_lets_members_share():
    mild, strong = (exclusive(exclusivity=gamma).fit(X2, Y2) for gamma in (1.5, 1e6))
    assert shares(mild).max() > 1
    assert shares(strong).max() == 1
    assert mild.converged_.all()


@pytest.mark.parametrize("exclusivity", [5.0, np.inf])
def test_groups_go_to_one_member_in_all_classes(exclusivity):
    clf = exclusive(feature_groups=GROUPS, exclusivity=exclusivity).fit(X4, Y4)
    assert clf.groups_.tolist() == [0, 1, 0, 2, 2, 3, 4, 0]
    assert clf.partition_.shape == (5,)
    if exclusivity == np.inf:
        for group in range(5):
            assert clf.supports_[:, clf.groups_ == group].any(axis=1).sum() <= 1
    assert clf.get_params()["feature_groups"] is GROUPS
    assert clone(clf).feature_groups == GROUPS


@pytest.mark.parametrize("labels", [GROUPS, tuple(GROUPS), np.array(GROUPS), pd.Series(GROUPS)])
def test_labels_may_come_in_any_sequence(labels):
    assert np.array_equal(exclusive(feature_groups=labels).fit(X2, Y2).groups_, [0, 1, 0, 2, 2, 3, 4, 0])


def test_groups_from_column_names():
    frame = pd.DataFrame(X2, columns=[f"{label}_{i}" for i, label in enumerate(GROUPS)])

    def sources(names):
        return [name.split("_")[0] for name in names]

    clf = exclusive(feature_groups=sources).fit(frame, Y2)
    assert np.array_equal(clf.groups_, exclusive(feature_groups=GROUPS).fit(X2, Y2).groups_)
    assert clf.feature_groups is sources
    with pytest.raises(ValueError, match="X has none; fit on a DataFrame"):
        exclusive(feature_groups=sources).fit(X2, Y2)


@pytest.mark.parametrize(
    ("groups", "kind", "message"),
    [
        (GROUPS[:-1], ValueError, "X has 8 columns, and 7 labels were given"),
        ([*GROUPS, "z"], ValueError, "8 columns, and 9 labels"),
        ("abacdeaa", TypeError, "one label per column"),
        (3, TypeError, "one label per column"),
        (np.zeros((8, 2)), ValueError, "one-dimensional; got 2"),
        ([*GROUPS[:-1], None], ValueError, "missing label"),
        ([0.0] * 7 + [np.nan], ValueError, "missing label"),
    ],
)
def test_bad_groups_are_a_clear_error(groups, kind, message):
    with pytest.raises(kind, match=message):
        exclusive(feature_groups=groups).fit(X2, Y2)
    with pytest.raises(kind, match=message):
        group_codes(lambda names: groups, 8, np.array(["name"] * 8))


@pytest.mark.parametrize("solver", CONVEX_SOLVERS)
@pytest.mark.parametrize("exclusivity", [1.0001, 20, np.inf])
def test_convex_solvers_refuse_competition(solver, exclusivity):
    with pytest.raises(ValueError, match=f"solver='{solver}' needs exclusivity <= 1.*use solver='exclusive'"):
        ERMClassifier(solver=solver, exclusivity=exclusivity).fit(X2, Y2)


@pytest.mark.parametrize("exclusivity", [0.0, 0.5, 1])
def test_exclusive_refuses_what_is_convex(exclusivity):
    with pytest.raises(ValueError, match=r"solver='exclusive' needs exclusivity > 1.*np\.inf"):
        ERMClassifier(solver="exclusive", exclusivity=exclusivity).fit(X2, Y2)


def test_unknown_options_of_exclusive():
    with pytest.raises(ValueError, match="Unknown solver option 'mu0'; 'exclusive' takes"):
        exclusive(solver_options={"mu0": 1}).fit(X2, Y2)


def test_random_state_decides():
    first, again = (exclusive(random_state=3).fit(X4, Y4) for _ in range(2))
    assert np.array_equal(first.components_, again.components_)
    assert np.array_equal(first.partition_, again.partition_)


@pytest.mark.parametrize("voting", ["soft", "hard"])
@pytest.mark.filterwarnings(r"ignore:\d+ of \d+ members vote:UserWarning")
def test_surplus_members_abstain_with_a_warning(voting):
    with pytest.warns(UserWarning, match="12 members compete for 8 features: 4 of them get none") as caught:
        clf = exclusive(12, voting=voting).fit(X2, Y2)
    assert caught[0].filename == __file__
    empty = ~clf.supports_.any(axis=1)
    assert empty.sum() == 4
    assert not clf.component_intercepts_[:, empty].any()
    assert "4 without features abstain" in repr(clf)
    rows = np.random.default_rng(0).standard_normal((200, 8))
    scores = clf.component_decision_function(rows)[:, 0][:, ~empty]
    if voting == "hard":
        votes = np.where(scores > 0, 1, -1).sum(axis=1)
        assert np.array_equal(np.rint(clf.decision_function(rows)), votes)
        assert np.array_equal(clf.certify(rows), np.where(votes == 0, -1, (np.abs(votes) - 1) // 2))
    else:
        assert np.array_equal(clf.predict(rows), (scores.mean(axis=1) > 0).astype(int))
        np.testing.assert_allclose(clf.coef_, clf.components_.mean(axis=1))


def test_surplus_over_groups_is_counted_in_groups():
    with pytest.warns(UserWarning, match="6 members compete for 5 feature groups: 1 of them"):
        exclusive(6, feature_groups=GROUPS).fit(X2, Y2)


def test_a_model_without_features_still_predicts_the_larger_class():
    clf = ERMClassifier(3, sparsity=1e6, voting="hard").fit(X2, Y2)
    assert not clf.components_.any()
    assert (clf.predict(X2) == np.bincount(Y2).argmax()).all()
    assert (clf.certify(X2) == -1).all()


def test_warm_start_keeps_the_partition():
    clf = exclusive(warm_start=True, solver_options={"restarts": 0}).fit(X2, Y2)
    partition = clf.partition_.copy()
    clf.set_params(C=0.5).fit(X2[::2], Y2[::2])
    assert np.array_equal(clf.partition_, partition)
    for parameters in ({"n_estimators": 4}, {"feature_groups": GROUPS}):
        with pytest.raises(
            ValueError, match="warm_start=True, but the previous fit divided 8 feature groups"
        ):
            _refit(clf, parameters)


def _refit(clf, parameters):
    before = clf.get_params()
    try:
        clf.set_params(**parameters).fit(X2, Y2)
    finally:
        clf.set_params(**before)


def test_warm_start_between_convex_and_competing_fits():
    clf = ERMClassifier(3, warm_start=True, voting="hard", random_state=0).fit(X2, Y2)
    assert not hasattr(clf, "partition_")
    clf.set_params(exclusivity=np.inf).fit(X2, Y2)
    assert clf.partition_.shape == (8,)
    clf.set_params(exclusivity=1.0).fit(X2, Y2)
    assert not hasattr(clf, "partition_")
    np.testing.assert_allclose(clf.components_, ERMClassifier(3).fit(X2, Y2).components_, atol=1e-2)


def test_the_iteration_limit_is_told_in_its_own_words():
    with pytest.warns(ConvergenceWarning, match="not every member came within tol=") as caught:
        exclusive(exclusivity=1.5, max_iter=1).fit(X4, Y4)
    assert len(caught) == 1


def test_progress_speaks_of_all_classes_at_once(capsys):
    exclusive(verbose=2).fit(X4, Y4)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("[ERM] 4 binary problems together: iteration 1, objective")
    assert "gap" not in lines[0]
    assert lines[-1].startswith("[ERM] 4 binary problems together: ended after ")
    assert "gap" not in lines[-1]


def test_repr_tells_how_members_differ():
    text = repr(exclusive().fit(X2, Y2))
    assert re.search(r"# 3 members on \d to \d features each, no two of them on the same one", text)
    assert "some of them shared" in repr(exclusive(exclusivity=1.5).fit(X2, Y2))
    assert "#" not in repr(exclusive())
    assert "#" not in repr(ERMClassifier(3, **DIVERSE).fit(X2, Y2))


@pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
def test_members_predict_their_own_best_class(multi_class):
    names = np.array(["red", "green", "blue", "black"])
    clf = exclusive(5, multi_class=multi_class).fit(X4, names[Y4])
    labels = clf.component_predict(X4)
    assert labels.shape == (96, 5)
    for member in range(5):
        alone = ERMClassifier(1, multi_class=multi_class, voting="hard").fit(X4, names[Y4])
        ensemble = clf._ensemble
        alone._ensemble = type(ensemble)(
            ensemble.weights[:, [member]], ensemble.intercepts[:, [member]], n_members=1
        )
        assert np.array_equal(alone.predict(X4), labels[:, member])
    votes = np.stack([(labels == name).sum(axis=1) for name in clf.classes_], axis=1)
    clear = np.sort(votes, axis=1)[:, -1] > np.sort(votes, axis=1)[:, -2]
    assert clear.any()
    assert np.array_equal(clf.predict(X4)[clear], clf.classes_[votes[clear].argmax(axis=1)])
    assert np.array_equal(clf.certify(X4) == -1, ~clear)


def test_soft_voting_has_no_certificate_and_says_what_to_do():
    clf = exclusive(voting="soft").fit(X2, Y2)
    with pytest.raises(ValueError, match=r"certify needs voting='hard'.*set_params\(voting='hard'\)"):
        clf.certify(X2)
    before = clf.components_
    assert clf.set_params(voting="hard").certify(X2).max() == 1
    assert np.array_equal(clf.components_, before)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_certify_refuses_what_is_not_finite(value):
    rows = X2.copy()
    rows[5, 2] = value
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        exclusive().fit(X2, Y2).certify(rows)


def test_certify_refuses_other_widths_and_unfitted_models():
    with pytest.raises(NotFittedError):
        exclusive().certify(X2)
    with pytest.raises(ValueError, match="8 features"):
        exclusive().fit(X2, Y2).certify(X2[:, :5])


@pytest.mark.parametrize("exclusivity", [2.0, np.inf])
def test_sparse_rows_give_the_same_members_and_radii(exclusivity):
    rows = np.where(np.abs(X2) > 0.5, X2, 0)
    dense = exclusive(exclusivity=exclusivity, tol=1e-8).fit(rows, Y2)
    thin = exclusive(exclusivity=exclusivity, tol=1e-8).fit(sparse.csr_matrix(rows), Y2)
    assert np.array_equal(dense.partition_, thin.partition_)
    np.testing.assert_allclose(thin.components_, dense.components_, atol=1e-3)
    assert np.array_equal(thin.certify(sparse.csr_matrix(rows)), thin.certify(rows))


def test_equal_members_are_certified_at_zero():
    clf = ERMClassifier(5, voting="hard").fit(X2, Y2)
    assert (clf.certify(X2) == 0).all()
    assert clf.groups_.tolist() == list(range(8))


def test_float32_keeps_its_type_and_its_certificate():
    clf = exclusive().fit(X2.astype(np.float32), Y2)
    assert clf.components_.dtype == np.float32
    assert clf.certify(X2.astype(np.float32)).max() == 1


def test_certificates_need_little_time_and_memory():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100_000, 200))
    y = (X[:, :50].sum(axis=1) > 0).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        clf = exclusive(15, solver_options={"restarts": 0}).fit(X[:1000], y[:1000])
    started = process_time()
    radius = clf.certify(X)
    assert process_time() - started < 5
    assert radius.shape == (100_000,)


@pytest.mark.parametrize(
    ("X", "y", "multi_class"), [(X2, Y2, "ovr"), (X4, Y4, "ovr"), (X4, Y4, "ovo")], ids=["2", "ovr", "ovo"]
)
@pytest.mark.parametrize("seed", range(3))
def test_a_weight_of_two_is_two_rows_for_the_search_too(X, y, multi_class, seed):
    copies = np.random.default_rng(seed).integers(0, 4, len(y))
    clf = exclusive(multi_class=multi_class, tol=1e-8, random_state=seed)
    weighted = clone(clf).fit(X, y, sample_weight=copies)
    repeated = clone(clf).fit(np.repeat(X, copies, axis=0), np.repeat(y, copies))
    assert np.array_equal(weighted.partition_, repeated.partition_)
    np.testing.assert_allclose(weighted.components_, repeated.components_, atol=1e-3)
