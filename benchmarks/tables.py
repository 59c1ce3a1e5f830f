"""Tables and pictures of the runs: pandas in, Markdown and SVG out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

LEVELS = (1e-2, 1e-4, 1e-6)
CASE = ["workload", "loss", "cost"]
COLUMNS = [*CASE, "peer", "step", "repeat", "status", "wall", "cpu", "product_wall", "product_cpu"]
COLUMNS += ["extra_bytes", "objective", "own", "bound", "message"]
# A gap recomputed in another order of summation may differ in its last digits.
ROUNDING = 1e-12


def markdown(table: pd.DataFrame) -> str:
    """Return a Markdown table of a frame whose cells are text already, without its index.

    >>> print(markdown(pd.DataFrame({"solver": ["a"], "ms": ["1.5"]})))
    | solver | ms |
    |---|---|
    | a | 1.5 |
    """
    lines = [list(table.columns), *table.astype(str).to_numpy().tolist()]
    text = ["| " + " | ".join(map(str, line)) + " |" for line in lines]
    return "\n".join([text[0], "|" + "---|" * len(table.columns), *text[1:]])


def duration(seconds: float) -> str:
    """Return seconds as text with three digits; a dash where there are none.

    >>> [duration(x) for x in (0.01234, 1.5, 93.21, np.nan)]
    ['12.3 ms', '1.5 s', '93.2 s', '-']
    """
    if not np.isfinite(seconds):
        return "-"
    return f"{1e3 * seconds:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def level_name(level: float) -> str:
    """Return 1e-4 and not 0.0001."""
    return f"1e{round(np.log10(level))}"


def curves(runs: pd.DataFrame, clock: str = "wall") -> pd.DataFrame:
    """Return one row per case, peer and step: medians of times, the worst of the repeats in accuracy.

    ``excess`` is relative to the best objective of the case, ``gap`` to the solver's own bound.
    """
    done = runs[runs["status"] == "done"].copy()
    best = done.groupby(CASE)["objective"].transform("min")
    done["excess"] = done["objective"] / best - 1
    done["bound"] = done.groupby([*CASE, "peer", "step"])["bound"].transform("max")
    done["gap"] = (1 - done["bound"] / done["own"]).clip(lower=0)
    points = done.groupby([*CASE, "peer", "step"], sort=False, as_index=False).agg(
        seconds=(clock, "median"),
        product=(f"product_{clock}", "median"),
        excess=("excess", "max"),
        gap=("gap", "max"),
        extra_bytes=("extra_bytes", "max"),
        repeats=("repeat", "nunique"),
    )
    points["passes"] = points["seconds"] / points["product"].clip(lower=1e-9)
    return points


def time_to(points: pd.DataFrame, level: float, by: str = "excess") -> pd.Series:
    """Return per case and peer the fastest seconds among steps whose excess (or gap) is at most the level."""
    near = points[points[by] <= level + ROUNDING]
    return near.groupby([*CASE, "peer"])["seconds"].min()


def fastest(points: pd.DataFrame, level: float, ours: set[str]) -> pd.DataFrame:
    """Return per case the fastest peer that is not ours to a true excess, and its seconds."""
    times = time_to(points[~points["peer"].isin(ours)], level).reset_index()
    return times.loc[times.groupby(CASE)["seconds"].idxmin()].set_index(CASE)


def summary(points: pd.DataFrame, ours: set[str], own: str = "newton") -> pd.DataFrame:
    """Return one row per case and level: our time to a certified level, the fastest peer's, the ratio."""
    rows = []
    for level in LEVELS[1:]:
        mine, peers = time_to(points, level, "gap"), fastest(points, level, ours)
        for case in points[CASE].drop_duplicates().itertuples(index=False, name=None):
            seconds = mine.get((*case, own), np.nan)
            peer, theirs = peers.loc[case, ["peer", "seconds"]] if case in peers.index else ("none", np.nan)
            ratio = seconds / theirs
            rows.append(
                dict(zip(CASE, (*case[:2], f"{case[2]:.3g}"), strict=True))
                | {
                    "to": level_name(level),
                    f"{own}, certified": duration(seconds),
                    "fastest peer": f"{peer} {duration(theirs)}" if peer != "none" else "none gets there",
                    "ratio": f"{ratio:.2g}" if np.isfinite(ratio) else "",
                }
            )
    return pd.DataFrame(rows)


def case_table(points: pd.DataFrame, ours: set[str], n_bytes: int) -> pd.DataFrame:
    """Return one row per solver of one case: seconds to every level, as multiples of the fastest peer's."""
    best = {level: fastest(points, level, ours)["seconds"].min() for level in LEVELS}
    rows = []
    for peer, steps in points.groupby("peer", sort=False):
        row: dict[str, Any] = {"solver": peer}
        passes = ""
        for level in LEVELS:
            near = steps[steps["excess"] <= level + ROUNDING]
            if near.empty:
                row[f"to {level_name(level)}"] = "-"
                continue
            point = near.loc[near["seconds"].idxmin()]
            ratio = point["seconds"] / best[level]
            times = f" (x {ratio:.2g})" if np.isfinite(ratio) else ""
            row[f"to {level_name(level)}"] = duration(point["seconds"]) + times
            passes = f"{point['passes']:.3g} to {level_name(level)}"
        gap = steps["gap"].min()
        row |= {"passes": passes, "best excess": f"{steps['excess'].min():.1e}"}
        row |= {"gap": "" if np.isnan(gap) else f"{gap:.1e}"}
        rows.append(row | {"extra memory": f"{steps['extra_bytes'].max() / n_bytes:.2f} X"})
    return pd.DataFrame(rows)


def reference(runs: pd.DataFrame, case: tuple[str, str, float]) -> str:
    """Return the best objective of a case, who found it, and how far from the optimum it can be at most."""
    done = runs[(runs[CASE] == list(case)).all(axis=1) & (runs["status"] == "done")]
    best = done.loc[done["objective"].idxmin()]
    error = max(1 - done["bound"].max() / best["objective"], 0.0)
    proof = "" if np.isnan(error) else f", proven to be within {error:.0e} of the optimum"
    return f"Best objective {best['objective']:.8g} by {best['peer']}{proof}."


def endings(runs: pd.DataFrame) -> list[str]:
    """Return a sentence for every step that was ended at its limit or failed."""
    ended = runs[runs["status"].isin(["limit", "failed"])].drop_duplicates([*CASE, "peer", "step"])
    words = {"limit": "was ended at its time limit", "failed": "failed"}
    return [
        f"{run['peer']} {words[run['status']]} at step {run['step']:g}"
        + (f": {run['message']}" if run["status"] == "failed" else ".")
        for _, run in ended.iterrows()
    ]


def draw(points: pd.DataFrame, title: str, ours: set[str], path: Path) -> None:
    """Write the curves of true excess against seconds as SVG. Needs matplotlib."""
    from matplotlib.figure import Figure  # noqa: PLC0415 -- optional

    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.add_subplot()
    for number, (peer, steps) in enumerate(points.groupby("peer", sort=False)):
        line = steps.sort_values("seconds")
        style = (
            {"linewidth": 2.5, "linestyle": "-"} if peer in ours else {"linewidth": 1.2, "linestyle": "--"}
        )
        excess = line["excess"].clip(lower=1e-9)  # below, differences between objectives are rounding
        axes.plot(line["seconds"], excess, marker="os^vDP*"[number % 7], label=peer, **style)
    labels = {"xlabel": "seconds of one cold fit", "ylabel": "true relative excess of the objective"}
    axes.set(xscale="log", yscale="log", title=title, **labels)
    axes.grid(True, which="major", alpha=0.3)
    axes.legend(fontsize="small", loc="center left", bbox_to_anchor=(1.0, 0.5))
    figure.savefig(path, metadata={"Date": None})
