"""Fact 11 of math.md: the ERM rows of the paper's Table 1, from Algorithm 2 on 150 training rows."""

from __future__ import annotations

import numpy as np
import pytest

from exclusivity.objective.objective import ERMProblem
from exclusivity.solvers import Status, solve_paper

FILES = (
    "german.numer_scale",
    "diabetes_scale",
    "australian_scale",
    "sonar_scale",
    "splice_scale",
    "liver-disorders_scale",
    "heart_scale",
    "ionosphere_scale",
)

# (p, number of members): mean and standard deviation of the paper's Table 1, in the order of FILES.
PAPER = {
    (1, 10): "26.08 1.21  24.73 1.44  14.59 0.84  23.62 3.64  26.53 1.66  42.82 2.41  17.17 1.25  13.68 2.60",
    (2, 10): "26.00 1.16  24.34 0.92  14.13 0.40  23.79 4.36  26.75 2.26  36.00 4.05  17.83 1.81  13.03 2.20",
    (1, 30): "26.27 1.02  33.50 1.92  14.24 1.02  23.62 2.82  25.64 1.63  42.77 2.48  17.17 2.30  13.30 2.17",
    (2, 30): "25.75 1.10  25.42 1.41  14.02 0.81  21.55 3.66  26.07 1.80  40.05 3.48  17.08 1.26  12.99 1.95",
}

# The means of math.md, with trial t drawn by default_rng(t).permutation: another way to compute the same.
NOTE = {
    (1, 10): "26.6 26.4 14.9 22.8 27.0 41.5 18.9 14.3",
    (2, 10): "27.6 24.4 14.4 21.6 27.1 36.0 18.8 13.9",
    (1, 30): "27.2 32.6 14.8 23.3 24.6 41.5 17.5 13.8",
    (2, 30): "26.9 25.6 14.2 21.4 25.2 39.1 18.7 13.4",
}


def error_rates(X, y, p, n_members, trials=10):
    """Test errors in per cent of the paper's ensemble, the mean member."""
    errors = []
    for trial in range(trials):
        order = np.random.default_rng(trial).permutation(len(y))
        train, test = order[:150], order[150:]
        result = solve_paper(ERMProblem.build(X[train], y[train], n_members=n_members, cost=2.0, p=p))
        assert result.status is Status.RULE
        scores = X[test] @ result.weights.mean(axis=1) + result.intercepts.mean()
        errors.append(100 * np.mean(np.sign(scores) != y[test]))
    return np.array(errors)


@pytest.mark.parametrize("n_members", [10, 30])
@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("name", FILES)
def test_errors_of_table_1(name, p, n_members, paper_set):
    X, y = paper_set(name)
    errors = error_rates(X, y, p, n_members)
    column = FILES.index(name)
    mean, deviation = map(float, PAPER[p, n_members].split()[2 * column : 2 * column + 2])
    assert abs(errors.mean() - mean) <= deviation + errors.std(ddof=1)
    # The note rounds to 0.05; two decisions of sonar's 580 may fall otherwise with another BLAS.
    assert abs(errors.mean() - float(NOTE[p, n_members].split()[column])) <= 0.05 + 0.35


@pytest.mark.parametrize("p", [1, 2])
def test_the_same_procedure_learns_on_breast_cancer(p, cancer):
    """Runs without the data folder: three trials, 110 rows for training; a constant guess errs on 37 %."""
    X, y = cancer
    errors = []
    for trial in range(3):
        order = np.random.default_rng(trial).permutation(len(y))
        train, test = order[:110], order[110:]
        result = solve_paper(ERMProblem.build(X[train], y[train], n_members=10, cost=2.0, p=p))
        scores = X[test] @ result.weights.mean(axis=1) + result.intercepts.mean()
        errors.append(np.mean(np.sign(scores) != y[test]))
    assert np.mean(errors) < 0.1
