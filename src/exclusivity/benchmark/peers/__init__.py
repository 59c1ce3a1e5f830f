"""The registry of peers. ``MODULE:NAME`` names a ``Peer`` of one's own."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

from exclusivity.benchmark.peers.base import Action, Peer, Setting, Solution, binary_labels
from exclusivity.benchmark.peers.compiled import COMPILED
from exclusivity.benchmark.peers.own import OWN
from exclusivity.benchmark.peers.scikit import SCIKIT
from exclusivity.benchmark.peers.yardsticks import YARDSTICKS

PEERS: dict[str, Peer] = {peer.name: peer for peer in (*OWN, *SCIKIT, *COMPILED, *YARDSTICKS)}

QUICK = (
    "newton",
    "psvm",
    "tron-1",
    "dcd-1",
    "sgd",
    "liblinear-free",
    "snapml-1",
    "rehline",
    "logistic-lbfgs",
)


def find_peer(name: str) -> Peer:
    """The peer called ``name``, or the ``Peer`` at ``package.module:NAME``.

    Examples
    --------
    >>> find_peer("newton").intercept
    'free, not penalised'
    """
    if name in PEERS:
        return PEERS[name]
    module, colon, attribute = name.partition(":")
    if not colon:
        raise ValueError(f"there is no peer {name!r}; choose from {', '.join(PEERS)}, or MODULE:NAME.")
    try:
        peer = getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"peer {name!r} could not be imported: {error}.") from error
    if not isinstance(peer, Peer):
        raise ValueError(f"{name!r} is a {type(peer).__name__}, not a Peer.")
    return peer


def find_peers(wanted: Sequence[str] | None, *, quick: bool) -> dict[str, Peer]:
    """Peers by the names they were asked for; None means all that --quick or the full run takes."""
    names = wanted if wanted is not None else (QUICK if quick else tuple(PEERS))
    return {name: find_peer(name) for name in names}


__all__ = ["PEERS", "Action", "Peer", "Setting", "Solution", "binary_labels", "find_peer", "find_peers"]
