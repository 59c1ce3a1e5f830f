"""Members that always vote the same: nothing can turn them, and somebody has to say so."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from exclusivity import ERMClassifier, ERMClassifierCV
from exclusivity.robustness import certified_accuracy, certify

CONSTANT = r"\d of 3 members vote common for every training row"


def rare_class(n_rows=200, n_features=6, seed=0):
    """One row in ten is of the class that every feature hints at and none shows."""
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n_rows) % 10 == 0, "rare", "common")
    return rng.standard_normal((n_rows, n_features)) + 0.6 * (y == "rare")[:, None], y


def voters(**parameters):
    return ERMClassifier(3, C=0.1, exclusivity=np.inf, voting="hard", random_state=0, **parameters)


def expected_constant(clf, X):
    """The slow way: members with features whose labels are all the same."""
    labels = clf.component_predict(X)
    return [k for k in range(labels.shape[1]) if clf.supports_[k].any() and len(set(labels[:, k])) == 1]


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix], ids=["dense", "sparse"])
def test_a_vote_that_is_certified_for_ever_and_worth_nothing_is_a_warning(kind):
    X, y = rare_class()
    with pytest.warns(UserWarning, match=CONSTANT) as caught:
        clf = voters().fit(kind(X), y)
    assert caught[0].filename == __file__
    constant = expected_constant(clf, X)
    assert f"{len(constant)} of 3" in str(caught[0].message)
    assert f"number {constant[0]})" in str(caught[0].message)
    assert "class_weight='balanced'" in str(caught[0].message)
    radii, predicted = certify(clf, X), clf.predict(X)
    assert certified_accuracy(radii, y, predicted, 1) > 0.85
    assert certified_accuracy(radii, y, predicted, 1, balanced=True) < 0.55


@pytest.mark.filterwarnings("error")
def test_balanced_weights_are_the_cure():
    X, y = rare_class()
    clf = voters(class_weight="balanced").fit(X, y)
    assert expected_constant(clf, X) == []
    assert certified_accuracy(certify(clf, X), y, clf.predict(X), 0, balanced=True) > 0.7


def test_rows_without_weight_do_not_count():
    X, y = rare_class()
    far = np.concatenate([X, 100 * np.ones((1, X.shape[1]))])
    weights = np.append(np.ones(len(y)), 0.0)
    with pytest.warns(UserWarning, match=CONSTANT):
        voters().fit(far, np.append(y, "rare"), sample_weight=weights)


def test_a_chosen_cost_warns_too():
    X, y = rare_class()
    with pytest.warns(UserWarning, match=CONSTANT):
        ERMClassifierCV(3, Cs=[0.1], cv=2, exclusivity=np.inf, voting="hard", random_state=0).fit(X, y)


@pytest.mark.filterwarnings("error")
def test_only_votes_of_members_that_differ_are_judged():
    X, y = rare_class()
    voters().set_params(voting="soft").fit(X, y)
    ERMClassifier(3, C=1e-3, voting="hard").fit(X, y)


def test_members_without_features_are_no_constant_voters():
    X, y = rare_class()
    clf = ERMClassifier(8, C=0.1, exclusivity=np.inf, voting="hard", class_weight="balanced", random_state=0)
    with pytest.warns(UserWarning, match="8 members compete for 7 features: 1 of them") as caught:
        clf.fit(np.hstack([X, np.zeros((len(X), 1))]), y)
    assert len(caught) == 1
    assert not clf.supports_.any(axis=1).all()


@pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
def test_votes_among_several_classes(multi_class):
    X, y = rare_class()
    y = np.where(X[:, 0] > 1.5, "other", y)
    clf = voters(multi_class=multi_class)
    with pytest.warns(UserWarning, match=CONSTANT) as caught:
        clf.fit(X, y)
    assert str(caught[0].message).startswith(f"{len(expected_constant(clf, X))} of 3")
