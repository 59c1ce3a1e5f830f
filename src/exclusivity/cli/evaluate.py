"""``erm evaluate``: how good the predictions of a model are."""

from __future__ import annotations

import argparse
import warnings
from typing import TYPE_CHECKING, Any

from exclusivity.cli import matching, models, options, output, tables
from exclusivity.cli.errors import FileError
from exclusivity.cli.progress import Progress
from exclusivity.cli.training import FEW_CLASSES
from exclusivity.pages.markup import printable

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from sklearn.base import BaseEstimator

    from exclusivity.inspection import Scores
    from exclusivity.problem.arrays import Matrix

SUMMARY = "compare predictions with the classes of a data file"
DESCRIPTION = (
    "Predicts every row of DATA and compares with the classes it holds: accuracy, balanced accuracy (the "
    "mean recall of the classes), both beside those of always saying the most frequent class, a table by "
    "class and the confusion matrix."
)
EPILOG = """examples:
  erm evaluate heart.erm test.csv --target disease
  erm evaluate heart.erm heart_scale.t --json

Without --target the column that held the classes in training holds them here too."""

INPUTS = ("model", "data")

# A model may say another class for every row, and the matrix has the square of their number.
_MOST_DRAWN = 100
_MOST_IN_JSON = 1000


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    options.add_model(parser)
    tables.add_decimal(
        options.add_data(parser, "the column of the classes (default: that of the training data)")
    )
    options.add_json(parser)
    options.add_quiet(parser)


def run(args: argparse.Namespace) -> None:
    """Load, read, predict, compare."""
    loaded = models.load(args.model)
    X, y = matching.rows_for(
        loaded, args.data, args, Progress("evaluate", quiet=args.quiet), wants_labels=True
    )
    scores = scores_for(loaded, X, y, args.data)
    if args.json:
        output.print_json(document(scores))
    else:
        _print(scores)
    warn_of_constant(scores, loaded.classifier)


def scores_for(loaded: models.Loaded, X: Matrix, y: NDArray[Any], title: str) -> Scores:
    """Scores; an error where the labels have nothing to do with the model's."""
    import numpy as np

    from exclusivity.inspection import scores_of
    from exclusivity.inspection.batches import by_batches

    classes = loaded.classifier.classes_
    of_one_kind = (y.dtype.kind in "biuf") == (classes.dtype.kind in "biuf")
    if not of_one_kind or not np.isin(y, classes).any():
        found = ", ".join(printable(label) for label in np.unique(y)[:5])
        known = ", ".join(printable(label) for label in classes[:5])
        raise FileError(
            f"the labels of {title} ({found}) are none of the classes of {loaded.title} ({known}); choose "
            "the column of the classes with --target, or use data with these classes."
        )
    return scores_of(y, by_batches(loaded.model, X, loaded.model.predict))


def constant(scores: Scores) -> dict[str, Any]:
    """What the most frequent class alone would get, for JSON."""
    return {
        "class": scores.most_frequent,
        "accuracy": scores.constant_accuracy,
        "balanced_accuracy": scores.constant_balanced_accuracy,
    }


def in_words(constant: dict[str, Any]) -> str:
    """The same for people."""
    accuracies = f"{constant['accuracy']:.1%} accuracy, {constant['balanced_accuracy']:.1%} balanced"
    return f"alone {accuracies} (always {printable(constant['class'])})"


def warn_of_constant(scores: Scores, classifier: BaseEstimator) -> None:
    """Say it when a model tells the classes hardly apart, and what to change."""
    if not scores.hardly_beats_a_constant:
        return
    classes = classifier.classes_
    if classes.dtype.kind in "iu" and len(classes) > FEW_CLASSES:
        cure = f"Are its {len(classes)} numbers classes, and not amounts? --target chooses another column."
    elif classifier.class_weight == "balanced":
        cure = "Choose another cost ('erm path'), or other features."
    else:
        cure = "Fit with --class-weight balanced."
    warnings.warn(f"{scores.caution()} {cure}", UserWarning, stacklevel=2)


def document(scores: Scores) -> dict[str, Any]:
    """The scores for JSON."""
    by_class = zip(
        scores.classes.tolist(), scores.support, scores.precision, scores.recall, scores.f1, strict=True
    )
    return {
        "rows": scores.n_rows,
        "accuracy": scores.accuracy,
        "balanced_accuracy": scores.balanced_accuracy,
        "constant": constant(scores),
        "classes": [
            {"class": label, "rows": rows, "precision": precision, "recall": recall, "f1": f1}
            for label, rows, precision, recall, f1 in by_class
        ],
        "confusion_matrix": scores.confusion if len(scores.classes) <= _MOST_IN_JSON else None,
    }


def _print(scores: Scores) -> None:
    output.print_facts(
        [
            ("rows", scores.n_rows),
            ("accuracy", output.percent(scores.accuracy)),
            ("balanced accuracy", output.percent(scores.balanced_accuracy)),
            ("most frequent class", in_words(constant(scores))),
        ]
    )
    names = [str(label) for label in scores.classes]
    columns = zip(names, scores.support, scores.precision, scores.recall, scores.f1, strict=True)
    print()
    output.print_table(
        ["class", "rows", "precision", "recall", "F1"],
        [
            [name, str(rows), *(output.percent(float(share)) for share in shares)]
            for name, rows, *shares in columns
        ],
    )
    if len(names) > _MOST_DRAWN:
        print(f"\nthe confusion matrix of {len(names)} classes is left out")
        return
    print("\nconfusion matrix (rows: true class, columns: prediction)")
    output.print_table(
        ["", *names],
        [[name, *map(str, counts)] for name, counts in zip(names, scores.confusion.tolist(), strict=True)],
    )
