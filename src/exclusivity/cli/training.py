"""From options to a fitted model: the part that ``erm fit`` and ``erm path`` share."""

from __future__ import annotations

import argparse
import csv
import math
import shlex
import warnings
from dataclasses import dataclass, field, replace
from typing import Any

from exclusivity._text import printable
from exclusivity.cli.data import Source, counted, decimal_of, note
from exclusivity.cli.files import FileError, UsageError, file_errors
from exclusivity.cli.models import is_robust
from exclusivity.cli.options import LINEAR, LINEAR_ONLY, ROBUST
from exclusivity.cli.output import Progress

# A column with nearly as many classes as rows is an identifier or a measurement.
FEW_CLASSES, _ROWS_OF_A_CLASS, _MOST_CLASSES = 20, 10, 50
_BLOCK_ROWS = 1 << 16
# More texts than this share of a column's cells are a loss that its owner should know of.
_MANY_LOST = 0.1
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


@dataclass(frozen=True, eq=False)
class Trained:
    """A fitted pipeline with a description of its fit."""

    pipeline: Any
    names: list[str] | None
    target: str | int | None  # as in ``TrainingData``
    shape: tuple[int, int]  # rows and features
    seconds: float
    blocks: int | None = None  # of the rows; None: all of them were in memory
    columns: list[dict[str, Any]] | None = None  # description of the columns of a table
    out_of_sample: dict[str, Any] | None = None  # scores of a cross-validation


def read_training_data(args: argparse.Namespace) -> TrainingData:
    """Read the data of a fit: numbers if it holds nothing else and no option asks for more, else a table."""
    import numpy as np

    source = Source(args.data, args)
    known = source.columns()
    target, ignore = source.chosen(known, args)
    settings = reading_settings(args, source, known, target, ignore)
    if args.drop_missing_target:  # read as a feature, in which values may be missing
        categorical = [*settings["categorical"], target]
        table = source.read(**settings | {"target": None, "categorical": categorical})
    else:
        table = source.read(**settings)
    weights = None
    if args.sample_weight is not None:
        table, weights = _without(table, source.column(args.sample_weight, known or []))
        if weights.dtype.kind not in "iuf" or not (weights >= 0).all():
            cause = f"column {args.sample_weight!r}: sample weights must be numbers of at least 0."
            raise FileError(f"{source.title}, {cause}")
    if args.drop_missing_target:
        table, weights = _with_known_labels(table, target, weights, source)
    X, y, is_table = table.data, np.asarray(table.target), hasattr(table.data, "iloc")
    titles = list(X.columns) if is_table else []
    if isinstance(known, int) and not is_table:
        titles = [place for place in range(known) if place not in (target, *ignore)]
    data = TrainingData(X, y, titles, target, table, weights, settings["categorical"])
    check_target(data.names, target, np.unique(y), len(y), source.title)
    warn_of_row_names(X, titles)
    if is_table:
        warn_of_leaks(X, y)
    if asked_for_by(args) is not None or not is_plain(table):
        check_options(args)
        warn_of_losses(table)
        return data
    if is_table:
        X = X.to_numpy()
        X.setflags(write=True)  # nobody else has it, and it is scaled in place
    return replace(data, X=X)


def reading_settings(
    args: argparse.Namespace, source: Source, known: Any, target: Any, ignore: list[Any]
) -> dict[str, Any]:
    """Return the arguments of ``read_table`` that the options give."""
    option = asked_for_by(args, "sample_weight", "drop_missing_target")
    if option is not None and not source.format.has_columns:
        raise UsageError(
            f"{option} is for tables (CSV, TSV, Parquet), and {source.title} is read as "
            f"{source.format.name}; leave {option} out, or write the rows as a table."
        )
    found: dict[str, Any] = {"decimal": decimal_of(args.decimal, source)}
    for kind in ("categorical", "numeric"):
        found[kind] = [source.column(text, known) for text in getattr(args, kind)]
        if wrong := [name for name in found[kind] if name in (target, *ignore)]:
            raise UsageError(f"{wrong[0]!r} is no feature: it is the target, or left out.")
    if both := [name for name in found["categorical"] if name in found["numeric"]]:
        raise UsageError(f"{both[0]!r} is named by --categorical and by --numeric; choose one.")
    if known is None:
        return found | {"n_features": args.features}
    if args.features is not None:
        raise FileError(
            f"--features is for LIBSVM files; {source.title} is read as {source.format.name}, with a column "
            "for every feature."
        )
    if known and target is None:
        raise source.which_target(known if isinstance(known, list) else [])
    return found | {"target": target, "ignore": ignore}


def asked_for_by(args: argparse.Namespace, *others: str) -> str | None:
    """Return the first option that needs a table that is read column by column; None where there is none."""
    asked = {option: getattr(args, option) for option in ("categorical", "numeric", "additive")}
    asked["decimal comma"] = args.decimal == "comma"
    asked["max_broken"] = getattr(args, "max_broken", None) is not None
    asked |= {option: getattr(args, option) for option in others}
    return next((f"--{option.replace('_', '-')}" for option, value in asked.items() if value), None)


def _without(table: Any, name: Any) -> tuple[Any, Any]:
    """Return a table without a column, and the column."""
    column = table.data.pop(name).to_numpy()
    return replace(table, rules={key: rule for key, rule in table.rules.items() if key != name}), column


def _with_known_labels(table: Any, target: Any, weights: Any, source: Source) -> tuple[Any, Any]:
    """Return the rows that have a class, and their weights; report how many have none."""
    import numpy as np
    import pandas as pd

    table, texts = _without(table, target)
    is_known = pd.notna(texts)
    y = pd.to_numeric(pd.Series(texts[is_known]), errors="coerce").to_numpy()
    if np.isnan(y).any():
        y = texts[is_known].astype(str).astype(object)
    elif (y == np.rint(y)).all():
        y = y.astype(np.int64)
    if n_dropped := int((~is_known).sum()):
        note(f"{counted(n_dropped, 'row')} of {source.title} without a class left out")
    data = table.data[is_known].reset_index(drop=True)
    return replace(table, data=data, target=y), None if weights is None else weights[is_known]


def check_target(names: Any, target: Any, classes: Any, n_rows: int, title: str) -> None:
    """Refuse a first line that is a row, one class, and so many that they are none; warn of many."""
    from exclusivity.io._cells import is_number

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
    least, values, others = _MOST_CLASSES, "texts", "names"
    if classes.dtype.kind in "iu":
        least, values, others = FEW_CLASSES, "numbers", "amounts"
    if count > least and (count > n_rows / _ROWS_OF_A_CLASS or count > _MOST_CLASSES):
        _warn(
            f"the target of {title} has {count} different {values} in {n_rows} rows. Are they classes, and "
            f"not {others}? --target chooses another column."
        )


def check_parameters(args: argparse.Namespace) -> None:
    """Refuse options that do not go together, before anything is read."""
    from exclusivity.classifier import ERMClassifier
    from exclusivity.classifier._validation import check_parameters

    if args.linear and args.additive:
        raise UsageError("--linear is not for --additive; leave one of them out.")
    is_robust = getattr(args, "max_broken", None) is not None
    others = (*LINEAR_ONLY.values(), "bounds", "scale", "no_intercept", "additive", "linear")
    for option in others if is_robust else ("threats", "trusted"):
        if getattr(args, option, None) not in (None, False):
            way = "is not for --max-broken" if is_robust else "needs --max-broken"
            raise UsageError(f"--{option.replace('_', '-')} {way}; leave one of them out.")
    if not is_robust:
        groups = None if args.groups is None else ()
        check_parameters(ERMClassifier(**_given(args, LINEAR), feature_groups=groups).get_params(deep=False))


def check_options(args: argparse.Namespace) -> None:
    """Refuse options that the encoding of a table has no use for."""
    if getattr(args, "max_broken", None) is not None:
        return
    asked = asked_for_by(args)
    where = "in a table with words, dates or missing values" if asked is None else f"with {asked}"
    for option in ("bounds", *["monotonic"] * bool(getattr(args, "dask", False))):
        if getattr(args, option) is not None:
            raise UsageError(
                f"--{option} is for data of numbers alone: {where} a column becomes several features. In "
                "Python an ERMClassifier bounds encoded features one by one."
            )
    if args.scale not in (None, "standard"):
        raise UsageError(
            f"--scale {args.scale} is for data of numbers alone: {where} numbers are standardised; leave "
            "--scale out."
        )


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
    _check_known("trusted", args.trusted or (), names)
    if isinstance(threats, dict):
        _check_known("threats", threats, names)
    elif args.trusted:
        threats = dict.fromkeys(names, threats)
    if args.trusted:
        threats = {**threats, **dict.fromkeys(args.trusted, "trusted")}
    return {
        **_given(args, ROBUST),
        "feature_groups": read_groups(args.groups, data.names, len(names)),
        "monotonic_cst": _per_column("monotonic", args, 0, data.names, len(names)),
        "threats": threats,
        "categorical_features": data.categorical or "from_dtype",
        "class_weight": args.class_weight if args.class_weight == "balanced" else None,
        "verbose": 1,
    }


def _check_known(option: str, given: Any, known: list[str]) -> None:
    if unknown := [name for name in given if name not in known]:
        from exclusivity._errors import hint_at_name

        raise UsageError(f"--{option}: there is no feature {unknown[0]!r}; {hint_at_name(unknown[0], known)}")


def _per_column(
    option: str, args: argparse.Namespace, default: Any, names: list[str] | None, n_features: int
) -> list[Any] | None:
    """Return one value per column; columns are named, or numbered from 0 where there are no names."""
    given = getattr(args, option)
    if given is None:
        return None
    known = list(names or map(str, range(n_features)))
    _check_known(option, given, known)
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
        warnings.filterwarnings("ignore", r"Column .* the target: ")  # warn_of_leaks names options
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
    scaler.set_params(copy=True)  # its next rows belong to somebody else
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
    expected += ", or (where the data have names) lines 'feature,group'"
    try:
        with file_errors(path), open(path, newline="", encoding="utf-8") as stream:
            rows = [[field.strip() for field in row] for row in csv.reader(stream) if row]
    except (UnicodeDecodeError, csv.Error) as error:
        raise FileError(f"{path}: {error}; {expected}.") from error
    if all(len(row) == 1 for row in rows) and len(rows) == n_features:
        return [row[0] for row in rows]
    if names is None or not rows or not all(len(row) == 2 for row in rows):
        raise FileError(f"{path}: {expected}.")
    found = dict(rows[1:] if rows[0] == ["feature", "group"] else rows)
    if wrong := sorted(set(names) ^ set(found)):
        what = "gives no group for" if wrong[0] in names else "names"
        raise FileError(f"{path} {what} {wrong[0]!r}; expected one line for every feature of the data.")
    return [found[name] for name in names]


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
    """Warn of columns with another whole number in every row, as identifiers have.

    Features of LIBSVM files have no titles, but numbers from 1.
    """
    import numpy as np

    n_rows, n_columns = X.shape
    full = list(range(n_columns if n_rows >= _FEW_ROWS else 0))
    if hasattr(X, "toarray"):  # one row may be a zero
        full = np.flatnonzero(np.bincount(X.indices, minlength=n_columns)[full] >= n_rows - 1).tolist()
    for place in full:
        cells = X.iloc[:, place].to_numpy() if hasattr(X, "iloc") else X[:, place]
        cells = cells.toarray().ravel() if hasattr(cells, "toarray") else cells
        if cells.dtype.kind != "f":
            continue
        if all(  # the first rows settle nearly every column
            len(np.unique(some)) == len(some) and (some == np.rint(some)).all()
            for some in (cells[:_FEW_ROWS], cells)
        ):
            what, way_out = f"feature {place + 1}", "if it is one, write the file without it"
            if titles:
                what = f"column {titles[place]!r}"
                way_out = f"--ignore {shlex.quote(str(titles[place]))} leaves it out"
            _warn(
                f"{what} has another whole number in each of the {n_rows} rows, as identifiers have and few "
                f"features do; {way_out}."
            )


def warn_of_losses(table: Any) -> None:
    """Warn of columns where many texts were taken for missing values."""
    for name, lost in table.n_lost.items():
        if lost > _MANY_LOST * len(table.data):
            _warn(
                f"column {name!r}: {lost} of {len(table.data)} cells are no numbers and are taken for "
                "missing values (--numeric)."
            )


def warn_of_leaks(X: Any, y: Any) -> None:
    """Warn of columns of a DataFrame that equal or determine the classes."""
    from exclusivity.tables._checks import columns_that_determine

    for title, how in columns_that_determine(X, X.columns, y):
        _warn(
            f"column {title!r} {how} the target: rows of one of its values are of one class. If it is not "
            f"known when predictions are made, --drop {shlex.quote(str(title))} leaves it out."
        )


def describe(columns: list[Any], titles: list[Any], table: Any = None) -> list[dict[str, Any]]:
    """Return what is known of the columns of a model, one by one; with the table it was fitted to, more."""
    from exclusivity.io._cells import ColumnRule

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
