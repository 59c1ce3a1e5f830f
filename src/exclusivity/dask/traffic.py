"""What travels, as a formula: bytes of one round, whatever the number of rows."""

from __future__ import annotations

from exclusivity.dask.rounds import FAN_IN

_NUMBER = 8


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
    n_features: int, n_blocks: int, n_workers: int, n_problems: int = 1, *, curvature: bool
) -> float:
    """What all workers send in one round: to each other, and the total to the client.

    A partial sum (of a block, of eight blocks, of 64, ...) is added on one of W workers and lies on another
    one with probability 1 - 1/W.

    Examples
    --------
    >>> round_bytes(28, 16, 2, curvature=False)
    4960.0
    """
    n_partial, level = 0, n_blocks
    while level > 1:
        n_partial += level
        level = -(-level // FAN_IN)
    n_sums = n_partial * (1 - 1 / n_workers) + 1
    return n_sums * n_problems * sums_bytes(n_features, curvature=curvature)
