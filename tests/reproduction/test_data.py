"""Splits are the same for all systems, and data sets are found or their absence explained."""

import numpy as np
import pytest

from reproduction.data import DATASETS, DataSet, generator, load, random_split
from reproduction.datasets import REGISTRY
from reproduction_cases import toy_set


def test_a_split_is_a_partition_and_comes_back():
    data = toy_set("heart")
    first, second = (random_split(data, 150, generator(3, "heart", 1)) for _ in range(2))
    assert len(first.y_train) == 150
    assert len(first.y_test) == 20
    np.testing.assert_array_equal(first.X_train, second.X_train)
    assert first.seed == second.seed
    rows = np.vstack([first.X_train, first.X_test])
    assert {tuple(row) for row in rows} == {tuple(row) for row in data.X}


def test_splits_are_those_of_the_published_page():
    """The numbers of docs/paper.md rest on these draws."""
    assert generator(0, "heart", 0).permutation(270)[:5].tolist() == [257, 269, 9, 56, 222]
    assert generator(0, "sweep sonar", 1).permutation(208)[:5].tolist() == [155, 91, 9, 4, 134]


@pytest.mark.parametrize("other", [(4, "heart", 1), (3, "sonar", 1), (3, "heart", 2)])
def test_seed_set_and_trial_change_the_split(other):
    data = toy_set("heart")
    split = random_split(data, 150, generator(3, "heart", 1))
    assert not np.array_equal(split.X_train, random_split(data, 150, generator(*other)).X_train)


def test_training_rows_have_both_classes():
    data = DataSet("rare", np.arange(10.0)[:, None], np.array([1.0] + [-1.0] * 9))
    for trial in range(20):
        assert set(random_split(data, 2, generator(0, "rare", trial)).y_train) == {-1.0, 1.0}


@pytest.mark.parametrize("n_train", [1, 10, 11])
def test_a_split_that_cannot_be_is_refused(n_train):
    y = np.array([1.0, -1.0] * 5)
    with pytest.raises(ValueError, match="Cannot draw"):
        random_split(DataSet("x", y[:, None], y), n_train, generator(0, "x"))


def test_one_class_is_refused():
    with pytest.raises(ValueError, match="same label"):
        random_split(DataSet("x", np.ones((5, 1)), np.ones(5)), 3, generator(0, "x"))


def test_what_is_missing_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("EXCLUSIVITY_DATA", str(tmp_path))
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "cache"))
    found, missing = load(["heart", "ijcnn1"], download=False)
    assert list(found) == ["heart"]
    assert set(found["heart"].y) == {-1.0, 1.0}
    assert "EXCLUSIVITY_DATA" in missing["ijcnn1"]


def test_a_wrong_data_folder_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setenv("EXCLUSIVITY_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(FileNotFoundError, match="EXCLUSIVITY_DATA"):
        load(["heart"])


def test_names_are_those_of_the_registry():
    assert set(DATASETS) == set(REGISTRY)
