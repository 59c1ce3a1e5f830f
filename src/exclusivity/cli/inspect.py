"""``erm inspect``: the content of a model file."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from exclusivity._text import printable
from exclusivity.cli import files, matching, models, options, output, tables
from exclusivity.cli.data import listed
from exclusivity.cli.progress import Progress

if TYPE_CHECKING:
    from exclusivity.inspection.summary import ModelSummary

SUMMARY = "show what is in a model file"
DESCRIPTION = (
    "Shows the parameters of a model, how its fit ended and what it could prove, whether the members "
    "differ, and which features each of them uses. --html writes all that as one page with plots, --data "
    "adds how it does on a data file, --json every iteration of the fit."
)
EPILOG = """examples:
  erm inspect heart.erm
  erm inspect heart.erm --features 10
  erm inspect heart.erm --html report.html --data test.csv"""

INPUTS = ("model", "data")
OUTPUTS = {"html": files.BINARY}

_MOST_LINES = 60
_NOT_SHOWN = ("verbose", "warm_start")


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
    options.add_reporting(parser)
    group = parser.add_argument_group("reading data for --html")
    group.add_argument("--data", metavar="DATA", help="rows with classes to judge the model on")
    options.add_reading(group, "their column (default: that of the training data)")
    tables.add_decimal(group)


def run(args: argparse.Namespace) -> None:
    """Load, summarise, print or write."""
    if args.data is not None and args.html is None:
        raise files.UsageError("--data is for the report; add --html FILE, or use 'erm evaluate'.")
    loaded = models.load(args.model)
    from exclusivity.inspection.summary import summarise

    summary = summarise(loaded.model, feature_names=loaded.weighed_names, n_strongest=args.features)
    if args.html is not None:
        _write_report(args, loaded)
    owned = loaded.owned_columns
    if args.json:
        output.print_json({**_document(summary, loaded, owned), "report": args.html})
        return
    _print(summary, loaded, owned)
    if args.html is not None:
        print(f"\nreport: {args.html}")


def _write_report(args: argparse.Namespace, loaded: models.Loaded) -> None:
    from exclusivity.inspection import model_report

    X = y = None
    if args.data is not None:
        X, y = matching.rows_for(
            loaded, args.data, args, Progress("inspect", quiet=args.quiet), wants_labels=True
        )
    page = model_report(
        loaded.model, X, y, feature_names=loaded.weighed_names, title=f"Report on {args.model}"
    )
    output.write_whole(args.html, [page.encode()])


def _document(summary: ModelSummary, loaded: models.Loaded, owned: list[list[str]] | None) -> dict[str, Any]:
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


def _print(summary: ModelSummary, loaded: models.Loaded, owned: list[list[str]] | None) -> None:
    columns = tables.columns_of(loaded)
    made_of = "" if columns is None else f", made of {len(columns)} columns"
    chosen = "" if summary.chosen_C is None else f" that chose C = {summary.chosen_C:.6g}"
    classes = ", ".join(str(label) for label in summary.classes[:10])
    output.print_facts(
        [
            ("model", summary.kind + chosen),
            ("before it", "; ".join(" ".join(step.split()) for step in summary.steps) or "nothing"),
            ("classes", f"{len(summary.classes)}: {classes}"),
            *([] if loaded.target is None else [("target", f"column {loaded.target!r}")]),
            ("features", f"{summary.n_features}{made_of}"),
            ("members", summary.note or summary.n_members),
            ("settings", _as_options(loaded, summary.parameters)),
        ]
    )
    tables.print_columns(columns)
    print()
    output.print_table(
        ["problem", "iterations", "objective", "duality gap", "converged"],
        [
            [p.name, str(p.n_iter), f"{p.objective:.6g}", output.gap(p.gap), "yes" if p.converged else "NO"]
            for p in summary.problems[:_MOST_LINES]
        ],
    )
    print()
    for member in summary.members[:_MOST_LINES]:
        are_equal = summary.members_are_equal and summary.n_members > 1
        who = "all members" if are_equal else f"member {member.number}"
        strongest = ", ".join(f"{name} ({weight:+.3g})" for name, weight in member.strongest)
        if owned is not None and strongest:  # the weight of one landmark means nothing to a reader
            strongest = listed(owned[member.number]) + ", together" * (len(owned[member.number]) > 1)
        count = f"{member.n_features} feature{'s' * (member.n_features != 1)}"
        print(printable(f"{who} ({count}): {strongest or 'abstains'}"))
    if len(summary.members) > _MOST_LINES:
        print(f"... and {summary.n_members - _MOST_LINES} members more (--json has up to 10,000)")


def _as_options(loaded: models.Loaded, parameters: dict[str, Any]) -> str:
    """Return parameters as options; those that are none by their names, if they are not the default."""
    from exclusivity import ERMClassifier

    default = ERMClassifier().get_params()
    found, others = [], []
    encoder = tables.encoder_of(loaded)
    if encoder is not None and encoder.numeric == "spline":
        found.append("--additive" if loaded.owned_columns is None else "--interactions")
    for name, value in parameters.items():
        if value is None or name in _NOT_SHOWN:
            continue
        if name == "fit_intercept":
            found += [] if value else ["--no-intercept"]
        elif name in options.OPTIONS and isinstance(value, (str, int, float)):
            found.append(f"{options.OPTIONS[name]} {value if isinstance(value, str) else format(value, 'g')}")
        elif name not in default or default[name] != value:
            text = repr(value)
            others.append(f"{name}={text if len(text) <= 60 else text[:57] + '...'}")
    return ", ".join(filter(None, [" ".join(found), *others]))
