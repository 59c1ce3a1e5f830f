"""From options to a fitted model: the part that ``erm fit`` and ``erm path`` share."""

from __future__ import annotations

import argparse
import csv
import math
import warnings
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from exclusivity._text import printable
from exclusivity.cli import columns
from exclusivity.cli.data import Source, counted, note
from exclusivity.cli.files import FileError, UsageError, file_errors
from exclusivity.cli.models import is_robust
from exclusivity.cli.options import LINEAR, LINEAR_ONLY, ROBUST
from exclusivity.cli.progress import Progress

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from sklearn.pipeline import Pipeline

    from exclusivity.io import Table
    from exclusivity.problem.arrays import Matrix

# A column with nearly as many classes as rows is an identifier or a measurement.
FEW_CLASSES, _ROWS_OF_A_CLASS, _MOST_CLASSES = 20, 10, 50
_BLOCK_ROWS = 1 << 16


@dataclass(frozen=True, eq=False)
class TrainingData:
    """Rows with labels: a DataFrame where columns are to be encoded, else numbers."""

    X: Any
    y: Any
    names: list[str] | None
    titles: list[Any]  # of the columns on the command line
    target: str | int | None  # the column that holds y, None for LIBSVM
    table: Table  # as it was read
    weights: Any = None
    categorical: list[Any] = field(default_factory=list)  # columns, because the user says so

    @property
    def is_sparse(self) -> bool:
        """Whether X is a sparse matrix."""
        return hasattr(self.X, "toarray")

    @property
    def is_table(self) -> bool:
        """Whether X has columns to be encoded."""
        return hasattr(self.X, "iloc")


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


def read_training_data(args: argparse.Namespace, progress: Progress) -> TrainingData:
    """Read the data of a fit: numbers where it holds nothing else and nobody asks for more, else a table."""
    import numpy as np

    source = Source(args.data, args)
    known = source.columns()
    target, ignore = source.chosen(known, args)
    settings = _settings(args, source, known, target, ignore)
    table, weights = source.read(progress, **settings), None
    if args.sample_weight is not None:
        table, weights = _with_weights(table, source.column(args.sample_weight, known or []), source)
    if args.drop_missing_target:
        table, weights = _with_known_labels(table, target, weights, source)
    X, y, is_table = table.data, np.asarray(table.target), hasattr(table.data, "iloc")
    titles = list(X.columns) if is_table else []
    if isinstance(known, int) and not is_table:
        titles = [place for place in range(known) if place not in (target, *ignore)]
    names = titles if titles and isinstance(titles[0], str) else None
    check_header(names, target, np.unique(y), source.title)
    check_classes(np.unique(y), len(y), source.title)
    columns.warn_of_row_names(columns.row_names(X), titles, len(y))
    if columns.asked_for_by(args) is not None or not columns.is_plain(table):
        columns.check_options(args)
        columns.check_typed(table, settings.get("numeric", []), source.title)
        columns.warn_of_losses(table)
    elif is_table:
        X = X.to_numpy()
        X.setflags(write=True)  # nobody else has it, and it is scaled in place
    categorical = [name for name in settings.get("categorical", []) if name != target]
    return TrainingData(X, y, names, titles, target, table, weights, categorical)


def _settings(
    args: argparse.Namespace, source: Source, known: Any, target: Any, ignore: list[Any]
) -> dict[str, Any]:
    """Return the arguments of ``read_table`` that the options give."""
    settings = columns.reading_settings(args, source, known, [target, *ignore])
    for option in ("sample_weight", "drop_missing_target"):
        if getattr(args, option) and not source.format.has_columns:
            raise UsageError(f"--{option.replace('_', '-')} is for tables (CSV, TSV, Parquet).")
    if known is None:
        return {"n_features": args.features}
    if args.features is not None:
        raise FileError(
            f"--features is for LIBSVM files; {source.title} is read as {source.format.name}, with a column "
            "for every feature."
        )
    if known and target is None:
        raise source.which_target(known if isinstance(known, list) else [])
    settings |= {"target": target, "ignore": ignore}
    if args.drop_missing_target:
        settings |= {"target": None, "categorical": [*settings["categorical"], target]}
    return settings


def _with_weights(table: Table, name: Any, source: Source) -> tuple[Table, Any]:
    """Return a table without the column of the weights, and these."""
    table, weights = _without(table, name)
    if weights.dtype.kind not in "iuf" or not (weights >= 0).all():
        raise FileError(f"{source.title}, column {name!r}: sample weights must be numbers of at least 0.")
    return table, weights


def _without(table: Table, name: Any) -> tuple[Table, Any]:
    """Return a table without a column, and the column."""
    column = table.data.pop(name).to_numpy()
    return replace(table, rules={key: rule for key, rule in table.rules.items() if key != name}), column


def _with_known_labels(table: Table, target: Any, weights: Any, source: Source) -> tuple[Table, Any]:
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


def check_header(
    names: list[str] | None, target: str | int | None, classes: NDArray[Any], title: str
) -> None:
    """Refuse a first line that is a row: numbers as names of features, and a class as that of the target."""
    from exclusivity.io._cells import is_number

    if not isinstance(target, str) or target not in {str(label) for label in classes}:
        return
    numbers = [name for name in names or () if is_number(name)]
    # Columns may be numbered, the target among them: 0, 1, 2.
    if numbers and not all(name.isdigit() for name in [*numbers, target]):
        raise FileError(
            f"the first line of {title} has {target!r} where other rows have classes, and numbers beside it: "
            "no names, it seems, but a row. Add --no-header, and give --target as a number (-1 is the last)."
        )


def check_classes(classes: NDArray[Any], n_rows: int, title: str) -> None:
    """Refuse one class, numbers that are none, and so many that they are none; warn of many."""
    if classes.dtype.kind == "f":
        raise FileError(_no_classes(classes, n_rows, title))
    if len(classes) < 2:
        raise FileError(
            f"all rows of {title} have the label {printable(classes[0])}; a classifier needs two classes or "
            "more."
        )
    if len(classes) > FEW_CLASSES and len(classes) > n_rows / 2:
        raise FileError(_no_classes(classes, n_rows, title))
    are_numbers = classes.dtype.kind in "iu"
    if len(classes) > (FEW_CLASSES if are_numbers else _MOST_CLASSES) and (
        len(classes) > n_rows / _ROWS_OF_A_CLASS or len(classes) > _MOST_CLASSES
    ):
        values, others = ("numbers", "amounts") if are_numbers else ("texts", "names")
        _warn(
            f"the target of {title} has {len(classes)} different {values} in {n_rows} rows. Are they "
            f"classes, and not {others}? --target chooses another column."
        )


def _no_classes(values: Any, n_rows: int, title: str) -> str:
    return (
        f"the target of {title} has {len(values)} different values in {n_rows} rows, such as "
        f"{printable(values[0])} and {printable(values[-1])}; expected classes. Choose another column with "
        "--target."
    )


def check_parameters(args: argparse.Namespace) -> None:
    """Refuse options that do not go together, before anything is read."""
    from exclusivity.classifier import ERMClassifier, check_parameters

    is_robust = getattr(args, "max_broken", None) is not None
    others = (*LINEAR_ONLY.values(), "bounds", "scale", "no_intercept", "additive")
    for option in others if is_robust else ("threats", "trusted"):
        if getattr(args, option, None) not in (None, False):
            way = "is not for --max-broken" if is_robust else "needs --max-broken"
            raise UsageError(f"--{option.replace('_', '-')} {way}; leave one of them out.")
    if not is_robust:
        groups = None if args.groups is None else ()
        check_parameters(ERMClassifier(**_given(args, LINEAR), feature_groups=groups).get_params(deep=False))


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
    names = [str(title) for title in data.titles]
    threats: Any = args.threats or "any"
    for option, given in (("trusted", args.trusted), ("threats", threats)):
        unknown = (
            [] if isinstance(given, (str, tuple)) else [name for name in given or () if name not in names]
        )
        if unknown:
            raise UsageError(f"--{option}: there is no column {unknown[0]!r}; expected one of {names[:20]}.")
    if args.trusted and not isinstance(threats, dict):
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


def _per_column(
    option: str, args: argparse.Namespace, default: Any, names: list[str] | None, n_features: int
) -> list[Any] | None:
    """Return one value per column; columns are named, or numbered from 0 where there are no names."""
    given = getattr(args, option)
    if given is None:
        return None
    known = list(names or map(str, range(n_features)))
    unknown = [name for name in given if name not in known]
    if unknown:
        raise UsageError(f"--{option}: there is no feature {unknown[0]!r}; expected one of {known[:20]}.")
    return [given.get(name, default) for name in known]


def class_weight(args: argparse.Namespace) -> str | None:
    """Return the class weight: balanced by default for votes of members on different features.

    Such members know little: without it the best that many of them can do on classes of different sizes is
    to predict the largest one always, and a vote of those is worth nothing.
    """
    if args.class_weight is not None:
        return None if args.class_weight == "none" else str(args.class_weight)
    return "balanced" if args.voting in ("hard", "runoff") and args.exclusivity == math.inf else None


def build(classifier: Any, args: argparse.Namespace, data: TrainingData) -> Pipeline:
    """Return a pipeline of the scaler that was asked for, or the encoder of a table, and the classifier."""
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

    steps: list[tuple[str, Any]] = []
    if is_robust(classifier):
        pass
    elif data.is_table:
        # Groups are of columns, and only the encoder knows what becomes of columns: it hands them on.
        groups = classifier.feature_groups
        classifier.set_params(feature_groups=None)
        steps.append(("encoder", encoder(args, groups, data.titles, data.categorical)))
    elif args.scale == "minmax":
        steps.append(("scaler", MaxAbsScaler() if data.is_sparse else MinMaxScaler((-1, 1))))
    elif args.scale == "standard" or (args.scale is None and not data.is_sparse):
        steps.append(("scaler", StandardScaler(with_mean=not data.is_sparse)))
    return Pipeline([*steps, ("classifier", classifier)])


def encoder(args: argparse.Namespace, groups: Any, titles: list[Any], categorical: list[Any]) -> Any:
    """Return the encoder of a table."""
    from exclusivity.tables import TableEncoder

    places = [titles.index(name) for name in categorical] or None
    numeric = "spline" if args.additive else "linear"
    return TableEncoder(numeric, categorical=places, feature_groups=groups)


def fit(pipeline: Pipeline, data: TrainingData, progress: Progress) -> None:
    """Fit with progress; afterwards no step is verbose."""
    (n_rows, n_features), X, trained = data.X.shape, data.X, pipeline[-1:]
    progress.update(f"scaling {n_rows} rows")
    if data.is_table and len(pipeline) > 1:
        X = pipeline[0].fit_transform(X)
        columns.remember_notation(pipeline[0], data.table)
        columns.warn_of_levels(pipeline[0].columns_, data.titles, n_rows)
    else:
        for _, scaler in pipeline.steps[:-1]:
            X = _scaled(scaler, X)
    with progress.of_fit(f"training on {n_rows} rows of {n_features} features"):
        trained.fit(X, data.y, **fit_parameters(data))
    if is_robust(pipeline[-1]):
        columns.remember_notation(pipeline[-1], data.table)
    pipeline.set_params(**{name: 0 for name in pipeline.get_params() if name.endswith("__verbose")})


def fit_parameters(data: TrainingData) -> dict[str, Any]:
    """Return what ``Pipeline.fit`` takes besides rows and classes."""
    return {} if data.weights is None else {"classifier__sample_weight": data.weights}


def _scaled(scaler: Any, X: Matrix) -> Matrix:
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
    try:
        with file_errors(path), open(path, newline="", encoding="utf-8") as stream:
            rows = [[field.strip() for field in row] for row in csv.reader(stream) if row]
    except (UnicodeDecodeError, csv.Error) as error:
        raise FileError(f"{path}: {error}; expected lines 'feature,group'.") from error
    if all(len(row) == 1 for row in rows) and len(rows) == n_features:
        return [row[0] for row in rows]
    if names is None or not rows or not all(len(row) == 2 for row in rows):
        raise FileError(
            f"{path}: expected one group per line for {n_features} features, or, where the data have names, "
            "lines 'feature,group'."
        )
    found = dict(rows[1:] if rows[0] == ["feature", "group"] else rows)
    wrong = sorted(set(names) ^ set(found))
    if wrong:
        what = "gives no group for" if wrong[0] in names else "names"
        raise FileError(f"{path} {what} {wrong[0]!r}; expected one line for every feature of the data.")
    return [found[name] for name in names]
