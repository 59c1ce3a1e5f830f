"""A row is read alike alone, in any batch, beside any neighbours and in any container.

EXCLUSIVITY_TABLE_ROWS=100000 makes of these tests a long run, over so many rows of each model.
"""

import csv
import os
import warnings
from collections import Counter

import numpy as np
import pandas as pd
import pytest

from exclusivity import RobustAdditiveClassifier
from exclusivity.cli.main import main
from exclusivity.io import save_model
from exclusivity.robustness import certify
from tables.containers import CONTAINERS, KINDS, as_plain_lists, values_of
from tables.votes import table_vote

ROWS = int(os.environ.get("EXCLUSIVITY_TABLE_ROWS", "100"))
NUMBERS = tuple(KINDS)[:4]
BATCHES = (1, 2, 3, 10, 100, 1000)

pytestmark = pytest.mark.filterwarnings("ignore:X (has|does not have valid) feature names")


def fitted(names, n_classes, kind, trained_on):
    """Fit a vote, or an additive model, to 300 rows of values that depend on the class."""
    rng = np.random.default_rng(n_classes)
    y = rng.integers(0, n_classes, 300)
    columns = {}
    for name in names:
        cells = values_of(name, rng, 300, unseen=False)
        order = sorted(range(300), key=lambda row: str(cells[row]))
        share = rng.permutation(300)[:180]  # of so many rows the order follows the classes
        cells = np.array([*cells, None], dtype=object)[:300]
        rows = share[np.argsort(y[share], kind="stable")]
        cells[rows] = cells[[row for row in order if row in set(share.tolist())]]
        columns[name] = cells.tolist()
    table = as_plain_lists(columns, rng)
    if trained_on == "frame":
        types = {"answer": "boolean", "code": object}
        table = pd.DataFrame(columns).astype({name: types[name] for name in types if name in columns})
    categorical = [place for place, name in enumerate(names) if name == "code"]
    if kind == "additive":
        model = RobustAdditiveClassifier(2, categorical_features=categorical or "from_dtype")
    else:
        model = table_vote(5, numeric=kind, random_state=0, categorical=categorical)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(table, y)


class Alone:
    """What a model makes of rows, each by itself in a list."""

    def __init__(self, model, names, n_rows, rng, *, unseen=True):
        self.columns = {name: values_of(name, rng, n_rows, unseen=unseen) for name in names}
        rows = as_plain_lists(self.columns, rng)
        answers = [answers_of(model, [row]) for row in rows]
        self.answers = [np.concatenate(each) for each in zip(*answers, strict=True)]

    def take(self, rows):
        """Give columns of some rows, and the answers."""
        columns = {name: [cells[row] for row in rows] for name, cells in self.columns.items()}
        return columns, [answers[rows] for answers in self.answers]


def answers_of(model, X):
    """Features (of a pipeline), labels, radii and scores."""
    labels = model.predict(X)
    features = np.asarray(model[0].transform(X)) if hasattr(model, "steps") else np.empty((len(labels), 0))
    return features, labels, certify(model, X), model.decision_function(X)


@pytest.mark.parametrize(
    ("names", "n_classes", "kind", "trained_on"),
    [
        (tuple(KINDS), 2, "spline", "frame"),
        (tuple(KINDS), 3, "linear", "lists"),
        (NUMBERS, 2, "spline", "lists"),
        ((*NUMBERS, "code"), 3, "linear", "frame"),
        (tuple(KINDS), 2, "additive", "lists"),
        (NUMBERS, 3, "additive", "frame"),
    ],
)
def test_rows_are_read_alike(names, n_classes, kind, trained_on):
    model = fitted(names, n_classes, kind, trained_on)
    rng = np.random.default_rng(7)
    alone = Alone(model, names, min(ROWS, 1000), rng)
    assert set(alone.answers[1]) == set(range(n_classes))
    assert alone.answers[2].max() >= 1
    seen = Counter()
    while seen["rows"] < ROWS:
        size = min(BATCHES[rng.integers(len(BATCHES))], ROWS)
        rows = rng.integers(0, len(alone.answers[1]), size)
        seen["rows"] += len(rows)
        columns, expected = alone.take(rows)
        for container in CONTAINERS:
            X = container(columns, rng)
            if X is None:
                continue
            seen[container.__name__] += len(rows)
            found = answers_of(model, X)
            for what, own, other in zip(("features", "labels", "radii"), found, expected, strict=False):
                np.testing.assert_array_equal(own, other, err_msg=f"{what}, {container.__name__}")
            # Sums of products are rounded in an order that depends on the size of a batch.
            np.testing.assert_allclose(found[3], expected[3], rtol=1e-12, atol=1e-12)
    print(dict(seen))
    never = {container.__name__ for container in CONTAINERS} - set(seen)
    assert never <= (set() if names == NUMBERS else {"as_float_array", "as_text_array"})


@pytest.mark.parametrize("kind", ["linear", "additive"])
def test_a_file_is_read_like_lists(kind, tmp_path, capsys):
    names, rng = ("amount", "count", "colour", "grade", "since"), np.random.default_rng(8)
    model = fitted(names, 2, kind, "frame")
    save_model(model, tmp_path / "m.erm")
    alone = Alone(model, names, min(ROWS, 1000), rng, unseen=False)
    n_rows = 0
    while n_rows < ROWS:
        rows = rng.integers(0, len(alone.answers[1]), min(BATCHES[rng.integers(len(BATCHES))], ROWS))
        n_rows += len(rows)
        columns, (_, labels, radii, _) = alone.take(rows)
        with open(tmp_path / "rows.csv", "w", newline="", encoding="utf-8") as stream:
            writer = csv.writer(stream)
            writer.writerow(names)
            writer.writerows(zip(*columns.values(), strict=True))  # None is an empty cell
        assert main(["certify", str(tmp_path / "m.erm"), str(tmp_path / "rows.csv"), "-o", "-"]) == 0
        found = [line.split(",") for line in capsys.readouterr().out.splitlines()[1 : len(rows) + 1]]
        assert found == [[str(label), str(radius)] for label, radius in zip(labels, radii, strict=True)]
