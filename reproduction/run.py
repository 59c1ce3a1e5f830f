"""Run the experiments that are not finished yet, judge the claims, and write everything to a folder."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd
from joblib import Memory, Parallel, cpu_count, delayed
from threadpoolctl import threadpool_limits

from exclusivity import __version__
from reproduction import claims, data, drm, figure1, psvm, report, systems, tables, theory
from reproduction.data import DataSet
from reproduction.published import FIGURE_MEMBERS, LARGE, SWEEP, TABLE1_DATASETS

PARTS = ("table1", "table2", "figure1", "theory")
"""What can be run alone. Tables 1 and 2 are two views of the same trials."""

RESULTS = Path(__file__).parent / "results"
_PACKAGES = ("numpy", "scipy", "scikit-learn", "joblib", "pandas")
_THEORY_SETS = ("sonar", "german")


class Experiments:
    """Run experiments on the data sets that were found.

    Every finished call is kept on disk and not made again: its arguments, which include the rows, the seed
    and the trial, are the key. Neither the number of jobs nor what else is run changes a number.

    Parameters
    ----------
    sets : dict of DataSet
        By name.
    trials : int
        Random splits per data set, and runs per point of panel 4.
    seed : int
        Decides all splits.
    quick : bool
        Whether fewer costs and sizes are enough.
    jobs : int
        Processes.
    cache : Path
        The folder of the finished calls.
    """

    def __init__(
        self, sets: dict[str, DataSet], *, trials: int, seed: int, quick: bool, jobs: int, cache: Path
    ) -> None:
        self.sets, self.trials, self.seed, self.quick, self.jobs = sets, trials, seed, quick, jobs
        self._memory = Memory(cache, verbose=0)

    def run(self, function: Callable[..., Any], calls: Iterable[tuple[Any, ...]]) -> list[Any]:
        """Call the function with every tuple of arguments; return the results in order."""
        cached, results = self._memory.cache(function), []
        # Arrays shared as memory maps would have other keys than arrays in memory.
        pool = Parallel(n_jobs=self.jobs, max_nbytes=None, return_as="generator")
        for result in pool(delayed(_with_one_thread)(cached, arguments) for arguments in calls):
            results.append(result)
            print(f"\r{function.__name__}: {len(results)} done ", end="", file=sys.stderr, flush=True)
        print(file=sys.stderr)
        return results

    def frame(self, function: Callable[..., Any], calls: Iterable[tuple[Any, ...]]) -> pd.DataFrame | None:
        """Run, and put the records of all calls into one frame; None without calls."""
        records = [record for records in self.run(function, calls) for record in records]
        return pd.DataFrame(records) if records else None

    @property
    def large(self) -> str:
        """Return ijcnn1, or the set with most rows in its place."""
        return LARGE if LARGE in self.sets else max(self.sets, key=lambda name: len(self.sets[name].y))

    def table_trials(self) -> pd.DataFrame | None:
        """Run the trials of Tables 1 and 2."""
        sets = [self.sets[name] for name in data.DATASETS if name in self.sets]
        calls = ((one, self.seed, trial) for one in sets for trial in range(self.trials))
        return self.frame(tables.run_trial, calls)

    def sweep(self) -> pd.DataFrame | None:
        """Run panels 1 and 2 of Figure 1."""
        costs = figure1.lambda_grid(6 if self.quick else 16)
        trials = range(self.trials if SWEEP in self.sets else 0)
        return self.frame(figure1.run_sweep, ((self.sets[SWEEP], self.seed, t, costs) for t in trials))

    def convergence(self) -> pd.DataFrame | None:
        """Run panel 3 of Figure 1."""
        one = self.sets[self.large]
        return self.frame(figure1.run_convergence, ((one, p, k) for p in (2, 1) for k in FIGURE_MEMBERS))

    def scaling(self) -> pd.DataFrame | None:
        """Run panel 4 of Figure 1: rows are halved again and again, the slowest first."""
        one = self.sets[self.large]
        sizes = [len(one.y) // 2**power for power in range(3 if self.quick else 5)]
        trials = range(1 if self.quick else self.trials)
        return self.frame(figure1.run_scaling, ((one, self.seed, t, size) for size in sizes for t in trials))

    def theory(self) -> dict[str, dict[str, Any]]:
        """Run the checks of the paper's statements: check -> data set -> numbers."""
        others = [name for name in TABLE1_DATASETS if name in self.sets] or [self.large]
        chosen = [name for name in _THEORY_SETS if name in self.sets] or others[:1]
        chosen = chosen[:1] if self.quick else chosen
        places = [(check, name) for check in theory.CHECKS for name in chosen]
        if self.large not in chosen:
            places.append(("splitting", self.large))
        calls = ((self.sets[name], check, self.seed) for check, name in places)
        numbers: dict[str, dict[str, Any]] = {}
        for (check, name), result in zip(places, self.run(theory.run_check, calls), strict=True):
            numbers.setdefault(check, {})[name] = result
        return numbers

    def results(self, parts: Sequence[str]) -> claims.Results:
        """Run the parts."""
        figure, trials = "figure1" in parts, "table1" in parts or "table2" in parts
        return claims.Results(
            trials=self.table_trials() if trials else None,
            sweep=self.sweep() if figure else None,
            convergence=self.convergence() if figure else None,
            scaling=self.scaling() if figure else None,
            large=self.large,
            theory=self.theory() if "theory" in parts else {},
        )


def _with_one_thread(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """Call with one BLAS thread: numbers then depend neither on the machine's cores nor on the jobs."""
    with threadpool_limits(limits=1):
        return function(*arguments)


def write(results: claims.Results, parts: tuple[str, ...], facts: dict[str, Any], out: Path) -> pd.DataFrame:
    """Write frames as CSV, checks as JSON, figures as PNG, and the report; return the verdicts."""
    verdicts = claims.judge_all(results, parts)
    frames = {"trials": results.trials, "claims": verdicts}
    if results.trials is not None:
        frames |= {"table1": tables.table1(results.trials), "table2": tables.table2(results.trials)}
    frames |= {f"figure1_{name}": getattr(results, name) for name in ("sweep", "convergence", "scaling")}
    for name, frame in frames.items():
        if frame is not None:
            frame.to_csv(out / f"{name}.csv", index=frame.index.names != [None])
    if results.theory:
        (out / "theory.json").write_text(json.dumps(results.theory, indent=1) + "\n", encoding="utf-8")
    if "figure1" in parts:
        drawn = figure1.draw_figure1(results.sweep, results.convergence, results.scaling, results.large)
        drawn.savefig(out / "figure1.png", dpi=150)
    if results.sweep is not None:
        figure1.draw_members_or_cost(results.sweep).savefig(out / "members_or_cost.png", dpi=150)
    (out / "report.md").write_text(report.render(results, verdicts, parts, facts), encoding="utf-8")
    return verdicts


def _fingerprint() -> str:
    """Name the code that makes the numbers: finished calls of other code are not used."""
    code = (data, drm, figure1, psvm, systems, tables, theory)
    texts = [Path(str(module.__file__)).read_bytes() for module in code]
    return f"{__version__}-{sha256(b''.join(texts)).hexdigest()[:12]}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m reproduction",
        description="Run the experiments of the ERM paper on the data sets that can be found, and judge its "
        "claims. Ctrl-C keeps what is finished: the same command goes on from there.",
    )
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, help="parts to run (default: all)")
    parser.add_argument("--quick", action="store_true", help="a few minutes: fewer trials and points")
    parser.add_argument("--trials", type=_at_least(1), metavar="N", help="splits (default: 10, quick: 3)")
    parser.add_argument(
        "--seed", type=_at_least(0), default=0, metavar="S", help="of all splits (default: 0)"
    )
    parser.add_argument("--jobs", type=_at_least(1), default=cpu_count(), metavar="J", help="processes")
    parser.add_argument("--data", metavar="DIR", help="folder of LIBSVM files (default: $EXCLUSIVITY_DATA)")
    parser.add_argument("--out", type=Path, default=RESULTS, metavar="DIR", help=f"default: {RESULTS}")
    return parser


def _at_least(least: int) -> Callable[[str], int]:
    def integer(text: str) -> int:
        if int(text) < least:
            raise argparse.ArgumentTypeError(f"must be at least {least}; got {text}")
        return int(text)

    return integer


def main(argv: Sequence[str] | None = None) -> int:
    """Run from the command line."""
    args = _parser().parse_args(argv)
    if args.data is not None:
        os.environ["EXCLUSIVITY_DATA"] = args.data
    sets, missing = data.load(download=not args.quick)
    for name, why in missing.items():
        print(f"running without {name}: {why}", file=sys.stderr)
    if not sets:
        print("none of the data sets was found", file=sys.stderr)
        return 1
    trials = args.trials or (3 if args.quick else 10)
    parts = tuple(part for part in PARTS if part in args.only)
    experiments = Experiments(
        sets,
        trials=trials,
        seed=args.seed,
        quick=args.quick,
        jobs=args.jobs,
        cache=args.out / "cache" / _fingerprint(),
    )
    facts = {
        "seed": args.seed,
        "trials": trials,
        "quick": args.quick,
        "splits": "numpy.random.default_rng([seed, crc32(name of the data set), number of the trial])",
        "data sets": ", ".join(f"{one.name} {one.X.shape[0]} x {one.X.shape[1]}" for one in sets.values()),
        "missing": ", ".join(missing) or "none",
        "versions": ", ".join(
            [
                f"exclusivity {__version__}, Python {platform.python_version()}",
                *(f"{name} {version(name)}" for name in _PACKAGES),
            ]
        ),
    }
    args.out.mkdir(parents=True, exist_ok=True)
    try:
        results = experiments.results(parts)
    except KeyboardInterrupt:
        print(f"\nfinished trials are in {args.out}; the same command goes on", file=sys.stderr)
        return 130
    verdicts = write(results, parts, facts, args.out)
    note = "Too few trials for firm verdicts: docs/paper.md has the full run.\n" if args.quick else ""
    print(f"{report.brief(verdicts)}\n{note}\n{args.out / 'report.md'}")
    return 0
