"""Measure the memory that `erm` takes for crafted model files: no more than SECURITY.md promises.

    python scripts/model_memory.py                       # 500 files, every command that takes a model
    python scripts/model_memory.py --count 30 --seed 7   # a short run

Every file is small, is accepted, and has sizes that no fit would give it: members, classes, features, texts,
categories, landmarks, steps, parameters. Each command runs in a process of its own, forked after
all modules are loaded; its peak (``ru_maxrss``) less that of the same command on an ordinary small model is
what the file costs. (Files are crafted in other processes, so that the one that is forked stays as it is.)
A file breaks the rule if that is more than ``PER_BYTE`` times file and data and ``EXTRA`` bytes (the graph of
one-vs-one pairs may have pairs by classes numbers), if the command takes more than ``SECONDS`` of processor
time and ``SECONDS_PER_MB`` for every megabyte, or if loading alone takes more than twice the file and 16 MiB.
It is kept as memory-<seed>-<number>.erm, exit code 1. Needs Linux, matplotlib and onnx.
"""

# ruff: noqa: T201, S311 -- a command talks to its user; the same files for the same seed

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import random
import resource
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

from exclusivity import ERMClassifier, ERMClassifierCV
from exclusivity.additive import RobustAdditiveClassifier
from exclusivity.classifier._ensemble import Ensemble, FittedState
from exclusivity.classifier._path import SearchState
from exclusivity.cli.main import main as erm
from exclusivity.io._model_kinds import count_problems, pack_model, unpack_model
from exclusivity.tables import TableEncoder
from fuzz_models import EXTRA_MEMORY, measured, saved

PER_BYTE = 32
EXTRA = 64 << 20
SECONDS, SECONDS_PER_MB = 10, 10
HEADROOM = 2 << 30
CRASHED = 99
N_ROWS = 100

COMMANDS: dict[str, list[str]] = {
    "predict": ["predict", "MODEL", "DATA", "-q", "-o", "OUT"],
    "certify": ["certify", "MODEL", "DATA", "-q"],
    "evaluate": ["evaluate", "MODEL", "DATA", "-q"],
    "check": ["check", "MODEL", "DATA", "-q"],
    "inspect": ["inspect", "MODEL", "--json"],
    "inspect --html": ["inspect", "MODEL", "--html", "OUT", "--data", "DATA"],
    "export": ["export", "MODEL", "-o", "OUT"],
}


@dataclass(frozen=True)
class Case:
    """A model, and rows for it: of how many columns, and whether they are a table."""

    model: Any
    is_table: bool = False


def few_or_many(rng: random.Random, most: int) -> int:
    """Draw a number from 1, as often of few digits as of many."""
    return round(most ** rng.random())


def classifier(rng: random.Random, *, size: int = 1 << 20, made: Any = ERMClassifier, **given: Any) -> Any:
    """Make a fitted classifier without a fit; weights take about ``size`` bytes at most."""
    multi_class = given.get("multi_class") or rng.choice(["ovr", "ovo"])
    n_classes = given.get("n_classes") or max(2, few_or_many(rng, 20_000 if multi_class == "ovr" else 300))
    n_problems = count_problems(n_classes, multi_class)
    left = max(1, size // 8 // n_problems)
    n_features = given.get("n_features") or few_or_many(rng, left)
    n_members = given.get("n_members") or few_or_many(rng, 10**6)
    n_stored = n_members if given.get("differ", rng.random() < 0.5) else 1
    if n_stored > 1:
        n_stored = n_members = min(n_members, max(1, left // n_features))
    numbers = np.random.default_rng(rng.randrange(2**32))
    dtype = rng.choice([np.float32, np.float64])
    weights = numbers.standard_normal((n_problems, n_stored, n_features)).astype(dtype)
    if rng.random() < 0.5:  # members on features of their own
        weights *= np.arange(n_features) % n_stored == np.arange(n_stored)[:, None]
    small = ERMClassifier(1).fit([[0.0], [1.0]], [0, 1])
    groups = np.arange(n_features) if rng.random() < 0.7 else np.zeros(n_features, dtype=np.intp)
    state = replace(
        FittedState.of(small),
        classes=given.get("classes", np.arange(n_classes)),
        ensemble=Ensemble(weights, np.zeros((n_problems, n_stored), dtype=dtype), n_members),
        multi_class=multi_class,
        exclusivity=np.inf,
        **{name: np.ones(n_problems) for name in ("objective", "dual_gap")},
        converged=np.ones(n_problems, dtype=bool),
        n_iter=np.ones(n_problems, dtype=np.int64),
        n_features=n_features,
        feature_names=given.get("names"),
        groups=groups,
        partition=None if rng.random() < 0.5 else np.zeros(int(groups.max()) + 1, dtype=np.intp),
    )
    params = {"voting": rng.choice(["soft", "hard", "runoff"]), "exclusivity": rng.choice([1.0, np.inf])}
    params |= {"multi_class": multi_class, "loss": "logistic", **given.get("params", {})}
    return state.restore(made(n_members, **params))


def members(rng: random.Random) -> Case:
    """Many members, few classes."""
    return Case(classifier(rng, n_classes=rng.choice([2, 3, 10])))


def classes(rng: random.Random) -> Case:
    """Many classes."""
    return Case(classifier(rng, n_members=rng.choice([1, 3, 10**6])))


def texts(rng: random.Random) -> Case:
    """Long texts as labels and names."""
    n_classes = few_or_many(rng, 200) + 1
    labels = np.array(
        [f"{k:04}" + rng.choice(["x", "\U0001f40d"]) * few_or_many(rng, 2000) for k in range(n_classes)]
    )
    n_features = few_or_many(rng, 1000)
    names = np.array([f"{j} " + "n" * few_or_many(rng, 1000) for j in range(n_features)], dtype=object)
    wide = {"n_classes": n_classes, "classes": labels, "n_features": n_features, "names": names}
    return Case(classifier(rng, **wide, differ=False), is_table=True)


def searches(rng: random.Random) -> Case:
    """Many values of C, many folds."""
    model = classifier(rng, size=1 << 16, made=ERMClassifierCV)
    Cs = np.logspace(-5, 5, few_or_many(rng, 10_000))
    scores = np.zeros((few_or_many(rng, min(10_000, max(1, 10**5 // len(Cs)))), len(Cs)))
    ones = np.ones(len(Cs))
    return Case(SearchState(Cs=Cs, scores=scores, mean_n_iter=ones, max_dual_gap=ones).restore(model))


def parameters(rng: random.Random) -> Case:
    """Long and deep parameters."""
    count = few_or_many(rng, 20_000)
    nested: Any = 1
    for _ in range(6):
        nested = [nested] * rng.choice([1, 3])
    weight = rng.choice([dict.fromkeys(range(count), 1.0), nested, {"x" * 10 * count: 1.0}])
    return Case(classifier(rng, size=1 << 14, params={"class_weight": weight, "sparsity": 1e-300}))


def scalers(rng: random.Random) -> Case:
    """Many steps, or wide ones."""
    count = few_or_many(rng, 300)
    model = classifier(
        rng,
        size=1 << 18,
        n_features=few_or_many(rng, max(1, 10**5 // count)),
        n_classes=rng.choice([2, 3, 10]),
    )
    steps: list[Any] = []
    for number in range(count):
        kind = rng.choice([StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler, None])
        step: Any = "passthrough"
        if kind is not None:
            step = kind().fit([[0.0], [1.0]])
            for name, value in list(vars(step).items()):
                if isinstance(value, np.ndarray):
                    setattr(step, name, np.full(model.n_features_in_, value[0]))
            step.n_features_in_ = model.n_features_in_
        steps.append((f"s{number}", step))
    return Case(Pipeline([*steps, ("erm", model)]))


def tables(rng: random.Random) -> Case:
    """Many columns, categories or knots; dense or sparse."""
    n_columns = few_or_many(rng, 2000)
    n_levels = few_or_many(rng, max(1, 20_000 // n_columns))
    columns: dict[str, Any] = {}
    for number in range(n_columns):
        if rng.random() < 0.5:
            columns[f"c{number}"] = np.array(
                [f"level {k % n_levels}" for k in range(2 * n_levels)], dtype=object
            )
        else:
            columns[f"c{number}"] = np.linspace(0, number + 1, 2 * n_levels)
    import pandas as pd  # noqa: PLC0415 -- not needed by most

    frame = pd.DataFrame(columns)
    encoder = TableEncoder(
        numeric=rng.choice(["linear", "spline"]), max_levels=max(2, n_levels), min_frequency=1
    )
    encoder.fit(frame)
    encoder.sparse_output_ = rng.random() < 0.5
    width = encoder._n_features_out
    return Case(Pipeline([("encoder", encoder), ("erm", classifier(rng, n_features=width))]), is_table=True)


def additive(rng: random.Random) -> Case:
    """Many columns, knots, categories or classes, and an adversary that reaches many points."""
    n_columns, n_classes = few_or_many(rng, 2000), few_or_many(rng, 100) + 1
    n_levels = few_or_many(rng, max(1, (1 << 20) // 8 // (n_columns * n_classes**2)))
    rows = np.column_stack([np.arange(max(n_classes, 4)) * 1.0] * n_columns)
    threats = rng.choice(["any", "increase", "missing"])
    model = RobustAdditiveClassifier(threats=threats, tol=0.99, max_iter=1)
    packed = pack_model(model.fit(rows[:2], [0, 1]))
    n_duels, columns = n_classes * (n_classes - 1) // 2, packed["columns"]
    columns["has_missing"][:] = True
    if threats != "increase" and rng.random() < 0.5:
        texts = np.array([f"level {k}" for k in range(n_levels)] * n_columns, dtype=object)
        columns |= {"kinds": np.full(n_columns, 2, dtype=np.uint8), "texts": texts, "knots": np.empty(0)}
        columns["n_knots"][:], columns["sizes"][:, 0] = 0, n_levels
    else:
        columns["knots"] = np.tile(np.arange(float(n_levels)), n_columns)
        columns["n_knots"][:] = n_levels
    columns["shares"] = np.zeros(n_columns * (n_levels + 1))
    packed["feature_names"] = np.array([f"c{number}" for number in range(n_columns)], dtype=object)
    packed["classes"] = np.arange(n_classes)
    packed["points"] = np.random.default_rng(0).standard_normal((n_duels, len(columns["shares"])))
    for name, value in (("intercept", 0.5), ("objective", 1.0), ("dual_gap", 0.0)):
        packed[name] = np.full(n_duels, value)
    packed |= {"converged": np.ones(n_duels, dtype=bool), "n_iter": np.ones(n_duels, dtype=np.int64)}
    return Case(unpack_model(packed), is_table=True)


FAMILIES: list[Callable[[random.Random], Case]] = [
    members,
    classes,
    texts,
    searches,
    parameters,
    scalers,
    tables,
    additive,
]


def write_rows(case: Case, path: Path) -> Path:
    """Write rows for a model: a table, or LIBSVM with a value per row."""
    model = case.model
    labels = (model[-1] if hasattr(model, "steps") else model).classes_
    steps = [step for _, step in getattr(model, "steps", [("", model)]) if not isinstance(step, str)]
    n_features = int(steps[0].n_features_in_)
    if case.is_table:
        path = path.with_suffix(".csv")
        names = [*steps[0].feature_names_in_, "target"]
        lines = [",".join([*["0.5"] * n_features, str(labels[k % len(labels)])]) for k in range(N_ROWS)]
        path.write_text("\n".join([",".join(names), *lines]), encoding="utf-8")
        return path
    path = path.with_suffix(".libsvm")
    lines = [f"{labels[k % len(labels)]} {n_features}:{1 + k}" for k in range(N_ROWS)]
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def graph_of_pairs(model: Any) -> int:
    """Return what the graph of one-vs-one pairs takes while it is made: arrays of pairs by classes."""
    fitted = model[-1] if hasattr(model, "steps") else model
    is_ovo = getattr(fitted, "multi_class_", "") == "ovo"
    n_pairs = len(fitted.component_intercepts_) if is_ovo else 0
    return 64 * n_pairs * len(fitted.classes_)


def in_child(work: Callable[[], int]) -> tuple[int, resource.struct_rusage]:
    """Fork, work, and say how it ended and what it took."""
    child = os.fork()
    if child == 0:
        sink = os.open(os.devnull, os.O_WRONLY)
        os.dup2(sink, 1)
        os.dup2(sink, 2)
        code = CRASHED
        with contextlib.suppress(BaseException):
            code = work()
        os._exit(code)
    _, status, usage = os.wait4(child, 0)
    return os.waitstatus_to_exitcode(status), usage


def craft(family: Callable[[random.Random], Case], rng: random.Random, folder: Path) -> dict[str, Any]:
    """Write a model and rows for it, measure how it is loaded, and say what there is to know."""

    def work() -> int:
        case = family(rng)
        data = saved(case.model)
        (folder / "model.erm").write_bytes(data)
        rows = write_rows(case, folder / "rows")
        facts = {"file": len(data), "rows": str(rows), "data": rows.stat().st_size}
        facts |= {"graph": graph_of_pairs(case.model), "loading": measured(data)[1]}
        (folder / "facts.json").write_text(json.dumps(facts), encoding="ascii")
        return 0

    code, _ = in_child(work)
    if code:
        raise RuntimeError(f"{family.__name__} could not be crafted")
    facts: dict[str, Any] = json.loads((folder / "facts.json").read_text(encoding="ascii"))
    return facts


def measure(command: str, folder: Path, rows: str) -> tuple[int, int, float]:
    """Run a command on the files of the folder: exit code, peak of memory in bytes, seconds."""
    places = {"MODEL": str(folder / "model.erm"), "DATA": rows, "OUT": str(folder / "out")}
    (folder / "out").unlink(missing_ok=True)

    def work() -> int:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[5])
        limit = pages * os.sysconf("SC_PAGE_SIZE") + HEADROOM
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
        resource.setrlimit(resource.RLIMIT_CPU, (300, 300))
        return erm([places.get(word, word) for word in COMMANDS[command]])

    code, usage = in_child(work)
    return code, usage.ru_maxrss << 10, usage.ru_utime + usage.ru_stime


def ordinary(_: random.Random) -> Case:
    """Return a model as a fit would give it."""
    X = np.random.default_rng(0).standard_normal((60, 4))
    return Case(ERMClassifier(3, voting="hard").fit(X, np.digitize(X[:, 0], [-0.5, 0.5])))


def run(count: int, seed: int, out: Path, minutes: float) -> int:
    """Craft, measure and report; the number of runs that broke the rule."""
    out.mkdir(parents=True, exist_ok=True)
    end = time.monotonic() + 60 * minutes
    broken, worst = 0, dict.fromkeys(["load", *COMMANDS, "time"], (0.0, ""))
    codes: Counter[int] = Counter()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = craft(ordinary, random.Random(seed), folder)["rows"]
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            for arguments in COMMANDS.values():  # loads all modules, and no more than that
                places = {"MODEL": folder / "model.erm", "DATA": rows, "OUT": folder / "out"}
                erm([str(places.get(word, word)) for word in arguments])
                (folder / "out").unlink(missing_ok=True)
        usual = {command: measure(command, folder, rows)[1] for command in COMMANDS}
        for number in range(count):
            if time.monotonic() > end:
                count = number
                break
            family = FAMILIES[number % len(FAMILIES)]
            facts = craft(family, random.Random(f"{seed} {number}"), folder)
            title = f"{family.__name__} {number}, a file of {facts['file']} bytes"
            share = facts["loading"] / (2 * facts["file"] + EXTRA_MEMORY)
            worst["load"] = max(worst["load"], (share, f"{facts['loading'] >> 10} KiB: {title}"))
            breaks = share > 1
            if breaks:
                print(f"load breaks the rule: {worst['load'][1]}", flush=True)
            size = facts["file"] + facts["data"]
            for command in COMMANDS:
                code, peak, seconds = measure(command, folder, facts["rows"])
                codes[code] += 1
                growth = max(0, peak - usual[command])
                allowed = EXTRA + PER_BYTE * size + (facts["graph"] if command == "export" else 0)
                said = f"{growth >> 20} MiB, {seconds:.1f} s: {title}"
                worst[command] = max(worst[command], (growth / allowed, said))
                worst["time"] = max(worst["time"], (seconds, f"{command}: {said}"))
                is_slow = seconds > SECONDS + SECONDS_PER_MB * size / 1e6
                if growth > allowed or is_slow or not 0 <= code < CRASHED:
                    breaks = True
                    print(f"{command} breaks the rule: {said}, data {facts['data']}, exit {code}", flush=True)
            broken += breaks
            if breaks:
                (folder / "model.erm").rename(out / f"memory-{seed}-{number}.erm")
    for command, (share, said) in worst.items():
        print(
            f"{command:15} at most {share:.2f} of the limit: {said}"
            if command != "time"
            else f"slowest {said}"
        )
    print(f"{count} files (seed {seed}), {broken} broke the rule; exit codes {dict(codes)}")
    return broken


def main() -> None:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=np.inf, help="stop after so many")
    parser.add_argument("--out", type=Path, default=Path())
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    sys.exit(1 if run(options.count, options.seed, options.out, options.minutes) else 0)


if __name__ == "__main__":
    main()
