"""``erm fit --interactions``: the model of ``make_robust_classifier(interactions=True)``, from files."""

import csv
import json

import numpy as np
import pytest

from exclusivity import make_robust_classifier
from exclusivity.cli.fit import one_svm
from exclusivity.cli.models import load
from exclusivity.robustness import certify
from exclusivity.tables import ColumnTable
from readers import read_csv

VOTES = ["--members", "3", "--exclusivity", "inf", "--voting", "hard"]
INTERACT = [*VOTES, "--interactions", "--cost", "1", "--quiet"]
N = 160


def mixed(seed):
    """Six columns of several kinds, of which two pairs matter only together; and the classes."""
    rng = np.random.default_rng(seed)
    a, b, c = rng.normal(size=(3, N)).round(3)
    colour, size = rng.choice(["red", "blue"], N), rng.choice(["s", "m", "l"], N)
    effect = 2 * a * b + 2 * a + np.where(colour == "red", 1.5, -1.5) * (size == "l") + c
    columns = {"a": a.astype(object), "b": b, "c": c, "colour": colour, "size": size, "n": rng.poisson(2, N)}
    columns["a"][::13] = ""  # gaps
    return columns, np.where(effect > 0, "yes", "no")


def write(path, columns, labels=None):
    with open(path, "w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow([*columns, *([] if labels is None else ["state"])])
        cells = [*columns.values(), *([] if labels is None else [labels])]
        writer.writerows(zip(*cells, strict=True))


@pytest.fixture
def mixed_files(erm):
    write("mixed.csv", *mixed(0))
    write("unseen.csv", *mixed(1))
    return erm


def test_all_commands_take_such_a_model(mixed_files):
    erm = mixed_files
    code, out, err = erm("fit", "mixed.csv", "--target", "state", "-o", "it.erm", *INTERACT)
    assert code == 0, err
    assert "TableEncoder, InteractionFeatures" in out
    assert "3 members on " in out
    code, out, _ = erm("evaluate", "it.erm", "unseen.csv", "--json")
    assert code == 0
    assert json.loads(out)["balanced_accuracy"] > 0.6
    code, out, _ = erm("predict", "it.erm", "unseen.csv", "--quiet")
    assert code == 0
    predicted = out.split()[1:]
    assert erm("certify", "it.erm", "unseen.csv", "-o", "radii.csv")[0] == 0
    with open("radii.csv") as lines:
        assert [row["label"] for row in csv.DictReader(lines)] == predicted
    code, out, _ = erm("inspect", "it.erm", "--html", "it.html", "--data", "unseen.csv")
    assert code == 0
    assert "--interactions --cost 1 " in out
    assert ", together" in out


def test_the_model_is_that_of_python(erm):
    """A file of numbers alone."""
    train, test = read_csv("train.csv", target="state"), read_csv("test.csv", target="state")
    code, _, err = erm("fit", "train.csv", "--target", "state", "-o", "it.erm", "--folds", 0, *INTERACT)
    assert code == 0, err
    found = load("it.erm").model
    same = make_robust_classifier(3, interactions=True, random_state=0).fit(train.data, train.target)
    rows = ColumnTable(list(np.asarray(test.data).T))
    assert np.allclose(found[:-1].transform(rows), same[:-1].transform(test.data), atol=1e-9)
    assert found.predict(rows).tolist() == same.predict(test.data).tolist()
    assert certify(found, rows).tolist() == certify(same, test.data).tolist()
    assert [step.get_params(deep=False) for _, step in found.steps[:1]] == [same[0].get_params()]


def test_members_own_what_is_said(mixed_files):
    """Changing a column moves the score of the member that is said to own it, and of no other."""
    erm = mixed_files
    erm("fit", "mixed.csv", "--target", "state", "-o", "it.erm", "--folds", 0, *INTERACT)
    model = load("it.erm").model
    names = list(mixed(1)[0])
    owned = load("it.erm").owned_columns
    assert sorted(column for columns in owned for column in columns) == sorted(names)
    columns = [np.asarray(column) for column in mixed(1)[0].values()]
    columns[0] = np.array([np.nan if cell == "" else cell for cell in columns[0]], dtype=float)

    def scores(table):
        return np.einsum("pkj,nj->nk", model[-1].components_, model[:-1].transform(ColumnTable(table)))

    before = scores(columns)
    for place, column in enumerate(columns):
        changed = [*columns[:place], column[::-1], *columns[place + 1 :]]
        moved = np.flatnonzero(np.abs(scores(changed) - before).max(axis=0) > 1e-9)
        assert moved.tolist() == [k for k, mine in enumerate(owned) if names[place] in mine]
    code, out, _ = erm("inspect", "it.erm", "--json")
    assert code == 0
    assert [member["columns"] for member in json.loads(out)["by_member"]] == owned


def test_one_svm_looks_at_all_columns_together():
    columns, labels = mixed(0)
    del columns["a"]
    rival = one_svm(make_robust_classifier(3, interactions=True, random_state=0))
    rival.fit(ColumnTable([np.asarray(column) for column in columns.values()]), labels)
    assert len(rival["interactions"].maps_) == 1
    assert len(rival["interactions"].maps_[0].columns) == rival["interactions"].n_features_in_


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--interactions"], "add --exclusivity inf and --voting hard"),
        (["--interactions", "--exclusivity", "inf"], "add --exclusivity inf and --voting hard"),
        ([*INTERACT, "--additive"], "choose one"),
        ([*INTERACT, "--dask"], "leave --dask out"),
        ([*INTERACT, "--solver", "paper"], "--solver: solver='paper'"),
        ([*INTERACT, "--scale", "minmax"], "with --interactions numbers are standardised; leave --scale out"),
        ([*INTERACT, "--monotonic", "c=1"], "with --interactions a column becomes several features"),
    ],
)
def test_refused(options, words, erm):
    code, _, err = erm("fit", "train.csv", "--target", "state", "-o", "it.erm", *options)
    assert code == 2
    assert words in err


@pytest.mark.parametrize("option", [INTERACT, ["--additive"], ["--additive", "--dask", "--workers", "1"]])
def test_files_that_are_no_tables(option, erm):
    code, _, err = erm("fit", "rows.svm", "-o", "it.erm", *option)
    assert code == 2
    assert "is for tables (CSV, TSV, Parquet), and rows.svm is read as libsvm; leave --" in err


def test_rows_that_are_no_table(mixed_files):
    erm = mixed_files
    erm("fit", "mixed.csv", "--target", "state", "-o", "it.erm", "--folds", 0, *INTERACT)
    code, _, err = erm("predict", "it.erm", "rows.svm")
    assert code == 3
    assert "it.erm was fitted to a table; use CSV, TSV or Parquet" in err
