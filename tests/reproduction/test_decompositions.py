"""E = Ebar - Abar and bias-variance-covariance: identities, loops over the definitions, checks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra.numpy import arrays

from reproduction.decompositions import bias_variance_covariance, error_ambiguity

quick = settings(deadline=None, max_examples=40)
values = st.floats(-10, 10)


@st.composite
def regressions(draw, with_trials=False):
    """Outputs, targets and member weights."""
    n_samples, n_members = draw(st.integers(1, 6)), draw(st.integers(2, 5))
    shape = (n_samples, n_members)
    if with_trials:
        shape = (draw(st.integers(2, 5)), *shape)
    shares = draw(arrays(float, n_members, elements=st.floats(0, 3)))
    shares[0] += 0.5
    return (
        draw(arrays(float, shape, elements=values)),
        draw(arrays(float, n_samples, elements=values)),
        shares,
    )


# --- error and ambiguity ------------------------------------------------------------------------------


@quick
@given(data=regressions())
def test_error_is_mean_error_minus_mean_ambiguity(data):
    for weights in (None, data[2]):
        terms = error_ambiguity(*data[:2], weights)
        assert terms.error == pytest.approx(terms.mean_error - terms.mean_ambiguity, rel=1e-12, abs=1e-12)
        assert terms.mean_ambiguity >= 0


@quick
@given(data=regressions())
def test_error_ambiguity_follows_the_definition(data):
    outputs, targets, weights = data
    shares = [w / weights.sum() for w in weights]
    error = mean_error = ambiguity = 0.0
    for row, target in zip(outputs, targets, strict=True):
        combined = sum(w * out for w, out in zip(shares, row, strict=True))
        error += (combined - target) ** 2 / len(targets)
        mean_error += sum(w * (out - target) ** 2 for w, out in zip(shares, row, strict=True)) / len(targets)
        ambiguity += sum(w * (out - combined) ** 2 for w, out in zip(shares, row, strict=True)) / len(targets)
    terms = error_ambiguity(outputs, targets, weights)
    found = (terms.error, terms.mean_error, terms.mean_ambiguity)
    assert found == pytest.approx((error, mean_error, ambiguity), rel=1e-11, abs=1e-12)


@quick
@given(data=regressions(), scale=st.floats(0.1, 100))
def test_the_scale_of_the_weights_does_not_matter(data, scale):
    outputs, targets, weights = data
    first, second = (
        error_ambiguity(outputs, targets, weights),
        error_ambiguity(outputs, targets, scale * weights),
    )
    assert first.error == pytest.approx(second.error, rel=1e-9, abs=1e-12)


def test_no_weights_are_equal_weights_and_a_zero_weight_is_no_member():
    outputs, targets = [[1.0, 2.0, 9.0], [0.5, -3.0, 9.0]], [1.0, -1.0]
    pair = error_ambiguity(np.array(outputs)[:, :2], targets)
    for weights in ([0.5, 0.5, 0.0], [3.0, 3.0, 0.0]):
        terms = error_ambiguity(outputs, targets, weights)
        assert terms.error == pytest.approx(pair.error, rel=1e-15)
        assert terms.mean_ambiguity == pytest.approx(pair.mean_ambiguity, rel=1e-15)


def test_a_huge_output_without_weight_does_no_harm():
    terms = error_ambiguity([[1e100, 0.25, 0.75]], [1.0], [0.0, 1.0, 1.0])
    assert (terms.error, terms.mean_ambiguity) == (0.25, 0.0625)


def test_equal_members_have_no_ambiguity():
    outputs = np.repeat([[0.1], [-0.7]], 10, axis=1)
    assert error_ambiguity(outputs, [1.0, -1.0]).mean_ambiguity == 0
    terms = error_ambiguity([[1.0, 1.0], [-2.0, -2.0]], [1.0, -1.0])
    assert (terms.error, terms.mean_error, terms.mean_ambiguity) == (0.5, 0.5, 0.0)
    with pytest.raises(AttributeError):
        terms.error = 1.0


# --- bias, variance, covariance -----------------------------------------------------------------------


@quick
@given(data=regressions(with_trials=True))
def test_error_is_bias_variance_and_covariance(data):
    terms = bias_variance_covariance(*data[:2])
    share = 1 / terms.n_members
    total = terms.squared_bias + share * terms.variance + (1 - share) * terms.covariance
    assert terms.error == pytest.approx(total, rel=1e-12, abs=1e-12)


@quick
@given(data=regressions(with_trials=True))
def test_bias_variance_covariance_follows_the_definition(data):
    outputs, targets, _ = data
    trials, samples, members = outputs.shape
    bias = variance = covariance = 0.0
    for s in range(samples):
        mean = [sum(outputs[t, s, k] for t in range(trials)) / trials for k in range(members)]
        bias += (sum(m - targets[s] for m in mean) / members) ** 2 / samples
        for k in range(members):
            for m in range(members):
                moment = sum(
                    (outputs[t, s, k] - mean[k]) * (outputs[t, s, m] - mean[m]) for t in range(trials)
                )
                if k == m:
                    variance += moment / (trials * members * samples)
                else:
                    covariance += moment / (trials * members * (members - 1) * samples)
    terms = bias_variance_covariance(outputs, targets)
    found = (terms.squared_bias, terms.variance, terms.covariance)
    assert found == pytest.approx((bias, variance, covariance), rel=1e-10, abs=1e-11)


def test_equal_members_have_as_much_covariance_as_variance():
    outputs = np.repeat(np.random.default_rng(0).normal(size=(6, 5, 1)), 4, axis=2)
    terms = bias_variance_covariance(outputs, np.zeros(5))
    assert terms.covariance == pytest.approx(terms.variance, rel=1e-14)


def test_independent_members_have_no_covariance_and_average_their_variance_away():
    outputs = np.random.default_rng(0).normal(size=(4000, 3, 4))
    terms = bias_variance_covariance(outputs, np.zeros(3))
    assert terms.covariance == pytest.approx(0, abs=0.02)
    assert terms.error == pytest.approx(1 / 4, abs=0.02)
