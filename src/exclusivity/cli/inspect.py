"""``erm inspect``: the content of a model file."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

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
    loaded = models.load(args.model)
    document = _document(loaded, args.features or 5)
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
    chosen = document["chosen_C"]
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
        "steps": "; ".join(" ".join(step.split()) for step in document["steps"]),
        "features": f"{document['features']}" + f", made of {len(known or ())} columns" * bool(known),
        "members": None if loaded.is_robust else document["note"] or str(document["members"]),
        "parameters": " ".join(parameters),
        **dict.fromkeys(("chosen_C", "feature_names", "note")),
    }
    output.show(document, as_json=args.json, words=words, hidden=("features",))


_PROBLEM = ("name", "objective", "dual_gap", "iterations", "converged")


def _document(loaded: models.Loaded, n_strongest: int) -> dict[str, Any]:
    from exclusivity.inspection.summary import summarise

    summary = summarise(loaded.classifier if loaded.is_robust else loaded.model, n_strongest=n_strongest)
    are_equal = summary.members_are_equal and summary.n_members > 1
    found = {key: getattr(summary, key) for key in ("kind", "steps", "parameters", "chosen_C", "classes")}
    found |= {"features": loaded.n_features if loaded.is_robust else summary.n_features}
    found |= {"members": summary.n_members, "note": summary.note}
    found["problems"] = [dict(zip(_PROBLEM, problem, strict=True)) for problem in summary.problems]
    found["by_member"] = [
        {"member": "all" if are_equal else number, "features_used": count, "largest_weights": dict(weights)}
        for number, count, weights in summary.members
    ]
    return found | ({"by_column": _effects(loaded)} if loaded.is_robust else {})


def _effects(loaded: models.Loaded) -> list[dict[str, Any]]:
    """Return how far each column of a robust additive model can move a score, the largest effect first."""
    model: Any = loaded.classifier
    ends = np.cumsum([column.n_points for column in model.columns_])
    ranges = np.array([np.ptp(own, axis=1).max() for own in np.split(model.points_, ends[:-1], axis=1)])
    names = loaded.names or [str(place) for place in range(loaded.n_features)]
    return [
        {"column": names[place], "largest_effect_on_score": float(ranges[place])}
        for place in np.argsort(-ranges, kind="stable")
    ]
