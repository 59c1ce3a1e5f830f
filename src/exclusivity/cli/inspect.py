"""``erm inspect``: the content of a model file."""

from __future__ import annotations

import argparse

from exclusivity.cli import files, models, options, output, training

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

_NOT_SHOWN = ("verbose", "warm_start")

ARGUMENTS = (
    options.MODEL,
    ("--html", "FILE", str, "write a report with plots (needs matplotlib)"),
    ("--features", "N", options.COUNT, "features to name per member (default: 5)"),
    *options.REPORTING,
    *options.ROWS[2:],
    *options.reading("their column (default: that of the training data)", "reading data for --html"),
    ("--data", "DATA", str, "rows with classes to judge the model on"),
)


def run(args: argparse.Namespace) -> None:
    """Load, summarise, print or write."""
    if args.data is not None and args.html is None:
        raise files.UsageError("--data is for the report; add --html FILE, or use 'erm evaluate'.")
    from exclusivity.inspection.summary import summarise

    loaded = models.load(args.model)
    titles = loaded.names if loaded.is_robust else None  # of columns; a linear model names its features
    document = summarise(loaded.model, feature_names=titles, n_strongest=args.features or 5)
    if args.html is not None:
        from exclusivity.inspection import model_report

        X = y = None
        if args.data is not None:
            X, y, _ = loaded.rows(args.data, args, wants_labels=True)
        page = model_report(loaded.model, X, y, title=f"Report on {args.model}")
        output.write_whole(args.html, [page.encode()])
    known, names = loaded.columns, loaded.names or range(loaded.n_features)
    document["columns"] = None if known is None else training.describe(known, list(names))
    document |= {"target": loaded.target, "feature_names": loaded.names, "report": args.html}
    chosen = document.get("chosen_C")
    default = type(loaded.classifier)().get_params()
    parameters = [
        f"{options.OPTIONS.get(name, name)} {'' if value is False else output.text_of(name, value)}".strip()
        for name, value in document["parameters"].items()
        if not (value is None or value is True or name in _NOT_SHOWN)
        and not (isinstance(value, str) and value == "from_dtype")  # no option says it
        and (name in options.OPTIONS or repr(value) != repr(default.get(name)))
    ]
    words = {
        "kind": document["kind"] + ("" if chosen is None else f" that chose C = {chosen:.6g}"),
        "steps": "; ".join(" ".join(step.split()) for step in document.get("steps", ())),
        "features": f"{document['features']}" + f", made of {len(known or ())} columns" * bool(known),
        "members": None if loaded.is_robust else document["note"] or str(document["members"]),
        "parameters": " ".join(parameters),
        **dict.fromkeys(("chosen_C", "feature_names", "note")),
    }
    output.show(document, as_json=args.json, words=words, hidden=("features",))
