"""``erm reproduce``: the paper's figure and tables beside ours, with a verdict on every claim."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from exclusivity.cli import overwriting
from exclusivity.cli.errors import CommandError, UsageError

if TYPE_CHECKING:
    from exclusivity.experiments import Collection, Settings, Study

SUMMARY = "run the paper's experiments and report which claims hold"
DESCRIPTION = (
    "Runs the experiments of the ERM paper on the data sets that can be found (EXCLUSIVITY_DATA, the cache, "
    "the package) and writes JSON, CSV and one self-contained report.html. Ctrl-C keeps what is finished: "
    "the same command goes on from there. The seed decides the numbers, --jobs does not."
)

_PARTS = ("figure1", "table1", "table2", "theory")

OUTPUTS = {"out": overwriting.STUDY}


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "--only", choices=[*_PARTS, "all"], default="all", help="one part instead of all (default: all)"
    )
    parser.add_argument("--trials", type=int, metavar="N", help="random splits (default: 10, with --quick 3)")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="seed of all splits (default: 0)")
    parser.add_argument(
        "--quick", action="store_true", help="two minutes: fewer trials and points, nothing is downloaded"
    )
    parser.add_argument("--jobs", type=int, metavar="J", help="processes (default: one per CPU)")
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("reproduction"),
        metavar="DIR",
        help="folder for results and checkpoint (default: reproduction)",
    )


def run(args: argparse.Namespace) -> None:
    """Run, write, and tell what was found."""
    from exclusivity.experiments import collect, reproduce, terminal_progress, write_study

    settings = _settings(args)
    collection = collect(download=not args.quick)
    _tell_missing(collection, brief=args.quick)
    try:
        study = reproduce(settings, collection, args.out, progress=terminal_progress())
    except KeyboardInterrupt:
        print(f"erm reproduce: finished tasks are in {args.out}; the same command goes on.", file=sys.stderr)
        raise
    paths = write_study(study, args.out)
    print(summary(study))
    print(f"\n{paths[-1]}")


def _settings(args: argparse.Namespace) -> Settings:
    from exclusivity.experiments import Settings, available_cpus, default_trials

    for name, least in (("trials", 1), ("seed", 0), ("jobs", 1)):
        value = getattr(args, name)
        if value is not None and value < least:
            raise UsageError(f"--{name} must be at least {least}; got {value}.")
    return Settings(
        parts=_PARTS if args.only == "all" else (args.only,),
        trials=default_trials(args.quick) if args.trials is None else args.trials,
        seed=args.seed,
        quick=args.quick,
        jobs=available_cpus() if args.jobs is None else args.jobs,
    )


def _tell_missing(collection: Collection, *, brief: bool) -> None:
    if not collection.sets:
        reasons = "\n".join(collection.missing.values())
        raise CommandError(f"none of the data sets was found.\n{reasons}")
    if brief and collection.missing:
        names = ", ".join(collection.missing)
        print(f"erm reproduce: running without {names}: not bundled, see docs/datasets.md", file=sys.stderr)
        return
    for name, why in collection.missing.items():
        print(f"erm reproduce: running without {name}: {why}", file=sys.stderr)


def summary(study: Study) -> str:
    """Average ranks and verdicts as text; of a quick run without the numbers behind them."""
    from exclusivity.experiments import Outcome

    lines = []
    quick = study.settings.quick
    if "table1" in study.documents:
        rows = sorted(study.documents["table1"]["average_ranks"], key=lambda row: row["rank"])
        lines += ["average rank on Table 1 (the paper's)", *(_rank_line(row) for row in rows), ""]
    judged = [verdict for verdict in study.verdicts if not (quick and verdict.outcome is Outcome.UNCHECKED)]
    width = max((len(verdict.outcome.value) for verdict in judged), default=0)
    for verdict in judged:
        lines.append(f"{verdict.outcome.value:<{width}}  {verdict.claim}")
        if not quick:
            lines.append(f"{'':<{width}}  {verdict.number}")
    missing = study.provenance["missing"]
    if missing:
        lines += ["", f"missing data sets: {', '.join(missing)}"]
    if quick:
        unchecked = len(study.verdicts) - len(judged)
        lines += ["", f"A first look, {unchecked} claims not checked: docs/reproduction.md has the full run."]
    return "\n".join(lines)


def _rank_line(row: dict[str, object]) -> str:
    published = "" if row["paper_rank"] is None else f"  ({row['paper_rank']:.1f})"
    return f"  {row['method']:<20} {row['rank']:5.2f}{published}"
