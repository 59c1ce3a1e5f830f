"""``erm bench``: our solvers against others, on one objective that is evaluated here for everyone."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from exclusivity.cli import overwriting
from exclusivity.cli.errors import CommandError

if TYPE_CHECKING:
    from exclusivity.benchmark import Plan

SUMMARY = "measure the solvers against LinearSVC, LIBLINEAR, snapml and others"
DESCRIPTION = (
    "Fits linear SVMs with every solver from coarse to fine settings, each fit cold and in a fresh process, "
    "evaluates the objective in float64 for all of them, and writes bench.json, bench.md and one picture "
    "per case: true sub-optimality against time. Solvers that are not installed are skipped with a message "
    "(pip install 'exclusivity[bench]'). The full run takes many hours: see --only."
)

OUTPUTS = {"out": overwriting.BENCHMARK}


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "--quick",
        action="store_true",
        help="two minutes of processor time: small workloads, few peers, one process per ladder",
    )
    parser.add_argument("--only", metavar="WORKLOAD,...", type=_words, help="workloads or groups of them")
    parser.add_argument("--peers", metavar="PEER,...", type=_words, help="solvers; MODULE:NAME for your own")
    parser.add_argument("--p", metavar="P,...", type=_words, help="powers of the hinge (default: 1,2)")
    parser.add_argument(
        "--cost",
        metavar="C,...",
        type=_words,
        help="costs (default: 2, 0.2 and 1/15, on text 0.1, 1 and 10; --quick: 0.2)",
    )
    parser.add_argument(
        "--repeats", metavar="N", type=int, help="runs of every point (default: 3, with --quick 1)"
    )
    parser.add_argument(
        "--limit",
        metavar="S",
        type=float,
        help="seconds per fit, then it is ended (default: 300; --quick: 3)",
    )
    parser.add_argument(
        "--threads", metavar="T", type=int, default=1, help="CPUs and threads of every run (default: 1)"
    )
    parser.add_argument(
        "--clock", choices=["wall", "cpu"], default="wall", help="what the tables count (default: wall)"
    )
    parser.add_argument(
        "--out",
        metavar="DIR",
        type=Path,
        default=Path("benchmark"),
        help="folder for the results (default: benchmark)",
    )


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())


def run(args: argparse.Namespace) -> None:
    """Run, write, and tell what was found."""
    from exclusivity.benchmark import judge, run_benchmark, write_json, write_report
    from exclusivity.experiments import terminal_progress

    plan = _plan(args)
    try:
        document = run_benchmark(
            plan,
            progress=terminal_progress(command="erm bench"),
            tell=lambda text: print(f"erm bench: {text}", file=sys.stderr),
            keep=lambda unfinished: write_json(unfinished, args.out),
        )
    except KeyboardInterrupt:
        print(f"erm bench: finished cases are in {args.out / 'bench.json'}.", file=sys.stderr)
        raise
    paths = write_report(document, args.out)
    print(summary(document, judge(document)))
    print(f"\n{paths[0]}")


def _plan(args: argparse.Namespace) -> Plan:
    from exclusivity.benchmark import Plan

    return Plan(
        quick=args.quick,
        workloads=args.only,
        peers=args.peers,
        powers=_numbers("p", args.p, int) or (1, 2),
        costs=_numbers("cost", args.cost, float),
        repeats=args.repeats,
        limit=args.limit,
        threads=args.threads,
        clock=args.clock,
    )


def _numbers(option: str, words: tuple[str, ...] | None, kind: type) -> tuple[Any, ...] | None:
    """Numbers, fractions such as 1/15 among them."""
    if words is None:
        return None
    try:
        return tuple(_fraction(word) if kind is float else kind(word) for word in words)
    except (ValueError, ZeroDivisionError) as error:
        raise CommandError(
            f"--{option} must be numbers separated by commas; got {','.join(words)!r}."
        ) from error


def _fraction(word: str) -> float:
    above, slash, below = word.partition("/")
    return float(above) / float(below) if slash else float(word)


def summary(document: dict[str, Any], verdicts: list[dict[str, Any]]) -> str:
    """Seconds to a true 1e-4 per case, then the verdicts, and how many claims have none."""
    from exclusivity.benchmark import NO_VERDICT, reached

    lines = ["milliseconds to a true relative excess of 1e-4 (-: not reached)"]
    for case in document["cases"]:
        found = {name: reached(points, 1e-4) for name, points in case["curves"].items()}
        times = [
            f"{name} {1000 * point['seconds']:.3g}" if point else f"{name} -" for name, point in found.items()
        ]
        lines.append(f"  {case['workload']} p={case['p']} C={case['cost']:.3g}: {', '.join(times)}")
    lines.append("")
    judged = [each for each in verdicts if each["outcome"] not in NO_VERDICT]
    width = max((len(each["outcome"]) for each in judged), default=0)
    for each in judged:
        ratio = (
            "" if each["ratio"] is None else f" (worst ratio {each['ratio']:.2g}, bar {each['factor']:.2g})"
        )
        lines.append(f"{each['outcome']:<{width}}  {each['statement']}{ratio}")
    if len(judged) < len(verdicts):
        n_open = len(verdicts) - len(judged)
        lines.append(f"no verdict on {n_open} of {len(verdicts)} claims: not measured, or no rival got there")
    return "\n".join(lines)
