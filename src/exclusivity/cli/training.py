"""From options to a fitted model: the part that ``erm fit`` and ``erm path`` share."""

from __future__ import annotations

import argparse
import csv
import math
import shlex
import warnings
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from exclusivity._errors import hint_at_name
from exclusivity._text import printable
from exclusivity.cli.data import Source, counted, decimal_of, note
from exclusivity.cli.files import FileError, UsageError, file_errors
from exclusivity.cli.models import is_robust
from exclusivity.cli.options import LINEAR, LINEAR_ONLY, ROBUST, refuse
from exclusivity.cli.output import Progress
from exclusivity.io._cells import ColumnRule, is_number
from exclusivity.io._reading import whole_numbers

# A column with nearly as many classes as rows is an identifier or a measurement.
FEW_CLASSES = 20
_BLOCK_ROWS = 1 << 16
# Among fewer rows whole numbers may well be different by chance.
_FEW_ROWS = 20


@dataclass(frozen=True, eq=False)
class TrainingData:
    """Rows with labels: a DataFrame where columns are to be encoded, else numbers."""

    X: Any
    y: Any
    titles: list[Any]  # of the columns on the command line: names, or numbers
    target: str | int | None  # the column that holds y, None for LIBSVM
    table: Any  # as it was read
    weights: Any = None
    categorical: list[Any] = field(default_factory=list)  # columns, because the user says so

    @property
    def names(self) -> list[str] | None:
        """The names of the columns."""
        return self.titles if self.titles and isinstance(self.titles[0], str) else None

    @property
    def weighted(self) -> dict[str, Any]:
        """What ``Pipeline.fit`` takes besides rows and classes."""
        return {} if self.weights is None else {"classifier__sample_weight": self.weights}


class Trained(NamedTuple):
    """A fitted pipeline with a description of its fit."""

    pipeline: Any
    names: list[str] | None
    target: str | int | None  # as in ``TrainingData``
    shape: tuple[int, int]  # rows and features
    seconds: float
    more: dict[str, Any]  # of blocks, columns and out_of_sample: what there is


def read_training_data(args: argparse.Namespace) -> TrainingData:
    """Read the data of a fit: numbers if it holds nothing else and no option asks for more, else a table."""
    source = Source(args.data, args)
    settings = reading_settings(args, source)
    target, ignore = settings.get("target"), settings.get("ignore", ())
    if args.drop_missing_target:  # read as a feature, in which values may be missing
        categorical = [*settings["categorical"], target]
        table = source.read(**settings | {"target": None, "categorical": categorical})
    else:
        table = source.read(**settings)
    weights, weight = None, getattr(args, "sample_weight", None)
    if weight is not None:
        table, weights = _without(table, source.column(weight))
        if weights.dtype.kind not in "iuf" or not (weights >= 0).all():
            cause = f"column {weight!r}: sample weights must be numbers of at least 0."
            raise FileError(f"{source.title}, {cause}")
    if args.drop_missing_target:
        table, weights = _with_known_labels(table, target, weights, source)
    X, y, is_table = table.data, np.asarray(table.target), hasattr(table.data, "iloc")
    others = [place for place in source.columns or () if place not in (target, *ignore)]
    titles = list(X.columns) if is_table else others
    data = TrainingData(X, y, titles, target, table, weights, settings["categorical"])
    check_target(data.names, target, np.unique(y), len(y), source.title)
    warn_of_row_names(X, titles)
    if is_table:
        from exclusivity.tables._checks import columns_that_determine, doubt_of_leak

        for title, how in columns_that_determine(X, X.columns, y):
            _warn(doubt_of_leak(str(title), how))
    if asked_for_by(args) is not None or not is_plain(table):
        check_options(args)
        return data
    if is_table:
        X = X.to_numpy()
        X.setflags(write=True)  # it is the only reference, and it is scaled in place
    return replace(data, X=X)


def reading_settings(args: argparse.Namespace, source: Source) -> dict[str, Any]:
    """Return the arguments of ``read_table`` that the options give."""
    option = asked_for_by(args, "sample_weight", "drop_missing_target")
    if option is not None and not source.format.has_columns:
        raise UsageError(
            f"{option} is for tables (CSV, TSV, Parquet), and {source.title} is read as "
            f"{source.format.name}; leave {option} out, or write the rows as a table."
        )
    target, ignore = source.chosen(args)
    found: dict[str, Any] = {"decimal": decimal_of(args, source)}
    for kind in ("categorical", "numeric"):
        found[kind] = [source.column(text) for text in getattr(args, kind)]
    if both := [name for name in found["categorical"] if name in found["numeric"]]:
        raise UsageError(f"{both[0]!r} is named by --categorical and by --numeric; choose one.")
    if source.columns is None:
        return found | {"n_features": getattr(args, "features", None)}
    refuse(args, ("features",), f"is for LIBSVM files; {source.title} is read as {source.format.name}.")
    if source.columns and target is None:
        raise source.which_target(source.names)
    return found | {"target": target, "ignore": ignore}


def asked_for_by(args: argparse.Namespace, *others: str) -> str | None:
    """Return the first option that needs a table that is read column by column; None where there is none."""
    asked = {
        option: getattr(args, option, None) for option in ("categorical", "numeric", "additive", *others)
    }
    asked["decimal comma"] = args.decimal == "comma"
    asked["max_broken"] = getattr(args, "max_broken", None) is not None
    return next((f"--{option.replace('_', '-')}" for option, value in asked.items() if value), None)


def _without(table: Any, name: Any) -> tuple[Any, Any]:
    """Return a table without a column, and the column."""
    column = table.data.pop(name).to_numpy()
    return replace(table, rules={key: rule for key, rule in table.rules.items() if key != name}), column


def _with_known_labels(table: Any, target: Any, weights: Any, source: Source) -> tuple[Any, Any]:
    """Return the rows that have a class, and their weights; report how many have none."""
    import pandas as pd

    table, texts = _without(table, target)
    is_known = pd.notna(texts)
    try:
        y = whole_numbers(texts[is_known].astype(float))
    except ValueError:
        y = texts[is_known].astype(str).astype(object)
    if n_dropped := int((~is_known).sum()):
        note(f"{counted(n_dropped, 'row')} of {source.title} without a class left out")
    data = table.data[is_known].reset_index(drop=True)
    return replace(table, data=data, target=y), None if weights is None else weights[is_known]


def check_target(names: Any, target: Any, classes: Any, n_rows: int, title: str) -> None:
    """Refuse a first line that is a row, one class, and so many that they are none."""
    numbers = [name for name in names or () if is_number(name)]
    # Columns may be numbered, the target among them: 0, 1, 2.
    is_row = numbers and not all(name.isdigit() for name in [*numbers, str(target)])
    if is_row and target in {str(label) for label in classes}:
        raise FileError(
            f"the first line of {title} has {target!r} where other rows have classes, and numbers beside it: "
            "no names, it seems, but a row. Add --no-header, and give --target as a number (-1 is the last)."
        )
    count = len(classes)
    if classes.dtype.kind == "f" or (count > FEW_CLASSES and count > n_rows / 2):
        raise FileError(
            f"the target of {title} has {count} different values in {n_rows} rows, such as "
            f"{printable(classes[0])} and {printable(classes[-1])}; expected classes. Choose another column "
            "with --target."
        )
    if count < 2:
        label = printable(classes[0])
        raise FileError(
            f"all rows of {title} have the label {label}; a classifier needs two classes or more."
        )


def check_parameters(args: argparse.Namespace) -> None:
    """Refuse options that do not go together, before anything is read."""
    from exclusivity.classifier._erm import ERMClassifier
    from exclusivity.classifier._validation import check_blockwise, check_parameters

    if args.additive:
        refuse(args, ("linear",), "is not for --additive; leave one of them out.")
    if getattr(args, "max_broken", None) is not None:
        others = (*LINEAR_ONLY.values(), "bounds", "scale", "no_intercept", "additive", "linear")
        refuse(args, others, "is not for --max-broken; leave one of them out.")
    else:
        refuse(args, ("threats", "trusted"), "needs --max-broken; leave one of them out.")
        groups = None if args.groups is None else ()
        classifier = ERMClassifier(**_given(args, LINEAR), feature_groups=groups)
        check_parameters(classifier.get_params(deep=False))
        if getattr(args, "dask", False):
            check_blockwise(classifier.get_params(deep=False))


def check_options(args: argparse.Namespace) -> None:
    """Refuse options that the encoding of a table has no use for."""
    asked = asked_for_by(args)
    where = "in a table with words, dates or missing values" if asked is None else f"with {asked}"
    why = f"is for data of numbers alone: {where}"
    encoded = ("bounds", "monotonic") if getattr(args, "dask", False) else ("bounds",)
    refuse(args, encoded, f"{why} a column becomes several features.")
    if args.scale != "standard":
        refuse(args, ("scale",), f"{why} numbers are standardised; leave --scale out.")


def _given(args: argparse.Namespace, parameters: dict[str, str]) -> dict[str, Any]:
    found = {name: getattr(args, option, None) for name, option in parameters.items()}
    return {name: value for name, value in found.items() if value is not None}


def parameters(args: argparse.Namespace, names: list[str] | None, n_features: int) -> dict[str, Any]:
    """Return the options as parameters of a linear classifier."""
    bounds = _per_column("bounds", args, (-math.inf, math.inf), names, n_features)
    return {
        **_given(args, LINEAR),
        "feature_groups": read_groups(args.groups, names, n_features),
        "monotonic_cst": _per_column("monotonic", args, 0, names, n_features),
        "coef_bounds": None if bounds is None else tuple(zip(*bounds, strict=True)),
        "fit_intercept": not args.no_intercept,
        "class_weight": class_weight(args),
        "verbose": 2,
    }


def robust_parameters(args: argparse.Namespace, data: TrainingData) -> dict[str, Any]:
    """Return the options as parameters of a robust additive classifier."""
    names: list[str] = [str(title) for title in data.titles]
    threats: Any = args.threats or "any"
    if args.trusted:
        others = threats if isinstance(threats, dict) else dict.fromkeys(names, threats)
        threats = others | dict.fromkeys(args.trusted, "trusted")
    return {
        **_given(args, ROBUST),
        "feature_groups": read_groups(args.groups, data.names, len(names)),
        "monotonic_cst": _per_column("monotonic", args, 0, data.names, len(names)),
        "threats": threats,
        "categorical_features": data.categorical or "from_dtype",
        "class_weight": args.class_weight if args.class_weight == "balanced" else None,
        "verbose": 1,
    }


def _per_column(
    option: str, args: argparse.Namespace, default: Any, names: list[str] | None, n_features: int
) -> list[Any] | None:
    """Return one value per column; columns are named, or numbered from 0 where there are no names."""
    given = getattr(args, option)
    if given is None:
        return None
    known = list(names or map(str, range(n_features)))
    if unknown := [name for name in given if name not in known]:
        hint = hint_at_name(unknown[0], known)
        raise UsageError(f"--{option}: there is no feature {unknown[0]!r}; {hint}")
    return [given.get(name, default) for name in known]


def class_weight(args: argparse.Namespace) -> str | None:
    """Return the class weight: balanced by default for votes of members on different features.

    Such members know little: without it the best that many of them can do on classes of different sizes is
    to predict the largest one always, and a vote of those is worth nothing.
    """
    if args.class_weight is not None:
        return None if args.class_weight == "none" else str(args.class_weight)
    return "balanced" if args.voting in ("hard", "runoff") and args.exclusivity == math.inf else None


def build(classifier: Any, args: argparse.Namespace, data: TrainingData) -> Any:
    """Return a pipeline of the scaler that was asked for, or the encoder of a table, and the classifier."""
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

    steps: list[tuple[str, Any]] = []
    is_sparse = hasattr(data.X, "toarray")
    if is_robust(classifier):
        pass
    elif hasattr(data.X, "iloc"):
        # Groups are of columns, and only the encoder knows what becomes of columns: it hands them on.
        groups, signs = classifier.feature_groups, classifier.monotonic_cst
        classifier.set_params(feature_groups=None, monotonic_cst=None)
        step = encoder(args, groups, data.titles, data.categorical).set_params(monotonic_cst=signs)
        steps.append(("encoder", step))
    elif args.scale == "minmax":
        steps.append(("scaler", MaxAbsScaler() if is_sparse else MinMaxScaler((-1, 1))))
    elif args.scale == "standard" or (args.scale is None and not is_sparse):
        steps.append(("scaler", StandardScaler(with_mean=not is_sparse)))
    return Pipeline([*steps, ("classifier", classifier)])


def encoder(args: argparse.Namespace, groups: Any, titles: list[Any], categorical: list[Any]) -> Any:
    """Return the encoder of a table: curves of numbers, which predict better, unless lines are asked for."""
    from exclusivity.tables import TableEncoder

    places = [titles.index(name) for name in categorical] or None
    return TableEncoder("linear" if args.linear else "spline", categorical=places, feature_groups=groups)


def fit(pipeline: Any, data: TrainingData, progress: Progress) -> None:
    """Fit with progress; afterwards no step is verbose."""
    (n_rows, n_features), X = data.X.shape, data.X
    progress.update(f"scaling {n_rows} rows")
    for _, step in pipeline.steps[:-1]:
        X = step.fit_transform(X) if hasattr(X, "iloc") else _scaled(step, X)
    with progress.of_fit(f"training on {n_rows} rows of {n_features} features"), warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"Column .* the target: ")  # which has been said
        pipeline[-1:].fit(X, data.y, **data.weighted)
    rules = data.table.rules.values()
    if rules and hasattr(pipeline[0], "columns_"):  # keep how the numbers of columns were written
        pipeline[0].columns_ = [
            replace(column, notation=rule.notation or None)
            for column, rule in zip(pipeline[0].columns_, rules, strict=True)
        ]
    pipeline.set_params(**{name: 0 for name in pipeline.get_params() if name.endswith("__verbose")})


def _scaled(scaler: Any, X: Any) -> Any:
    """Fit a scaler and scale in place, block by block: at once it would take twice the memory."""
    blocks = [slice(start, start + _BLOCK_ROWS) for start in range(0, X.shape[0], _BLOCK_ROWS)]
    scaler.set_params(copy=False)
    if hasattr(X, "toarray"):
        X = scaler.fit_transform(X)
    else:
        for block in blocks:
            scaler.partial_fit(X[block])
        for block in blocks:
            X[block] = scaler.transform(X[block])
    scaler.set_params(copy=True)  # its next rows are the caller's
    return X


def warn_of_votes(classifier: Any) -> None:
    """Warn if members that vote cannot be certified, or only on some of the rows."""
    if is_robust(classifier) or classifier.voting == "soft":
        return
    n_members = classifier._ensemble.n_voters
    if classifier.exclusivity <= 1:
        _warn(
            f"--voting {classifier.voting} counts the votes of {n_members} equal members: one broken feature "
            "changes all of them, and nothing can be certified. Fit with --exclusivity inf for members on "
            "different features."
        )
    elif len(classifier.classes_) == 2 and n_members % 2 == 0:
        _warn(
            f"{n_members} members may tie, and a tie has no certificate. Fit an odd number of them: "
            f"--members {n_members - 1} or {n_members + 1}."
        )


def _warn(message: str) -> None:
    warnings.warn(message, UserWarning, stacklevel=3)


def read_groups(path: str | None, names: list[str] | None, n_features: int) -> list[str] | None:
    """Read the group of every feature: lines ``feature,group``, or one group per line; None: no file."""
    if path is None:
        return None
    expected = f"expected one group per line for {n_features} features"
    expected += ", or (where the data have names) a line 'feature,group' for each of them"
    try:
        with file_errors(path), open(path, newline="", encoding="utf-8") as stream:
            rows = [[field.strip() for field in row] for row in csv.reader(stream) if row]
    except (UnicodeDecodeError, csv.Error) as error:
        raise FileError(f"{path}: {error}; {expected}.") from error
    if all(len(row) == 1 for row in rows) and len(rows) == n_features:
        return [row[0] for row in rows]
    if rows[:1] == [["feature", "group"]]:
        rows = rows[1:]
    groups = dict(rows) if all(len(row) == 2 for row in rows) else {}
    if names is None or set(groups) != set(names):
        wrong = sorted(set(groups).symmetric_difference(names or ()))
        raise FileError(f"{path}: {expected}{f' (see {wrong[0]!r})' if groups else ''}.")
    return [groups[name] for name in names]


def is_plain(table: Any) -> bool:
    """Return whether a table holds plain numbers alone, and none is missing."""
    data = table.data
    if not hasattr(data, "iloc"):
        return True
    return (
        all(rule.kind == "number" and rule.notation in ("", ".") for rule in table.rules.values())
        and all(dtype.kind == "f" for dtype in data.dtypes)
        and not data.isna().to_numpy().any()
    )


def warn_of_row_names(X: Any, titles: list[Any]) -> None:
    """Warn of columns with another whole number in every row, as identifiers have."""
    n_rows = X.shape[0]
    for place, title in enumerate(titles if n_rows >= _FEW_ROWS else ()):
        cells = X.iloc[:, place].to_numpy() if hasattr(X, "iloc") else X[:, place]
        if (
            cells.dtype.kind == "f"
            and all(  # the first rows settle nearly every column
                len(np.unique(some)) == len(some) and (some == np.rint(some)).all()
                for some in (cells[:_FEW_ROWS], cells)
            )
        ):
            _warn(
                f"column {title!r} has another whole number in each of the {n_rows} rows, as identifiers "
                f"have and few features do; --ignore {shlex.quote(str(title))} leaves it out."
            )


def describe(columns: list[Any], titles: list[Any], table: Any = None) -> list[dict[str, Any]]:
    """Return what is known of the columns of a model, one by one; with the table it was fitted to, more."""
    found = []
    for title, column in zip(titles, columns, strict=True):
        notes = [ColumnRule(column.kind, column.notation or "").note]
        if table is not None:
            lost = table.n_lost.get(title, 0)
            notes = [
                table.remarks.get(title, ""),
                f"{counted(lost, 'text')} taken for missing values" * (lost > 0),
            ]
        left_out = getattr(column, "left_out", "")
        notes = [", ".join(filter(None, notes)), f"left out: {left_out}" * bool(left_out)]
        facts = {"column": title, "kind": column.kind, "levels": column.n_levels}
        facts |= {"missing": getattr(column, "n_missing", 0) or None, "features": getattr(column, "width", 1)}
        found.append(facts | {"note": "; ".join(filter(None, notes))})
    return found
