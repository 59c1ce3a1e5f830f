"""From options to a fitted model: what ``erm fit`` and ``erm path`` share."""

from __future__ import annotations

import argparse
import csv
import math
import shlex
import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from exclusivity._text import printable
from exclusivity.cli import curves, tables
from exclusivity.cli.bounds import bounded
from exclusivity.cli.data import NumbersError, Source
from exclusivity.cli.errors import CommandError, FileError, UsageError, file_errors
from exclusivity.cli.matching import target_of
from exclusivity.cli.progress import Progress
from exclusivity.cli.wording import PARAMETERS, in_options

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from sklearn.pipeline import Pipeline

    from exclusivity.cli.held_out import HeldOut
    from exclusivity.io._cells import Cells
    from exclusivity.io._formats import Reading
    from exclusivity.problem.arrays import Matrix

# A column with nearly as many classes as rows is an identifier or a measurement.
FEW_CLASSES, _ROWS_OF_A_CLASS = 20, 10
# Among fewer rows whole numbers may well be different by chance.
_FEW_ROWS = 20
_BLOCK_ROWS = 1 << 16


@dataclass(frozen=True, eq=False)
class TrainingData:
    """Rows with labels.

    Attributes
    ----------
    X : ndarray or sparse matrix
    y : ndarray
    names : tuple of str or None
    target : str or int or None
        The column that holds y, None for LIBSVM.
    found : list of Cells or None
        The columns of a table as they were read; None where X holds numbers alone.
    titles : list
        What the columns are called on the command line.
    categorical : list of int or None
        The columns of a table that are categories because the user says so.
    """

    X: Any
    y: Any
    names: tuple[str, ...] | None
    target: str | int | None
    found: list[Cells] | None = None
    titles: list[Any] = field(default_factory=list)
    categorical: list[int] | None = None

    @property
    def is_sparse(self) -> bool:
        """Whether X is a sparse matrix."""
        return hasattr(self.X, "toarray")


@dataclass(frozen=True, eq=False)
class Trained:
    """A fit and what it was made of.

    Attributes
    ----------
    pipeline : Pipeline
    names : tuple of str or None
    target : str or int or None
        As in ``TrainingData``.
    shape : (n_rows, n_features)
    seconds : float
    blocks : int or None
        Into how many blocks the rows were cut; None where all of them were in memory.
    stayed : bool
        Whether workers kept those blocks, or read them anew in every pass.
    held_out : HeldOut or None
        Out-of-sample predictions, where there are some.
    one_svm : HeldOut or None
        Of a vote: what one SVM on all features predicts for the same rows.
    columns : list of dict or None
        What was found in the columns of a table.
    """

    pipeline: Any
    names: tuple[str, ...] | None
    target: str | int | None
    shape: tuple[int, int]
    seconds: float
    blocks: int | None = None
    stayed: bool = True
    held_out: HeldOut | None = None
    one_svm: HeldOut | None = None
    columns: list[dict[str, Any]] | None = None


def read_training_data(args: argparse.Namespace, progress: Progress) -> TrainingData:
    """The data of a fit."""
    source = Source.of(args.data, args)
    columns = source.columns()
    reading = target_of(source, columns, args)
    import numpy as np

    target = remembered(reading.target, columns)
    table, found = _read(source, reading, columns, args, progress)
    y: Any = table.labels
    if y.dtype.kind == "f":
        raise FileError(_no_classes(np.unique(y), len(y), source.title))
    check_header(table.feature_names, target, np.unique(y), source.title)
    check_classes(np.unique(y), len(y), source.title)
    titles = feature_titles(reading, columns)
    warn_of_identifiers(_places_of_row_names(table.data), titles, len(y))
    categorical = None if found is None else table.categorical
    return TrainingData(table.data, y, table.feature_names, target, found, titles, categorical)


@dataclass(frozen=True, eq=False)
class _Columns:
    """A table of anything, with the names of what a table of numbers has."""

    data: Any
    labels: Any
    feature_names: tuple[str, ...] | None
    categorical: list[int] | None


def _read(
    source: Source, reading: Reading, columns: Any, args: argparse.Namespace, progress: Progress
) -> tuple[Any, list[Cells] | None]:
    """The table: of numbers where it holds nothing else and nobody asks for more, else of anything."""
    tables.check_format(args, source)
    if tables.asked_for_by(args) is None:
        source.keep()
        try:
            return source.read(reading, progress), None
        except NumbersError:
            pass
    tables.check_options(args)
    raw = source.read_raw(reading, progress)
    titles = feature_titles(reading, columns)
    kinds = tables.wanted_kinds(args, columns, source.title)
    X, found = tables.as_trained(raw, titles, kinds, args, source)
    tables.warn_of_losses(titles, found, len(X))
    chosen = tables.said_to_be_categories(titles, kinds)
    return _Columns(X, raw.labels, raw.names, chosen), found


def feature_titles(reading: Reading, columns: list[str] | int | None) -> list[Any]:
    """What the features are called on the command line."""
    set_apart = {remembered(column, columns) for column in (reading.target, *reading.ignore)}
    named = range(columns) if isinstance(columns, int) else columns or []
    return [title for title in named if title not in set_apart]


def _places_of_row_names(X: Any) -> list[int]:
    """Columns with another whole number in every row."""
    import numpy as np

    from exclusivity.tables import RowNames, names_rows

    if not hasattr(X, "columns"):
        found = RowNames.of(X)
        return [] if found is None else found.columns
    kept = [
        (place, v) for place, v in enumerate(X.columns) if isinstance(v, np.ndarray) and v.dtype.kind == "f"
    ]
    return [place for place, values in kept if names_rows(values)]


def warn_of_identifiers(places: list[int], titles: list[Any], n_rows: int) -> None:
    """Say which columns may name the rows, by their places; of few rows they may as well not.

    Features of LIBSVM files have no titles, but numbers from 1.
    """
    if n_rows < _FEW_ROWS:
        return
    for place in places:
        what = f"column {titles[place]!r}" if titles else f"feature {place + 1}"
        way_out = (
            f"--ignore {shlex.quote(str(titles[place]))} leaves it out"
            if titles
            else "if it is one, write the file without it"
        )
        warnings.warn(
            f"{what} has another whole number in each of the {n_rows} rows, as identifiers have and few "
            f"features do; {way_out}.",
            UserWarning,
            stacklevel=2,
        )


def remembered(target: str | int | None, columns: list[str] | int | None) -> str | int | None:
    """A target as a model keeps it: the name where there are names, else the number from 0."""
    if not isinstance(target, int) or columns is None:
        return target
    return columns[target] if isinstance(columns, list) else target % columns


def check_header(
    names: tuple[str, ...] | None, target: str | int | None, classes: NDArray[Any], title: str
) -> None:
    """Refuse a first line that is a row: numbers as names of features, and a class as that of the target."""
    from exclusivity.io._cells import is_number

    if not isinstance(target, str) or target not in {str(label) for label in classes}:
        return
    numbers = [name for name in names or () if is_number(name.encode())]
    # Columns may be numbered, the target among them: 0, 1, 2.
    if numbers and not all(name.isdigit() for name in [*numbers, target]):
        raise FileError(
            f"the first line of {title} has {target!r} where other rows have classes, and numbers beside it: "
            "no names, it seems, but a row. Add --no-header, and give --target as a number (-1 is the last)."
        )


def check_classes(classes: NDArray[Any], n_rows: int, title: str) -> None:
    """Refuse one class, and so many that they are none; warn of many."""
    if len(classes) < 2:
        raise FileError(
            f"all rows of {title} have the label {printable(classes[0])}; a classifier needs two classes or "
            "more."
        )
    if len(classes) > FEW_CLASSES and len(classes) > n_rows / 2:
        raise FileError(_no_classes(classes, n_rows, title))
    if len(classes) > FEW_CLASSES and classes.dtype.kind in "iu" and len(classes) > n_rows / _ROWS_OF_A_CLASS:
        warnings.warn(
            f"the target of {title} has {len(classes)} different numbers in {n_rows} rows. Are they classes, "
            "and not amounts? --target chooses another column.",
            UserWarning,
            stacklevel=2,
        )


def _no_classes(values: Any, n_rows: int, title: str) -> str:
    return (
        f"the target of {title} has {len(values)} different values in {n_rows} rows, such as "
        f"{printable(values[0])} and {printable(values[-1])}; expected classes. Choose another column with "
        "--target."
    )


def build(classifier: Any, args: argparse.Namespace, data: TrainingData) -> Pipeline:
    """A pipeline of the scaler that was asked for, or the encoder of a table, and the classifier."""
    from sklearn.pipeline import Pipeline

    if data.found is None:
        return scaled(classifier, args.scale, data.is_sparse)
    from exclusivity.tables import TableEncoder

    # Groups are of columns, and what becomes of columns only the encoder knows: it hands them on.
    encoder = TableEncoder(
        curves.numeric(args),
        categorical=data.categorical,
        feature_groups=classifier.feature_groups,
    )
    classifier.set_params(feature_groups=None)
    return curves.with_interactions(Pipeline([("encoder", encoder), ("classifier", classifier)]), args)


def scaled(classifier: object, scale: str | None, is_sparse: bool) -> Pipeline:
    """A pipeline of the scaler that was asked for and the classifier."""
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

    scale = ("none" if is_sparse else "standard") if scale is None else scale
    steps: list[tuple[str, Any]] = []
    if scale == "standard":
        steps.append(("scaler", StandardScaler(with_mean=not is_sparse)))
    elif scale == "minmax":
        scaler = MaxAbsScaler() if is_sparse else MinMaxScaler((-1, 1))
        steps.append(("scaler", scaler))
    return Pipeline([*steps, ("classifier", classifier)])


def check_parameters(args: argparse.Namespace) -> None:
    """Refuse options that do not go together, before anything is read."""
    from exclusivity.classifier import ERMClassifier, check_parameters

    chosen = {name: getattr(args, option) for name, option in PARAMETERS.items()}
    groups = None if args.groups is None else ()
    try:
        check_parameters(ERMClassifier(**chosen, feature_groups=groups).get_params(deep=False))
    except (TypeError, ValueError) as error:
        raise UsageError(in_options(str(error))) from error


def parameters(args: argparse.Namespace, names: tuple[str, ...] | None, n_features: int) -> dict[str, Any]:
    """The options as parameters of a classifier, without those of its cost."""
    return {
        **{name: getattr(args, option) for name, option in PARAMETERS.items()},
        "feature_groups": read_groups(args.groups, names, n_features),
        **bounded(args, names, n_features),
        "fit_intercept": not args.no_intercept,
        "class_weight": class_weight(args),
        "verbose": 2,
    }


def class_weight(args: argparse.Namespace) -> str | None:
    """What was asked for; else a vote of members on different features treats all classes alike.

    Such members know little, and of classes of different sizes the best that many of them can do is to say
    the larger one always. A vote of those cannot be turned by any feature, and is worth nothing.
    """
    if args.class_weight is not None:
        return None if args.class_weight == "none" else str(args.class_weight)
    return "balanced" if args.voting != "soft" and args.exclusivity == math.inf else None


def fit(pipeline: Pipeline, data: TrainingData, progress: Progress) -> None:
    """Fit with progress; afterwards the model is one to keep: silent, and careful with its user's arrays."""
    n_rows, n_features = data.X.shape
    progress.tell(f"scaling {n_rows} rows")
    if data.found is None:
        X, trained = data.X, pipeline[-1:]
        for _, scaler in pipeline.steps[:-1]:
            X = _scaled(scaler, X)
    else:
        X, trained = pipeline[0].fit_transform(data.X), pipeline[1:]
        tables.remember(pipeline[0], data.found)
        tables.warn_of_levels(pipeline[0], data.titles, n_rows)
    with progress.of_fit(f"training on {n_rows} rows of {n_features} features"):
        trained.fit(X, data.y)
    curves.quieten(pipeline)


def _scaled(scaler: Any, X: Matrix) -> Matrix:
    """Learn to scale and scale in place, block by block: at once it would take twice the memory."""
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


def read_groups(path: str | None, names: tuple[str, ...] | None, n_features: int) -> list[str] | None:
    """The group of every feature, from lines ``feature,group`` or from one group per line; None: no file."""
    if path is None:
        return None
    try:
        with file_errors(path), open(path, newline="", encoding="utf-8") as stream:
            rows = [[field.strip() for field in row] for row in csv.reader(stream) if row]
    except (UnicodeDecodeError, csv.Error) as error:
        raise FileError(f"{path}: {error}; expected lines 'feature,group'.") from error
    widths = {len(row) for row in rows}
    if not rows or widths not in ({1}, {2}):
        raise FileError(f"{path}: expected lines 'feature,group', or one group per line.")
    if widths == {1}:
        if len(rows) != n_features:
            raise FileError(f"{path} has {len(rows)} lines; expected one group per feature, {n_features}.")
        return [row[0] for row in rows]
    if names is None:
        raise CommandError(f"{path} names features, but the data have no names; write one group per line.")
    if rows[0] == ["feature", "group"]:
        rows = rows[1:]
    found = dict(rows)
    missing = [name for name in names if name not in found]
    unknown = [name for name in found if name not in names]
    if missing or unknown:
        what = (
            f"does not give a group for {missing[0]!r}"
            if missing
            else f"names {unknown[0]!r}, which is no feature"
        )
        raise FileError(f"{path} {what}; expected one line for every feature of the data.")
    return [found[name] for name in names]
