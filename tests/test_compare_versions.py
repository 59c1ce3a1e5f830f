"""What ``scripts/compare_versions.py`` calls identical, close, certified or different."""

import numpy as np
import pytest
from sklearn.model_selection import ParameterGrid

from scripts import compare_versions


def record(**changes):
    fields = {
        "components_": np.array([1.0, 2.0]),
        "objective_": np.array([5.0]),
        "dual_gap_": np.array([1e-5]),
    }
    fields |= {"predict": np.array(["a", "b"]), "tol": np.array(1e-4)}
    return fields | {name: np.asarray(value) for name, value in changes.items()}


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({}, "identical"),
        ({"components_": [1.0, 2.0 + 1e-12]}, "within 1e-10"),
        ({"components_": [1.0, 2.001], "objective_": [5.0002]}, "both certified"),
        ({"components_": [1.0, 2.001], "objective_": [5.002]}, "DIFFERENT"),
        ({"components_": [1.0, 2.001], "dual_gap_": [2e-4]}, "DIFFERENT"),
        ({"components_": [1.0, 2.001], "dual_gap_": [np.nan], "converged_": [False]}, "DIFFERENT"),
        ({"components_": [1.0, 2.0, 3.0], "objective_": [5.0, 5.0]}, "DIFFERENT"),
        ({"partition_": [0, 1]}, "DIFFERENT"),
        ({"error": "ValueError: no"}, "DIFFERENT"),
    ],
)
def test_verdicts(changes, verdict):
    assert compare_versions.judge(record(), record(**changes))[0] == verdict


def test_labels_and_radii_have_no_tolerance():
    radii = [{"radius": np.array([1, 2])}, {"radius": np.array([1, 3])}]
    assert compare_versions.judge(*radii)[0] == "DIFFERENT"


def test_other_partitions_are_different():
    both = [
        record(partition_=labels, components_=[far, 2.0]) for labels, far in (([0, 1], 1.0), ([1, 0], 1.1))
    ]
    assert compare_versions.judge(*both)[0] == "DIFFERENT"


def test_cases_are_there_and_differ():
    for grid, count in ((compare_versions.GRIDS, 200), (compare_versions.CERTIFIED, 50)):
        assert len({str(case) for case in ParameterGrid(grid)}) == count


def test_cases_run():
    for case in (
        {"shape": "sparse", "loss": "hinge 1"},
        {"run": "members", "member": "bayes", "voting": "runoff"},
    ):
        model, rows = compare_versions.train(**case)
        assert "predict" in compare_versions.described(model, rows)
    assert compare_versions.certified(model, rows)["radius"].shape == (40,)
