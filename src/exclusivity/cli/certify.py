"""``erm certify``: how many features may break before a prediction can change."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from exclusivity.cli import matching, models, options, output, overwriting, tables, voters
from exclusivity.cli.errors import CommandError
from exclusivity.cli.evaluate import in_words, scores_for, warn_of_constant
from exclusivity.cli.progress import Progress

if TYPE_CHECKING:
    from numpy.typing import NDArray


SUMMARY = "count the features that may break without changing a prediction"
DESCRIPTION = (
    "For every row: the number of features (of feature groups, if the model has some) that may take ANY "
    "value without changing the prediction. This is a proof, not an estimate. It needs a model whose "
    "members vote and use different features: 'erm fit --voting hard --exclusivity inf', or '--voting "
    "runoff' for several classes. With classes in "
    "DATA it also gives the certified accuracy, the share of rows that are right and stay right, and the "
    "balanced one, the mean of that share over the classes: a model that always says the same is certified "
    "for ever and worth nothing."
)
EPILOG = """examples:
  erm certify sensors.erm test.csv
  erm certify sensors.erm test.csv --radius 2 --json
  erm certify sensors.erm test.csv -o radii.csv

A radius of -1 means that the vote is a tie: no certificate at all. Between two classes an odd number of
members cannot tie."""

INPUTS = ("model", "data")
OUTPUTS = {"output": overwriting.RADII}


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    options.add_model(parser)
    of_classes = "the column of the classes, if any (default: that of the training data)"
    tables.add_decimal(options.add_data(parser, of_classes))
    parser.add_argument(
        "--radius",
        type=options.FROM_ZERO,
        metavar="R",
        help="only for R broken features (default: 0, 1, 2, ...)",
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="CSV file for label and radius of every row")
    options.add_json(parser)
    options.add_quiet(parser)


def run(args: argparse.Namespace) -> None:
    """Load, read, certify, tell."""
    loaded = models.load(args.model)
    if loaded.classifier.voting == "soft":
        raise CommandError(
            f"{args.model} averages margins (soft voting), and one broken feature moves an average as far "
            "as it likes. Fit a model with --voting hard or runoff, and --exclusivity inf for members on "
            "different features."
        )
    from exclusivity.inspection.batches import by_batches
    from exclusivity.inspection.scores import scores_of
    from exclusivity.robustness import certify

    X, y = matching.rows_for(
        loaded, args.data, args, Progress("certify", quiet=args.quiet), wants_labels=None
    )
    if y is not None:
        scores_for(loaded, X[:1000], y[:1000], args.data)  # refuses labels that are not the model's
    radii = by_batches(loaded.model, X, lambda rows: certify(loaded.model, rows))
    predicted = by_batches(loaded.model, X, loaded.model.predict)
    if args.output is not None:
        output.write_rows(args.output, ["label", "radius"], [predicted, radii])
    found = document(radii, predicted, y, args.radius)
    if args.json:
        output.print_json(found)
    elif args.output != "-":
        _print(found)
    if y is not None:
        warn_of_constant(scores_of(y, predicted), loaded.classifier)
    voters.warn_after_certify(loaded, found)


def document(
    radii: NDArray[Any], predicted: NDArray[Any], y: NDArray[Any], radius: int | None
) -> dict[str, Any]:
    """Shares of certified rows by radius, and certified accuracies where there are labels."""
    from exclusivity.inspection.scores import scores_of
    from exclusivity.robustness import certified_accuracy, certified_accuracy_curve

    steps = range(int(radii.max(initial=-1)) + 2) if radius is None else [radius]
    rows: list[dict[str, Any]] = [
        {"radius": r, "rows": int((radii >= r).sum()), "share": float((radii >= r).mean())} for r in steps
    ]
    names = {"certified_accuracy": False, "certified_balanced_accuracy": True}
    for name, balanced in names.items() if y is not None else ():
        if radius is not None:
            rows[0][name] = certified_accuracy(radii, y, predicted, radius, balanced=balanced)
            continue
        curve = certified_accuracy_curve(radii, y, predicted, max_radius=steps[-1], balanced=balanced)
        for row, share in zip(rows, curve.tolist(), strict=True):
            row[name] = share
    return {
        "rows": len(radii),
        "ties": int((radii < 0).sum()),
        "median": float(_median(radii)),
        **({} if y is None else {"constant": scores_of(y, predicted)["constant"]}),
        "by_radius": rows,
    }


def _median(radii: NDArray[Any]) -> Any:
    import numpy as np

    return np.median(radii)


def _print(found: dict[str, Any]) -> None:
    facts = [("rows", found["rows"]), ("ties", found["ties"]), ("median radius", f"{found['median']:g}")]
    if "constant" in found:
        facts.append(("most frequent class", f"{in_words(found['constant'])}, whatever breaks"))
    output.print_facts(facts)
    print()
    header = ["broken features", "rows certified", "share"]
    if "certified_accuracy" in found["by_radius"][0]:
        header += ["certified accuracy", "balanced"]
    keys = ("share", "certified_accuracy", "certified_balanced_accuracy")
    output.print_table(
        header,
        [
            [str(row["radius"]), str(row["rows"]), *(output.percent(row[key]) for key in keys if key in row)]
            for row in found["by_radius"]
        ],
    )
