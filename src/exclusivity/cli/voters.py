"""What is told about members that vote: equal ones promise nothing, an even number of them may tie."""

from __future__ import annotations

import argparse
import warnings
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from exclusivity.cli.models import Loaded


def are_equal(voting: str, exclusivity: float) -> bool:
    """Whether members vote that are all the same."""
    return voting != "soft" and exclusivity <= 1


def can_tie(n_voters: int, n_classes: int) -> bool:
    """Whether votes between two classes may come out even."""
    return n_classes == 2 and n_voters % 2 == 0


def warn_after_fit(args: argparse.Namespace, n_classes: int) -> None:
    """Say it where the members that were asked for cannot be certified, or only on some of the rows."""
    if are_equal(args.voting, args.exclusivity):
        _warn(
            f"--voting {args.voting} counts the votes of {args.members} equal members: one broken feature "
            "turns all of them, and 'erm certify' can promise nothing. Add --exclusivity inf for members on "
            "different features."
        )
    elif args.voting != "soft" and can_tie(args.members, n_classes):
        _warn(
            f"{args.members} members may tie, and a tie has no certificate; an odd number of them (--members "
            f"{args.members - 1} or {args.members + 1}) cannot."
        )


def warn_after_certify(loaded: Loaded, found: dict[str, Any]) -> None:
    """Say why hardly anything is certified, where the members are the reason."""
    classifier: Any = loaded.classifier
    if are_equal(classifier.voting, classifier.exclusivity):
        _warn(
            f"all members of {loaded.title} are equal: one broken feature turns all of them, and nothing can "
            "be certified. Fit with --exclusivity inf for members on different features."
        )
        return
    n_voters = classifier._ensemble.n_voters
    if found["ties"] and can_tie(n_voters, len(classifier.classes_)):
        _warn(
            f"{found['ties']} of {found['rows']} rows are a tie of {n_voters} members, and have no "
            f"certificate; an odd number of members cannot tie. Fit with --members {n_voters - 1} or "
            f"{n_voters + 1}."
        )


def _warn(message: str) -> None:
    warnings.warn(message, UserWarning, stacklevel=3)
