"""All verdicts of every claim, from made-up results."""

import numpy as np
import pytest
from scipy import stats

from reproduction.claims import CLAIMS, FAILS, HOLDS, PART, UNCHECKED, Results, judge_all, paired_p_value
from reproduction.published import ERM_SYSTEMS, PAPER_SYSTEMS
from reproduction.run import PARTS
from reproduction.theory import CHECKS
from reproduction_cases import (
    convergence_frame,
    published_times,
    published_trials,
    scaling_frame,
    sweep_frame,
    trials_frame,
)

REVERSED = {5: 24.0, 10: 26.0, 30: 28.0}


def judge(parts=PARTS, **results):
    return judge_all(Results(**results), parts)


def verdicts(parts=PARTS, **results):
    return judge(parts, **results)["verdict"]


def test_the_papers_own_numbers_support_the_paper():
    found = judge(("table1",), trials=published_trials(spread=0.5))
    assert found["measured"]["erm_rows"].startswith("32 of 32")
    expected = {"erm_rows": HOLDS, "beats_adaboost": HOLDS, "beats_bagging": HOLDS, "beats_drm": PART}
    expected |= {"top_five": HOLDS, "ijcnn1_close": UNCHECKED}
    assert found["verdict"][list(expected)].to_dict() == expected


def test_a_worse_erm_does_not():
    found = verdicts(("table1",), trials=published_trials(shift=40.0, spread=0.5))
    keys = ["erm_rows", "beats_adaboost", "beats_bagging", "beats_drm", "top_five", "strong_sets"]
    assert set(found[keys]) == {FAILS}


def test_some_cells_off_is_part():
    trials = published_trials(spread=0.5)
    trials.loc[(trials["dataset"] == "german") & (trials["system"] == "L1-ERM10"), "error"] += 10
    found = judge(("table1",), trials=trials).loc["erm_rows"]
    assert found["verdict"] == PART
    assert "31 of 32" in found["measured"]
    assert "L1-ERM10 on german" in found["measured"]


def test_three_of_the_top_five_is_part():
    trials = published_trials(spread=0.5)
    trials.loc[trials["system"] == "L1-ERM10", "error"] += 50
    assert verdicts(("table1",), trials=trials)["top_five"] == PART


def test_strong_sets_need_significance():
    # The three trials of every system move together: paired differences are constant.
    clear = published_trials(shift=-5.0, datasets=("heart", "sonar"))
    assert verdicts(("table1",), trials=clear)["strong_sets"] == HOLDS
    noisy = published_trials(shift=-0.5, datasets=("heart", "sonar"))
    noisy.loc[noisy["system"].isin(ERM_SYSTEMS), "error"] += 9 * (noisy["trial"] - 1)
    assert verdicts(("table1",), trials=noisy)["strong_sets"] == PART
    absent = published_trials(datasets=("german",))
    assert verdicts(("table1",), trials=absent)["strong_sets"] == UNCHECKED


def test_one_trial_cannot_be_compared():
    trials, sweep = published_trials(), sweep_frame()
    assert verdicts(("table1",), trials=trials[trials["trial"] == 0])["erm_rows"] == UNCHECKED
    assert verdicts(sweep=sweep[sweep["trial"] == 0])["insensitive"] == UNCHECKED


@pytest.mark.parametrize(("worst", "verdict"), [(9.5, HOLDS), (10.8, PART), (20.0, FAILS)])
def test_ijcnn1_is_close_or_not(worst, verdict):
    errors = dict.fromkeys(PAPER_SYSTEMS, 9.0) | {"DRM10": worst}
    rows = [{name: error + e for name, error in errors.items()} for e in (-0.1, 0.1)]
    found = verdicts(trials=trials_frame({"ijcnn1": rows}))
    assert found["ijcnn1_close"] == verdict
    assert found["erm_rows"] == found["top_five"] == found["erm_faster"] == UNCHECKED


def test_paired_p_value():
    steps = np.array([1.0, 2.0, 3.0])
    assert paired_p_value(steps, steps) == 1.0
    assert paired_p_value(steps, steps + 1) == 0.0
    first, second = np.array([1.0, 2.0, 4.0, 3.0]), np.array([2.0, 2.5, 3.0, 6.0])
    assert paired_p_value(first, second) == pytest.approx(stats.ttest_rel(first, second).pvalue)


def test_the_papers_times():
    found = judge(trials=published_times())
    assert found["verdict"][["erm_faster", "drm_slower"]].tolist() == [HOLDS, HOLDS]
    assert "1428 to 2968" in found["measured"]["drm_slower"]


@pytest.mark.parametrize(
    ("seconds", "faster", "factor"), [(5.0, HOLDS, PART), (0.05, PART, FAILS), (0.0001, FAILS, FAILS)]
)
def test_a_faster_drm(seconds, faster, factor):
    found = verdicts(trials=published_times(DRM10=seconds, DRM30=seconds))
    assert found[["erm_faster", "drm_slower"]].tolist() == [faster, factor]


@pytest.mark.parametrize(("slope", "verdict"), [(0.1, HOLDS), (2.0, FAILS)])
def test_insensitivity(slope, verdict):
    assert verdicts(sweep=sweep_frame(slope=slope))["insensitive"] == verdict


def test_insensitivity_of_some_curves_is_part():
    sweep = sweep_frame(slope=0.1)
    one = (sweep["system"] == "ERM") & (sweep["members"] == 5) & (sweep["p"] == 1)
    sweep.loc[one, "test"] += 10 * sweep["lambda"]
    assert verdicts(sweep=sweep)["insensitive"] == PART


def test_orders():
    found = verdicts(sweep=sweep_frame())
    assert found[["training_order", "testing_order", "below_psvm"]].tolist() == [HOLDS] * 3
    assert verdicts(sweep=sweep_frame(erm=REVERSED))["testing_order"] == FAILS
    assert verdicts(sweep=sweep_frame(single=27.0))["below_psvm"] == PART
    assert verdicts(sweep=sweep_frame(single=20.0))["below_psvm"] == FAILS
    sweep = sweep_frame()
    sweep.loc[(sweep["system"] == "ERM") & (sweep["members"] == 5) & (sweep["p"] == 1), "train"] = 50.0
    assert verdicts(sweep=sweep)["training_order"] == PART


def test_gains():
    worse = {k: error + 5 for k, error in REVERSED.items()}
    little = {k: error + 0.5 for k, error in REVERSED.items()}
    cases = [
        (sweep_frame(), FAILS),
        (sweep_frame(erm=REVERSED, matched=worse, spread=0.5), HOLDS),
        (sweep_frame(erm=REVERSED, matched=little, spread=0.5), PART),
        (sweep_frame(erm=REVERSED, matched=worse), FAILS),  # equal members are not diverse
    ]
    for sweep, verdict in cases:
        assert verdicts(sweep=sweep)["gains"] == verdict


@pytest.mark.parametrize(
    ("flat_after", "change", "verdict"),
    [
        ({2: 25, 1: 60}, {2: 1.0, 1: 1.0}, HOLDS),
        ({2: 60, 1: 60}, {2: 1.0, 1: 1.0}, FAILS),
    ],
)
def test_iterations(flat_after, change, verdict):
    assert verdicts(convergence=convergence_frame(flat_after, change))["iterations"] == verdict


def test_iterations_of_a_flat_curve_that_the_rule_does_not_stop_are_part():
    frame = convergence_frame({2: 25, 1: 60}, {2: 1e3, 1: 1e3})
    frame["objective"] += 0.1 * (120 - frame["iteration"])
    found = judge(convergence=frame).loc["iterations"]
    assert found["verdict"] == PART
    assert "inf" in found["measured"]


@pytest.mark.parametrize(
    ("slopes", "iterations", "verdict"),
    [((1.0, 1.0, 1.1), 0.0, HOLDS), ((1.0, 1.0, 1.4), 0.4, PART), ((1.5, 1.6, 1.7), 0.0, FAILS)],
)
def test_quasi_linear(slopes, iterations, verdict):
    assert verdicts(scaling=scaling_frame(slopes, iteration_slope=iterations))["quasi_linear"] == verdict


@pytest.mark.parametrize(("p_ratio", "verdict"), [(1.1, HOLDS), (1.6, PART), (0.6, PART), (9.0, FAILS)])
def test_p_and_time(p_ratio, verdict):
    assert verdicts(scaling=scaling_frame((1.0, 1.0, 1.0), p_ratio))["p_and_time"] == verdict


def test_convergence_and_times_are_ijcnn1s():
    found = verdicts(
        convergence=convergence_frame({2: 25, 1: 60}, {2: 1.0, 1: 1.0}),
        scaling=scaling_frame((1.0, 1.0, 1.0)),
        large="splice",
    )
    assert set(found[["iterations", "quasi_linear", "p_and_time"]]) == {UNCHECKED}


def theorem1(ones, zeros):
    return {"steps": [10, 100, 1000], "from_ones": ones, "from_zeros": zeros}


def theorem2(growing, late):
    return {"runs": {"p1": {"growing": growing, "constant": 1e-12, "to_limit": [1.0, late]}}}


def starts(*errors):
    shared = {"cosine": 0.5, "excess": 0.1, "optimum_error": 20.0}
    return {"starts": {f"p{p}": shared | {"error": error} for p, error in enumerate(errors, start=1)}}


THEORY = [
    ("proposition1", {"slack": {"p1": 0.1, "p2": 0.0}}, HOLDS),
    ("proposition1", {"slack": {"p1": 0.1, "p2": -0.1}}, PART),
    ("proposition1", {"slack": {"p1": -0.1, "p2": -0.1}}, FAILS),
    ("theorem1", theorem1([0.1, 1e-9, 1e-12], [0.1, 1e-9, 1e-12]), HOLDS),
    ("theorem1", theorem1([0.1, 1e-2, 1e-4], [1.0, 0.2, 1e-3]), PART),
    ("theorem1", theorem1([0.1, 0.1, 0.1], [1.0, 1.0, 1.0]), FAILS),
    ("lemma2", {"largest": {"p1": {"Z": [2.0, 2.0], "Q": [1.0, 1.0]}}}, HOLDS),
    ("lemma2", {"largest": {"p1": {"Z": [2.0, 3.0], "Q": [1.0, 1.0]}}}, PART),
    ("lemma2", {"largest": {"p1": {"Z": [2.0, 2.0], "Q": [1.0, 100.0]}}}, FAILS),
    ("theorem2", theorem2(1e-9, 1e-4), HOLDS),
    ("theorem2", theorem2(1e-9, 0.9), PART),
    ("theorem2", theorem2(1e-2, 0.9), FAILS),
    ("regularisers", {"frobenius": {"p1": 1e-8}, "l1_width": 0.0, "l1_twins": 0.0}, HOLDS),
    ("regularisers", {"frobenius": {"p1": 1e-8}, "l1_width": 0.0, "l1_twins": 0.5}, PART),
    ("regularisers", {"frobenius": {"p1": 0.5}, "l1_width": 0.0, "l1_twins": 0.5}, FAILS),
    ("splitting", {"rows": [150, 9600], "disagreement": [1.5, 0.1]}, HOLDS),
    ("splitting", {"rows": [150, 9600], "disagreement": [20.0, 1.0]}, PART),
    ("splitting", {"rows": [150, 9600], "disagreement": [20.0, 25.0]}, FAILS),
    ("eps", {"eps": [0.1, 1e-8], "to_claim": [1e-5, 0.0], "to_exact": [0.1, 1e-9]}, HOLDS),
    ("eps", {"eps": [0.1, 1e-8], "to_claim": [0.3, 0.0], "to_exact": [0.1, 1e-9]}, PART),
    ("eps", {"eps": [0.1, 1e-8], "to_claim": [0.3, 0.3], "to_exact": [0.1, 0.1]}, FAILS),
    ("random_starts", starts(18.0, 18.0), HOLDS),
    ("random_starts", starts(18.0, 21.0), PART),
    ("random_starts", starts(21.0, 21.0), FAILS),
    ("equivalence", {"weights": 1e-7, "objective": 1e-8}, HOLDS),
    ("equivalence", {"weights": 1e-3, "objective": 1e-8}, PART),
    ("equivalence", {"weights": 0.5, "objective": 1e-8}, FAILS),
]


@pytest.mark.parametrize(("check", "numbers", "verdict"), THEORY)
def test_statements(check, numbers, verdict):
    found = verdicts(theory={check: {"sonar": numbers}})
    assert found[check] == verdict
    assert (found.drop(check) == UNCHECKED).all()


def test_every_check_has_a_claim_and_every_claim_its_part():
    assert {name for name, claim in CLAIMS.items() if claim.part == "theory"} == set(CHECKS)
    assert {check for check, _, _ in THEORY} == set(CHECKS)
    assert len(CLAIMS) == 26
    parts = [judge_all(Results(), (part,)) for part in PARTS]
    assert [len(found) for found in parts] == [7, 2, 8, 9]
    assert all((found["verdict"] == UNCHECKED).all() for found in parts)
