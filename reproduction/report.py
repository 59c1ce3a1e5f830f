"""The report: claims, tables and figures as one Markdown page, in the form of docs/paper.md."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from reproduction import figure1, tables
from reproduction.claims import UNCHECKED, Results
from reproduction.published import ERM_SYSTEMS, FIGURE_MEMBERS, LARGE, TABLE1_DATASETS
from reproduction.systems import erm_name


def markdown(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return a Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(str(cell).replace('|', '&#124;') for cell in line)} |" for line in lines)


def render(results: Results, claims: pd.DataFrame, parts: tuple[str, ...], facts: dict[str, Any]) -> str:
    """Return the page of a run.

    Parameters
    ----------
    results : Results
        What was measured.
    claims : DataFrame
        What :func:`reproduction.claims.judge_all` returned.
    parts : tuple of str
        What was run.
    facts : dict
        What the numbers were made with.
    """
    sections = ["# Exclusivity Regularized Machine: the paper's evidence, reproduced", summary(claims)]
    columns = claims.assign(verdict="**" + claims["verdict"] + "**")
    sections += ["## Claims", markdown(columns.columns, columns.itertuples(index=False))]
    if results.trials is not None and "table1" in parts:
        sections += ["## Table 1: testing errors", *_table1(results.trials)]
    if results.trials is not None and "table2" in parts:
        sections += ["## Table 2: training times", *_table2(results.trials)]
    if "figure1" in parts:
        sections += ["## Figure 1", *_figure1(results)]
    sections += ["## How it was made", "\n".join(f"- {name}: {value}" for name, value in facts.items())]
    return "\n\n".join(sections) + "\n"


def summary(claims: pd.DataFrame) -> str:
    """Count the verdicts in a sentence."""
    counts = claims["verdict"].value_counts()
    told = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
    return f"Of {len(claims)} claims, each judged by a number: {told}."


def brief(claims: pd.DataFrame) -> str:
    """Return verdicts and measurements as lines for a terminal."""
    checked = claims[claims["verdict"] != UNCHECKED]
    rows = zip(checked["verdict"], checked["claim"], checked["measured"], strict=True)
    lines = [f"{verdict:<13}  {claim}\n{'':<15}{measured}" for verdict, claim, measured in rows]
    return "\n".join([*lines, "", summary(claims)])


def _table1(trials: pd.DataFrame) -> list[str]:
    table = tables.table1(trials)
    sections = [
        "Mean and standard deviation of the testing error in % over random splits with 150 training rows, "
        "rank among the paper's ten systems in brackets; below, in italics, the paper's. Rows that are not "
        "among the ten have the rank they would take as an eleventh."
    ]
    datasets = [name for name in TABLE1_DATASETS if name in table.index]
    if datasets:
        rows = [
            (f"**{system}**", *(_error_cell(table.loc[(name, system)]) for name in datasets), _rank(row))
            for system, row in tables.average_ranks(table).iterrows()
        ]
        p_value, distance = tables.rank_statistics(table)
        sections += [
            markdown(["", *datasets, "average rank"], rows),
            f"Friedman's test over the ten systems: p = {p_value:.2g}. Nemenyi's critical difference of "
            f"average ranks at 5 % is {distance:.1f}.",
            _diagnostics(trials[trials["dataset"] != LARGE]),
        ]
    if LARGE in table.index:
        means = 100 - table.loc[LARGE]["mean"]
        told = ", ".join(f"{system} {mean:.1f}" for system, mean in means.items())
        sections.append(f"{LARGE} (150 training rows, all others for testing), accuracy in %: {told}.")
    complaints = trials[trials["warnings"] != ""].groupby(["system", "warnings"]).size()
    sections += [f"- {count} x {system}: {text}" for (system, text), count in complaints.items()]
    return sections


def _error_cell(cell: pd.Series) -> str:
    ours = f"{cell['mean']:.1f} ± {cell['std']:.1f} ({cell['rank']:g})"
    if np.isnan(cell["paper_mean"]):
        return ours
    rank = "" if np.isnan(cell["paper_rank"]) else f" ({cell['paper_rank']:g})"
    return f"{ours}<br>*{cell['paper_mean']:.1f} ± {cell['paper_std']:.1f}{rank}*"


def _rank(row: pd.Series) -> str:
    ours = f"{row['rank']:.1f}"
    return ours if np.isnan(row["paper_rank"]) else f"{ours}<br>*{row['paper_rank']:.1f}*"


def _diagnostics(trials: pd.DataFrame) -> str:
    erm = trials[trials["system"].isin(ERM_SYSTEMS)]
    excess = erm.groupby("system")["excess"].mean()
    return (
        f"The certified optimum and the SVM at cost 2/K agree on {erm['agreement'].mean():.2%} of all test "
        f"rows (worst trial: {erm['agreement'].min():.1%}). Members of the paper's ERMs differ from their "
        f"mean by at most {erm['spread'].max():.0e} of its length. Algorithm 2 ends {excess.min():.1%} to "
        f"{excess.max():.1%} above its optimum on average, {erm['excess'].max():.0%} at worst."
    )


def _table2(trials: pd.DataFrame) -> list[str]:
    times = tables.table2(trials)
    rows = [
        (system, *("" if np.isnan(value) else f"{1000 * value:,.1f}" for value in row))
        for system, row in times.iterrows()
    ]
    ratios = tables.time_ratios(times)
    slower = [
        (erm, *(_ratio(row) for _, row in group.iterrows()))
        for erm, group in ratios.groupby("erm", sort=False)
    ]
    return [
        "Mean CPU time per training over all sets and trials of Table 1, one BLAS thread. The paper's are "
        "Matlab's (DRM: C++) on another machine: compare ratios.",
        markdown(["", "here, ms", "paper, ms"], rows),
        markdown(["how many times slower than ERM", *tables.COMPETITORS], slower),
    ]


def _ratio(row: pd.Series) -> str:
    published = "" if np.isnan(row["paper_ratio"]) else f" (*{row['paper_ratio']:.1f}*)"
    return f"{row['ratio']:.1f}{published}"


def _figure1(results: Results) -> list[str]:
    sections = ["![the four pictures of Figure 1](figure1.png)"]
    if results.sweep is not None:
        sections += ["![K members and one SVM of cost lambda/K](members_or_cost.png)", _errors(results.sweep)]
    if results.convergence is not None:
        rows: list[Sequence[Any]] = [
            (
                erm_name(members, p),
                f"{figure1.stopping_iteration(run['objective'].to_numpy()):.0f}",
                f"{run['gap'].iloc[-1]:.1%}",
            )
            for (p, members), run in results.convergence.groupby(["p", "members"], sort=False)
        ]
        header = ["", "the paper's rule stops after", f"duality gap after {figure1.MAX_ITER} iterations"]
        sections += [f"Algorithm 2 on {results.large}:", markdown(header, rows)]
    if results.scaling is not None:
        seconds = figure1.training_times(results.scaling)[0]
        rows = [(size, *(f"{value:.2f}" for value in seconds.loc[size])) for size in seconds.index]
        rows.append(("exponent", *(f"{value:.2f}" for value in figure1.exponents(seconds))))
        runs = results.scaling["trial"].nunique()
        sections.append(f"Total CPU seconds of {runs} trainings on rows of {results.large}:")
        sections.append(markdown(["rows", *seconds.columns], rows))
    return sections


def _errors(sweep: pd.DataFrame) -> str:
    names = {("PSVM", 1): "PSVM at lambda"}
    names |= {("ERM", k): f"ERM{k}, Algorithm 2" for k in FIGURE_MEMBERS}
    names |= {("optimum", k): f"ERM{k}, optimum" for k in FIGURE_MEMBERS}
    names |= {("SVM", k): f"SVM at lambda/{k}" for k in FIGURE_MEMBERS}
    rows = []
    for (system, members), name in names.items():
        means = [figure1.curve(sweep, p, system, members).mean() for p in (2, 1)]
        rows.append((name, *(f"{mean[part]:.1f}" for mean in means for part in ("train", "test"))))
    header = ["mean over lambda, %", "L2, training", "L2, testing", "L1, training", "L1, testing"]
    return markdown(header, rows)
