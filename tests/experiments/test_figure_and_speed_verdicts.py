"""Both outcomes of every verdict on Figure 1 and Table 2."""

import pytest

from exclusivity.experiments.tables import table2
from exclusivity.experiments.verdicts import Outcome
from exclusivity.experiments.verdicts.figure import convergence_verdict, sweep_verdicts
from exclusivity.experiments.verdicts.speed import scaling_verdicts, table2_verdicts
from experiments.experiment_cases import (
    convergence_document,
    published_times,
    scaling_document,
    sweep_document,
)

REVERSED = {5: 24.0, 10: 26.0, 30: 28.0}


def sweep(**how):
    return {verdict.key: verdict.outcome for verdict in sweep_verdicts(sweep_document(**how))}


@pytest.mark.parametrize(("slope", "outcome"), [(0.1, Outcome.HOLDS), (2.0, Outcome.FAILS)])
def test_insensitivity(slope, outcome):
    assert sweep(slope=slope)["insensitive"] is outcome


def test_insensitivity_of_some_curves_is_part():
    document = sweep_document(slope=0.1)
    curve = next(curve for curve in document["curves"] if curve["system"] == "ERM")
    curve["test"]["mean"] = [10.0, 20.0, 30.0, 40.0, 50.0]
    assert sweep_verdicts(document)[0].outcome is Outcome.PART


def test_insensitivity_needs_two_trials():
    document = sweep_document()
    for curve in document["curves"]:
        curve["test"]["trials"] = curve["test"]["trials"][:1]
    assert sweep_verdicts(document)[0].outcome is Outcome.UNCHECKED


def test_orders():
    assert sweep()["training-order"] is Outcome.HOLDS
    assert sweep()["testing-order"] is Outcome.HOLDS
    assert sweep(erm=REVERSED)["testing-order"] is Outcome.FAILS
    assert sweep()["below-psvm"] is Outcome.HOLDS
    assert sweep(single=27.0)["below-psvm"] is Outcome.PART
    assert sweep(single=20.0)["below-psvm"] is Outcome.FAILS
    document = sweep_document()
    for curve in document["curves"]:
        if (curve["system"], curve["members"], curve["p"]) == ("ERM", 5, 1):
            curve["train"]["mean"] = [50.0] * 5
    assert sweep_verdicts(document)[1].outcome is Outcome.PART


def test_gains():
    worse = {k: error + 5 for k, error in REVERSED.items()}
    assert sweep()["gains"] is Outcome.FAILS
    assert sweep(erm=REVERSED, matched=worse, spread=0.5)["gains"] is Outcome.HOLDS
    little = {k: error + 0.5 for k, error in REVERSED.items()}
    assert sweep(erm=REVERSED, matched=little, spread=0.5)["gains"] is Outcome.PART
    assert sweep(erm=REVERSED, matched=worse)["gains"] is Outcome.FAILS  # equal members are not diverse


def test_no_sweep():
    assert {verdict.outcome for verdict in sweep_verdicts(None)} == {Outcome.UNCHECKED}


@pytest.mark.parametrize(
    ("flat_after", "rule", "outcome"),
    [
        ({2: 25, 1: 60}, {2: 30, 1: 72}, Outcome.HOLDS),
        ({2: 25, 1: 60}, {2: 65, 1: 100}, Outcome.PART),
        ({2: 25, 1: 60}, {2: 40, 1: None}, Outcome.PART),
        ({2: 60, 1: 60}, {2: 30, 1: 72}, Outcome.FAILS),
    ],
)
def test_iterations(flat_after, rule, outcome):
    assert convergence_verdict(convergence_document(flat_after, rule)).outcome is outcome


def test_iterations_are_ijcnn1s():
    document = convergence_document({2: 25, 1: 60}, {2: 30, 1: 72}, dataset="splice")
    assert convergence_verdict(document).outcome is Outcome.UNCHECKED
    assert convergence_verdict(None).outcome is Outcome.UNCHECKED


@pytest.mark.parametrize(
    ("slopes", "each", "outcome"),
    [
        ((1.0, 1.0, 1.1), 1.0, Outcome.HOLDS),
        ((1.0, 1.0, 1.4), 1.0, Outcome.PART),
        ((1.5, 1.6, 1.7), 1.6, Outcome.FAILS),
    ],
)
def test_quasi_linear(slopes, each, outcome):
    assert scaling_verdicts(scaling_document(slopes, each=each))[0].outcome is outcome


@pytest.mark.parametrize(
    ("p_ratio", "outcome"),
    [(1.1, Outcome.HOLDS), (1.6, Outcome.PART), (0.6, Outcome.PART), (9.0, Outcome.FAILS)],
)
def test_p_and_time(p_ratio, outcome):
    assert scaling_verdicts(scaling_document((1.0, 1.0, 1.0), p_ratio))[1].outcome is outcome


def test_scaling_is_ijcnn1s():
    for document in (None, scaling_document((1.0, 1.0, 1.0), dataset="splice")):
        assert {verdict.outcome for verdict in scaling_verdicts(document)} == {Outcome.UNCHECKED}


def test_table2_with_the_papers_times():
    faster, factor = table2_verdicts(table2(published_times()))
    assert faster.outcome is Outcome.HOLDS
    assert factor.outcome is Outcome.HOLDS
    assert "1428 to 2968" in factor.number


@pytest.mark.parametrize(
    ("seconds", "faster", "factor"),
    [
        (5.0, Outcome.HOLDS, Outcome.PART),
        (0.05, Outcome.PART, Outcome.FAILS),
        (0.0001, Outcome.FAILS, Outcome.FAILS),
    ],
)
def test_table2_with_a_faster_drm(seconds, faster, factor):
    found = table2_verdicts(table2(published_times(DRM10=seconds, DRM30=seconds)))
    assert [verdict.outcome for verdict in found] == [faster, factor]
