"""Leave out each check of the loader of model files in turn, and see whether the fuzzer notices.

    python scripts/fuzz_checks.py --count 40000

The loader is compiled with a switch in every condition that ends in a refusal; of conditions that are joined
by "or" each has its own; rules and ranges of numbers have one for every field that has them. Files are
damaged as in fuzz_models.py, and sorted by the condition that refuses them. Then every condition is switched
off, and files that it had refused must break a rule of the fuzzer: a
check whose absence changes nothing is not needed, or the rules are too weak. What refused nothing, or is not
missed, is printed; exit code 1.
"""

# ruff: noqa: T201, S311, E402, PLW0603 -- a command talks to its user; the same damage for the same seed

from __future__ import annotations

import argparse
import ast
import importlib.machinery
import io
import itertools
import random
import re
import sys
import warnings
from collections import defaultdict
from typing import Any

PACKAGE = "exclusivity.io."
MODULES = ("models", "_model_kinds", "_model_tables", "_model_values")
REFUSAL = "Refusal"
KEPT = 300
_ROUNDS = 40
"""How often each change of several fields, and of each array, is made to each file, beside others."""

ELSEWHERE = {
    "!= len(buffer)": "a file that shrinks while it is read",
    "columns and parts of dates": "thousands of dates, in tests/persistence/test_table_models.py",
    "n_slices * longest": "thousands of knots, in tests/persistence/test_additive_models.py",
    "pairs of classes": "hundreds of classes, which no fuzzed file has",
    "folds and values of C": "thousands of folds, in tests/persistence/test_model_memory.py",
}
"""Parts of conditions that none of these files meets, and what does."""

PER_FIELD = ("not is_so", "least <= low")
"""Conditions that differ from field to field: rules about several of them, and ranges of numbers."""

_SHARED = re.compile(
    r"(?P<fitted>ERMClassifier(CV)?\.fitted)|(?P<column>\w+Scaler\.columns\.(?!scale_)\w+)"
    r"|(?P<needed>\w+Scaler: \w+_ is missing)"
)
"""Parts of paths that one line of the loader is about."""

CONDITIONS: list[str] = []
"""File, line and text of every condition that ends in a refusal."""

Check = tuple[int, str]
"""A condition, and the field of the file that it is about, where a field says so."""

seen: dict[Check, None] = {}
switched_off: Check | None = None
refused_by: Check | None = None
looked_at = b""


def holds(number: int, path: str, value: Any) -> Any:
    """Return a condition with a switch."""
    global refused_by
    is_own = any(words in CONDITIONS[number] for words in PER_FIELD)
    path = _SHARED.sub(lambda found: found.lastgroup or "", path) if is_own else ""
    seen[number, path] = None
    if (number, path) == switched_off:
        return False
    if value:
        refused_by = number, path
    return value


class _Switches(ast.NodeTransformer):
    def __init__(self, name: str) -> None:
        self.name = name
        self.has_path = False

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        outer, self.has_path = self.has_path, any(argument.arg == "path" for argument in node.args.args)
        self.generic_visit(node)
        self.has_path = outer
        return node

    def visit_If(self, node: ast.If) -> ast.If:
        self.generic_visit(node)
        last = node.body[-1]
        refused = last.exc if isinstance(last, ast.Raise) else None
        if getattr(getattr(refused, "func", None), "id", None) == REFUSAL:
            node.test = self._switched(node.test)
        return node

    def _switched(self, test: ast.expr) -> ast.expr:
        if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or):
            return ast.BoolOp(test.op, [self._switched(part) for part in test.values])
        CONDITIONS.append(f"{self.name}:{test.lineno}: {ast.unparse(test)}")
        switch = ast.Name("switched_condition", ast.Load())
        path: ast.expr = ast.Name("path", ast.Load()) if self.has_path else ast.Constant("")
        return ast.Call(switch, [ast.Constant(len(CONDITIONS) - 1), path, test], [])


class _Loader(importlib.machinery.SourceFileLoader):
    def get_code(self, fullname: str) -> Any:
        """Never from a cache."""
        tree = ast.parse(self.get_data(self.path))
        tree = ast.fix_missing_locations(_Switches(fullname.removeprefix(PACKAGE)).visit(tree))
        return compile(tree, self.path, "exec")

    def exec_module(self, module: Any) -> None:
        """With the switches among the names of the module."""
        vars(module)["switched_condition"] = holds
        super().exec_module(module)


class _Finder:
    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        """Compile the loader of model files."""
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if name in [PACKAGE + module for module in MODULES] and spec is not None and spec.origin is not None:
            spec.loader = _Loader(name, spec.origin)
        return spec


sys.meta_path.insert(0, _Finder())  # type: ignore[arg-type]

import fuzz_models
from exclusivity.io import ModelFormatError, _model_kinds as kinds, models


def look_before_widths() -> None:
    """Look at the steps of a pipeline before their widths are compared.

    Damage to one step changes its width as a rule, and then the step behind refuses the file. Who crafts a
    file makes both fit; an unsound step is noticed all the same.
    """
    compare = kinds._check_widths

    def look(steps: list[tuple[str, Any]]) -> None:
        expected = fuzz_models.unpacked(looked_at)["steps"]
        for place, (_, step) in enumerate(steps):
            if not isinstance(step, str):
                fuzz_models.sound(step)
                stream, arrays = io.BytesIO(), []
                packed = kinds._pack_kind(step, is_classifier=place == len(steps) - 1)
                tree = models._with_references(packed, "", arrays)
                specs = [spec.as_json() for spec, _ in arrays]
                header = models.dump_json({"arrays": specs, "model": tree, "written_by": ""})
                models.write_container(header, arrays, stream.write)
                found = fuzz_models.unpacked(stream.getvalue())
                fuzz_models.expect(fuzz_models.holds(found, expected[place][1]), "another step")
        compare(steps)

    kinds._check_widths = look


def refused_files(count: int, seed: int) -> dict[Check | None, list[bytes]]:
    """Damaged files by the condition that refused them."""
    seeds, rng = fuzz_models.seed_files(), random.Random(seed)
    found: dict[Check | None, list[bytes]] = defaultdict(list)
    mutations = itertools.cycle(fuzz_models.MUTATIONS)
    files = itertools.chain(
        (mutate(rng.choice(seeds), rng) for mutate in itertools.islice(mutations, count)),
        (data for each in _ROUNDS * seeds for data in fuzz_models.changed_everywhere(each, rng)),
    )
    global refused_by
    for data in files:
        refused_by = None
        try:
            models.read_model(io.BytesIO(data), len(data))
        except ModelFormatError:
            if len(found[refused_by]) < KEPT:
                found[refused_by].append(data)
    return found


def fault(data: bytes) -> str:
    """Return what the fuzzer says of a file: "refused", "loaded", or "" where a rule is broken."""
    global looked_at
    looked_at = data
    try:
        _, peak = fuzz_models.measured(data)
        fuzz_models.check_peak(peak, len(data))
        return fuzz_models.check(data, thoroughly=True)
    except Exception:  # whatever it is, it is noticed
        return ""


def run(count: int, seed: int) -> int:
    """Report the conditions that nobody would miss, and their number."""
    global switched_off
    refused, missed = refused_files(count, seed), 0
    look_before_widths()
    reached = {number for number, _ in seen}
    checks = [*seen, *((number, "") for number in range(len(CONDITIONS)) if number not in reached)]
    for check in sorted(checks):
        switched_off = check
        outcomes = set()
        for data in refused.get(check, []):
            outcomes.add(fault(data))
            if "" in outcomes:
                break
        condition = f"{CONDITIONS[check[0]]} {check[1]}".rstrip()
        if "" in outcomes or any(words in condition for words in ELSEWHERE):
            continue
        missed += 1
        others = "another check refuses the same files" if outcomes == {"refused"} else "no rule is broken"
        print(f"{condition}: {others if outcomes else 'refused no file'}", flush=True)
    switched_off = None
    print(f"{len(checks)} conditions, {missed} of them are not missed ({count} files, seed {seed})")
    return missed


def main() -> None:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=40_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    fuzz_models.limit_memory(fuzz_models.HEADROOM)
    sys.exit(1 if run(options.count, options.seed) else 0)


if __name__ == "__main__":
    main()
