"""What travels: nothing of length N, and no more than the formula says."""

import pickle

import dask.array as da
import numpy as np
import pytest
from dask.sizeof import sizeof

from exclusivity.dask import ERMClassifier, rounds
from exclusivity.dask.blocks import RowBlock
from exclusivity.dask.requests import RowList
from exclusivity.dask.traffic import round_bytes, sums_bytes


@pytest.fixture
def totals(local, monkeypatch):
    """Every total that reaches the client, as the number of bytes that carries it."""
    seen = []
    ask = rounds.Rows.ask

    def watched(self, questions):
        answers = ask(self, questions)
        seen.append([len(pickle.dumps(answer.total)) for answer in answers])
        return answers

    monkeypatch.setattr(rounds.Rows, "ask", watched)
    return seen


def wide(n_rows, n_features, n_classes=2):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n_rows, n_features))
    y = np.digitize(X[:, 0] + rng.normal(size=n_rows), np.linspace(-1, 1, n_classes - 1))
    return da.from_array(X, chunks=(n_rows // 4, -1)), da.from_array(y, chunks=n_rows // 4)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_a_newton_step_brings_what_the_formula_says(totals, n_classes):
    ERMClassifier(3).fit(*wide(1000, 60, n_classes))
    expected = sums_bytes(60, curvature=True)
    for sizes in totals:
        for size in sizes:
            assert expected <= size < 1.2 * expected


@pytest.mark.parametrize("p", [1, 2])
def test_what_travels_does_not_grow_with_the_rows(totals, p):
    ERMClassifier(3, p=p).fit(*wide(400, 20))
    largest = max(max(sizes) for sizes in totals)
    totals.clear()
    ERMClassifier(3, p=p).fit(*wide(8000, 20))
    assert max(max(sizes) for sizes in totals) <= largest


def test_the_tree_adds_up():
    one, many = sums_bytes(10, curvature=False), sums_bytes(10, curvature=True)
    assert round_bytes(10, 1, 1, curvature=False) == one
    assert round_bytes(10, 8, 2, curvature=False) == (4 + 1) * one
    assert round_bytes(10, 100, 4, 3, curvature=True) == 3 * ((100 + 13 + 2) * 0.75 + 1) * many


def test_workers_send_what_the_formula_says(client, monkeypatch):
    def sent():
        counts = client.run(lambda dask_worker: dask_worker.transfer_outgoing_bytes_total)
        return sum(counts.values())

    ask, measured = rounds.Rows.ask, []

    def watched(self, questions):
        before = sent()
        answers = ask(self, questions)
        measured.append(sent() - before)
        return answers

    monkeypatch.setattr(rounds.Rows, "ask", watched)
    ERMClassifier(3, tol=1e-10).fit(*wide(4000, 60))
    expected = round_bytes(60, 4, 2, curvature=True)
    # Which worker holds which block is Dask's choice: three of four sums may move, or (seldom) none.
    assert max(measured[1:]) <= 1.2 * round_bytes(60, 4, 10**6, curvature=True)
    assert min(measured[1:]) >= sums_bytes(60, curvature=True)
    assert np.median(measured[1:]) <= 1.8 * expected


def test_dask_knows_how_large_our_values_are():
    X, codes, weights = np.zeros((1000, 10)), np.zeros(1000, dtype=np.int32), np.zeros(1000)
    assert sizeof(RowBlock(X, codes, weights)) >= X.nbytes + codes.nbytes + weights.nbytes
    assert sizeof(RowList(X, codes, weights)) >= X.nbytes
