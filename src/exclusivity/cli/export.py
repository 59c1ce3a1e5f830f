"""``erm export``: a model for other runtimes."""

from __future__ import annotations

import argparse

from exclusivity.cli import files, models, options, output
from exclusivity.io._reading import listed

SUMMARY = "write a model as an ONNX graph"
DESCRIPTION = (
    "Writes the model, its scaling included, as an ONNX graph with the input X (rows by features), or one "
    "input per column (rows by 1) for a table with categories, and the outputs label and scores. Runtimes "
    "for ONNX exist for most languages. Needs the package onnx: pip install 'exclusivity[onnx]'."
)
EPILOG = """examples:
  erm export heart.erm -o heart.onnx"""

INPUTS = ("model",)
OUTPUTS = {"output": files.BINARY}

ARGUMENTS = (
    options.MODEL,
    ("-o --output", "FILE", str, "where to write the graph (model.onnx)", {"required": True}),
)


def run(args: argparse.Namespace) -> None:
    """Load, convert, write."""
    loaded = models.load(args.model)
    from exclusivity.io import to_onnx

    graph = to_onnx(loaded.model)
    output.write_whole(args.output, [graph.SerializeToString()])
    names = [each.name for each in graph.graph.input]
    inputs = f"inputs {listed(names)}, one for each column that the model uses (rows by 1)"
    if names == ["X"]:
        inputs = f"input X (rows by {loaded.n_features} feature{'s' * (loaded.n_features != 1)})"
    print(f"{args.output}: {inputs}; outputs {', '.join(each.name for each in graph.graph.output)}")
