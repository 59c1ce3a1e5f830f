"""What one iteration of solver "alm" costs.

1. Its time on 50,000 x 22 with 30 members, against the two products it cannot avoid, X @ P and
   X.T @ R, and where the rest goes.
2. How the time per iteration grows with the rows (10^4 to 10^6) and with the members: log-log slopes.

Run ``python benchmarks/alm_iteration.py [--quick] [--json FILE]``. Times are medians of interleaved repeats.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import os
import platform
import pstats
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np

from exclusivity.problem import ERMProblem
from exclusivity.solvers import solve_alm

N_FEATURES = 22
N_MEMBERS = 30
# The parts of an iteration, by the function that does them.
PARTS = {
    "(P, b) step": "solve",
    "rows: scores, multipliers, E": "_split",
    "  of which the loss's prox": "prox (loss.py)",
    "certificate": "dual_bound",
}


def make_problem(n_rows: int, n_members: int, p: float) -> ERMProblem:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, N_FEATURES))
    y = np.where(X[:, 0] + X[:, 1] + 2 * rng.standard_normal(n_rows) > 0, 1.0, -1.0)
    return ERMProblem.build(X, y, n_members=n_members, cost=2.0, p=p)


def seconds_per_iteration(problem: ERMProblem, n_iter: int) -> float:
    """Differences of two run lengths: what is done once per fit (the factorisation) drops out."""
    times = []
    for length in (2, 2 + n_iter):
        started = perf_counter()
        solve_alm(problem, tol=1e-300, max_iter=length)
        times.append(perf_counter() - started)
    return (times[1] - times[0]) / n_iter


def product_seconds(problem: ERMProblem) -> float:
    X = problem.design.X
    P = np.ones((X.shape[1], problem.n_members))
    R = np.ones((X.shape[0], problem.n_members))
    started = perf_counter()
    X @ P
    X.T @ R
    return perf_counter() - started


def cost_ratio(p: float, repeats: int) -> dict[str, float]:
    problem = make_problem(50_000, N_MEMBERS, p)
    iterations, products = [], []
    for _ in range(repeats):
        iterations.append(seconds_per_iteration(problem, 10))
        products.append(median(product_seconds(problem) for _ in range(5)))
    return {
        "p": p,
        "iteration_ms": 1e3 * median(iterations),
        "products_ms": 1e3 * median(products),
        "ratio": median(iterations) / median(products),
    }


def time_split(p: float) -> dict[str, float]:
    """Share of the run's time in each part, from a profile of 30 iterations."""
    problem = make_problem(50_000, N_MEMBERS, p)
    profiler = cProfile.Profile()
    profiler.runcall(solve_alm, problem, tol=1e-300, max_iter=30)
    stats = pstats.Stats(profiler).stats  # type: ignore[attr-defined]
    total = sum(entry[2] for entry in stats.values())
    shares = {}
    for part, name in PARTS.items():
        function, _, module = name.partition(" ")
        matching = [
            entry[3]
            for (file, _, called), entry in stats.items()
            if called == function and "exclusivity" in file and module.strip("()") in file
        ]
        shares[part] = sum(matching) / total
    return shares


def slope(sizes: list[int], seconds: list[float]) -> float:
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def scaling(sizes: list[tuple[int, int]], p: float, repeats: int) -> list[float]:
    """Median seconds per iteration for each (rows, members), repeats interleaved."""
    problems = [make_problem(n_rows, n_members, p) for n_rows, n_members in sizes]
    samples: list[list[float]] = [[] for _ in problems]
    for _ in range(repeats):
        for problem, times in zip(problems, samples, strict=True):
            times.append(seconds_per_iteration(problem, 3 if problem.design.n_rows > 200_000 else 10))
    return [median(times) for times in samples]


def machine() -> dict[str, str]:
    threads = os.environ.get("OPENBLAS_NUM_THREADS") or os.environ.get("OMP_NUM_THREADS") or "library default"
    return {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "cpus": str(os.cpu_count()),
        "blas_threads": threads,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="fewer repeats, up to 10^5 rows")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to FILE")
    args = parser.parse_args()
    repeats = 3 if args.quick else 7
    report: dict[str, object] = {"machine": machine()}
    print(f"machine: {report['machine']}")

    report["cost"] = costs = [cost_ratio(p, repeats) for p in (1, 2)]
    print(f"\none iteration, 50,000 x {N_FEATURES}, {N_MEMBERS} members (bar: ratio <= 6)")
    for cost in costs:
        print(
            f"  p={cost['p']:g}: {cost['iteration_ms']:.1f} ms = {cost['ratio']:.2f} x "
            f"(X @ P and X.T @ R: {cost['products_ms']:.1f} ms)"
        )
    report["split"] = split = time_split(1)
    print("  where the time of p=1 goes:")
    for part, share in split.items():
        print(f"    {part:<32} {share:6.1%}")

    rows = [10_000, 31_623, 100_000] if args.quick else [10_000, 31_623, 100_000, 316_228, 1_000_000]
    members = [5, 10, 20, 40, 80]
    by_rows = scaling([(n, 10) for n in rows], 2, repeats)
    by_members = scaling([(50_000, k) for k in members], 2, repeats)
    report["slopes"] = {"rows": slope(rows, by_rows), "members": slope(members, by_members)}
    print("\ntime per iteration (bar: log-log slope <= 1.1)")
    print("  rows    " + "  ".join(f"{n}: {1e3 * s:.1f} ms" for n, s in zip(rows, by_rows, strict=True)))
    print(
        "  members " + "  ".join(f"{k}: {1e3 * s:.1f} ms" for k, s in zip(members, by_members, strict=True))
    )
    print(f"  slopes  {report['slopes']}")
    if args.json:
        args.json.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
