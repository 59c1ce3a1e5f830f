"""Solver "newton": the certified optimum of any number of members in the time of one SVM.

By the equivalence theorem (``ERMProblem.reduced``) the ERM of K members is one SVM of cost C / kappa. That
SVM is solved by second-order steps, in the regime that fits:

============  =======================================  ====================================================
regime        when                                     how
============  =======================================  ====================================================
"semismooth"  p >= 2, smooth hinge, logistic loss;     factorised Newton on the primal, block by block,
              1 < p < 2 with many rows                 warm-started on samples of the rows
"interior"    p = 1;                                   primal-dual interior point; for p = 1 with many rows
              1 < p < 2 with few rows                  only on those near the margin, if they are few, and
                                                       after Newton-CG, if they are not
"iterative"   rows and features both beyond 4096,      Newton-CG, or the compiled kernel: products with X
              or beyond 400 for sparse data            alone; at large costs around a dual vector
============  =======================================  ====================================================

All but the last factorise one matrix per step, on the smaller of the two sides: features or rows. Where that
side is large beside what steps by products take, these come first in the other regimes, too
(``products_first``), and hand over where they stall.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np

from exclusivity._typing import Floats
from exclusivity.objective.estimates import dual_from_scores
from exclusivity.objective.objective import ERMProblem, Objective, member_costs, repair_dual
from exclusivity.rows.design import DesignMatrix, RowList
from exclusivity.rows.source import RowBlock, RowSource, SharedPasses
from exclusivity.solvers.base import SAMPLE_SEED, Callback, SolverResult, Start
from exclusivity.solvers.factorised import DENSE_LIMIT, drive_factorised, primal_system
from exclusivity.solvers.interior import SampleOptimum, drive_interior, drive_shrinking
from exclusivity.solvers.newton_cg import PATIENCE, STEEP, drive_newton_cg, steepness
from exclusivity.solvers.run import Guess, MemoryRows, ProblemRows, Run, Target, TargetRows
from exclusivity.solvers.subspace import drive_subspace, has_kernel
from exclusivity.solvers.sums import (
    SPARSE_DENSITY,
    ActiveGram,
    Certificate,
    LossSums,
    Point,
    certificate_of,
    evaluate,
    objective_from_sums,
)

MANY_ROWS = 20_000
"""From so many rows on a sample of them pays."""

_FRACTION = 10
SAMPLE_TOL = 1e-3
"""Enough: the optimum of a sample is off by more than that."""

DEFAULT_MAX_ITER = 500
# From this size on products beat factorisations where most numbers in X are zero: 2 to 40 times from 600 to
# 20,000 rows or features, about even at 300.
_SPARSE_LIMIT = 400
# With kinks later: at 700 an interior point takes from two thirds to a sixth of the time, at 2,000 twice it.
_KINKED_LIMIT = 1000
# Passes of products in the iterative regime, in units of their patience, before an interior point.
_PATIENCE_OF_PRODUCTS = 4
# Systems of factorised steps: for fewer rows than features, for up to so many times as many, and for more.
_SYSTEMS, _MANY_PER_FEATURE = (12, 40, 400), 8
# Products come before factorisations from so many numbers in X on (below, vectors take longer than either),
# where one side is so large: for the compiled kernel, for the hinge, for smooth losses.
_MANY_NUMBERS, _MANY_FOR_HINGE = 30_000, 120_000
_KERNEL_SIDE, _HINGE_SIDE, _SMOOTH_SIDE = 30, 20, 150
# Fewer rows than this and than features: steep smooth losses take a few systems of the rows' side.
_FEW_ROWS = 400
# From so many rows per feature on Newton-CG comes first whatever the cost, as rows cannot all be fitted: for
# smooth losses, and for the hinge, whose interior point takes fewer steps.
_STEEP_ROWS, _STEEP_HINGE_ROWS = 3, 20
# A steep hinge takes proximal steps before an interior point only where its systems are so large.
_STEEP_HINGE_SIDE = 400
# Methods that factorise take about as long as so many passes for every unknown: what products may take before
# these, but at least the second number.
_PASSES_PER_UNKNOWN, _LEAST_PASSES = 1 / 4, 40

Regime = Literal["auto", "semismooth", "interior", "iterative"]


@dataclass(frozen=True)
class NewtonOptions:
    """The settings of the Newton solver.

    Parameters
    ----------
    regime : {"auto", "semismooth", "interior", "iterative"}
        Which method to use; "auto" looks at shape, p and sparsity.
    """

    regime: Regime = "auto"

    def __post_init__(self) -> None:
        allowed = ("auto", "semismooth", "interior", "iterative")
        if self.regime not in allowed:
            raise ValueError(
                f"solver option regime must be one of {', '.join(allowed)}; got {self.regime!r}."
            )


def solve_newton(
    problem: ERMProblem,
    *,
    tol: float = 1e-4,
    max_iter: int | None = None,
    options: NewtonOptions | None = None,
    start: Start | None = None,
    callback: Callback | None = None,
    system: Floats | None = None,
) -> SolverResult:
    """Solve the reduced SVM until its relative duality gap is at most ``tol``; all members are equal.

    ``system`` is what :func:`make_system` gave for the same rows, weights and cost, with any labels.

    Examples
    --------
    >>> import numpy as np
    >>> problem = ERMProblem.build(np.array([[1.0], [-1.0]]), np.array([1.0, -1.0]), n_members=3, cost=2)
    >>> result = solve_newton(problem, tol=1e-12)
    >>> result.converged, round(result.objective, 6)
    (True, 3.272727)
    """
    wanted = (options or NewtonOptions()).regime
    regime = choose_regime(problem.objective, RowFacts.of(problem), wanted)
    # Numbers beyond 1e150 overflow when squared: such points lose every comparison, which is all it takes.
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        problem = problem.centred()
        run = Run(problem.objective, tol, max_iter or DEFAULT_MAX_ITER, callback, problem.design.offset)
        reduced = problem.reduced()
        if start is None:
            guess, sample = sampled_guess(run, reduced, regime)
        else:
            guess, sample = certify_start(run, reduced, start.for_problem(problem)), None
        if not run.is_over:
            rows = MemoryRows(reduced, system)
            continue_run(run, rows, regime, guess, sample, is_chosen=wanted != "auto")
        if not run.has_point:  # costs times rows beyond the range of numbers: zero is a point, too
            nowhere = Point(np.zeros(reduced.design.n_features), 0.0).inside(reduced.penalty)
            run.take(nowhere, certificate_of(reduced, nowhere, np.zeros(reduced.design.n_rows)))
        return run.result(problem.design.n_rows)


def certify_start(run: Run, reduced: ERMProblem, start: Start) -> Guess:
    """Certify the mean member of an earlier result; return it, or where its method was."""
    point = Point(start.weights.mean(axis=1, dtype=float), float(start.intercepts.mean()))
    dual = start.dual
    if dual is None or len(dual) != reduced.design.n_rows:
        scores = reduced.design.times(point.weights)
        run.passes += 1
        dual = dual_from_scores(reduced, scores)
    run.passes += 2
    run.take(point, certificate_of(reduced, point, dual), is_start=True)
    if start.resumes(Guess, run.scale * run.best_objective, run.gap, reduced.design.n_rows):
        going_on: Guess = start.state
        return going_on
    return Guess(point, dual=repair_dual(reduced, dual))


def make_system(problem: ERMProblem) -> Floats | None:
    """Compute the second derivatives of all rows, which problems that differ in their labels share.

    None where they are of no use: they are where Newton starts from zero, at which every row is active.
    """
    is_small = problem.design.n_features <= problem.design.n_rows <= MANY_ROWS
    curvature = problem.loss.active_curvature
    if not is_small or curvature is None:
        return None
    if choose_regime(problem.objective, RowFacts.of(problem), "auto") != "semismooth":
        return None
    with np.errstate(over="ignore", invalid="ignore"):  # as in ``solve_newton``
        rows = ActiveGram(problem.centred().design, curvature * member_costs(problem))
        return rows.at(np.ones(problem.design.n_rows, dtype=bool))


def continue_run(  # noqa: C901 -- a case for each method
    run: Run,
    rows: ProblemRows,
    regime: Regime,
    guess: Guess,
    sample: Sample | None = None,
    *,
    is_chosen: bool = False,
) -> None:
    """Continue from a guess, method after method, until the run is over or nothing helps any more.

    ``is_chosen``: the user has named the regime, whose own methods come first then.
    """
    problem = rows.problem
    if problem is None:
        facts = RowFacts(rows.n_rows, rows.n_features, has_vectors=False)
        methods = methods_of(rows.objective, facts, regime)
    else:
        facts, methods = RowFacts.of(problem), methods_for(problem, regime, is_chosen=is_chosen)
    if guess.method in methods:  # what comes before it has been tried
        at = methods.index(guess.method)
        methods = methods[at:] + methods[:at]
    if "factorised" in methods and not rows.objective.penalty.is_smooth:
        methods.append("factorised")  # from close to the optimum a few systems do, and reach the last digits
    for place, method in enumerate(methods):
        if method == "factorised":
            is_last = method not in methods[place + 1 :]
            most_systems = np.inf if is_last else systems_for(facts)
            drive_factorised(run, rows, guess, most_systems, hands_over=place + 1 < len(methods))
        elif method == "interior":
            drive_interior(run, rows, guess)
        elif method == "shrinking":
            sample = sample or (None if problem is None else sample_rows(problem))
            if sample is not None:
                optimum = SampleOptimum(sample.problem, guess.point, sample.fraction)
                left = drive_shrinking(run, rows, optimum, guess.width)
                if left is not None and problem is not None and facts.takes_products:
                    _drive_products(run, problem, left, PATIENCE)
        elif problem is not None:
            most_passes = patience_for(regime, facts, methods if place == 0 else [])
            _drive_products(run, problem, guess, most_passes, is_proximal=method == "proximal")
        if run.is_over:
            return
        guess = Guess(run.best) if run.has_point else guess


def _drive_products(
    run: Run, problem: ERMProblem, guess: Guess, most_passes: float, *, is_proximal: bool = False
) -> None:
    """Run the compiled kernel where it fits, and Newton-CG where it does not or stalls."""
    if problem.design.is_sparse and not (is_proximal or guess.tried_kernel) and has_kernel(problem):
        guess = drive_subspace(run, problem, guess, most_passes=most_passes)
        if run.is_over or guess.spent > most_passes:
            return
    drive_newton_cg(run, problem, guess, most_passes=most_passes, is_proximal=is_proximal)


# ---------------------------------------------------------------- which methods


class RowFacts(NamedTuple):
    """Shape, density and kind of the rows: what the choice of a method depends on.

    ``has_vectors``: whether vectors of all rows are at hand, as products with X alone need them.
    """

    n_rows: int
    n_features: int
    density: float = 1.0
    has_vectors: bool = True
    has_targets: bool = False

    @classmethod
    def of(cls, problem: ERMProblem) -> RowFacts:
        """Return the facts of rows in memory."""
        design = problem.design
        has_targets = problem.targets is not None
        return cls(design.n_rows, design.n_features, design.density, has_targets=has_targets)

    @property
    def smaller_side(self) -> int:
        """The side of a system that would be factorised."""
        return min(self.n_rows, self.n_features)

    @property
    def takes_products(self) -> bool:
        """True if methods of products can be used: they take all targets for 1."""
        return self.has_vectors and not self.has_targets


def choose_regime(objective: Objective, rows: RowFacts, wanted: Regime) -> Regime:
    """Return the regime for an objective on such rows, or raise a ValueError where it cannot do it."""
    loss, regime = objective.loss, wanted
    if wanted == "auto":
        limit = DENSE_LIMIT
        if rows.density <= SPARSE_DENSITY:
            limit = _KINKED_LIMIT if loss.vanishes and np.any(objective.penalty.kinks) else _SPARSE_LIMIT
        is_few = rows.n_rows <= MANY_ROWS and rows.has_vectors
        if rows.smaller_side > limit and rows.takes_products:
            regime = "iterative"
        elif not loss.is_smooth or (loss.has_corner and is_few):
            regime = "interior"
        else:
            regime = "semismooth"
    if regime == "interior" and not loss.vanishes:
        raise ValueError(
            f"regime='interior' takes losses that are zero for m <= 0; {type(loss).__name__} is not."
        )
    if regime == "iterative" and not rows.has_vectors:
        raise ValueError(
            "regime='iterative' keeps vectors of all rows and is not for Dask collections; use 'auto'."
        )
    if regime == "iterative" and rows.has_targets:
        raise ValueError("regime='iterative' takes all targets for 1; use 'auto'.")
    if regime == "semismooth" and not loss.is_smooth:
        raise ValueError("regime='semismooth' needs p > 1 (a smooth loss); use 'auto' or 'interior'.")
    return regime


def methods_of(objective: Objective, rows: RowFacts, regime: Regime, *, is_wide: bool = False) -> list[str]:
    """Return what a regime tries, one after the other: each has other troubles.

    ============  =============================================  ==========================================
    regime        rows, loss                                     methods
    ============  =============================================  ==========================================
    "iterative"   steep: rows can all be fitted                  proximal, then interior (or newton-cg)
    "iterative"   others                                         newton-cg, then interior (or proximal)
    "semismooth"  losses that vanish                             factorised, interior, newton-cg
    "semismooth"  others                                         factorised, newton-cg
    "interior"    the hinge, many rows (or no vectors of them)   shrinking, interior, newton-cg
    "interior"    others                                         interior, newton-cg
    ============  =============================================  ==========================================

    Newton-CG needs vectors of all rows, the interior point a loss that vanishes; in the iterative regime it
    also needs one side that can be factorised. ``is_wide``: rows can all be fitted, at a steep loss.
    """
    loss = objective.loss
    if regime == "iterative":
        # Rows that can all be fitted call for the proximal point method; others are slower with it.
        first, second = ("proximal", "newton-cg") if is_wide else ("newton-cg", "proximal")
        has_interior = loss.vanishes and rows.smaller_side <= DENSE_LIMIT
        return [first, "interior"] if has_interior else [first, second]
    # Features a million times farther from zero than they vary take an interior point's last digits;
    # products with centred rows keep theirs.
    last = ["interior"] * loss.vanishes + ["newton-cg"] * rows.takes_products
    if regime == "semismooth":
        return ["factorised", *last]
    if loss.is_hinge and (rows.n_rows > MANY_ROWS or not rows.has_vectors):
        return ["shrinking", *last]
    return last


def methods_for(reduced: ERMProblem, regime: Regime, *, is_chosen: bool = False) -> list[str]:
    """Return the methods of a regime, for a problem on rows in memory; ``is_chosen`` by the user."""
    rows = RowFacts.of(reduced)
    is_wide = regime == "iterative" and rows.n_features >= rows.n_rows
    is_wide = is_wide and reduced.loss.vanishes and steepness(reduced) > 1
    methods = methods_of(reduced.objective, rows, regime, is_wide=is_wide)
    if is_chosen or regime == "iterative" or methods[0] == "shrinking" or not rows.takes_products:
        return methods
    return products_first(reduced, rows) + methods


def products_first(reduced: ERMProblem, rows: RowFacts) -> list[str]:
    """Return the method of products that is worth a try before methods that factorise, if any.

    Newton-CG needs 20 to 60 passes where costs are small or rows are many, and always for losses without a
    kink between rows that count and rows that do not (the logistic one); systems of a few hundred unknowns
    take longer than that. Where rows can nearly all be fitted at a steep loss it needs hundreds; a loss
    around a dual vector takes the same 20 to 60 again.
    """
    loss, side = reduced.loss, rows.smaller_side
    is_for_kernel = reduced.design.is_sparse and side >= _KERNEL_SIDE and has_kernel(reduced)
    if is_for_kernel and (rows.n_rows > rows.n_features or steepness(reduced) <= 1):
        return ["newton-cg"]
    if rows.n_rows * rows.n_features < (_MANY_FOR_HINGE if loss.is_hinge else _MANY_NUMBERS):
        return []
    if side < (_HINGE_SIDE if loss.is_hinge else _SMOOTH_SIDE):
        return []
    # Bounds leave few weights free, and with them rows that cannot be fitted.
    is_boxed = not reduced.penalty.is_smooth and not np.any(reduced.penalty.kinks)
    per_feature, within_bounds = (_STEEP_HINGE_ROWS, _STEEP_ROWS) if loss.is_hinge else (_STEEP_ROWS, 1)
    is_gentle = rows.n_rows >= (within_bounds if is_boxed else per_feature) * rows.n_features
    if not reduced.penalty.is_smooth:
        return ["newton-cg"] if is_gentle else []
    if not loss.vanishes or is_gentle or not is_steep(reduced):
        return ["newton-cg"]
    if loss.is_hinge:
        is_worth_it = side >= _STEEP_HINGE_SIDE and rows.n_rows <= _STEEP_ROWS * rows.n_features
    else:
        is_worth_it = rows.n_rows >= _FEW_ROWS
    return ["proximal"] if is_worth_it else []


def is_steep(reduced: ERMProblem) -> bool:
    """Return whether Newton-CG would need hundreds of passes: rows are long beside the costs.

    Where a diagonal preconditioner evens out the scales of the features, their geometric mean counts.
    """
    has_long_rows = steepness(reduced) > 1
    if not has_long_rows or reduced.design.n_rows < reduced.design.n_features:
        return has_long_rows
    squares = reduced.design.column_scatter(member_costs(reduced), np.zeros(reduced.design.n_features))
    squares = squares[squares > 0]
    return bool(len(squares) * np.exp(np.log(squares).mean()) > STEEP * reduced.design.n_rows)


def systems_for(rows: RowFacts) -> float:
    """Return how many systems factorised Newton may solve where kinks or bounds ask for several each.

    An interior point needs 10 to 20 steps in all, each for a system and the products of all rows. Factorised
    steps take less where few weights change between zero and not, and up to 50 times as long where many do.
    With more rows per feature a system takes less time beside a pass over the rows.
    """
    least, most, more = _SYSTEMS
    if rows.n_rows < rows.n_features:
        return least
    return most if rows.n_rows < _MANY_PER_FEATURE * rows.n_features else more


def patience_for(regime: Regime, rows: RowFacts, methods: list[str]) -> float:
    """Return how many passes the first of these methods, one of products, may take before the next one.

    Before methods that factorise these are about what they take themselves: 10 to 20 systems. A pass over
    sparse rows takes less time beside a system.
    """
    has_next = methods[1:2] in (["factorised"], ["interior"])
    if regime == "iterative" or methods[:2] == ["proximal", "interior"]:  # whose gap falls late, then fast
        return _PATIENCE_OF_PRODUCTS * PATIENCE if has_next else np.inf
    if not has_next or "interior" not in methods:  # systems beat products for no loss that never vanishes
        return 2 * PATIENCE
    if methods[:2] == ["proximal", "factorised"]:  # which takes tens of systems where the loss is steep
        return PATIENCE
    passes = _PASSES_PER_UNKNOWN * rows.smaller_side / rows.density
    return float(np.clip(passes, _LEAST_PASSES, PATIENCE))


# ---------------------------------------------------------------- samples of the rows in memory


class Sample(NamedTuple):
    """A problem on some of its rows, weights scaled up to those of all, and which share of them these are."""

    problem: ERMProblem
    fraction: float


def sampled_guess(run: Run, reduced: ERMProblem, regime: Regime) -> tuple[Guess, Sample | None]:
    """Find the optimum of a tenth of the rows, in the same way, and the Newton system there."""
    sample = sample_rows(reduced) if regime != "iterative" else None
    if sample is None:
        return Guess(Point(np.zeros(reduced.design.n_features), 0.0)), None
    guess, passes = guess_of_sample(sample.problem, regime)
    run.passes += passes * sample.fraction
    return guess, sample


def guess_of_sample(sample: ERMProblem, regime: Regime) -> tuple[Guess, float]:
    """Find the optimum of a sample, the Newton system there, and the passes over the sample that it took."""
    inner, rows = Run(sample.objective, SAMPLE_TOL, DEFAULT_MAX_ITER, None), MemoryRows(sample)
    continue_run(inner, rows, regime, *sampled_guess(inner, sample, regime))
    if regime != "semismooth":
        return Guess(inner.best), inner.passes
    state = inner.state  # of other methods the width is none of a corner
    width = state.width if state is not None and state.method == "factorised" else 1.0
    sums: LossSums = rows.reduce(evaluate, inner.best, sample.loss.rounded(width), True)
    return Guess(inner.best, primal_system(sums, sample.fit_intercept), width), inner.passes + 1


def sample_rows(problem: ERMProblem) -> Sample | None:
    """Draw a tenth of the rows, weights scaled up to the same total; None when there are few.

    The sample is random but always the same, so that results repeat bit for bit.
    """
    n_rows = problem.design.n_rows
    if n_rows <= MANY_ROWS:
        return None
    chosen = np.sort(
        np.random.default_rng(SAMPLE_SEED).choice(n_rows, n_rows // _FRACTION, replace=False, shuffle=False)
    )
    labels, weights = problem.labels[chosen], problem.weights[chosen]
    if abs(labels.sum()) == len(labels):  # one class only: nothing to learn from
        return None
    some = problem.changed(
        design=DesignMatrix(problem.design.X[chosen]),
        labels=labels,
        weights=weights * (problem.weights.sum() / weights.sum()),
        targets=None if problem.targets is None else problem.targets[chosen],
    )
    return Sample(some, len(chosen) / n_rows)


SAMPLE_BYTES = 1 << 22
"""A sample of the rows, to start from, may bring so many bytes to the client."""

_BLOCK_FRACTION = 25


@dataclass(frozen=True, eq=False)
class Draw:
    """Asks for rows drawn at random from every block, always the same ones."""

    fraction: float

    def answer(self, block: RowBlock, state: object) -> tuple[RowList, None]:
        """See ``Request``."""
        n_rows = block.X.shape[0]
        rng = np.random.default_rng([SAMPLE_SEED, n_rows])
        chosen = np.flatnonzero(rng.random(n_rows) < self.fraction)
        return RowList(block.X[chosen], block.codes[chosen], block.weights[chosen]), None


@dataclass(frozen=True, eq=False)
class DrawnRows:
    """A random share of all rows, with the numbers of their classes for labels."""

    rows: RowList
    fraction: float

    def of_target(self, target: Target) -> Sample | None:
        """Return the target's problem on them; None where they are of one class: nothing to learn then."""
        rows = self.rows
        problem = target.rows_of(RowBlock(rows.X, rows.labels.astype(np.int32), rows.weights))
        if problem.design.n_rows == 0 or abs(problem.labels.sum()) == len(problem.labels):
            return None
        return Sample(problem.changed(weights=problem.weights / self.fraction), self.fraction)


def draw_sample(rows: RowSource) -> DrawnRows | None:
    """Draw at most ``SAMPLE_BYTES`` of the rows; None where they are few."""
    if rows.n_rows <= MANY_ROWS:
        return None
    most = SAMPLE_BYTES / (8 * rows.n_features)
    n_wanted = min(max(rows.n_rows / _BLOCK_FRACTION, MANY_ROWS), most)
    drawn: RowList = rows.total(Draw(n_wanted / rows.n_rows))
    return DrawnRows(drawn, len(drawn.weights) / rows.n_rows)


def solve_targets(
    rows: RowSource,
    targets: Sequence[Target],
    *,
    tol: float = 1e-4,
    max_iter: int | None = None,
    regime: Regime = "auto",
    starts: Sequence[Start | None] | None = None,
    callbacks: Sequence[Callback | None] | None = None,
) -> list[SolverResult]:
    """Solve for every target, on shared passes; ``targets`` hold the objectives of K members.

    ``regime`` is that of ``NewtonOptions``; all else as for ``solve_all``.
    """
    starts = starts or [None] * len(targets)
    is_hinge = targets[0].objective.loss.is_hinge
    drawn = draw_sample(rows) if is_hinge or any(start is None for start in starts) else None
    passes = SharedPasses(rows, len(targets))

    def solve(place: int) -> SolverResult:
        target, start, callback = (
            targets[place],
            starts[place],
            None if callbacks is None else callbacks[place],
        )
        run = Run(target.objective, tol, max_iter or DEFAULT_MAX_ITER, callback)
        target = replace(target, objective=target.objective.reduced())
        rows_of = TargetRows(passes, place, target)
        facts = RowFacts(rows_of.n_rows, rows_of.n_features, has_vectors=False)
        chosen = choose_regime(rows_of.objective, facts, regime)
        sample = None if drawn is None else drawn.of_target(target)
        guess = Guess(Point(np.zeros(rows_of.n_features), 0.0))
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            if start is not None:
                guess = certify_start_in_blocks(run, rows_of, start)
            elif sample is not None:
                guess, _ = guess_of_sample(sample.problem, chosen)
            continue_run(run, rows_of, chosen, guess, sample)
        return run.result()

    def solve_and_leave(place: int) -> SolverResult:
        try:
            return solve(place)
        finally:
            passes.leave()

    if len(targets) == 1:
        return [solve_and_leave(0)]
    with ThreadPoolExecutor(len(targets)) as pool:
        try:
            return list(pool.map(solve_and_leave, range(len(targets))))
        except BaseException as error:  # Ctrl-C too: the others end with the pass they are in
            passes.stop(error)
            raise


def certify_start_in_blocks(run: Run, rows: TargetRows, start: Start) -> Guess:
    """Certify the mean member of an earlier result; return it, or where its method was: one pass."""
    point = Point(start.weights.mean(axis=1), float(start.intercepts.mean()))
    sums = rows.reduce(evaluate, point, rows.objective.loss, False)
    objective = objective_from_sums(point, sums, rows.objective, rows.row_scale)
    run.take(point, Certificate(*objective, bound=0.0), is_start=True)
    if start.resumes(Guess, run.scale * objective[0], start.gap):  # its dual vector is not known: no gap
        going_on: Guess = start.state
        return going_on
    return Guess(point)
