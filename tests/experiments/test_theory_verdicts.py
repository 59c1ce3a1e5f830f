"""Both outcomes of every verdict on the paper's statements, and the checks themselves."""

import pytest

from exclusivity.experiments.footnotes import _l1_svm
from exclusivity.experiments.theory import CHECKS
from exclusivity.experiments.verdicts import Outcome
from exclusivity.experiments.verdicts.theory import JUDGES, theory_verdicts

HOLDS, PART, FAILS = Outcome.HOLDS, Outcome.PART, Outcome.FAILS


def theorem1(ones, zeros):
    return {"steps": [10, 100, 1000], "from_ones": ones, "from_zeros": zeros}


def lemma2(second):
    return {"largest": {"1": {"Z": [2.0, second], "Q": [1.0, 1.0], "mu": 1e12}}}


def theorem2(growing, late):
    run = {"growing": growing, "constant": 1e-12, "to_optimum": [1.0, 2.0], "to_limit": [1.0, late]}
    return {"runs": {"1": run}}


def starts(error):
    return {
        "starts": {
            "1": {"cosine": 0.5, "excess": 0.1, "error": error[0], "optimum_error": 20.0},
            "2": {"cosine": 0.6, "excess": 0.2, "error": error[1], "optimum_error": 20.0},
        }
    }


CASES = [
    ("proposition1", {"slack": {"1": 0.1, "2": 0.0}}, HOLDS),
    ("proposition1", {"slack": {"1": 0.1, "2": -0.1}}, PART),
    ("proposition1", {"slack": {"1": -0.1, "2": -0.1}}, FAILS),
    ("theorem1", theorem1([0.1, 1e-9, 1e-12], [0.1, 1e-9, 1e-12]), HOLDS),
    ("theorem1", theorem1([0.1, 1e-2, 1e-4], [1.0, 0.2, 1e-3]), PART),
    ("theorem1", theorem1([0.1, 0.1, 0.1], [1.0, 1.0, 1.0]), FAILS),
    ("lemma2", lemma2(2.0), HOLDS),
    ("lemma2", lemma2(3.0), PART),
    ("lemma2", lemma2(200.0), FAILS),
    ("theorem2", theorem2(1e-9, 1e-4), HOLDS),
    ("theorem2", theorem2(1e-9, 0.9), PART),
    ("theorem2", theorem2(1e-2, 0.9), FAILS),
    ("regularisers", {"frobenius": {"1": 1e-8}, "l1_width": 0.0, "l1_twins": 0.0}, HOLDS),
    ("regularisers", {"frobenius": {"1": 1e-8}, "l1_width": 0.0, "l1_twins": 0.5}, PART),
    ("regularisers", {"frobenius": {"1": 0.5}, "l1_width": 0.0, "l1_twins": 0.5}, FAILS),
    ("splitting", {"rows": [150, 9600], "disagreement": [1.5, 0.1]}, HOLDS),
    ("splitting", {"rows": [150, 9600], "disagreement": [20.0, 1.0]}, PART),
    ("splitting", {"rows": [150, 9600], "disagreement": [20.0, 25.0]}, FAILS),
    ("eps", {"eps": [0.1, 1e-8], "to_claim": [1e-5, 0.0], "to_exact": [0.1, 1e-9]}, HOLDS),
    ("eps", {"eps": [0.1, 1e-8], "to_claim": [0.3, 0.0], "to_exact": [0.1, 1e-9]}, PART),
    ("eps", {"eps": [0.1, 1e-8], "to_claim": [0.3, 0.3], "to_exact": [0.1, 0.1]}, FAILS),
    ("random_starts", starts((18.0, 18.0)), HOLDS),
    ("random_starts", starts((18.0, 21.0)), PART),
    ("random_starts", starts((21.0, 21.0)), FAILS),
    ("equivalence", {"weights": 1e-7, "objective": 1e-8}, HOLDS),
    ("equivalence", {"weights": 1e-3, "objective": 1e-8}, PART),
    ("equivalence", {"weights": 0.5, "objective": 1e-8}, FAILS),
]


@pytest.mark.parametrize(("check", "numbers", "outcome"), CASES)
def test_outcomes(check, numbers, outcome):
    found = theory_verdicts({check: {"sonar": numbers}})
    assert [verdict.outcome for verdict in found if verdict.outcome is not Outcome.UNCHECKED] == [outcome]
    assert len(found) == len(JUDGES)


def test_every_check_has_a_verdict():
    assert set(JUDGES) == set(CHECKS)
    assert {check for check, _, _ in CASES} == set(CHECKS)


def test_the_checks_find_what_the_mathematics_says(small_study):
    found = {v.key: v.outcome for v in small_study[0].verdicts}
    assert found["proposition-1"] is HOLDS
    assert found["theorem-1"] is PART
    assert found["lemma-2"] is HOLDS
    assert found["theorem-2"] is not HOLDS
    assert found["regularisers"] is PART
    assert found["eps"] is PART
    assert found["equivalence"] is HOLDS
    assert found["gains"] is FAILS


def test_the_linear_programme_complains(monkeypatch):
    from exclusivity.experiments import footnotes
    from experiments.experiment_cases import toy_set

    class Failed:
        x, message = None, "out of luck"

    monkeypatch.setattr(footnotes, "linprog", lambda *a, **k: Failed)
    data = toy_set("heart", n_rows=20)
    with pytest.raises(ValueError, match="out of luck"):
        _l1_svm(data.X, data.y)
