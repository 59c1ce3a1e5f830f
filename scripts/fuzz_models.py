"""Damage model files in many ways and load them: a valid model or a ModelFormatError, nothing else.

    python scripts/fuzz_models.py --count 1000000        # the long run, about half an hour
    python scripts/fuzz_models.py --count 2000 --seed 7  # a short one

The files under tests/persistence/golden are mutated byte by byte, by blocks, in their arrays, and in the
JSON of their headers. Four fifths get lengths and checksums that fit again, so that the damage reaches
deep into the loader. A model that loads must predict labels of its own. Memory of the process is limited; of
every 101st load the peak is measured, which must not exceed twice the file plus 16 MiB. A load of more than
ten seconds counts as hanging. A file that breaks a rule is kept as fuzz-<seed>-<number>.erm, exit code 1.
"""

# ruff: noqa: T201, S311 -- a command talks to its user; the same damage for the same seed

from __future__ import annotations

import argparse
import copy
import hashlib
import io
import json
import random
import resource
import signal
import sys
import time
import tracemalloc
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from exclusivity.persistence import ModelFormatError, read_model
from exclusivity.persistence.container import DIGEST_SIZE, MAGIC, PREFIX, VERSION
from exclusivity.tables import TableEncoder

GOLDEN = Path(__file__).resolve().parent.parent / "tests" / "persistence" / "golden"
EXTRA_MEMORY = 16 << 20
HEADROOM = 1 << 30
SECONDS = 10

NUMBERS = [0, 1, -1, 2, 3, 255, 2**31, 2**32 - 1, 2**53, 2**63, 2**64, 10**30, 0.5, 1e308, -0.0, 1e-320]
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
    {"float": "nan"},
    {"tuple": [1, 2]},
    {"dict": [[1, 2]]},
]
VALUES += [
    {"dict": [[[], 2]]},
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
TOKENS = [
    b"NaN",
    b"Infinity",
    b"1e999",
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
    """A file with fitting lengths and checksum around whatever is given."""
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
            number = int(rng.choice(NUMBERS[:11])) % 2**64
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
    """What JSON should not hold, in the place of a number or a word."""
    header, arrays = split(data)
    places = [place for place, byte in enumerate(header) if byte in b":,["]
    at = rng.choice(places) + 1
    end = next(place for place in range(at, len(header)) if header[place] in b",]}")
    return joined(header[:at] + rng.choice(TOKENS) + header[end:], arrays)


def structure(data: bytes, rng: random.Random) -> bytes:
    """Valid JSON of another structure."""
    header, arrays = split(data)
    tree = json.loads(header)
    for _ in range(rng.randint(1, 2)):
        _change(tree, rng)
    text = json.dumps(tree, separators=(",", ":"))
    if rng.random() < 0.2:
        arrays = arrays[: rng.randrange(len(arrays) + 1)] + rng.randbytes(rng.choice([0, 8, 80]))
    return joined(text.encode(), arrays)


def _change(tree: Any, rng: random.Random) -> None:
    parents = [tree]
    for node in parents:  # grows while it is walked
        children = node.values() if isinstance(node, dict) else node
        parents.extend(child for child in children if isinstance(child, (dict, list)) and child)
    parent: Any = rng.choice(parents)
    key = rng.choice(list(parent) if isinstance(parent, dict) else range(len(parent)))
    kind = rng.randrange(5)
    if kind == 0:
        del parent[key]
    elif kind == 1 and isinstance(parent, dict):
        parent[rng.choice(["kind", "array", "extra", "", "steps"])] = copy.deepcopy(rng.choice(VALUES))
    elif kind == 2:
        other: Any = rng.choice(parents)
        parent[key] = copy.deepcopy(other)
    elif kind == 3 and isinstance(parent[key], (int, float)):
        parent[key] += rng.choice([-1, 1, 2**31, 0.5])
    else:
        parent[key] = copy.deepcopy(rng.choice(VALUES))


MUTATIONS: list[Callable[[bytes, random.Random], bytes]] = [raw, signed, numbers, tokens, structure]


def check(data: bytes, thoroughly: bool) -> str:
    """Load and use; what came of it."""
    try:
        model = read_model(io.BytesIO(data), len(data))  # type: ignore[arg-type]
    except ModelFormatError as error:
        if not error.cause or len(error.cause) > 1000:
            raise AssertionError(f"a message of {len(error.cause)} characters") from error
        return "refused"
    use(model)
    if thoroughly:
        repr(model)
        clone(model)
    return "loaded"


def use(model: Any) -> None:
    """A model that loads is a model: it predicts labels of its own."""
    classifier = model[-1] if hasattr(model, "steps") else model
    if model.n_features_in_ > 1000 or classifier.component_intercepts_.size > 10**5:
        return
    X: Any = np.random.default_rng(0).standard_normal((3, model.n_features_in_))
    if model is not classifier and isinstance(model[0], TableEncoder):
        X = np.full(X.shape, None, dtype=object)  # the one thing that columns of all kinds can hold
    try:
        labels = model.predict(X)
    except ValueError as error:
        if "Input X contains" in str(error) and model is not classifier:
            return  # a scaler with numbers near the end of the range; the classifier says what is wrong
        raise
    if len(labels) != 3 or not np.isin(labels, classifier.classes_).all():
        raise AssertionError(f"a model that predicts {labels!r} of {classifier.classes_!r}")


def measured(data: bytes) -> tuple[str, int]:
    """As ``check``, with the peak of memory while loading."""
    tracemalloc.start()
    try:
        try:
            read_model(io.BytesIO(data), len(data))  # type: ignore[arg-type]
            outcome = "loaded"
        except ModelFormatError:
            outcome = "refused"
        return outcome, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def one(data: bytes, number: int, found: Counter[str]) -> float:
    """One file: seconds that it took."""
    started = time.perf_counter()
    if number % 101 == 0:
        outcome, peak = measured(data)
        found["highest peak"] = max(found["highest peak"], peak)
        if peak > 2 * len(data) + EXTRA_MEMORY:
            raise AssertionError(f"{peak} bytes of memory for a file of {len(data)}")
    else:
        outcome = check(data, thoroughly=number % 11 == 0)
    found[outcome] += 1
    return time.perf_counter() - started


def hang(*_: Any) -> None:
    """The alarm clock, which counts processor time: a busy machine is no finding."""
    raise AssertionError(f"more than {SECONDS} seconds of processor time for one file")


def run(count: int, seed: int, out: Path) -> int:
    """Fuzz and report; the number of files that broke a rule."""
    seeds = [path.read_bytes() for path in sorted(GOLDEN.glob("*.erm"))]
    rng = random.Random(seed)
    found: Counter[str] = Counter()
    slowest, broken = 0.0, 0
    started = time.perf_counter()
    for number in range(count):
        mutate = MUTATIONS[number % len(MUTATIONS)]
        data = mutate(rng.choice(seeds), rng)
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
        f"{count} files (seed {seed}) in {seconds:.0f} s: {found['refused']} refused, {found['loaded']} "
        f"loaded and used, {broken} broke a rule; slowest {slowest * 1000:.0f} ms, "
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
    parser.add_argument("--out", type=Path, default=Path())
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # weights near the end of the range overflow, as they may
    signal.signal(signal.SIGPROF, hang)
    limit_memory(HEADROOM)
    sys.exit(1 if run(options.count, options.seed, options.out) else 0)


if __name__ == "__main__":
    main()
