"""What travels, as a formula: bytes of one round, whatever the number of rows."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from exclusivity.dask._rows import FAN_IN, Nodes, collapse

_NUMBER = 8
# What pickle and Dask's protocol put around the numbers, measured with Dask 2026.8.
_PER_SUM = 250
_PER_MESSAGE = 350


def sums_bytes(n_features: int, *, curvature: bool) -> int:
    """The sums of one point: loss, smoothed loss, pulls (2 M), masses and conjugates of both classes.

    With ``curvature`` the matrix of second derivatives comes on top.

    Examples
    --------
    >>> sums_bytes(28, curvature=False), sums_bytes(28, curvature=True)
    (496, 7224)
    """
    matrix = (n_features + 1) ** 2 if curvature else 0
    return _NUMBER * (2 * n_features + 6 + matrix)


def round_bytes(
    n_features: int, placement: Sequence[Hashable], n_problems: int = 1, *, curvature: bool
) -> int:
    """What all workers send in one round: to each other, and the total to the client.

    Parameters
    ----------
    n_features : int
    placement : sequence
        The worker of every block, in the order of the blocks; each worker with one thread.
    n_problems : int
    curvature : bool

    Examples
    --------
    Sixteen blocks on two workers, each with one half of the rows; then each with every other block.

    >>> round_bytes(28, [0] * 8 + [1] * 8, curvature=False), round_bytes(28, [0, 1] * 8, curvature=False)
    (2192, 7414)
    """
    n_sums, n_messages = travelling_sums(placement)
    per_sum = sums_bytes(n_features, curvature=curvature) + _PER_SUM
    return n_messages * _PER_MESSAGE + n_sums * n_problems * per_sum


def travelling_sums(placement: Sequence[Hashable]) -> tuple[int, int]:
    """How many sums travel in a round, and in how many messages.

    A worker adds the parts of the tree that it has as a whole. Of eight workers' parts the largest stays
    where it is and the others come to it, and so on with eight times eight workers; the total goes to the
    client.
    """
    n_blocks, of_worker = len(placement), dict[Hashable, Nodes]()
    for number, worker in enumerate(placement):
        of_worker.setdefault(worker, {})[0, number] = [0]
    parts = [collapse(nodes, n_blocks) for nodes in of_worker.values()]
    n_sums, n_messages = 1, 1
    while len(parts) > 1:
        neighbours = [parts[at : at + FAN_IN] for at in range(0, len(parts), FAN_IN)]
        for few in neighbours:
            n_sums += sum(map(len, few)) - max(map(len, few))
            n_messages += len(few) - 1
        parts = [collapse({place: [0] for part in few for place in part}, n_blocks) for few in neighbours]
    return n_sums, n_messages
