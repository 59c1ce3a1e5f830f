"""What travels: nothing of length N, and no more than the formula says."""

import pickle

import dask.array as da
import numpy as np
import pytest
from dask.sizeof import sizeof

from dask import delayed
from dask_traffic import round_bytes, sums_bytes, travelling_sums
from exclusivity.dask import ERMClassifier, _rows as rounds
from exclusivity.dask._rows import RowBlock
from exclusivity.rows.design import RowList
from exclusivity.solvers import newton as sampling
from exclusivity.solvers.sums import evaluate


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
    assert len(totals) > 2
    for sizes in totals[1:]:  # the first round counts the classes
        for size in sizes:
            assert expected <= size < 1.2 * expected


@pytest.mark.parametrize("p", [1, 2])
def test_what_travels_does_not_grow_with_the_rows(totals, p):
    ERMClassifier(3, p=p).fit(*wide(400, 20))
    largest = max(max(sizes) for sizes in totals)
    totals.clear()
    ERMClassifier(3, p=p).fit(*wide(8000, 20))
    assert max(max(sizes) for sizes in totals) <= largest


def test_sums_that_travel_between_workers():
    halves, alternate = [0] * 8 + [1] * 8, [0, 1] * 8
    assert travelling_sums([0] * 5) == (1, 1)
    assert travelling_sums(halves) == (2, 2)
    assert travelling_sums(alternate) == (9, 2)
    assert travelling_sums([0] * 9 + [1] * 7) == (3, 2)  # the tree over the first eight, and one more
    assert travelling_sums([number // 8 for number in range(128)]) == (1 + 2 * 7 + 1, 1 + 2 * 7 + 1)
    one, many = sums_bytes(10, curvature=False), sums_bytes(10, curvature=True)
    assert 0 < round_bytes(10, halves, curvature=False) - 2 * one < 1300
    assert round_bytes(10, alternate, 3, curvature=True) > 3 * 9 * many


def count_answers():
    """On a worker: from now on add up the bytes of the messages that carry data."""
    from distributed.comm.tcp import TCP

    TCP.n_data_bytes = 0
    if getattr(TCP.write, "counts", False):
        return
    write = TCP.write

    async def counted(self, message, *args, **kwargs):
        n_bytes = await write(self, message, *args, **kwargs)
        if isinstance(message, dict) and message.get("status") == "OK" and "data" in message:
            TCP.n_data_bytes += n_bytes
        return n_bytes

    counted.counts = True
    TCP.write = counted


def counted_bytes():
    from distributed.comm.tcp import TCP

    return TCP.n_data_bytes


def placed(client, n_features, owners, n_classes):
    """Blocks of 100 rows on given workers."""
    rng, names, xs, ys = np.random.default_rng(3), sorted(client.nthreads()), [], []
    for owner in owners:
        X = rng.normal(size=(100, n_features))
        y = np.digitize(X[:, 0] + rng.normal(size=100), np.linspace(-1, 1, n_classes + 1)[1:-1])
        futures = client.scatter([X, y], workers=[names[owner]])
        xs.append(da.from_delayed(delayed(futures[0]), X.shape, float))
        ys.append(da.from_delayed(delayed(futures[1]), y.shape, int))
    return da.concatenate(xs), da.concatenate(ys)


HALVES, MIXED = [0] * 8 + [1] * 8, [0, 1, 1, 0, 1, 0] * 2


@pytest.mark.parametrize(
    ("owners", "n_classes", "curvature"),
    [(HALVES, 2, False), (MIXED, 2, False), (MIXED, 2, True), (HALVES, 3, True), (MIXED, 3, False)],
)
def test_a_newton_step_sends_what_the_formula_says(client, monkeypatch, owners, n_classes, curvature):
    n_problems = 1 if n_classes == 2 else n_classes
    if not curvature:  # many rows: the first steps borrow the second derivatives of a sample
        monkeypatch.setattr(sampling, "MANY_ROWS", 500)
    client.run(count_answers)
    ask, measured = rounds.Rows.ask, []

    def watched(self, questions):
        before = sum(client.run(counted_bytes).values())
        answers = ask(self, questions)
        requests = [question.request for question in questions]
        step = [r.arguments[-1] for r in requests if getattr(r, "function", None) is evaluate]
        if step == [curvature] * n_problems:
            placement = {number: at for at, group in enumerate(self.groups) for number in group}
            expected = round_bytes(
                28, [placement[n] for n in range(len(owners))], n_problems, curvature=curvature
            )
            measured.append((sum(client.run(counted_bytes).values()) - before) / expected)
        return answers

    monkeypatch.setattr(rounds.Rows, "ask", watched)
    ERMClassifier(3).fit(*placed(client, 28, owners, n_classes))
    assert measured
    assert 0.8 < min(measured) <= max(measured) < 1.2


def test_dask_knows_how_large_our_values_are():
    X, codes, weights = np.zeros((1000, 10)), np.zeros(1000, dtype=np.int32), np.zeros(1000)
    assert sizeof(RowBlock(X, codes, weights)) >= X.nbytes + codes.nbytes + weights.nbytes
    assert sizeof(RowList(X, codes, weights)) >= X.nbytes
