"""The graph of a RobustAdditiveClassifier: scores of duels, labels, radii and probabilities.

Every column gives a contribution to each duel, (rows, duels), and the damage that the adversary can do with
it to either class. The equations are those of ``exclusivity.additive``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from exclusivity.additive import RobustAdditiveClassifier
from exclusivity.additive.certificates import _SLACKS as SLACKS
from exclusivity.additive.levels import ColumnLevels

if TYPE_CHECKING:
    from exclusivity.io._onnx_graph import GraphWriter


class AdditiveDuels:
    """The duels of all pairs of classes, column by column."""

    def __init__(self, graph: GraphWriter, model: RobustAdditiveClassifier) -> None:
        self.graph, self.model, self.n_classes = graph, model, len(model.classes_)
        reach, ends = model._reach, zip(*model._adversary._ends, strict=True)
        # What the adversary can make of a cell with each point at its left: the least and the most.
        self._reached = [np.where(np.isfinite(end), end, 0.0)[:, reach.of_point].T for end in ends]
        self._can_change = (reach.stop > reach.start)[reach.of_point].astype(float)
        self._contributions: list[str] = []
        self._damages: dict[int, list[list[str]]] = {}

    def add(self, cells: str, column: ColumnLevels) -> None:
        """Add the next column, whose cells are numbers, NaN where missing, or texts."""
        graph, place = self.graph, len(self._contributions)
        start = int(self.model._levels.starts[place])
        points = self.model.points_[:, start : start + column.n_points].T
        if column.kind == "category":
            left = self._category(cells, column)
            found, reached_from = graph.op("Gather", points, left), left
        elif not len(column.knots):
            is_missing = graph.op("IsNaN", graph.cast(cells, np.float64))
            left = reached_from = graph.op("Mul", self._flat(graph.cast(is_missing, np.int64)), np.int64(0))
            found = graph.op("Gather", points[-1:], left)
        else:
            found, reached_from = self._number(graph.cast(cells, np.float64), column, points, place)
        self._contributions.append(found)
        group = int(self.model._reach.group[place])
        at = graph.op("Add", reached_from, np.int64(start))
        can_change = graph.expand(graph.op("Gather", self._can_change, at), 1)
        damages = []
        for side, end in zip((1.0, -1.0), self._reached, strict=True):
            change = graph.op("Sub", found, graph.op("Gather", end, at))
            damage = graph.op("Max", graph.op("Mul", change, side), 0.0)
            damages.append(graph.op("Mul", damage, can_change))
        self._damages.setdefault(group, []).append(damages)

    def _category(self, cells: str, column: ColumnLevels) -> str:
        """Return the point of each cell, (rows,); an empty text is a missing value."""
        places = {text: place for place, text in enumerate(column.categories)}
        other = len(places) if column.rare else column.n_points - 1
        places[""] = column.n_points - 1
        return self._flat(self.graph.labels(cells, places, other))

    def _number(self, cells: str, column: ColumnLevels, points: NDArray[Any], place: int) -> tuple[str, str]:
        """Return contributions, and the points from which the adversary starts."""
        graph, knots, last = self.graph, column.knots, len(column.knots) - 1
        is_missing = graph.op("IsNaN", cells)
        value = graph.op("Clip", graph.op("Where", is_missing, knots[0], cells), knots[0], knots[-1])
        passed = graph.cast(graph.op("GreaterOrEqual", value, knots), np.int64)
        left = graph.op("Sub", graph.reduce("Sum", passed, 1), np.int64(1))
        right = graph.op("Min", graph.op("Add", left, np.int64(1)), np.int64(last))
        low = graph.op("Gather", knots / 2, left)
        width = graph.op("Sub", graph.op("Gather", knots / 2, right), low)
        share = graph.op("Sub", self._flat(graph.op("Mul", value, 0.5)), low)
        share = graph.op("Where", graph.op("Greater", width, 0.0), graph.op("Div", share, width), 0.0)
        is_right = graph.cast(graph.op("Greater", share, 0.0), np.int64)
        share = graph.expand(graph.op("Clip", share, 0.0, 1.0), 1)
        first, second = (graph.op("Gather", points, point) for point in (left, right))
        found = graph.op("Add", first, graph.op("Mul", share, graph.op("Sub", second, first)))
        found = graph.op("Where", is_missing, points[-1:], found)
        if self.model._reach.shifted[place]:
            left = graph.op("Add", left, is_right)
        return found, graph.op("Where", self._flat(is_missing), np.int64(column.n_points - 1), left)

    def _flat(self, cells: str) -> str:
        return self.graph.op("Squeeze", cells, np.array([1]))

    def write(self) -> None:
        """Write the outputs scores, label, radius and probabilities."""
        graph, model = self.graph, self.model
        leads = graph.op("Add", graph.op("Sum", *self._contributions), model.intercept_)
        if self.n_classes == 2:
            graph.op("Squeeze", leads, np.array([1]), output="scores")
            winner = graph.cast(graph.op("Greater", "scores", 0.0), np.int64)
        else:
            graph.reduce("Min", self._by_class(leads), 2, output="scores")
            winner = graph.op("ArgMax", "scores", axis=1, keepdims=0)
        labels = model.classes_.astype(object) if model.classes_.dtype.kind == "U" else model.classes_
        graph.op("Gather", labels, winner, output="label")
        self._write_radius(leads, winner)
        if hasattr(model, "predict_proba"):
            odds = graph.op("Exp", graph.op("Neg", self._by_class(graph.op("Clip", leads, -700.0, 700.0))))
            inverse = graph.op("Add", graph.reduce("Sum", graph.op("Add", odds, 1.0), 2), 2.0)
            found = graph.op("Div", 1.0, graph.op("Sub", inverse, float(self.n_classes)))
            graph.op("Div", found, graph.reduce("Sum", found, 1, keepdims=1), output="probabilities")

    def _by_class(self, leads: str) -> str:
        """Return the leads of each class in its duels, (rows, classes, duels of a class)."""
        own = [
            [n for n, duel in enumerate(self.model._duels.pairs) if c in duel] for c in range(self.n_classes)
        ]
        signs = [
            [1.0 if self.model._duels.pairs[n][1] == c else -1.0 for n in row] for c, row in enumerate(own)
        ]
        return self.graph.op("Mul", self.graph.op("Gather", leads, np.array(own), axis=1), np.array(signs))

    def _write_radius(self, leads: str, winner: str) -> None:
        """Count the largest damages that fit into the lead of the winner of each duel, less four slacks."""
        graph, model = self.graph, self.model
        most = model._adversary.n_breakable
        slack = np.array([SLACKS * score.slack for score in model._duels.scores])
        first, second = np.array(self.model._duels.pairs).T
        column = graph.expand(winner, 1)
        wins_second = graph.op("Equal", column, second)
        takes_part = graph.op("Or", wins_second, graph.op("Equal", column, first))
        margin = graph.op("Where", wins_second, leads, graph.op("Neg", leads))
        by_group = []
        for parts in self._damages.values():
            for_second, for_first = (
                parts[0][side] if len(parts) == 1 else graph.op("Sum", *(each[side] for each in parts))
                for side in (0, 1)
            )
            by_group.append(graph.expand(graph.op("Where", wins_second, for_second, for_first), 2))
        damages = graph.op("Concat", *by_group, axis=2)
        ordered = graph.op("TopK", damages, np.array([len(by_group)]), axis=2)
        total = graph.op("CumSum", ordered, np.int64(2))
        room = graph.op("Sub", margin, slack)
        stands = graph.cast(graph.op("Less", total, graph.expand(room, 2)), np.int64)
        radius = graph.op("Min", graph.reduce("Sum", stands, 2), np.int64(most))
        radius = graph.op("Where", graph.op("Greater", room, 0.0), radius, np.int64(-1))
        radius = graph.op("Where", takes_part, radius, np.int64(most))
        graph.reduce("Min", radius, 1, output="radius")
