"""Ranks, Friedman's test and Nemenyi's distance against scipy and published values."""

import numpy as np
import pytest
from scipy import stats

from exclusivity.experiments.ranks import critical_difference, friedman, groups, rank_if_added, ranks


def test_ranks_are_scipys():
    rng = np.random.default_rng(0)
    for _ in range(20):
        values = rng.integers(0, 6, size=10).astype(float)
        names = [f"m{k}" for k in range(10)]
        found = ranks(dict(zip(names, values, strict=True)))
        np.testing.assert_array_equal(list(found.values()), stats.rankdata(values))


def test_rounding_errors_do_not_break_ties():
    assert ranks({"a": 0.1 + 0.2, "b": 0.3}) == {"a": 1.5, "b": 1.5}


def test_rank_if_added():
    assert rank_if_added(1.0, [2.0, 3.0]) == 1
    assert rank_if_added(2.0, [2.0, 3.0]) == 1.5
    assert rank_if_added(9.0, [2.0, 3.0]) == 3


@pytest.mark.parametrize("ties", [False, True])
def test_friedman_is_scipys(ties):
    rng = np.random.default_rng(1)
    errors = rng.integers(0, 5, (8, 6)).astype(float) if ties else rng.random((8, 6))
    found = friedman(np.array([stats.rankdata(row) for row in errors]))
    expected = stats.friedmanchisquare(*errors.T)
    assert found.statistic == pytest.approx(expected.statistic)
    assert found.p_value == pytest.approx(expected.pvalue)


def test_friedman_without_enough_to_compare():
    assert friedman(np.ones((1, 5))) is None
    assert friedman(np.ones((5, 2))) is None
    assert friedman(np.full((4, 3), 2.0)).p_value == 1.0


# Demsar (2006), Table 5(a): q for alpha = 0.05.
@pytest.mark.parametrize(
    ("k", "q"),
    [
        (2, 1.960),
        (3, 2.343),
        (4, 2.569),
        (5, 2.728),
        (6, 2.850),
        (7, 2.949),
        (8, 3.031),
        (9, 3.102),
        (10, 3.164),
    ],
)
def test_critical_difference_has_the_published_quantiles(k, q):
    assert critical_difference(k, 8) == pytest.approx(q * np.sqrt(k * (k + 1) / 48), abs=2e-3)


def test_critical_difference_of_demsars_example():
    # Section 3.2.2: four classifiers, fourteen data sets, 5 and 10 %.
    assert critical_difference(4, 14) == pytest.approx(1.25, abs=0.005)
    assert critical_difference(4, 14, alpha=0.10) == pytest.approx(1.12, abs=0.005)


def test_groups_are_maximal_and_overlap():
    average = {"a": 1.0, "b": 2.0, "c": 3.0, "d": 5.5}
    assert groups(average, 1.5) == [["a", "b"], ["b", "c"]]
    assert groups(average, 10.0) == [["a", "b", "c", "d"]]
    assert groups(average, 0.5) == []
