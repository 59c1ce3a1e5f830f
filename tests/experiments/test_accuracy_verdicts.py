"""Both outcomes of every verdict on Table 1."""

import pytest

from exclusivity.experiments.tables import table1
from exclusivity.experiments.verdicts import Outcome, all_verdicts
from exclusivity.experiments.verdicts.accuracy import accuracy_verdicts, paired_p_value
from experiments.experiment_cases import published_trials, trial_result


def verdicts(trials, large=()):
    return {verdict.key: verdict for verdict in accuracy_verdicts(table1(trials, large))}


def test_the_papers_own_numbers_support_the_paper():
    found = verdicts(published_trials(spread=0.5))
    assert found["erm-rows"].outcome is Outcome.HOLDS
    assert found["erm-rows"].number.startswith("32 of 32")
    assert found["beats-adaboost"].outcome is Outcome.HOLDS
    assert found["beats-bagging"].outcome is Outcome.HOLDS
    assert found["beats-drm"].outcome is Outcome.PART
    assert found["top-five"].outcome is Outcome.HOLDS
    assert found["ijcnn1"].outcome is Outcome.UNCHECKED


def test_a_worse_erm_does_not():
    found = verdicts(published_trials(shift=40.0, spread=0.5))
    for key in ("erm-rows", "beats-adaboost", "beats-bagging", "beats-drm", "top-five", "strong-sets"):
        assert found[key].outcome is Outcome.FAILS, key


def test_some_cells_off_is_part():
    trials = published_trials(spread=0.5)
    for result in trials["german"]:
        result["errors"]["L1-ERM10"] += 10
    found = verdicts(trials)["erm-rows"]
    assert found.outcome is Outcome.PART
    assert "31 of 32" in found.number
    assert "L1-ERM10 on german" in found.reason


def test_three_of_the_top_five_is_part():
    trials = published_trials(spread=0.5)
    for results in trials.values():
        for result in results:
            result["errors"]["L1-ERM10"] += 50
    assert verdicts(trials)["top-five"].outcome is Outcome.PART


def test_strong_sets_need_significance():
    # The three trials of every method move together: paired differences are constant.
    clear = published_trials(shift=-5.0, datasets=("heart", "sonar"))
    assert verdicts(clear)["strong-sets"].outcome is Outcome.HOLDS
    noisy = published_trials(shift=-0.5, datasets=("heart", "sonar"))
    for results in noisy.values():
        for step, result in zip((-9, 0, 9), results, strict=True):
            for name in ("L1-ERM10", "L2-ERM10", "L1-ERM30", "L2-ERM30"):
                result["errors"][name] += step
    assert verdicts(noisy)["strong-sets"].outcome is Outcome.PART
    assert verdicts(published_trials(datasets=("german",)))["strong-sets"].outcome is Outcome.UNCHECKED


def test_one_trial_cannot_be_compared():
    trials = {name: results[:1] for name, results in published_trials().items()}
    assert verdicts(trials)["erm-rows"].outcome is Outcome.UNCHECKED


@pytest.mark.parametrize(
    ("worst", "outcome"), [(9.5, Outcome.HOLDS), (10.8, Outcome.PART), (20.0, Outcome.FAILS)]
)
def test_ijcnn1_is_close_or_not(worst, outcome):
    large = [trial_result({"L1-ERM10": 9.0 + e, "DRM10": worst + e}) for e in (-0.1, 0.1)]
    assert verdicts(published_trials(), large)["ijcnn1"].outcome is outcome


def test_nothing_of_table_1_is_said_so():
    found = verdicts({})
    assert {verdict.outcome for verdict in found.values()} == {Outcome.UNCHECKED}
    assert len(found) == 7


def test_paired_p_value():
    assert paired_p_value([1, 2, 3], [1, 2, 3]) == 1.0
    assert paired_p_value([1, 2, 3], [2, 3, 4]) == 0.0
    from scipy import stats

    first, second = [1.0, 2.0, 4.0, 3.0], [2.0, 2.5, 3.0, 6.0]
    assert paired_p_value(first, second) == pytest.approx(stats.ttest_rel(first, second).pvalue)


def test_verdicts_come_for_the_documents_there_are():
    assert all_verdicts({}) == []
    assert len(all_verdicts({"table1": table1(published_trials())})) == 7
