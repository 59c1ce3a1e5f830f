"""``erm fit``: data in, a model file out."""

from __future__ import annotations

import argparse
from dataclasses import replace
from time import perf_counter
from typing import Any

from exclusivity.cli import (
    curves,
    distributed,
    held_out,
    matching,
    models,
    options,
    output,
    overwriting,
    tables,
    training,
    voters,
)
from exclusivity.cli.data import reads_once
from exclusivity.cli.errors import DONE, NOT_CONVERGED, file_errors
from exclusivity.cli.evaluate import in_words, warn_of_constant
from exclusivity.cli.progress import Progress

SUMMARY = "train a model and write it to a file"
DESCRIPTION = (
    "Trains an ensemble of linear SVMs on a data file and writes the model, its scaling included, to one "
    "file. The file holds data and no code: it is safe to load it from anybody ('erm predict', or "
    "exclusivity.persistence.load_model)."
)
EPILOG = """examples:
  erm fit heart.csv --target disease -o heart.erm
  erm fit heart_scale -o heart.erm --cost 1 --members 30 --p 1
  erm fit sensors.parquet --target state --members 15 --exclusivity inf --voting hard -o sensors.erm
  erm fit people.csv --target state --additive --categorical zip --drop id -o people.erm
  erm fit people.csv --target state --interactions --exclusivity inf --voting hard --members 9 -o it.erm
  zcat big.csv.gz | erm fit - --format csv --target -1 --test test.csv -o big.erm
  erm fit 'part-*.parquet' --target state -o big.erm --dask --workers 2 --memory 1GB

The cost: the ensemble equals one SVM of cost C / (1 + G (K - 1)), so that a new --members or
--exclusivity asks for a new --cost. 'erm path' finds one."""

INPUTS = ("data", "test", "groups")
OUTPUTS = {"output": overwriting.MODEL}


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    options.add_data(
        parser, "the column of the classes: its name, or its number from 0 (-1 is the last)", several=True
    )
    parser.add_argument(
        "-o", "--output", required=True, metavar="FILE", help="where to write the model (model.erm)"
    )
    parser.add_argument(
        "--features",
        type=options.COUNT,
        metavar="M",
        help="number of features of LIBSVM files (default: the largest index in them)",
    )
    parser.add_argument("--test", metavar="FILE", help="rows to test the model on, in the same format")
    parser.add_argument(
        "--folds",
        type=options.number("of at least 2, or 0 for none", lambda value: value >= 2 or value == 0, int),
        metavar="N",
        help="folds of the cross-validation that gives the out-of-sample figures; 0: none (default: 5, rows "
        "held out once where that takes long, none for large data, with --test and with --dask)",
    )
    parser.add_argument(
        "--cost", type=options.POSITIVE, default=2.0, metavar="C", help="cost of errors (default: 2)"
    )
    options.add_training(parser)
    tables.add_options(parser)
    curves.add_interactions(parser)
    distributed.add_options(parser)
    options.add_json(parser)
    options.add_quiet(parser)


def run(args: argparse.Namespace) -> int:
    """Read, train, write, tell."""
    args.ignore = [*args.ignore, *args.drop]
    distributed.check_options(args)
    curves.check_interactions(args)
    training.check_parameters(args)
    if args.test not in (None, "-") and not reads_once(args.test):  # now, and not after hours of work
        with file_errors(args.test), open(args.test, "rb"):
            pass
    progress = Progress("fit", quiet=args.quiet)
    trained = distributed.train(args, progress) if args.dask else _train(args, progress)
    models.save(trained.pipeline, trained.names, trained.target, args.output)
    document = report(args, trained)
    judged = []
    if trained.held_out is not None:
        document["out_of_sample"], scores = _out_of_sample(trained.held_out, trained.one_svm)
        judged.append(scores)
    if args.test is not None:
        document["test"], scores = _test(args, progress)
        judged.append(scores)
    if args.json:
        output.print_json(document)
    else:
        output.print_facts(_lines(args, document))
        tables.print_columns(document.get("columns"))
    voters.warn_after_fit(args, len(trained.pipeline[-1].classes_))
    for scores in judged:
        warn_of_constant(scores, trained.pipeline[-1])
    return DONE if document["converged"] else NOT_CONVERGED


def _train(args: argparse.Namespace, progress: Progress) -> training.Trained:
    from exclusivity import ERMClassifier

    (args.data,) = args.data
    data = training.read_training_data(args, progress)
    started = perf_counter()
    classifier = ERMClassifier(C=args.cost, **training.parameters(args, data.names, data.X.shape[1]))
    pipeline = training.build(classifier, args, data)
    training.fit(pipeline, data, progress)
    seconds = perf_counter() - started
    folds = held_out.folds_for(args, data)
    notes = None if data.found is None else [read.note for read in data.found]
    found = None if notes is None else tables.document(pipeline[0], data.titles, notes)
    shape = data.X.shape
    trained = training.Trained(pipeline, data.names, data.target, shape, seconds, columns=found)
    if folds is None:
        return trained
    unseen = held_out.predict_held_out(pipeline, data, folds, progress)
    is_vote = args.voting != "soft" and args.exclusivity > 1
    rival = held_out.one_svm(pipeline) if is_vote else None
    one = None if rival is None else held_out.predict_held_out(rival, data, folds, progress)
    return replace(trained, held_out=unseen, one_svm=one)


def report(args: argparse.Namespace, trained: training.Trained) -> dict[str, Any]:
    """What was done."""
    pipeline, fitted = trained.pipeline, trained.pipeline[-1]
    return {
        "model": args.output,
        "rows": trained.shape[0],
        **({} if trained.blocks is None else {"blocks": trained.blocks, "blocks_stayed": trained.stayed}),
        "features": trained.shape[1],
        "classes": fitted.classes_,
        "members": _members(pipeline),
        "scaling": ", ".join(type(step).__name__ for _, step in pipeline.steps[:-1]) or "none",
        "class_weight": fitted.class_weight or "none",
        "seconds": round(trained.seconds, 3),
        "iterations": fitted.n_iter_,
        "objective": fitted.objective_,
        "dual_gap": fitted.dual_gap_,
        "converged": bool(fitted.converged_.all()),
        "tol": args.tol,
        **({} if trained.columns is None else {"columns": trained.columns}),
    }


def _members(pipeline: Any) -> str:
    from exclusivity.classifier import note

    owned = curves.owned_columns(pipeline)
    if owned is not None:
        return curves.members_in_words(owned)
    return note(pipeline[-1]) or f"{pipeline[-1].components_.shape[1]} members"


def _test(args: argparse.Namespace, progress: Progress) -> tuple[dict[str, Any], dict[str, Any]]:
    from exclusivity.inspection.batches import by_batches
    from exclusivity.inspection.scores import scores_of

    loaded = models.load(args.output)
    reading = argparse.Namespace(**vars(args) | {"decimal": None})  # by the model's own notation, as later
    X, y = matching.rows_for(loaded, args.test, reading, progress, wants_labels=True)
    scores = scores_of(y, by_batches(loaded.model, X, loaded.model.predict))
    return {"file": args.test, **_figures(scores)}, scores


def _out_of_sample(
    found: held_out.HeldOut, one_svm: held_out.HeldOut | None
) -> tuple[dict[str, Any], dict[str, Any]]:
    from exclusivity.inspection.scores import scores_of

    scores = scores_of(found.labels, found.predicted)
    document = {"how": found.how, **_figures(scores)}
    if one_svm is not None:
        one = scores_of(one_svm.labels, one_svm.predicted)
        price = one["balanced_accuracy"] - scores["balanced_accuracy"]
        document |= {"one_svm": _figures(one), "price_of_robustness": price}
    return document, scores


def _figures(scores: dict[str, Any]) -> dict[str, Any]:
    return {key: scores[key] for key in ("rows", "accuracy", "balanced_accuracy", "constant")}


def _lines(args: argparse.Namespace, document: dict[str, Any]) -> list[tuple[str, object]]:
    gap = float(max(document["dual_gap"], key=abs))
    quality = "no bound above exclusivity 1" if gap != gap else f"within {gap:.1e} of the optimum"  # noqa: PLR0124
    stayed = "kept in the workers' memory" if document.get("blocks_stayed") else "read anew in every pass"
    lines: list[tuple[str, object]] = [
        (
            "data",
            f"{document['rows']} rows, {_features(document)}, {len(document['classes'])} classes",
        ),
        *([("blocks", f"{document['blocks']}, {stayed}")] if "blocks" in document else []),
        ("scaling", document["scaling"]),
        ("members", document["members"]),
        *(
            [("classes", "weigh the same (the default of a vote; --class-weight none: as many as they are)")]
            if args.class_weight is None and document["class_weight"] == "balanced"
            else []
        ),
        (
            "converged",
            f"{'yes' if document['converged'] else 'NO'}, {quality} (asked for: {document['tol']:g})",
        ),
        ("iterations", f"{int(max(document['iterations']))} in {document['seconds']:.2f} s"),
    ]
    for name, key in (("unseen", "out_of_sample"), ("test", "test")):
        if key in document:
            found = document[key]
            accuracies = f"{found['accuracy']:.1%} accuracy, {found['balanced_accuracy']:.1%} balanced"
            how = f" (out of sample: {found['how']})" if "how" in found else ""
            lines.append((name, f"{accuracies}, on {found['rows']} rows{how}"))
            lines.append(("", f"most frequent class {in_words(found['constant'])}"))
        if "one_svm" in document.get(key, {}):
            lines.append(("robustness", _price(found)))
    return [*lines, ("model", document["model"])]


def _features(document: dict[str, Any]) -> str:
    from exclusivity.io._cells import counted

    left_out = sum(not column["features"] for column in document.get("columns", ()))
    return counted(document["features"], "feature") + (f" ({left_out} of them left out)" if left_out else "")


def _price(found: dict[str, Any]) -> str:
    """What the vote costs while nothing is broken, out of sample and in balanced accuracy."""
    points, one = 100 * found["price_of_robustness"], found["one_svm"]["balanced_accuracy"]
    return (
        f"{'costs' if points >= 0 else 'gains'} {abs(points):.1f} points of balanced accuracy: one SVM on "
        f"all features gets {one:.1%} (same rows, same cost)"
    )
