"""Q statistic, correlation, disagreement and double fault against loops over the definitions."""

from __future__ import annotations

import math
from functools import partial
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra.numpy import arrays

from exclusivity.diversity import (
    mean_over_pairs,
    pairwise_diversity,
)

pairwise_correlation = partial(pairwise_diversity, measure="correlation")
pairwise_disagreement = partial(pairwise_diversity, measure="disagreement")
pairwise_double_fault = partial(pairwise_diversity, measure="double_fault")
pairwise_q_statistic = partial(pairwise_diversity, measure="q_statistic")

NAMES = np.array(["ant", "bee", "cicada"])
MEASURES = [pairwise_q_statistic, pairwise_correlation, pairwise_disagreement, pairwise_double_fault]

each_measure = pytest.mark.parametrize("measure", MEASURES, ids=lambda measure: measure.keywords["measure"])
quick = settings(deadline=None, max_examples=40)


@st.composite
def labelled(draw):
    """Predictions (n, L) and true labels (n,), as names."""
    shape = draw(st.tuples(st.integers(1, 9), st.integers(2, 5)))
    codes = draw(arrays(int, (shape[0], shape[1] + 1), elements=st.integers(0, 2)))
    return NAMES[codes[:, 1:]], NAMES[codes[:, 0]]


def counts(first, second, truth):
    n = {"11": 0, "10": 0, "01": 0, "00": 0}
    for a, b, y in zip(first.tolist(), second.tolist(), truth.tolist(), strict=True):
        n[f"{int(a == y)}{int(b == y)}"] += 1
    return n["11"], n["10"], n["01"], n["00"]


def limit(n11, n10, n01, n00):
    """What a pair with a constant member gets."""
    if n10 == n01 == 0:
        return 1.0
    return -1.0 if n11 == n00 == 0 else 0.0


def q_by_definition(n11, n10, n01, n00):
    below = n11 * n00 + n01 * n10
    return (n11 * n00 - n01 * n10) / below if below else limit(n11, n10, n01, n00)


def correlation_by_definition(n11, n10, n01, n00):
    below = (n11 + n10) * (n01 + n00) * (n11 + n01) * (n10 + n00)
    return (n11 * n00 - n01 * n10) / math.sqrt(below) if below else limit(n11, n10, n01, n00)


def disagreement_by_definition(n11, n10, n01, n00):
    return (n01 + n10) / (n11 + n10 + n01 + n00)


def double_fault_by_definition(n11, n10, n01, n00):
    return n00 / (n11 + n10 + n01 + n00)


DEFINITIONS = [
    q_by_definition,
    correlation_by_definition,
    disagreement_by_definition,
    double_fault_by_definition,
]
DEFINED = list(zip(MEASURES, DEFINITIONS, strict=True))


def vote(pattern):
    """Predictions of two members with given counts N11, N10, N01, N00; the true label is 1."""
    rows = [(1, 1)] * pattern[0] + [(1, 0)] * pattern[1] + [(0, 1)] * pattern[2] + [(0, 0)] * pattern[3]
    return np.array(rows), np.ones(len(rows), dtype=int)


# --- definitions --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("measure", "definition"), DEFINED)
@quick
@given(data=labelled())
def test_every_entry_follows_the_definition(measure, definition, data):
    predictions, truth = data
    matrix = measure(predictions, truth)
    members = range(predictions.shape[1])
    for i, j in product(members, members):
        expected = definition(*counts(predictions[:, i], predictions[:, j], truth))
        assert matrix[i, j] == pytest.approx(expected, abs=1e-14)


@pytest.mark.parametrize(("measure", "definition"), DEFINED)
def test_all_small_count_patterns(measure, definition):
    for pattern in product(range(4), repeat=4):
        if sum(pattern):
            value = measure(*vote(pattern))[0, 1]
            assert value == pytest.approx(definition(*pattern), abs=1e-14), pattern


def test_a_worked_example():
    predictions, truth = vote((5, 2, 1, 4))
    assert mean_over_pairs(pairwise_q_statistic(predictions, truth)) == pytest.approx(18 / 22)
    assert mean_over_pairs(pairwise_correlation(predictions, truth)) == pytest.approx(18 / math.sqrt(1260))
    assert mean_over_pairs(pairwise_disagreement(predictions, truth)) == pytest.approx(3 / 12)
    assert mean_over_pairs(pairwise_double_fault(predictions, truth)) == pytest.approx(4 / 12)


def test_the_correlation_is_that_of_the_zero_one_vectors():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 200)
    predictions = np.where(rng.random((200, 6)) < 0.7, truth[:, None], 1 - truth[:, None])
    expected = np.corrcoef(predictions == truth[:, None], rowvar=False)
    np.testing.assert_allclose(pairwise_correlation(predictions, truth), expected, atol=1e-13)


# --- properties ---------------------------------------------------------------------------------------


@quick
@given(data=labelled())
def test_ranges_and_diagonals(data):
    q, correlation, disagreement, double_fault = (measure(*data) for measure in MEASURES)
    n_members = data[0].shape[1]
    assert np.all(np.abs(q) <= 1)
    assert np.all(np.abs(correlation) <= np.abs(q) + 1e-14)
    assert np.all(q * correlation >= 0)
    assert np.all((disagreement >= 0) & (disagreement <= 1))
    assert np.all((double_fault >= 0) & (double_fault <= 1))
    np.testing.assert_array_equal(np.diag(q), np.ones(n_members))
    np.testing.assert_array_equal(np.diag(correlation), np.ones(n_members))
    np.testing.assert_array_equal(np.diag(disagreement), np.zeros(n_members))
    errors = np.mean(data[0] != data[1][:, None], axis=0)
    np.testing.assert_array_equal(np.diag(double_fault), errors)
    assert np.all(double_fault <= errors[:, None])


@each_measure
@quick
@given(data=labelled(), seed=st.integers(0, 99))
def test_symmetry_and_permutations(measure, data, seed):
    predictions, truth = data
    rng = np.random.default_rng(seed)
    rows, members = rng.permutation(len(truth)), rng.permutation(predictions.shape[1])
    matrix = measure(predictions, truth)
    np.testing.assert_array_equal(matrix, matrix.T)
    np.testing.assert_array_equal(measure(predictions[rows], truth[rows]), matrix)
    np.testing.assert_array_equal(measure(predictions[:, members], truth), matrix[np.ix_(members, members)])


@quick
@given(data=labelled())
def test_equal_members_are_not_diverse(data):
    predictions, truth = data
    equal = np.repeat(predictions[:, :1], 3, axis=1)
    assert np.all(pairwise_q_statistic(equal, truth) == 1)
    assert np.all(pairwise_correlation(equal, truth) == 1)
    assert np.all(pairwise_disagreement(equal, truth) == 0)
    assert np.all(pairwise_double_fault(equal, truth) == np.mean(predictions[:, 0] != truth))


# --- limits, labels, checks -----------------------------------------------------------------------------


@pytest.mark.parametrize("measure", [pairwise_q_statistic, pairwise_correlation])
@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ((7, 0, 0, 0), 1.0),  # both always right
        ((0, 0, 0, 7), 1.0),  # both always wrong
        ((0, 7, 0, 0), -1.0),  # one always right, the other always wrong
        ((0, 0, 7, 0), -1.0),
        ((3, 4, 0, 0), 0.0),  # the first always right, the second sometimes
        ((3, 0, 4, 0), 0.0),
        ((0, 0, 3, 4), 0.0),  # the first always wrong
        ((0, 3, 0, 4), 0.0),
    ],
)
def test_limits_where_a_member_is_constant(measure, pattern, expected):
    assert measure(*vote(pattern))[0, 1] == expected


@each_measure
@pytest.mark.parametrize(
    "labels",
    [
        np.array([3.5, -1.0]),
        np.array([True, False]),
        np.array(["no", "yes"], dtype=object),
        np.array([b"no", b"yes"]),
        np.array([("a", 1), None, "x"], dtype=object)[1:],
    ],
    ids=["float", "bool", "object", "bytes", "mixed"],
)
def test_labels_of_any_type(measure, labels):
    codes = np.random.default_rng(1).integers(0, 2, (20, 4))
    expected = measure(codes[:, 1:], codes[:, 0])
    np.testing.assert_array_equal(measure(labels[codes[:, 1:]], labels[codes[:, 0]]), expected)


def test_names_may_be_strings_on_one_side_and_objects_on_the_other():
    names = np.array(["no", "yes", "yes"])
    predictions = np.array([["no", "no"], ["no", "yes"], ["yes", "yes"]], dtype=object)
    assert pairwise_disagreement(predictions, names)[0, 1] == pytest.approx(1 / 3)


@each_measure
@pytest.mark.parametrize(
    ("predictions", "truth", "message"),
    [
        ([0, 1], [0, 1], "one row per sample"),
        ([[0], [1]], [0, 1], "two members"),
        (np.empty((0, 2)), [], "at least one sample"),
        ([[0, 1], [1, 1]], [0, 1, 1], "one label for each of the 2 rows"),
        ([[0, 1], [1, 1]], [[0], [1]], "one label for each of the 2 rows"),
        ([[0, 1], [1, np.nan]], [0, 1], "predictions contains NaN"),
        ([[0, 1], [1, 0]], [0, np.nan], "y_true contains NaN"),
        ([[0, 1], [1, 0]], ["a", "b"], "one is text and the other is not"),
        (np.array([["a", "b"]], dtype=object), [1], "one is text and the other is not"),
    ],
)
def test_unusable_input_is_refused(measure, predictions, truth, message):
    with pytest.raises(ValueError, match=message):
        measure(predictions, truth)


@pytest.mark.parametrize("matrix", [[1.0, 2.0], [[1.0]], [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]])
def test_only_square_matrices_are_averaged_over_pairs(matrix):
    with pytest.raises(ValueError, match="square matrix"):
        mean_over_pairs(matrix)
