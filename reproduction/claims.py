"""The paper's claims, each judged by a number.

A claim is a function of the results that returns a verdict and the measurement behind it, registered with
its statement by ``@claim``. The reasons are told in docs/paper.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from reproduction import figure1, tables
from reproduction.data import Floats
from reproduction.published import (
    ERM_SYSTEMS,
    FIGURE_MEMBERS,
    ITERATIONS,
    LARGE,
    MEMBERS,
    PAPER_SYSTEMS,
    STRONG_SETS,
    TABLE1,
)
from reproduction.systems import erm_name

HOLDS, PART, FAILS, UNCHECKED = "holds", "holds in part", "fails", "not checked"

Judgement = tuple[str, str]
"""Verdict and measurement."""

Judge = Callable[..., Judgement]


class NotMeasuredError(Exception):
    """Say why the results cannot decide a claim."""


@dataclass(frozen=True)
class Results:
    """Hold what was measured; a frame is None where it was not.

    Attributes
    ----------
    trials : DataFrame
        Records of ``tables.run_trial``.
    sweep, convergence, scaling : DataFrame
        Records of the runs of ``figure1``.
    large : str
        The data set of the last two; another one than ijcnn1 where that is missing.
    theory : dict
        Check -> data set -> its numbers.
    """

    trials: pd.DataFrame | None = None
    sweep: pd.DataFrame | None = None
    convergence: pd.DataFrame | None = None
    scaling: pd.DataFrame | None = None
    large: str = LARGE
    theory: dict[str, dict[str, Any]] = field(default_factory=dict)

    def table1_trials(self) -> pd.DataFrame:
        """Return the trials on the data sets of Table 1, which exclude ijcnn1."""
        trials = None if self.trials is None else self.trials[self.trials["dataset"] != LARGE]
        if trials is None or trials.empty:
            raise NotMeasuredError("none of the data sets of Table 1 was there")
        return trials

    def errors(self) -> pd.DataFrame:
        """Return the sweep over lambda."""
        if self.sweep is None:
            raise NotMeasuredError("sonar was not there")
        return self.sweep

    def on_ijcnn1(self, frame: pd.DataFrame | None) -> pd.DataFrame:
        """Return a frame of panel 3 or 4 if it was measured on ijcnn1."""
        if frame is None or self.large != LARGE:
            raise NotMeasuredError("ijcnn1 was not there, and another set in its place is too small to tell")
        return frame


@dataclass(frozen=True)
class Claim:
    """State a claim, and where the paper makes it; ``judge`` decides it."""

    statement: str
    where: str
    part: str
    judge: Callable[[Results], Judgement]


CLAIMS: dict[str, Claim] = {}
"""Key -> claim, in the order of the report."""


def judge_all(results: Results, parts: tuple[str, ...]) -> pd.DataFrame:
    """Judge every claim that belongs to one of the parts ("table1", "table2", "figure1", "theory")."""
    rows = []
    for key, claim in CLAIMS.items():
        if claim.part in parts:
            try:
                verdict, measured = claim.judge(results)
            except NotMeasuredError as error:
                verdict, measured = UNCHECKED, str(error)
            rows.append((key, claim.statement, claim.where, verdict, measured))
    return pd.DataFrame(rows, columns=["key", "claim", "where", "verdict", "measured"]).set_index("key")


def claim(part: str, statement: str, where: str, key: str = "") -> Callable[[Judge], Judge]:
    """Register a judge by its name or key; one of "theory" is given the numbers of the check of that name."""

    def register(judge: Judge) -> Judge:
        name = key or judge.__name__

        def from_check(results: Results) -> Judgement:
            if not results.theory.get(name):
                raise NotMeasuredError("its check was not run")
            return judge(results.theory[name])

        CLAIMS[name] = Claim(statement, where, part, from_check if part == "theory" else judge)
        return judge

    return register


def graded(holds: bool, part: bool) -> str:
    """Return "holds", else "holds in part", else "fails"."""
    return HOLDS if holds else PART if part else FAILS


# Table 1: errors and ranks.

_TEXT1 = "Table 1 and its text"


@claim("table1", "The errors of the four ERM rows are what Table 1 says", "Table 1")
def erm_rows(results: Results) -> Judgement:
    """Compare our ERM means with the paper's."""
    trials = results.table1_trials()
    if trials["trial"].nunique() < 2:
        raise NotMeasuredError("one trial has no standard deviation")
    cells = tables.table1(trials).query("system in @ERM_SYSTEMS")
    allowed = cells["std"] + cells["paper_std"]
    distance = (cells["mean"] - cells["paper_mean"]).abs()
    within = int((distance <= allowed).sum())
    dataset, system = (distance / allowed).idxmax()
    farthest = cells.loc[(dataset, system)]
    return (
        graded(within == len(cells), within >= 0.75 * len(cells)),
        f"{within} of {len(cells)} means within the two standard deviations added up; farthest: {system} on "
        f"{dataset}, {farthest['mean']:.2f} here, {farthest['paper_mean']:.2f} there",
    )


def beats(competitor: str, results: Results) -> Judgement:
    """Compare ERM with one competitor of the same size, on every set."""
    table = tables.table1(results.table1_trials())
    average = tables.average_ranks(table)["rank"]
    pairs = [(erm_name(k, p), f"{competitor}{k}") for k in MEMBERS for p in (1, 2)]
    contests = [(dataset, *pair) for dataset in table.index.unique(0) for pair in pairs]
    wins = sum(table["mean"][name, erm] < table["mean"][name, other] for name, erm, other in contests)
    theirs = sum(TABLE1[name, erm].mean < TABLE1[name, other].mean for name, erm, other in contests)
    share = wins / len(contests)
    ours, rank = (float(np.mean([average[pair[side]] for pair in pairs])) for side in (0, 1))
    distance = tables.rank_statistics(table)[1]
    return (
        graded(share >= 0.75, share > 0.5),
        f"{wins} of {len(contests)} comparisons won (the paper's numbers: {theirs}); average rank {ours:.1f} "
        f"against {rank:.1f}; critical difference {distance:.1f}",
    )


for _name in tables.COMPETITORS:
    claim("table1", f"ERM beats {_name} in most cases", _TEXT1, f"beats_{_name.lower()}")(
        partial(beats, _name)
    )


@claim("table1", "Four of the five best average ranks are ERM's", _TEXT1)
def top_five(results: Results) -> Judgement:
    """Count ERMs among the five best average ranks."""
    average = tables.average_ranks(tables.table1(results.table1_trials()))["rank"]
    best = average[list(PAPER_SYSTEMS)].sort_values(kind="stable")[:5]
    count = sum(name in ERM_SYSTEMS for name in best.index)
    told = ", ".join(f"{name} {rank:.1f}" for name, rank in best.items())
    return graded(count >= 4, count == 3), f"{count} of the top five: {told}"


@claim(
    "table1", "ERM significantly outperforms the others on australian, sonar, heart and ionosphere", _TEXT1
)
def strong_sets(results: Results) -> Judgement:
    """Compare the best ERM with the best other by a paired t-test over the trials."""
    trials = results.table1_trials()
    first, clear, told = 0, 0, []
    present = [name for name in STRONG_SETS if (trials["dataset"] == name).any()]
    if not present:
        raise NotMeasuredError("none of the four sets was there")
    for dataset in present:
        errors = trials[trials["dataset"] == dataset].pivot_table(
            index="trial", columns="system", values="error"
        )
        means = errors.mean()
        erm = means[list(ERM_SYSTEMS)].idxmin()
        other = means[[name for name in PAPER_SYSTEMS if name not in ERM_SYSTEMS]].idxmin()
        p_value = paired_p_value(errors[erm].to_numpy(), errors[other].to_numpy())
        ahead = means[erm] < means[other]
        first += ahead
        clear += ahead and p_value < 0.05
        told.append(f"{dataset} {means[erm]:.1f} to {means[other]:.1f} ({other}, p = {p_value:.1g})")
    return (
        graded(clear == len(present), first * 2 >= len(present)),
        f"best on {first} of {len(present)}, significantly on {clear}: best ERM to best other: "
        + "; ".join(told),
    )


def paired_p_value(first: Floats, second: Floats) -> float:
    """Return the p-value of a two-sided paired t-test; 1 where there are too few trials.

    Examples
    --------
    >>> paired_p_value(np.array([1.0]), np.array([2.0]))
    1.0
    """
    difference = first - second
    if len(difference) < 2 or not np.any(difference):
        return 1.0
    if np.ptp(difference) == 0:
        return 0.0
    return float(stats.ttest_rel(first, second).pvalue)


@claim("table1", "On ijcnn1 all competitors perform very closely to each other", _TEXT1)
def ijcnn1_close(results: Results) -> Judgement:
    """Compare the best and the worst on ijcnn1 with the spread of their trials."""
    table = None if results.trials is None else tables.table1(results.trials).query("dataset == @LARGE")
    if table is None or table.empty:
        raise NotMeasuredError("ijcnn1 was not there")
    ten = table.droplevel(0).loc[list(PAPER_SYSTEMS)]
    best, worst, typical = ten["mean"].min(), ten["mean"].max(), ten["std"].mean()
    spread = worst - best
    return (
        graded(spread <= max(1.0, 2 * typical), spread <= max(2.0, 4 * typical)),
        f"errors from {best:.1f} % ({ten['mean'].idxmin()}) to {worst:.1f} % ({ten['mean'].idxmax()}); mean "
        f"standard deviation {typical:.1f}",
    )


# Table 2: training times.


def _ratios(results: Results) -> pd.DataFrame:
    return tables.time_ratios(tables.table2(results.table1_trials()))


@claim("table2", "ERM trains faster than AdaBoost, Bagging and DRM, with 10 and with 30 members", "Table 2")
def erm_faster(results: Results) -> Judgement:
    """Compare training times for the paper's algorithm and for the certified optimum."""
    ratios = _ratios(results)
    told, least = [], []
    for kind, by_paper in (("Algorithm 2", True), ("the certified solver", False)):
        chosen = ratios[ratios["erm"].isin(ERM_SYSTEMS) == by_paper]
        worst = chosen.loc[chosen["ratio"].idxmin()]
        least.append(worst["ratio"])
        told.append(
            f"{kind} faster in {(chosen['ratio'] > 1).sum()} of {len(chosen)} comparisons (least ratio "
            f"{worst['ratio']:.2f}: {worst['competitor']} / {worst['erm']})"
        )
    return graded(least[0] > 1, least[1] > 1), "; ".join(told)


@claim("table2", "DRM takes about 2000 times as long as ERM", "Table 2 and its text")
def drm_slower(results: Results) -> Judgement:
    """Measure the factor of 2000."""
    ratios = _ratios(results).dropna()
    drm = ratios[ratios["competitor"].str.startswith("DRM")]
    least, theirs = drm["ratio"].min(), drm["paper_ratio"]
    return (
        graded(least >= 1000, least >= 10),
        f"{least:.2f} to {drm['ratio'].max():.2f} times (the paper's numbers: {theirs.min():.0f} to "
        f"{theirs.max():.0f})",
    )


# Figure 1, panels 1 and 2: errors against lambda.

_ERRORS = "Figure 1, first and second picture"
_CURVES = [(p, k) for p in (1, 2) for k in FIGURE_MEMBERS]


def _plateau(curve: pd.DataFrame) -> pd.DataFrame:
    """Return "a relatively large range": a factor of four around the paper's choice, lambda = 2."""
    return curve.loc[1.0:4.0]


@claim("figure1", "ERM is insensitive to lambda over a large range", _ERRORS)
def insensitive(results: Results) -> Judgement:
    """Compare the change of the testing error along lambda with its spread over the trials."""
    sweep = results.errors()
    if sweep["trial"].nunique() < 2:
        raise NotMeasuredError("one trial has no standard deviation")
    stds = sweep.groupby(["system", "p", "members", "lambda"])["test"].std()
    changes, whole, spreads = [], [], []
    for p, k in _CURVES:
        test = figure1.curve(sweep, p, "ERM", k)[["test"]]
        changes.append(float(np.ptp(_plateau(test))))
        whole.append(float(np.ptp(test)))
        spreads.append(float(stds["ERM", p, k].mean()))
    small = np.array(changes) <= np.array(spreads)
    return (
        graded(bool(small.all()), bool(small.any())),
        f"mean testing error moves by {min(changes):.1f} to {max(changes):.1f} points for lambda in [1, 4] "
        f"and by up to {max(whole):.1f} over [0.05, 4]; standard deviation over trials "
        f"{np.mean(spreads):.1f}",
    )


def in_order(part: str, members: tuple[int, ...], results: Results) -> Judgement:
    """Count the costs at which errors rise along ``members``."""
    shares, told = [], []
    for p in (2, 1):
        curves = np.array([figure1.curve(results.errors(), p, "ERM", k)[part] for k in members])
        shares.append(float(np.mean(np.all(np.diff(curves, axis=0) >= -1e-9, axis=0))))
        averages = ", ".join(f"ERM{k} {mean:.1f}" for k, mean in zip(members, curves.mean(1), strict=True))
        told.append(f"p = {p}: in order at {shares[-1]:.0%} of the costs ({averages} %)")
    return graded(min(shares) >= 0.9, max(shares) >= 0.5), "; ".join(told)


claim("figure1", "Fewer members give a smaller training error", _ERRORS, "training_order")(
    partial(in_order, "train", FIGURE_MEMBERS)
)
claim("figure1", "More members give a smaller testing error", _ERRORS, "testing_order")(
    partial(in_order, "test", FIGURE_MEMBERS[::-1])
)


@claim("figure1", "ERM has a smaller testing error than PSVM at the same lambda", _ERRORS)
def below_psvm(results: Results) -> Judgement:
    """Compare ERM with PSVM at every cost."""
    sweep = results.errors()
    below, differences, best = [], [], []
    for p, k in _CURVES:
        single, erm, optimum = (
            figure1.curve(sweep, p, *which)["test"] for which in (("PSVM", 1), ("ERM", k), ("optimum", k))
        )
        below.append((erm < single).mean())
        differences.append((erm - single).mean())
        best.append((optimum < single).mean())
    share = float(np.mean(below))
    return (
        graded(share >= 0.9, share >= 0.5),
        f"below PSVM at {share:.0%} of all points; mean difference {min(differences):+.1f} to "
        f"{max(differences):+.1f} points (the optimum of the same objective: below at {np.mean(best):.0%})",
    )


@claim("figure1", "The gains come from the diversity of the members", _ERRORS)
def gains(results: Results) -> Judgement:
    """Compare, at the costs around the paper's choice, members that differ with a smaller cost."""
    sweep = results.errors()
    change = {}
    for system in ("SVM", "optimum", "ERM"):
        differences = [
            figure1.curve(sweep, p, system, k)["test"] - figure1.curve(sweep, p, "PSVM", 1)["test"]
            for p, k in _CURVES
        ]
        change[system] = float(np.mean([_plateau(difference).mean() for difference in differences]))
    stds = sweep.groupby(["p", "system", "members", "lambda"])["test"].std().fillna(0.0)
    spread = float(sweep["spread"].max())
    differ, ahead = spread > 1e-3, change["SVM"] - change["ERM"]
    return (
        graded(differ and ahead > stds.mean(), differ and ahead > 0),
        f"testing error for lambda in [1, 4] against one SVM of cost lambda: one SVM of cost lambda/K "
        f"{change['SVM']:+.2f} points, ERM's optimum {change['optimum']:+.2f}, Algorithm 2 "
        f"{change['ERM']:+.2f}; members differ by at most {spread:.0e} of their length",
    )


# Figure 1, panels 3 and 4: convergence and training time on ijcnn1.


@claim(
    "figure1",
    "Algorithm 2 converges in about 30 iterations for p = 2 and about 70 for p = 1 on ijcnn1",
    "Figure 1, third picture",
)
def iterations(results: Results) -> Judgement:
    """Measure what is left of the drop then, and where the paper's stopping rule stops."""
    runs = results.on_ijcnn1(results.convergence).groupby(["p", "members"])["objective"]
    left, late, told = [], [], []
    for p, count in ITERATIONS.items():
        objectives = [runs.get_group((p, k)).to_numpy() for k in FIGURE_MEMBERS]
        curves = [figure1.normalised(objective) for objective in objectives]
        rest = max(float(np.abs(curve[count - 1 :] - curve[-1]).max()) for curve in curves)
        stops = [figure1.stopping_iteration(objective) for objective in objectives]
        left.append(rest)
        late.append(max(stops) / count)
        told.append(
            f"p = {p}: {rest:.2%} of the drop left after {count}; the rule of 0.05 stops after "
            f"{min(stops):.0f} to {max(stops):.0f}"
        )
    # 1 % is what can still be seen of a curve that fills the height of a plot.
    return graded(max(left) <= 0.01 and max(late) <= 1.5, max(left) <= 0.01), "; ".join(told)


_TIMES = "Figure 1, fourth picture"


@claim("figure1", "Training time is quasi-linear in the number of rows", _TIMES)
def quasi_linear(results: Results) -> Judgement:
    """Fit the exponent of the rows, in all and per iteration."""
    scaling = results.on_ijcnn1(results.scaling)
    seconds, steps = figure1.training_times(scaling[scaling["system"].str.contains("ERM")])
    slopes, each = figure1.exponents(seconds), figure1.exponents(seconds / steps)
    steps = steps / scaling["trial"].nunique()
    return (
        graded(slopes.max() <= 1.2, each.max() <= 1.2),
        f"time ~ rows^{slopes.min():.2f} to rows^{slopes.max():.2f} from {seconds.index[0]} to "
        f"{seconds.index[-1]} rows; per iteration rows^{each.min():.2f} to rows^{each.max():.2f}; iterations "
        f"{steps.iloc[0].min():.0f} to {steps.iloc[0].max():.0f} at first, {steps.iloc[-1].min():.0f} to "
        f"{steps.iloc[-1].max():.0f} at last",
    )


@claim("figure1", "The choice of p barely changes the training time", _TIMES)
def p_and_time(results: Results) -> Judgement:
    """Compare the times of p = 1 and p = 2 with those of different numbers of members."""
    total = figure1.training_times(results.on_ijcnn1(results.scaling))[0].sum()
    by_p = {k: total[erm_name(k, 1)] / total[erm_name(k, 2)] for k in FIGURE_MEMBERS}
    by_k = [
        total[erm_name(more, p)] / total[erm_name(less, p)]
        for p in (1, 2)
        for less, more in pairwise(FIGURE_MEMBERS)
    ]
    far = max(max(ratio, 1 / ratio) for ratio in by_p.values())
    return (
        graded(far <= 1.25, far <= max(by_k)),
        "time for p = 1 over p = 2: "
        + ", ".join(f"{ratio:.2f} (ERM{k})" for k, ratio in by_p.items())
        + f"; five to ten to thirty members: factors {min(by_k):.2f} to {max(by_k):.2f}",
    )


# Theory: the numbers of the check of the same name, by data set.

Checked = dict[str, dict[str, Any]]


def _all(numbers: Checked, name: str) -> list[Any]:
    """Return what is under ``name`` for every data set and p."""
    return [value for result in numbers.values() for value in result[name].values()]


@claim("theory", "The ensemble's loss is bounded by the mean loss of its members", "Proposition 1")
def proposition1(numbers: Checked) -> Judgement:
    """Compare the loss of the mean with the mean loss."""
    slack = _all(numbers, "slack")
    return (
        graded(min(slack) >= -1e-9, max(slack) >= -1e-9),
        f"the mean member's loss is {min(slack):.1%} to {max(slack):.1%} below the mean loss",
    )


@claim("theory", "Algorithm 1 converges to the exact W step", "Theorem 1")
def theorem1(numbers: Checked) -> Judgement:
    """Measure the error after few and after many inner steps."""
    result = next(iter(numbers.values()))
    steps, ones, zeros = result["steps"], result["from_ones"], result["from_zeros"]
    converges = max(ones[-1], zeros[-1]) <= 1e-2 * max(ones[0], zeros[0])
    return (
        graded(converges and ones[1] <= 1e-6, converges),
        f"largest error {ones[1]:.0e} after {steps[1]} inner steps, {ones[-1]:.0e} after {steps[-1]}; with "
        f"zeros in the start {zeros[1]:.0e} and {zeros[-1]:.0e}",
    )


@claim("theory", "The multipliers stay bounded", "Lemma 2")
def lemma2(numbers: Checked) -> Judgement:
    """Compare the second half of a long run with the first."""
    halves = np.array([run[name] for run in _all(numbers, "largest") for name in ("Z", "Q")])
    growth = (halves[:, 1] / halves[:, 0]).max()
    return (
        graded(growth <= 1.05, growth <= 2),
        f"largest entry {halves.max():.1f}; second half of 300 iterations over first half: at most "
        f"{growth:.3f}",
    )


@claim("theory", "Algorithm 2 converges to the global optimum, at a rate of at least o(1/mu)", "Theorem 2")
def theorem2(numbers: Checked) -> Judgement:
    """Measure the distance from the optimum, and the rate towards where the run ends."""
    runs = _all(numbers, "runs")
    growing, constant = [run["growing"] for run in runs], max(run["constant"] for run in runs)
    # o(1/mu) means that mu times the distance vanishes. Over 100 iterations 1/mu falls by 10^4.
    rate = min(run["to_limit"][1] / run["to_limit"][0] if run["to_limit"][0] else 0.0 for run in runs)
    optimal = max(growing) <= 1e-6
    return (
        graded(optimal and rate <= 0.1, max(growing) <= 1e-4),
        f"objective {min(growing):.1e} to {max(growing):.1e} above the optimum, relative, however long it "
        f"runs ({constant:.0e} with constant mu); from iteration 50 to 150 mu |F - F_end| falls to "
        f"{rate:.2f} of itself at most, where o(1/mu) demands zero",
    )


@claim("theory", "With |W|_F^2 or |W|_1 as regulariser all members are the same", "Section 2.1")
def regularisers(numbers: Checked) -> Judgement:
    """Measure how far apart optima are."""
    frobenius = max(_all(numbers, "frobenius"))
    width, twins = (max(result[name] for result in numbers.values()) for name in ("l1_width", "l1_twins"))
    return (
        graded(frobenius <= 1e-4 and max(width, twins) <= 0.01, frobenius <= 1e-4),
        f"|W|_F^2: members from random starts within {frobenius:.0e} of the one SVM; |W|_1: two optima at "
        f"most {width:.0e} apart on these rows, {twins:.2f} after one feature was given twice (relative)",
    )


@claim("theory", "Members trained on parts of the data differ only trivially", "Footnote to section 2.1")
def splitting(numbers: Checked) -> Judgement:
    """Measure disagreement at the paper's 150 rows, and whether it fades with more rows."""
    first = {name: result["disagreement"][0] for name, result in numbers.items()}
    name, result = max(numbers.items(), key=lambda item: item[1]["rows"][-1])
    rows, found = result["rows"], result["disagreement"]
    parts = ", ".join(f"{value:.0f} % of {rows[0]} rows of {dataset}" for dataset, value in first.items())
    return (
        graded(max(first.values()) <= 2.0, found[-1] < found[0]),
        f"two of ten SVMs, trained on tenths, disagree on {parts}; on {found[-1]:.1f} % with {rows[-1]} rows "
        f"of {name}",
    )


@claim(
    "theory",
    "Algorithm 1 minimises |W + eps|_{1,2}^2, which approaches |W|_{1,2}^2 as eps goes to zero",
    "Footnote to Eq. (10)",
)
def eps(numbers: Checked) -> Judgement:
    """Measure what Algorithm 1 minimises with eps > 0."""
    result = next(iter(numbers.values()))
    sizes, to_claim, to_exact = result["eps"], result["to_claim"], result["to_exact"]
    vanishes = to_exact[-1] <= 1e-3 * to_exact[0]
    return (
        graded(vanishes and to_claim[0] <= 1e-3, vanishes),
        f"eps = {sizes[0]:g}: Algorithm 1 ends {to_claim[0]:.2f} from the minimiser of |W + eps|; from the "
        f"minimiser without eps it is {to_exact[0]:.2f} away at eps = {sizes[0]:g} and {to_exact[-1]:.0e} at "
        f"{sizes[-1]:g}",
    )


@claim(
    "theory",
    "Members of an ERM that do differ (random starts) improve the ensemble",
    "not in the paper; implied by its section 1",
)
def random_starts(numbers: Checked) -> Judgement:
    """Compare members that differ because the algorithm stops early with the optimum."""
    runs = pd.DataFrame(_all(numbers, "starts"))
    change = runs["error"] - runs["optimum_error"]
    # One point of testing error is clear, for means of a few trials each.
    return (
        graded(change.max() < -1.0, change.min() < -1.0),
        f"mean cosine of members {runs['cosine'].min():.2f} to {runs['cosine'].max():.2f}, objective "
        f"{runs['excess'].min():.0%} to {runs['excess'].max():.0%} above the optimum, testing error "
        f"{change.min():+.1f} to {change.max():+.1f} points against the optimum's",
    )


@claim("theory", "The mean member of every optimum is one SVM of cost C/K", "not in the paper; ours")
def equivalence(numbers: Checked) -> Judgement:
    """Compare all members by the ALM with LIBSVM at C/K."""
    weights, objective = (
        max(result[name] for result in numbers.values()) for name in ("weights", "objective")
    )
    apart = max(weights, objective)
    return (
        graded(apart <= 1e-4, apart <= 1e-2),
        f"mean member and LIBSVM's weights at cost C/K differ by {weights:.0e}, F and K^2 f by "
        f"{objective:.0e} (relative)",
    )
