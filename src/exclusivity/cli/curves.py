"""--additive and --interactions: what members make of their columns, beyond straight lines."""

from __future__ import annotations

import argparse
import math
from typing import TYPE_CHECKING, Any

from exclusivity.cli.errors import UsageError

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline

OPTIONS = ("additive", "interactions")
"""For which columns have to be encoded, whatever they hold."""

STEP = "interactions"
"""What the step is called in a pipeline, as ``make_robust_classifier`` calls it."""


def add_additive(group: Any) -> None:
    """--additive."""
    group.add_argument(
        "--additive",
        action="store_true",
        help="members follow a curve of every number instead of a straight line",
    )


def add_interactions(parser: argparse.ArgumentParser) -> None:
    """--interactions."""
    parser.add_argument_group("members that look at several columns together").add_argument(
        "--interactions",
        action="store_true",
        help="members look at all columns that they own together, and not at one curve of each: for a column "
        "that matters only where another one is large. Needs --exclusivity inf and --voting hard or runoff; "
        "certificates stay what they are. Models are larger (up to 200 features per member), and --cost "
        "means something else: begin with 0.1, 1 and 10",
    )


def numeric(args: argparse.Namespace) -> str:
    """What an encoder makes of numbers."""
    return "spline" if args.additive or args.interactions else "linear"


def check_interactions(args: argparse.Namespace) -> None:
    """Refuse what members with interactions have no use for, before anything is read."""
    if not args.interactions:
        return
    if args.additive:
        raise UsageError(
            "--additive and --interactions: members follow a curve of each of their columns, or look at all "
            "of them together, which can do what curves do; choose one."
        )
    if args.exclusivity != math.inf or args.voting == "soft":
        raise UsageError(
            "--interactions needs members with columns of their own, and a vote: add --exclusivity inf and "
            "--voting hard (or runoff, for three or more classes)."
        )
    if args.dask:
        raise UsageError(
            "--interactions needs all rows in memory; with --dask use --additive, or leave --dask out."
        )


def values_of_a_member(args: argparse.Namespace, X: Any) -> int:
    """How many numbers of these rows one member is trained on, at most."""
    if not args.interactions:
        return int(X.size)
    from exclusivity.tables import InteractionFeatures

    return max(int(X.size), len(X) * min(len(X), InteractionFeatures().n_landmarks))


def with_interactions(pipeline: Pipeline, args: argparse.Namespace) -> Pipeline:
    """The pipeline of an encoder and a classifier, with the step between them where it was asked for."""
    if args.interactions:
        from exclusivity.tables import interactions_for

        pipeline.steps.insert(1, (STEP, interactions_for(pipeline[-1])))
    return pipeline


def owned_columns(model: Any) -> list[list[int]] | None:
    """The columns of a table that each member (equal ones once) looks at together; None where members do not.

    The classifier numbers its members anew: who weighs a feature is its word, and of which columns the
    feature is made that of the step before.
    """
    import numpy as np

    from exclusivity.tables import InteractionFeatures, TableEncoder

    steps = [step for _, step in getattr(model, "steps", [])[:2]]
    if [type(step) for step in steps] != [TableEncoder, InteractionFeatures]:
        return None
    encoder, interactions = steps
    found = []
    for weighed in model[-1]._ensemble.supports:
        places = np.isin(interactions.owners_, interactions.members_[weighed])
        found.append(np.unique(encoder.sources_[places]).tolist())
    return found


def option_of(model: Any) -> str:
    """The option, with a space, that makes the first steps of a model; nothing where none is needed."""
    from exclusivity.tables import TableEncoder

    first = model[0] if hasattr(model, "steps") else model
    if owned_columns(model) is not None:
        return "--interactions "
    return "--additive " if isinstance(first, TableEncoder) and first.numeric == "spline" else ""


def members_in_words(owned: list[list[int]]) -> str:
    """How members with interactions share the columns.

    Examples
    --------
    >>> members_in_words([[0, 3], [1], [2, 4, 5], []])
    '3 members, each on 1 to 3 columns together, no two of them on the same one; 1 without columns abstains'
    """
    sizes = [len(columns) for columns in owned if columns]
    least, most = min(sizes), max(sizes)
    count = f"{least} to {most} columns" if least < most else f"{most} column{'s' * (most > 1)}"
    idle = len(owned) - len(sizes)
    rest = f"; {idle} without columns abstain{'s' * (idle == 1)}" if idle else ""
    return f"{len(sizes)} members, each on {count} together, no two of them on the same one{rest}"


def quieten(pipeline: Pipeline) -> None:
    """Let all steps that can talk while they are fitted be silent."""
    names = pipeline.get_params()
    pipeline.set_params(**{name: 0 for name in names if name.endswith("__verbose")})
