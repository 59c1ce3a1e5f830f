"""A small writer of ONNX graphs: constants and operations get their names here."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

OPSET = 18
OPSET_OF_TABLES = 3
"""Of the domain ai.onnx.ml, where texts become numbers."""
IR_VERSION = 8


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
