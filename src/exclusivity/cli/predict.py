"""``erm predict``: the class of every row."""

from __future__ import annotations

import argparse
from typing import Any

from exclusivity.cli import files, matching, models, options, output, tables
from exclusivity.cli.progress import Progress

SUMMARY = "predict the class of every row"
DESCRIPTION = (
    "Writes one line per row of DATA, in its order: the predicted class, with --scores also the scores "
    "that decide it, with --proba the probabilities of the classes. Columns are matched by name where model "
    "and data have names; a target column or "
    "others that the model does not know are left out, a missing one is an error."
)
EPILOG = """examples:
  erm predict heart.erm new.csv
  erm predict heart.erm new.csv --scores -o predictions.csv
  cat new.csv | erm predict heart.erm - --format csv --json

Two classes: a positive score means the second class. More classes: the largest score wins. Under hard voting
scores count votes, plus a part smaller than half a vote that breaks ties; in a run-off those of the second
round, on top of all voters, for the two classes that are in it."""

INPUTS = ("model", "data")
OUTPUTS = {"output": files.TEXT}


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    options.add_model(parser)
    tables.add_decimal(options.add_data(parser, "a column that holds classes already, to be left out"))
    parser.add_argument("-o", "--output", metavar="FILE", help="CSV file to write (default: standard output)")
    parser.add_argument("--scores", action="store_true", help="write the scores of the classes too")
    parser.add_argument(
        "--proba", action="store_true", help="write their probabilities too, after --loss logistic"
    )
    options.add_reporting(parser)


def run(args: argparse.Namespace) -> None:
    """Load, read, predict, write."""
    from exclusivity.classifier._prediction import probabilities_of
    from exclusivity.inspection.batches import by_batches
    from exclusivity.voting._scores import winning_codes

    loaded = models.load(args.model)
    if args.proba and not hasattr(loaded.classifier, "predict_proba"):
        raise files.UsageError(
            "this model has no probabilities: it was not fitted with --loss logistic, --voting soft and (for "
            "more than two classes) --multi-class ovr. --scores writes what it has."
        )
    progress = Progress("predict", quiet=args.quiet)
    X, _ = matching.rows_for(loaded, args.data, args, progress, wants_labels=False)
    classes = loaded.classifier.classes_
    found: dict[str, Any] = {}
    if args.scores or args.proba:
        scores = by_batches(loaded.model, X, loaded.model.decision_function)
        labels = classes[winning_codes(scores)]  # what predict does; scores are computed once
        found |= {"scores": scores} if args.scores else {}
        found |= {"probabilities": probabilities_of(scores)} if args.proba else {}
    else:
        labels = loaded.predict(X)
    if args.json:
        output.write_json(args.output, {"classes": classes, "labels": labels, **found})
        return
    names, columns = ["label"], [labels]
    for name, values in (("score", found.get("scores")), ("probability", found.get("probabilities"))):
        if values is not None:
            names += [name] if values.ndim == 1 else [f"{name}_{label}" for label in classes]
            columns += [values] if values.ndim == 1 else list(values.T)
    output.write_rows(args.output, names, columns)
