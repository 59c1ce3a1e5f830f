"""Losses by name: the one table that estimators, model files and the command read.

A new loss of the package is a file beside this one and a line in ``LOSSES``; one of a user's own is made
known with :func:`register_loss`.
"""

from __future__ import annotations

from exclusivity.problem.logistic import Logistic
from exclusivity.problem.loss import MarginLoss
from exclusivity.problem.power_hinge import PowerHinge
from exclusivity.problem.smooth_hinge import SmoothHinge

POWER_LOSS = "hinge"
"""The one that is made with a power p."""

LOSSES: dict[str, type[MarginLoss]] = {
    POWER_LOSS: PowerHinge,
    "logistic": Logistic,
    "smooth_hinge": SmoothHinge,
}
"""What a row that misses its margin may cost."""

OWN_LOSSES = frozenset(LOSSES)
"""Those that come with the package."""


def register_loss(name: str, loss: type[MarginLoss]) -> None:
    """Make a loss known by its name, to the estimators and the command.

    Model files keep the name alone: whoever loads them has to register it, too.

    Parameters
    ----------
    name : str
        What ``loss=`` will be. The losses of the package itself keep their names.
    loss : type
        A subclass of ``MarginLoss`` that can be made without arguments.
    """
    if name in OWN_LOSSES:
        raise ValueError(f"there is a loss {name!r} already; choose another name.")
    LOSSES[name] = loss
