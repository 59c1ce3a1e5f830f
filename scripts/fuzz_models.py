"""Damage model files in many ways and load them: a sound model or a ModelFormatError, nothing else.

    python scripts/fuzz_models.py --count 1000000        # the long run, about an hour
    python scripts/fuzz_models.py --count 2000 --seed 7  # a short one
    python scripts/fuzz_models.py --count 2000 --seed 7 --first 1999  # its last file alone

The files under tests/persistence/golden are mutated byte by byte, by blocks, in their arrays, and in the
JSON of their headers. Most get lengths and checksums that fit again, so that the damage reaches deep into
the loader. A model that loads must be sound: its parts fit together, it predicts labels of its own, it
certifies where it counts votes, and saved again it is the file that it came from. Memory of the process is
limited; of every 101st load the peak is measured, which must not exceed twice the file plus 16 MiB. A file
that takes more than ten seconds counts as hanging. A file that breaks a rule is kept as
fuzz-<seed>-<number>.erm, exit code 1. Whether these rules notice a loader without one of its checks is what
fuzz_checks.py asks.
"""

# ruff: noqa: T201, S311 -- a command talks to its user; the same damage for the same seed

from __future__ import annotations

import argparse
import copy
import hashlib
import io
import json
import random
import re
import resource
import signal
import sys
import time
import tracemalloc
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from exclusivity import ERMClassifier, ERMClassifierCV
from exclusivity.additive import RobustAdditiveClassifier
from exclusivity.classifier._validation import TEST, TRAINING_IF, TRAINING_TOO, check_parameters
from exclusivity.io import ModelFormatError
from exclusivity.io._model_values import LONGEST_LIST
from exclusivity.io.models import (
    DIGEST_SIZE,
    MAGIC,
    PREFIX,
    TYPES,
    VERSION,
    ArraySpec,
    packed_file,
    read_model,
    write_container,
)
from exclusivity.robustness import certify
from exclusivity.tables import TableEncoder
from exclusivity.tables._codes import MONTHS, WEEKDAYS, DateCode
from exclusivity.tables._columns import LONGEST_LEVEL, is_missing

GOLDEN = Path(__file__).resolve().parent.parent / "tests" / "persistence" / "golden"
EXTRA_MEMORY = 16 << 20
HEADROOM = 1 << 30
SECONDS = 10

NUMBERS = [
    0,
    1,
    -1,
    2,
    3,
    255,
    10**6,
    2**31,
    2**32 - 1,
    2**53,
    2**63,
    2**64,
    10**30,
    0.5,
    1e308,
    -0.0,
    1e-320,
]
VALUES: list[Any] = [
    *NUMBERS,
    None,
    True,
    False,
    "",
    "ovo",
    "hard",
    "x" * 300,
    "\u00e9\ud800",
    [],
    {},
    [[]],
    [None],
]
VALUES += [
    {"array": 0},
    {"array": -1},
    {"float": "inf"},
    {"float": "-inf"},
    {"float": "nan"},
    {"tuple": [1, 2]},
    {"dict": [[1, 2]]},
]
VALUES += [
    {"dict": [[[], 2]]},
    {"dict": [[1]]},
    {"dict": [[1, 2], [1, 3]]},
    {"set": [[1, 2]]},
    {"dict": [["\ud800", 1]]},
    {"dict": [[1, 10**25]]},
    "pandas",
    "learned",
    "f4",
    "f8",
    "U",
    "text",
    "bool",
    "O",
    "Pipeline",
    "StandardScaler",
    "os.system",
]
LONG: list[Any] = [
    [0] * 60_000,
    "x" * 10**5,
    {"tuple": [1] * 999},
    {"dict": [[k, 1] for k in range(5000)]},
]
KEYS = ["kind", "array", "extra", "", "steps", "certificate_scope", "target", "notations", "rows", "groups"]
KEYS += ["partition", "output", "feature_names", "voters"]
TOKENS = [
    b"NaN",
    b"Infinity",
    b"1e999",
    b'{"dict":[[0,1e999]]}',
    b'{"a":1,"a":2}',
    b"[" * 3000,
    b"\xff",
    b"-",
    b"9" * 5000,
    b'"\\ud800"',
]


def split(data: bytes) -> tuple[bytes, bytes]:
    """Header and arrays of a sound file."""
    length = PREFIX.unpack_from(data)[2]
    return data[PREFIX.size : PREFIX.size + length], data[PREFIX.size + length : -DIGEST_SIZE]


def joined(header: bytes, arrays: bytes) -> bytes:
    """Return a file with fitting lengths and checksum around whatever is given."""
    size = PREFIX.size + len(header) + len(arrays) + DIGEST_SIZE
    data = PREFIX.pack(MAGIC, VERSION, len(header), size) + header + arrays
    return data + hashlib.sha256(data).digest()


def damaged(data: bytes, rng: random.Random) -> bytes:
    """One to four changes anywhere."""
    buffer = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(buffer) + 1)
        span = rng.choice([1, 1, 2, 4, 8, 32, 300])
        kind = rng.randrange(7)
        if kind == 0 and at < len(buffer):
            buffer[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            buffer[at : at + span] = rng.randbytes(span)
        elif kind == 2:
            del buffer[at : at + span]
        elif kind == 3:
            buffer[at:at] = rng.randbytes(span)
        elif kind == 4:
            start = rng.randrange(len(buffer) + 1)
            buffer[at:at] = buffer[start : start + span]
        elif kind == 5:
            number = int(rng.choice(NUMBERS[:12])) % 2**64
            buffer[at : at + 8] = number.to_bytes(8, "little")
        else:
            del buffer[at:]
    return bytes(buffer)


def raw(data: bytes, rng: random.Random) -> bytes:
    """Damage that the checksum should notice."""
    return damaged(data, rng)


def signed(data: bytes, rng: random.Random) -> bytes:
    """Damage to header or arrays, with lengths and checksum that fit."""
    header, arrays = split(data)
    if rng.random() < 0.7:
        return joined(damaged(header, rng), arrays)
    return joined(header, damaged(arrays, rng))


def numbers(data: bytes, rng: random.Random) -> bytes:
    """Other numbers and letters in the arrays, with a checksum that fits."""
    header, arrays = split(data)
    buffer = bytearray(arrays)
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(buffer))
        buffer[at] = rng.choice([0, 1, 127, 255, rng.randrange(256)])
    return joined(header, bytes(buffer))


def tokens(data: bytes, rng: random.Random) -> bytes:
    """Put what JSON should not hold in the place of a number or a word."""
    header, arrays = split(data)
    if rng.random() < 0.1:
        return joined(re.sub(rb'("exclusivity"):[\d.]+', rb"\1:1e999", header), arrays)
    places = [place for place, byte in enumerate(header) if byte in b":,["]
    at = rng.choice(places) + 1
    end = next(place for place in range(at, len(header)) if header[place] in b",]}")
    return joined(header[:at] + rng.choice(TOKENS) + header[end:], arrays)


def structure(data: bytes, rng: random.Random) -> bytes:
    """Return valid JSON of another structure."""
    header, arrays = split(data)
    tree = json.loads(header)
    for _ in range(rng.randint(1, 2)):
        _change(tree, rng)
    text = json.dumps(tree, separators=(",", ":"), sort_keys=True)
    if rng.random() < 0.2:
        arrays = arrays[: rng.randrange(len(arrays) + 1)] + rng.randbytes(rng.choice([0, 8, 80]))
    return joined(text.encode(), arrays)


def _change(tree: Any, rng: random.Random) -> None:
    """Another value, key or order somewhere in a tree; arrays in it are leaves."""
    parents = [tree]
    for node in parents:  # grows while it is walked
        children = node.values() if isinstance(node, dict) else node
        parents.extend(child for child in children if isinstance(child, (dict, list)) and child)
    parent, other = rng.choice(parents), rng.choice(parents)
    key, other_key = (
        rng.choice(list(part) if isinstance(part, dict) else range(len(part))) for part in (parent, other)
    )
    kind = rng.randrange(8)
    if kind == 0:
        del parent[key]
    elif kind == 1 and isinstance(parent, dict):
        parent[rng.choice(KEYS)] = copy.deepcopy(rng.choice(VALUES))
    elif kind == 2:
        parent[key] = copy.deepcopy(other)
    elif kind == 3:
        parent[key] = copy.deepcopy(other[other_key])
    elif kind == 4:
        swapped = rng.choice(list(parent) if isinstance(parent, dict) else range(len(parent)))
        parent[key], parent[swapped] = parent[swapped], parent[key]
    elif kind == 5 and isinstance(parent[key], (int, float)):
        parent[key] = parent[key] + rng.choice([-1, 1, 2**31, 0.5])
    elif kind == 6 and isinstance(parent[key], int):
        parent[key] = bool(parent[key])
    else:
        parent[key] = copy.deepcopy(rng.choice(VALUES))


@dataclass(eq=False)
class Stored:
    """An array in the place of its reference: what refers to it can be moved, copied or dropped."""

    code: str
    array: Any

    def equals(self, other: Stored) -> bool:
        """Of the same type, shape and bytes."""
        same = self.code == other.code and self.array.shape == other.array.shape
        return bool(same and self.array.tobytes() == other.array.tobytes())


def unpacked(data: bytes) -> Any:
    """Return the model of a sound file with its arrays in their places."""
    header, arrays = split(data)
    tree, start, parts = json.loads(header, object_pairs_hook=unique), 0, []
    for described in tree["arrays"]:
        spec = ArraySpec.from_json(described, len(data))
        bytes_of = arrays[start : start + spec.n_bytes]
        parts.append(Stored(spec.type, np.frombuffer(bytes_of, dtype=spec.dtype).reshape(spec.shape).copy()))
        start += spec.n_bytes
    used: list[int] = []

    def placed(value: Any) -> Any:
        if isinstance(value, dict) and set(value) == {"array"}:
            expect(type(value["array"]) is int, "a reference")
            used.append(value["array"])
            return parts[value["array"]]
        if isinstance(value, dict):
            return {key: placed(entry) for key, entry in value.items()}
        return [placed(entry) for entry in value] if isinstance(value, list) else value

    found = placed(tree["model"])
    expect(sorted(used) == list(range(len(parts))), "an array that is not used once")
    expect(set(tree) == {"arrays", "model", "written_by"}, "a header with more than a model")
    return found


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of the header, no key twice."""
    expect(len(dict(pairs)) == len(pairs), "a key twice")
    return dict(pairs)


def assembled(model: Any) -> bytes:
    """Return the file of a model with arrays in their places, whatever it is."""
    specs: list[Any] = []
    pieces: list[bytes] = []

    def referred(value: Any) -> Any:
        if isinstance(value, Stored):
            width = {"width": value.array.dtype.itemsize // 4} if value.code in ("U", "text") else {}
            specs.append({"type": value.code, "shape": list(value.array.shape), **width})
            pieces.append(np.ascontiguousarray(value.array).tobytes())
            return {"array": len(specs) - 1}
        if isinstance(value, dict):
            return {key: referred(entry) for key, entry in value.items()}
        return [referred(entry) for entry in value] if isinstance(value, list) else value

    header = {"model": referred(model), "arrays": specs, "written_by": "0"}
    return joined(json.dumps(header, separators=(",", ":"), sort_keys=True).encode(), b"".join(pieces))


def parts_of(tree: Any) -> list[Stored]:
    """All arrays of a model."""
    if isinstance(tree, Stored):
        return [tree]
    children = tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ()
    return [found for child in children for found in parts_of(child)]


def rebuilt(data: bytes, rng: random.Random) -> bytes:
    """Change the model, not the file's form: what is dropped or moved takes its arrays along."""
    tree = unpacked(data)
    if rng.random() < 0.15:
        _change_together(tree, rng)
        return assembled(tree)
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        kind, found = rng.randrange(10), parts_of(tree)
        if kind < 6 and found:
            _change_array(rng.choice(found), rng)
        elif kind == 6 and found:  # all of one type become another
            code, other = rng.choice(found).code, rng.choice(list(TYPES))
            for part in found:
                if part.code == code and code in TYPES:
                    _cast(part, other)
        elif kind == 7:
            _change_parameter(tree, rng)
        else:
            _change(tree, rng)
    return assembled(tree)


def grafted(data: bytes, rng: random.Random) -> bytes:
    """Return a pipeline of steps of two files, in any order."""
    trees = [unpacked(data), unpacked(rng.choice(seed_files()))]
    steps = [step for tree in trees for step in tree.get("steps", [["erm", tree]])]
    chosen = rng.sample(steps, rng.randint(0, len(steps)))
    if rng.random() < 0.7:
        chosen.append(rng.choice(steps))
    if rng.random() < 0.2:
        chosen = [["s", step] for _, step in trees[0].get("steps", [])]
    elif rng.random() < 0.7:
        chosen = [[f"s{number}", step] for number, (_, step) in enumerate(chosen)]
    target = {"target": copy.deepcopy(rng.choice(VALUES))} if rng.random() < 0.3 else {}
    return assembled({"kind": "Pipeline", "steps": chosen, "verbose": False, **target})


def promises(data: bytes, rng: random.Random) -> bytes:
    """Return a header whose arrays are larger than the file, one too many, or elsewhere."""
    header, arrays = split(data)
    tree = json.loads(header)
    kind = rng.randrange(3)
    if kind == 0:
        described = rng.choice(tree["arrays"])
        described["shape"] = [rng.choice([len(data), 2, 10**4]) for _ in range(rng.choice([1, 3, 4]))]
    elif kind == 1:
        tree["arrays"].append({"type": "f8", "shape": [1]})
        arrays += bytes(8)
    else:
        reference = rng.choice([node for node in objects_of(tree["model"]) if set(node) == {"array"}][:9])
        number = reference["array"]
        reference["array"] = rng.choice([bool(number), -1, number + 1, 0, float(number), str(number)])
    return joined(json.dumps(tree, separators=(",", ":"), sort_keys=True).encode(), arrays)


def prefix(data: bytes, rng: random.Random) -> bytes:
    """Another magic, version or length in front, with a checksum that fits."""
    buffer = bytearray(data[:-DIGEST_SIZE])
    at = rng.randrange(PREFIX.size)
    buffer[at] ^= 1 << rng.randrange(8)
    if rng.random() < 0.2:
        del buffer[rng.randrange(len(buffer)) :]
    return bytes(buffer) + hashlib.sha256(buffer).digest()


def twice(data: bytes, rng: random.Random) -> bytes:
    """Write a key of the header twice, with the same value."""
    header, arrays = split(data)
    text = header.decode()
    keys = [found.group() for found in re.finditer(r'"\w+":(?:[\d.]+|true|false|null|"\w*")', text)]
    key = rng.choice(keys)
    return joined(text.replace(key, f"{key},{key}", 1).encode(), arrays)


def _change_array(part: Stored, rng: random.Random) -> None:
    """Another entry, order, length, shape or type."""
    if not part.array.size or rng.random() < 0.2:
        _other_type(part, rng)
    else:
        rng.choice([_other_entry, _other_entry, _other_order, _other_length, _other_shape])(part, rng)


def _other_entry(part: Stored, rng: random.Random) -> None:
    flat = part.array.reshape(-1)
    at = rng.choice([0, flat.size - 1, rng.randrange(flat.size)])
    if flat.dtype.kind == "U" and rng.random() < 0.3:  # no characters
        letters = flat.view("<u4")
        letters[rng.randrange(letters.size)] = rng.choice([0xD800, 0x110000])
    elif flat.dtype == np.uint8 and rng.random() < 0.5:
        flat[at] ^= 1 << rng.randrange(8)
    else:
        with np.errstate(all="ignore"):
            flat[at] = _extreme(flat, rng)


def _other_order(part: Stored, rng: random.Random) -> None:
    """Entries swapped, one twice, or moved from one to the other so that their sum stays."""
    flat = part.array.reshape(-1)
    at, other = (rng.choice([0, flat.size - 1, rng.randrange(flat.size)]) for _ in range(2))
    kind = rng.randrange(3)
    if kind == 0:
        flat[at] = flat[other]
    elif kind == 1 or flat.dtype.kind not in "iu":
        flat[[at, other]] = flat[[other, at]]
    else:
        with np.errstate(all="ignore"):
            step = flat.dtype.type(rng.choice([1, 2, int(flat[at]) + 1]) % 100)
            flat[at], flat[other] = flat[at] - step, flat[other] + step


def _other_length(part: Stored, rng: random.Random) -> None:
    shape = list(part.array.shape)
    axis = rng.randrange(len(shape)) if shape else None
    if axis is not None:
        shape[axis] = rng.choice([shape[axis] - 1, shape[axis] + 1, 0, 1])
        part.array = np.resize(part.array, shape)


def _other_shape(part: Stored, rng: random.Random) -> None:
    shapes: list[Any] = [(-1,), (-1, 1), (1, -1), (1, 1, -1), part.array.shape[::-1], (1, 1, 1, -1)]
    part.array = part.array.reshape(rng.choice(shapes))


def _other_type(part: Stored, rng: random.Random) -> None:
    if part.code in ("U", "text"):
        part.code = "U" if part.code == "text" else "text"
        part.array = part.array.astype(f"<U{max(20, part.array.dtype.itemsize // 4)}")
    elif part.code in TYPES:
        _cast(part, rng.choice(list(TYPES)))


def _cast(part: Stored, code: str) -> None:
    with np.errstate(all="ignore"):
        part.code, part.array = code, part.array.astype(TYPES[code])


def _extreme(flat: Any, rng: random.Random) -> Any:
    """Add an entry that may not be there."""
    kind = flat.dtype.kind
    if kind == "U":
        return rng.choice(["", "nan", "x" * 10**5, "?", "-"])
    if kind == "f":
        return rng.choice([np.nan, np.inf, -np.inf, 0.0, -1.0, 1e308, -1e308, 1e-320, 0.5])
    limits = np.iinfo(flat.dtype)
    number = rng.choice(
        [limits.min, limits.max, 0, 1, 2, flat.size, int(flat.max()) + 1, int(flat.min()) - 1]
    )
    return min(max(number, limits.min), limits.max)


def _change_parameter(tree: Any, rng: random.Random) -> None:
    """Another value of a parameter: of any type, too long or too deep."""
    owners = [node["params"] for node in objects_of(tree) if isinstance(node.get("params"), dict)]
    if not owners:
        return
    value: Any = copy.deepcopy(rng.choice([*VALUES, *LONG]))
    if rng.random() < 0.2:
        for _ in range(rng.choice([6, 7, 8, 9, 20, 100])):
            value = rng.choice([[value], {"tuple": [value]}])
    if rng.random() < 0.2:
        value = Stored("f8", np.ones(rng.choice([(2,), (1, 1, 1), (1, 1, 1, 1)])))
    params = rng.choice(owners)
    params[rng.choice([*params, *3 * ["class_weight", "feature_groups"]])] = value


def objects_of(tree: Any) -> list[dict[str, Any]]:
    """All objects of a tree, itself included."""
    children = list(tree.values()) if isinstance(tree, dict) else tree if isinstance(tree, list) else []
    found = [node for child in children for node in objects_of(child)]
    return [tree, *found] if isinstance(tree, dict) else found


def _change_together(tree: Any, rng: random.Random) -> None:
    """Change what has to change together to get past the other checks."""
    found = [(node, name) for node in objects_of(tree) for name in TOGETHER if name in node]
    if found:
        node, name = rng.choice(found)
        rng.choice(TOGETHER[name])(node, rng)


def _deep_search(search: Any, _: random.Random) -> None:
    for part in parts_of(search):
        part.array = part.array[..., None]


def _few_knots(codes: Any, _: random.Random) -> None:
    codes["knots"].array = codes["knots"].array[codes["n_knots"].array[0] - 2 :]
    codes["n_knots"].array[:1] = 2


def _far_knots(codes: Any, _: random.Random) -> None:
    knots = codes["knots"].array[: codes["n_knots"].array[0]]
    knots[:1], knots[1:] = -1.7e308, 1.7e308 + 1e300 * np.arange(len(knots) - 1)


def _negative_knots(codes: Any, _: random.Random) -> None:
    """Numbers of knots whose sum is right, and that cut off pieces of three or more."""
    n_knots = codes["n_knots"].array
    if len(n_knots) > 1:
        codes["knots"].array[:] = np.arange(len(codes["knots"].array))
        n_knots[:2] = -3, n_knots[:2].sum() + 3


def _extra_number(codes: Any, _: random.Random) -> None:
    codes["figures"].array = np.vstack([codes["figures"].array, [0.0, 1.0, 0.0, 1.0, 0.0]])
    codes["n_knots"].array = np.append(codes["n_knots"].array, 0)


def _extra_level(codes: Any, _: random.Random) -> None:
    codes["sizes"].array = np.vstack([codes["sizes"].array, [1, 0]])
    codes["texts"].array = np.append(codes["texts"].array, "extra").astype(codes["texts"].array.dtype)


def _no_levels(codes: Any, _: random.Random) -> None:
    sizes = codes["sizes"].array
    sizes[:1] = [[0, sizes[:1].sum()]]


def _overlapping_levels(codes: Any, _: random.Random) -> None:
    sizes = codes["sizes"].array
    sizes[:1, 1] -= 2
    sizes[1:2, 0] += 2


def _gap_as_level(codes: Any, _: random.Random) -> None:
    codes["texts"].array[:1] = ""


def _rows_seen(scaler: Any, _: random.Random) -> None:
    scaler["rows"] = 7


def _drop_column(scaler: Any, rng: random.Random) -> None:
    scaler["columns"][rng.choice(list(scaler["columns"]))] = None


def _unsigned_rows(scaler: Any, _: random.Random) -> None:
    if isinstance(scaler["rows"], Stored):
        _cast(scaler["rows"], "u2")


def _fewer_names(step: Any, _: random.Random) -> None:
    if isinstance(step["feature_names"], Stored):
        step["feature_names"].array = step["feature_names"].array[:-1]


def _endless_class(fitted: Any, _: random.Random) -> None:
    if fitted["classes"].array.dtype.kind == "f":
        fitted["classes"].array[-1] = np.inf


def _missing_beyond(model: Any, rng: random.Random) -> None:
    """Move the value of some point of an additive model far beyond the others."""
    points = model["points"].array
    points[..., rng.randrange(points.shape[-1])] = rng.choice([-1e9, 1e9])


def _other_interval(model: Any, rng: random.Random) -> None:
    place = rng.randrange(len(model["threats"].array))
    model["threats"].array[place] = rng.choice([4, 5, 5])
    model["intervals"].array[place] = rng.choice([(-(10.0 ** rng.randint(-2, 2)), 1.0), (0.5, -0.5)])


def _step_threat(model: Any, rng: random.Random) -> None:
    model["threats"].array[rng.randrange(len(model["threats"].array))] = rng.randrange(5)


def _drop_class(model: Any, rng: random.Random) -> None:
    classes = model["classes"]
    classes.array = rng.choice([classes.array[:-1], classes.array[:1], classes.array[:0]])
    keep = len(classes.array) * (len(classes.array) - 1) // 2
    for name in ("points", "intercept", "objective", "dual_gap", "converged", "n_iter"):
        model[name].array = model[name].array[:keep]


def _no_knots(columns: Any, _: random.Random) -> None:
    """Take all levels of the first number, and its shares with them."""
    count = columns["n_knots"].array[0]
    columns["knots"].array, columns["shares"].array = (
        columns[key].array[count:] for key in ("knots", "shares")
    )
    columns["n_knots"].array[0] = 0


def _nothing_left(model: Any, _: random.Random) -> None:
    """Take all levels of the first number, with its shares and points."""
    count = model["columns"]["n_knots"].array[0]
    _no_knots(model["columns"], _)
    model["points"].array = model["points"].array[:, count:]


def _knots_below_zero(columns: Any, _: random.Random) -> None:
    """Two counts of one sum, one of them below zero."""
    n_knots = columns["n_knots"].array
    n_knots[n_knots == 0], n_knots[0] = -1, n_knots[0] + (n_knots == 0).sum()


def _texts_below_zero(model: Any, _: random.Random) -> None:
    """Add a text to a category, fewer than no rare ones, and as many shares and points."""
    columns = model["columns"]
    place = int(np.argmax(columns["kinds"].array))
    sizes, has_missing = columns["sizes"].array, columns["has_missing"].array.astype(bool)
    n_levels = columns["n_knots"].array + sizes[:, 0] + (sizes[:, 1] > 0) + has_missing
    n_texts = int(sizes[place].sum())
    more = n_texts + 1 - int(sizes[place, 0] + (sizes[place, 1] > 0))
    sizes[place] = n_texts + 1, -1
    start = int(n_levels[:place].sum())
    columns["shares"].array = np.insert(columns["shares"].array, [start] * more, 0.0)
    start += int((~has_missing[:place]).sum())
    points = model["points"].array
    model["points"].array = np.insert(points, [start] * more, points[:, start : start + 1], axis=1)


def _knots_of_category(columns: Any, rng: random.Random) -> None:
    columns["kinds"].array[rng.randrange(len(columns["kinds"].array))] = 2


def _texts_of_number(columns: Any, rng: random.Random) -> None:
    kinds = columns["kinds"].array
    kinds[kinds == 2] = rng.choice([0, 1])


def _late_date(columns: Any, _: random.Random) -> None:
    columns["knots"].array[-1] = 1e300
    columns["kinds"].array[columns["kinds"].array == 0] = 1


def _same_text(columns: Any, rng: random.Random) -> None:
    texts = columns["texts"].array
    texts[1:2] = rng.choice([texts[0], "nan", ""])


def _short_weights(fitted: Any, _: random.Random) -> None:
    for name in ("weights", "intercepts"):
        _cast(fitted[name], "f2")


def _other_members(fitted: Any, rng: random.Random) -> None:
    fitted["n_members"] = rng.choice([fitted["n_members"] - 1, fitted["n_members"] + 1, 0, 10**7])


def _plain_groups(fitted: Any, _: random.Random) -> None:
    fitted["groups"] = None


def _negative_exclusivity(fitted: Any, rng: random.Random) -> None:
    fitted["exclusivity"] = rng.choice([-0.5, {"float": "-inf"}])


def _date_without_parts(codes: Any, _: random.Random) -> None:
    """All dates, which come last in the golden file, lose what they are made of."""
    types = codes["types"].array
    n_numbers, n_levels = int((types == 1).sum()), int((types == 2).sum())
    n_dates = int((types == 3).sum())
    sizes = codes["sizes"].array
    n_texts = int(sizes[:n_levels].sum())
    codes["parts"].array = np.zeros(n_dates, dtype=np.uint8)
    codes["has_gaps"].array = np.zeros(n_numbers + n_levels + n_dates, dtype=np.uint8)
    codes["figures"].array = codes["figures"].array[:n_numbers]
    n_knots = codes["n_knots"].array[:n_numbers]
    codes["n_knots"].array, codes["knots"].array = n_knots, codes["knots"].array[: int(n_knots.sum())]
    codes["sizes"].array, codes["texts"].array = sizes[:n_levels], codes["texts"].array[:n_texts]


def _odd_figure(codes: Any, rng: random.Random) -> None:
    """Put a range, mean or scale that no number has."""
    figures = codes["figures"].array.reshape(-1)
    if figures.size:
        figures[rng.randrange(figures.size)] = rng.choice([0.0, -1.0, 5e-324, 1e308, np.inf, np.nan])


def _gap_of_part(codes: Any, rng: random.Random) -> None:
    """Add or remove the output column of a code for missing values."""
    gaps = codes["has_gaps"].array
    gaps[rng.randrange(len(gaps))] ^= 1


def _odd_interval(model: Any, rng: random.Random) -> None:
    place = rng.randrange(len(model["threats"].array))
    model["threats"].array[place] = 5
    model["intervals"].array[place] = rng.choice([(0.0, np.inf), (-np.inf, 0.0), (1e9, -1e9)])


def _endless_label(model: Any, _: random.Random) -> None:
    labels = np.arange(float(len(model["classes"].array)))
    labels[-1:] = np.inf
    model["classes"] = Stored("f8", labels)


TOGETHER: dict[str, list[Callable[[Any, random.Random], None]]] = {
    "parts": [_date_without_parts],
    "scores": [_deep_search],
    "figures": [_few_knots, _far_knots, _negative_knots, _extra_number, _odd_figure],
    "has_gaps": [_no_levels, _overlapping_levels, _gap_as_level, _extra_level, _gap_of_part],
    "points": [
        *(_missing_beyond, _other_interval, _odd_interval, _step_threat),
        *(_drop_class, _endless_label, _nothing_left, _texts_below_zero),
    ],
    "shares": [_no_knots, _knots_of_category, _texts_of_number, _late_date, _same_text, _knots_below_zero],
    "rows": [_rows_seen, _unsigned_rows, _drop_column],
    "feature_names": [_fewer_names],
    "weights": [_plain_groups, _negative_exclusivity, _endless_class, _short_weights, _other_members],
}
"""Changes of an object that has a field of this name."""


def changed_everywhere(data: bytes, rng: random.Random) -> Iterator[bytes]:
    """Every change of several fields, and a change of every array, made once and alone."""
    tree = unpacked(data)
    for place, node in enumerate(objects_of(tree)):
        for change in [change for name in TOGETHER if name in node for change in TOGETHER[name]]:
            other = unpacked(data)
            change(objects_of(other)[place], rng)
            yield assembled(other)
    for place in range(len(parts_of(tree))):
        other = unpacked(data)
        _change_array(parts_of(other)[place], rng)
        yield assembled(other)


MUTATIONS: list[Callable[[bytes, random.Random], bytes]] = [
    *(raw, signed, numbers, tokens, structure, prefix, promises, twice, grafted),
    *[rebuilt] * 11,
]


def check(data: bytes, thoroughly: bool) -> str:
    """Load and use; what came of it."""
    try:
        model = read_model(io.BytesIO(data), len(data))
    except ModelFormatError as error:
        if not error.cause or len(error.cause) > 1000:
            raise AssertionError(f"a message of {len(error.cause)} characters") from error
        return "refused"
    with warnings.catch_warnings():  # what is warned of breaks no rule, whoever runs this
        warnings.simplefilter("ignore")
        names = [name for name, _ in getattr(model, "steps", [])]
        expect(len(set(names)) == len(names), "names of steps")
        target = getattr(model, "target_column_", 0)
        is_name = isinstance(target, str) and target.encode(errors="ignore").decode() == target
        expect(is_name or (type(target) is int and target >= 0), "column of the classes")
        for step in steps_of(model):
            sound(step)
        use(model)
        saved_again(model, data)
        if thoroughly:
            repr(model)
            clone(model)
    return "loaded"


def steps_of(model: Any) -> list[Any]:
    """Return the steps of a pipeline that do something, or the model."""
    steps = [step for _, step in model.steps] if hasattr(model, "steps") else [model]
    return [step for step in steps if not isinstance(step, str)]


def sound(step: Any) -> None:
    """Check what ``fit`` leaves behind: the parts of a step fit together."""
    n_features = step.n_features_in_
    names = getattr(step, "feature_names_in_", None)
    expect(n_features >= 1, "no features")
    expect(names is None or [type(name) for name in names] == [str] * n_features, "names of features")
    if hasattr(step, "scale_") or hasattr(step, "n_samples_seen_"):
        sound_scaler(step)
    elif isinstance(step, TableEncoder):
        sound_encoder(step)
    elif isinstance(step, RobustAdditiveClassifier):
        sound_additive(step)
    else:
        sound_classifier(step)


def expect(is_so: Any, what: str) -> None:
    """Raise where a rule is broken."""
    if not is_so:
        raise AssertionError(f"a model that loaded is not sound: {what}")


def sound_classifier(model: Any) -> None:
    """Classes, members, one figure per problem, groups and their owners, parameters."""
    classes, ensemble = model.classes_, model._ensemble
    expect(classes.ndim == 1 and len(classes) >= 2, "classes")
    expect(np.array_equal(np.unique(classes), classes), "classes out of order")
    expect(classes.dtype.kind != "f" or np.isfinite(classes).all(), "classes that are no numbers")
    n_pairs = len(classes) * (len(classes) - 1) // 2
    n_problems = {"ovr": 1 if n_pairs == 1 else len(classes), "ovo": n_pairs}[model.multi_class_]
    n_stored = ensemble.weights.shape[1]
    expect(n_stored in (1, ensemble.n_members) and ensemble.n_members >= 1, "number of members")
    expect(ensemble.weights.shape == (n_problems, n_stored, model.n_features_in_), "shape of weights")
    expect(ensemble.intercepts.shape == (n_problems, n_stored), "shape of intercepts")
    expect(ensemble.weights.dtype in (np.float32, np.float64), "type of weights")
    expect(ensemble.intercepts.dtype == ensemble.weights.dtype, "type of intercepts")
    expect(np.isfinite(ensemble.weights).all() and np.isfinite(ensemble.intercepts).all(), "weights")
    per_problem = {"objective_": "f8", "dual_gap_": "f8", "converged_": "b1", "n_iter_": "i8"}
    for name, kind in per_problem.items():
        found = getattr(model, name)
        expect(found.shape == (n_problems,) and found.dtype == np.dtype(kind), name)
    first = np.unique(model.groups_, return_index=True)
    expect(model.groups_.shape == (model.n_features_in_,), "one group per feature")
    expect(np.array_equal(first[0], np.arange(len(first[0]))), "numbers of groups")
    expect(np.all(np.diff(first[1]) > 0), "order of groups")
    owners = getattr(model, "partition_", None)
    if owners is not None:
        expect(owners.shape == first[0].shape and owners.dtype == np.intp, "one owner per group")
        expect(np.all((owners >= -1) & (owners < ensemble.n_members)), "owners")
    params = model.get_params(deep=False)
    sound_parameter(params)
    if isinstance(model, ERMClassifierCV):
        sound_search(model)
    else:
        check_parameters(params)
    expect(type(model._fitted_exclusivity) is float and model._fitted_exclusivity >= 0, "exclusivity")
    expect(model.certificate_scope_ in (TEST, TRAINING_TOO, TRAINING_IF), "scope")


def sound_parameter(value: Any, depth: int = -1) -> None:
    """Not nested deeply, whole numbers of 64 bits, and texts."""
    expect(depth <= 8, "depth of a parameter")
    expect(not isinstance(value, int) or abs(value) < 2**64, "size of a parameter")
    expect(not isinstance(value, str) or value.encode(errors="ignore").decode() == value, "text")
    parts = [*value, *value.values()] if isinstance(value, dict) else value
    for part in parts if isinstance(value, (dict, list, tuple)) else ():
        sound_parameter(part, depth + 1)


def sound_search(model: Any) -> None:
    """Scores for every fold and C."""
    expect(np.all((model.Cs_ > 0) & np.isfinite(model.Cs_)) and model.Cs_.ndim == 1, "values of C")
    expect(
        model.scores_.ndim == 2 and model.scores_.size and model.scores_.shape[1] == len(model.Cs_), "scores"
    )
    expect(model.C_ in model.Cs_, "chosen C")


def sound_scaler(scaler: Any) -> None:
    """One finite number per column; scales are positive."""
    for name, values in vars(scaler).items():
        if name.endswith("_") and isinstance(values, np.ndarray) and name != "feature_names_in_":
            expect(values.shape == (scaler.n_features_in_,), name)
            expect(np.isfinite(values).all() and values.dtype.kind in "if", name)
    expect(getattr(scaler, "scale_", None) is None or np.all(scaler.scale_ > 0), "scales")
    expect(np.all(np.asarray(getattr(scaler, "n_samples_seen_", 0)) >= 0), "rows seen")
    scaler._validate_params()


def sound_encoder(encoder: TableEncoder) -> None:
    """Columns of a known kind, whose outputs are as many as their sources."""
    expect(len(encoder.columns_) == encoder.n_features_in_ <= 10_000, "columns")
    for column in encoder.columns_:
        expect(column.kind in ("number", "category", "date"), "kind of column")
        expect(
            column.n_missing >= 0 and (column.n_levels is None or column.n_levels >= 0), "counts of a column"
        )
        expect(type(column.left_out) is str, "reason")
        expect(column.notation is None or set(column.notation) <= set(".,'%?"), "notation")
        if isinstance(column.code, DateCode):
            expect(column.code.parts, "parts of a date")
            known = {"month": MONTHS, "weekday": WEEKDAYS}
            for name, part in column.code.parts:
                sound_code(part)
                expect(not part.has_missing, "gaps of a part")
                expect(set(getattr(part, "levels", ())) <= set(known.get(name, ())), "texts of a date")
        else:
            sound_code(column.code)
    expect(len(encoder.get_feature_names_out()) == len(encoder.sources_) > 0, "outputs")


def sound_code(code: Any) -> None:
    """Check a range with knots in order, or different levels."""
    if hasattr(code, "levels"):
        texts = [*code.levels, *code.rare]
        expect(len(code.levels) > 0 and len(set(texts)) == len(texts), "levels")
        expect(not any(is_missing(text) or len(text) > LONGEST_LEVEL for text in texts), "texts of levels")
    elif hasattr(code, "knots"):
        figures = np.array([code.low, code.high, code.mean, code.scale, code.fill])
        expect(np.isfinite(figures).all() and code.scale > 0 and code.low <= code.high, "range of a number")
        expect(np.isfinite(figures[:3] / code.scale).all(), "range of a number")
        expect(len(code.knots) not in (1, 2) and np.all(np.diff(code.knots) > 0), "knots")
        expect(np.isfinite(np.diff(code.knots)).all(), "knots")


def sound_additive(model: RobustAdditiveClassifier) -> None:
    """Columns with levels, a value for each of their points, and no cell beyond the levels."""
    sound_parameter(model.get_params(deep=False))
    classes, names = model.classes_, model._names()
    n_duels = len(classes) * (len(classes) - 1) // 2
    expect(len(classes) >= 2 and np.array_equal(np.unique(classes), classes), "classes")
    expect(classes.dtype.kind != "f" or np.isfinite(classes).all(), "classes that are no numbers")
    expect(model.points_.shape == (n_duels, sum(c.n_points for c in model.columns_)), "shape of points")
    expect(np.isfinite(model.points_).all() and np.isfinite(model.intercept_).all(), "points")
    for name, kind in (("intercept", "f8"), ("objective", "f8"), ("dual_gap", "f8"), ("n_iter", "i8")):
        found = getattr(model, f"{name}_")
        expect(found.shape == (n_duels,) and found.dtype == np.dtype(kind), name)
    expect(model.converged_.shape == (n_duels,) and model.converged_.dtype == bool, "converged")
    expect([column.name for column in model.columns_] == names, "names of columns")
    expect(len(model.threats_) == len(names), "threats")
    expect(np.all(model.n_iter_ >= 0), "evaluations")
    start = 0
    for column, threat in zip(model.columns_, model.threats_, strict=True):
        texts = [*column.categories, *column.rare]
        expect(column.n_levels > 0 and len(column.shares) == column.n_levels, "levels of a column")
        expect(np.all((column.shares >= 0) & (column.shares <= 1)), "shares of a column")
        expect(0 <= column.n_rows < np.inf, "rows of a column")
        expect(np.isfinite(column.knots).all() and np.all(np.diff(column.knots) > 0), "knots of a column")
        expect(not (texts if column.kind != "category" else len(column.knots)), "kind of a column")
        expect(len(set(texts)) == len(texts) and not any(map(is_missing, texts)), "categories")
        if isinstance(threat, tuple):
            knots = column.knots if len(column.knots) else np.zeros(1)
            ends = np.clip(threat, knots[0], knots[-1])
            expect(threat[0] <= threat[1] and column.kind == "number", "an interval")
            expect(np.isfinite(threat).all(), "an endless interval")
            expect(not len(column.knots) or np.isin(ends, knots).all(), "ends of an interval")
        expect(column.notation is None or set(column.notation) <= set(".,'%?"), "notation")
        expect(column.kind != "category" or threat in ("any", "trusted", "missing"), "a threat")
        values = model.points_[:, start : start + column.n_levels]
        missing = model.points_[:, start + column.n_points - 1]
        room = 1e-12 * np.abs(values).max(axis=1)
        expect(np.all(values.min(axis=1) - room <= missing), "the value of a missing cell")
        expect(np.all(missing <= values.max(axis=1) + room), "the value of a missing cell")
        expect(column.kind != "date" or [column.value_of(k) for k in range(len(column.knots))], "dates")
        start += column.n_points
    first = np.unique(model.feature_groups_, return_index=True)
    expect(model.feature_groups_.shape == (len(names),) and np.all(np.diff(first[1]) > 0), "groups")
    expect(np.array_equal(first[0], np.arange(len(first[0]))), "numbers of groups")


def use(model: Any) -> None:
    """Check that it predicts labels of its own, and certifies where it counts votes."""
    classifier = steps_of(model)[-1]
    width = steps_of(model)[0].n_features_in_
    X: Any = np.random.default_rng(0).standard_normal((3, width))
    if isinstance(steps_of(model)[0], (TableEncoder, RobustAdditiveClassifier)):
        X = np.full(X.shape, None, dtype=object)  # the one thing that columns of all kinds can hold
    try:
        labels = model.predict(X)
        if isinstance(classifier, RobustAdditiveClassifier):
            rows = np.full((3, classifier.n_features_in_), None, dtype=object)
            expect(classifier.certify(rows).shape == (3,), "radii")
        elif classifier.voting != "soft":
            expect(certify(model, X).shape == (3,), "radii")
    except ValueError as error:
        if "Input X contains" in str(error) and model is not classifier:
            return  # a scaler with numbers near the end of the range; the classifier says what is wrong
        raise
    expect(len(labels) == 3 and np.isin(labels, classifier.classes_).all(), "labels of its own")


def saved_again(model: Any, data: bytes) -> None:
    """Nothing of a file is passed over: what it says is what the model is saved as."""
    found, expected = unpacked(saved(model)), unpacked(data)
    length = PREFIX.unpack_from(data)[2]
    expect(data[: PREFIX.size] == PREFIX.pack(MAGIC, VERSION, length, len(data)), "another prefix")
    expect(data[-DIGEST_SIZE:] == hashlib.sha256(data[:-DIGEST_SIZE]).digest(), "another checksum")
    expect(holds(found, expected), "saved again it is another file")


def holds(found: Any, expected: Any) -> bool:
    """Whether what was found says all that was expected; defaults may come with it."""
    if isinstance(expected, list) and len(expected) > LONGEST_LIST:
        return True  # becomes an array
    if type(found) is not type(expected):
        return False
    if isinstance(expected, dict):
        plain = {"history"} | ({"groups"} if found.get("groups") is None else set())  # need not be stored
        return all(
            key in plain or (key in found and holds(found[key], value)) for key, value in expected.items()
        )
    if isinstance(expected, list):
        return len(found) == len(expected) and all(map(holds, found, expected))
    return found.equals(expected) if isinstance(expected, Stored) else bool(found == expected)


def measured(data: bytes) -> tuple[str, int]:
    """As ``check``, with the peak of memory while loading."""
    tracemalloc.start()
    try:
        try:
            read_model(io.BytesIO(data), len(data))
            outcome = "loaded"
        except ModelFormatError:
            outcome = "refused"
        return outcome, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def check_peak(peak: int, size: int) -> None:
    """Raise where loading took more memory than it may."""
    if peak > 2 * size + EXTRA_MEMORY:
        raise AssertionError(f"{peak} bytes of memory for a file of {size}")


def one(data: bytes, number: int, found: Counter[str]) -> float:
    """One file: seconds that it took."""
    started = time.perf_counter()
    if number % 101 == 0:
        outcome, peak = measured(data)
        found["highest peak"] = max(found["highest peak"], peak)
        check_peak(peak, len(data))
    else:
        outcome = check(data, thoroughly=number % 11 == 0)
    found[outcome] += 1
    return time.perf_counter() - started


def hang(*_: Any) -> None:
    """Raise at the alarm, which counts processor time: a busy machine is no finding."""
    raise AssertionError(f"more than {SECONDS} seconds of processor time for one file")


@cache
def seed_files() -> list[bytes]:
    """Return the files to be damaged: those of the suite, rare kinds more often, and others."""
    often = ("v1-table", "v1-search", "v1-scalers-pipeline")
    paths = sorted(GOLDEN.glob("*.erm"))
    files = [path.read_bytes() for path in [*paths, *2 * [path for path in paths if path.stem in often]]]
    X = np.random.default_rng(0).standard_normal((40, 4))
    voters = ERMClassifier(3, exclusivity=np.inf, voting="hard", partition="random", random_state=0)
    scaled = make_pipeline(StandardScaler(), ERMClassifier(2)).fit(X, X[:, 0] > 0)
    scaled[0].n_samples_seen_ = np.full(4, 40)  # one number per column, as after missing values
    table = read_model(io.BytesIO(files[-1]), len(files[-1]))
    for step in steps_of(table):
        if isinstance(step, TableEncoder):
            step.columns_ = [replace(column, notation=",") for column in step.columns_]
    models = [
        *additive_models(),
        ERMClassifier(2).fit(X.astype(np.float32), (X[:, 0] > 0).astype(float)),
        ERMClassifier(10**6, voting="runoff", class_weight={0: 1, 1: 2.0}).fit(
            X, np.digitize(X[:, 0], [-1, 1])
        ),
        voters.fit(X, X[:, 0] > 0),
        scaled,
        table,
    ]
    return [*files, *map(saved, models)]


def additive_models() -> list[RobustAdditiveClassifier]:
    """Models of numbers, dates and categories with missing values, and threats of all kinds."""
    import pandas as pd  # noqa: PLC0415 -- slow to import

    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "a": rng.normal(size=60),
            "b": np.where(rng.random(60) < 0.2, np.nan, rng.integers(0, 4, 60)),
            "c": np.where(rng.random(60) < 0.1, None, rng.choice(["x", "y", "z"], 60)),
            "d": pd.date_range("2026-01-01", periods=60),
        }
    )
    y = np.digitize(table.a + (table.c == "x"), [-0.5, 0.8])
    threats = {"a": (-1.0, 0.5), "b": "increase", "c": "missing"}
    models = [
        RobustAdditiveClassifier(0, n_knots=5, threats=threats, tol=0.5),
        RobustAdditiveClassifier(n_knots=4, feature_groups=list("ggab"), loss="logistic", tol=0.5),
    ]
    models[0].fit(table, y)
    models[0].columns_ = [replace(column, notation=".") for column in models[0].columns_]
    return [models[0], models[1].fit(table, np.array(["p", "q"])[(y > 1).astype(int)])] * 2


def saved(model: Any) -> bytes:
    """Return the file of a model."""
    stream = io.BytesIO()
    write_container(*packed_file(model), stream.write)
    return stream.getvalue()


def run(count: int, seed: int, out: Path, first: int = 0) -> int:
    """Fuzz and report; the number of files that broke a rule. Files before ``first`` are made, not loaded."""
    seeds = seed_files()
    rng = random.Random(seed)
    found: Counter[str] = Counter()
    slowest, broken = 0.0, 0
    started = time.perf_counter()
    for number in range(count):
        mutate = MUTATIONS[number % len(MUTATIONS)]
        data = mutate(rng.choice(seeds), rng)
        if number < first:
            continue
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        try:
            slowest = max(slowest, one(data, number, found))
        except Exception as error:  # whatever it is, it is a finding
            broken += 1
            (out / f"fuzz-{seed}-{number}.erm").write_bytes(data)
            print(f"{mutate.__name__}, file {number}: {type(error).__name__}: {error}")
        signal.setitimer(signal.ITIMER_PROF, 0)
        if (number + 1) % 100_000 == 0:
            print(f"{number + 1} files, {broken} broke a rule", flush=True)
    seconds = time.perf_counter() - started
    print(
        f"{count - first} files (seed {seed}) in {seconds:.0f} s: {found['refused']} refused, "
        f"{found['loaded']} loaded and used, {broken} broke a rule; slowest {slowest * 1000:.0f} ms, "
        f"highest peak of memory {found['highest peak'] / 2**20:.1f} MiB"
    )
    return broken


def limit_memory(headroom: int) -> None:
    """Let the process take so many bytes more than it has now, where the system can tell (Linux)."""
    status = Path("/proc/self/status")
    if status.exists():
        lines = status.read_text(encoding="ascii").splitlines()
        used = next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmData:"))
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        resource.setrlimit(resource.RLIMIT_DATA, (used + headroom, hard))


def main() -> None:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first file that is loaded")
    parser.add_argument("--out", type=Path, default=Path())
    options = parser.parse_args()
    signal.signal(signal.SIGPROF, hang)
    limit_memory(HEADROOM)
    sys.exit(1 if run(options.count, options.seed, options.out, options.first) else 0)


if __name__ == "__main__":
    main()
