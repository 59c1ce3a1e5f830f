"""to_onnx: a fitted model as an ONNX graph, in double precision like the model itself."""

from __future__ import annotations

import re
from itertools import combinations
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from exclusivity import __version__
from exclusivity.classifier import Ensemble, FittedState
from exclusivity.io._model_kinds import PASSTHROUGH
from exclusivity.io.models import packed_file
from exclusivity.tables import (
    GapCode,
    InteractionFeatures,
    KernelMap,
    LevelCode,
    NumberCode,
    TableColumn,
    TableEncoder,
)

OPSET = 18
OPSET_OF_TABLES = 3
"""Of the domain ai.onnx.ml, where texts become numbers."""
IR_VERSION = 8

_INPUT_TYPES = ("float32", "float64")
_LARGEST_MARGIN = 1e150
_RESERVED = re.compile(r"label|scores|X|v\d+")
_TEXT = np.dtype(object)


def to_onnx(model: BaseEstimator, *, input_type: str | None = None) -> Any:
    """Turn a fitted model into an ONNX graph.

    The graph has the input ``X`` of shape (rows, features) and the outputs ``label`` and ``scores``, which
    are ``predict`` and ``decision_function`` of the model; with ``loss="logistic"`` also ``probabilities``.
    Scores are summed in float64, as in the model: labels agree wherever the scores of the best two classes
    differ by more than the rounding of such sums.

    Of a pipeline that begins with a :class:`~exclusivity.tables.TableEncoder` the graph takes raw rows: X,
    where all columns are numbers, else one input of shape (rows, 1) for every column that the encoder uses,
    under the column's name (``input_`` in front of it where that is X, label, scores or v0, v1, ...). Gaps
    are NaN, categories are texts ("3" and "True" for what was a number or a boolean), an empty text is a
    gap. Dates are refused.

    Parameters
    ----------
    model : ERMClassifier, ERMClassifierCV or Pipeline
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
    steps = [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]
    classifier = steps[-1]
    state = FittedState.of(classifier)
    score_type = state.ensemble.weights.dtype
    before = [step for step in steps[:-1] if step is not None and not _is_passthrough(step)]
    is_raw = any(isinstance(step, TableEncoder) for step in before)
    dtype = np.dtype(input_type or (np.float64 if is_raw else score_type))
    inputs = _inputs(before, dtype, state.n_features)
    graph = GraphWriter()
    rows = Rows(graph, "X", dtype)
    for step in before:
        if isinstance(step, TableEncoder):
            write_encoder(rows, step)
        elif isinstance(step, InteractionFeatures):
            write_interactions(rows, step)
        else:
            write_scaler(rows, step)
    votes = _Votes(graph, state)
    scores = getattr(votes, classifier.voting)(rows.wide)
    graph.cast(scores, score_type, output="scores")
    _write_label(graph, state)
    n_classes = len(state.classes)
    shape = ["rows"] if n_classes == 2 else ["rows", n_classes]
    outputs = {"label": (state.classes.dtype, ["rows"]), "scores": (score_type, shape)}
    if hasattr(classifier, "predict_proba"):
        _write_probabilities(graph, n_classes)
        outputs["probabilities"] = (score_type, ["rows", n_classes])
    return graph.model(inputs, outputs, __version__)


def _is_passthrough(step: object) -> bool:
    return isinstance(step, str) and step == PASSTHROUGH


def _inputs(before: list[BaseEstimator], dtype: np.dtype[Any], n_features: int) -> dict[str, Any]:
    """Names of the inputs, their types and shapes."""
    width = before[0].n_features_in_ if before else n_features
    encoders = [step for step in before if isinstance(step, TableEncoder)]
    if all(map(takes_one_array, encoders)):
        return {"X": (dtype, ["rows", width])}
    if encoders[0] is not before[0]:
        raise ValueError(
            "a TableEncoder of categories has to be the first step of a pipeline that is exported: a graph "
            "has no way from numbers to categories."
        )
    return column_inputs(encoders[0], dtype)


def _write_label(graph: GraphWriter, state: FittedState) -> None:
    if len(state.classes) == 2:
        zero = graph.constant(np.zeros((), dtype=state.ensemble.weights.dtype))
        chosen = graph.cast(graph.op("Greater", "scores", zero), np.int64)
    else:
        chosen = graph.op("ArgMax", "scores", axis=1, keepdims=0)
    classes = state.classes.astype(object) if state.classes.dtype.kind == "U" else state.classes
    graph.op("Gather", graph.constant(classes), chosen, output="label")


def _write_probabilities(graph: GraphWriter, n_classes: int) -> None:
    """``predict_proba`` from the output ``scores``."""
    if n_classes == 2:
        column = graph.op("Unsqueeze", "scores", graph.constant(np.array([1])))
        graph.op(
            "Sigmoid", graph.op("Concat", graph.op("Neg", column), column, axis=1), output="probabilities"
        )
        return
    odds = graph.op("Sigmoid", "scores")
    totals = graph.op("ReduceSum", odds, graph.constant(np.array([1])), keepdims=1)
    graph.op("Div", odds, totals, output="probabilities")


class _Votes:
    """From rows to scores of classes; the equations are those of ``classifier.votes``."""

    def __init__(self, graph: GraphWriter, state: FittedState) -> None:
        self.graph, self.state = graph, state
        self.n_classes = len(state.classes)
        first, second = np.zeros((2, len(state.ensemble.weights), self.n_classes))
        if self.is_ovo:
            for pair, (i, j) in enumerate(combinations(range(self.n_classes), 2)):
                first[pair, i] = second[pair, j] = 1.0
        self._first, self._second = first, second

    @property
    def is_ovo(self) -> bool:
        return self.n_classes > 2 and self.state.multi_class == "ovo"

    def soft(self, rows: str) -> str:
        graph = self.graph
        margins = graph.over_axis("ReduceMean", self._margins(rows, self.state.ensemble.mean()), 1)
        if self.n_classes == 2:
            return graph.over_axis("ReduceSum", margins, 1)
        if not self.is_ovo:
            return margins
        wins, sums = self._tallies(margins)
        return graph.op("Add", wins, self._squashed(sums))

    def hard(self, rows: str) -> str:
        graph, ensemble = self.graph, self.state.ensemble.voters()
        margins = self._member_margins(rows, ensemble)
        copies = ensemble.n_members // ensemble.weights.shape[1]
        if self.n_classes == 2:
            one = graph.constant(np.float64(copies))
            votes = graph.op("Where", self._positive(margins), one, graph.op("Neg", one))
            counted, means = (
                self._member_free(value, how) for value, how in ((votes, "Sum"), (margins, "Mean"))
            )
            return graph.op("Add", counted, self._squashed(means))
        votes, means = self._first_round(margins, copies)
        return graph.op("Add", votes, means)

    def runoff(self, rows: str) -> str:
        if self.n_classes == 2:
            return self.hard(rows)
        graph, ensemble = self.graph, self.state.ensemble.voters()
        margins = self._member_margins(rows, ensemble)
        copies = ensemble.n_members // ensemble.weights.shape[1]
        votes, means = self._first_round(margins, copies)
        first_round = graph.op("Add", votes, means)
        low, high = self._top_two(first_round)
        prefers_low = graph.cast(self._prefers(margins, low, high), np.float64)
        for_low = graph.op(
            "Mul", graph.over_axis("ReduceSum", prefers_low, 1), graph.constant(np.float64(copies))
        )
        n_members = graph.constant(np.float64(ensemble.n_members))
        for_high = graph.op("Sub", n_members, for_low)
        scores = first_round
        for finalist, count in ((low, for_low), (high, for_high)):
            second_round = graph.op("Add", graph.op("Add", self._column(count), n_members), means)
            scores = graph.op("Where", self._is_class(finalist), second_round, scores)
        return scores

    def _top_two(self, scores: str) -> tuple[str, str]:
        """The numbers of the two classes with the highest scores, (rows,), the lower first."""
        graph = self.graph
        best = graph.op("ArgMax", scores, axis=1, keepdims=0)
        lowest = graph.constant(np.float64(-np.inf))
        others = graph.op("Where", self._is_class(best), lowest, scores)
        second = graph.op("ArgMax", others, axis=1, keepdims=0)
        return graph.op("Min", best, second), graph.op("Max", best, second)

    def _prefers(self, margins: str, low: str, high: str) -> str:
        """Whether members prefer the class ``low``, (rows, members)."""
        graph = self.graph
        if not self.is_ovo:
            scores = [self._chosen(margins, self._is_class(finalist)) for finalist in (low, high)]
            return graph.op("GreaterOrEqual", *scores)
        # pair_numbers of ``exclusivity.classifier.votes.decisions``
        two, one = (graph.constant(np.int64(number)) for number in (2, 1))
        width = graph.op("Sub", graph.constant(np.int64(2 * self.n_classes - 1)), low)
        start = graph.op("Div", graph.op("Mul", low, width), two)
        pair = graph.op("Add", start, graph.op("Sub", graph.op("Sub", high, low), one))
        return self._positive(self._chosen(margins, self._is_class(pair, len(self._first))))

    def _chosen(self, margins: str, is_chosen: str) -> str:
        """The one margin of each member that is chosen in its row, (rows, members)."""
        graph = self.graph
        mask = graph.op("Unsqueeze", is_chosen, graph.constant(np.array([1], dtype=np.int64)))
        kept = graph.op("Where", mask, margins, graph.constant(np.float64(0.0)))
        return graph.over_axis("ReduceSum", kept, 2)

    def _is_class(self, codes: str, n_codes: int | None = None) -> str:
        """(rows,) numbers as (rows, n_codes) truths."""
        numbers = np.arange(self.n_classes if n_codes is None else n_codes, dtype=np.int64)
        return self.graph.op("Equal", self._column(codes), self.graph.constant(numbers))

    def _column(self, values: str) -> str:
        return self.graph.op("Unsqueeze", values, self.graph.constant(np.array([1], dtype=np.int64)))

    def _first_round(self, margins: str, copies: int) -> tuple[str, str]:
        """Votes by class, and the squashed mean margins."""
        graph = self.graph
        best, margins = self._best(margins)
        is_best = graph.op(
            "Equal",
            graph.op("Unsqueeze", best, graph.constant(np.array([2], dtype=np.int64))),
            graph.constant(np.arange(self.n_classes, dtype=np.int64)),
        )
        votes = graph.over_axis("ReduceSum", graph.cast(is_best, np.float64), 1)
        votes = graph.op("Mul", votes, graph.constant(np.float64(copies)))
        return votes, self._squashed(graph.over_axis("ReduceMean", margins, 1))

    def _margins(self, rows: str, ensemble: Ensemble) -> str:
        """(rows, members, problems), float64."""
        graph = self.graph
        by_member = ensemble.weights.astype(float).transpose(2, 1, 0)
        n_features, n_members, n_problems = by_member.shape
        flat = graph.op("MatMul", rows, graph.constant(by_member.reshape(n_features, -1)))
        flat = graph.op("Add", flat, graph.constant(ensemble.intercepts.astype(float).T.reshape(-1)))
        return graph.op(
            "Reshape", flat, graph.constant(np.array([-1, n_members, n_problems], dtype=np.int64))
        )

    def _member_margins(self, rows: str, ensemble: Ensemble) -> str:
        """Margins of members that vote, each from its own columns, whatever the others hold.

        A product adds 0 * x for a column that a member does not use, which is NaN for NaN and infinity.
        """
        margins = self._margins(self._finite(rows, float(np.finfo(float).max)), ensemble)
        return self._finite(margins, _LARGEST_MARGIN)

    def _finite(self, values: str, largest: float) -> str:
        """NaN as zero, and all else cut off at the largest size."""
        graph = self.graph
        zero, low, high = (graph.constant(np.float64(number)) for number in (0.0, -largest, largest))
        numbers = graph.op("Where", graph.op("IsNaN", values), zero, values)
        return graph.op("Clip", numbers, low, high)

    def _positive(self, values: str) -> str:
        return self.graph.op("Greater", values, self.graph.constant(np.float64(0.0)))

    def _member_free(self, values: str, how: str) -> str:
        """Two classes: (rows, members, 1) to (rows,)."""
        return self.graph.over_axis("ReduceSum", self.graph.over_axis(f"Reduce{how}", values, 1), 1)

    def _tallies(self, margins: str) -> tuple[str, str]:
        """One-vs-one: pairs won and sums of margins, by class."""
        graph = self.graph
        sign = graph.constant(self._first - self._second)
        first_wins = graph.cast(self._positive(margins), np.float64)
        wins = graph.op("Add", graph.op("MatMul", first_wins, sign), graph.constant(self._second.sum(axis=0)))
        return wins, graph.op("MatMul", margins, sign)

    def _best(self, margins: str) -> tuple[str, str]:
        """The class that each member votes for, and its margins by class."""
        graph = self.graph
        if not self.is_ovo:
            return graph.op("ArgMax", margins, axis=2, keepdims=0), margins
        wins, sums = self._tallies(margins)
        # Whole numbers of wins outweigh margins squashed into (-1/2, 1/2), but squashing may round two
        # margins to one: the margins themselves decide among the classes with most wins.
        most = graph.op("ReduceMax", wins, graph.constant(np.array([2], dtype=np.int64)), keepdims=1)
        lowest = graph.constant(np.float64(-np.inf))
        ranked = graph.op("Where", graph.op("Equal", wins, most), sums, lowest)
        return graph.op("ArgMax", ranked, axis=2, keepdims=0), sums

    def _squashed(self, values: str) -> str:
        graph = self.graph
        below = graph.op("Add", graph.op("Abs", values), graph.constant(np.float64(1.0)))
        return graph.op("Mul", graph.op("Div", values, below), graph.constant(np.float64(0.49)))


def import_onnx() -> ModuleType:
    """The onnx package, or a message that says how to get it."""
    try:
        import onnx  # noqa: PLC0415 -- an extra
    except ImportError as error:
        raise ImportError("to_onnx needs onnx; install it with: pip install 'exclusivity[onnx]'") from error
    return onnx  # type: ignore[no-any-return]


class GraphWriter:
    """Collects the nodes of a graph. Values are known by their names, which are texts.

    Examples
    --------
    >>> graph = GraphWriter()
    >>> graph.op("Add", "X", graph.constant(np.ones(3)))
    'v1'
    """

    def __init__(self) -> None:
        self.onnx = import_onnx()
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._count = 0
        self._domains = {"": OPSET}

    def constant(self, values: NDArray[Any] | np.generic) -> str:
        """A tensor that is part of the graph."""
        name = self._name()
        self._constants.append(self.onnx.numpy_helper.from_array(np.asarray(values, order="C"), name))
        return name

    def op(
        self, kind: str, *inputs: str, output: str | None = None, domain: str = "", **attributes: object
    ) -> str:
        """The (first) result of an operation of the ONNX standard."""
        name = output or self._name()
        if domain:
            self._domains[domain] = OPSET_OF_TABLES
        self._nodes.append(
            self.onnx.helper.make_node(kind, list(inputs), [name], domain=domain, **attributes)
        )
        return name

    def cast(self, value: str, dtype: DTypeLike, output: str | None = None) -> str:
        """The same numbers in another type."""
        return self.op("Cast", value, output=output, to=self.tensor_type(dtype))

    def over_axis(self, kind: str, value: str, axis: int) -> str:
        """A reduction over one axis, which disappears."""
        return self.op(kind, value, self.constant(np.array([axis], dtype=np.int64)), keepdims=0)

    def tensor_type(self, dtype: DTypeLike) -> int:
        """ONNX's number for a numpy type; texts are strings."""
        dtype = np.dtype(dtype)
        if dtype.kind in "UO":
            return int(self.onnx.TensorProto.STRING)
        return int(self.onnx.helper.np_dtype_to_tensor_dtype(dtype))

    def model(self, inputs: dict[str, Any], outputs: dict[str, Any], producer: str) -> Any:
        """The finished and checked model; inputs and outputs map names to (type, shape)."""
        described = [
            [
                self.onnx.helper.make_tensor_value_info(name, self.tensor_type(dtype), shape)
                for name, (dtype, shape) in part.items()
            ]
            for part in (inputs, outputs)
        ]
        graph = self.onnx.helper.make_graph(self._nodes, "exclusivity", *described, self._constants)
        model = self.onnx.helper.make_model(
            graph,
            producer_name="exclusivity",
            producer_version=producer,
            opset_imports=[self.onnx.helper.make_opsetid(*pair) for pair in self._domains.items()],
            ir_version=IR_VERSION,
        )
        self.onnx.checker.check_model(model)
        return model

    def _name(self) -> str:
        self._count += 1
        return f"v{self._count - 1}"


class Rows:
    """The rows on their way through a pipeline, in the type of the input.

    Each operation is computed in float64 and then rounded to that type: for one addition, multiplication or
    division of float32 numbers this gives exactly the float32 result.
    """

    def __init__(self, graph: GraphWriter, name: str, dtype: np.dtype[Any]) -> None:
        self.graph, self.name, self.dtype = graph, name, dtype

    @property
    def wide(self) -> str:
        """The rows as float64."""
        return self.name if self.dtype == np.float64 else self.graph.cast(self.name, np.float64)

    def apply(self, kind: str, *operands: object) -> None:
        """One operation with constants, and rounding."""
        constants = [self.graph.constant(np.asarray(operand, dtype=float)) for operand in operands]
        result = self.graph.op(kind, self.wide, *constants)
        self.name = result if self.dtype == np.float64 else self.graph.cast(result, self.dtype)


def write_scaler(rows: Rows, scaler: BaseEstimator) -> None:
    """Send the rows through a fitted scaler of the table of kinds."""
    _WRITERS[type(scaler).__name__](rows, scaler)


def _standard(rows: Rows, scaler: BaseEstimator) -> None:
    if scaler.with_mean:
        rows.apply("Sub", scaler.mean_.astype(rows.dtype))
    if scaler.with_std:
        rows.apply("Div", scaler.scale_.astype(rows.dtype))


def _min_max(rows: Rows, scaler: BaseEstimator) -> None:
    rows.apply("Mul", scaler.scale_)
    rows.apply("Add", scaler.min_)
    if scaler.clip:
        rows.apply("Clip", *scaler.feature_range)


def _max_abs(rows: Rows, scaler: BaseEstimator) -> None:
    rows.apply("Div", scaler.scale_)
    if getattr(scaler, "clip", False):
        rows.apply("Clip", -1.0, 1.0)


def _robust(rows: Rows, scaler: BaseEstimator) -> None:
    if scaler.with_centering:
        rows.apply("Sub", scaler.center_)
    if scaler.with_scaling:
        rows.apply("Div", scaler.scale_)


_WRITERS = {
    "StandardScaler": _standard,
    "MinMaxScaler": _min_max,
    "MaxAbsScaler": _max_abs,
    "RobustScaler": _robust,
}


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
