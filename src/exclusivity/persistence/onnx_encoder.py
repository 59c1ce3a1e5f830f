"""TableEncoder and InteractionFeatures as ONNX operations: what they make of raw rows."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from exclusivity.persistence.onnx_graph import GraphWriter
from exclusivity.persistence.onnx_scalers import Rows
from exclusivity.tables import (
    GapCode,
    InteractionFeatures,
    KernelMap,
    LevelCode,
    NumberCode,
    TableColumn,
    TableEncoder,
)

_RESERVED = re.compile(r"label|scores|X|v\d+")
_TEXT = np.dtype(object)


def takes_one_array(encoder: TableEncoder) -> bool:
    """Whether all columns are numbers, so that rows can be one tensor."""
    return all(column.kind == "number" for column in encoder.columns_)


def column_inputs(encoder: TableEncoder, dtype: np.dtype[Any]) -> dict[str, Any]:
    """Inputs of the graph of a table, one for each column that is used: numbers, or texts."""
    inputs = {}
    for column in encoder.columns_:
        if column.code is None:
            continue
        if column.kind == "date":
            raise ValueError(
                f"column {column.name!r} holds dates, which an ONNX graph cannot take apart; fit without it, "
                "or on its year, month and weekday as numbers."
            )
        inputs[_input_name(column)] = (dtype if column.kind == "number" else _TEXT, ["rows", 1])
    return inputs


def _input_name(column: TableColumn) -> str:
    return f"input_{column.name}" if _RESERVED.fullmatch(column.name) else column.name


def write_encoder(rows: Rows, encoder: TableEncoder) -> None:
    """Send the rows through a fitted encoder: the columns of one array, or inputs of their own."""
    graph = rows.graph
    is_array = takes_one_array(encoder)
    parts = []
    for place, column in enumerate(encoder.columns_):
        if column.code is None:
            continue
        name = _input_name(column)
        if is_array:
            index = graph.constant(np.array([place], dtype=np.int64))
            name = graph.op("Gather", rows.name, index, axis=1)
        parts.append(_column(graph, name, column))
    rows.name = graph.op("Concat", *parts, axis=1)
    rows.dtype = np.dtype(encoder.dtype)
    if rows.dtype != np.float64:
        rows.name = graph.cast(rows.name, rows.dtype)


def _column(graph: GraphWriter, name: str, column: TableColumn) -> str:
    """The output columns of one input column, (rows, width) in float64."""
    code = column.code
    if isinstance(code, LevelCode):
        return _levels(graph, name, code)
    if isinstance(code, NumberCode):
        return _number(graph, graph.cast(name, np.float64), code)
    assert isinstance(code, GapCode)  # noqa: S101 -- dates are refused
    if column.kind == "number":
        return graph.cast(graph.op("IsNaN", graph.cast(name, np.float64)), np.float64)
    return _one_hot(graph, name, {"": 0}, 1)


def _levels(graph: GraphWriter, name: str, code: LevelCode) -> str:
    """An empty text is a gap."""
    places = code.places | ({"": code.width - 1} if code.has_gaps else {})
    return _one_hot(graph, name, places, code.width)


def _one_hot(graph: GraphWriter, name: str, places: dict[str, int], width: int) -> str:
    number = graph.op(
        "LabelEncoder",
        name,
        domain="ai.onnx.ml",
        keys_strings=list(places),
        values_int64s=list(places.values()),
        default_int64=-1,
    )
    is_level = graph.op("Equal", number, graph.constant(np.arange(width, dtype=np.int64)))
    return graph.cast(is_level, np.float64)


def _number(graph: GraphWriter, name: str, code: NumberCode) -> str:
    def constant(value: float) -> str:
        return graph.constant(np.float64(value))

    gaps = graph.op("IsNaN", name)
    known = graph.op("Where", gaps, constant(code.low), name)
    value = graph.op("Clip", known, constant(code.low), constant(code.high))
    value = graph.op("Div", value, constant(code.scale))
    value = graph.op("Sub", value, constant(code.mean / code.scale))
    value = graph.op("Where", gaps, constant(code.fill), value)
    parts = [value]
    if len(code.knots):
        parts.append(_hats(graph, value, code))
    if code.has_gaps:
        parts.append(graph.cast(gaps, np.float64))
    return graph.op("Concat", *parts, axis=1)


def _hats(graph: GraphWriter, value: str, code: NumberCode) -> str:
    """With t_j = how far the value is from knot j to the next, cut off at 0 and 1: hat j is t_(j-1) - t_j."""
    knots = code.knots
    share = graph.op(
        "Div", graph.op("Sub", value, graph.constant(knots[:-1])), graph.constant(np.diff(knots))
    )
    zero, one = (graph.constant(np.float64(bound)) for bound in (0.0, 1.0))
    share = graph.op("Clip", share, zero, one)
    n_knots = len(knots)
    steps = np.eye(n_knots - 1, n_knots, k=1) - np.eye(n_knots - 1, n_knots)
    hats = graph.op("MatMul", share, graph.constant(steps))
    return graph.op("Add", hats, graph.constant(np.eye(1, n_knots)))


def write_interactions(rows: Rows, step: InteractionFeatures) -> None:
    """Send the rows through fitted interactions, member after member."""
    graph, wide = rows.graph, rows.wide
    rows.name = graph.op("Concat", *(_member(graph, wide, learned) for learned in step.maps_), axis=1)
    if rows.dtype != np.float64:
        rows.name = graph.cast(rows.name, rows.dtype)


def _member(graph: GraphWriter, rows: str, learned: KernelMap) -> str:
    """``KernelMap.features``, operation by operation."""
    landmarks = learned.landmarks
    middle = landmarks.mean(axis=0)
    centred = landmarks - middle
    own = graph.op("Gather", rows, graph.constant(learned.columns.astype(np.int64)), axis=1)
    own = graph.op("Max", own, graph.constant(landmarks.min(axis=0)))
    own = graph.op("Min", own, graph.constant(landmarks.max(axis=0)))
    own = graph.op("Sub", own, graph.constant(middle))
    lengths = graph.op("ReduceSum", graph.op("Mul", own, own), graph.constant(np.array([1])), keepdims=1)
    squares = graph.op("Add", lengths, graph.constant(np.sum(centred**2, axis=1)))
    squares = graph.op("Add", squares, graph.op("MatMul", own, graph.constant(-2 * centred.T)))
    squares = graph.op("Max", squares, graph.constant(np.float64(0.0)))
    kernel = graph.op("Exp", graph.op("Mul", squares, graph.constant(np.float64(-learned.decay))))
    return graph.op("MatMul", kernel, graph.constant(learned.mixing))
