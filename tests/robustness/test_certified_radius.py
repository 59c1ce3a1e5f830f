"""The radius of a vote against every possible adversary."""

from __future__ import annotations

from itertools import combinations
from time import process_time

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from exclusivity.classifier._ensemble import Ensemble
from exclusivity.voting import _changes, rules
from exclusivity.voting._changes import group_supports, largest_reaches
from robustness.adversary_oracle import exhaustive_radius
from robustness.robust_cases import certified_radius


@st.composite
def electorates(draw, disjoint=None, max_classes=4):
    """Votes of one row, and supports: disjoint or overlapping, some members without features."""
    n_members = draw(st.integers(1, 7))
    n_features = draw(st.integers(1, 7))
    n_classes = draw(st.integers(2, max_classes))
    votes = draw(st.lists(st.integers(0, n_classes - 1), min_size=n_members, max_size=n_members))
    if draw(st.booleans()) if disjoint is None else disjoint:
        owners = draw(st.lists(st.integers(-1, n_members - 1), min_size=n_features, max_size=n_features))
        supports = np.arange(n_members)[:, None] == np.array(owners)
    else:
        cells = st.lists(st.booleans(), min_size=n_features, max_size=n_features)
        supports = np.array(draw(st.lists(cells, min_size=n_members, max_size=n_members)))
    return np.array(votes), supports, n_classes


@settings(max_examples=150, deadline=None)
@given(electorates())
def test_no_adversary_beats_the_radius(case):
    votes, supports, n_classes = case
    assert certified_radius(votes[None], supports, n_classes)[0] <= exhaustive_radius(*case)


@settings(max_examples=120, deadline=None)
@given(electorates(disjoint=True))
def test_disjoint_supports_are_counted_exactly(case):
    votes, supports, n_classes = case
    assert certified_radius(votes[None], supports, n_classes)[0] == exhaustive_radius(*case)


@settings(max_examples=80, deadline=None)
@given(electorates(max_classes=2), st.randoms(use_true_random=False))
def test_members_without_a_vote_here_may_still_be_won_over(case, random):
    votes, supports, n_classes = case
    undecided = np.array([random.random() < 0.4 for _ in votes])
    silent = np.where(undecided, -1, votes)
    found = certified_radius(silent[None], supports, n_classes)[0]
    assert found <= exhaustive_radius(silent, supports, n_classes)


@settings(max_examples=50, deadline=None)
@given(electorates())
def test_a_feature_more_never_helps(case):
    votes, supports, n_classes = case
    voting = supports.any(axis=1)  # a feature for a member that had none gives it a vote
    votes, supports = votes[voting], supports[voting]
    if len(votes):
        more = np.concatenate([supports, np.ones((len(votes), 1), dtype=bool)], axis=1)
        before = certified_radius(votes[None], supports, n_classes)[0]
        assert certified_radius(votes[None], more, n_classes)[0] <= min(before, 0)


def test_voters_of_third_classes_are_counted():
    # 7/4/4, and one feature under all four voters of the third class: one change makes it 7/8.
    votes = np.repeat([0, 1, 2], [7, 4, 4])[None]
    supports = np.eye(15, dtype=bool)
    together = supports.copy()
    together[11:, 11] = True
    assert certified_radius(votes, supports, 3)[0] == 1
    assert certified_radius(votes, together, 3)[0] == 0


def test_members_without_features_abstain():
    supports = np.eye(7, dtype=bool)[:, :3]  # members 3 to 6 would vote 1 whatever happens
    votes = np.array([[0, 0, 1, 1, 1, 1, 1], [0, 0, 0, 1, 1, 1, 1]])
    assert certified_radius(votes, supports, 2).tolist() == [0, 1]


def test_a_tie_has_no_radius():
    assert certified_radius(np.array([[0, 1], [0, 0]]), np.eye(2, dtype=bool), 2).tolist() == [-1, 0]


def test_nobody_votes_means_a_tie():
    assert certified_radius(np.zeros((2, 3), dtype=int), np.zeros((3, 4), dtype=bool), 2).tolist() == [-1, -1]
    assert certified_radius(np.zeros((0, 3), dtype=int), np.eye(3, dtype=bool), 2).tolist() == []


def test_several_features_of_one_member_count_once():
    # Winner's members own three features each: features alone would certify no more, members do.
    supports = np.repeat(np.eye(5, dtype=bool), 3, axis=1)
    assert certified_radius(np.zeros((1, 5), dtype=int), supports, 2)[0] == 2
    assert largest_reaches(supports).shape == (5, 5)


def test_equal_members_survive_nothing():
    assert certified_radius(np.ones((3, 30), dtype=int), np.ones((30, 8), dtype=bool), 2).tolist() == [
        0,
        0,
        0,
    ]


def test_blocks_of_rows_change_nothing(monkeypatch):
    rng = np.random.default_rng(0)
    votes, supports = rng.integers(0, 3, (57, 9)), rng.random((9, 40)) < 0.15
    whole = certified_radius(votes, supports, 3)
    monkeypatch.setattr(rules, "BLOCK_NUMBERS", 100)
    assert np.array_equal(certified_radius(votes, supports, 3), whole)
    monkeypatch.setattr(_changes, "_MOST_COMPARED", 1)
    assert np.all(certified_radius(votes, supports, 3) <= whole)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_only_the_largest_gains_are_sorted(n_classes):
    rng = np.random.default_rng(1)
    votes = np.where(rng.random((40, 13)) < 0.8, 0, rng.integers(0, n_classes, (40, 13)))
    pairs = np.array(list(combinations(range(13), 2)))  # no set of members lies in another one
    supports = (pairs[:, :, None] == np.arange(13)).any(axis=1).T
    reach = largest_reaches(supports)
    found = certified_radius(votes, supports, n_classes)
    assert reach.shape[1] > 4 * 13
    for row, radius in zip(votes, found, strict=True):
        totals = np.bincount(row, minlength=n_classes)
        w = totals.argmax()
        bounds = []
        for c in set(range(n_classes)) - {w}:
            gains = sorted(((1 + (row == w) - (row == c)) @ reach).tolist(), reverse=True)
            r = -1
            while r < len(gains) and sum(gains[: r + 1]) < totals[w] - totals[c]:
                r += 1
            bounds.append(r)
        assert radius == min(bounds)


def test_supports_are_unions_over_problems_and_groups():
    components = np.zeros((2, 3, 4))
    components[0, 0, 0] = components[1, 0, 3] = components[1, 2, 1] = -0.5
    supports = Ensemble(components, np.zeros(components.shape[:2]), components.shape[1]).supports
    assert supports.astype(int).tolist() == [[1, 0, 0, 1], [0, 0, 0, 0], [0, 1, 0, 0]]
    assert group_supports(supports, np.array([0, 1, 0, 1])).astype(int).tolist() == [[1, 1], [0, 0], [0, 1]]


@pytest.mark.parametrize(
    ("votes", "supports", "message"),
    [
        (np.zeros((2, 3), dtype=int), np.eye(4, dtype=bool), "one row per member"),
        (np.zeros(3, dtype=int), np.eye(3, dtype=bool), "one column"),
        (np.full((1, 3), 2), np.eye(3, dtype=bool), "from 0 to 1"),
        (np.full((1, 3), -3), np.eye(3, dtype=bool), "-3"),
    ],
)
def test_bad_votes_are_refused(votes, supports, message):
    with pytest.raises(ValueError, match=message):
        certified_radius(votes, supports, 2)


@pytest.mark.parametrize(("n_classes", "overlap"), [(2, False), (2, True), (10, False)])
def test_100_000_rows_are_certified_in_seconds(n_classes, overlap):
    rng = np.random.default_rng(0)
    votes = rng.integers(0, n_classes, (100_000, 15))
    owners = rng.integers(0, 15, 200)
    supports = rng.random((15, 200)) < 0.15 if overlap else np.arange(15)[:, None] == owners
    started = process_time()
    certified_radius(votes, supports, n_classes)
    assert process_time() - started < 5
