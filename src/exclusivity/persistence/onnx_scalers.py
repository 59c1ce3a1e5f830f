"""scikit-learn's scalers as ONNX operations, rounded where scikit-learn rounds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from exclusivity.persistence.onnx_graph import GraphWriter

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator


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
