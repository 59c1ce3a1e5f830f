"""Sparse rows whose index arrays point outside of the matrix: refused, never read."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.ensemble import BaggingClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from exclusivity import ERMClassifier, ERMClassifierCV
from exclusivity.diversity import member_predictions
from exclusivity.partition import FeaturePartitionClassifier
from exclusivity.robustness import certify, certify_set, elect
from exclusivity.rows.design import check_sparse

N_ROWS, N_FEATURES = 60, 8
RNG = np.random.default_rng(0)
X = sparse.random(N_ROWS, N_FEATURES, density=0.5, format="csr", random_state=0)
Y = RNG.integers(2, size=N_ROWS)


def index_beyond(rows):
    rows.indices[5] = N_FEATURES


def index_negative(rows):
    rows.indices[5] = -1


def index_negative_int64(rows):
    rows.indices, rows.indptr = rows.indices.astype(np.int64), rows.indptr.astype(np.int64)
    rows.indices[5] = -(2**62)


def start_falls(rows):
    rows.indptr[10] = rows.indptr[12] + 1


def start_negative(rows):
    rows.indptr[7] = -5


def start_not_zero(rows):
    rows.indptr[0] = 3


def end_beyond(rows):
    rows.indptr[-1] += 10**6


def data_too_short(rows):
    rows.data = rows.data[:10]


def indices_too_short(rows):
    rows.indices = rows.indices[:10]


SPOILED = [
    index_beyond,
    index_negative,
    index_negative_int64,
    start_falls,
    start_negative,
    start_not_zero,
    end_beyond,
    data_too_short,
    indices_too_short,
]


def spoiled(spoil, kind="csr"):
    rows = X.copy() if kind == "csr" else X.T.copy()
    spoil(rows)
    return rows


def vote():
    balanced = {"class_weight": "balanced", "random_state": 0}
    return ERMClassifier(3, exclusivity=np.inf, voting="hard", **balanced).fit(X, Y)


@pytest.mark.parametrize("spoil", SPOILED)
def test_the_check_refuses_what_points_outside(spoil):
    for kind in ("csr", "csc"):
        with pytest.raises(ValueError, match=f"malformed sparse matrix: its {kind} indices"):
            check_sparse(spoiled(spoil, kind))


@pytest.mark.parametrize("kind", ["csr", "csc", "bsr", "coo", "lil", "dok", "dia"])
def test_the_check_takes_what_is_sound(kind):
    check_sparse(X.asformat(kind))
    check_sparse(sparse.csr_array((0, 5)).asformat(kind))
    with_room = X.copy()
    with_room.indices, with_room.data = (np.append(a, a[:9]) for a in (with_room.indices, with_room.data))
    check_sparse(with_room)
    check_sparse(X.toarray())


def test_the_check_looks_at_coordinates_and_blocks():
    coordinates = X.tocoo().copy()
    coordinates.col[3] = N_FEATURES
    blocks = X.tobsr((2, 2))
    blocks.indices[0] = N_FEATURES // 2
    for rows in (coordinates, blocks):
        with pytest.raises(ValueError, match="malformed"):
            check_sparse(rows)


def uses():
    """Everything that takes sparse rows, by name."""
    equal, voters = ERMClassifier(2, loss="logistic").fit(X, Y), vote()
    by_cv = ERMClassifierCV(2, Cs=[1.0], cv=2).fit(X, Y)
    parted = FeaturePartitionClassifier(DecisionTreeClassifier(), 3, random_state=0).fit(X, Y)
    bagged = BaggingClassifier(LinearSVC(), 3, max_features=2, random_state=0).fit(X, Y)
    scaled = make_pipeline(MaxAbsScaler(), voters)
    scaled[0].fit(X)
    return {
        "fit": lambda rows: ERMClassifier(2).fit(rows, Y),
        "fit, classes": lambda rows: ERMClassifier(2, p=1).fit(rows, np.arange(N_ROWS) % 3),
        "predict": equal.predict,
        "decision_function": equal.decision_function,
        "predict_proba": equal.predict_proba,
        "members' scores": equal.component_decision_function,
        "members' labels": equal.component_predict,
        "certify": voters.certify,
        "certify_set": lambda rows: voters.certify_set(rows, 1),
        "cross-validated": by_cv.predict,
        "parts, fit": lambda rows: FeaturePartitionClassifier(LinearSVC(), 3).fit(rows, Y),
        "parts": parted.predict,
        "parts, certify": parted.certify,
        "parts, members": parted.component_predict,
        "pipeline, certify": lambda rows: certify(scaled, rows),
        "pipeline, certify_set": lambda rows: certify_set(scaled, rows, 1),
        "pipeline, elect": lambda rows: elect(scaled, rows, "hard"),
        "bagging, certify": lambda rows: certify(bagged, rows),
        "diversity": lambda rows: member_predictions(bagged, rows),
    }


def refuses(use, rows):
    try:
        use(rows)
    except ValueError as error:
        return "malformed sparse matrix" in str(error)
    return False


def test_everything_that_takes_sparse_rows_checks_them():
    for spoil in (index_beyond, start_falls):
        assert [name for name, use in uses().items() if not refuses(use, spoiled(spoil))] == []
