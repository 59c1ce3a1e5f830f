"""``erm evaluate``: how good the predictions of a model are."""

from __future__ import annotations

import argparse
import warnings
from typing import TYPE_CHECKING, Any

from exclusivity._text import printable
from exclusivity.cli import matching, models, options, output, tables
from exclusivity.cli.files import FileError
from exclusivity.cli.progress import Progress
from exclusivity.cli.training import FEW_CLASSES

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from sklearn.base import BaseEstimator

SUMMARY = "compare predictions with the classes of a data file"
DESCRIPTION = (
    "Predicts every row of DATA and compares with the classes it holds: accuracy, balanced accuracy (the "
    "mean recall of the classes), both beside those of always predicting the most frequent class, a table "
    "by class and the confusion matrix."
)
EPILOG = """examples:
  erm evaluate heart.erm test.csv --target disease
  erm evaluate heart.erm heart_scale.t --json

Without --target the column that held the classes in training holds them here too."""

INPUTS = ("model", "data")

# A model may predict another class for every row, and the matrix has the square of their number.
_MOST_DRAWN = 100
_MOST_IN_JSON = 1000


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    options.add_model(parser)
    tables.add_decimal(
        options.add_data(parser, "the column of the classes (default: that of the training data)")
    )
    options.add_reporting(parser)


def run(args: argparse.Namespace) -> None:
    """Load, read, predict, compare."""
    from exclusivity.inspection.scores import scores_of

    loaded = models.load(args.model)
    progress = Progress("evaluate", quiet=args.quiet)
    X, y = matching.rows_for(loaded, args.data, args, progress, wants_labels=True)
    check_labels(loaded, y, args.data)
    scores = scores_of(y, loaded.predict(X))
    if args.json:
        is_small = len(scores["classes"]) <= _MOST_IN_JSON
        confusion = scores["confusion_matrix"].toarray() if is_small else None
        output.print_json(scores | {"confusion_matrix": confusion})
    else:
        _print(scores)
    warn_of_constant(scores, loaded.classifier)


def check_labels(loaded: models.Loaded, y: NDArray[Any], title: str) -> None:
    """Raise if no label is a class of the model."""
    import numpy as np

    classes: Any = loaded.classifier.classes_
    same_kind = (y.dtype.kind in "biuf") == (classes.dtype.kind in "biuf")
    if not same_kind or not np.isin(y, classes).any():
        found = ", ".join(printable(label) for label in np.unique(y)[:5])
        known = ", ".join(printable(label) for label in classes[:5])
        raise FileError(
            f"the labels of {title} ({found}) are none of the classes of {loaded.title} ({known}); choose "
            "the column of the classes with --target, or use data with these classes."
        )


def describe_constant(constant: dict[str, Any]) -> str:
    """Describe the accuracies of always predicting the most frequent class."""
    accuracies = f"{constant['accuracy']:.1%} accuracy, {constant['balanced_accuracy']:.1%} balanced"
    return f"alone {accuracies} (always {printable(constant['class'])})"


def warn_of_constant(scores: dict[str, Any], classifier: BaseEstimator) -> None:
    """Warn if a model hardly beats a constant, and say what to change."""
    from exclusivity.inspection.scores import caution

    found = caution(scores)
    if not found:
        return
    classes = classifier.classes_
    if classes.dtype.kind in "iu" and len(classes) > FEW_CLASSES:
        cure = f"Are its {len(classes)} numbers classes, and not amounts? --target chooses another column."
    elif classifier.class_weight == "balanced":
        cure = "Choose another cost ('erm path'), or other features."
    else:
        cure = "Fit with --class-weight balanced."
    warnings.warn(f"{found} {cure}", UserWarning, stacklevel=2)


def _print(scores: dict[str, Any]) -> None:
    output.print_facts(
        [
            ("rows", scores["rows"]),
            ("accuracy", output.percent(scores["accuracy"])),
            ("balanced accuracy", output.percent(scores["balanced_accuracy"])),
            ("most frequent class", describe_constant(scores["constant"])),
        ]
    )
    print()
    names = [str(found["class"]) for found in scores["classes"]]
    shares = [
        [output.percent(row[key]) for key in ("precision", "recall", "f1")] for row in scores["classes"]
    ]
    rows = [str(found["rows"]) for found in scores["classes"]]
    lines = [[name, n, *cells] for name, n, cells in zip(names, rows, shares, strict=True)]
    output.print_table(["class", "rows", "precision", "recall", "F1"], lines)
    if len(names) > _MOST_DRAWN:
        print(f"\nthe confusion matrix of {len(names)} classes is left out")
        return
    print("\nconfusion matrix (rows: true class, columns: prediction)")
    counts = scores["confusion_matrix"].toarray().tolist()
    lines = [[name, *map(str, row)] for name, row in zip(names, counts, strict=True)]
    output.print_table(["", *names], lines)
