"""``erm path``: the cost C that predicts best on held-out rows."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from exclusivity.cli import files, models, options, output, tables, training
from exclusivity.cli.progress import Progress

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

SUMMARY = "choose the cost C by cross-validation"
DESCRIPTION = (
    "Fits the path over C on every fold and shows the score of every C on the held-out rows. -o fits the "
    "best C to all rows and writes that model. Scaling is learned from all rows."
)
EPILOG = """examples:
  erm path heart.csv --target disease
  erm path heart.csv --target disease --costs 0.01,0.1,1,10 -o heart.erm
  erm path rare.csv --target fault --scoring balanced_accuracy --class-weight balanced --json"""

SCORINGS = ("accuracy", "balanced_accuracy", "f1_macro", "roc_auc", "average_precision", "matthews_corrcoef")

INPUTS = ("data", "groups")
OUTPUTS = {"output": files.MODEL}
COMMON = (
    *("data", "target", "output", "costs", "folds", "scoring", "members", "exclusivity", "voting"),
    *("additive", "json", "quiet"),
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    options.add_data(parser, "column of the classes: name or number (-1: last)")
    parser.add_argument("-o", "--output", metavar="FILE", help="write the model with the best C")
    parser.add_argument(
        "--costs",
        type=options.numbers,
        metavar="C,C,...",
        help="values to try (default: a grid from the data)",
    )
    parser.add_argument(
        "--folds", type=options.at_least(2), default=5, metavar="N", help="folds (default: 5)"
    )
    parser.add_argument(
        "--scoring", choices=SCORINGS, default="accuracy", metavar="S", help="score (default: accuracy)"
    )
    options.add_training(parser)
    tables.add_options(parser)
    parser.set_defaults(interactions=False)  # columns would be divided with a look at the held-out rows
    options.add_reporting(parser)


def run(args: argparse.Namespace) -> int:
    """Read, search, report, and write if asked."""
    args.ignore = [*args.ignore, *args.drop]
    training.check_parameters(args)
    progress = Progress("path", quiet=args.quiet)
    data = training.read_training_data(args, progress)
    from exclusivity import ERMClassifierCV

    classifier = ERMClassifierCV(
        Cs=10 if args.costs is None else args.costs,
        cv=args.folds,
        scoring=args.scoring,
        **training.parameters(args, data.names, data.X.shape[1]),
    )
    pipeline = training.build(classifier, args, data)
    training.fit(pipeline, data, progress)
    fitted = pipeline[-1]
    if args.output is not None:
        models.save(pipeline, data.names, data.target, args.output)
    document = _document(fitted, args)
    if args.json:
        output.print_json(document)
    else:
        _print(document)
    training.warn_of_votes(args.voting, args.exclusivity, args.members, len(fitted.classes_))
    return files.DONE if document["converged"] else files.NOT_CONVERGED


def _document(fitted: BaseEstimator, args: argparse.Namespace) -> dict[str, Any]:
    results = fitted.cv_results_
    columns = (results[key] for key in ("param_C", "mean_test_score", "std_test_score", "max_dual_gap"))
    return {
        "best_C": fitted.C_,
        "best_score": fitted.best_score_,
        "scoring": args.scoring,
        "folds": fitted.n_splits_,
        "path": [
            {"C": C, "mean_score": mean, "std_score": std, "max_dual_gap": gap}
            for C, mean, std, gap in zip(*columns, strict=True)
        ],
        "converged": bool(fitted.converged_.all()),
        "model": args.output,
    }


def _print(document: dict[str, Any]) -> None:
    scoring, best = document["scoring"], document["best_C"]
    rows = [
        [
            "best" if row["C"] == best else "",
            f"{row['C']:.4g}",
            f"{row['mean_score']:.4f}",
            f"{row['std_score']:.4f}",
            output.gap(row["max_dual_gap"]),
        ]
        for row in document["path"]
    ]
    output.print_table(["", "C", scoring, "spread", "largest gap"], rows)
    print(f"\nbest C: {best:.6g} ({scoring} {document['best_score']:.4f} over {document['folds']} folds)")
    if document["model"] is not None:
        print(f"model: {document['model']}")
    else:
        print("-o FILE fits it to all rows and writes the model.")
