"""``erm inspect``: what is in a model file."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from exclusivity._text import printable
from exclusivity.cli import curves, matching, models, options, output, overwriting, tables
from exclusivity.cli.data import listed
from exclusivity.cli.errors import UsageError
from exclusivity.cli.progress import Progress
from exclusivity.cli.wording import as_options

if TYPE_CHECKING:
    from exclusivity.inspection.summary import ModelSummary

SUMMARY = "show what is in a model file"
DESCRIPTION = (
    "Shows the parameters of a model, how its fit ended and what it could prove, whether the members "
    "differ, and which features each of them uses. --html writes all that as one page with plots, --data "
    "adds how it does on a data file."
)
EPILOG = """examples:
  erm inspect heart.erm
  erm inspect heart.erm --features 10 --history
  erm inspect heart.erm --html report.html --data test.csv"""

_MOST_LINES = 60

INPUTS = ("model", "data")
OUTPUTS = {"html": overwriting.REPORT}


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    options.add_model(parser)
    parser.add_argument("--html", metavar="FILE", help="write a report with plots (needs matplotlib)")
    parser.add_argument(
        "--features",
        type=options.COUNT,
        default=5,
        metavar="N",
        help="features to name per member (default: 5)",
    )
    parser.add_argument("--history", action="store_true", help="every iteration of the fit")
    options.add_json(parser)
    group = parser.add_argument_group("reading data for --html")
    group.add_argument("--data", metavar="DATA", help="rows with classes to judge the model on")
    options.add_reading(group, "their column (default: that of the training data)")
    tables.add_decimal(group)


def run(args: argparse.Namespace) -> None:
    """Load, sum up, print or write."""
    if args.data is not None and args.html is None:
        raise UsageError("--data is for the report; add --html FILE, or use 'erm evaluate'.")
    loaded = models.load(args.model)
    from exclusivity.inspection.summary import summarise

    summary = summarise(loaded.model, feature_names=loaded.weighed_names, n_strongest=args.features)
    if args.html is not None:
        _write_report(args, loaded)
    if args.json:
        output.print_json({**document(summary, loaded), "report": args.html})
        return
    _print(summary, loaded, args)
    if args.html is not None:
        judged = "" if args.data is None else f", with how it does on {args.data}"
        print(f"\nreport: {args.html}{judged}")


def _write_report(args: argparse.Namespace, loaded: models.Loaded) -> None:
    from exclusivity.inspection import model_report

    X = y = None
    if args.data is not None:
        X, y = matching.rows_for(loaded, args.data, args, Progress("inspect"), wants_labels=True)
    page = model_report(
        loaded.model, X, y, feature_names=loaded.weighed_names, title=f"Report on {args.model}"
    )
    output.write_whole(args.html, [page.encode()])


def document(summary: ModelSummary, loaded: models.Loaded) -> dict[str, Any]:
    """Everything, for JSON."""
    owned = _owned(loaded)
    return {
        "kind": summary.kind,
        "steps": summary.steps,
        "parameters": summary.parameters,
        "chosen_C": summary.chosen_C,
        "classes": summary.classes,
        "target": loaded.target,
        "features": summary.n_features,
        "feature_names": loaded.names,
        "columns": tables.columns_of(loaded),
        "members": summary.n_members,
        "members_are_equal": summary.members_are_equal,
        "note": summary.note,
        "problems": [
            {
                "name": problem.name,
                "objective": problem.objective,
                "dual_gap": problem.gap,
                "iterations": problem.n_iter,
                "converged": problem.converged,
                "history": {"objective": problem.history.objective, "gap": problem.history.gap},
            }
            for problem in summary.problems
        ],
        "by_member": [
            {
                "member": member.number,
                "features": member.n_features,
                "largest_weights": dict(member.strongest),
                **({} if owned is None else {"columns": owned[member.number]}),
            }
            for member in summary.members
        ],
    }


def _print(summary: ModelSummary, loaded: models.Loaded, args: argparse.Namespace) -> None:
    from exclusivity import ERMClassifier

    usual = ERMClassifier().get_params()
    classes = ", ".join(str(label) for label in summary.classes[:10])
    width = summary.n_features
    columns = tables.columns_of(loaded)
    made_of = "" if columns is None else f", made of {len(columns)} columns"
    owned = _owned(loaded)
    chosen = "" if summary.chosen_C is None else f" that chose C = {summary.chosen_C:.6g}"
    output.print_facts(
        [
            ("model", summary.kind + chosen),
            ("before it", "; ".join(" ".join(step.split()) for step in summary.steps) or "nothing"),
            ("classes", f"{len(summary.classes)}: {classes}"),
            *([] if loaded.target is None else [("target", f"column {loaded.target!r}")]),
            ("features", f"{width}{made_of}"),
            ("members", summary.note or summary.n_members),
            ("settings", curves.option_of(loaded.model) + as_options(summary.parameters, usual)),
        ]
    )
    tables.print_columns(columns)
    print()
    output.print_table(
        ["problem", "iterations", "objective", "duality gap", "converged"],
        [
            [p.name, str(p.n_iter), f"{p.objective:.6g}", _gap(p.gap), "yes" if p.converged else "NO"]
            for p in summary.problems[:_MOST_LINES]
        ],
    )
    print()
    _print_members(summary, owned)
    if args.history:
        _print_history(summary)


def _owned(loaded: models.Loaded) -> list[list[str]] | None:
    """The columns that each member looks at together; None where members do not."""
    owned = curves.owned_columns(loaded.model)
    names = list(loaded.names or range(loaded.n_features))
    return None if owned is None else [[str(names[column]) for column in columns] for columns in owned]


def _print_members(summary: ModelSummary, owned: list[list[str]] | None) -> None:
    from exclusivity.io._cells import counted

    for member in summary.members[:_MOST_LINES]:
        who = (
            "all members"
            if summary.members_are_equal and summary.n_members > 1
            else f"member {member.number}"
        )
        strongest = ", ".join(f"{name} ({weight:+.3g})" for name, weight in member.strongest)
        if owned is not None and strongest:  # of one landmark more or less nobody can make anything
            strongest = listed(owned[member.number]) + ", together" * (len(owned[member.number]) > 1)
        print(printable(f"{who} ({counted(member.n_features, 'feature')}): {strongest or 'abstains'}"))
    if len(summary.members) > _MOST_LINES:
        print(f"... and {summary.n_members - _MOST_LINES} members more (--json has up to 10,000)")


def _print_history(summary: ModelSummary) -> None:
    for problem in summary.problems:
        print(f"\n{printable(problem.name)}")
        pairs = zip(problem.history.objective.tolist(), problem.history.gap.tolist(), strict=True)
        output.print_table(
            ["iteration", "objective", "duality gap"],
            [
                [str(number), f"{objective:.8g}", _gap(gap)]
                for number, (objective, gap) in enumerate(pairs, 1)
            ],
        )


def _gap(gap: float) -> str:
    return "no bound" if gap != gap else f"{gap:.1e}"  # noqa: PLR0124 -- NaN
