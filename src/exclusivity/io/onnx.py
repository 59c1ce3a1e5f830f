"""to_onnx: a fitted model as an ONNX graph, in double precision like the model itself.

Graphs are written in the operators of numpy: a ``Tensor`` is a value of a graph, and ``xp`` has functions of
them, also for ``VotingRule.decide``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from exclusivity import __version__
from exclusivity._typing import Bools
from exclusivity.additive import RobustAdditiveClassifier
from exclusivity.additive.certificates import _SLACKS as SLACKS
from exclusivity.additive.levels import ColumnLevels
from exclusivity.classifier._ensemble import Ensemble, FittedState
from exclusivity.io._reading import import_extra
from exclusivity.io.models import packed_file
from exclusivity.tables._codes import DateCode, LevelCode, NumberCode, places_of_texts
from exclusivity.tables._encoder import TableColumn, TableEncoder
from exclusivity.voting._changes import group_supports
from exclusivity.voting.rules import RULES

OPSET = 18
OPSET_OF_TEXTS = 3
"""Of the domain ai.onnx.ml, where texts become numbers."""
IR_VERSION = 8

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
    graph = Graph()
    if isinstance(classifier, RobustAdditiveClassifier):
        if before:
            raise ValueError("a RobustAdditiveClassifier is exported alone: it encodes its columns itself.")
        _write_additive(graph, classifier, np.dtype(input_type or np.float64))
        return graph.model()
    state = FittedState.of(classifier)
    encoders = [step for step in before if isinstance(step, TableEncoder)]
    columns = encoders[0].columns_ if encoders else ()
    if not _are_numbers(columns) and encoders[0] is not before[0]:
        raise ValueError(
            "a TableEncoder of categories has to be the first step of a pipeline that is exported: a graph "
            "has no way from numbers to categories."
        )
    score_type = state.ensemble.weights.dtype
    dtype = np.dtype(input_type or (np.float64 if encoders else score_type))
    inputs = graph.inputs(columns, before[0].n_features_in_ if before else state.n_features, dtype)
    rows, missing = inputs.get("X", Tensor(graph, "", dtype)), None
    for step in before:
        missing = None
        if isinstance(step, TableEncoder):
            rows, missing = _encode(rows, step, inputs)
        else:
            rows = _scale(rows, step)
    rule, n_classes = RULES[classifier.voting], len(state.classes)
    ensemble = state.ensemble.voters() if rule.counts_votes else state.ensemble.mean()
    margins = _margins(rows.astype(np.float64), ensemble, rule.counts_votes)
    present = _present(missing, ensemble.supports) if rule.counts_votes and missing is not None else None
    scores = rule.decide(margins, n_classes, state.multi_class, ensemble.copies, xp, present)
    scores = scores.astype(score_type)
    _write_label(graph, scores, state.classes)
    if hasattr(classifier, "predict_proba"):
        if n_classes == 2:
            column = xp.expand_dims(scores, 1)
            share = xp.concat([-column, column]).apply("Sigmoid")
        else:
            odds = scores.apply("Sigmoid")
            share = odds.apply("Div", xp.sum(odds, 1, keepdims=True))
        graph.output("probabilities", share, n_classes)
    return graph.model()


class Graph:
    """The nodes, constants, inputs and outputs of a graph that is being written."""

    def __init__(self) -> None:
        self.onnx = import_extra("onnx", "to_onnx", "onnx")
        self._nodes: list[Any] = []
        self._constants: dict[Any, Any] = {}
        self._described: tuple[list[Any], list[Any]] = ([], [])  # inputs and outputs
        self._count = 0

    def op(
        self, kind: str, *operands: Any, dtype: DTypeLike, output: str = "", **attributes: object
    ) -> Tensor:
        """Return the (first) result of an operation of the ONNX standard; what is no tensor is constant."""
        names = [each.name if isinstance(each, Tensor) else self._constant(each) for each in operands]
        output = output or self._name()
        others = [self._name()] if kind == "TopK" else []  # the places of the largest, which are not needed
        self._nodes.append(self.onnx.helper.make_node(kind, names, [output, *others], **attributes))
        return Tensor(self, output, dtype)

    def tensor_type(self, dtype: DTypeLike) -> int:
        """Return ONNX's number for a numpy type; texts are strings."""
        dtype = np.dtype(dtype)
        if dtype.kind in "UO":
            return int(self.onnx.TensorProto.STRING)
        return int(self.onnx.helper.np_dtype_to_tensor_dtype(dtype))

    def inputs(
        self, columns: Sequence[TableColumn | ColumnLevels], width: int, dtype: np.dtype[Any]
    ) -> dict[str, Tensor]:
        """Return the inputs: X where all columns are numbers, else each column that is used, (rows, 1)."""
        types: dict[str, Any] = {"number": dtype, "date": np.int64, "category": object}
        used = [column for column in columns if getattr(column, "code", column) is not None]
        found = {_input_name(column): types[column.kind] for column in used}
        if _are_numbers(columns):
            found = {"X": dtype}
        else:
            width = 1
        return {name: self._describe(0, Tensor(self, name, kind), width) for name, kind in found.items()}

    def output(self, name: str, value: Tensor, *shape: int) -> None:
        """Make a value of some shape, besides rows, an output."""
        self._describe(1, self.op("Identity", value, dtype=value.dtype, output=name), *shape)

    def _describe(self, role: int, value: Tensor, *shape: int) -> Tensor:
        kind = self.tensor_type(value.dtype)
        info = self.onnx.helper.make_tensor_value_info(value.name, kind, ["rows", *shape])
        self._described[role].append(info)
        return value

    def model(self) -> Any:
        """Return the finished and checked model."""
        helper = self.onnx.helper
        domains = {"": OPSET, **{node.domain: OPSET_OF_TEXTS for node in self._nodes if node.domain}}
        constants = list(self._constants.values())
        model = helper.make_model(
            helper.make_graph(self._nodes, "exclusivity", *self._described, constants),
            producer_name="exclusivity",
            producer_version=__version__,
            opset_imports=[helper.make_opsetid(*pair) for pair in domains.items()],
            ir_version=IR_VERSION,
        )
        self.onnx.checker.check_model(model)
        return model

    def _constant(self, values: Any) -> str:
        values = np.asarray(values, order="C")
        content = tuple(values.flat) if values.dtype.kind == "O" else values.tobytes()
        key = values.dtype.str, values.shape, content  # equal constants are stored once
        if key not in self._constants:
            self._constants[key] = self.onnx.numpy_helper.from_array(values, self._name())
        return str(self._constants[key].name)

    def _name(self) -> str:
        self._count += 1
        return f"v{self._count - 1}"


def _operator(kind: str, **how: Any) -> Callable[..., Tensor]:
    """Return an operator that writes an operation."""
    return lambda self, *other: self.apply(kind, *other, **how)


class Tensor:
    """A value of a graph, with the operators of numpy.

    Numbers are of type bool, int64 or float64, and those of inputs and outputs perhaps float32. Two values of
    different types get the wider one.
    """

    __array_ufunc__ = None  # numpy leaves operators to this class
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, graph: Graph, name: str, dtype: DTypeLike) -> None:
        self.graph, self.name, self.dtype = graph, name, np.dtype(dtype)

    def astype(self, dtype: DTypeLike) -> Tensor:
        """Return the same numbers in another type."""
        if self.dtype == np.dtype(dtype):
            return self
        return self.graph.op("Cast", self, dtype=dtype, to=self.graph.tensor_type(dtype))

    def op(self, kind: str, *others: Any, dtype: DTypeLike | None = None, **attributes: Any) -> Tensor:
        """Return an operation on this value and others as they are, by default of this type."""
        return self.graph.op(kind, self, *others, dtype=self.dtype if dtype is None else dtype, **attributes)

    def apply(self, kind: str, *others: Any, dtype: DTypeLike | None = None, first: bool = True) -> Tensor:
        """Return an operation on this value and others in their common type."""
        values, wide = _in_one_type(*((self, *others) if first else (*others, self)))
        return self.graph.op(kind, *values, dtype=wide if dtype is None else dtype)

    def __truediv__(self, other: Any) -> Tensor:
        return self.astype(np.float64).apply("Div", other)

    __neg__, __invert__ = _operator("Neg"), _operator("Not")
    __or__, __and__ = _operator("Or"), _operator("And")
    __add__ = __radd__ = _operator("Add")
    __mul__ = __rmul__ = _operator("Mul")
    __sub__, __rsub__ = _operator("Sub"), _operator("Sub", first=False)
    __matmul__, __rmatmul__ = _operator("MatMul"), _operator("MatMul", first=False)
    __floordiv__ = _operator("Div")  # of integers that are not negative
    __gt__, __lt__ = _operator("Greater", dtype=bool), _operator("Less", dtype=bool)
    __ge__ = _operator("GreaterOrEqual", dtype=bool)
    __eq__ = _operator("Equal", dtype=bool)  # type: ignore[assignment]


def _in_one_type(*values: Any) -> tuple[list[Any], np.dtype[Any]]:
    """Return tensors and constants in their common type, and that type."""
    wide = np.result_type(*(each.dtype if isinstance(each, Tensor) else np.asarray(each) for each in values))
    same = [
        each.astype(wide) if isinstance(each, Tensor) else np.asarray(each, dtype=wide) for each in values
    ]
    return same, wide


def _reduce(how: str, value: Tensor, axis: int, keepdims: bool = False) -> Tensor:
    value = value.astype(np.int64) if value.dtype == bool else value
    return value.op(f"Reduce{how}", np.array([axis]), keepdims=int(keepdims))


def _where(condition: Tensor, value: Any, other: Any) -> Tensor:
    values, wide = _in_one_type(value, other)
    return condition.op("Where", *values, dtype=wide)


def _take(value: Any, indices: Any, axis: int = 0) -> Tensor:
    """Return entries along an axis; of an array or at places that are themselves a tensor, too."""
    places: Any = indices if isinstance(indices, Tensor) else np.asarray(indices, dtype=np.int64)
    graph: Graph = (value if isinstance(value, Tensor) else places).graph
    return graph.op("Gather", value, places, dtype=value.dtype, axis=axis)


def _take_along_axis(value: Tensor, indices: Tensor, axis: int) -> Tensor:
    """Return one slice of each row along the axis 1; every row has one number in ``indices``."""
    places = indices.op("Reshape", np.array([-1, 1]))
    return value.op("GatherND", places, batch_dims=1).op("Unsqueeze", np.array([axis]))


def _concat(values: Sequence[Tensor]) -> Tensor:
    first, *others = values
    return first.op("Concat", *others, axis=1)


xp = SimpleNamespace(
    sum=partial(_reduce, "Sum"),
    mean=lambda value, axis: _reduce("Mean", value.astype(np.float64), axis),
    min=partial(_reduce, "Min"),
    max=partial(_reduce, "Max"),
    argmax=lambda value, axis: value.op("ArgMax", dtype=np.int64, axis=axis, keepdims=0),
    abs=lambda value: value.apply("Abs"),
    exp=lambda value: value.apply("Exp"),
    isnan=lambda value: value.op("IsNaN", dtype=bool),
    clip=lambda value, low, high: value.apply("Clip", low, high),
    minimum=lambda value, other: value.apply("Min", other),
    maximum=lambda value, other: value.apply("Max", other),
    where=_where,
    take=_take,
    take_along_axis=_take_along_axis,
    expand_dims=lambda value, axis: value.op("Unsqueeze", np.array([axis])),
    squeeze=lambda value, axis: value.op("Squeeze", np.array([axis])),
    concat=_concat,
)
"""Functions of numpy on tensors, also for ``VotingRule.decide``; ``concat`` is along the axis 1."""


def _write_label(graph: Graph, scores: Tensor, classes: NDArray[Any]) -> Tensor:
    """Write the outputs ``label`` and ``scores``; return the numbers of the classes."""
    is_binary = len(classes) == 2
    chosen = (scores > 0).astype(np.int64) if is_binary else xp.argmax(scores, axis=1)
    graph.output("label", xp.take(classes.astype(object) if classes.dtype.kind == "U" else classes, chosen))
    graph.output("scores", scores, *([] if is_binary else [len(classes)]))
    return chosen


_SCALERS = {
    "StandardScaler": (("Sub", "mean_", "with_mean"), ("Div", "scale_", "with_std")),
    "MinMaxScaler": (("Mul", "scale_", ""), ("Add", "min_", "")),
    "MaxAbsScaler": (("Div", "scale_", ""),),
    "RobustScaler": (("Sub", "center_", "with_centering"), ("Div", "scale_", "with_scaling")),
}
"""The operations of each, the attribute that they need, and the parameter that switches them on."""


def _scale(rows: Tensor, scaler: BaseEstimator) -> Tensor:
    """Return scaled rows. Each operation is computed in float64, then rounded to the type of the rows.

    For one addition, multiplication or division of float32 numbers this gives exactly the float32 result.
    """
    name, dtype = type(scaler).__name__, rows.dtype
    for kind, attribute, flag in _SCALERS[name]:
        if not flag or getattr(scaler, flag):
            values = getattr(scaler, attribute)
            values = values.astype(dtype) if name == "StandardScaler" else values
            rows = rows.astype(np.float64).apply(kind, values.astype(float)).astype(dtype)
    if getattr(scaler, "clip", False):
        low, high = getattr(scaler, "feature_range", (-1.0, 1.0))
        rows = xp.clip(rows.astype(np.float64), float(low), float(high)).astype(dtype)
    return rows


def _are_numbers(columns: Sequence[TableColumn | ColumnLevels]) -> bool:
    """Tell whether all columns are numbers, so that rows can be one tensor."""
    return all(column.kind == "number" for column in columns)


def _input_name(column: TableColumn | ColumnLevels) -> str:
    return f"input_{column.name}" if _RESERVED.fullmatch(column.name) else column.name


def _is_missing(cells: Tensor, kind: str) -> Tensor:
    if kind == "date":
        return cells == _NO_MOMENT
    return xp.isnan(cells.astype(np.float64)) if kind == "number" else _numbered(cells, {"": 0}, -1) == 0


def _numbered(texts: Tensor, numbers: dict[str, int], default: int) -> Tensor:
    """Return the numbers of texts."""
    table: dict[str, Any] = {"keys_strings": list(numbers), "values_int64s": list(numbers.values())}
    return texts.op("LabelEncoder", domain="ai.onnx.ml", default_int64=default, dtype=np.int64, **table)


_Missing = tuple[Tensor, NDArray[Any], NDArray[Any]]
"""Missing cells, and the groups of columns and of features."""


def _encode(rows: Tensor, encoder: TableEncoder, inputs: dict[str, Tensor]) -> tuple[Tensor, _Missing]:
    """Return what an encoder makes of rows, or of inputs of its own."""
    used = [place for place, column in enumerate(encoder.columns_) if column.code is not None]
    parts, missing = [], []
    for place in used:
        column = encoder.columns_[place]
        is_array = _are_numbers(encoder.columns_)
        cells = xp.take(rows, [place], axis=1) if is_array else inputs[_input_name(column)]
        parts.append(_code(cells, column))
        missing.append(_is_missing(cells, column.kind).astype(np.float64))
    groups = encoder._groups()
    found = xp.concat(missing), groups[used], groups[encoder.sources_]
    return _concat(parts).astype(np.dtype(encoder.dtype)), found


def _code(cells: Tensor, column: TableColumn) -> Tensor:
    """Return the output columns of one input column, (rows, width) in float64; an empty text is missing."""
    code = column.code
    if isinstance(code, NumberCode):
        return _number(cells.astype(np.float64), code)
    if isinstance(code, LevelCode):
        places = code.places | ({"": code.width - 1} if code.has_missing else {})
        return (_numbered(cells, places, -1) == np.arange(code.width)).astype(np.float64)
    is_missing = _is_missing(cells, column.kind)
    if not isinstance(code, DateCode):  # nothing but missing values counts
        return is_missing.astype(np.float64)
    found, parts = _date_parts(xp.where(is_missing, 0, cells)), []
    for part, own in code.parts:
        if isinstance(own, NumberCode):
            parts.append(_number(xp.where(is_missing, np.nan, found[part].astype(np.float64)), own))
        else:
            is_level = found[part] == np.array([*map(int, own.levels)])
            parts.append((is_level & ~is_missing).astype(np.float64))
    return _concat([*parts, *([is_missing.astype(np.float64)] if code.has_missing else [])])


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


def _number(value: Tensor, code: NumberCode) -> Tensor:
    """Return the output columns of a number: itself, perhaps a curve, and whether it is missing."""
    is_missing, knots = xp.isnan(value), code.knots
    value = xp.clip(xp.where(is_missing, code.low, value), code.low, code.high)
    value = xp.where(is_missing, code.fill, value / code.scale - code.mean / code.scale)
    parts = [value]
    if len(knots):
        # Ramp t_j is how far the value is from knot j to the next, within 0 and 1; hat j is t_(j-1) - t_j.
        ramps = xp.clip((value - knots[:-1]) / np.diff(knots), 0.0, 1.0)
        count = len(knots)
        steps = np.eye(count - 1, count, k=1) - np.eye(count - 1, count)
        parts.append(ramps if code.is_ramp else ramps @ steps + np.eye(1, count))
    return _concat([*parts, *([is_missing.astype(np.float64)] if code.has_missing else [])])


def _margins(rows: Tensor, ensemble: Ensemble, counts_votes: bool) -> Tensor:
    """Return the scores of members, (rows, problems, members), as ``Ensemble.scores`` does.

    A product adds 0 * x for a column that a member does not use, which is NaN for NaN and infinity: members
    that vote get finite rows, so that each one depends on its own columns only.
    """
    if counts_votes:
        largest = float(np.finfo(float).max)
        rows = xp.clip(xp.where(xp.isnan(rows), 0.0, rows), -largest, largest)
    n_problems, n_members, n_features = ensemble.weights.shape
    weights = ensemble.weights.astype(float).reshape(-1, n_features)
    flat: Tensor = rows @ weights.T + ensemble.intercepts.astype(float).reshape(-1)
    return flat.op("Reshape", np.array([-1, n_problems, n_members]))


def _present(found: _Missing, supports: Bools) -> Tensor:
    """Return 1 for members with a value in a row and 0 for others, (rows, members); 1 where none has any."""
    missing, of_columns, of_features = found
    uses = group_supports(supports, of_features)[:, of_columns].astype(float)
    votes: Tensor = 1 - (missing @ uses.T == uses.sum(axis=1)).astype(np.int64)
    return votes.apply("Max", 1 - xp.max(votes, 1, keepdims=True))


def _write_additive(graph: Graph, model: RobustAdditiveClassifier, dtype: np.dtype[Any]) -> None:
    """Write the outputs of an additive model: labels, scores and radii, perhaps probabilities."""
    columns, starts, n_classes = model.columns_, model._levels.starts, len(model.classes_)
    inputs = graph.inputs(columns, len(columns), dtype)
    numbers = [place for place, column in enumerate(columns) if column.kind != "category"]
    others = [place for place, column in enumerate(columns) if column.kind == "category"]
    points = np.append(model.points_.T, np.zeros((1, len(model.points_))), axis=0)
    found, lefts = [], []
    if numbers:
        knots, cells = [columns[place] for place in numbers], inputs.get("X")
        if cells is None:
            cells = xp.concat([_moments_or_numbers(inputs[_input_name(column)]) for column in knots])
        left, share = _between_knots(cells.astype(np.float64), knots, starts[numbers])
        first = xp.take(points, left)
        found.append(first + xp.expand_dims(share, 2) * (xp.take(points, left + 1) - first))
        shifted = model._reach.shifted[numbers].astype(np.int64)
        lefts.append(left + (share > 0.0).astype(np.int64) * shifted)
    for place in others:  # an empty text is a missing value
        column, start = columns[place], int(starts[place])
        known = places_of_texts(column.categories, column.rare)
        levels = {text: start + number for text, number in known.items()}
        levels[""] = start + column.n_points - 1
        default = start + len(column.categories) if column.rare else levels[""]
        lefts.append(_numbered(inputs[_input_name(column)], levels, default))
        found.append(xp.take(points, lefts[-1]))
    contributions = xp.concat(found)  # (rows, columns, duels)
    leads = xp.sum(contributions, 1) + model.intercept_
    pairs = np.array(model._duels.pairs)
    scores = xp.squeeze(leads, 1) if n_classes == 2 else xp.min(_by_class(leads, pairs, n_classes), 2)
    winner = _write_label(graph, scores, model.classes_)
    groups = model.feature_groups_[numbers + others]
    graph.output("radius", _radius(model, leads, winner, contributions, xp.concat(lefts), groups))
    if hasattr(model, "predict_proba"):
        odds = xp.exp(-_by_class(xp.clip(leads, -700.0, 700.0), pairs, n_classes))
        inverse = xp.sum(odds + 1.0, 2) + 2.0 - float(n_classes)
        share = inverse.apply("Reciprocal")
        graph.output("probabilities", share / xp.sum(share, 1, keepdims=True), n_classes)


def _moments_or_numbers(cells: Tensor) -> Tensor:
    """Return numbers or dates in float64, NaN where missing."""
    wide = cells.astype(np.float64)
    return _where(_is_missing(cells, "date"), np.nan, wide) if cells.dtype == np.int64 else wide


def _between_knots(cells: Tensor, columns: list[ColumnLevels], starts: NDArray[Any]) -> tuple[Tensor, Tensor]:
    """Return the left point of every cell, (rows, columns), and the weight of the point to its right."""
    has_knots = np.array([len(column.knots) > 0 for column in columns])
    n_steps = max(len(column.knots) for column in columns).bit_length()
    grid = np.full((len(columns), 1 << n_steps), np.inf)
    for row, column in zip(grid, columns, strict=True):
        row[: len(column.knots)] = column.knots
    low = np.where(has_knots, grid[:, 0], 0.0)
    high = np.array([column.knots[-1] if len(column.knots) else 0.0 for column in columns])
    is_missing = xp.isnan(cells) | ~has_knots
    cells = xp.minimum(xp.maximum(xp.where(is_missing, low, cells), low), high)
    firsts = np.arange(len(columns), dtype=np.int64) << n_steps
    at = is_missing.astype(np.int64) * 0 + firsts
    for step in reversed(range(n_steps)):  # a binary search in all columns at once
        after = at + (1 << step)
        at = xp.where(cells >= xp.take(grid.ravel(), after), after, at)
    half = np.where(np.isfinite(grid), grid, 0.0) / 2  # because the difference of two knots may overflow
    width = np.diff(half, axis=1, append=np.inf)
    width[~(width > 0)] = np.inf
    share = (cells * 0.5 - xp.take(half.ravel(), at)) / xp.take(width.ravel(), at)
    ends = starts + [column.n_points - 1 for column in columns]
    return _where(is_missing, ends, at + (starts - firsts)), xp.where(is_missing, 0.0, share)


def _by_class(leads: Tensor, pairs: NDArray[Any], n_classes: int) -> Tensor:
    """Return the leads of each class in its duels, (rows, classes, duels of a class)."""
    own = np.array([np.flatnonzero((pairs == place).any(axis=1)) for place in range(n_classes)])
    signs = np.where(pairs[own, 1] == np.arange(n_classes)[:, None], 1.0, -1.0)
    return _take(leads, own, axis=1) * signs


def _radius(
    model: RobustAdditiveClassifier,
    leads: Tensor,
    winner: Tensor,
    contributions: Tensor,
    lefts: Tensor,
    groups: NDArray[Any],
) -> Tensor:
    """Count the largest damages that fit into the lead of the winner of each duel, less four slacks."""
    most, distinct = np.int64(model._adversary.n_breakable), np.unique(groups)
    first, second = np.array(model._duels.pairs).T
    column = xp.expand_dims(winner, 1)
    wins_second = column == second
    takes_part = wins_second | (column == first)
    room = xp.where(wins_second, leads, -leads) - SLACKS * model._duels.slacks
    # What the adversary can make of a cell: the least and the most, infinite where it stays as it is.
    low, high = (
        xp.take(np.array(end)[:, model._reach.of_point].T, lefts)
        for end in zip(*model._adversary._ends, strict=True)
    )
    damages = xp.where(xp.expand_dims(wins_second, 1), contributions - low, high - contributions)
    damages = xp.maximum(damages, 0.0)
    if len(distinct) < len(groups):
        damages = (distinct[:, None] == groups).astype(float) @ damages
    ordered = damages.op("TopK", np.array([len(distinct)]), axis=1)
    fits = ordered.op("CumSum", np.int64(1)) < xp.expand_dims(room, 1)
    radius = xp.where(room > 0.0, xp.minimum(xp.sum(fits, 1), most), np.int64(-1))
    return _reduce("Min", xp.where(takes_part, radius, most), 1)
