"""From options to a fitted model: the part that ``erm fit`` and ``erm path`` share."""

from __future__ import annotations

import argparse
import csv
import math
import shlex
import warnings
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from exclusivity._text import printable
from exclusivity.cli import tables
from exclusivity.cli.data import Source
from exclusivity.cli.files import FileError, UsageError, file_errors
from exclusivity.cli.matching import target_of
from exclusivity.cli.options import PARAMETERS
from exclusivity.cli.progress import Progress

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from sklearn.pipeline import Pipeline

    from exclusivity._typing import Matrix

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
    found : list of Found or None
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
    found: list[tables.Found] | None = None
    titles: list[Any] = field(default_factory=list)
    categorical: list[int] | None = None

    @property
    def is_sparse(self) -> bool:
        """Whether X is a sparse matrix."""
        return hasattr(self.X, "toarray")


@dataclass(frozen=True, eq=False)
class Trained:
    """A fitted pipeline with a description of its fit."""

    pipeline: Any
    names: tuple[str, ...] | None
    target: str | int | None  # as in ``TrainingData``
    shape: tuple[int, int]  # rows and features
    seconds: float
    blocks: int | None = None  # of the rows; None: all of them were in memory
    stayed: bool = True  # whether workers kept the blocks, or read them anew in every pass
    columns: list[dict[str, Any]] | None = None  # description of the columns of a table
    out_of_sample: dict[str, Any] | None = None  # scores of a cross-validation


def read_training_data(args: argparse.Namespace, progress: Progress) -> TrainingData:
    """Read the data of a fit: numbers where it holds nothing else and nobody asks for more, else a table."""
    import numpy as np

    source = Source.of(args.data, args)
    columns = source.columns()
    reading = target_of(source, columns, args)
    reading = replace(reading, **tables.settings_of(args, source, columns))
    content = source.read(reading, progress)
    X, y, target = content.data, np.asarray(content.target), remembered(reading.target, columns)
    if y.dtype.kind == "f":
        raise FileError(_no_classes(np.unique(y), len(y), source.title))
    check_header(content.names, target, np.unique(y), source.title)
    check_classes(np.unique(y), len(y), source.title)
    titles = [] if columns is None else content.titles
    if not isinstance(X, list):
        warn_of_identifiers(places_of_row_names(X), titles, len(y))
        return TrainingData(X, y, content.names, target, titles=titles)
    tables.check_options(args)
    found = tables.found_in(content, reading.kinds, source)
    tables.warn_of_losses(titles, found, len(y))
    X = tables.column_table(content)
    warn_of_identifiers(places_of_row_names(X), titles, len(y))
    categorical = tables.said_to_be_categories(titles, reading.kinds)
    return TrainingData(X, y, content.names, target, found, titles, categorical)


def places_of_row_names(X: Any) -> list[int]:
    """Return the columns with another whole number in every row."""
    import numpy as np

    def names_rows(values: Any) -> bool:
        values = values.toarray() if hasattr(values, "toarray") else values
        return bool(np.all(values == np.rint(values))) and len(np.unique(values)) == len(values)

    if hasattr(X, "columns"):
        kept = [(place, values) for place, values in enumerate(X.columns) if hasattr(values, "dtype")]
        return [place for place, values in kept if values.dtype.kind == "f" and names_rows(values)]
    places = list(range(X.shape[1]))
    if hasattr(X, "toarray"):  # one row may be a zero
        places = np.flatnonzero(np.bincount(X.indices, minlength=X.shape[1]) >= X.shape[0] - 1).tolist()
    # Few rows settle nearly every column.
    likely = [place for place in places if names_rows(X[:_FEW_ROWS, [place]])]
    return [place for place in likely if names_rows(X[:, [place]])]


def warn_of_identifiers(places: list[int], titles: list[Any], n_rows: int) -> None:
    """Say which columns may name the rows, by their places; of few rows they may as well not.

    Features of LIBSVM files have no titles, but numbers from 1.
    """
    if n_rows < _FEW_ROWS:
        return
    for place in places:
        what, way_out = f"feature {place + 1}", "if it is one, write the file without it"
        if titles:
            name = titles[place]
            what, way_out = f"column {name!r}", f"--ignore {shlex.quote(str(name))} leaves it out"
        _warn(
            f"{what} has another whole number in each of the {n_rows} rows, as identifiers have and few "
            f"features do; {way_out}."
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
    numbers = [name for name in names or () if is_number(name)]
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
        _warn(
            f"the target of {title} has {len(classes)} different numbers in {n_rows} rows. Are they classes, "
            "and not amounts? --target chooses another column."
        )


def _no_classes(values: Any, n_rows: int, title: str) -> str:
    return (
        f"the target of {title} has {len(values)} different values in {n_rows} rows, such as "
        f"{printable(values[0])} and {printable(values[-1])}; expected classes. Choose another column with "
        "--target."
    )


def check_parameters(args: argparse.Namespace) -> None:
    """Refuse options that do not go together, before anything is read."""
    from exclusivity.classifier import ERMClassifier
    from exclusivity.classifier._validation import check_parameters

    groups = None if args.groups is None else ()
    check_parameters(ERMClassifier(**_chosen(args), feature_groups=groups).get_params(deep=False))


def _chosen(args: argparse.Namespace) -> dict[str, Any]:
    return {name: getattr(args, option) for name, option in PARAMETERS.items() if hasattr(args, option)}


def parameters(args: argparse.Namespace, names: tuple[str, ...] | None, n_features: int) -> dict[str, Any]:
    """Return the options as parameters of a classifier."""
    bounds = _per_column("bounds", args, (-math.inf, math.inf), names, n_features)
    return {
        **_chosen(args),
        "feature_groups": read_groups(args.groups, names, n_features),
        "monotonic_cst": _per_column("monotonic", args, 0, names, n_features),
        "coef_bounds": None if bounds is None else tuple(zip(*bounds, strict=True)),
        "fit_intercept": not args.no_intercept,
        "class_weight": class_weight(args),
        "verbose": 2,
    }


def _per_column(
    option: str, args: argparse.Namespace, default: Any, names: tuple[str, ...] | None, n_features: int
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
    return "balanced" if args.voting != "soft" and args.exclusivity == math.inf else None


def numeric(args: argparse.Namespace) -> str:
    """Return what an encoder makes of numbers."""
    return "spline" if args.additive or args.interactions else "linear"


def build(classifier: Any, args: argparse.Namespace, data: TrainingData) -> Pipeline:
    """Return a pipeline of the scaler that was asked for, or the encoder of a table, and the classifier."""
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

    from exclusivity.tables import TableEncoder, interactions_for

    steps: list[tuple[str, Any]] = []
    if data.found is not None:
        # Groups are of columns, and only the encoder knows what becomes of columns: it hands them on.
        groups = classifier.feature_groups
        encoder = TableEncoder(numeric(args), categorical=data.categorical, feature_groups=groups)
        classifier.set_params(feature_groups=None)
        steps.append(("encoder", encoder))
        if args.interactions:
            steps.append(("interactions", interactions_for(classifier)))
    elif args.scale == "minmax":
        steps.append(("scaler", MaxAbsScaler() if data.is_sparse else MinMaxScaler((-1, 1))))
    elif args.scale == "standard" or (args.scale is None and not data.is_sparse):
        steps.append(("scaler", StandardScaler(with_mean=not data.is_sparse)))
    return Pipeline([*steps, ("classifier", classifier)])


def fit(pipeline: Pipeline, data: TrainingData, progress: Progress) -> None:
    """Fit with progress; afterwards no step is verbose."""
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
    pipeline.set_params(**{name: 0 for name in pipeline.get_params() if name.endswith("__verbose")})


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


def warn_of_votes(voting: str, exclusivity: float, n_members: int, n_classes: int) -> None:
    """Warn if members that vote cannot be certified, or only on some of the rows."""
    if voting != "soft" and exclusivity <= 1:
        _warn(
            f"--voting {voting} counts the votes of {n_members} equal members: one broken feature changes "
            "all of them, and nothing can be certified. Fit with --exclusivity inf for members on different "
            "features."
        )
    elif voting != "soft" and n_classes == 2 and n_members % 2 == 0:
        _warn(
            f"{n_members} members may tie, and a tie has no certificate. Fit an odd number of them: "
            f"--members {n_members - 1} or {n_members + 1}."
        )


def _warn(message: str) -> None:
    warnings.warn(message, UserWarning, stacklevel=3)


def read_groups(path: str | None, names: tuple[str, ...] | None, n_features: int) -> list[str] | None:
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
