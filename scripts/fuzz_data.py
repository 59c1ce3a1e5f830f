"""Damage data files in many ways and read them: a valid table or a DataFileError, nothing else.

    python scripts/fuzz_data.py --count 100000           # the long run
    python scripts/fuzz_data.py --count 1000 --seed 7    # a short one

LIBSVM, CSV and Parquet files, plain and compressed, are mutated byte by byte, by blocks and by words. They
are read in worker processes of limited memory, so that a crash inside a library is a finding, not the end.
A table that is read must be whole, its numbers finite or missing; a file may take ten seconds. A file that
breaks a rule is kept as fuzz-<seed>-<number>.<ending>, and the exit code is 1.
"""

# ruff: noqa: T201, S311, S603 -- a command talks to its user; the same damage for the same seed; own workers

from __future__ import annotations

import argparse
import bz2
import gzip
import io
import json
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from exclusivity.io import DataFileError, read_table
from fuzz_models import damaged, limit_memory

HEADROOM = 1 << 29
LARGEST = 1 << 26
SECONDS = 10
BATCH = 5000

LIBSVM = [
    b"+1 1:0.5 3:2 7:-1e-3\n-1 2:1  # a comment\n\n# only that\n+1 1:1 2:2 3:3\n-1\n",
    b"2.5 qid:1 1:1 2:0\n-3 qid:1 4:1e10\n1e0 qid:2 1:.5 3:5.\r\n" * 4,
    b"".join(b"%d %d:%f\n" % (i % 3, i + 1, i / 7) for i in range(60)),
]
CSV = [
    b"age,mass,state\n61,80.5,ill\n18,60,well\n-3e2,.5,ill\n",
    b'"a ""b""",c;d,y\n"1",2,"x, y"\n 3 , 4e-2 ,z\n\n5,6,7\n',
    b"\xef\xbb\xbfx\ty\n1\t0\n2\t1\n3\t0\n".replace(b"\t", b","),
    b"a,b,y\n" + b"".join(b"%d,%f,%d\n" % (i, i / 3, i % 2) for i in range(60)),
]
WORDS = [
    b"nan",
    b"inf",
    b"-",
    b"1e999",
    b"9" * 400,
    b"0x1p3",
    b"1_0",
    b"\xd9\xa1",
    b"\xef\xbc\x91",
    b"\0",
    b'"',
    b"'",
]
WORDS += [
    b"\n",
    b"\r",
    b",",
    b"," * 2000,
    b":",
    b"1:1",
    b"qid:",
    b"9223372036854775807:1",
    b"99999999999999999999:1",
]
WORDS += [b" ", b"\t", b"#", b"\xff\xfe", b"\xef\xbb\xbf", b"e", b".", b"+", b"=1+1", b"\x1a", b"a" * 70_000]


def parquet_files() -> list[bytes]:
    """Tables of all kinds of columns and ways to store them."""
    import pyarrow as pa  # noqa: PLC0415 -- only the workers need it
    import pyarrow.parquet as pq  # noqa: PLC0415

    n = 40
    table = pa.table(
        {
            "f": np.linspace(0, 1, n),
            "s": np.linspace(0, 1, n).astype(np.float32),
            "i": np.arange(n) % 5,
            "b": np.arange(n) % 2 == 0,
            "y": [f"label {i % 3}" for i in range(n)],
        }
    )
    settings: list[dict[str, Any]] = [
        {"compression": "none"},
        {"compression": "snappy", "row_group_size": 11},
        {"compression": "zstd", "use_dictionary": False},
        {"compression": "gzip", "data_page_version": "2.0"},
        {
            "compression": "none",
            "use_dictionary": False,
            "column_encoding": dict.fromkeys("fs", "BYTE_STREAM_SPLIT"),
        },
    ]
    found = []
    for setting in settings:
        chosen = table.select(["f", "s", "y"]) if "column_encoding" in setting else table
        stream = io.BytesIO()
        pq.write_table(chosen, stream, **setting)
        found.append(stream.getvalue())
    return found


def mutated_text(data: bytes, rng: random.Random) -> bytes:
    """Words that a reader should not take, or damage anywhere."""
    if rng.random() < 0.4:
        return damaged(data, rng)
    buffer = bytearray(data)
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(buffer) + 1)
        buffer[at : at + rng.choice([0, 0, 1, 3])] = rng.choice(WORDS)
    return bytes(buffer)


def mutated_parquet(data: bytes, rng: random.Random) -> bytes:
    """Damage anywhere, or to the footer only, with its length and the magic numbers made to fit."""
    kind = rng.random()
    if kind < 0.3:
        return damaged(data, rng)
    length = int.from_bytes(data[-8:-4], "little")
    body, footer = bytearray(data[4 : -8 - length]), bytearray(data[-8 - length : -8])
    part = footer if kind < 0.75 else body
    for _ in range(rng.randint(1, 3)):
        part[rng.randrange(len(part))] = rng.choice([0, 1, 127, 128, 255, rng.randrange(256)])
    if rng.random() < 0.2:
        footer = bytearray(damaged(bytes(footer), rng))
    return b"PAR1" + bytes(body) + bytes(footer) + len(footer).to_bytes(4, "little") + b"PAR1"


def draw(rng: random.Random, parquets: list[bytes]) -> tuple[str, bytes]:
    """Return the ending of a name and the content of a file."""
    kind = rng.randrange(4)
    if kind == 0:
        return ".parquet", mutated_parquet(rng.choice(parquets), rng)
    ending, seeds = (".svm", LIBSVM) if kind == 1 else (".csv", CSV)
    data = mutated_text(rng.choice(seeds), rng)
    how = rng.randrange(12)
    if how == 0:
        return f"{ending}.gz", _packed(data, rng, partial(gzip.compress, mtime=0))
    if how == 1:
        return f"{ending}.bz2", _packed(data, rng, bz2.compress)
    return ending, data


def _packed(data: bytes, rng: random.Random, compress: Any) -> bytes:
    packed = bytes(compress(data))
    return damaged(packed, rng) if rng.random() < 0.7 else packed


def read(path: Path, rng: random.Random) -> None:
    """Read a file with settings that suit it more or less; AssertionError where the table is not sound."""
    if ".svm" in path.name:
        table = read_table(path, max_bytes=LARGEST, n_features=rng.choice([None, 7]))
        values = table.data.data
    else:
        table = read_table(path, target=rng.choice([None, -1, 0, "y", "state"]), max_bytes=LARGEST)
        values = table.data.select_dtypes("number").to_numpy(dtype=float)
        if np.isinf(values).any():
            raise AssertionError("a table with infinite numbers")
        values = np.nan_to_num(values)  # missing ones
    labels = table.target
    if labels is not None and len(labels) != table.data.shape[0]:
        raise AssertionError(f"{len(labels)} labels for {table.data.shape[0]} rows")
    if not np.isfinite(values).all() or (
        labels is not None and labels.dtype == float and not np.isfinite(labels).all()
    ):
        raise AssertionError("a table with numbers that are not finite")


def outcome_of(path: Path, rng: random.Random) -> str:
    """Return what came of reading a file."""
    try:
        read(path, rng)
    except DataFileError as error:
        if not error.cause or len(str(error)) > 1000:
            raise AssertionError(f"a message of {len(str(error))} characters") from error
        return "refused"
    return "read"


def hang(*_: Any) -> None:
    """Raise at the alarm, which counts processor time: a busy machine is no finding."""
    raise AssertionError(f"more than {SECONDS} seconds of processor time for one file")


def work(first: int, count: int, seed: int, folder: Path, out: Path) -> None:
    """Read files in a worker and print results as JSON; the file in hand is in the folder."""
    parquets = parquet_files()
    read_parquet_once(parquets[0], folder)
    signal.signal(signal.SIGPROF, hang)
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    limit_memory(HEADROOM)
    found: Counter[str] = Counter()
    slowest, broken = 0.0, []
    for number in range(first, first + count):
        rng = random.Random(f"{seed}-{number}")
        ending, data = draw(rng, parquets)
        path = folder / f"file-{number}{ending}"
        path.write_bytes(data)
        started = time.perf_counter()
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        try:
            found[outcome_of(path, rng)] += 1
        except Exception as error:  # whatever it is, it is a finding
            broken.append(f"file {number}{ending}: {type(error).__name__}: {str(error)[:300]}")
            (out / f"fuzz-{seed}-{number}{ending}").write_bytes(data)
        signal.setitimer(signal.ITIMER_PROF, 0)
        slowest = max(slowest, time.perf_counter() - started)
        path.unlink()
    peak = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10) - used
    print(json.dumps({**found, "slowest": slowest, "broken": broken, "peak": peak}))


def read_parquet_once(data: bytes, folder: Path) -> None:
    """Load the libraries, so that their memory does not count."""
    path = folder / "sound.parquet"
    path.write_bytes(data)
    read_table(path, target="y")
    path.unlink()


def run(count: int, seed: int, out: Path) -> int:
    """Fuzz in workers and report; the number of files that broke a rule."""
    found: Counter[str] = Counter()
    broken: list[str] = []
    slowest, peak, first = 0.0, 0, 0
    started = time.perf_counter()
    while first < count:
        size = min(BATCH, count - first)
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            command = [sys.executable, __file__, "--worker", str(first), name]
            command += ["--count", str(size), "--seed", str(seed), "--out", str(out)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                first = _crash(done, folder, seed, out, broken, first)
                continue
        answer = json.loads(done.stdout)
        broken += answer["broken"]
        found.update({kind: answer.get(kind, 0) for kind in ("read", "refused")})
        slowest, peak = max(slowest, answer["slowest"]), max(peak, answer["peak"])
        first += size
    print(*broken, sep="\n", end="\n" if broken else "")
    print(
        f"{count} files (seed {seed}) in {time.perf_counter() - started:.0f} s: {found['refused']} refused, "
        f"{found['read']} read, {len(broken)} broke a rule; slowest {slowest * 1000:.0f} ms, "
        f"highest rise of memory {peak / 2**20:.1f} MiB"
    )
    return len(broken)


def _crash(done: Any, folder: Path, seed: int, out: Path, broken: list[str], first: int) -> int:
    """Keep the file that ended a worker; where to go on."""
    left = sorted(folder.glob("file-*"))
    if not left:
        raise RuntimeError(done.stderr)
    number = int(left[0].name.split(".")[0].removeprefix("file-"))
    broken.append(f"{left[0].name}: the process ended with {done.returncode}: {done.stderr[-300:]}")
    (out / f"fuzz-{seed}-{number}{''.join(left[0].suffixes)}").write_bytes(left[0].read_bytes())
    print(f"(a worker crashed at file {number}; results of files {first} to {number} are not counted)")
    return number + 1


def main() -> None:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path())
    parser.add_argument("--worker", nargs=2, metavar=("FIRST", "FOLDER"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        work(int(options.worker[0]), options.count, options.seed, Path(options.worker[1]), options.out)
    else:
        sys.exit(1 if run(options.count, options.seed, options.out) else 0)


if __name__ == "__main__":
    main()
