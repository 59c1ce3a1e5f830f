"""Time the default solver against every method that applies, over a grid of shapes, costs and losses.

    python -m benchmarks.router --out router.jsonl                   # all problems: hours
    python -m benchmarks.router --every 5 --numbers 2e6 --limit 5    # a fifth of those with <= 2e6 numbers
    python -m benchmarks.router --only text digits                   # problems whose names begin so
    python -m benchmarks.router --report                             # the worst ratios measured so far
    python -m benchmarks.router --constants --every 6 --numbers 4e6  # half and twice of every tuned constant

Each measurement is a line of JSON, written at once; a run goes on where the last one ended. Times are
processor time of `solve_newton` on one thread, from rows in memory to a certified gap: the best of some
repeats. A method may take as long as the default took (and a little): beyond that it does not matter.
The ratio of a problem is the default's time to that of the fastest method, both raised to the floor.

With ``--constants`` the default is timed with each constant halved and doubled. Where that changes neither
iterations nor passes, it changes nothing but noise: the table has the problems in which it does.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache, partial
from importlib import import_module
from itertools import product
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
from scipy import sparse
from threadpoolctl import threadpool_limits

from benchmarks.workloads import Rows, data_rows, library_rows, overlapping_rows
from exclusivity.objective.losses import (
    Logistic,
    MarginLoss,
    PowerHinge,
    SmoothHinge,
)
from exclusivity.objective.objective import Bounds, ERMProblem
from exclusivity.solvers import newton as solver_module
from exclusivity.solvers.newton import NewtonOptions, solve_newton

FLOOR, SHORT = 0.005, 0.001
WORK = ("converged", "iterations", "passes")
ENOUGH_SECONDS, MOST_REPEATS = 0.1, 5
DEFAULT = "default"
# A method: its regime, and what of the package is replaced while it runs alone.
METHODS: dict[str, tuple[str, str]] = {
    "factorised": ("semismooth", "factorised"),
    "interior": ("interior", "interior"),
    "shrinking": ("interior", "shrinking"),
    "kernel": ("iterative", "newton-cg"),
    "newton-cg": ("iterative", "newton-cg"),
    "proximal": ("iterative", "proximal"),
}


# What each tuned constant of the solvers decides. Limits for safety, memory and rounding are not among them.
CONSTANTS = {
    "newton.MANY_ROWS": "rows from which a sample comes first",
    "newton._FRACTION": "rows per row of the sample",
    "newton.SAMPLE_TOL": "gap of the sample's optimum",
    "newton._SPARSE_LIMIT": "side of sparse rows from which products replace systems",
    "newton._KINKED_LIMIT": "the same with a penalty",
    "newton._PATIENCE_OF_PRODUCTS": "patience of products before an interior point, iterative regime",
    "newton._SYSTEMS": "systems of factorised steps with kinks or bounds",
    "newton._MANY_PER_FEATURE": "rows per feature from which there may be more",
    "newton._MANY_NUMBERS": "numbers in X from which products come first",
    "newton._MANY_FOR_HINGE": "the same for the hinge",
    "newton._KERNEL_SIDE": "smaller side from which the kernel comes first",
    "newton._HINGE_SIDE": "smaller side from which products come first, hinge",
    "newton._SMOOTH_SIDE": "smaller side from which products come first, smooth losses",
    "newton._FEW_ROWS": "rows up to which fewer rows than features are factorised",
    "newton._STEEP_ROWS": "rows per feature from which no smooth loss is steep",
    "newton._STEEP_HINGE_ROWS": "the same for the hinge",
    "newton._STEEP_HINGE_SIDE": "smaller side from which a steep hinge takes proximal steps",
    "newton._PASSES_PER_UNKNOWN": "passes of products per unknown before systems",
    "newton._LEAST_PASSES": "least passes of products before systems",
    "factorised.DENSE_LIMIT": "largest side that is factorised",
    "factorised._FIRST_WIDTH": "first rounding of a corner",
    "factorised._WIDTH_FACTOR": "by what the rounding shrinks",
    "factorised._SETTLED": "gradient's share of the gap at which it shrinks",
    "factorised._GOOD_RATE": "gradient's decrease that keeps a system",
    "factorised._FAIR_RATE": "the same where systems cost more than steps",
    "factorised._KEPT_FROM": "features from which they do",
    "factorised._PATIENCE": "iterations that may pass before the gap halves",
    "factorised._SMALL_PRODUCTS": "work of a Hessian below which steps are not certified one by one",
    "interior._BACK_OFF": "share of the way to the boundary",
    "interior._FAR": "complementarity in tolerances from which iterates are certified",
    "interior._INNER_SHARE": "complementarity in a working set",
    "interior._LEAST_ROWS": "least rows of a working set per unknown",
    "interior._WIDEN": "growth of a working set that was too narrow",
    "interior._LARGEST_SHARE": "largest working set, as a share of the rows",
    "interior._SPREAD": "first width, in standard errors",
    "interior._REST": "next width, in steps",
    "barrier._FIRST_SLACK": "first slack",
    "barrier._FIRST_SHARE": "first multiplier, as a share of the slope",
    "newton_cg.PATIENCE": "passes before another method",
    "newton_cg._STALLED": "share of them without a halved gap",
    "newton_cg._RESIDUAL": "residual of a Newton system",
    "newton_cg._ROUGHLY": "slope that ends a line search",
    "newton_cg._SETTLED": "gradient's share of the gap at which the loss is sharpened",
    "newton_cg._KEPT": "steps with one preconditioner",
    "newton_cg._FEW": "share of active rows up to which they are copied",
    "newton_cg._COLD_WIDTH": "first rounding of the hinge",
    "newton_cg._WARM_WIDTH": "the same with a dual vector",
    "newton_cg._GROWTH": "by what it is sharpened",
    "newton_cg.STEEP": "steepness from which steps are proximal",
    "newton_cg._TELLING": "features per row up to which the diagonal preconditions",
    "newton_cg._TELLING_OF_HINGE": "the same for the hinge",
    "subspace._MOST_STEPS": "steps of the kernel between certificates",
    "subspace._PATIENCE": "passes of the kernel before its gap halves",
    "subspace._AIM": "share of the tolerance that it aims at",
    "subspace._COLD_WIDTH": "first rounding of the hinge in the kernel",
    "subspace._WIDER": "rounding after the kernel has stalled",
    "sums.SPARSE_DENSITY": "share of stored numbers up to which rows count as sparse",
}


class Case(NamedTuple):
    """A problem of the grid; ``size`` is the number of numbers in its rows, about."""

    name: str
    rows: Callable[[], Rows]
    size: float
    loss: str
    cost: float
    options: tuple[tuple[str, float], ...] = ()
    tol: float = 1e-4

    @property
    def key(self) -> str:
        extra = "".join(f", {name}={value:g}" for name, value in self.options)
        return f"{self.name}, {self.loss}, C={self.cost:g}{extra}"

    def problem(self, rows: Rows) -> ERMProblem:
        X, y = rows
        loss, options = loss_of(self.loss), dict(self.options)
        bound = options.pop("bound", None)
        bounds = None if bound is None else Bounds(np.zeros(X.shape[1]), np.full(X.shape[1], bound))
        return ERMProblem.build(X, y, cost=self.cost, loss=loss, bounds=bounds, **options)


def loss_of(name: str) -> MarginLoss:
    """Return the loss of this name; "p=1.5" is a power of the hinge."""
    others: dict[str, MarginLoss] = {
        "logistic": Logistic(),
        "smooth_hinge": SmoothHinge(),
        "hinge": PowerHinge(1),
    }
    return others.get(name) or PowerHinge(float(name.removeprefix("p=")))


def dense_rows(n_rows: int, n_features: int, *, correlation: float = 0.0, spread: float = 0.0) -> Rows:
    """Return overlapping Gaussian classes; features share a factor, or differ in scale by powers of ten."""
    X, y = overlapping_rows(n_rows, n_features)
    rng = np.random.default_rng(1)
    X = np.sqrt(1 - correlation) * X + np.sqrt(correlation) * rng.standard_normal((n_rows, 1))
    return X * 10.0 ** rng.uniform(-spread, spread, n_features), y


def sparse_rows(n_rows: int, n_features: int, density: float) -> Rows:
    """Return rows of which a share is stored, at random places, and labels by a noisy plane."""
    rng = np.random.default_rng(2)
    per_row = max(int(density * n_features), 1)
    columns = rng.integers(n_features, size=n_rows * per_row, dtype=np.int32)
    starts = np.arange(0, n_rows * per_row + 1, per_row, dtype=np.int32)
    X = sparse.csr_matrix((rng.standard_normal(len(columns)), columns, starts), shape=(n_rows, n_features))
    X.sum_duplicates()
    scores = X @ rng.standard_normal(n_features) / np.sqrt(per_row)
    return X, np.where(scores + 0.5 * rng.standard_normal(n_rows) + 0.3 > 0, 1.0, -1.0)


def bundled_rows(name: str, *, degree: int = 1, n_landmarks: int = 0) -> Rows:
    """Return a data set that scikit-learn brings, in units of its columns; of products, or of landmarks."""
    from sklearn import datasets, kernel_approximation, preprocessing  # noqa: PLC0415 -- a second to import

    X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    X = preprocessing.StandardScaler().fit_transform(X)
    if degree > 1:
        X = preprocessing.PolynomialFeatures(degree, include_bias=False).fit_transform(X)
        X = preprocessing.StandardScaler().fit_transform(X)
    if n_landmarks:
        X = kernel_approximation.RBFSampler(
            gamma=1 / X.shape[1], n_components=n_landmarks, random_state=0
        ).fit_transform(X)
        X = X * np.sqrt(n_landmarks / 2)
    return np.ascontiguousarray(X), np.where(y == (3 if name == "digits" else 1), 1.0, -1.0)


def scaled_rows(name: str) -> Rows:
    """Return a data set of the paper in units of its columns."""
    from sklearn.preprocessing import MaxAbsScaler  # noqa: PLC0415 -- a second to import

    X, y = data_rows(name)
    X = X.toarray() if sparse.issparse(X) else np.asarray(X, dtype=float)
    return MaxAbsScaler().fit_transform(X), np.where(y == np.max(y), 1.0, -1.0)


@cache
def _text(analyzer: str) -> Rows:
    return library_rows(analyzer, classes=True)


def text_class(analyzer: str, rank: int) -> Rows:
    """Return one module of Python's library against the rest: the one of this rank in size."""
    X, y = _text(analyzer)
    return X, np.where(y == np.argsort(-np.bincount(y.astype(int)), kind="stable")[rank], 1.0, -1.0)


SHAPES = (
    *((150, 10), (150, 60), (300, 2000), (500, 20), (1000, 100), (1000, 500), (1500, 1500), (2000, 500)),
    *((2000, 1000), (2000, 4000), (4000, 800), (5000, 50), (20_000, 20), (20_000, 200), (100_000, 28)),
    (1_000_000, 50),
)
SOME_SHAPES = ((150, 10), (1000, 100), (1500, 1500), (5000, 50), (100_000, 28))
HARD_SHAPES = ((500, 20), (2000, 500), (1500, 1500), (4000, 800), (20_000, 50))
KINKED_SHAPES = ((1000, 100), (1500, 1500), (20_000, 50))
SPARSE_SHAPES = ((2000, 300, 0.05), (5000, 1000, 0.05), (2000, 20_000, 0.003), (20_000, 2000, 0.01))
REAL: tuple[tuple[str, Callable[[], Rows], float], ...] = (
    *((name, partial(scaled_rows, name), 2e4) for name in ("heart", "australian", "sonar", "german")),
    ("splice", partial(scaled_rows, "splice"), 6e4),
    ("ijcnn1", partial(scaled_rows, "ijcnn1"), 1.1e6),
    ("breast cancer", partial(bundled_rows, "breast_cancer"), 1.7e4),
    ("breast cancer, degree 2", partial(bundled_rows, "breast_cancer", degree=2), 2.8e5),
    ("digits", partial(bundled_rows, "digits"), 1.15e5),
    ("digits, degree 2", partial(bundled_rows, "digits", degree=2), 3.8e6),
    ("digits, 1500 landmarks", partial(bundled_rows, "digits", n_landmarks=1500), 2.7e6),
)
TEXTS = (("words", 2.5e5), ("chars", 4e6))
TWO, COSTS = ("hinge", "p=2"), (0.01, 1.0, 100.0)


def families() -> Iterator[tuple[str, Callable[[], Rows], float, tuple[str, ...], tuple[float, ...]]]:
    """Yield rows with their names and sizes, and the losses and costs that go with them."""
    for n, m in SHAPES:
        yield f"dense {n}x{m}", partial(dense_rows, n, m), n * m, TWO, COSTS
    for n, m in SOME_SHAPES:
        others = ("logistic", "smooth_hinge", "p=1.5")
        yield f"dense {n}x{m}", partial(dense_rows, n, m), n * m, others, (0.1, 10)
    for n, m in HARD_SHAPES:
        yield f"correlated {n}x{m}", partial(dense_rows, n, m, correlation=0.8), n * m, TWO, COSTS
        yield f"scaled {n}x{m}", partial(dense_rows, n, m, spread=1.5), n * m, TWO, COSTS
    for name, rows, size in REAL:
        yield name, rows, size, (*TWO, "logistic"), COSTS
    for n, m, density in SPARSE_SHAPES:
        rows = partial(sparse_rows, n, m, density)
        yield f"sparse {n}x{m}, {density:g} stored", rows, n * m * density, (*TWO, "logistic"), (0.1, 10)
    for analyzer, size in TEXTS:
        for rank in (0, 10):
            rows, losses = partial(text_class, analyzer, rank), (*TWO, "smooth_hinge", "logistic")
            yield f"text, {analyzer}, class {rank}", rows, size, losses, (0.1, 1, 10)


def grid() -> Iterator[Case]:
    """Yield every problem: dense, correlated, scaled, real, sparse, text; then kinks and bounds."""
    for name, rows, size, losses, costs in families():
        for loss, cost in product(losses, costs):
            yield Case(name, rows, size, loss, cost)
    for (n, m), loss, option in product(KINKED_SHAPES, TWO, (("sparsity", 5.0), ("bound", 0.1))):
        yield Case(f"dense {n}x{m}", partial(dense_rows, n, m), n * m, loss, 1.0, (option,))


class TimeLimit:
    """A callback that ends a run after so many seconds of processor time."""

    def __init__(self, seconds: float) -> None:
        self._end = process_time() + seconds

    def __call__(self, *_: Any) -> bool:
        return process_time() > self._end


def fit(case: Case, rows: Rows, method: str, limit: float) -> tuple[float, Any]:
    """Return the seconds of one fit and its result; a method runs alone."""
    problem = case.problem(rows)
    with ExitStack() as stack:
        regime, (constant, _, factor) = "auto", method.partition(" x ")
        if factor:
            scale_constant(stack, constant, float(factor))
        elif method != DEFAULT:
            regime, chosen = METHODS[method]

            def alone(reduced: ERMProblem, *_: Any, **__: Any) -> list[str]:
                """Return the method; where samples of the rows are too few to shrink, an interior point."""
                is_few = reduced.design.n_rows <= solver_module.MANY_ROWS
                return ["interior"] if chosen == "shrinking" and is_few else [chosen]

            stack.enter_context(mock.patch.object(solver_module, "methods_for", alone))
        if method == "newton-cg":
            stack.enter_context(mock.patch.object(solver_module, "has_kernel", return_value=False))
        start = process_time()
        result = solve_newton(problem, tol=case.tol, options=NewtonOptions(regime), callback=TimeLimit(limit))
        return process_time() - start, result


def scale_constant(stack: ExitStack, constant: str, factor: float) -> None:
    """Multiply a constant, such as ``newton._FRACTION``, in every module that uses it."""
    owner, name = constant.split(".")
    value = getattr(import_module(f"exclusivity.solvers.{owner}"), name)
    scaled = tuple(factor * part for part in value) if isinstance(value, tuple) else factor * value
    scaled = max(int(scaled), 1) if isinstance(value, int) else scaled
    if owner + name in ("interior_BACK_OFF", "subspace_AIM"):  # shares of 1: what is left is scaled
        scaled = 1 - factor * (1 - value)
    for module in [module for path, module in sys.modules.items() if path.startswith("exclusivity.solvers.")]:
        if getattr(module, name, None) is value and (module.__name__.endswith(owner) or name[0] != "_"):
            stack.enter_context(mock.patch.object(module, name, scaled))


def measure(
    case: Case, rows: Rows, method: str, limit: float, like: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Return the best time of some fits and how they ended; one is enough where its work is ``like``'s."""
    times: list[float] = []
    line: dict[str, Any] = {"case": case.key, "method": method, "seconds": None, "converged": False}
    while not times or (sum(times) < ENOUGH_SECONDS and len(times) < MOST_REPEATS):
        try:
            seconds, result = fit(case, rows, method, limit)
        except ValueError:  # this method is not for such a loss
            break
        times.append(seconds)
        line |= {"seconds": min(times), "converged": bool(result.converged), "iterations": result.n_iter}
        line["passes"] = float(result.history.passes[-1]) if len(result.history) else 0.0
        if not result.converged or (like is not None and all(line[key] == like[key] for key in WORK)):
            break
    return line


def methods_for(case: Case, rows: Rows) -> list[str]:
    """Return the methods that apply to a problem."""
    loss, (X, _) = loss_of(case.loss), rows
    names = ["newton-cg", "proximal"]
    if sparse.issparse(X) and loss.conjugate_stiffness is not None:
        names.append("kernel")
    if min(X.shape) <= 4096:
        names += ["factorised"] * loss.is_smooth + ["interior"] * loss.vanishes
    return names + ["shrinking"] * (loss.is_hinge and X.shape[0] > X.shape[1])


def run(
    cases: list[Case], out: Path, limit: float, wanted: list[str] | None, *, constants: bool = False
) -> None:
    """Measure what is not in the file yet: methods, or each constant halved and doubled."""
    done = {(line["case"], line["method"]): line for line in read(out)}
    made: tuple[str, Rows] | None = None
    scaled = [f"{name} x {factor}" for name in CONSTANTS for factor in (0.5, 2)]
    with out.open("a", encoding="utf-8") as file:

        def note(case: Case, rows: Rows, method: str, most: float, like: Any = None) -> dict[str, Any]:
            if (case.key, method) not in done:
                line = measure(case, rows, method, most, like)
                done[case.key, method] = line
                file.write(json.dumps(line) + "\n")
                file.flush()
                print(f"{case.key}: {method} {line['seconds'] or 0:.4f} {line['converged']}", file=sys.stderr)
            return done[case.key, method]

        for case in cases:
            if made is None or made[0] != case.name:
                try:
                    made = case.name, case.rows()
                except FileNotFoundError as error:
                    print(f"without {case.name}: {error}", file=sys.stderr)
                    continue
            rows = made[1]
            default = note(case, rows, DEFAULT, limit)
            most = limit if not default["converged"] else min(limit, max(1.2 * default["seconds"], FLOOR))
            if constants:
                for constant in scaled:
                    note(case, rows, constant, 10 * most, default)
                continue
            for method in methods_for(case, rows):
                if wanted is None or method in wanted:
                    note(case, rows, method, most)


def read(out: Path) -> list[dict[str, Any]]:
    """Return what has been measured."""
    return [json.loads(line) for line in out.read_text().splitlines()] if out.is_file() else []


class Ratio(NamedTuple):
    """The default's time to that of the fastest method, both raised to the floor."""

    value: float
    case: str
    default: float
    best: float
    method: str


def ratios(lines: list[dict[str, Any]]) -> list[Ratio]:
    """Return the ratios of all problems, the worst first.

    >>> [line] = ratios([
    ...     {"case": "a", "method": "default", "seconds": 0.03, "converged": True},
    ...     {"case": "a", "method": "interior", "seconds": 0.001, "converged": True},
    ...     {"case": "a", "method": "proximal", "seconds": 0.0001, "converged": False},
    ... ])
    >>> line.value, line.method
    (6.0, 'interior')
    """
    cases: dict[str, dict[str, float]] = {}
    for line in lines:
        seconds = line["seconds"] if line["converged"] else np.inf
        cases.setdefault(line["case"], {})[line["method"]] = seconds
    found = []
    for case, times in cases.items():
        default, method = times[DEFAULT], min(times, key=lambda name: times[name])
        if np.isfinite(times[method]):
            value = max(default, FLOOR) / max(times[method], FLOOR)
            found.append(Ratio(value, case, default, times[method], method))
    return sorted(found, reverse=True)


def report(lines: list[dict[str, Any]], n_worst: int) -> str:
    """Return the worst ratios and how many are below which."""
    found = ratios(lines)
    if not found:
        return "nothing has been measured."
    values = np.array([each.value for each in found])
    text = [f"{len(found)} problems: worst {values.max():.2f}, mean {values.mean():.2f}"]
    text += [f"above {bar}: {int((values > bar).sum())}" for bar in (1.2, 1.5, 2.0, 5.0)]
    for value, case, default, best, method in found[:n_worst]:
        text.append(f"{value:7.2f} {1000 * default:9.1f} ms {1000 * best:9.1f} ms  {method:11} {case}")
    return "\n".join(text)


def report_constants(lines: list[dict[str, Any]]) -> str:
    """Return what half and twice every constant do, as a Markdown table.

    Ratios of times, geometric mean and worst, over the problems whose iterations or passes change; a run that
    misses its tolerance counts as the limit.
    """
    cases: dict[str, dict[str, dict[str, Any]]] = {}
    for line in lines:
        cases.setdefault(line["case"], {})[line["method"]] = line
    text = ["| constant | decides | half: problems, mean, worst | twice |", "|---|---|---|---|"]
    for constant, meaning in CONSTANTS.items():
        cells = []
        for factor in (0.5, 2):
            found = []
            for measured in cases.values():
                base, here = measured[DEFAULT], measured.get(f"{constant} x {factor}")
                if here is not None and any(base[key] != here[key] for key in WORK):
                    found.append(max(here["seconds"], SHORT) / max(base["seconds"], SHORT))
            mean = float(np.exp(np.mean(np.log(found)))) if found else 1.0
            cells.append(f"{len(found)}, {mean:.2f}, {max(found):.2f}" if found else "none")
        text.append(f"| `{constant}` | {meaning} | {cells[0]} | {cells[1]} |")
    return "\n".join([f"{len(cases)} problems", "", *text])


def main(argv: list[str] | None = None) -> None:
    """Parse the command line, measure and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    add = parser.add_argument
    add("--out", type=Path, default=Path("router.jsonl"), help="measurements (default: router.jsonl)")
    add("--only", nargs="*", default=[""], metavar="NAME", help="problems whose names begin so")
    add("--methods", nargs="*", choices=list(METHODS), metavar="NAME", help=f"of {', '.join(METHODS)}")
    add("--every", type=int, default=1, metavar="N", help="one problem of N, chosen at random")
    add("--numbers", type=float, default=np.inf, metavar="N", help="rows of at most so many numbers")
    add("--limit", type=float, default=60.0, metavar="S", help="seconds of a fit (default: 60)")
    add("--worst", type=int, default=20, metavar="N", help="problems in the report (default: 20)")
    add("--report", action="store_true", help="report what is in the file; measure nothing")
    add("--constants", action="store_true", help="half and twice of every tuned constant, not the methods")
    args = parser.parse_args(argv)
    if not args.report:
        cases = [
            case for case in grid() if case.size <= args.numbers and case.key.startswith(tuple(args.only))
        ]
        chosen = np.sort(np.random.default_rng(0).permutation(len(cases))[:: args.every])
        with threadpool_limits(1):
            run([cases[i] for i in chosen], args.out, args.limit, args.methods, constants=args.constants)
    measured = read(args.out)
    print(report_constants(measured) if args.constants else report(measured, args.worst))


if __name__ == "__main__":
    main()
