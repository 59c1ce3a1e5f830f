"""A certified label is the same alone and in company, sparse and dense, whatever the arithmetic."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import sparse
from sklearn.ensemble import BaggingClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from exclusivity import ERMClassifier
from exclusivity.partition import FeaturePartitionClassifier
from exclusivity.robustness import certify
from exclusivity.voting.members import doubtful_votes
from exclusivity.voting.preferences import UNDECIDED, certain_votes, member_votes, rough_slack, score_slack
from robustness.adversary_oracle import exhaustive_radius
from robustness.robust_cases import certified_radius, fitted, split


def on_all_boundaries(clf, rows):
    """The rows moved onto the hyperplane of every member: each score is zero up to rounding."""
    rows = rows.copy()
    for w, b in zip(clf.components_[0], clf.component_intercepts_[0], strict=True):
        rows -= np.outer((rows @ w + b) / (w @ w), w)
    return rows


def in_any_company(predict, rows):
    """The predictions of the rows in batches of many sizes and forms."""
    whole = [predict(rows), predict(np.asfortranarray(rows)), predict(sparse.csr_matrix(rows))]
    parts = [np.concatenate([predict(rows[i : i + n]) for i in range(0, len(rows), n)]) for n in (1, 2, 7)]
    return np.stack(whole + parts)


def test_a_row_on_all_boundaries_has_no_certificate():
    clf = fitted("breast cancer", n_estimators=5)
    rows = on_all_boundaries(clf, split("breast cancer")[2][:64])
    labels = in_any_company(clf.predict, rows)
    radius = clf.certify(rows)
    assert (labels != labels[0]).any()  # the rows are on the edge indeed: rounding decides
    assert (radius == -1).all()


def test_a_certified_label_is_the_same_in_any_company():
    clf = fitted("breast cancer", n_estimators=5)
    plain = split("breast cancer")[2][:64]
    edge = on_all_boundaries(clf, plain)
    mixed = np.where(np.arange(plain.shape[1]) % 3 > 0, plain, edge)  # some members sure, some not
    rows = np.concatenate([plain, edge, mixed])
    labels, radii = in_any_company(clf.predict, rows), in_any_company(clf.certify, rows)
    stands = radii.max(axis=0) >= 0
    assert 64 <= stands.sum() < len(rows)
    assert (labels[:, stands] == labels[0, stands]).all()


def test_float32_and_float64_of_the_same_values_agree_where_certified():
    X, y, rows, _ = split("breast cancer")
    clf = ERMClassifier(5, C=0.1, exclusivity=np.inf, voting="hard", random_state=0).fit(X.astype("f4"), y)
    narrow = on_all_boundaries(clf, rows[:64]).astype(np.float32)
    narrow = np.concatenate([narrow, rows[:64].astype(np.float32)])
    stands = clf.certify(narrow) >= 0
    assert stands.any()
    assert np.array_equal(stands, clf.certify(narrow.astype(float)) >= 0)
    assert np.array_equal(clf.predict(narrow)[stands], clf.predict(narrow.astype(float))[stands])


def linear_members(kind):
    """A fitted ensemble of LinearSVCs with the weights and intercepts of its members on the raw columns."""
    X, y, _, _ = split("breast cancer")
    base = LinearSVC(C=0.1, random_state=0)
    scaled = make_pipeline(StandardScaler(), base)
    model = {
        "partition": FeaturePartitionClassifier(base, 5, random_state=0),
        "bagging": BaggingClassifier(base, 5, max_features=6, bootstrap=False, random_state=0),
        "scaled members": FeaturePartitionClassifier(scaled, 5, random_state=0),
        "pipeline": make_pipeline(StandardScaler(), FeaturePartitionClassifier(base, 5, random_state=0)),
    }[kind].fit(X, y)
    ensemble = model[-1] if kind == "pipeline" else model
    columns = getattr(ensemble, "estimators_features_", getattr(ensemble, "supports_", None))
    weights, intercepts = np.zeros((5, X.shape[1])), np.zeros(5)
    for k, (member, own) in enumerate(zip(ensemble.estimators_, columns, strict=True)):
        linear = member[-1] if kind == "scaled members" else member
        weights[k, own], intercepts[k] = linear.coef_[0], linear.intercept_[0]
        if kind == "scaled members":
            weights[k, own] /= member[0].scale_
            intercepts[k] -= weights[k, own] @ member[0].mean_
    if kind == "pipeline":
        weights /= model[0].scale_
        intercepts -= weights @ model[0].mean_
    return model, weights, intercepts


@pytest.mark.parametrize("kind", ["partition", "bagging", "scaled members", "pipeline"])
def test_linear_members_of_other_ensembles_are_doubted_too(kind):
    model, weights, intercepts = linear_members(kind)
    rows = split("breast cancer")[2][:64]
    edge = rows - (rows @ weights.T + intercepts) @ np.linalg.pinv(weights).T
    assert (certify(model, edge) == -1).all()
    assert (certify(model, rows) >= 0).mean() > 0.8


def test_members_without_weights_are_taken_at_their_word():
    X, y, _, _ = split("breast cancer")
    assert not doubtful_votes(BaggingClassifier(random_state=0).fit(X, y), X).any()


# --- the slack ----------------------------------------------------------------------------------------

numbers = st.floats(-1e3, 1e3).map(lambda v: float(np.float32(v)))


products = st.lists(st.tuples(numbers, numbers), min_size=1, max_size=12)


@given(products, numbers, st.randoms(use_true_random=False))
def test_any_order_of_summation_stays_within_the_slack(terms, intercept, random):
    x, w = (np.array(column) for column in zip(*terms, strict=True))
    slack = score_slack(x[None], w[None], np.array([intercept]))[0, 0]
    true = sum((Fraction(a) * Fraction(b) for a, b in terms), Fraction(intercept))
    sums = []
    for _ in range(4):
        order = random.sample(range(len(x)), len(x))
        total = 0.0
        for j in order:
            total += float(x[j]) * float(w[j])
        sums.append(total + intercept)
    assert max(sums) - min(sums) <= slack
    assert max(abs(Fraction(value) - true) for value in sums) <= Fraction(slack)
    assert rough_slack(x[None], w[None], np.array([intercept]))[0, 0] >= slack * (1 - 1e-14)
    sparse_slack = score_slack(sparse.csr_matrix(x[None]), w[None], np.array([intercept]))[0, 0]
    assert sparse_slack == pytest.approx(slack, rel=1e-14)


def test_zeros_are_certain_and_overflow_is_not():
    weights, none = np.array([[1.0, -1.0]]), np.zeros(1)
    assert score_slack(np.zeros((1, 2)), weights, none)[0, 0] == 0
    assert np.isinf(score_slack(np.full((1, 2), 1.7e308), weights, none)[0, 0])
    scores = np.zeros((1, 1, 2))
    slack = np.array([[[0.0, np.inf]]])
    assert certain_votes(scores, slack, 2, "ovr").tolist() == [[0, UNDECIDED]]


@pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
@given(data=st.data())
def test_no_change_within_the_slack_turns_a_certain_vote(multi_class, data):
    n_classes = data.draw(st.integers(2, 4))
    pairs = n_classes * (n_classes - 1) // 2
    n_problems = 1 if n_classes == 2 else pairs if multi_class == "ovo" else n_classes
    values = st.sampled_from([-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0])
    scores = np.array(data.draw(st.lists(values, min_size=n_problems, max_size=n_problems)))[None, :, None]
    widths = st.sampled_from([0.0, 0.25, 0.5, 1.0])
    slack = np.array(data.draw(st.lists(widths, min_size=n_problems, max_size=n_problems)))[None, :, None]
    vote = certain_votes(scores, slack, n_classes, multi_class)[0, 0]
    corners = np.array(np.meshgrid(*[[-1, 0, 1]] * n_problems)).reshape(n_problems, -1).T[:, :, None]
    turned = member_votes(scores + corners * slack, n_classes, multi_class)
    assert vote == UNDECIDED or (turned == vote).all()


@given(data=st.data())
def test_undecided_members_may_say_anything(data):
    n_members, n_classes = data.draw(st.integers(2, 6)), data.draw(st.integers(2, 3))
    codes = st.sampled_from([UNDECIDED, *range(n_classes)])
    votes = np.array([data.draw(st.lists(codes, min_size=n_members, max_size=n_members))])
    supports = np.eye(n_members, dtype=bool)
    radius = certified_radius(votes, supports, n_classes)[0]
    open_members = np.flatnonzero(votes[0] == UNDECIDED)
    for choice in product(range(n_classes), repeat=len(open_members)):
        said = votes.copy()
        said[0, open_members] = choice
        assert radius <= certified_radius(said, supports, n_classes)[0]
    if len(open_members) == 0:
        assert radius == exhaustive_radius(votes[0], supports, n_classes)
