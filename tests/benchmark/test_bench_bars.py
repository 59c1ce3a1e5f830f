"""Bars judged on made-up documents."""

import pytest

from exclusivity.benchmark.bars import BARS, FOOTNOTE, judge


def point(seconds, excess, gap=None):
    return {"seconds": seconds, "excess": excess, "gap": gap, "extra_bytes": 0, "passes": 1.0}


def case(workload, kind, p, curves, cost=0.2, ended=()):
    runs = [{"peer": name} for name in (*curves, *ended)]
    return {"workload": workload, "kind": kind, "p": p, "cost": cost, "curves": curves, "runs": runs}


def document(*cases):
    names = {name for each in cases for name in each["curves"]} | {"newton", "psvm"}
    peers = {name: {"ours": name in ("newton", "alm", "psvm")} for name in names}
    return {"peers": peers, "cases": list(cases)}


def verdict(start, *cases):
    (found,) = [each for each in judge(document(*cases)) if each["statement"].startswith(start)]
    return found


def test_nothing_measured_nothing_claimed():
    verdicts = judge(document())
    assert len(verdicts) == len(BARS) + 1 + len(FOOTNOTE) == 18
    assert {each["outcome"] for each in verdicts} == {"not measured"}
    assert {each["ratio"] for each in verdicts} == {None}


@pytest.mark.parametrize(("seconds", "outcome"), [(0.9, "holds"), (1.1, "fails")])
def test_dense_needs_the_certificate_and_the_fastest_peer(seconds, outcome):
    curves = {
        "newton": [point(0.01, 1e-9, gap=1e-5), point(seconds, 1e-9, gap=1e-6)],
        "alm": [point(0.001, 1e-9, gap=1e-9)],
        "tron-1": [point(4.0, 1e-4)],
        "sgd": [point(1.0, 1e-3)],
    }
    found = verdict("dense, p = 2", case("dense-500k", "dense", 2, curves))
    assert found["outcome"] == outcome
    assert found["ratio"] == pytest.approx(seconds / 4)
    assert verdict("dense, p = 1", case("dense-500k", "dense", 2, curves))["outcome"] == "not measured"


def test_small_workloads_prove_nothing():
    curves = {"newton": [point(0.1, 0.0, gap=0.0)], "dcd-1": [point(9.0, 0.0)]}
    for kind in ("dense", "sparse", "classes"):
        assert {each["outcome"] for each in judge(document(case(f"small-{kind}", kind, 2, curves)))} == {
            "not measured"
        }


def test_the_worst_of_all_comparisons_counts():
    good = {"newton": [point(1.0, 1e-7)], "tron-1": [point(2.0, 1e-7)]}
    bad = {"newton": [point(3.0, 1e-7)], "tron-1": [point(2.0, 1e-7)]}
    found = verdict(
        "150 rows, p = 2: not slower", case("paper-a", "paper", 2, good), case("paper-b", "paper", 2, bad)
    )
    assert (found["outcome"], found["ratio"], found["holding"], found["comparisons"]) == ("fails", 1.5, 3, 6)
    assert "paper-b" in found["worst"]
    found = verdict("150 rows, p = 2: not slower", case("paper-a", "paper", 2, good))
    assert (found["outcome"], found["ratio"], found["middle"]) == ("holds", 0.5, 0.5)


def test_other_peers_are_no_linear_svc():
    curves = {"newton": [point(1.0, 0.0)], "snapml-1": [point(0.1, 0.0)], "dcd-10": [point(2.0, 0.0)]}
    assert verdict("ten classes", case("classes-10", "classes", 1, curves))["ratio"] == 0.5
    assert verdict("sparse: at most twice", case("sparse-wide", "sparse", 1, curves))[
        "ratio"
    ] == pytest.approx(10)


def test_levels_that_only_one_side_reached():
    alone = case("sparse-wide", "sparse", 2, {"newton": [point(1.0, 1e-7)], "dcd-1": [point(0.1, 1e-3)]})
    found = verdict("sparse: at most twice", alone)
    assert (found["outcome"], found["ratio"], found["unrivalled"]) == ("no rival got there", None, 1)
    killed = case("sparse-wide", "sparse", 2, {"newton": [point(1.0, 1e-7)]}, ended=("dcd-1",))
    assert verdict("sparse: at most twice", killed)["unrivalled"] == 1
    behind = case("sparse-wide", "sparse", 2, {"newton": [point(1.0, 1e-3)], "dcd-1": [point(0.1, 1e-7)]})
    found = verdict("sparse: at most twice", behind)
    assert (found["outcome"], found["ratio"]) == ("fails", None)
    assert found["worst"].endswith("not reached")
    nobody = case("sparse-wide", "sparse", 2, {"newton": [point(1.0, 1)], "dcd-1": [point(0.1, 1)]})
    assert verdict("sparse: at most twice", nobody)["outcome"] == "not measured"


def test_levels_without_a_rival_are_no_comparisons():
    alone = case("sparse-wide", "sparse", 2, {"newton": [point(1.0, 1e-7)], "dcd-1": [point(0.1, 1e-3)]})
    slower = case("sparse-wide", "sparse", 1, {"newton": [point(3.0, 1e-7)], "dcd-1": [point(1.0, 1e-7)]})
    found = verdict("sparse: at most twice", alone, slower)
    assert (found["outcome"], found["holding"], found["comparisons"], found["unrivalled"]) == (
        "fails",
        0,
        1,
        1,
    )
    claim = "the paper's footnote: PSVM is faster than TRON"
    faster = case("paper-a", "paper", 2, {"psvm": [point(1.0, 0.0)], "tron-1": [point(9.0, 1e-3)]})
    assert verdict(claim, faster)["outcome"] == "no rival got there"


def text_case(workload, p, cost, seconds, rival=1.0):
    curves = {"newton": [point(seconds, 1e-9, gap=1e-4)], "dcd-10": [point(rival, 1e-4)]}
    return case(workload, "text", p, curves, cost=cost)


def test_some_claims_ask_for_a_share_of_the_comparisons():
    claim = "text, C = 1 and 10"
    good = [text_case("text-words", p, cost, 0.9) for p in (1, 2) for cost in (1.0, 10.0)]
    slow = text_case("text-chars", 1, 1.0, 1.4)
    at_small_cost = text_case("text-chars", 1, 0.1, 9.0)
    found = verdict(claim, *good[:3], slow, at_small_cost)
    assert (found["outcome"], found["holding"], found["comparisons"]) == ("holds", 3, 4)
    assert verdict(claim, *good[:2], slow)["outcome"] == "fails"
    assert verdict("text: certified", *good, slow)["outcome"] == "holds"
    assert verdict("text: certified", *good, at_small_cost)["outcome"] == "fails"
    many = "text, every module"
    assert verdict(many, *good, slow)["outcome"] == "not measured"
    assert verdict(many, text_case("text-words-classes", 2, 0.1, 0.6))["outcome"] == "fails"
    assert verdict(many, text_case("text-words-classes", 2, 0.1, 0.5))["outcome"] == "holds"


def test_half_of_the_comparisons_is_the_median():
    sets = [
        case(f"paper-{seconds}", "paper", 1, {"newton": [point(seconds, 0)], "dcd-1": [point(1.0, 0)]})
        for seconds in (0.5, 0.9, 3.0)
    ]
    assert verdict("150 rows, p = 1: the median", *sets)["outcome"] == "holds"
    assert verdict("150 rows, p = 1: the median", *sets[1:], sets[2])["outcome"] == "fails"


def test_the_footnote_may_hold_in_part():
    fast = case("paper-a", "paper", 2, {"psvm": [point(1.0, 0.0)], "tron-1": [point(2.0, 0.0)]})
    slow = case("paper-b", "paper", 2, {"psvm": [point(3.0, 0.0)], "liblinear-free": [point(2.0, 0.0)]})
    claim = "the paper's footnote: PSVM is faster than TRON"
    assert verdict(claim, fast)["outcome"] == "holds"
    assert verdict(claim, slow)["outcome"] == "fails"
    both = verdict(claim, fast, slow)
    assert (both["outcome"], both["ratio"], both["middle"]) == ("holds in part", 1.5, 1.0)
    assert verdict("the paper's footnote: PSVM is faster than Pegasos", fast)["outcome"] == "not measured"
