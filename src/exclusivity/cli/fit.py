"""``erm fit``: data in, a model file out."""

from __future__ import annotations

import argparse
import math
import warnings
from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING, Any

from exclusivity.cli import distributed, files, matching, models, options, output, tables, training
from exclusivity.cli.data import reads_once
from exclusivity.cli.evaluate import describe_constant, warn_of_constant
from exclusivity.cli.progress import Progress

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline

SUMMARY = "train a model and write it to a file"
DESCRIPTION = "Trains linear SVMs on a data file and writes the model, scaling included."
EPILOG = """examples:
  erm fit heart.csv --target disease -o heart.erm
  erm fit heart_scale -o heart.erm --cost 1 --members 30 --p 1
  erm fit sensors.csv --target state --members 15 --exclusivity inf --voting hard -o sensors.erm
  zcat big.csv.gz | erm fit - --format csv --target -1 --test test.csv -o big.erm

Equal members are one SVM of cost C / (1 + G (K - 1)). 'erm path' chooses a cost."""

INPUTS = ("data", "test", "groups")
OUTPUTS = {"output": files.MODEL}
COMMON = (
    *("data", "target", "output", "test", "folds", "cost", "members", "exclusivity", "voting", "additive"),
    *("json", "quiet"),
)

FOLDS = 5
# With more values than this, folds take long unless somebody asks for them.
_MOST_VALUES = 2_000_000


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    options.add_data(parser, "column of the classes: name or number (-1: last)", several=True)
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help="model file (model.erm)")
    parser.add_argument(
        "--features",
        type=options.COUNT,
        metavar="M",
        help="number of features of LIBSVM files (default: the largest index in them)",
    )
    parser.add_argument("--test", metavar="FILE", help="rows to test the model on, in the same format")
    parser.add_argument(
        "--folds",
        type=options.at_least(0),
        metavar="N",
        help="cross-validation, 0: none (default: 5; large data, --test, --dask: 0)",
    )
    parser.add_argument("--cost", type=float, default=2.0, metavar="C", help="cost of errors (default: 2)")
    options.add_training(parser)
    tables.add_options(parser)
    parser.add_argument_group("members that look at several columns together").add_argument(
        "--interactions",
        action="store_true",
        help="members look at all columns that they own together, and not at one curve of each. Needs "
        "--exclusivity inf and --voting hard or runoff. --cost means something else: begin with 0.1, 1, 10",
    )
    distributed.add_options(parser)
    options.add_reporting(parser)


def run(args: argparse.Namespace) -> int:
    """Read, train, write, report."""
    args.ignore = [*args.ignore, *args.drop]
    distributed.check_options(args)
    _check_options(args)
    training.check_parameters(args)
    if args.test not in (None, "-") and not reads_once(args.test):  # now, and not after hours of work
        with files.file_errors(args.test), open(args.test, "rb"):
            pass
    progress = Progress("fit", quiet=args.quiet)
    trained = distributed.train(args, progress) if args.dask else _train(args, progress)
    models.save(trained.pipeline, trained.names, trained.target, args.output)
    document = _document(args, trained)
    if args.test is not None:
        document["test"] = _test(args, progress)
    if args.json:
        output.print_json(document)
    else:
        output.print_facts(_facts(args, document))
        tables.print_columns(document.get("columns"))
    training.warn_of_votes(args.voting, args.exclusivity, args.members, len(document["classes"]))
    for scores in (document.get("out_of_sample"), document.get("test")):
        if scores is not None:
            warn_of_constant(scores, trained.pipeline[-1])
    return files.DONE if document["converged"] else files.NOT_CONVERGED


def _check_options(args: argparse.Namespace) -> None:
    if args.folds == 1:
        raise files.UsageError("--folds must be at least 2, or 0 for none.")
    if not args.interactions:
        return
    if args.additive:
        raise files.UsageError("--additive and --interactions: choose one (the latter includes curves).")
    if args.exclusivity != math.inf or args.voting == "soft":
        raise files.UsageError(
            "--interactions needs members with columns of their own, and a vote: add --exclusivity inf and "
            "--voting hard (or runoff, for three or more classes)."
        )
    if args.dask:
        raise files.UsageError(
            "--interactions needs all rows in memory; with --dask use --additive, or leave --dask out."
        )


def _train(args: argparse.Namespace, progress: Progress) -> training.Trained:
    from exclusivity import ERMClassifier

    (args.data,) = args.data
    data = training.read_training_data(args, progress)
    started = perf_counter()
    classifier = ERMClassifier(**training.parameters(args, data.names, data.X.shape[1]))
    pipeline = training.build(classifier, args, data)
    training.fit(pipeline, data, progress)
    seconds = perf_counter() - started
    columns = None
    if data.found is not None:
        columns = tables.document(pipeline[0], data.titles, [read.note for read in data.found])
    trained = training.Trained(pipeline, data.names, data.target, data.X.shape, seconds, columns=columns)
    return replace(trained, out_of_sample=_out_of_sample(args, pipeline, data, progress))


def _out_of_sample(
    args: argparse.Namespace, pipeline: Pipeline, data: training.TrainingData, progress: Progress
) -> dict[str, Any] | None:
    """Cross-validate the whole pipeline, for a vote also one SVM; None for large data, unless asked for.

    The rows may have been scaled already: scaling is learned anew from the rows of a fold, and an earlier
    shift or factor of a feature does not change its result.
    """
    import numpy as np

    counts = np.sort(np.unique(data.y, return_counts=True)[1])
    # The two largest classes are in the training rows of every fold.
    n_folds = min(FOLDS if args.folds is None else args.folds, int(counts[-2]))
    n_values = data.X.nnz if data.is_sparse else data.X.size
    if args.interactions:
        n_values = max(n_values, 200 * len(data.y))  # features of one member
    if n_folds < 2 or (args.folds is None and (n_values > _MOST_VALUES or args.test is not None)):
        return None
    progress.tell(f"{n_folds}-fold cross-validation")
    scores = _cross_validate(pipeline, data, n_folds, args.seed)
    found = {"how": f"{n_folds}-fold cross-validation at the same settings", **scores}
    if args.voting != "soft" and args.exclusivity > 1:
        one = _cross_validate(one_svm(pipeline), data, n_folds, args.seed)
        found |= {"one_svm": one, "accuracy_loss": one["balanced_accuracy"] - scores["balanced_accuracy"]}
    progress.clear()
    return found


def one_svm(pipeline: Pipeline) -> Pipeline:
    """Return the pipeline with one SVM on all features in place of its members, at the cost of each."""
    from sklearn.base import clone

    one = clone(pipeline)
    one[-1].set_params(n_estimators=1, exclusivity=1.0, voting="soft", feature_groups=None, solver="auto")
    if "interactions" in one.named_steps:
        one.set_params(interactions__voters__n_estimators=1)  # which looks at all columns together
    return one


def _cross_validate(
    pipeline: Pipeline, data: training.TrainingData, n_folds: int, seed: int
) -> dict[str, Any]:
    from sklearn.model_selection import StratifiedKFold, cross_val_predict

    folds = StratifiedKFold(n_folds, shuffle=True, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the fit to all rows has said it; rare classes may miss some folds
        return _scores(data.y, cross_val_predict(pipeline, data.X, data.y, cv=folds))


def _test(args: argparse.Namespace, progress: Progress) -> dict[str, Any]:
    loaded = models.load(args.output)
    reading = argparse.Namespace(**vars(args) | {"decimal": None})  # by the model's own notation, as later
    X, y = matching.rows_for(loaded, args.test, reading, progress, wants_labels=True)
    return {"file": args.test, **_scores(y, loaded.predict(X))}


def _scores(y: Any, predicted: Any) -> dict[str, Any]:
    from exclusivity.inspection.scores import scores_of

    scores = scores_of(y, predicted)
    return {key: scores[key] for key in ("rows", "accuracy", "balanced_accuracy", "constant")}


def _document(args: argparse.Namespace, trained: training.Trained) -> dict[str, Any]:
    from exclusivity.classifier._fitted import note

    pipeline, fitted = trained.pipeline, trained.pipeline[-1]
    document = {
        "model": args.output,
        "rows": trained.shape[0],
        "features": trained.shape[1],
        "classes": fitted.classes_,
        "members": note(fitted) or f"{fitted.components_.shape[1]} members",
        "scaling": ", ".join(type(step).__name__ for _, step in pipeline.steps[:-1]) or "none",
        "class_weight": fitted.class_weight or "none",
        "seconds": round(trained.seconds, 3),
        "iterations": fitted.n_iter_,
        "objective": fitted.objective_,
        "dual_gap": fitted.dual_gap_,
        "converged": bool(fitted.converged_.all()),
        "tol": args.tol,
    }
    document |= {} if trained.blocks is None else {"blocks": trained.blocks, "blocks_stayed": trained.stayed}
    document |= {} if trained.columns is None else {"columns": trained.columns}
    return document | ({} if trained.out_of_sample is None else {"out_of_sample": trained.out_of_sample})


def _facts(args: argparse.Namespace, document: dict[str, Any]) -> list[tuple[str, object]]:
    gap = float(max(document["dual_gap"], key=abs))
    quality = "no bound above exclusivity 1" if math.isnan(gap) else f"within {gap:.1e} of the optimum"
    left_out = sum(not column["features"] for column in document.get("columns", ()))
    features = f"{document['features']} feature{'s' * (document['features'] != 1)}"
    features += f" ({left_out} of them left out)" * bool(left_out)
    facts: list[tuple[str, object]] = [
        ("data", f"{document['rows']} rows, {features}, {len(document['classes'])} classes")
    ]
    if "blocks" in document:
        stayed = "kept in the workers' memory" if document["blocks_stayed"] else "read anew in every pass"
        facts.append(("blocks", f"{document['blocks']}, {stayed}"))
    facts += [("scaling", document["scaling"]), ("members", document["members"])]
    if args.class_weight is None and document["class_weight"] == "balanced":
        facts.append(("classes", "weigh the same (default of a vote; --class-weight none: every row does)"))
    converged = "yes" if document["converged"] else "NO"
    facts += [
        ("converged", f"{converged}, {quality} (asked for: {document['tol']:g})"),
        ("iterations", f"{int(max(document['iterations']))} in {document['seconds']:.2f} s"),
    ]
    for name, key in (("held-out", "out_of_sample"), ("test", "test")):
        if key in document:
            facts += _accuracies(name, document[key])
    return [*facts, ("model", document["model"])]


def _accuracies(name: str, scores: dict[str, Any]) -> list[tuple[str, object]]:
    accuracies = f"{scores['accuracy']:.1%} accuracy, {scores['balanced_accuracy']:.1%} balanced"
    how = f" ({scores['how']})" if "how" in scores else ""
    facts: list[tuple[str, object]] = [
        (name, f"{accuracies}, on {scores['rows']} rows{how}"),
        ("", f"most frequent class {describe_constant(scores['constant'])}"),
    ]
    if "one_svm" in scores:
        points, one = 100 * scores["accuracy_loss"], scores["one_svm"]["balanced_accuracy"]
        word = "costs" if points >= 0 else "gains"
        text = f"{word} {abs(points):.1f} points of balanced accuracy: one SVM on all features gets {one:.1%}"
        facts.append(("robustness", f"{text} (same rows, same cost)"))
    return facts
