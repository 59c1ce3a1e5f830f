"""The tree of additions: the same bits, however blocks are grouped."""

import numpy as np
import pytest

from dask import delayed
from exclusivity.dask._rows import FAN_IN, Engine, Rows, collapse
from exclusivity.rows.source import Question


class Number:
    """A block answers with its number; its state counts the rounds."""

    def __init__(self, padding=b""):
        self.padding = padding

    def answer(self, block, state):
        return np.float64(block), (state or 0) + 1


class Count:
    def answer(self, block, state):
        return state, state


def random_groups(rng, n_blocks):
    owners = rng.integers(0, 4, size=n_blocks)
    return [np.flatnonzero(owners == worker).tolist() for worker in np.unique(owners)]


@pytest.mark.parametrize("n_blocks", [1, 2, 8, 9, 64, 70, 200])
def test_groups_do_not_change_a_bit(local, n_blocks):
    rng = np.random.default_rng(n_blocks)
    numbers = rng.normal(size=n_blocks) * 10.0 ** rng.integers(-12, 12, size=n_blocks)
    blocks = [delayed(float)(number) for number in numbers]
    totals = [Rows(Engine(None), blocks, 0, 0).total(Number())]
    totals += [
        Rows(Engine(None), blocks, 0, 0, random_groups(rng, n_blocks)).total(Number()) for _ in range(3)
    ]
    parts = list(numbers)
    while len(parts) > 1:  # the same tree, by hand
        parts = [sum(parts[at + 1 : at + FAN_IN], parts[at]) for at in range(0, len(parts), FAN_IN)]
    assert totals == [parts[0]] * 4


def test_states_stay_with_their_blocks(local):
    blocks = [delayed(float)(number) for number in range(11)]
    rows = Rows(Engine(None), blocks, 0, 0, [[0, 3, 4, 9], [1], [2, 5, 6, 7, 8, 10]])
    first, plain = rows.ask([Question(Number(), None, keeps_state=True), Question(Number())])
    assert first.total == plain.total == 55
    assert plain.states is None
    again = rows.ask([Question(Number()), Question(Number(), first.states, keeps_state=True)])[1]
    assert rows.ask([Question(Count(), again.states)])[0].total == 22


def test_large_requests_are_sent_once(local):
    blocks = [delayed(float)(number) for number in range(3)]
    assert Rows(Engine(None), blocks, 0, 0).total(Number(bytes(1 << 20))) == 3


def test_only_complete_parts_are_added():
    nodes = {(0, place): [place] for place in (0, 1, 2, 3, 4, 5, 6, 7, 9, 16)}
    assert collapse(nodes, 17) == {(1, 0): [28], (0, 9): [9], (1, 2): [16]}


def test_blocks_that_lie_together_are_one_group(client):
    names = sorted(client.nthreads())
    values = [delayed(client.scatter(number, workers=[names[number % 2]], hash=False)) for number in range(5)]
    values = Engine(client).persist(values)
    client.gather(client.compute(values))
    groups = Engine(client).placement(values)
    assert sorted(place for group in groups for place in group) == list(range(5))
    assert len(groups) <= 2
    assert Engine(None).placement(values) == [[0], [1], [2], [3], [4]]
