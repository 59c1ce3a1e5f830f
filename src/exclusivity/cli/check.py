"""``erm check``: columns of new data that look broken, and the predictions that stand without them."""

from __future__ import annotations

import argparse
from typing import Any

from exclusivity.cli import files, models, options, output

SUMMARY = "find columns of new data that look broken, and what stands without them"
DESCRIPTION = (
    "Compares the columns of DATA with those of the training data of a model that was fitted with "
    "--max-broken: missing values, values out of range, unseen categories, shifted distributions. For the "
    "columns that look broken, or those of --columns, it gives the share of predictions that stand: that "
    "cannot change whatever these columns contain."
)
EPILOG = """examples:
  erm check sensors.erm today.csv
  erm check sensors.erm today.csv --columns pressure,flow -o standing.csv"""

INPUTS = ("model", "data")
OUTPUTS = {"output": files.TEXT}

ARGUMENTS = (
    *options.ROWS,
    ("--columns", "COL,...", options.columns, "columns not to rely on (default: those that look broken)"),
    ("-o --output", "FILE", str, "CSV file with label, and whether it stands, of every row"),
    *options.REPORTING,
    *options.reading("a column that holds classes, to be left out"),
)


def run(args: argparse.Namespace) -> None:
    """Load, read, compare, report."""
    loaded = models.load(args.model)
    if not loaded.is_robust:
        raise files.CommandError(
            f"{args.model} knows nothing of its training columns to compare with; fit with --max-broken."
        )
    rows = loaded.rows(args.data, args, wants_labels=False)
    model: Any = loaded.model
    found = model.suspects(rows.X)
    chosen = found.flagged if args.columns is None else args.columns
    stands = loaded.ask(rows.X, lambda X: model.stands(X, chosen))
    table = [row | {"note": row.pop("reason")} for row in found.to_frame().to_dict("records")]
    document = {
        "rows": len(stands),
        "not_relied_on": chosen,
        "predictions_that_stand": float(stands.mean()),
        "columns": table,
    }
    if args.output is not None:
        output.write_rows(args.output, ["label", "stands"], [loaded.predict(rows.X), stands])
    if args.json or args.output != "-":
        words = {"not_relied_on": ", ".join(map(str, chosen)) or "no column: none looks broken"}
        output.show(document, as_json=args.json, words=words, hidden=("flagged",))
