"""Both kappas against loops over the definitions, scikit-learn's kappa, and their limits."""

from __future__ import annotations

from functools import partial
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import cohen_kappa_score

from exclusivity.diversity import interrater_kappa, mean_over_pairs, pairwise_diversity

pairwise_disagreement = partial(pairwise_diversity, measure="disagreement")
pairwise_kappa = partial(pairwise_diversity, measure="kappa")

NAMES = np.array(["ant", "bee", "cicada"], dtype=object)
quick = settings(deadline=None, max_examples=40)
shapes = st.tuples(st.integers(1, 9), st.integers(3, 6))
tables = shapes.flatmap(lambda shape: arrays(int, shape, elements=st.integers(0, 2)))


def kappa_by_definition(first, second):
    n, labels = len(first), set(first) | set(second)
    observed = sum(a == b for a, b in zip(first, second, strict=True)) / n
    chance = sum(first.count(label) / n * second.count(label) / n for label in labels)
    is_one = len(labels) == 1
    return 1.0 if is_one else (observed - chance) / (1 - chance)


def interrater_by_definition(predictions, truth):
    n, members = predictions.shape
    right = [[int(label == y) for label in row] for row, y in zip(predictions, truth, strict=True)]
    mean = sum(map(sum, right)) / (n * members)
    if mean in (0, 1):
        return 1.0
    above = sum(sum(row) * (members - sum(row)) / members for row in right)
    return 1 - above / (n * (members - 1) * mean * (1 - mean))


# --- pairwise kappa -----------------------------------------------------------------------------------


@quick
@given(codes=tables)
def test_pairwise_kappa_follows_the_definition(codes):
    predictions = NAMES[codes]
    kappa = pairwise_kappa(predictions)
    members = range(codes.shape[1])
    for i, j in product(members, members):
        expected = kappa_by_definition(predictions[:, i].tolist(), predictions[:, j].tolist())
        assert kappa[i, j] == pytest.approx(expected, abs=1e-13)


def test_pairwise_kappa_is_cohens():
    codes = np.random.default_rng(0).integers(0, 4, (300, 5))
    codes[:, 3] = np.where(codes[:, 3] == 1, codes[:, 3], codes[:, 0])
    kappa = pairwise_kappa(codes)
    for i, j in combinations(range(5), 2):
        assert kappa[i, j] == pytest.approx(cohen_kappa_score(codes[:, i], codes[:, j]), abs=1e-13)


@quick
@given(codes=tables, seed=st.integers(0, 99))
def test_pairwise_kappa_range_symmetry_and_permutations(codes, seed):
    kappa = pairwise_kappa(codes)
    rng = np.random.default_rng(seed)
    rows, members = rng.permutation(len(codes)), rng.permutation(codes.shape[1])
    assert np.all((kappa >= -1) & (kappa <= 1))
    np.testing.assert_array_equal(kappa, kappa.T)
    np.testing.assert_array_equal(np.diag(kappa), np.ones(len(kappa)))
    np.testing.assert_array_equal(pairwise_kappa(codes[rows]), kappa)
    np.testing.assert_array_equal(pairwise_kappa(codes[:, members]), kappa[np.ix_(members, members)])
    np.testing.assert_array_equal(pairwise_kappa(np.repeat(codes[:, :1], 3, axis=1)), np.ones((3, 3)))


def test_kappa_of_constant_members():
    predictions = np.array([["a", "a", "b", "a"]] * 3 + [["a", "a", "b", "b"]])
    expected = [[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
    np.testing.assert_array_equal(pairwise_kappa(predictions), expected)


def test_kappa_of_labels_is_not_kappa_of_correctness():
    """Wrong in different ways: no agreement of labels, full agreement about which samples are hard."""
    truth = np.array([0, 0, 0, 0])
    predictions = np.array([[1, 2], [2, 1], [0, 0], [1, 2]])
    correct = (predictions == truth[:, None]).astype(int)
    assert pairwise_kappa(predictions)[0, 1] < 0
    assert pairwise_kappa(correct)[0, 1] == 1


def test_a_single_member_is_refused():
    with pytest.raises(ValueError, match="two members"):
        pairwise_kappa([[1], [2]])


# --- interrater kappa ---------------------------------------------------------------------------------


@quick
@given(codes=tables)
def test_interrater_kappa_follows_the_definition(codes):
    predictions, truth = NAMES[codes[:, 1:]], NAMES[codes[:, 0]]
    value = interrater_kappa(predictions, truth)
    n_members = predictions.shape[1]
    assert value == pytest.approx(interrater_by_definition(predictions, truth), abs=1e-12)
    assert -1 / (n_members - 1) - 1e-14 <= value <= 1


@quick
@given(codes=tables)
def test_interrater_kappa_and_mean_disagreement(codes):
    """Kuncheva and Whitaker: kappa = 1 - D / (2 p (1 - p))."""
    predictions, truth = codes[:, 1:], codes[:, 0]
    p = np.mean(predictions == truth[:, None])
    if 0 < p < 1:
        disagreement = mean_over_pairs(pairwise_disagreement(predictions, truth))
        expected = 1 - disagreement / (2 * p * (1 - p))
        assert interrater_kappa(predictions, truth) == pytest.approx(expected, abs=1e-12)


@quick
@given(codes=tables, seed=st.integers(0, 99))
def test_interrater_kappa_permutations_and_equal_members(codes, seed):
    predictions, truth = codes[:, 1:], codes[:, 0]
    rng = np.random.default_rng(seed)
    rows, members = rng.permutation(len(truth)), rng.permutation(predictions.shape[1])
    value = interrater_kappa(predictions, truth)
    assert interrater_kappa(predictions[rows], truth[rows]) == value
    assert interrater_kappa(predictions[:, members], truth) == value
    assert interrater_kappa(np.repeat(predictions[:, :1], 4, axis=1), truth) == 1


@pytest.mark.parametrize("guess", ["a", "b"])
def test_interrater_limit_where_all_are_right_or_all_are_wrong(guess):
    assert interrater_kappa([[guess, guess]] * 3, ["a"] * 3) == 1.0


def test_members_that_split_every_sample_reach_the_lower_bound():
    assert interrater_kappa([[1, 0], [0, 1]], [1, 1]) == -1.0
