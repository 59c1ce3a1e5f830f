"""A row is read alike alone, in any batch, beside any neighbours and in any container.

EXCLUSIVITY_TABLE_ROWS=100000 makes of these tests a long run, over so many rows of each model.
"""

import os
import warnings
from collections import Counter

import numpy as np
import pandas as pd
import pytest

from exclusivity.robustness import certify
from tables.containers import CONTAINERS, KINDS, as_plain_lists, values_of
from tables.votes import table_vote

ROWS = int(os.environ.get("EXCLUSIVITY_TABLE_ROWS", "100"))
NUMBERS = tuple(KINDS)[:4]
BATCHES = (1, 2, 3, 10, 100, 1000)

pytestmark = pytest.mark.filterwarnings("ignore:X (has|does not have valid) feature names")


def fitted(names, n_classes, numeric, trained_on):
    """Fit a vote to 300 rows of values that depend on the class."""
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
        table = pd.DataFrame(columns).astype(
            {"answer": "boolean"} | ({"code": object} if "code" in columns else {})
        )
    categorical = [place for place, name in enumerate(names) if name == "code"]
    model = table_vote(5, numeric=numeric, random_state=0, categorical=categorical)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(table, y)


class Alone:
    """What a model makes of rows, each by itself in a list."""

    def __init__(self, model, names, n_rows, rng):
        self.columns = {name: values_of(name, rng, n_rows) for name in names}
        rows = as_plain_lists(self.columns, rng)
        answers = [answers_of(model, [row]) for row in rows]
        self.answers = [np.concatenate(each) for each in zip(*answers, strict=True)]

    def take(self, rows):
        """Give columns of some rows, and the answers."""
        columns = {name: [cells[row] for row in rows] for name, cells in self.columns.items()}
        return columns, [answers[rows] for answers in self.answers]


def answers_of(model, X):
    """Features, labels, radii and scores."""
    return np.asarray(model[0].transform(X)), model.predict(X), certify(model, X), model.decision_function(X)


@pytest.mark.parametrize(
    ("names", "n_classes", "numeric", "trained_on"),
    [
        (tuple(KINDS), 2, "spline", "frame"),
        (tuple(KINDS), 3, "linear", "lists"),
        (NUMBERS, 2, "spline", "lists"),
        ((*NUMBERS, "code"), 3, "linear", "frame"),
    ],
)
def test_rows_are_read_alike(names, n_classes, numeric, trained_on):
    model = fitted(names, n_classes, numeric, trained_on)
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
