"""ONNX graphs, operation by operation."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from exclusivity import __version__

OPSET = 18
OPSET_OF_TABLES = 3
"""Of the domain ai.onnx.ml, where texts become numbers."""
IR_VERSION = 8

Operand = str | float | np.generic | NDArray[Any]
"""The name of a value, or a constant."""


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
        self._constants: dict[Any, Any] = {}
        self._count = 0
        self._domains = {"": OPSET}

    def op(
        self, kind: str, *inputs: Operand, output: str | None = None, domain: str = "", **attributes: object
    ) -> str:
        """Return the (first) result of an operation of the ONNX standard."""
        names = [each if isinstance(each, str) else self._constant(np.asarray(each)) for each in inputs]
        output = output or self._name()
        others = [self._name()] if kind == "TopK" else []  # the places of the largest, which nobody needs
        if domain:
            self._domains[domain] = OPSET_OF_TABLES
        self._nodes.append(
            self.onnx.helper.make_node(kind, names, [output, *others], domain=domain, **attributes)
        )
        return output

    def cast(self, value: str, dtype: DTypeLike, output: str | None = None) -> str:
        """Return the same numbers in another type."""
        return self.op("Cast", value, output=output, to=self.tensor_type(dtype))

    def labels(self, texts: str, numbers: dict[str, int], default: int) -> str:
        """Return the numbers of texts."""
        table: dict[str, Any] = {"keys_strings": list(numbers), "values_int64s": list(numbers.values())}
        return self.op("LabelEncoder", texts, domain="ai.onnx.ml", default_int64=default, **table)

    def reduce(self, how: str, value: str, axis: int, keepdims: int = 0, output: str | None = None) -> str:
        """Return the Sum, Mean, Min or Max over one axis, which disappears unless it is kept."""
        return self.op(f"Reduce{how}", value, np.array([axis]), output=output, keepdims=keepdims)

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
            helper.make_graph(self._nodes, "exclusivity", *described, list(self._constants.values())),
            producer_name="exclusivity",
            producer_version=__version__,
            opset_imports=[helper.make_opsetid(*pair) for pair in self._domains.items()],
            ir_version=IR_VERSION,
        )
        self.onnx.checker.check_model(model)
        return model

    def _constant(self, values: NDArray[Any]) -> str:
        values = np.asarray(values, order="C")
        content = tuple(values.flat) if values.dtype.kind == "O" else values.tobytes()
        key = values.dtype.str, values.shape, content  # equal constants are stored once
        if key not in self._constants:
            self._constants[key] = self.onnx.numpy_helper.from_array(values, self._name())
        return str(self._constants[key].name)

    def _name(self) -> str:
        self._count += 1
        return f"v{self._count - 1}"
