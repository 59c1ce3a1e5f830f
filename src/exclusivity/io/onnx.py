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
from exclusivity.io.models import packed_file
from exclusivity.tables import (
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

Operand = str | float | np.generic | NDArray[Any]
"""The name of a value, or a constant."""


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
    *before, classifier = [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]
    before = [step for step in before if isinstance(step, BaseEstimator)]
    state = FittedState.of(classifier)
    score_type = state.ensemble.weights.dtype
    is_raw = any(isinstance(step, TableEncoder) for step in before)
    dtype = np.dtype(input_type or (np.float64 if is_raw else score_type))
    inputs = _inputs(before, dtype, state.n_features)
    graph = GraphWriter()
    rows = Rows(graph, "X", dtype)
    for step in before:
        _WRITERS[type(step).__name__](rows, step)
    votes = _Votes(graph, state)
    graph.cast(getattr(votes, classifier.voting)(rows.wide), score_type, output="scores")
    votes.write_label()
    n_classes = len(state.classes)
    shape = ["rows"] if n_classes == 2 else ["rows", n_classes]
    outputs = {"label": (state.classes.dtype, ["rows"]), "scores": (score_type, shape)}
    if hasattr(classifier, "predict_proba"):
        votes.write_probabilities()
        outputs["probabilities"] = (score_type, ["rows", n_classes])
    return graph.model(inputs, outputs)


def import_onnx() -> ModuleType:
    """Return the onnx package, or say how to get it."""
    try:
        import onnx  # noqa: PLC0415 -- an extra
    except ImportError as error:
        raise ImportError("to_onnx needs onnx; install it with: pip install 'exclusivity[onnx]'") from error
    return onnx  # type: ignore[no-any-return]


class GraphWriter:
    """Collects the nodes of a graph. Values are known by their names, which are texts; all else is constant.

    Examples
    --------
    >>> GraphWriter().op("Add", "X", np.ones(3))
    'v1'
    """

    def __init__(self) -> None:
        self.onnx = import_onnx()
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._count = 0
        self._domains = {"": OPSET}

    def op(
        self, kind: str, *inputs: Operand, output: str | None = None, domain: str = "", **attributes: object
    ) -> str:
        """Return the (first) result of an operation of the ONNX standard."""
        names = [each if isinstance(each, str) else self._constant(np.asarray(each)) for each in inputs]
        output = output or self._name()
        if domain:
            self._domains[domain] = OPSET_OF_TABLES
        self._nodes.append(self.onnx.helper.make_node(kind, names, [output], domain=domain, **attributes))
        return output

    def cast(self, value: str, dtype: DTypeLike, output: str | None = None) -> str:
        """Return the same numbers in another type."""
        return self.op("Cast", value, output=output, to=self.tensor_type(dtype))

    def reduce(self, how: str, value: str, axis: int, keepdims: int = 0) -> str:
        """Return the Sum, Mean or Max over one axis, which disappears unless it is kept."""
        return self.op(f"Reduce{how}", value, np.array([axis]), keepdims=keepdims)

    def expand(self, value: str, axis: int) -> str:
        """Return the same numbers with one more axis, of length 1."""
        return self.op("Unsqueeze", value, np.array([axis]))

    def tensor_type(self, dtype: DTypeLike) -> int:
        """Return ONNX's number for a numpy type; texts are strings."""
        dtype = np.dtype(dtype)
        if dtype.kind in "UO":
            return int(self.onnx.TensorProto.STRING)
        return int(self.onnx.helper.np_dtype_to_tensor_dtype(dtype))

    def model(self, inputs: dict[str, Any], outputs: dict[str, Any]) -> Any:
        """Return the finished and checked model; inputs and outputs map names to (type, shape)."""
        helper = self.onnx.helper
        described = [
            [
                helper.make_tensor_value_info(name, self.tensor_type(dtype), shape)
                for name, (dtype, shape) in part.items()
            ]
            for part in (inputs, outputs)
        ]
        model = helper.make_model(
            helper.make_graph(self._nodes, "exclusivity", *described, self._constants),
            producer_name="exclusivity",
            producer_version=__version__,
            opset_imports=[helper.make_opsetid(*pair) for pair in self._domains.items()],
            ir_version=IR_VERSION,
        )
        self.onnx.checker.check_model(model)
        return model

    def _constant(self, values: NDArray[Any]) -> str:
        name = self._name()
        self._constants.append(self.onnx.numpy_helper.from_array(np.asarray(values, order="C"), name))
        return name

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

    def become(self, wide: str) -> None:
        """Go on with these numbers, rounded."""
        self.name = wide if self.dtype == np.float64 else self.graph.cast(wide, self.dtype)

    def apply(self, kind: str, *operands: Any) -> None:
        """Do one operation with constants."""
        self.become(self.graph.op(kind, self.wide, *(np.asarray(each, dtype=float) for each in operands)))


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


def _takes_one_array(encoder: TableEncoder) -> bool:
    """Tell whether all columns are numbers, so that rows can be one tensor."""
    return all(column.kind == "number" for column in encoder.columns_)


def _input_name(column: TableColumn) -> str:
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
    for column in used:
        if column.kind == "date":
            raise ValueError(
                f"column {column.name!r} holds dates, which an ONNX graph cannot take apart; fit without it, "
                "or on its year, month and weekday as numbers."
            )
    return {_input_name(each): (dtype if each.kind == "number" else object, ["rows", 1]) for each in used}


def _encoder(rows: Rows, encoder: TableEncoder) -> None:
    graph, is_array = rows.graph, _takes_one_array(encoder)
    parts = [
        _column(
            graph,
            graph.op("Gather", rows.name, np.array([place]), axis=1) if is_array else _input_name(column),
            column,
        )
        for place, column in enumerate(encoder.columns_)
        if column.code is not None
    ]
    rows.dtype = np.dtype(encoder.dtype)
    rows.become(graph.op("Concat", *parts, axis=1))


def _column(graph: GraphWriter, name: str, column: TableColumn) -> str:
    """Return the output columns of one input column, (rows, width) in float64; an empty text is a gap."""
    code = column.code
    if isinstance(code, LevelCode):
        places = code.places | ({"": code.width - 1} if code.has_missing else {})
        return _one_hot(graph, name, places, code.width)
    if isinstance(code, NumberCode):
        return _number(graph, graph.cast(name, np.float64), code)
    if column.kind == "number":  # nothing but gaps is told; dates are refused
        return graph.cast(graph.op("IsNaN", graph.cast(name, np.float64)), np.float64)
    return _one_hot(graph, name, {"": 0}, 1)


def _one_hot(graph: GraphWriter, name: str, places: dict[str, int], width: int) -> str:
    numbers = {"keys_strings": list(places), "values_int64s": list(places.values()), "default_int64": -1}
    number = graph.op("LabelEncoder", name, output=None, domain="ai.onnx.ml", **numbers)
    return graph.cast(graph.op("Equal", number, np.arange(width)), np.float64)


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


_WRITERS = {
    "StandardScaler": _standard,
    "MinMaxScaler": _min_max,
    "MaxAbsScaler": _max_abs,
    "RobustScaler": _robust,
    "TableEncoder": _encoder,
    "InteractionFeatures": _interactions,
}


class _Votes:
    """From rows to scores of classes; the equations are those of ``classifier.votes``."""

    def __init__(self, graph: GraphWriter, state: FittedState) -> None:
        self.graph, self.state = graph, state
        self.n_classes = len(state.classes)
        self.is_ovo = self.n_classes > 2 and state.multi_class == "ovo"
        first, second = np.zeros((2, len(state.ensemble.weights), self.n_classes))
        if self.is_ovo:
            for pair, (i, j) in enumerate(combinations(range(self.n_classes), 2)):
                first[pair, i] = second[pair, j] = 1.0
        self._first, self._second = first, second

    def soft(self, rows: str) -> str:
        graph = self.graph
        margins = graph.reduce("Mean", self._margins(rows, self.state.ensemble.mean()), 1)
        if self.n_classes == 2:
            return graph.reduce("Sum", margins, 1)
        if not self.is_ovo:
            return margins
        wins, sums = self._tallies(margins)
        return graph.op("Add", wins, self._squashed(sums))

    def hard(self, rows: str) -> str:
        graph, ensemble = self.graph, self.state.ensemble.voters()
        margins = self._member_margins(rows, ensemble)
        if self.n_classes > 2:
            return graph.op("Add", *self._first_round(margins, ensemble.copies))
        one = float(ensemble.copies)
        votes = graph.op("Where", graph.op("Greater", margins, 0.0), one, -one)
        counted = graph.reduce("Sum", graph.reduce("Sum", votes, 1), 1)
        means = graph.reduce("Sum", graph.reduce("Mean", margins, 1), 1)
        return graph.op("Add", counted, self._squashed(means))

    def runoff(self, rows: str) -> str:
        if self.n_classes == 2:
            return self.hard(rows)
        graph, ensemble = self.graph, self.state.ensemble.voters()
        margins = self._member_margins(rows, ensemble)
        votes, means = self._first_round(margins, ensemble.copies)
        scores = graph.op("Add", votes, means)
        low, high = self._top_two(scores)
        prefers_low = graph.cast(self._prefers(margins, low, high), np.float64)
        for_low = graph.op("Mul", graph.reduce("Sum", prefers_low, 1), float(ensemble.copies))
        for_high = graph.op("Sub", float(ensemble.n_members), for_low)
        for finalist, count in ((low, for_low), (high, for_high)):
            second_round = graph.op("Add", graph.expand(count, 1), float(ensemble.n_members))
            second_round = graph.op("Add", second_round, means)
            scores = graph.op("Where", self._is_class(finalist), second_round, scores)
        return scores

    def write_label(self) -> None:
        graph, classes = self.graph, self.state.classes
        if self.n_classes == 2:
            zero = np.zeros((), dtype=self.state.ensemble.weights.dtype)
            chosen = graph.cast(graph.op("Greater", "scores", zero), np.int64)
        else:
            chosen = graph.op("ArgMax", "scores", axis=1, keepdims=0)
        labels = classes.astype(object) if classes.dtype.kind == "U" else classes
        graph.op("Gather", labels, chosen, output="label")

    def write_probabilities(self) -> None:
        """Write ``predict_proba`` from the output ``scores``."""
        graph = self.graph
        if self.n_classes == 2:
            column = graph.expand("scores", 1)
            both = graph.op("Concat", graph.op("Neg", column), column, axis=1)
            graph.op("Sigmoid", both, output="probabilities")
            return
        odds = graph.op("Sigmoid", "scores")
        graph.op("Div", odds, graph.reduce("Sum", odds, 1, keepdims=1), output="probabilities")

    def _top_two(self, scores: str) -> tuple[str, str]:
        """Return the numbers of the two classes with the highest scores, (rows,), the lower first."""
        graph = self.graph
        best = graph.op("ArgMax", scores, axis=1, keepdims=0)
        others = graph.op("Where", self._is_class(best), -np.inf, scores)
        second = graph.op("ArgMax", others, axis=1, keepdims=0)
        return graph.op("Min", best, second), graph.op("Max", best, second)

    def _prefers(self, margins: str, low: str, high: str) -> str:
        """Tell whether members prefer the class ``low``, (rows, members)."""
        graph = self.graph
        if not self.is_ovo:
            scores = [self._chosen(margins, self._is_class(finalist)) for finalist in (low, high)]
            return graph.op("GreaterOrEqual", *scores)
        # pair_numbers of ``exclusivity.classifier.votes.decisions``
        width = graph.op("Sub", np.int64(2 * self.n_classes - 1), low)
        start = graph.op("Div", graph.op("Mul", low, width), np.int64(2))
        pair = graph.op("Add", start, graph.op("Sub", graph.op("Sub", high, low), np.int64(1)))
        is_pair = graph.op("Equal", graph.expand(pair, 1), np.arange(len(self._first)))
        return graph.op("Greater", self._chosen(margins, is_pair), 0.0)

    def _chosen(self, margins: str, is_chosen: str) -> str:
        """Return the one margin of each member that is chosen in its row, (rows, members)."""
        mask = self.graph.expand(is_chosen, 1)
        return self.graph.reduce("Sum", self.graph.op("Where", mask, margins, 0.0), 2)

    def _is_class(self, codes: str) -> str:
        """Return (rows,) numbers of classes as (rows, classes) truths."""
        return self.graph.op("Equal", self.graph.expand(codes, 1), np.arange(self.n_classes))

    def _first_round(self, margins: str, copies: int) -> tuple[str, str]:
        """Return votes by class, and the squashed mean margins."""
        graph = self.graph
        best, margins = self._best(margins)
        is_best = graph.op("Equal", graph.expand(best, 2), np.arange(self.n_classes))
        votes = graph.op("Mul", graph.reduce("Sum", graph.cast(is_best, np.float64), 1), float(copies))
        return votes, self._squashed(graph.reduce("Mean", margins, 1))

    def _margins(self, rows: str, ensemble: Ensemble) -> str:
        """Return (rows, members, problems), float64."""
        by_member = ensemble.weights.astype(float).transpose(2, 1, 0)
        n_features, n_members, n_problems = by_member.shape
        flat = self.graph.op("MatMul", rows, by_member.reshape(n_features, -1))
        flat = self.graph.op("Add", flat, ensemble.intercepts.astype(float).T.reshape(-1))
        return self.graph.op("Reshape", flat, np.array([-1, n_members, n_problems]))

    def _member_margins(self, rows: str, ensemble: Ensemble) -> str:
        """Return margins of members that vote, each from its own columns, whatever the others hold.

        A product adds 0 * x for a column that a member does not use, which is NaN for NaN and infinity.
        """
        margins = self._margins(self._finite(rows, float(np.finfo(float).max)), ensemble)
        return self._finite(margins, _LARGEST_MARGIN)

    def _finite(self, values: str, largest: float) -> str:
        """Return NaN as zero, and all else cut off at the largest size."""
        numbers = self.graph.op("Where", self.graph.op("IsNaN", values), 0.0, values)
        return self.graph.op("Clip", numbers, -largest, largest)

    def _tallies(self, margins: str) -> tuple[str, str]:
        """One-vs-one: return pairs won and sums of margins, by class."""
        graph, sign = self.graph, self._first - self._second
        first_wins = graph.cast(graph.op("Greater", margins, 0.0), np.float64)
        wins = graph.op("Add", graph.op("MatMul", first_wins, sign), self._second.sum(axis=0))
        return wins, graph.op("MatMul", margins, sign)

    def _best(self, margins: str) -> tuple[str, str]:
        """Return the class that each member votes for, and its margins by class."""
        graph = self.graph
        if not self.is_ovo:
            return graph.op("ArgMax", margins, axis=2, keepdims=0), margins
        wins, sums = self._tallies(margins)
        # Whole numbers of wins outweigh margins squashed into (-1/2, 1/2), but squashing may round two
        # margins to one: the margins themselves decide among the classes with most wins.
        most = graph.reduce("Max", wins, 2, keepdims=1)
        ranked = graph.op("Where", graph.op("Equal", wins, most), sums, -np.inf)
        return graph.op("ArgMax", ranked, axis=2, keepdims=0), sums

    def _squashed(self, values: str) -> str:
        below = self.graph.op("Add", self.graph.op("Abs", values), 1.0)
        return self.graph.op("Mul", self.graph.op("Div", values, below), 0.49)
