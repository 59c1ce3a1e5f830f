"""``erm certify``: how many features may break before a prediction can change."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from exclusivity.cli import files, models, options, output, training
from exclusivity.cli.evaluate import describe_constant, warn_of_constant

SUMMARY = "count the features that may break without changing a prediction"
DESCRIPTION = (
    "For every row: the number of columns (or groups) that may take ANY value without changing the "
    "prediction: a proof, not an estimate. It needs a model that was fitted with --max-broken, or one whose "
    "members vote and use different features: 'erm fit --voting hard --exclusivity inf'. With classes in "
    "DATA also the certified accuracy, the share of rows that are right and stay right, and the balanced "
    "one, the mean of that share over the classes."
)
EPILOG = """examples:
  erm certify sensors.erm test.csv
  erm certify sensors.erm test.csv --radius 2 --json
  erm certify sensors.erm test.csv -o radii.csv

A radius of -1 means that the vote is a tie: no certificate at all. Between two classes an odd number of
members cannot tie."""

INPUTS = ("model", "data")
OUTPUTS = {"output": files.TEXT}

ARGUMENTS = (
    *options.ROWS,
    ("--radius", "R", options.at_least(0), "only for R broken columns (default: 0, 1, 2, ...)"),
    (
        *("--threats", "COL=THREAT,...", options.threats),
        "what broken columns can contain, if not as in training",
    ),
    ("-o --output", "FILE", str, "CSV file for label and radius of every row"),
    *options.REPORTING,
    *options.reading("the column of the classes, if any (default: that of the training data)"),
)


def radii_of(loaded: models.Loaded, X: Any, threats: Any = None) -> Any:
    """Return the radius of every row; refuse a model that has none."""
    from exclusivity.robustness import certify

    if loaded.is_robust:
        return loaded.ask(X, lambda rows: loaded.model.certify(rows, threats))
    if threats is not None:
        raise files.UsageError("--threats is for models that were fitted with --max-broken.")
    if loaded.classifier.voting == "soft":
        raise files.CommandError(
            f"{loaded.title} averages margins (soft voting), and one broken feature moves an average as far "
            "as it likes. Fit a model with --max-broken, or with --voting hard or runoff and --exclusivity "
            "inf for members on different features."
        )
    return loaded.ask(X, lambda rows: certify(loaded.model, rows))


def run(args: argparse.Namespace) -> None:
    """Load, read, certify, report."""
    from exclusivity.inspection.summary import scores_of

    loaded = models.load(args.model)
    rows = loaded.rows(args.data, args, wants_labels=None)
    radii, predicted = radii_of(loaded, rows.X, args.threats), loaded.predict(rows.X)
    if args.output is not None:
        output.write_rows(args.output, ["label", "radius"], [predicted, radii])
    scores = None if rows.y is None else scores_of(rows.y, predicted)
    found: dict[str, Any] = {
        "rows": len(radii),
        "ties": int((radii < 0).sum()),
        "median": float(np.median(radii)),
    }
    words = {}
    if scores is not None:
        found["constant"] = scores["constant"]
        words["constant"] = f"most frequent class {describe_constant(scores['constant'])}, whatever breaks"
    found["by_radius"] = _by_radius(radii, predicted, rows.y, args.radius)
    if args.json or args.output != "-":
        output.show(found, as_json=args.json, words=words)
    if scores is not None:
        warn_of_constant(scores, loaded.classifier)
    if not loaded.is_robust and (found["ties"] or loaded.classifier.exclusivity <= 1):
        training.warn_of_votes(loaded.classifier)


def _by_radius(radii: Any, predicted: Any, y: Any, radius: int | None) -> list[dict[str, Any]]:
    """Return the share of certified rows by radius, and certified accuracies where there are labels."""
    from exclusivity.robustness import certified_accuracy

    rows = []
    for r in range(int(radii.max(initial=-1)) + 2) if radius is None else [radius]:
        row: dict[str, Any] = {
            "radius": r,
            "rows": int((radii >= r).sum()),
            "share": float((radii >= r).mean()),
        }
        if y is not None:
            row["certified_accuracy"] = certified_accuracy(radii, y, predicted, r)
            row["certified_balanced_accuracy"] = certified_accuracy(radii, y, predicted, r, balanced=True)
        rows.append(row)
    return rows
