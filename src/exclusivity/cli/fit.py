"""``erm fit``: data in, a model file out."""

from __future__ import annotations

import argparse
import math
import warnings
from time import perf_counter
from typing import Any

import numpy as np

from exclusivity.cli import distributed, files, models, options, output, training
from exclusivity.cli.data import reads_once
from exclusivity.cli.evaluate import describe_constant, warn_of_constant
from exclusivity.cli.output import Progress

SUMMARY = "train a model and write it to a file"
DESCRIPTION = "Trains a classifier on a data file, scaling or encoding included."
EPILOG = """examples:
  erm fit heart.csv --target disease -o heart.erm
  erm fit sensors.csv --target state --max-broken 2 --trusted age,sex -o sensors.erm
  zcat big.csv.gz | erm fit - --format csv --target -1 --test test.csv -o big.erm

Equal members are one SVM of cost C / (1 + G (K - 1)). 'erm path' chooses a cost."""

INPUTS = ("data", "test", "groups")
OUTPUTS = {"output": files.MODEL}
COMMON = (
    *("data", "target", "output", "test", "folds", "cost", "max_broken", "trusted", "members"),
    *("exclusivity", "voting", "additive", "json", "quiet"),
)

FOLDS = 5
# With more values than this, folds take long unless they are asked for.
_MOST_VALUES = 2_000_000

_FOLDS = "cross-validation (default: 5; of large data or with --test 0)"
ARGUMENTS = (
    (*options.DATA, {"nargs": "+"}),
    ("-o --output", "FILE", str, "model file (model.erm)", {"required": True}),
    ("--features", "M", options.COUNT, "features of LIBSVM files (default: the largest index in them)"),
    ("--test", "FILE", str, "rows to test the model on, in the same format"),
    ("--folds", "N", options.at_least(0), _FOLDS),
    ("--cost", "C", float, "cost of errors (default: 2; with --max-broken 0.1)"),
    ("--sample-weight", "COL", str, "column with a weight for each row, which is no feature"),
    *options.REPORTING,
    *options.reading("column of the classes: name or number (-1: last)"),
    *options.ROBUST_TRAINING,
    *options.TRAINING,
    *distributed.ARGUMENTS,
)


def run(args: argparse.Namespace) -> int:
    """Read, train, write, report."""
    distributed.check_options(args)
    if args.folds == 1:
        raise files.UsageError("--folds must be at least 2, or 0 for none.")
    training.check_parameters(args)
    if args.test not in (None, "-") and not reads_once(args.test):  # now, and not after hours of work
        with files.file_errors(args.test), open(args.test, "rb"):
            pass
    progress = Progress("fit", quiet=args.quiet)
    trained = distributed.train(args, progress) if args.dask else _train(args, progress)
    document, model = _document(args, trained), trained.pipeline
    classifier = model[-1]
    models.save(
        classifier if models.is_robust(classifier) else model, trained.names, trained.target, args.output
    )
    if args.test is not None:
        loaded = models.load(args.output)
        reading = argparse.Namespace(**vars(args) | {"decimal": None, "strict": False})
        rows = loaded.rows(args.test, reading, wants_labels=True)
        document["test"] = {"file": args.test, **_scores(rows.y, loaded.predict(rows.X))}
    output.show(document, as_json=args.json, words=_words(args, document), hidden=("features",))
    training.warn_of_votes(classifier)
    for scores in (document.get("out_of_sample"), document.get("test")):
        if scores is not None:
            warn_of_constant(scores, classifier)
    return files.DONE if document["converged"] else files.NOT_CONVERGED


def _train(args: argparse.Namespace, progress: Progress) -> training.Trained:
    from exclusivity import ERMClassifier, RobustAdditiveClassifier

    (args.data,) = args.data
    data = training.read_training_data(args)
    started = perf_counter()
    classifier: Any
    if args.max_broken is None:
        classifier = ERMClassifier(**training.parameters(args, data.names, data.X.shape[1]))
    else:
        classifier = RobustAdditiveClassifier(**training.robust_parameters(args, data))
    pipeline = training.build(classifier, args, data)
    training.fit(pipeline, data, progress)
    seconds = perf_counter() - started
    more: dict[str, Any] = {}
    if hasattr(pipeline[0], "columns_"):
        more["columns"] = training.describe(pipeline[0].columns_, data.titles, data.table)
    if (scores := _out_of_sample(args, pipeline, data, progress)) is not None:
        more["out_of_sample"] = scores
    return training.Trained(pipeline, data.names, data.target, data.X.shape, seconds, more)


def _out_of_sample(
    args: argparse.Namespace, pipeline: Any, data: training.TrainingData, progress: Progress
) -> dict[str, Any] | None:
    """Cross-validate the whole pipeline, for a vote also one SVM; None for large data, unless asked for.

    The rows may have been scaled already: scaling is learned anew from the rows of a fold, and an earlier
    shift or factor of a feature does not change its result.
    """
    from sklearn.base import clone
    from sklearn.model_selection import StratifiedKFold, cross_val_predict

    counts = np.sort(np.unique(data.y, return_counts=True)[1])
    # The two largest classes are in the training rows of every fold.
    n_folds = min(FOLDS if args.folds is None else args.folds, int(counts[-2]))
    n_values = data.X.nnz if hasattr(data.X, "nnz") else data.X.size
    if n_folds < 2 or (args.folds is None and (n_values > _MOST_VALUES or args.test is not None)):
        return None
    progress.update(f"{n_folds}-fold cross-validation")

    def scores_of(model: Any) -> dict[str, Any]:
        folds = StratifiedKFold(n_folds, shuffle=True, random_state=args.seed)
        with warnings.catch_warnings():  # the fit to all rows has said it; rare classes may miss some folds
            warnings.simplefilter("ignore")
            return _scores(data.y, cross_val_predict(model, data.X, data.y, cv=folds, params=data.weighted))

    scores = scores_of(pipeline)
    found = {"how": f"{n_folds}-fold cross-validation at the same settings", **scores}
    if args.voting in ("hard", "runoff") and (args.exclusivity or 1) > 1:
        # One SVM on all features in place of the members, at the cost of each.
        one = clone(pipeline)
        one[-1].set_params(n_estimators=1, exclusivity=1.0, voting="soft", feature_groups=None, solver="auto")
        rival = scores_of(one)
        found |= {"one_svm": rival, "accuracy_loss": rival["balanced_accuracy"] - scores["balanced_accuracy"]}
    progress.clear()
    return found


def _scores(y: Any, predicted: Any) -> dict[str, Any]:
    from exclusivity.inspection.summary import scores_of

    scores = scores_of(y, predicted)
    return {key: scores[key] for key in ("rows", "accuracy", "balanced_accuracy", "constant")}


def _document(args: argparse.Namespace, trained: training.Trained) -> dict[str, Any]:
    from exclusivity.classifier._ensemble import note

    pipeline, fitted = trained.pipeline, trained.pipeline[-1]
    document = {
        "model": args.output,
        "rows": trained.shape[0],
        "features": trained.shape[1],
        "classes": fitted.classes_,
        "scaling": ", ".join(type(step).__name__ for _, step in pipeline.steps[:-1]) or "none",
        "class_weight": fitted.class_weight or "none",
        "seconds": round(trained.seconds, 3),
        "iterations": fitted.n_iter_,
        "objective": fitted.objective_,
        "dual_gap": fitted.dual_gap_,
        "converged": bool(fitted.converged_.all()),
        "tol": fitted.tol,
    }
    if models.is_robust(fitted):
        document |= {"max_broken": fitted.max_broken, "threats": fitted.threats}
    else:
        document["members"] = note(fitted) or f"{fitted.components_.shape[1]} members"
    return document | trained.more


def _words(args: argparse.Namespace, document: dict[str, Any]) -> dict[str, str | None]:
    """Return the text for what a sentence says better than a number."""
    gap = float(max(document["dual_gap"], key=abs))
    quality = "no bound above exclusivity 1" if math.isnan(gap) else f"within {gap:.1e} of the optimum"
    answer = "yes" if document["converged"] else "NO"
    left_out = sum(not column["features"] for column in document.get("columns", ()))
    weight = None
    if args.class_weight is None and document["class_weight"] == "balanced":
        weight = "balanced (default of a vote; --class-weight none: every row weighs the same)"
    words: dict[str, str | None] = dict.fromkeys(("seconds", "objective", "dual_gap", "tol"))
    words |= {
        "features": f"{document['features']}" + f" ({left_out} of them left out)" * bool(left_out),
        "class_weight": weight,
        "converged": f"{answer}, {quality} (asked for: {document['tol']:g})",
        "iterations": f"{int(max(document['iterations']))} in {document['seconds']:.2f} s",
    }
    for key in ("out_of_sample", "test"):
        if key in document:
            words[key] = _accuracies(document[key])
    return words


def _accuracies(scores: dict[str, Any]) -> str:
    text = f"{scores['accuracy']:.1%} accuracy, {scores['balanced_accuracy']:.1%} balanced, "
    text += f"on {scores['rows']} rows" + (f" ({scores['how']})" if "how" in scores else "")
    text += f"\nmost frequent class {describe_constant(scores['constant'])}"
    if "one_svm" in scores:
        points, one = 100 * scores["accuracy_loss"], scores["one_svm"]["balanced_accuracy"]
        text += (
            f"\nrobustness {'costs' if points >= 0 else 'gains'} {abs(points):.1f} points of balanced "
            f"accuracy: one SVM on all features gets {one:.1%} (same rows, same cost)"
        )
    return text
