"""to_onnx: a fitted model as an ONNX graph, in double precision like the model itself."""

from __future__ import annotations

import re
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from exclusivity._typing import Bools
from exclusivity.additive import RobustAdditiveClassifier
from exclusivity.additive.certificates import _SLACKS as SLACKS
from exclusivity.additive.levels import ColumnLevels
from exclusivity.classifier._fitted import Ensemble, FittedState
from exclusivity.io._onnx_graph import GraphWriter
from exclusivity.io.models import packed_file
from exclusivity.tables import (
    DateCode,
    InteractionFeatures,
    KernelMap,
    LevelCode,
    NumberCode,
    TableColumn,
    TableEncoder,
)
from exclusivity.voting._changes import group_supports
from exclusivity.voting.rules import RULES

_INPUT_TYPES = ("float32", "float64")
_NO_MOMENT = np.iinfo(np.int64).min
_DAY = 24 * 60 * 60 * 10**6
_DAYS_TO_1970 = 719468
"""Since the first of March of the year 0."""
_RESERVED = re.compile(r"label|scores|X|v\d+")


def to_onnx(model: BaseEstimator, *, input_type: str | None = None) -> Any:
    """Turn a fitted model into an ONNX graph.

    The graph has the input ``X`` of shape (rows, features) and the outputs ``label`` and ``scores``, which
    are ``predict`` and ``decision_function`` of the model; with ``loss="logistic"`` also ``probabilities``.
    Scores are summed in float64, as in the model: labels agree wherever the scores of the best two classes
    differ by more than the rounding of such sums.

    Of a pipeline that begins with a :class:`~exclusivity.tables.TableEncoder` the graph takes raw rows: X,
    where all columns are numbers, else one input of shape (rows, 1) for every column that the encoder uses,
    under the column's name (``input_`` in front of it where that is X, label, scores or v0, v1, ...). Missing
    numbers are NaN. Categories are texts ("3" and "True" for what was a number or a boolean), an empty text
    is a missing value. Dates are int64, microseconds since 1970 from the year 0 on, the smallest integer
    where missing: ``moments.astype("datetime64[us]").view("int64")``. A
    :class:`~exclusivity.additive.RobustAdditiveClassifier` has the same inputs, and the output ``radius``
    besides, which is ``certify``.

    Parameters
    ----------
    model : ERMClassifier, ERMClassifierCV, RobustAdditiveClassifier or Pipeline
        What ``save_model`` takes; any voting, two or more classes, one-vs-rest or one-vs-one.
    input_type : {"float32", "float64"}, optional
        The type of X; by default that of the weights, which is the type of the training data, and float64 for
        raw rows.

    Returns
    -------
    graph : onnx.ModelProto
        Write it with ``onnx.save(graph, "model.onnx")``.

    Notes
    -----
    A graph does not check its input: where the model refuses a row (NaN, infinity, or a value that a scaler
    makes infinite), it computes something. Under hard and run-off voting such a value still reaches only the
    members that use its column: by the time it reaches them NaN counts as zero, and infinity as the largest
    number. So the radius that ``certify`` gives for a row holds for the label of the graph, too, whatever so
    many columns of the row are changed to. Soft voting has no certificates; its scores become NaN or
    infinite.

    Examples
    --------
    >>> from exclusivity import ERMClassifier
    >>> from exclusivity.io import to_onnx
    >>> graph = to_onnx(ERMClassifier(3).fit([[0.0], [1.0]], ["low", "high"]))
    >>> [output.name for output in graph.graph.output]
    ['label', 'scores']
    """
    if input_type is not None and input_type not in _INPUT_TYPES:
        raise ValueError(f"input_type must be one of {_INPUT_TYPES}, or None; got {input_type!r}.")
    packed_file(model)  # what cannot be saved cannot be exported, for the same reasons
    *before, classifier = [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]
    before = [step for step in before if isinstance(step, BaseEstimator)]
    if isinstance(classifier, RobustAdditiveClassifier):
        if before:
            raise ValueError("a RobustAdditiveClassifier is exported alone: it encodes its columns itself.")
        return _additive_graph(classifier, np.dtype(input_type or np.float64))
    state = FittedState.of(classifier)
    score_type = state.ensemble.weights.dtype
    is_raw = any(isinstance(step, TableEncoder) for step in before)
    dtype = np.dtype(input_type or (np.float64 if is_raw else score_type))
    inputs = _inputs(before, dtype, state.n_features)
    graph = GraphWriter()
    rows = Rows(graph, "X", dtype)
    for step in before:
        rows.missing = None
        _WRITERS[type(step).__name__](rows, step)
    rule, n_classes = RULES[classifier.voting], len(state.classes)
    ensemble = state.ensemble.voters() if rule.counts_votes else state.ensemble.mean()
    margins = _margins(graph, rows.wide, ensemble, rule.counts_votes)
    present = _present(rows, ensemble.supports) if rule.counts_votes else None
    scores = rule.decide(margins, n_classes, state.multi_class, ensemble.copies, TENSORS, present)
    graph.cast(scores.name, score_type, output="scores")
    _write_label(graph, state.classes, score_type)
    if hasattr(classifier, "predict_proba"):
        _write_probabilities(graph, n_classes)
    return graph.model(inputs, _outputs(classifier, score_type))


def _outputs(model: BaseEstimator, score_type: DTypeLike) -> dict[str, Any]:
    """Return the types and shapes of all outputs."""
    n_classes = len(model.classes_)
    shape = ["rows"] if n_classes == 2 else ["rows", n_classes]
    outputs = {"label": (model.classes_.dtype, ["rows"]), "scores": (score_type, shape)}
    if isinstance(model, RobustAdditiveClassifier):
        outputs["radius"] = (np.int64, ["rows"])
    if hasattr(model, "predict_proba"):
        outputs["probabilities"] = (score_type, ["rows", n_classes])
    return outputs


def _moments(graph: GraphWriter, name: str) -> tuple[str, str]:
    """Return microseconds since 1970, (rows, 1), 0 where the date is missing, and where that is so."""
    is_missing = graph.op("Equal", name, np.int64(_NO_MOMENT))
    return graph.op("Where", is_missing, np.int64(0), name), is_missing


class Rows:
    """The rows on their way through a pipeline, in the type of the input.

    Each operation is computed in float64 and then rounded to that type: for one addition, multiplication or
    division of float32 numbers this gives exactly the float32 result.
    """

    def __init__(self, graph: GraphWriter, name: str, dtype: np.dtype[Any]) -> None:
        self.graph, self.name, self.dtype = graph, name, dtype
        # Of an encoder right before: missing cells, and the groups of its columns and of its features.
        self.missing: tuple[str, NDArray[Any], NDArray[Any]] | None = None

    @property
    def wide(self) -> str:
        """The rows as float64."""
        return self.name if self.dtype == np.float64 else self.graph.cast(self.name, np.float64)

    def become(self, wide: str) -> None:
        """Go on with these numbers, rounded."""
        self.name = wide if self.dtype == np.float64 else self.graph.cast(wide, self.dtype)

    def apply(self, kind: str, *operands: Any) -> None:
        """Do one operation with constants."""
        self.become(self.graph.op(kind, self.wide, *(np.asarray(each, dtype=float) for each in operands)))


_SCALERS = {
    "StandardScaler": (("Sub", "mean_", "with_mean"), ("Div", "scale_", "with_std")),
    "MinMaxScaler": (("Mul", "scale_", ""), ("Add", "min_", "")),
    "MaxAbsScaler": (("Div", "scale_", ""),),
    "RobustScaler": (("Sub", "center_", "with_centering"), ("Div", "scale_", "with_scaling")),
}
"""The operations of each, the attribute that they need, and the parameter that switches them on."""


def _scale(rows: Rows, scaler: BaseEstimator) -> None:
    name = type(scaler).__name__
    for kind, attribute, flag in _SCALERS[name]:
        if not flag or getattr(scaler, flag):
            values = getattr(scaler, attribute)
            rows.apply(kind, values.astype(rows.dtype) if name == "StandardScaler" else values)
    if getattr(scaler, "clip", False):
        rows.apply("Clip", *getattr(scaler, "feature_range", (-1.0, 1.0)))


def _takes_one_array(encoder: TableEncoder) -> bool:
    """Tell whether all columns are numbers, so that rows can be one tensor."""
    return all(column.kind == "number" for column in encoder.columns_)


def _input_name(column: TableColumn | ColumnLevels) -> str:
    return f"input_{column.name}" if _RESERVED.fullmatch(column.name) else column.name


def _inputs(before: list[BaseEstimator], dtype: np.dtype[Any], n_features: int) -> dict[str, Any]:
    """Return the inputs of the graph, their types and shapes: X, or each column of a table that is used."""
    encoders = [step for step in before if isinstance(step, TableEncoder)]
    if all(map(_takes_one_array, encoders)):
        return {"X": (dtype, ["rows", before[0].n_features_in_ if before else n_features])}
    if encoders[0] is not before[0]:
        raise ValueError(
            "a TableEncoder of categories has to be the first step of a pipeline that is exported: a graph "
            "has no way from numbers to categories."
        )
    used = [column for column in encoders[0].columns_ if column.code is not None]
    types = {"number": dtype, "date": np.int64, "category": object}
    return {_input_name(each): (types[each.kind], ["rows", 1]) for each in used}


def _encoder(rows: Rows, encoder: TableEncoder) -> None:
    graph, is_array = rows.graph, _takes_one_array(encoder)
    used = [place for place, column in enumerate(encoder.columns_) if column.code is not None]
    parts, missing = [], []
    for place in used:
        column = encoder.columns_[place]
        name = graph.op("Gather", rows.name, np.array([place]), axis=1) if is_array else _input_name(column)
        parts.append(_column(graph, name, column))
        if column.kind == "number":
            missing.append(graph.cast(graph.op("IsNaN", graph.cast(name, np.float64)), np.float64))
        elif column.kind == "date":
            missing.append(graph.cast(_moments(graph, name)[1], np.float64))
        else:
            missing.append(_one_hot(graph, name, {"": 0}, 1))
    groups = encoder._groups()
    rows.missing = graph.op("Concat", *missing, axis=1), groups[used], groups[encoder.sources_]
    rows.dtype = np.dtype(encoder.dtype)
    rows.become(graph.op("Concat", *parts, axis=1))


def _column(graph: GraphWriter, name: str, column: TableColumn) -> str:
    """Return the output columns of one input column, (rows, width) in float64; an empty text is missing."""
    code = column.code
    if isinstance(code, LevelCode):
        places = code.places | ({"": code.width - 1} if code.has_missing else {})
        return _one_hot(graph, name, places, code.width)
    if isinstance(code, NumberCode):
        return _number(graph, graph.cast(name, np.float64), code)
    if column.kind == "date":
        return _date(graph, name, code)
    if column.kind == "number":  # nothing but missing values counts
        return graph.cast(graph.op("IsNaN", graph.cast(name, np.float64)), np.float64)
    return _one_hot(graph, name, {"": 0}, 1)


def _one_hot(graph: GraphWriter, name: str, places: dict[str, int], width: int) -> str:
    number = graph.labels(name, places, -1)
    return graph.cast(graph.op("Equal", number, np.arange(width)), np.float64)


def _date(graph: GraphWriter, name: str, code: Any) -> str:
    """Return the output columns of a date; of missing values, those that the code of missing parts has."""
    name, is_missing = _moments(graph, name)
    if not isinstance(code, DateCode):  # nothing but missing values counts
        return graph.cast(is_missing, np.float64)
    found = _date_parts(Tensor(graph, name, np.int64))
    parts = [_part(graph, found[part].name, is_missing, own) for part, own in code.parts]
    indicator = [graph.cast(is_missing, np.float64)] if code.has_missing else []
    return graph.op("Concat", *parts, *indicator, axis=1)


def _date_parts(moment: Tensor) -> dict[str, Tensor]:
    """Return the parts of microseconds since 1970; years begin in March, so that leap days come last."""
    moment = moment + _DAYS_TO_1970 * _DAY
    days = moment // _DAY
    cycle = days // 146097  # of 400 years
    day = days - cycle * 146097
    year = (day - day // 1460 + day // 36524 - day // 146096) // 365
    day = day - (year * 365 + year // 4 - year // 100)
    month = (day * 5 + 2) // 153
    later = month // 10  # January and February
    return {
        "year": year + cycle * 400 + later,
        "month": month + 3 - later * 12,
        "weekday": days + 3 - (days + 2) // 7 * 7,
        "hour": (moment - days * _DAY) / 3.6e9,
    }


def _part(graph: GraphWriter, name: str, is_missing: str, code: NumberCode | LevelCode) -> str:
    """Return the output columns of a part of a date."""
    if isinstance(code, NumberCode):
        return _number(graph, graph.op("Where", is_missing, np.nan, graph.cast(name, np.float64)), code)
    levels = np.array([*map(int, code.levels)])
    is_level = graph.op("And", graph.op("Equal", name, levels), graph.op("Not", is_missing))
    return graph.cast(is_level, np.float64)


def _number(graph: GraphWriter, name: str, code: NumberCode) -> str:
    gaps = graph.op("IsNaN", name)
    value = graph.op("Clip", graph.op("Where", gaps, code.low, name), code.low, code.high)
    value = graph.op("Sub", graph.op("Div", value, code.scale), code.mean / code.scale)
    value = graph.op("Where", gaps, code.fill, value)
    parts = [value]
    if len(code.knots):
        parts.append(_curve(graph, value, code))
    if code.has_missing:
        parts.append(graph.cast(gaps, np.float64))
    return graph.op("Concat", *parts, axis=1)


def _curve(graph: GraphWriter, value: str, code: NumberCode) -> str:
    """Ramp t_j is how far the value is from knot j to the next, within 0 and 1; hat j is t_(j-1) - t_j."""
    knots = code.knots
    share = graph.op("Clip", graph.op("Div", graph.op("Sub", value, knots[:-1]), np.diff(knots)), 0.0, 1.0)
    if code.is_ramp:
        return share
    n_knots = len(knots)
    steps = np.eye(n_knots - 1, n_knots, k=1) - np.eye(n_knots - 1, n_knots)
    return graph.op("Add", graph.op("MatMul", share, steps), np.eye(1, n_knots))


def _interactions(rows: Rows, step: InteractionFeatures) -> None:
    graph, wide = rows.graph, rows.wide
    rows.become(graph.op("Concat", *(_member(graph, wide, learned) for learned in step.maps_), axis=1))


def _member(graph: GraphWriter, rows: str, learned: KernelMap) -> str:
    """Do what ``KernelMap.features`` does, operation by operation."""
    landmarks = learned.landmarks
    middle = landmarks.mean(axis=0)
    centred = landmarks - middle
    own = graph.op("Gather", rows, learned.columns.astype(np.int64), axis=1)
    own = graph.op("Min", graph.op("Max", own, landmarks.min(axis=0)), landmarks.max(axis=0))
    own = graph.op("Sub", own, middle)
    lengths = graph.reduce("Sum", graph.op("Mul", own, own), 1, keepdims=1)
    squares = graph.op("Add", lengths, np.sum(centred**2, axis=1))
    squares = graph.op("Max", graph.op("Add", squares, graph.op("MatMul", own, -2 * centred.T)), 0.0)
    return graph.op("MatMul", graph.op("Exp", graph.op("Mul", squares, -learned.decay)), learned.mixing)


_WRITERS = {"TableEncoder": _encoder, "InteractionFeatures": _interactions, **dict.fromkeys(_SCALERS, _scale)}


def _margins(graph: GraphWriter, rows: str, ensemble: Ensemble, counts_votes: bool) -> Tensor:
    """Return the scores of members, (rows, problems, members), as ``Ensemble.scores`` does.

    A product adds 0 * x for a column that a member does not use, which is NaN for NaN and infinity: members
    that vote get finite rows, so that each one depends on its own columns only.
    """
    if counts_votes:
        numbers, largest = graph.op("Where", graph.op("IsNaN", rows), 0.0, rows), float(np.finfo(float).max)
        rows = graph.op("Clip", numbers, -largest, largest)
    n_problems, n_members, n_features = ensemble.weights.shape
    flat = graph.op("MatMul", rows, ensemble.weights.astype(float).reshape(-1, n_features).T)
    flat = graph.op("Add", flat, ensemble.intercepts.astype(float).reshape(-1))
    margins = graph.op("Reshape", flat, np.array([-1, n_problems, n_members]))
    return Tensor(graph, margins, np.float64)


def _present(rows: Rows, supports: Bools) -> Tensor | None:
    """Return 1 for members with a value in a row and 0 for others, (rows, members); 1 where none has any."""
    if rows.missing is None:
        return None
    graph, (missing, of_columns, of_features) = rows.graph, rows.missing
    uses = group_supports(supports, of_features)[:, of_columns].astype(float)
    lacks = graph.op("Equal", graph.op("MatMul", missing, uses.T), uses.sum(axis=1))
    votes = graph.op("Sub", np.int64(1), graph.cast(lacks, np.int64))
    nobody = graph.op("Sub", np.int64(1), graph.reduce("Max", votes, 1, keepdims=1))
    return Tensor(graph, graph.op("Max", votes, nobody), np.int64)


def _write_label(graph: GraphWriter, classes: NDArray[Any], score_type: DTypeLike) -> str:
    """Write the output ``label`` from ``scores``; return the numbers of the classes."""
    if len(classes) == 2:
        chosen = graph.cast(graph.op("Greater", "scores", np.zeros((), dtype=score_type)), np.int64)
    else:
        chosen = graph.op("ArgMax", "scores", axis=1, keepdims=0)
    graph.op(
        "Gather", classes.astype(object) if classes.dtype.kind == "U" else classes, chosen, output="label"
    )
    return chosen


def _write_probabilities(graph: GraphWriter, n_classes: int) -> None:
    """Write ``predict_proba`` from the output ``scores``."""
    if n_classes == 2:
        column = graph.expand("scores", 1)
        both = graph.op("Concat", graph.op("Neg", column), column, axis=1)
        graph.op("Sigmoid", both, output="probabilities")
        return
    odds = graph.op("Sigmoid", "scores")
    graph.op("Div", odds, graph.reduce("Sum", odds, 1, keepdims=1), output="probabilities")


class Tensor:
    """A value of a graph, with the operators of numpy that voting rules use; ``TENSORS`` has the functions.

    Numbers are of type bool, int64 or float64. Two values of different types get the wider one.
    """

    __array_ufunc__ = None  # numpy leaves operators to this class
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, graph: GraphWriter, name: str, dtype: DTypeLike) -> None:
        self.graph, self.name, self.dtype = graph, name, np.dtype(dtype)

    def astype(self, dtype: DTypeLike) -> Tensor:
        """Return the same numbers in another type."""
        same = self.dtype == np.dtype(dtype)
        return self if same else Tensor(self.graph, self.graph.cast(self.name, dtype), dtype)

    def apply(
        self, kind: str, *others: Any, dtype: DTypeLike | None = None, first: bool = True, **attributes: Any
    ) -> Tensor:
        """Return an operation on this value and others, tensors or constants, in their common type."""
        values = [self, *others] if first else [*others, self]
        wide = np.result_type(
            *(each.dtype if isinstance(each, Tensor) else np.asarray(each) for each in values)
        )
        names = [
            each.astype(wide).name if isinstance(each, Tensor) else np.asarray(each, dtype=wide)
            for each in values
        ]
        return Tensor(self.graph, self.graph.op(kind, *names, **attributes), wide if dtype is None else dtype)

    def __add__(self, other: Any) -> Tensor:
        return self.apply("Add", other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Tensor:
        return self.apply("Sub", other)

    def __rsub__(self, other: Any) -> Tensor:
        return self.apply("Sub", other, first=False)

    def __mul__(self, other: Any) -> Tensor:
        return self.apply("Mul", other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Tensor:
        return self.astype(np.float64).apply("Div", other)

    def __floordiv__(self, other: int) -> Tensor:
        return self.apply("Div", other)  # of integers that are not negative

    def __gt__(self, other: Any) -> Tensor:
        return self.apply("Greater", other, dtype=bool)

    def __ge__(self, other: Any) -> Tensor:
        return self.apply("GreaterOrEqual", other, dtype=bool)

    def __eq__(self, other: object) -> Tensor:  # type: ignore[override]
        return self.apply("Equal", other, dtype=bool)


def _reduced(how: str, value: Tensor, axis: int, keepdims: bool = False) -> Tensor:
    value = value.astype(np.int64) if value.dtype == bool else value
    return Tensor(value.graph, value.graph.reduce(how, value.name, axis, int(keepdims)), value.dtype)


def _where(condition: Tensor, value: Any, other: Any) -> Tensor:
    wide = np.result_type(
        *(each.dtype if isinstance(each, Tensor) else np.float64 for each in (value, other))
    )
    names = [
        each.astype(wide).name if isinstance(each, Tensor) else np.asarray(each, dtype=wide)
        for each in (value, other)
    ]
    return Tensor(condition.graph, condition.graph.op("Where", condition.name, *names), wide)


def _take(value: Tensor, indices: Any, axis: int) -> Tensor:
    places = np.asarray(indices, dtype=np.int64)
    return Tensor(value.graph, value.graph.op("Gather", value.name, places, axis=axis), value.dtype)


def _take_along_axis(value: Tensor, indices: Tensor, axis: int) -> Tensor:
    """Return one slice of each row along the axis 1; every row has one number in ``indices``."""
    places = value.graph.op("Reshape", indices.name, np.array([-1, 1]))
    taken = value.graph.op("GatherND", value.name, places, batch_dims=1)
    return _expand_dims(Tensor(value.graph, taken, value.dtype), axis)


def _expand_dims(value: Tensor, axis: int) -> Tensor:
    return Tensor(value.graph, value.graph.expand(value.name, axis), value.dtype)


def _squeeze(value: Tensor, axis: int) -> Tensor:
    return Tensor(value.graph, value.graph.op("Squeeze", value.name, np.array([axis])), value.dtype)


TENSORS = SimpleNamespace(
    sum=partial(_reduced, "Sum"),
    mean=lambda value, axis: _reduced("Mean", value.astype(np.float64), axis),
    max=partial(_reduced, "Max"),
    argmax=lambda value, axis: value.apply("ArgMax", dtype=np.int64, axis=axis, keepdims=0),
    abs=lambda value: value.apply("Abs"),
    isnan=lambda value: value.apply("IsNaN", dtype=bool),
    clip=lambda value, low, high: value.apply("Clip", low, high),
    minimum=lambda value, other: value.apply("Min", other),
    maximum=lambda value, other: value.apply("Max", other),
    where=_where,
    take=_take,
    take_along_axis=_take_along_axis,
    expand_dims=_expand_dims,
    squeeze=_squeeze,
)
"""The functions of numpy that voting rules use, on tensors: the ``xp`` of ``VotingRule.decide``."""


def _additive_graph(model: RobustAdditiveClassifier, dtype: np.dtype[Any]) -> Any:
    """Return the graph of an additive model: labels, scores and radii, perhaps probabilities."""
    graph, columns, starts = GraphWriter(), model.columns_, model._levels.starts
    numbers = [place for place, column in enumerate(columns) if column.kind != "category"]
    others = [place for place, column in enumerate(columns) if column.kind == "category"]
    points = np.append(model.points_.T, np.zeros((1, len(model.points_))), axis=0)
    is_array = all(column.kind == "number" for column in columns)
    found, lefts = [], []
    if numbers:
        cells = "X"
        if not is_array:
            cells = graph.op("Concat", *(_numbers(graph, columns[place]) for place in numbers), axis=1)
        cells = graph.cast(cells, np.float64)
        left, share = _between_knots(graph, cells, [columns[place] for place in numbers], starts[numbers])
        first, second = (graph.op("Gather", points, at) for at in (left, graph.op("Add", left, np.int64(1))))
        change = graph.op("Mul", graph.expand(share, 2), graph.op("Sub", second, first))
        found.append(graph.op("Add", first, change))
        is_inside = graph.cast(graph.op("Greater", share, 0.0), np.int64)
        shifted = model._reach.shifted[numbers].astype(np.int64)
        lefts.append(graph.op("Add", left, graph.op("Mul", is_inside, shifted)))
    for place in others:
        lefts.append(_level(graph, columns[place], int(starts[place])))
        found.append(graph.op("Gather", points, lefts[-1]))
    contributions = graph.op("Concat", *found, axis=1)  # (rows, columns, duels)
    leads = graph.op("Add", graph.reduce("Sum", contributions, 1), model.intercept_)
    by_class = partial(_by_class, graph, np.array(model._duels.pairs), len(model.classes_))
    if len(model.classes_) == 2:
        graph.op("Squeeze", leads, np.array([1]), output="scores")
    else:
        graph.reduce("Min", by_class(leads), 2, output="scores")
    winner = _write_label(graph, model.classes_, np.float64)
    groups = model.feature_groups_[numbers + others]
    _write_radius(graph, model, leads, winner, contributions, graph.op("Concat", *lefts, axis=1), groups)
    if hasattr(model, "predict_proba"):
        odds = graph.op("Exp", graph.op("Neg", by_class(graph.op("Clip", leads, -700.0, 700.0))))
        inverse = graph.op("Add", graph.reduce("Sum", graph.op("Add", odds, 1.0), 2), 2.0)
        share = graph.op("Div", 1.0, graph.op("Sub", inverse, float(len(model.classes_))))
        graph.op("Div", share, graph.reduce("Sum", share, 1, keepdims=1), output="probabilities")
    types = {"number": dtype, "date": np.int64, "category": object}
    inputs = {_input_name(column): (types[column.kind], ["rows", 1]) for column in columns}
    inputs = {"X": (dtype, ["rows", len(columns)])} if is_array else inputs
    return graph.model(inputs, _outputs(model, np.float64))


def _numbers(graph: GraphWriter, column: ColumnLevels) -> str:
    """Return the input of a column of numbers or dates in float64, NaN where missing."""
    if column.kind == "number":
        return graph.cast(_input_name(column), np.float64)
    moments, is_missing = _moments(graph, _input_name(column))
    return graph.op("Where", is_missing, np.nan, graph.cast(moments, np.float64))


def _level(graph: GraphWriter, column: ColumnLevels, start: int) -> str:
    """Return the point of each cell of a category, (rows, 1); an empty text is a missing value."""
    places = {text: start + place for place, text in enumerate(column.categories)}
    places[""] = start + column.n_points - 1
    other = start + len(column.categories) if column.rare else places[""]
    return graph.labels(_input_name(column), places, other)


def _between_knots(
    graph: GraphWriter, cells: str, columns: list[ColumnLevels], starts: NDArray[Any]
) -> tuple[str, str]:
    """Return the left point of every cell, (rows, columns), and the weight of the point to its right."""
    has_knots = np.array([len(column.knots) > 0 for column in columns])
    n_steps = max(len(column.knots) for column in columns).bit_length()
    grid = np.full((len(columns), 1 << n_steps), np.inf)
    for row, column in zip(grid, columns, strict=True):
        row[: len(column.knots)] = column.knots
    low = np.where(has_knots, grid[:, 0], 0.0)
    high = np.array([column.knots[-1] if len(column.knots) else 0.0 for column in columns])
    is_missing = graph.op("Or", graph.op("IsNaN", cells), ~has_knots)
    cells = graph.op("Min", graph.op("Max", graph.op("Where", is_missing, low, cells), low), high)
    firsts = np.arange(len(columns), dtype=np.int64) << n_steps
    at = graph.op("Add", graph.op("Mul", graph.cast(is_missing, np.int64), np.int64(0)), firsts)
    for step in reversed(range(n_steps)):  # a binary search in all columns at once
        after = graph.op("Add", at, np.int64(1 << step))
        is_beyond = graph.op("GreaterOrEqual", cells, graph.op("Gather", grid.ravel(), after))
        at = graph.op("Where", is_beyond, after, at)
    half = np.where(np.isfinite(grid), grid, 0.0) / 2  # because the difference of two knots may overflow
    width = np.diff(half, axis=1, append=np.inf)
    width[~(width > 0)] = np.inf
    above = graph.op("Sub", graph.op("Mul", cells, 0.5), graph.op("Gather", half.ravel(), at))
    share = graph.op("Div", above, graph.op("Gather", width.ravel(), at))
    ends = starts + [column.n_points - 1 for column in columns]
    left = graph.op("Where", is_missing, ends, graph.op("Add", at, starts - firsts))
    return left, graph.op("Where", is_missing, 0.0, share)


def _by_class(graph: GraphWriter, pairs: NDArray[Any], n_classes: int, leads: str) -> str:
    """Return the leads of each class in its duels, (rows, classes, duels of a class)."""
    own = np.array([np.flatnonzero((pairs == place).any(axis=1)) for place in range(n_classes)])
    signs = np.where(pairs[own, 1] == np.arange(n_classes)[:, None], 1.0, -1.0)
    return graph.op("Mul", graph.op("Gather", leads, own, axis=1), signs)


def _write_radius(
    graph: GraphWriter,
    model: RobustAdditiveClassifier,
    leads: str,
    winner: str,
    contributions: str,
    lefts: str,
    groups: NDArray[Any],
) -> None:
    """Count the largest damages that fit into the lead of the winner of each duel, less four slacks."""
    most = np.int64(model._adversary.n_breakable)
    slack = SLACKS * model._duels.slacks
    first, second = np.array(model._duels.pairs).T
    column = graph.expand(winner, 1)
    wins_second = graph.op("Equal", column, second)
    takes_part = graph.op("Or", wins_second, graph.op("Equal", column, first))
    margin = graph.op("Where", wins_second, leads, graph.op("Neg", leads))
    # What the adversary can make of a cell: the least and the most, infinite where it stays as it is.
    low, high = (
        graph.op("Gather", np.array(end)[:, model._reach.of_point].T, lefts)
        for end in zip(*model._adversary._ends, strict=True)
    )
    changes = graph.op("Sub", contributions, low), graph.op("Sub", high, contributions)
    damages = graph.op("Max", graph.op("Where", graph.expand(wins_second, 1), *changes), 0.0)
    if len(np.unique(groups)) < len(groups):
        damages = graph.op("MatMul", (np.unique(groups)[:, None] == groups).astype(float), damages)
    ordered = graph.op("TopK", damages, np.array([len(np.unique(groups))]), axis=1)
    room = graph.op("Sub", margin, slack)
    fits = graph.op("Less", graph.op("CumSum", ordered, np.int64(1)), graph.expand(room, 1))
    radius = graph.op("Min", graph.reduce("Sum", graph.cast(fits, np.int64), 1), most)
    radius = graph.op("Where", graph.op("Greater", room, 0.0), radius, np.int64(-1))
    graph.reduce("Min", graph.op("Where", takes_part, radius, most), 1, output="radius")
