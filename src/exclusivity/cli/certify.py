"""``erm certify``: how many features may break before a prediction can change."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from exclusivity.cli import files, matching, models, options, output, tables, training
from exclusivity.cli.evaluate import check_labels, describe_constant, warn_of_constant
from exclusivity.cli.progress import Progress

if TYPE_CHECKING:
    from numpy.typing import NDArray

SUMMARY = "count the features that may break without changing a prediction"
DESCRIPTION = (
    "For every row: the number of features (of feature groups, if the model has some) that may take ANY "
    "value without changing the prediction. This is a proof, not an estimate. It needs a model whose "
    "members vote and use different features: 'erm fit --voting hard --exclusivity inf', or '--voting "
    "runoff' for several classes. With classes in DATA it also gives the certified accuracy, the share of "
    "rows that are right and stay right, and the balanced one, the mean of that share over the classes."
)
EPILOG = """examples:
  erm certify sensors.erm test.csv
  erm certify sensors.erm test.csv --radius 2 --json
  erm certify sensors.erm test.csv -o radii.csv

A radius of -1 means that the vote is a tie: no certificate at all. Between two classes an odd number of
members cannot tie."""

INPUTS = ("model", "data")
OUTPUTS = {"output": files.TEXT}


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    options.add_model(parser)
    target_help = "the column of the classes, if any (default: that of the training data)"
    tables.add_decimal(options.add_data(parser, target_help))
    parser.add_argument(
        "--radius",
        type=options.at_least(0),
        metavar="R",
        help="only for R broken features (default: 0, 1, 2, ...)",
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="CSV file for label and radius of every row")
    options.add_reporting(parser)


def run(args: argparse.Namespace) -> None:
    """Load, read, certify, report."""
    import numpy as np

    from exclusivity.inspection.batches import by_batches
    from exclusivity.inspection.scores import scores_of
    from exclusivity.robustness import certify

    loaded = models.load(args.model)
    if loaded.classifier.voting == "soft":
        raise files.CommandError(
            f"{args.model} averages margins (soft voting), and one broken feature moves an average as far "
            "as it likes. Fit a model with --voting hard or runoff, and --exclusivity inf for members on "
            "different features."
        )
    progress = Progress("certify", quiet=args.quiet)
    X, y = matching.rows_for(loaded, args.data, args, progress, wants_labels=None)
    if y is not None:
        check_labels(loaded, y, args.data)
    radii = by_batches(loaded.model, X, lambda rows: certify(loaded.model, rows))
    predicted = loaded.predict(X)
    if args.output is not None:
        output.write_rows(args.output, ["label", "radius"], [predicted, radii])
    scores = None if y is None else scores_of(y, predicted)
    found = {
        "rows": len(radii),
        "ties": int((radii < 0).sum()),
        "median": float(np.median(radii)),
        **({} if scores is None else {"constant": scores["constant"]}),
        "by_radius": _by_radius(radii, predicted, y, args.radius),
    }
    if args.json:
        output.print_json(found)
    elif args.output != "-":
        _print(found)
    if scores is not None:
        warn_of_constant(scores, loaded.classifier)
    if found["ties"] or loaded.classifier.exclusivity <= 1:
        classifier: Any = loaded.classifier
        votes = classifier.voting, classifier.exclusivity, classifier._ensemble.n_voters
        training.warn_of_votes(*votes, len(classifier.classes_))


def _by_radius(
    radii: NDArray[Any], predicted: NDArray[Any], y: NDArray[Any] | None, radius: int | None
) -> list[dict[str, Any]]:
    """Return the share of certified rows by radius, and certified accuracies where there are labels."""
    from exclusivity.robustness import certified_accuracy

    rows = []
    for r in range(int(radii.max(initial=-1)) + 2) if radius is None else [radius]:
        row = {"radius": r, "rows": int((radii >= r).sum()), "share": float((radii >= r).mean())}
        if y is not None:
            row["certified_accuracy"] = certified_accuracy(radii, y, predicted, r)
            row["certified_balanced_accuracy"] = certified_accuracy(radii, y, predicted, r, balanced=True)
        rows.append(row)
    return rows


def _print(found: dict[str, Any]) -> None:
    facts = [("rows", found["rows"]), ("ties", found["ties"]), ("median radius", f"{found['median']:g}")]
    if "constant" in found:
        facts.append(("most frequent class", f"{describe_constant(found['constant'])}, whatever breaks"))
    output.print_facts(facts)
    print()
    titles = {
        "share": "share",
        "certified_accuracy": "certified accuracy",
        "certified_balanced_accuracy": "balanced",
    }
    shown = {key: title for key, title in titles.items() if key in found["by_radius"][0]}
    output.print_table(
        ["broken features", "rows certified", *shown.values()],
        [
            [str(row["radius"]), str(row["rows"]), *(output.percent(row[key]) for key in shown)]
            for row in found["by_radius"]
        ],
    )
