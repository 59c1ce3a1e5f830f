"""``erm path``: the cost C that predicts best on held-out rows."""

from __future__ import annotations

import argparse

from exclusivity.cli import files, models, options, output, training
from exclusivity.cli.output import Progress

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

ARGUMENTS = (
    options.DATA,
    ("-o --output", "FILE", str, "write the model with the best C"),
    ("--costs", "C,C,...", options.numbers, "values to try (default: a grid from the data)"),
    ("--folds", "N", options.at_least(2), "folds (default: 5)"),
    ("--scoring", "S", SCORINGS, "score (default: accuracy)"),
    *options.REPORTING,
    *options.reading("column of the classes: name or number (-1: last)"),
    *options.TRAINING,
)


def run(args: argparse.Namespace) -> int:
    """Read, search, report, and write if asked."""
    from exclusivity import ERMClassifierCV

    training.check_parameters(args)
    progress = Progress("path", quiet=args.quiet)
    data = training.read_training_data(args)
    scoring = args.scoring or "accuracy"
    classifier = ERMClassifierCV(
        Cs=10 if args.costs is None else args.costs,
        cv=args.folds or 5,
        scoring=scoring,
        **training.parameters(args, data.names, data.X.shape[1]),
    )
    pipeline = training.build(classifier, args, data)
    training.fit(pipeline, data, progress)
    fitted = pipeline[-1]
    if args.output is not None:
        models.save(pipeline, data.names, data.target, args.output)
    keys = ("param_C", "mean_test_score", "std_test_score", "max_dual_gap")
    scores = zip(*(fitted.cv_results_[key] for key in keys), strict=True)
    document = {
        "best_C": float(fitted.C_),
        "best_score": float(fitted.best_score_),
        "scoring": scoring,
        "folds": fitted.n_splits_,
        "path": [
            {"C": float(C), "mean_score": float(mean), "std_score": float(std), "max_dual_gap": float(gap)}
            for C, mean, std, gap in scores
        ],
        "converged": bool(fitted.converged_.all()),
        "model": args.output,
    }
    words = {} if args.output else {"model": "none: -o FILE fits the best C to all rows and writes the model"}
    output.show(document, as_json=args.json, words=words)
    training.warn_of_votes(fitted)
    return files.DONE if document["converged"] else files.NOT_CONVERGED
