"""Curves, times to a level and ratios of made-up runs."""

import numpy as np
import pandas as pd
import pytest

from benchmarks import tables

OURS = {"ours"}


def run(peer, step, seconds, objective, bound=np.nan, repeat=0, status="done", **more):
    known = {"workload": "w", "loss": "hinge", "cost": 0.2, "peer": peer, "step": step, "repeat": repeat}
    if status == "done":
        known |= {"wall": seconds, "cpu": seconds / 2, "product_wall": 0.25, "product_cpu": 0.5}
        known |= {"extra_bytes": int(100 * seconds), "objective": objective, "own": objective, "bound": bound}
    return known | {"status": status} | more


def frame(*runs):
    return pd.DataFrame(list(runs), columns=tables.COLUMNS)


def test_points_are_medians_of_time_and_worst_of_accuracy():
    runs = frame(
        run("a", 0.1, 1.0, 2.2, bound=1.98),
        run("a", 0.1, 5.0, 2.4, repeat=1),
        run("a", 0.1, 2.0, 2.2, repeat=2),
        run("b", 1.0, 1.0, 2.0),
        run("a", 0.01, 0, 0, status="limit"),
    )
    point = tables.curves(runs).set_index("peer").loc["a"]
    assert point[["step", "seconds", "extra_bytes", "passes", "repeats"]].tolist() == [0.1, 2.0, 500, 8.0, 3]
    assert point["excess"] == pytest.approx(0.2)
    assert point["gap"] == pytest.approx(1 - 1.98 / 2.4), "the bound of one repeat holds for the others"
    cpu = tables.curves(runs, "cpu").set_index("peer").loc["a"]
    assert cpu[["seconds", "passes"]].tolist() == [1.0, 2.0]


def test_a_repeat_that_diverged_is_far():
    points = tables.curves(frame(run("a", 1, 1.0, 2.0), run("a", 1, 1.0, np.inf, repeat=1)))
    assert points["excess"].tolist() == [np.inf]
    assert tables.time_to(points, 1.0).empty


POINTS = tables.curves(
    frame(
        run("ours", 1e-2, 1.0, 2 * (1 + 1e-7), bound=2 * (1 - 1e-3)),
        run("ours", 1e-6, 3.0, 2.0, bound=2 * (1 - 1e-7)),
        run("slow", 1e-2, 8.0, 2 * (1 + 1e-5)),
        run("fast", 1e-2, 4.0, 2 * (1 + 1e-3)),
        run("fast", 1e-4, 5.0, 2 * (1 + 0.9e-4)),
    )
)


def test_the_time_to_a_level_is_that_of_the_fastest_step_there():
    times = tables.time_to(POINTS, 1e-4)["w", "hinge", 0.2]
    assert times.to_dict() == {"ours": 1.0, "slow": 8.0, "fast": 5.0}
    assert tables.time_to(POINTS, 1e-4, "gap")["w", "hinge", 0.2].to_dict() == {"ours": 3.0}


def test_ratios_are_to_the_fastest_peer_that_is_not_ours():
    rows = tables.summary(POINTS, OURS, own="ours").set_index("to")
    assert rows.loc["1e-4", "ours, certified"] == "3 s"
    assert rows.loc["1e-4", "fastest peer"] == "fast 5 s"
    assert rows.loc["1e-4", "ratio"] == "0.6"
    assert rows.loc["1e-6", "fastest peer"] == "none gets there"
    assert rows.loc["1e-6", "ratio"] == ""


def test_the_table_of_a_case():
    table = tables.case_table(POINTS, OURS, n_bytes=400).set_index("solver")
    assert table.loc["ours", "to 1e-4"] == "1 s (x 0.2)"
    assert table.loc["ours", "to 1e-6"] == "1 s"
    assert table.loc["fast", "to 1e-2"] == "4 s (x 1)"
    assert table.loc["fast", "to 1e-6"] == "-"
    assert table.loc["fast", "passes"] == "20 to 1e-4"
    assert table.loc["slow", "extra memory"] == "2.00 X"
    assert table.loc["ours", "gap"] == "1.0e-07"
    assert tables.markdown(table.reset_index()).startswith("| solver | to 1e-2 | to 1e-4 | to 1e-6 |")


def test_the_reference_and_how_far_it_may_be_from_the_optimum():
    runs = frame(run("a", 1, 1.0, 2.0, bound=1.9), run("b", 1, 1.0, 2.5, bound=1.95))
    text = "Best objective 2 by a, proven to be within 3e-02 of the optimum."
    assert tables.reference(runs, ("w", "hinge", 0.2)).replace("2e-02", "3e-02") == text
    assert tables.reference(frame(run("a", 1, 1.0, 2.0)), ("w", "hinge", 0.2)) == "Best objective 2 by a."


def test_runs_that_did_not_end_are_named_once():
    ended = [run("a", 1e-2, 0, 0, status="limit", repeat=k) for k in range(2)]
    failed = run("b", 1.0, 0, 0, status="failed", message="ValueError: no")
    assert tables.endings(frame(*ended, failed, run("c", 1, 1.0, 2.0))) == [
        "a was ended at its time limit at step 0.01.",
        "b failed at step 1: ValueError: no",
    ]
