"""The penalty on one member: its conjugate with errors, and which weights are zero."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from exclusivity.objective.losses import PowerHinge
from exclusivity.objective.objective import ExclusivityRegulariser, Objective, Penalty

vectors = st.lists(st.floats(-5, 5), min_size=3, max_size=3).map(np.array)
kinks = st.sampled_from([0.0, 0.7, np.array([0.0, 0.5, 2.0])])


@given(vectors, vectors, kinks)
def test_the_conjugate_is_fenchels(u, w, kinks):
    penalty = Penalty(kinks)
    conjugate = penalty.largest_conjugate(u, 0.0, np.zeros(3))
    assert u @ w <= penalty.value(w) + conjugate + 1e-12
    attained = np.sign(u) * np.maximum(np.abs(u) - kinks, 0.0)
    assert u @ attained - penalty.value(attained) == pytest.approx(conjugate, rel=1e-12, abs=1e-12)
    np.testing.assert_array_equal(penalty.attained(u), attained)


@given(vectors, vectors, kinks)
def test_errors_only_raise_the_conjugate(u, error, kinks):
    penalty = Penalty(kinks)
    moved = penalty.largest_conjugate(u + error, 0.0, np.zeros(3))
    length = float(np.linalg.norm(error))
    for reach, reaches in ((length, np.full(3, np.inf)), (np.inf, np.abs(error)), (length, np.abs(error))):
        assert penalty.largest_conjugate(u, reach, reaches) >= moved * (1 - 1e-12)


@given(vectors)
def test_equal_members_pay_the_penalty_of_one(w):
    objective = Objective(PowerHinge(2), ExclusivityRegulariser(0.5, 1.5), n_members=4)
    members = np.repeat(w[:, None], 4, axis=1)
    whole = objective.regulariser.value(members)
    assert whole == pytest.approx(4 * objective.kappa * objective.penalty.value(w), rel=1e-12, abs=1e-12)
