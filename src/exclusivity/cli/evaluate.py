"""``erm evaluate``: how good the predictions of a model are."""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import numpy as np

from exclusivity._text import printable
from exclusivity.cli import models, options, output
from exclusivity.cli.files import UsageError
from exclusivity.cli.training import FEW_CLASSES

SUMMARY = "compare predictions with the classes of a data file"
DESCRIPTION = (
    "Predicts every row of DATA and compares with the classes it holds: accuracy with its 95 % confidence "
    "interval, balanced accuracy (the mean recall of the classes), both beside those of always predicting "
    "the most frequent class, a table by class and the confusion matrix. For two classes also ROC AUC, "
    "average precision, and the share of the second class that is detected where few rows of the first one "
    "are taken for it. Where the model has probabilities also log-loss, Brier score and the calibration "
    "error: how far the probability of the predicted class is from the share that is right, on average over "
    "ten bins of rows, which --json shows."
)
EPILOG = """examples:
  erm evaluate heart.erm test.csv --target disease
  erm evaluate heart.erm heart_scale.t --json

Without --target the column that held the classes in training holds them here too."""

INPUTS = ("model", "data")

# A model may predict another class for every row, and the matrix has the square of their number.
_MOST_DRAWN = 100
_MOST_IN_JSON = 1000
_BINS = 10

_POSITIVES = "share of the first class that may be taken for the second one (default: 0.01)"
ARGUMENTS = (
    *options.ROWS,
    ("--false-positives", "SHARE", float, _POSITIVES, {"default": 0.01}),
    *options.REPORTING,
    *options.reading("the column of the classes (default: that of the training data)"),
)


def run(args: argparse.Namespace) -> None:
    """Load, read, predict, compare."""
    from exclusivity.inspection.summary import scores_of

    if not 0 <= args.false_positives < 1:
        raise UsageError("--false-positives must be a share from 0 to 1, such as 0.01.")
    loaded = models.load(args.model)
    rows = loaded.rows(args.data, args, wants_labels=True)
    scores = scores_of(rows.y, loaded.predict(rows.X))
    matrix, by_class = scores.pop("confusion_matrix"), scores.pop("classes")
    low, high = wilson(scores["accuracy"], scores["rows"])
    document = {**scores, "accuracy_interval": [low, high], **ranking(loaded, rows, args.false_positives)}
    document |= {"classes": by_class, "confusion_matrix": None}
    if args.json and len(by_class) <= _MOST_IN_JSON:
        document["confusion_matrix"] = matrix.toarray()
    words = {
        "constant": f"most frequent class {describe_constant(scores['constant'])}",
        "accuracy": f"{scores['accuracy']:.1%} (95 % confidence: {low:.1%} to {high:.1%})",
        **dict.fromkeys(("accuracy_interval", "reliability")),
    }
    output.show(document, as_json=args.json, words=words)
    if not args.json and len(by_class) > _MOST_DRAWN:
        print(f"\nthe confusion matrix of {len(by_class)} classes is left out")
    elif not args.json:
        print("\nconfusion matrix (rows: true class, columns: prediction)")
        names = [str(row["class"]) for row in by_class]
        counts = [map(str, row) for row in matrix.toarray().tolist()]
        output.print_table(["", *names], [[name, *row] for name, row in zip(names, counts, strict=True)])
    warn_of_constant(scores, loaded.classifier)


def wilson(share: float, count: int) -> tuple[float, float]:
    """Return the 95 % confidence interval of a share of independent rows (Wilson).

    Examples
    --------
    >>> [round(end, 3) for end in wilson(0.9, 100)]
    [0.826, 0.945]
    """
    from scipy.stats import binomtest

    interval = binomtest(round(share * count), count).proportion_ci(method="wilson")
    return float(interval.low), float(interval.high)


def ranking(loaded: models.Loaded, rows: Any, false_positives: float) -> dict[str, Any]:
    """Return the metrics of scores and probabilities that the model and the labels allow."""
    from sklearn import metrics

    found: dict[str, Any] = {}
    classes: Any = loaded.classifier.classes_
    if not np.isin(rows.y, classes).all():
        return found
    if hasattr(loaded.classifier, "predict_proba"):
        probabilities = loaded.ask(rows.X, loaded.model.predict_proba)
        found["log_loss"] = float(metrics.log_loss(rows.y, probabilities, labels=classes))
        found["brier_score"] = float(metrics.brier_score_loss(rows.y, probabilities, labels=classes))
        bins = reliability(probabilities.max(axis=1), rows.y == loaded.predict(rows.X))
        misses = [abs(each["probability"] - each["right"]) * each["rows"] for each in bins]
        found |= {"calibration_error": sum(misses) / len(rows.y), "reliability": bins}
    is_second = rows.y == classes[-1]
    if len(classes) > 2 or is_second.all() or not is_second.any():
        return found
    scores = loaded.ask(rows.X, loaded.model.decision_function)
    shares, detected, _ = metrics.roc_curve(is_second, scores)
    at = float(detected[shares <= false_positives].max(initial=0.0))
    low, high = wilson(at, int(is_second.sum()))
    return found | {
        "roc_auc": float(metrics.roc_auc_score(is_second, scores)),
        "average_precision": float(metrics.average_precision_score(is_second, scores)),
        "detection": {
            "class": classes[-1],
            "false_positives_share": false_positives,
            "detected": at,
            "low_detected": low,
            "high_detected": high,
        },
    }


def reliability(confidence: Any, is_right: Any) -> list[dict[str, Any]]:
    """Compare probabilities of predicted classes with the share that is right, in bins of equal numbers.

    Examples
    --------
    >>> import numpy as np
    >>> reliability(np.array([0.9, 0.6]), np.array([True, False]))
    [{'rows': 1, 'probability': 0.6, 'right': 0.0}, {'rows': 1, 'probability': 0.9, 'right': 1.0}]
    """
    order = np.argsort(confidence, kind="stable")
    return [
        {
            "rows": len(part),
            "probability": float(confidence[part].mean()),
            "right": float(is_right[part].mean()),
        }
        for part in np.array_split(order, min(_BINS, len(order)))
    ]


def describe_constant(constant: dict[str, Any]) -> str:
    """Describe the accuracies of always predicting the most frequent class."""
    accuracies = f"{constant['accuracy']:.1%} accuracy, {constant['balanced_accuracy']:.1%} balanced"
    return f"alone {accuracies} (always {printable(constant['class'])})"


def warn_of_constant(scores: dict[str, Any], classifier: Any) -> None:
    """Warn if a model hardly beats a constant, and say what to change."""
    from exclusivity.inspection.summary import caution

    found = caution(scores)
    if not found:
        return
    classes = classifier.classes_
    if classes.dtype.kind in "iu" and len(classes) > FEW_CLASSES:
        cure = f"Are its {len(classes)} numbers classes, and not amounts? --target chooses another column."
    elif classifier.class_weight == "balanced":
        cure = "Choose another cost ('erm path'), or other features."
    elif getattr(classifier, "max_broken", 0):
        cure = (
            "Too few columns carry the signal to lose any of them: name those that cannot break (--trusted), "
            "let fewer break (--max-broken), or weigh the classes alike (--class-weight balanced)."
        )
    else:
        cure = "Fit with --class-weight balanced, or with columns that tell more."
    warnings.warn(f"{found} {cure}", UserWarning, stacklevel=2)
