"""``erm path``: the cost C that predicts best on rows left out."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from exclusivity.cli import models, options, output, overwriting, tables, training, voters
from exclusivity.cli.errors import DONE, NOT_CONVERGED
from exclusivity.cli.progress import Progress

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator


SUMMARY = "choose the cost C by cross-validation"
DESCRIPTION = (
    "Fits the whole path over C on every fold, each solution with its duality gap, and shows the score of "
    "every C on the rows left out. -o fits the best C to all rows and writes that model. Scaling is "
    "learned from all rows."
)
EPILOG = """examples:
  erm path heart.csv --target disease
  erm path heart.csv --target disease --costs 0.01,0.1,1,10 --folds 10 -o heart.erm
  erm path rare.csv --target fault --scoring balanced_accuracy --class-weight balanced --json"""

SCORINGS = ("accuracy", "balanced_accuracy", "f1_macro", "roc_auc", "average_precision", "matthews_corrcoef")

INPUTS = ("data", "groups")
OUTPUTS = {"output": overwriting.MODEL}


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    options.add_data(parser, "the column of the classes: its name, or its number from 0 (-1 is the last)")
    parser.add_argument("-o", "--output", metavar="FILE", help="write the model with the best C")
    parser.add_argument(
        "--costs",
        type=options.positives,
        metavar="C,C,...",
        help="values to try, with commas between them (default: 10 of them over 4.5 decades found from the "
        "data, and more while the largest or the smallest is the best)",
    )
    parser.add_argument(
        "--folds",
        type=options.number("of at least 2", lambda value: value >= 2, int),
        default=5,
        metavar="N",
        help="folds (default: 5)",
    )
    parser.add_argument(
        "--scoring", choices=SCORINGS, default="accuracy", help="what is compared (default: accuracy)"
    )
    options.add_training(parser)
    tables.add_options(parser)
    parser.set_defaults(interactions=False)  # columns would be divided with a look at the rows left out
    options.add_json(parser)
    options.add_quiet(parser)


def run(args: argparse.Namespace) -> int:
    """Read, search, tell, and write if asked."""
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
    if args.json:
        output.print_json(document(fitted, args))
    else:
        _print(fitted, args)
    voters.warn_after_fit(args, len(fitted.classes_))
    return DONE if fitted.converged_.all() else NOT_CONVERGED


def document(fitted: BaseEstimator, args: argparse.Namespace) -> dict[str, Any]:
    """The search, for JSON."""
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


def _print(fitted: object, args: argparse.Namespace) -> None:
    found = document(fitted, args)
    output.print_table(
        ["", "C", args.scoring, "spread", "largest gap"],
        [
            [
                "best" if row["C"] == found["best_C"] else "",
                f"{row['C']:.4g}",
                f"{row['mean_score']:.4f}",
                f"{row['std_score']:.4f}",
                "no bound" if row["max_dual_gap"] != row["max_dual_gap"] else f"{row['max_dual_gap']:.1e}",
            ]
            for row in found["path"]
        ],
    )
    print(
        f"\nbest C: {found['best_C']:.6g} ({args.scoring} {found['best_score']:.4f} over {found['folds']} "
        "folds)"
    )
    if args.output is not None:
        print(f"model: {args.output}")
    else:
        print("-o FILE fits it to all rows and writes the model.")
