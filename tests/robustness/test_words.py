"""Certificates against added and removed words: exhaustive search, rounding, and what is refused."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import ClassifierMixin
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression, RidgeClassifier, SGDClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from exclusivity import ERMClassifier
from exclusivity.robustness import certify_words

MODELS = {
    "erm": ERMClassifier(2),
    "logistic": LogisticRegression(),
    "svc": LinearSVC(),
    "sgd": SGDClassifier(random_state=0),
    "ridge": RidgeClassifier(),
}


def made(kind, weights, intercepts, labels=("a", "b", "c")):
    """A model with these weights, which are dyadic: scores are exact, and so may be ties."""
    weights, intercepts = np.atleast_2d(weights), np.atleast_1d(intercepts).astype(float)
    classes = np.array(labels[: max(2, len(weights))])
    if kind == "erm":
        rng = np.random.default_rng(0)
        rows = rng.random((12, weights.shape[1]))
        model = ERMClassifier(2).fit(rows, classes[np.arange(12) % len(classes)])
        state = model._ensemble
        object.__setattr__(state, "weights", weights[:, None].astype(float))
        object.__setattr__(state, "intercepts", intercepts[:, None])
        return model
    model = LogisticRegression()
    model.coef_, model.intercept_, model.classes_ = weights.astype(float), intercepts, classes
    model.n_features_in_ = weights.shape[1]
    return model


def searched(model, row, added, removed, largest):
    """The radius by trying all combinations of the ends of what each word can be."""
    ends = [{x, *([max(x, most)] * added), *([0.0] * removed)} for x, most in zip(row, largest, strict=True)]
    changed = np.array(list(product(*ends)))
    n_changed = (changed != row).sum(axis=1)
    is_turned = model.predict(changed) != model.predict(row[None])
    return n_changed[is_turned].min() - 1 if is_turned.any() else len(row)


@pytest.mark.parametrize("kind", ["erm", "logistic"])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(("added", "removed"), [(True, True), (True, False), (False, True), (False, False)])
def test_radii_are_those_of_an_exhaustive_search(kind, n_classes, added, removed):
    rng = np.random.default_rng(n_classes)
    n_ties = 0
    for _ in range(6):
        n_scores = 1 if n_classes == 2 else n_classes
        # Sums of sixteenths and some 64ths and 128ths: no two scores are ever equal, and all are exact.
        weights = rng.integers(-8, 9, (n_scores, 6)) / 4
        model = made(kind, weights, rng.integers(-4, 5, n_scores) / 4 + np.arange(n_scores) / 64 + 1 / 128)
        largest = rng.choice([0.5, 1.0, 2.0], 6)
        rows = np.where(rng.random((6, 6)) < 0.5, rng.choice([0.25, 1.0, 3.0], (6, 6)), 0.0)
        found = certify_words(model, sparse.csr_matrix(rows), added=added, removed=removed, largest=largest)
        expected = [searched(model, row, added, removed, largest) for row in rows]
        n_ties += (found < 0).sum()
        assert found.tolist() == expected
    assert n_ties == 0


def test_a_tie_has_no_certificate_and_rounding_has_none_either():
    model = made("logistic", [1.0, -1.0], 0.0)
    assert certify_words(model, [[1.0, 1.0], [0.0, 0.0], [1.0, 0.0]]).tolist() == [-1, -1, 0]
    model = made("logistic", [0.1, 0.2, -0.3], 0.0)  # 0.1 + 0.2 - 0.3 > 0 only by rounding
    assert certify_words(model, [[1.0, 1.0, 1.0]]).tolist() == [-1]


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_no_greedy_attack_within_the_radius_succeeds(kind, n_classes):
    rng = np.random.default_rng(1)
    rows = (rng.random((150, 40)) < 0.2).astype(float)
    y = np.digitize(rows @ rng.standard_normal(40), [0.0, 1.0][: n_classes - 1])
    model = MODELS[kind].fit(rows, y)
    radii, predicted = certify_words(model, rows), model.predict(rows)
    weights = model.coef_ if n_classes > 2 else np.outer([-0.5, 0.5], model.coef_)
    for row, radius, own in zip(rows, radii, predicted, strict=True):
        is_turned = {radius: False, radius + 1: False}
        for rival in set(range(n_classes)) - {own}:
            duel = weights[own] - weights[rival]
            damage = np.where(row > 0, np.maximum(duel, 0), np.maximum(-duel, 0))
            order = np.argsort(-damage)
            for n_words in is_turned:
                changed = row.copy()
                changed[order[:n_words]] = 1 - changed[order[:n_words]]
                is_turned[n_words] |= bool(model.predict(changed[None])[0] != own)
        assert not is_turned[radius]
        assert is_turned[radius + 1] or radius == 40
    assert len(set(radii)) > 2


def test_long_rows_and_wide_vocabularies_need_no_full_sort():
    """Every row against the same computed from all damages at once."""
    rng = np.random.default_rng(2)
    rows = sparse.csr_array(sparse.random(50, 3000, density=0.02, random_state=rng, format="csr"))
    rows.data[:] = 1.0
    model = LogisticRegression(C=10).fit(rows, rng.random(50) < 0.5)
    dense, weights = rows.toarray(), model.coef_[0]
    lead = model.decision_function(dense)
    signed = np.sign(lead)[:, None] * weights
    damage = -np.sort(-np.where(dense > 0, np.maximum(signed, 0), np.maximum(-signed, 0)), axis=1)
    expected = (np.cumsum(damage, axis=1) < np.abs(lead)[:, None] * (1 - 1e-9)).sum(axis=1)
    assert certify_words(model, rows).tolist() == expected.tolist()
    assert len(set(expected)) >= 5


def test_any_number_of_added_words_leaves_a_monotone_model_as_it_is():
    rng = np.random.default_rng(3)
    counts = rng.poisson(0.5, (80, 12))
    y = counts[:, :4].sum(axis=1) > counts[:, 8:].sum(axis=1)
    model = ERMClassifier(1, monotonic_cst=[1] * 12).fit(counts, y)
    radii, flagged = certify_words(model, counts, removed=False, largest=np.inf), model.predict(counts)
    assert 0 < flagged.sum() < 80
    assert (radii[flagged] == 12).all()
    assert (radii[~flagged] == 0).all()
    free = ERMClassifier(1).fit(counts, y)
    assert (certify_words(free, counts, removed=False, largest=np.inf) == 0).all()


def test_rows_are_not_changed_and_zeros_that_are_stored_are_absent_words():
    rows = sparse.csr_matrix(([1.0, 0.0, 1.0], [0, 2, 1], [0, 2, 3]), shape=(2, 3))
    model = made("logistic", [0.5, -0.25, -1.0], 0.6)
    assert certify_words(model, rows).tolist() == certify_words(model, rows.toarray()).tolist()
    assert rows.nnz == 3


TEXTS = ["cheap watches win", "win cheap now", "meeting at noon", "minutes of the meeting", "cheap noon"]


def test_texts_by_presence_are_certified_and_normalised_ones_refused():
    y = [1, 1, 0, 0, 1]
    for vectorizer in (CountVectorizer(binary=True), TfidfVectorizer(norm=None)):
        rows = vectorizer.fit_transform(TEXTS)
        assert (certify_words(ERMClassifier(1).fit(rows, y), rows) >= 0).all()
    for norm in ("l1", "l2"):
        rows = TfidfVectorizer(norm=norm).fit_transform(TEXTS)
        with pytest.raises(ValueError, match=r"normalised.*norm=None"):
            certify_words(LinearSVC().fit(rows, y), rows)


class Odd(LogisticRegression, ClassifierMixin):
    """Predicts what it likes."""


def test_what_has_no_certificate_is_refused():
    X, y = np.eye(6)[:, :4], [0, 1, 0, 1, 2, 2]
    two = np.array(y) > 0
    fitted = LogisticRegression().fit(X, two)
    with pytest.raises(TypeError, match=r"a linear classifier .*got Odd"):
        certify_words(Odd().fit(X, two), X)
    with pytest.raises(TypeError, match=r"got Pipeline\. Of a pipeline give the last step"):
        certify_words(make_pipeline(fitted), X)
    with pytest.raises(ValueError, match="counts votes; use certify"):
        certify_words(ERMClassifier(3, voting="hard").fit(X, two), X)
    with pytest.raises(ValueError, match="one score per class"):
        certify_words(ERMClassifier(3, multi_class="ovo").fit(X, y), X)
    with pytest.raises(ValueError, match="largest must be finite for more than two classes"):
        certify_words(LogisticRegression().fit(X, y), X, largest=np.inf)
    with pytest.raises(ValueError, match="largest must be numbers of at least 0"):
        certify_words(fitted, X, largest=-1)
    with pytest.raises(ValueError, match="X must hold numbers"):
        certify_words(fitted, X - 0.5)
    with pytest.raises(ValueError, match="broadcast"):
        certify_words(fitted, X, largest=[1.0, 2.0])
