"""Measure the memory that `erm` takes for crafted model files: no more than SECURITY.md promises.

    python scripts/model_memory.py                       # 500 files, every command that takes a model
    python scripts/model_memory.py --count 30 --seed 7   # a short run

Every file is small, is accepted, and has sizes that no fit would give it: members, classes, features, texts,
categories, landmarks, histories, steps, parameters. Each command runs in a process of its own, forked after
all modules are loaded; its peak (``ru_maxrss``) less that of the same command on an ordinary small model is
what the file costs. A file breaks the rule if that is more than ``PER_BYTE`` times file and data and
``EXTRA`` bytes (the graph of one-vs-one pairs may have pairs by classes numbers), or if the command takes
more than ``SECONDS`` of processor time and ``SECONDS_PER_MB`` for every megabyte. It is kept as
memory-<seed>-<number>.erm, exit code 1. Needs Linux, matplotlib and onnx.
"""

# ruff: noqa: T201, S311 -- a command talks to its user; the same files for the same seed

from __future__ import annotations

import argparse
import contextlib
import io
import os
import random
import resource
import sys
import tempfile
import warnings
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

from exclusivity import ERMClassifier, ERMClassifierCV
from exclusivity.classifier import FittedState
from exclusivity.classifier.fitted import Ensemble
from exclusivity.classifier.search import SearchState
from exclusivity.cli.main import main as erm
from exclusivity.persistence.container import ArrayStore, write_container
from exclusivity.persistence.erm_kind import count_problems
from exclusivity.persistence.kinds import pack_model
from exclusivity.solvers import History, IterationRecord
from exclusivity.tables import InteractionFeatures, TableEncoder

PER_BYTE = 32
EXTRA = 64 << 20
SECONDS, SECONDS_PER_MB = 10, 10
HEADROOM = 2 << 30
N_ROWS = 100

COMMANDS: dict[str, list[str]] = {
    "predict": ["predict", "MODEL", "DATA", "-q", "-o", "OUT"],
    "certify": ["certify", "MODEL", "DATA", "-q"],
    "evaluate": ["evaluate", "MODEL", "DATA", "-q"],
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
    """A number from 1, as often of few digits as of many."""
    return round(most ** rng.random())


def classifier(rng: random.Random, *, size: int = 1 << 20, made: Any = ERMClassifier, **given: Any) -> Any:
    """A fitted classifier of any dimensions, without a fit; weights take about ``size`` bytes at most."""
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
    lengths = given.get("lengths") or [0] * n_problems
    state = replace(
        FittedState.of(small),
        classes=given.get("classes", np.arange(n_classes)),
        ensemble=Ensemble(weights, np.zeros((n_problems, n_stored), dtype=dtype), n_members),
        multi_class=multi_class,
        exclusivity=np.inf,
        **{name: np.ones(n_problems) for name in ("objective", "dual_gap")},
        converged=np.ones(n_problems, dtype=bool),
        n_iter=np.ones(n_problems, dtype=np.int64),
        history=[History([IterationRecord(i, 2.0, 1.0, 0.1, 0.2, 1.0) for i in range(n)]) for n in lengths],
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


def histories(rng: random.Random) -> Case:
    """Long histories, or many of them."""
    n_classes = rng.choice([2, 3, 30])
    n_problems = count_problems(n_classes, "ovo")
    lengths = [few_or_many(rng, 40_000 // n_problems) for _ in range(n_problems)]
    return Case(classifier(rng, size=1 << 12, n_classes=n_classes, multi_class="ovo", lengths=lengths))


def searches(rng: random.Random) -> Case:
    """Many values of C, many folds."""
    model = classifier(rng, size=1 << 16, made=ERMClassifierCV)
    Cs = np.logspace(-5, 5, few_or_many(rng, 20_000))
    scores = np.zeros((few_or_many(rng, max(1, 10**5 // len(Cs))), len(Cs)))
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


def interactions(rng: random.Random) -> Case:
    """Many members with landmarks."""
    n_columns = few_or_many(rng, 100)
    numbers = np.random.default_rng(rng.randrange(2**32))
    X = numbers.standard_normal((300, n_columns))
    voters = ERMClassifier(min(n_columns, few_or_many(rng, 20)), exclusivity=np.inf, tol=0.1, random_state=0)
    step = InteractionFeatures(voters, n_landmarks=max(2, few_or_many(rng, 200)), random_state=0)
    step.fit(X, X[:, 0] > 0)
    return Case(Pipeline([("interactions", step), ("erm", classifier(rng, n_features=step._n_features_out))]))


FAMILIES: list[Callable[[random.Random], Case]] = [
    members,
    classes,
    texts,
    histories,
    searches,
    parameters,
    scalers,
    tables,
    interactions,
]


def saved(model: Any) -> bytes:
    """The file of a model."""
    store, stream = ArrayStore(), io.BytesIO()
    write_container(pack_model(model, store), store, "0", stream.write)
    return stream.getvalue()


def write_rows(case: Case, path: Path) -> tuple[Path, int]:
    """Rows for a model, and the bytes of their file: a table, or LIBSVM with a value per row."""
    model = case.model
    labels = (model[-1] if hasattr(model, "steps") else model).classes_
    steps = [step for _, step in getattr(model, "steps", [("", model)]) if not isinstance(step, str)]
    n_features = int(steps[0].n_features_in_)
    if case.is_table:
        path = path.with_suffix(".csv")
        names = [*model.feature_names_in_, "target"]
        lines = [",".join([*["0.5"] * n_features, str(labels[k % len(labels)])]) for k in range(N_ROWS)]
        path.write_text("\n".join([",".join(names), *lines]), encoding="utf-8")
        return path, path.stat().st_size
    path = path.with_suffix(".libsvm")
    lines = [f"{labels[k % len(labels)]} {n_features}:{1 + k}" for k in range(N_ROWS)]
    path.write_text("\n".join(lines), encoding="utf-8")
    return path, path.stat().st_size


def graph_of_pairs(model: Any) -> int:
    """What the graph of one-vs-one pairs takes while it is made: some arrays of pairs by classes."""
    fitted = model[-1] if hasattr(model, "steps") else model
    n_pairs = len(fitted.component_intercepts_) if fitted.multi_class_ == "ovo" else 0
    return 64 * n_pairs * len(fitted.classes_)


def peak_of(arguments: list[str]) -> tuple[int, float, int]:
    """Run a command in a child: its peak of memory in bytes, seconds of processor time, and exit status."""
    child = os.fork()
    if child == 0:
        sink = os.open(os.devnull, os.O_WRONLY)
        os.dup2(sink, 1)
        os.dup2(sink, 2)
        used = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[5]) * os.sysconf(
            "SC_PAGE_SIZE"
        )
        resource.setrlimit(resource.RLIMIT_DATA, (used + HEADROOM, used + HEADROOM))
        resource.setrlimit(resource.RLIMIT_CPU, (300, 300))
        code = 99
        with contextlib.suppress(BaseException):
            code = erm(arguments) or 0
        os._exit(code)
    _, status, usage = os.wait4(child, 0)
    return usage.ru_maxrss << 10, usage.ru_utime + usage.ru_stime, status


def filled(arguments: list[str], **places: Path) -> list[str]:
    """The command with its files."""
    return [str(places[word]) if word in places else word for word in arguments]


def run(count: int, seed: int, out: Path, only: str | None) -> int:
    """Craft, measure and report; the number of files that broke the rule."""
    rng, broken = random.Random(seed), 0
    worst: dict[str, tuple[float, str]] = defaultdict(lambda: (0.0, ""))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        places = {"MODEL": folder / "model.erm", "OUT": folder / "out"}
        usual, baseline = (
            Case(classifier(rng, n_classes=3, n_members=3, n_features=4, params={"voting": "hard"})),
            {},
        )
        places["MODEL"].write_bytes(saved(usual.model))
        places["DATA"], _ = write_rows(usual, folder / "rows")
        for _ in range(2):  # the first time loads modules
            for command, arguments in COMMANDS.items():
                places["OUT"].unlink(missing_ok=True)
                with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                    erm(filled(arguments, **places))
                places["OUT"].unlink(missing_ok=True)
                baseline[command] = peak_of(filled(arguments, **places))[0]
        outcomes: dict[str, int] = defaultdict(int)
        for number in range(count):
            family = FAMILIES[number % len(FAMILIES)]
            case = family(rng)
            data = saved(case.model)
            places["MODEL"].write_bytes(data)
            places["DATA"], n_row_bytes = write_rows(case, folder / "rows")
            for command, arguments in COMMANDS.items():
                if only not in (None, command):
                    continue
                places["OUT"].unlink(missing_ok=True)
                peak, seconds, status = peak_of(filled(arguments, **places))
                growth = max(0, peak - baseline[command])
                allowed = EXTRA + PER_BYTE * (len(data) + n_row_bytes)
                if command == "export":
                    allowed += graph_of_pairs(case.model)
                outcomes[f"exit {os.waitstatus_to_exitcode(status)}"] += 1
                said = (
                    f"{growth >> 20} MiB, {seconds:.1f} s: {family.__name__} {number}, file {len(data)} bytes"
                )
                worst[command] = max(worst[command], (growth / allowed, said))
                worst["time"] = max(worst["time"], (seconds, f"{command}: {said}"))
                slow = seconds > SECONDS + SECONDS_PER_MB * (len(data) + n_row_bytes) / 1e6
                if growth > allowed or slow or not 0 <= os.waitstatus_to_exitcode(status) < 99:
                    broken += 1
                    (out / f"memory-{seed}-{number}.erm").write_bytes(data)
                    print(
                        f"{command} breaks the rule: {said}, rows {n_row_bytes}, status {status}", flush=True
                    )
    for command, (share, said) in worst.items():
        print(f"{command:22} worst {share:.2f}: {said}")
    print(f"{count} files (seed {seed}), {broken} runs broke the rule; {dict(outcomes)}")
    return broken


def main() -> None:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path())
    parser.add_argument("--only", choices=COMMANDS)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    sys.exit(1 if run(options.count, options.seed, options.out, options.only) else 0)


if __name__ == "__main__":
    main()
