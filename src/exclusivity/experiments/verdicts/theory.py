"""Verdicts on the paper's statements, from the numbers of the checks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from exclusivity.experiments.verdicts.base import Outcome, Verdict, choose, graded, unchecked

Numbers = Mapping[str, Mapping[str, Any]]
"""Data set -> the numbers of one check on it."""

_ZERO = 1e-6
_ROUNDING = 1e-9
# Points of testing error, means of a few trials each.
_CLEAR = 1.0


def theory_verdicts(checks: Mapping[str, Numbers]) -> list[Verdict]:
    """All verdicts; a check that was not run gives one that says so."""
    found = []
    for check, (key, claim, where, judge) in _JUDGES.items():
        numbers = checks.get(check)
        if not numbers:
            found.append(unchecked(key, claim, where, "Its check was not run."))
            continue
        outcome, number, reason = judge(numbers)
        found.append(Verdict(key, claim, where, outcome, number, reason))
    return found


Judgement = tuple[Outcome, str, str]


def proposition1(numbers: Numbers) -> Judgement:
    """The loss of the mean is not above the mean loss."""
    slack = [value for result in numbers.values() for value in result["slack"].values()]
    outcome = graded(min(slack) >= -_ROUNDING, max(slack) >= -_ROUNDING)
    return (
        outcome,
        f"the mean member's loss is {min(slack):.1%} to {max(slack):.1%} below the mean loss",
        choose(
            outcome,
            "Jensen's inequality: the loss is convex. It says as much of every ensemble that averages.",
            "Violated in some runs.",
            "Violated.",
        ),
    )


def theorem1(numbers: Numbers) -> Judgement:
    """Algorithm 1 against the exact step."""
    result = next(iter(numbers.values()))
    steps, ones, zeros = result["steps"], result["from_ones"], result["from_zeros"]
    converges = max(ones[-1], zeros[-1]) <= 1e-2 * max(ones[0], zeros[0])
    outcome = graded(converges and ones[1] <= _ZERO, converges)
    return (
        outcome,
        f"largest error {ones[1]:.0e} after {steps[1]} inner steps, {ones[-1]:.0e} after {steps[-1]}; with "
        f"zeros in the start {zeros[1]:.0e} and {zeros[-1]:.0e}",
        choose(
            outcome,
            "Algorithm 1 reaches the exact step quickly.",
            "In the limit, but slowly: an entry that should become zero shrinks by a constant factor per "
            "step, which is close to one where the entry is close to staying; and an entry that starts at "
            "zero takes long to leave it. An exact step costs one sort.",
            "Algorithm 1 does not come close to the exact step.",
        ),
    )


def lemma2(numbers: Numbers) -> Judgement:
    """Boundedness of the multipliers."""
    growth, largest = [], 0.0
    for result in numbers.values():
        for run in result["largest"].values():
            for name in ("Z", "Q"):
                first, second = run[name]
                growth.append(second / first)
                largest = max(largest, first, second)
    outcome = graded(max(growth) <= 1.05, max(growth) <= 2)
    return (
        outcome,
        f"largest entry {largest:.1f}; second half of 300 iterations over first half: at most "
        f"{max(growth):.3f}",
        choose(
            outcome,
            "They stay bounded while mu grows to 10^12. (The proof takes the subgradients of a power of a "
            "norm for those of the norm, and of an order of updates that is not the algorithm's; the "
            "statement is right.)",
            "They grow a little.",
            "They grow.",
        ),
    )


def theorem2(numbers: Numbers) -> Judgement:
    """Global optimality and the rate."""
    runs = [run for result in numbers.values() for run in result["runs"].values()]
    growing = [run["growing"] for run in runs]
    constant = max(run["constant"] for run in runs)
    # o(1/mu) means that mu times the distance vanishes. Over 100 iterations 1/mu falls by 10^4.
    rate = min(run["to_limit"][1] / run["to_limit"][0] if run["to_limit"][0] else 0.0 for run in runs)
    optimal, fast = max(growing) <= _ZERO, rate <= 0.1
    outcome = graded(optimal and fast, optimal or max(growing) <= 1e-4)
    return (
        outcome,
        f"objective {min(growing):.1e} to {max(growing):.1e} above the optimum, relative, however long it "
        f"runs ({constant:.0e} with constant mu); from iteration 50 to 150 mu |F - F_end| falls to "
        f"{rate:.2f} of itself at most, where o(1/mu) demands zero",
        choose(
            outcome,
            "The optimum is reached at the stated rate.",
            "The optimum is nearly reached, but not at the stated rate.",
            "mu grows so fast that the iterates freeze before the optimum: the proof shows that the "
            "constraints are met in the limit, not that the limit is optimal. Even towards that limit the "
            "rate is 1/mu, not o(1/mu). With constant mu the optimum is reached.",
        ),
    )


def regularisers(numbers: Numbers) -> Judgement:
    """|W|_F^2 and |W|_1."""
    frobenius = max(value for result in numbers.values() for value in result["frobenius"].values())
    width = max(result["l1_width"] for result in numbers.values())
    twins = max(result["l1_twins"] for result in numbers.values())
    outcome = graded(frobenius <= 1e-4 and max(width, twins) <= 0.01, frobenius <= 1e-4)
    return (
        outcome,
        f"|W|_F^2: members from random starts within {frobenius:.0e} of the one SVM; |W|_1: two optima at "
        f"most {width:.0e} apart on these rows, {twins:.2f} after one feature was given twice (relative)",
        choose(
            outcome,
            "There is one optimum, and it is that of the one SVM.",
            "True for |W|_F^2, which is strictly convex in the weights. |W|_1 is not: every member solves "
            "the one problem, but with equal features there are many solutions, and members may differ.",
            "Members differ.",
        )
        + " The exclusivity regulariser does not escape this: its optimum has equal members too.",
    )


def splitting(numbers: Numbers) -> Judgement:
    """Ten parts of the data, ten SVMs."""
    first = {name: result["disagreement"][0] for name, result in numbers.items()}
    name, result = max(numbers.items(), key=lambda item: item[1]["rows"][-1])
    rows, last = result["rows"], result["disagreement"]
    shrinks, small = last[-1] < last[0], last[-1] <= 2.0
    outcome = graded(max(first.values()) <= 2.0, shrinks)
    parts = ", ".join(f"{value:.0f} % of {rows[0]} rows of {dataset}" for dataset, value in first.items())
    return (
        outcome,
        f"two of ten SVMs, trained on tenths, disagree on {parts}; on {last[-1]:.1f} % with {rows[-1]} rows "
        f"of {name}",
        choose(
            outcome,
            "The difference is small from 150 rows on.",
            "With enough rows the difference fades, as it should. "
            + ("" if small else "It is still visible at the largest size. ")
            + "With the paper's own 150 rows it is large, larger than ERM's, which is zero.",
            "The difference does not fade with more rows.",
        ),
    )


def eps_footnote(numbers: Numbers) -> Judgement:
    """What Algorithm 1 minimises with eps > 0."""
    result = next(iter(numbers.values()))
    eps, claim, exact = result["eps"], result["to_claim"], result["to_exact"]
    vanishes = exact[-1] <= 1e-3 * exact[0]
    outcome = graded(vanishes and claim[0] <= 1e-3, vanishes)
    return (
        outcome,
        f"eps = {eps[0]:g}: Algorithm 1 ends {claim[0]:.2f} from the minimiser of |W + eps|; from the "
        f"minimiser without eps it is {exact[0]:.2f} away at eps = {eps[0]:g} and {exact[-1]:.0e} at "
        f"{eps[-1]:g}",
        choose(
            outcome,
            "Both parts of the footnote hold.",
            "The limit is right. For a given eps the algorithm minimises nothing: the Jacobian of its "
            "fixed-point equation is not symmetric, so that it is no gradient.",
            "The limit is not reached.",
        ),
    )


def equivalence(numbers: Numbers) -> Judgement:
    """All members by the ALM against LIBSVM at C/K."""
    weights = max(result["weights"] for result in numbers.values())
    objective = max(result["objective"] for result in numbers.values())
    outcome = graded(max(weights, objective) <= 1e-4, max(weights, objective) <= 1e-2)
    return (
        outcome,
        f"mean member and LIBSVM's weights at cost C/K differ by {weights:.0e}, F and K^2 f by "
        f"{objective:.0e} (relative)",
        choose(
            outcome,
            "Computed without using the theorem: ten members by the ALM, one SVM by LIBSVM. Proof below.",
            "The two are close but not equal.",
            "The two differ.",
        ),
    )


def random_starts(numbers: Numbers) -> Judgement:
    """Diversity by not converging."""
    rows = [run for result in numbers.values() for run in result["starts"].values()]
    cosine = [row["cosine"] for row in rows]
    better = [row["optimum_error"] - row["error"] for row in rows]
    outcome = graded(min(better) > _CLEAR, max(better) > _CLEAR)
    return (
        outcome,
        f"mean cosine of members {min(cosine):.2f} to {max(cosine):.2f}, objective "
        f"{min(r['excess'] for r in rows):.0%} to {max(r['excess'] for r in rows):.0%} above the optimum, "
        f"testing error {-max(better):+.1f} to {-min(better):+.1f} points against the optimum's",
        choose(
            outcome,
            "Members that differ have the lower error.",
            "Members that differ have the lower error in some cases.",
            "Members differ only because the algorithm stops before it is done, and the error is not lower "
            "for it.",
        ),
    )


_JUDGES: Mapping[str, tuple[str, str, str, Callable[[Numbers], Judgement]]] = {
    "proposition1": (
        "proposition-1",
        "The ensemble's loss is bounded by the mean loss of its members",
        "Proposition 1",
        proposition1,
    ),
    "theorem1": ("theorem-1", "Algorithm 1 converges to the exact W step", "Theorem 1", theorem1),
    "lemma2": ("lemma-2", "The multipliers stay bounded", "Lemma 2", lemma2),
    "theorem2": (
        "theorem-2",
        "Algorithm 2 converges to the global optimum, at a rate of at least o(1/mu)",
        "Theorem 2",
        theorem2,
    ),
    "regularisers": (
        "regularisers",
        "With |W|_F^2 or |W|_1 as regulariser all members are the same",
        "Section 2.1",
        regularisers,
    ),
    "splitting": (
        "splitting",
        "Members trained on parts of the data differ only trivially",
        "Footnote to section 2.1",
        splitting,
    ),
    "eps": (
        "eps",
        "Algorithm 1 minimises |W + eps|_{1,2}^2, which approaches |W|_{1,2}^2 as eps goes to zero",
        "Footnote to Eq. (10)",
        eps_footnote,
    ),
    "random_starts": (
        "random-starts",
        "Members of an ERM that do differ (random starts) improve the ensemble",
        "not in the paper; implied by its section 1",
        random_starts,
    ),
    "equivalence": (
        "equivalence",
        "The mean member of every optimum is one SVM of cost C/K",
        "not in the paper; ours",
        equivalence,
    ),
}

JUDGES: Sequence[str] = tuple(_JUDGES)
"""The checks that have a verdict."""
