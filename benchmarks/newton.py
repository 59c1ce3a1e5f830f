"""What solver "newton" costs: members, rows, passes, memory, and one peer.

1. K = 100 members against K = 1 (200,000 x 28).
2. Time against rows: log-log slope from 10^5 to 4 * 10^6 (28 features).
3. 2,000,000 x 28 to a certified 1e-6 in units of one product X @ w, and the peak of extra memory (in a fresh
   process, Linux only).
4. 500,000 x 50: certified 1e-6 against ``LinearSVC``'s time to a *true* 1e-4, the objective evaluated here in
   float64 for both, the best objective of all runs being the reference. LinearSVC penalises its intercept; it
   gets the best of several tolerances and of intercept_scaling 1 and 10.

Run ``OPENBLAS_NUM_THREADS=1 python benchmarks/newton.py [--only members,rows,passes,peer] [--quick]``.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import warnings
from statistics import median
from time import perf_counter

import numpy as np
from sklearn.svm import LinearSVC

from exclusivity.problem import ERMProblem
from exclusivity.solvers import solve_newton

COST = 0.2


def make_rows(n_rows: int, n_features: int) -> tuple[np.ndarray, np.ndarray]:
    """Overlapping classes: about one row in five on the wrong side."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, n_features))
    direction = rng.standard_normal(n_features) / np.sqrt(n_features)
    y = np.where(X @ direction + 0.7 * rng.standard_normal(n_rows) + 0.3 > 0, 1.0, -1.0)
    return X, y


def seconds(action, repeats: int = 3) -> float:  # type: ignore[no-untyped-def]
    times = []
    for _ in range(repeats):
        started = perf_counter()
        action()
        times.append(perf_counter() - started)
    return median(times)


def problem(X: np.ndarray, y: np.ndarray, p: float, n_members: int = 1) -> ERMProblem:
    return ERMProblem.build(X, y, n_members=n_members, cost=COST * n_members, p=p)


def members(quick: bool) -> None:
    X, y = make_rows(50_000 if quick else 200_000, 28)
    for p in (1, 2):
        one, hundred = [], []
        for _ in range(7):
            one.append(seconds(lambda p=p: solve_newton(problem(X, y, p, 1), tol=1e-6), 1))
            hundred.append(seconds(lambda p=p: solve_newton(problem(X, y, p, 100), tol=1e-6), 1))
        ratio = median(hundred) / median(one)
        print(f"  p={p}: K=1 {median(one):.3f} s, K=100 {median(hundred):.3f} s, ratio {ratio:.2f} (bar 1.1)")


def rows(quick: bool) -> None:
    sizes = [100_000, 200_000, 400_000] if quick else [100_000, 400_000, 1_000_000, 4_000_000]
    for p in (1, 2):
        times = []
        for n_rows in sizes:
            X, y = make_rows(n_rows, 28)
            times.append(seconds(lambda X=X, y=y, p=p: solve_newton(problem(X, y, p), tol=1e-6)))
        slope = np.polyfit(np.log(sizes), np.log(times), 1)[0]
        detail = ", ".join(f"{n}: {t:.2f} s" for n, t in zip(sizes, times, strict=True))
        print(f"  p={p}: {detail}; log-log slope {slope:.2f} (bar 1.05)")


def passes(quick: bool) -> None:
    n_rows = 400_000 if quick else 2_000_000
    X, y = make_rows(n_rows, 28)
    w = np.ones(28)
    for p, bar in ((2, 30), (1, 60)):
        times, products = [], []
        for _ in range(5):
            products.append(seconds(lambda: X @ w))
            times.append(seconds(lambda p=p: solve_newton(problem(X, y, p), tol=1e-6), 1))
        result = solve_newton(problem(X, y, p), tol=1e-6)
        print(
            f"  p={p}, {n_rows} x 28: {median(times):.2f} s = {median(times) / median(products):.1f} X @ w "
            f"of {1e3 * median(products):.0f} ms (bar {bar}); gap {result.gap:.1e}, passes counted "
            f"{result.history.passes[-1]:.1f}; peak extra memory {peak_memory(n_rows, p):.2f} x X (bar 1)"
        )


def peak_memory(n_rows: int, p: int) -> float:
    """Peak extra memory of a fit in a fresh process, relative to the size of X."""
    code = (
        "import sys; sys.path.insert(0, sys.argv[3]); import newton\n"
        "X, y = newton.make_rows(int(sys.argv[1]), 28)\n"
        "problem = newton.problem(X, y, float(sys.argv[2]))\n"
        "open('/proc/self/clear_refs', 'w').write('5')  # start the peak anew\n"
        "def peak(): return int(open('/proc/self/status').read().split('VmHWM:')[1].split()[0])\n"
        "before = peak()\n"
        "newton.solve_newton(problem, tol=1e-6)\n"
        "print((peak() - before) * 1024 / X.nbytes)\n"
    )
    here = os.path.dirname(os.path.abspath(__file__))
    out = subprocess.run(  # noqa: S603 -- our own code
        [sys.executable, "-c", code, str(n_rows), str(p), here], check=True, capture_output=True, text=True
    )
    return float(out.stdout)


def peer(quick: bool) -> None:
    X, y = make_rows(100_000 if quick else 500_000, 50)
    warnings.simplefilter("ignore")
    for p, bar in ((2, 1 / 4), (1, 1 / 3)):
        task = problem(X, y, p)
        ours = seconds(lambda task=task: solve_newton(task, tol=1e-6))
        best = solve_newton(task, tol=1e-10).objective
        entries = []
        for scaling in (1, 10):
            for tol in (1e-1, 1e-2, 1e-3, 1e-4, 1e-5):
                model = LinearSVC(
                    C=COST,
                    loss="squared_hinge" if p == 2 else "hinge",
                    dual=p == 1,
                    tol=tol,
                    max_iter=20_000,
                    intercept_scaling=scaling,
                    random_state=0,
                )
                started = perf_counter()
                model.fit(X, y)
                taken = perf_counter() - started
                excess = task.value(model.coef_.T, model.intercept_) / best - 1
                entries.append((taken, excess, scaling, tol))
                if excess <= 1e-4 or taken > 120:
                    break
        reached = [entry for entry in entries if entry[1] <= 1e-4]
        line = f"  p={p}, {X.shape[0]} x 50: ours, certified 1e-6, {ours:.2f} s; LinearSVC "
        if reached:
            taken, excess, scaling, tol = min(reached)
            print(line + f"{taken:.2f} s to {excess:.0e}: ratio {ours / taken:.2f} (bar {bar:.2f})")
        else:
            nearest = min(entries, key=lambda entry: entry[1])
            print(line + f"never within 1e-4: best {nearest[1]:.1e} after {nearest[0]:.1f} s")


PARTS = {"members": members, "rows": rows, "passes": passes, "peer": peer}


def main() -> None:
    parser = argparse.ArgumentParser(description="What solver 'newton' costs.")
    parser.add_argument("--only", default=",".join(PARTS), help="comma-separated parts")
    parser.add_argument("--quick", action="store_true", help="smaller problems")
    args = parser.parse_args()
    print(f"BLAS threads: {os.environ.get('OPENBLAS_NUM_THREADS', 'library default')}")
    for name in args.only.split(","):
        print(name)
        PARTS[name](args.quick)


if __name__ == "__main__":
    main()
