"""Check parameters, rows, labels and weights; read classes, groups and bounds; replace fitted attributes."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping, Set
from contextlib import contextmanager
from itertools import combinations
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from exclusivity._errors import ParameterError, ParameterTypeError, hint_at_name
from exclusivity._typing import Bools, Floats, Ints, Matrix
from exclusivity.objective.losses import LOSSES, POWER_LOSS
from exclusivity.objective.objective import Bounds, Contrast
from exclusivity.rows.design import RowScale, check_sparse
from exclusivity.solvers.dispatch import SOLVERS, parse_options, resolve_solver
from exclusivity.voting._changes import group_supports
from exclusivity.voting.rules import RULES


def check_parameters(params: Mapping[str, Any]) -> None:
    """Raise a ValueError or TypeError for the first parameter that cannot be honoured."""
    check_number(params, "n_estimators", least=1, integer=True)
    if isinstance(params["C"], Real) and params["C"] == np.inf:
        raise ParameterError(
            "C",
            "C=inf asks for a hard margin, which exists only where a plane separates the classes; C must be "
            "finite. Where one does, a large C gives that margin: set C=1e6, or more, with p=1, whose "
            "solution stays the same from some C on.",
        )
    check_number(params, "C", least=0, strict=True)
    check_choice(params, "loss", tuple(LOSSES))
    check_number(params, "p", least=1)
    if params["loss"] != POWER_LOSS and params["p"] != 2:
        raise ParameterError(
            "p", f"p={params['p']!r} is the power of the hinge, not of {params['loss']!r}; leave it out."
        )
    check_number(params, "sparsity", least=0)
    check_number(params, "tol", least=0, strict=True)
    if params["max_iter"] is not None:
        check_number(params, "max_iter", least=1, integer=True)
    if not isinstance(params["verbose"], (bool, np.bool_)):
        check_number(params, "verbose", least=0, integer=True)
    for name in ("fit_intercept", "warm_start"):
        if not isinstance(params[name], (bool, np.bool_)):
            raise ParameterTypeError(name, f"{name} must be True or False; got {params[name]!r}.")
    check_jobs(params.get("n_jobs"))
    check_choice(params, "voting", tuple(RULES))
    check_choice(params, "multi_class", ("ovr", "ovo"))
    check_number(params, "exclusivity", least=0, finite=False)
    if params["feature_groups"] is not None and params["exclusivity"] <= 1:
        raise ParameterError(
            "feature_groups",
            "feature_groups only matters when members compete for features, exclusivity > 1; got "
            f"exclusivity={params['exclusivity']!r}. Set exclusivity=np.inf, or leave feature_groups None.",
        )
    _solver(params)
    _partition(params)
    if params.get("coef_bounds") is not None or params.get("monotonic_cst") is not None:
        check_bounded(params)


def _partition(params: Mapping[str, Any]) -> None:
    partition = params.get("partition", "learned")
    if isinstance(partition, str):
        check_choice({"partition": partition}, "partition", ("learned", "random"))
        if partition == "learned":
            return
    if params["exclusivity"] != np.inf:
        raise ParameterError(
            "partition",
            f"partition={partition!r} says who owns which feature, and at exclusivity="
            f"{params['exclusivity']!r} members share them; set exclusivity=np.inf, or leave partition out.",
        )
    searched = {"restarts", "radius", "voting", "partition"} & set(params["solver_options"] or ())
    if searched:
        raise ParameterError(
            "solver_options",
            f"solver_options has {min(searched)!r}, which is about the search for a partition, and with "
            f"partition={partition!r} there is none; leave one of them out.",
        )


def _solver(params: Mapping[str, Any]) -> None:
    name, exclusivity, options = params["solver"], params["exclusivity"], params["solver_options"]
    check_choice(params, "solver", ("auto", *SOLVERS))
    if options is not None and not isinstance(options, Mapping):
        raise ParameterTypeError(
            "solver_options", f"solver_options must be a mapping of option names to values; got {options!r}."
        )
    resolved = resolve_solver(name, exclusivity)
    if resolved == "exclusive" and exclusivity <= 1:
        raise ParameterError(
            "solver",
            f"solver={name!r} needs exclusivity > 1; got {exclusivity!r}. Set exclusivity=np.inf for "
            "members on different features, or solver='auto'.",
        )
    if resolved != "exclusive" and exclusivity > 1:
        raise ParameterError(
            "solver",
            f"solver={name!r} needs exclusivity <= 1; got {exclusivity!r}. Above 1 the problem is not "
            "convex: use solver='exclusive' or 'auto'.",
        )
    parse_options(SOLVERS[resolved].options, options)


def check_blockwise(params: Mapping[str, Any]) -> None:
    """Raise for parameters that need rows in memory."""
    exclusivity = params["exclusivity"]
    is_other = resolve_solver(params["solver"], exclusivity) not in ("newton", "exclusive")
    is_limited = exclusivity > 1 and params["max_iter"] is not None
    for name, is_wrong, advice in (
        ("solver", is_other, "use solver='auto', or fit a sample of the rows"),
        ("exclusivity", 1 < exclusivity < np.inf, "use np.inf (members on different features) or at most 1"),
        ("n_jobs", params["n_jobs"] is not None, "leave it None: their source decides what runs at a time"),
        ("max_iter", is_limited, "leave it None: members on different features are fitted all at once"),
    ):
        if is_wrong:
            raise ParameterError(
                name, f"{name}={params[name]!r} needs rows in memory; for rows in blocks {advice}."
            )


def check_number(
    params: Mapping[str, Any],
    name: str,
    *,
    least: float,
    strict: bool = False,
    integer: bool = False,
    finite: bool = True,
) -> None:
    """Raise unless ``params[name]`` is a number (an integer) of at least, or above, ``least``."""
    value: Any = params[name]
    kind: Any = Integral if integer else Real
    word = "an integer" if integer else "a number"
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, kind):
        raise ParameterTypeError(name, f"{name} must be {word}; got {value!r}.")
    in_range = value > least if strict else value >= least
    if not in_range or (finite and not np.isfinite(value)):
        bound = ("above" if strict else "at least") + f" {least:g}"
        raise ParameterError(
            name, f"{name} must be {word} {bound}{' and finite' if finite else ''}; got {value!r}."
        )


def check_choice(params: Mapping[str, Any], name: str, allowed: tuple[str, ...]) -> None:
    """Raise unless ``params[name]`` is one of the allowed words."""
    if params[name] not in allowed:
        raise ParameterError(
            name, f"{name} must be one of {', '.join(map(repr, allowed))}; got {params[name]!r}."
        )


def check_counted(params: Mapping[str, Any]) -> None:
    """Raise unless ``params["voting"]`` names a rule that counts votes, so that there are certificates."""
    check_choice(params, "voting", tuple(name for name, rule in RULES.items() if rule.counts_votes))


def check_jobs(n_jobs: object) -> None:
    """Raise unless this is a number of jobs that joblib takes."""
    is_whole = isinstance(n_jobs, Integral) and not isinstance(n_jobs, bool)
    if n_jobs is not None and (not is_whole or n_jobs == 0):
        raise ParameterError(
            "n_jobs",
            f"n_jobs must be None or an integer: how many jobs, or -1 for all processors; got {n_jobs!r}.",
        )


ROW_TYPES = [np.dtype(code) for code in ("f8", "f4", "?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8")]
"""Rows are taken as they are stored in these types, and turned into floats block by block; others at once."""

# Sums of squares of the features must stay finite, with room for rows, weights and costs.
_LARGEST_FEATURE = 1e140

NO_WEIGHT = "sample_weight is zero for every row: nothing to learn from."
"""The message where no row counts."""


def validate_rows(
    estimator: BaseEstimator, X: Matrix, y: Any = "no_validation", *, is_plain: bool = True, **checks: Any
) -> Any:
    """Check rows, and labels if given, as scikit-learn does; errors about missing values and text say more.

    Arrays in which it would find nothing to change or to refuse are only looked at: on a few hundred rows
    its checks take longer than the fit. The caller says by ``is_plain`` whether labels are such.
    """
    if sparse.issparse(X):
        check_sparse(X)
    is_plain = is_plain and _is_plain(X) and (isinstance(y, str) or len(y) == len(X))
    checks |= {"accept_sparse": "csr", "dtype": ROW_TYPES, "skip_check_array": is_plain}
    with table_advice(type(estimator).__name__):
        return validate_data(estimator, X, y, **checks)


_NO_NUMBERS = (
    "Input X contains NaN",
    "could not convert string",
    "float() argument",
    "could not be promoted",
)


@contextmanager
def table_advice(name: str) -> Iterator[None]:
    """Name TableEncoder in the errors of scikit-learn and numpy about cells that are no numbers."""
    try:
        yield
    except (TypeError, ValueError) as error:
        if "feature names should match" in str(error):
            raise ValueError(
                f"{error}\nexclusivity.tables.TableEncoder finds columns by name, and takes absent ones for "
                f"missing values: fit make_pipeline(TableEncoder(), {name}(...))."
            ) from None
        cause = re.split(r"\n| This means", str(error))[0]
        if not any(words in cause for words in _NO_NUMBERS):
            raise
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(
            f"{cause.rstrip('.')}. {name} takes numbers; exclusivity.tables.TableEncoder takes tables with "
            f"missing values, text and dates: use make_pipeline(TableEncoder(), {name}(...)), or "
            "exclusivity.RobustAdditiveClassifier, which takes such tables itself."
        ) from None


def validate_classes(estimator: BaseEstimator, X: Matrix, y: Any) -> Any:
    """Check rows and their classes; plain ones as in :func:`validate_rows`."""
    require_labels(y)
    is_plain = are_plain_labels(y, getattr(y, "size", 0))
    X, y = validate_rows(estimator, X, y, is_plain=is_plain)
    if not is_plain and not are_plain_labels(y, len(y)):
        check_classification_targets(y)
    return X, y


def _is_plain(X: Any) -> bool:
    """Return whether X is an array of rows, of a type that is taken as it is, without NaN or infinity."""
    if type(X) is not np.ndarray or X.ndim != 2 or X.size == 0 or X.dtype not in ROW_TYPES:
        return False
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(X.sum(dtype=float)))


def are_plain_labels(y: Any, n_rows: int) -> bool:
    """Return whether y has one whole number per row, and rows enough not to look like a regression."""
    if type(y) is not np.ndarray or y.shape != (n_rows,) or y.dtype.kind not in "biuf":
        return False
    values = np.unique(y)
    return 2 * len(values) <= n_rows and bool(np.all(np.isfinite(values) & (values == np.floor(values))))


def sample_weights(given: object, n_rows: int) -> Floats:
    """Return the sample weights as float64: one per row, finite, not negative, not all zero."""
    weights = check_weights(given, n_rows)
    if not np.any(weights):
        raise ValueError(NO_WEIGHT)
    return weights


def check_weights(given: object, n_rows: int) -> Floats:
    """Return the weights of some of the rows, which may all be zero: one per row, finite, not negative."""
    if given is None:
        return np.ones(n_rows)
    try:
        weights = np.asarray(given, dtype=float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"sample_weight must hold numbers: {error}") from error
    if weights.ndim == 0:
        weights = np.full(n_rows, float(weights))
    if weights.shape != (n_rows,):
        raise ValueError(
            f"sample_weight must have one value per row, shape ({n_rows},); got shape {weights.shape}."
        )
    if not np.all(np.isfinite(weights)):
        raise ValueError("sample_weight contains NaN or infinity.")
    if np.any(weights < 0):
        raise ValueError("sample_weight must not be negative.")
    return weights


def require_labels(y: ArrayLike, whose: str = "") -> None:
    """Raise where a label is missing: None, NaN, or the NA of pandas and Arrow.

    For labels of Python objects and dates; NaN among numbers is found by scikit-learn's own check. ``whose``
    says what the rows are counted in, where that is not the whole of y.
    """
    try:
        labels = np.asarray(y)
    except ValueError:  # no column at all, which scikit-learn says better
        return
    if labels.dtype.kind not in "OMm" or labels.ndim == 0:
        return
    place = next((place for place, label in enumerate(labels.ravel()) if _is_missing(label)), None)
    if place is not None:
        raise ValueError(
            f"Input y contains NaN: the label of row {place}{whose} is missing ({labels.ravel()[place]!r}). "
            "Leave such rows out, or give them a class of their own."
        )


def _is_missing(label: object) -> bool:
    try:
        return label is None or bool(label != label)  # noqa: PLR0124 -- NaN and NaT
    except TypeError:  # pandas' NA, which is neither equal nor unequal
        return True
    except ValueError:  # an array is no label, which scikit-learn says better
        return False


def require_two_classes(classes: NDArray[Any]) -> None:
    """Raise where there is only one class."""
    if len(classes) < 2:
        raise ValueError(
            "A classifier needs at least 2 classes in y; these rows have one class only: "
            f"{classes.tolist()[0]!r}."
        )


MANY_CLASSES = 50
# A table of so few rows may well have one row of each class.
_FEW_ROWS = 10


def warn_of_many_classes(n_classes: int, n_rows: int, stacklevel: int) -> None:
    """Warn of a target that hardly holds classes: very many of them, or one for every row."""
    if n_classes > MANY_CLASSES or n_classes == n_rows > _FEW_ROWS:
        warnings.warn(
            f"y has {n_classes} different values in {n_rows} rows. Are they classes, and not amounts?",
            UserWarning,
            stacklevel=stacklevel + 1,
        )


def class_weights(given: object, classes: NDArray[Any], totals: Floats) -> Floats:
    """Return one factor per class; "balanced" gives every class that has weight the same total weight.

    ``totals`` holds the sums of the classes' sample weights.
    """
    if given is None:
        return np.ones(len(classes))
    if isinstance(given, str) and given == "balanced":
        shared = totals.sum() / np.count_nonzero(totals)
        return np.asarray(np.divide(shared, totals, out=np.ones_like(totals), where=totals > 0))
    if not isinstance(given, Mapping):
        raise ParameterError(
            "class_weight",
            f"class_weight must be None, 'balanced' or a mapping of class to weight; got {given!r}.",
        )
    unknown = [label for label in given if label not in classes]
    if unknown:
        raise ParameterError(
            "class_weight",
            f"class_weight names {unknown[0]!r}, which is not a class in y: {classes.tolist()}.",
        )
    try:
        factors = np.array([given.get(label, 1.0) for label in classes.tolist()], dtype=float)
    except (TypeError, ValueError):
        factors = np.zeros(1)
    if not np.all(np.isfinite(factors) & (factors > 0)):
        raise ParameterError(
            "class_weight", f"class_weight must be positive and finite; got {dict(given)!r}."
        )
    return factors


def contrasts(classes: NDArray[Any], multi_class: str) -> list[Contrast]:
    """List the binary problems of a multi-class fit, in the order of the fitted attributes."""
    names = [str(label) for label in classes]
    if len(names) == 2:
        return [Contrast(f"{names[1]} against {names[0]}", 1, None)]
    if multi_class == "ovo":
        pairs = combinations(range(len(names)), 2)
        return [Contrast(f"{names[i]} against {names[j]}", i, j) for i, j in pairs]
    return [Contrast(f"{name} against the rest", c, None) for c, name in enumerate(names)]


def check_scale(scale: RowScale) -> None:
    """Raise where squares of the features would leave the range of floating point."""
    largest = float(scale.columns.max(initial=0.0))
    if largest > _LARGEST_FEATURE:
        raise ValueError(
            f"X has values as large as {largest:.1e}, whose squares leave the range of floating point; "
            "scale the features first (for example with StandardScaler or MaxAbsScaler)."
        )


def _carried(X: Matrix, name: str) -> Any:
    """Return an attribute of rows that a :class:`~exclusivity.tables.TableEncoder` made, or None."""
    # Not of a DataFrame: there an attribute may be a column.
    return getattr(X, name, None) if isinstance(X, np.ndarray) or sparse.issparse(X) else None


def groups_of_rows(feature_groups: object, X: Matrix, exclusivity: float = np.inf) -> object:
    """Return the parameter; where it is None and members compete, the groups that the rows carry.

    The columns that a TableEncoder made of one input column belong together.
    """
    is_given = feature_groups is not None or not exclusivity > 1
    return feature_groups if is_given else _carried(X, "feature_groups")


def signs_of_rows(monotonic_cst: object, X: Matrix) -> object:
    """Return the parameter as given; where it is None, the signs that rows of a TableEncoder carry."""
    signs = _carried(X, "monotonic_cst")
    if signs is not None and monotonic_cst is not None:
        raise ParameterError(
            "monotonic_cst", "monotonic_cst is given to the TableEncoder and to the classifier; choose one."
        )
    return monotonic_cst if signs is None else signs


def abstaining_members(X: Matrix, supports: Bools) -> Bools | None:
    """Return which members have nothing but missing values in rows of a TableEncoder, (n_samples, n_members).

    ``supports``, (n_members, n_features), tells which features a member uses. None where every member has a
    value in every row.
    """
    missing = _carried(X, "missing")
    if missing is None or not missing.any():
        return None
    uses = group_supports(supports, np.asarray(X.feature_groups))
    lacks = missing[:, : uses.shape[1]].astype(np.float32) @ uses.T.astype(np.float32)
    found = (lacks == uses.sum(axis=1)) & uses.any(axis=1)
    return np.asarray(found) if found.any() else None


def group_codes(feature_groups: object, n_features: int, names: NDArray[Any] | None) -> Ints:
    """Return the group number of each column, 0 to n_groups - 1 in the order of first appearance.

    Parameters
    ----------
    feature_groups : None, sequence of labels, dict, or callable
        None: every column is a group of its own. A dict has labels by column name, and columns that it does
        not name are groups of their own. A callable is given the array of column names.
    n_features : int
    names : ndarray of str or None
        The column names seen in ``fit``, if there were any.

    Examples
    --------
    >>> group_codes(["engine", "brake", "engine"], 3, None)
    array([0, 1, 0])
    """
    labels: Any = feature_groups
    columns: Any = names
    if labels is None:
        return np.arange(n_features)
    if columns is None and (callable(labels) or isinstance(labels, Mapping)):
        raise ParameterError(
            "feature_groups",
            "feature_groups goes by column names, but X has none; fit on a DataFrame with string columns, or "
            "give one label per column.",
        )
    if isinstance(labels, Mapping):
        _refuse_unknown(labels, columns, "feature_groups")
        labels = [labels.get(name, ("alone", place)) for place, name in enumerate(columns)]
    else:
        labels = _as_list(labels(columns) if callable(labels) else labels)
    if len(labels) != n_features:
        raise ParameterError(
            "feature_groups",
            f"feature_groups must have one label per column: X has {n_features} columns, and "
            f"{len(labels)} labels were given.",
        )
    # NaN is unlike itself: columns without a label would become groups of their own without a word.
    if any(label is None or label != label for label in labels):  # noqa: PLR0124
        raise ParameterError(
            "feature_groups", "feature_groups has a missing label (None or NaN); give every column a label."
        )
    numbers: dict[Any, int] = {}
    return np.array([numbers.setdefault(label, len(numbers)) for label in labels], dtype=np.intp)


def _as_list(labels: Any) -> list[Any]:
    if isinstance(labels, (str, bytes, Set)) or not hasattr(labels, "__len__"):
        raise ParameterTypeError(
            "feature_groups",
            "feature_groups must be None, a sequence with one label per column, a dict of labels by column "
            f"name, or a callable that makes the sequence from the column names; got {labels!r}.",
        )
    if np.ndim(labels) != 1:
        raise ParameterError(
            "feature_groups", f"feature_groups must be one-dimensional; got {np.ndim(labels)} dimensions."
        )
    return labels.tolist() if hasattr(labels, "tolist") else list(labels)


def random_partition(n_groups: int, n_members: int, rng: np.random.RandomState) -> Ints:
    """Draw an owner for every group; sizes differ by one at most."""
    return np.asarray(rng.permutation(np.arange(n_groups) % n_members))


def read_partition(labels: ArrayLike, groups: Ints, n_members: int) -> Ints:
    """Return the owner of every group from one label per column or group; members in label order."""
    if np.ndim(labels) != 1:
        raise ValueError(
            "partition must be 'random', 'learned', or a sequence with the label of one member for each "
            f"column (or feature group); got {labels!r}."
        )
    owners = np.unique(np.asarray(labels), return_inverse=True)[1]
    n_groups = int(groups.max()) + 1
    if len(owners) not in (len(groups), n_groups):
        raise ValueError(
            f"partition must have one label for each of the {len(groups)} columns, or of the {n_groups} "
            f"feature groups; got {len(owners)}."
        )
    if len(owners) != n_groups:
        by_group = np.empty(n_groups, dtype=np.intp)
        by_group[groups] = owners
        if np.any(by_group[groups] != owners):
            raise ValueError(
                "partition gives columns of one feature group to different members; give every group "
                "one member."
            )
        owners = by_group
    if int(owners.max()) + 1 != n_members:
        raise ValueError(
            f"partition names {int(owners.max()) + 1} members, and n_estimators is {n_members}; set "
            f"n_estimators={int(owners.max()) + 1}."
        )
    return np.asarray(owners, dtype=np.intp)


_FORMS = (
    "coef_bounds must be a pair (lower, upper) of numbers, of arrays with one number per column, of dicts "
    "from column names to numbers, or None for no bound; or one dict from column names to pairs of numbers"
)


def check_bounded(params: Mapping[str, Any]) -> None:
    """Raise where bounds are given that nothing else of the parameters allows."""
    name = "coef_bounds" if params["coef_bounds"] is not None else "monotonic_cst"
    exclusivity, solver = params["exclusivity"], params["solver"]
    if 1 < exclusivity < np.inf:
        raise ParameterError(
            name,
            f"{name} and exclusivity={exclusivity!r}: between 1 and infinity members take features from each "
            "other by penalties that know no bounds. Use exclusivity=np.inf for members on features of their "
            "own, or at most 1.",
        )
    if not SOLVERS[resolve_solver(solver, exclusivity)].takes_bounds:
        raise ParameterError(
            name,
            f"{name} and solver={solver!r}: its steps move all members at once and know no bounds of their "
            "weights; use solver='newton' or 'auto'.",
        )


def bounds_of(estimator: Any, n_features: int, dtype: DTypeLike, n_problems: int) -> Bounds | None:
    """Return the bounds of every column in each of so many binary problems; None where there are none.

    A model of float32 rows has float32 weights: its bounds are the nearest such numbers inside.
    """
    names = getattr(estimator, "feature_names_in_", None)
    lower, upper = _intervals(estimator.coef_bounds, n_features, names)
    signs = _per_column(estimator.monotonic_cst, 0.0, n_features, names, "monotonic_cst")
    if not np.all(np.isin(signs, (-1, 0, 1))):
        raise ParameterError(
            "monotonic_cst",
            "monotonic_cst must have 1 (the score rises with the column), -1 (it falls) or 0 (either) for "
            f"each column; got {estimator.monotonic_cst!r}.",
        )
    if n_problems > 1:
        _check_classes(signs, lower, upper, n_problems, estimator.multi_class)
    lower = np.where(signs > 0, np.maximum(lower, 0.0), lower)
    upper = np.where(signs < 0, np.minimum(upper, 0.0), upper)
    if np.dtype(dtype) == np.float32:
        lower, upper = _float32_inside(lower, np.inf), _float32_inside(upper, -np.inf)
    # Not a number is in no order either.
    is_empty = ~((lower <= upper) & (lower < np.inf) & (upper > -np.inf))
    if np.any(is_empty):
        at = int(np.argmax(is_empty))
        raise ParameterError(
            "coef_bounds",
            f"coef_bounds and monotonic_cst leave no {np.dtype(dtype)} weight for {_title(at, names)}: "
            f"[{lower[at]!s}, {upper[at]!s}]. A lower bound must not be above the upper one, nor the sign's.",
        )
    bounds = Bounds(lower, upper)
    if np.isinf(estimator.exclusivity) and not bounds.contain_zero:
        at = int(np.argmax((lower > 0) | (upper < 0)))
        raise ParameterError(
            "coef_bounds",
            f"exclusivity={estimator.exclusivity!r} gives every feature to one member, and all others zero "
            f"weight; the bounds of {_title(at, names)}, [{lower[at]!s}, {upper[at]!s}], keep it from zero.",
        )
    return bounds if np.any(np.isfinite(lower) | np.isfinite(upper)) else None


def _intervals(given: Any, n_features: int, names: NDArray[Any] | None) -> list[Floats]:
    """Return the lower and the upper end of every column."""
    if isinstance(given, Mapping):
        pairs = {name: _pair(pair) for name, pair in given.items()}
        given = tuple({name: pair[end] for name, pair in pairs.items()} for end in (0, 1))
    ends = zip((None, None) if given is None else _pair(given), (-np.inf, np.inf), strict=True)
    return [_per_column(end, default, n_features, names, "coef_bounds") for end, default in ends]


def _pair(given: Any) -> tuple[Any, Any]:
    if isinstance(given, (str, bytes)) or not hasattr(given, "__len__") or len(given) != 2:
        raise ParameterError("coef_bounds", f"{_FORMS}; got {given!r}.")
    lower, upper = given
    return lower, upper


def _per_column(
    given: Any, default: float, n_features: int, names: NDArray[Any] | None, parameter: str
) -> Floats:
    """Return one number per column, from a number, an array, or a dict by name with a default for others."""
    if given is None:
        return np.full(n_features, default)
    numbers = given
    if isinstance(given, Mapping):
        if names is None:
            raise ParameterError(
                parameter,
                f"{parameter} names columns, but X has no column names; fit on a DataFrame with string "
                "columns, or give one number per column. Behind a TableEncoder give monotonic_cst to the "
                "encoder.",
            )
        if parameter == "monotonic_cst":
            _refuse_encoded([name for name, sign in given.items() if sign], names)
        _refuse_unknown(given, names, parameter)
        numbers = [default if given.get(name) is None else given[name] for name in names]
    try:
        values: Floats = np.asarray(numbers, dtype=float)
    except (TypeError, ValueError) as error:
        raise ParameterError(parameter, f"{parameter} must hold numbers; got {given!r}.") from error
    if values.ndim == 0 and parameter == "coef_bounds":
        values = np.full(n_features, float(values))
    if values.shape != (n_features,):
        raise ParameterError(
            parameter,
            f"{parameter} must have one number per column, shape ({n_features},); got shape {values.shape}.",
        )
    return values


def _refuse_unknown(given: Mapping[Any, Any], names: NDArray[Any], parameter: str) -> None:
    unknown = [name for name in given if name not in names]
    if unknown:
        raise ParameterError(
            parameter,
            f"{parameter} names {unknown[0]!r}, which is no column of X; {hint_at_name(unknown[0], names)}",
        )


def _refuse_encoded(columns: list[Any], names: NDArray[Any]) -> None:
    """Raise where a column has become several features: a sign of one says nothing about their sum."""
    for column in columns:
        # As a TableEncoder calls them: parts of a curve, levels, a missing value, parts of a date.
        ending = r"(_spline\d+|_ramp\d+|=.*|\.(year|month|weekday|hour)(_spline\d+|=.*)?)"
        made = re.compile(re.escape(str(column)) + ending, re.DOTALL)
        found = [name for name in names if made.fullmatch(str(name))]
        if found:
            raise ParameterError(
                "monotonic_cst",
                f"monotonic_cst names {column!r}, which a TableEncoder makes several features of (such as "
                f"{found[0]!r}): the sign of one weight does not make the score monotone in the column. Give "
                "monotonic_cst to the TableEncoder; or name the encoded features one by one.",
            )


def _check_classes(signs: Floats, lower: Floats, upper: Floats, n_problems: int, multi_class: str) -> None:
    if np.any(signs):
        raise ParameterError(
            "monotonic_cst",
            "monotonic_cst says which way a score goes, and with more than two classes there is one for "
            "each: what raises one lowers another. Fit the class that matters against the rest (y == label), "
            "or bound the weights of all classes with coef_bounds.",
        )
    if multi_class == "ovo" and not np.array_equal(lower, -upper):
        raise ParameterError(
            "coef_bounds",
            f"multi_class='ovo' sets {n_problems} pairs of classes against each other, either way round: its "
            "coef_bounds must be symmetric, upper = -lower. Use multi_class='ovr', where they hold for each "
            "class against the rest.",
        )


def _float32_inside(ends: Floats, inward: float) -> Floats:
    """Round to the nearest float32 numbers that are not further outside, seen from ``inward``."""
    with np.errstate(over="ignore"):
        rounded = ends.astype(np.float32)
    is_outside = rounded < ends if inward > 0 else rounded > ends
    return np.where(is_outside, np.nextafter(rounded, np.float32(inward)), rounded).astype(float)


def _title(at: int, names: NDArray[Any] | None) -> str:
    return f"column {at}" if names is None else f"column {names[at]!r}"


# Fitted attributes

TEST, TRAINING_TOO = "test", "training and test"
# Labels that a user gives may come from a look at the rows, or not.
TRAINING_IF = f"{TRAINING_TOO} if the partition does not depend on the rows"
"""The scopes of a certificate: values of the row to be predicted, or of training rows as well."""


# A prediction while another thread fits the same classifier uses the former model or the new one. A fit works
# on a copy of the classifier and ends with ``replace_fitted``, one assignment; a prediction copies first and
# reads all fitted attributes from that. Both are single operations on the dictionary of the object, between
# which no other thread runs.

PRIVATE = ("_ensemble", "_fitted_exclusivity", "_starts")
"""Fitted attributes whose names do not end with an underscore."""


def fitted_attributes(estimator: object) -> dict[str, Any]:
    """Return what a fit left behind: attributes that end with an underscore, and those of ``PRIVATE``."""
    attributes = dict(vars(estimator))  # a copy: another thread may add to it meanwhile
    return {name: value for name, value in attributes.items() if name.endswith("_") or name in PRIVATE}


def replace_fitted(estimator: object, fitted: dict[str, Any]) -> None:
    """Replace all fitted attributes at once; parameters and all else stay."""
    attributes = dict(vars(estimator))
    for name in fitted_attributes(estimator):
        del attributes[name]
    estimator.__dict__ = attributes | fitted


def width_of(estimator: BaseEstimator) -> dict[str, Any]:
    """Return what validation notes of the columns, before there is a fit: their number and names."""
    names = ("n_features_in_", "feature_names_in_")
    return {name: vars(estimator)[name] for name in names if name in vars(estimator)}


def scope_of(partition: ArrayLike) -> str:
    """Return what a certificate covers for members on such a partition.

    With a partition chosen independently of the rows each member keeps to its own columns, in training too.
    """
    if not isinstance(partition, str):
        return TRAINING_IF
    return TEST if partition == "learned" else TRAINING_TOO
