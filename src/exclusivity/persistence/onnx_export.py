"""to_onnx: a fitted model as an ONNX graph, in double precision like the model itself."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from exclusivity import __version__
from exclusivity.classifier import Ensemble, FittedState
from exclusivity.persistence.container import ArrayStore
from exclusivity.persistence.kinds import PASSTHROUGH, pack_model
from exclusivity.persistence.onnx_encoder import (
    column_inputs,
    takes_one_array,
    write_encoder,
    write_interactions,
)
from exclusivity.persistence.onnx_graph import GraphWriter
from exclusivity.persistence.onnx_scalers import Rows, write_scaler
from exclusivity.tables import InteractionFeatures, TableEncoder

_INPUT_TYPES = ("float32", "float64")
_LARGEST_MARGIN = 1e150


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
    >>> from exclusivity.persistence import to_onnx
    >>> graph = to_onnx(ERMClassifier(3).fit([[0.0], [1.0]], ["low", "high"]))
    >>> [output.name for output in graph.graph.output]
    ['label', 'scores']
    """
    if input_type is not None and input_type not in _INPUT_TYPES:
        raise ValueError(f"input_type must be one of {_INPUT_TYPES}, or None; got {input_type!r}.")
    pack_model(model, ArrayStore())  # what cannot be saved cannot be exported, for the same reasons
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
