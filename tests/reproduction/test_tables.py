"""Ranks and tables against scipy and published values, systems, and the transcription of the paper."""

import numpy as np
import pytest
from scipy import stats
from sklearn.svm import NuSVC

from reproduction import tables
from reproduction.published import (
    AVERAGE_RANKS,
    ERM_SYSTEMS,
    PAPER_SYSTEMS,
    TABLE1,
    TABLE1_DATASETS,
    TABLE2,
)
from reproduction.systems import SYSTEMS, build, feasible_nu
from reproduction_cases import published_times, published_trials, trials_frame


@pytest.mark.parametrize("dataset", TABLE1_DATASETS)
def test_the_papers_ranks_follow_its_means(dataset):
    cells = sorted((TABLE1[dataset, system] for system in PAPER_SYSTEMS), key=lambda cell: cell.rank)
    assert np.all(np.diff([cell.mean for cell in cells]) >= 0)
    assert {cell.rank for cell in cells} <= set(range(1, 11))


@pytest.mark.parametrize("system", PAPER_SYSTEMS)
def test_the_papers_average_ranks_follow_its_ranks(system):
    mean = np.mean([TABLE1[dataset, system].rank for dataset in TABLE1_DATASETS])
    assert AVERAGE_RANKS[system] == pytest.approx(mean, abs=0.051)


def test_known_cells():
    assert TABLE1["german", "L2-ERM30"] == (25.75, 1.10, 1)
    assert TABLE1["ionosphere", "DRM30"] == (19.70, 3.48, 6)
    assert TABLE1["splice", "nu-SVM"] == (34.91, 2.84, None)
    assert TABLE2["DRM10"] == 168.5657
    assert TABLE2["DRM30"] == 193.9761
    assert len(ERM_SYSTEMS) == 4
    assert len(TABLE1) == 8 * 13


def test_systems_are_what_they_are_called():
    y = np.array([1.0, -1.0])
    assert tuple(SYSTEMS)[:10] == PAPER_SYSTEMS
    assert tuple(SYSTEMS)[10:13] == ("L1-PSVM", "L2-PSVM", "nu-SVM")
    assert len(SYSTEMS) == 21
    erm = build("L2-ERM30", y, 0)
    assert (erm.n_estimators, erm.C, erm.p, erm.solver) == (30, 2.0, 2, "paper")
    assert pytest.approx(0.2) == build("L1-SVM-C/10", y, 0).C
    assert build("AdaBoost10", y, 7).estimator.max_depth == 1
    assert build("Bagging30", y, 7).estimator.max_depth is None
    assert build("Bagging30", y, 7).random_state == build("AdaBoost10", y, 7).random_state == 7
    assert build("L1-ERM10-certified", y, 0).solver == "newton"


@pytest.mark.parametrize("n_positive", [1, 3, 10, 19])
def test_nu_is_feasible(n_positive):
    y = np.where(np.arange(20) < n_positive, 1.0, -1.0)
    NuSVC(kernel="linear", nu=feasible_nu(y)).fit(np.arange(20.0)[:, None], y)
    assert build("nu-SVM", y, 0).nu == feasible_nu(y)


def test_ranks_are_scipys_and_others_get_the_rank_they_would_take():
    rng = np.random.default_rng(0)
    errors = {
        name: [dict(zip(SYSTEMS, rng.integers(0, 6, len(SYSTEMS)).astype(float), strict=True))]
        for name in ("heart", "sonar")
    }
    table = tables.table1(trials_frame(errors))
    for dataset, (row,) in errors.items():
        ten = [row[name] for name in PAPER_SYSTEMS]
        assert table["rank"][dataset][list(PAPER_SYSTEMS)].tolist() == stats.rankdata(ten).tolist()
        for name in set(SYSTEMS) - set(PAPER_SYSTEMS):
            assert table["rank"][dataset, name] == stats.rankdata([row[name], *ten])[0]


def test_rounding_errors_do_not_break_ties():
    errors = dict.fromkeys(PAPER_SYSTEMS, 1.0) | {"DRM10": 0.1 + 0.2, "DRM30": 0.3}
    ranks = tables.table1(trials_frame({"heart": [errors]}))["rank"]["heart"]
    assert ranks["DRM10"] == ranks["DRM30"] == 1.5


def test_means_standard_deviations_and_the_papers_cells():
    rows = [dict.fromkeys(PAPER_SYSTEMS, error) for error in (10.0, 20.0, 60.0)]
    table = tables.table1(trials_frame({"heart": rows, "ijcnn1": rows}))
    cell = table.loc[("heart", "DRM10")]
    assert cell["mean"] == 30.0
    assert cell["std"] == pytest.approx(np.std([10, 20, 60], ddof=1))
    assert (cell["paper_mean"], cell["paper_std"], cell["paper_rank"]) == (19.00, 2.22, 5)
    assert table.loc["ijcnn1"][["rank", "paper_mean"]].isna().all(axis=None)


def test_average_ranks_come_close_to_the_papers():
    table = tables.table1(published_trials())
    average = tables.average_ranks(table)  # the paper breaks ties of two decimals, and gives both DRMs a 2
    np.testing.assert_allclose(average["rank"], average["paper_rank"], atol=0.16)
    p_value, distance = tables.rank_statistics(table)
    assert distance == pytest.approx(4.79, abs=0.01)
    means = [table["mean"][:, name] for name in PAPER_SYSTEMS]
    assert p_value == pytest.approx(stats.friedmanchisquare(*means).pvalue)
    assert p_value < 0.01


# Demsar (2006), Table 5(a): q for alpha = 0.05.
@pytest.mark.parametrize(("k", "q"), [(2, 1.960), (4, 2.569), (6, 2.850), (8, 3.031), (10, 3.164)])
def test_critical_difference_has_the_published_quantiles(k, q):
    assert tables.critical_difference(k, 8) == pytest.approx(q * np.sqrt(k * (k + 1) / 48), abs=2e-3)


def test_critical_difference_of_demsars_example():
    # Section 3.2.2: four classifiers, fourteen data sets, 5 and 10 %.
    assert tables.critical_difference(4, 14) == pytest.approx(1.25, abs=0.005)
    assert tables.critical_difference(4, 14, alpha=0.10) == pytest.approx(1.12, abs=0.005)


def test_times_and_ratios():
    times = tables.table2(published_times())
    ratios = tables.time_ratios(times).set_index(["erm", "competitor"])
    assert len(ratios) == 24
    assert ratios["ratio"]["L1-ERM10", "DRM10"] == pytest.approx(168.5657 / 0.0568)
    assert ratios["paper_ratio"]["L1-ERM10", "DRM10"] == pytest.approx(168.5657 / 0.0568)
    assert ratios["ratio"]["L2-ERM30-certified", "Bagging30"] == pytest.approx(0.2512 / 0.001)
    assert np.isnan(ratios["paper_ratio"]["L2-ERM30-certified", "Bagging30"])
