"""``erm predict``: the class of every row."""

from __future__ import annotations

import argparse
from typing import Any

from exclusivity.cli import files, models, options, output

SUMMARY = "predict the class of every row"
DESCRIPTION = (
    "Writes one line per row of DATA, in its order: columns to --keep, the predicted class, and what else is "
    "asked for. Columns are matched by name where model and data have names; a target column or others that "
    "the model does not know are left out. For a model of a table, absent columns and texts among numbers "
    "count as missing values, and are reported; --strict refuses them."
)
EPILOG = """examples:
  erm predict heart.erm new.csv
  erm predict heart.erm new.csv --keep id --scores -o predictions.csv
  cat new.csv | erm predict heart.erm - --format csv --json

Two classes: a positive score means the second class. More classes: the largest score wins. Under hard voting
scores count votes, plus a part smaller than half a vote that breaks ties; in a run-off those of the second
round, on top of all voters, for the two classes that are in it."""

INPUTS = ("model", "data")
OUTPUTS = {"output": files.TEXT}

ARGUMENTS = (
    *options.ROWS,
    ("-o --output", "FILE", str, "CSV file to write (default: standard output)"),
    ("--keep", "COL,...", options.columns, "columns of DATA to write in front of the predictions"),
    ("--scores", None, None, "write the scores of the classes too"),
    ("--probabilities", None, None, "write their probabilities too, after --loss logistic"),
    ("--radius", None, None, "write how many columns may break without changing the class, too"),
    ("--threshold", "T", float, "predict the second class from this score or probability on"),
    *options.REPORTING,
    *options.reading("a column that holds classes already, to be left out"),
)


def run(args: argparse.Namespace) -> None:
    """Load, read, predict, write."""
    import numpy as np

    from exclusivity.cli.certify import radii_of

    loaded = models.load(args.model)
    classes: Any = loaded.classifier.classes_
    has_probabilities = hasattr(loaded.classifier, "predict_proba")
    if args.probabilities and not has_probabilities:
        more = "" if loaded.is_robust else ", --voting soft and (for more than two classes) --multi-class ovr"
        raise files.UsageError(
            f"this model has no probabilities: it was not fitted with --loss logistic{more}. --scores writes "
            "what it has."
        )
    if args.threshold is not None and (len(classes) > 2 or args.radius):
        raise files.UsageError("--threshold is for two classes, and not for --radius.")
    rows = loaded.rows(args.data, args, wants_labels=False, keep=args.keep)
    found: dict[str, Any] = {}
    if args.scores:
        found["score"] = loaded.ask(rows.X, loaded.model.decision_function)
    if args.probabilities:
        found["probability"] = loaded.ask(rows.X, loaded.model.predict_proba)
    if args.radius:
        found["radius"] = radii_of(loaded, rows.X)
    if args.threshold is None:
        labels = loaded.predict(rows.X)
    else:
        model = loaded.model
        decides = loaded.ask(rows.X, model.predict_proba if has_probabilities else model.decision_function)
        second = (decides[:, 1] if has_probabilities else decides) >= args.threshold
        labels = classes[second.astype(np.intp)]
    kept = {} if rows.kept is None else {name: rows.kept[name].to_numpy() for name in rows.kept}
    if args.json:
        plural = {"score": "scores", "probability": "probabilities", "radius": "radii"}
        answers = {plural[key]: values for key, values in found.items()}
        output.write_json(args.output, {"classes": classes, "labels": labels, **answers, "kept": kept})
        return
    columns = {**kept, "label": labels}
    for key, values in found.items():
        several = [] if values.ndim == 1 else [(f"{key}_{label}", j) for j, label in enumerate(classes)]
        columns |= {name: values[:, j] for name, j in several} or {key: values}
    output.write_rows(args.output, list(columns), list(columns.values()))
