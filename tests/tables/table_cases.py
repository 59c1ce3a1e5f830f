"""Mixed tables, as people have them."""

from __future__ import annotations

import numpy as np
import pandas as pd


def mixed_table(n_rows=200, seed=0, *, gaps=True):
    """Numbers, categories, booleans and dates with gaps, and classes that depend on most of them."""
    rng = np.random.default_rng(seed)
    age, income = rng.normal(50, 12, n_rows), rng.lognormal(10, 1, n_rows)
    colour = rng.choice(["red", "green", "blue", "grey"], n_rows, p=[0.4, 0.3, 0.25, 0.05])
    member = rng.random(n_rows) < 0.4
    visits = rng.poisson(1.0, n_rows)
    day = np.datetime64("2021-01-01") + rng.integers(0, 900, n_rows).astype("timedelta64[D]")
    score = (
        np.abs(age - 50) / 8
        - np.log(income) / 3
        + 1.5 * (colour == "red")
        + member
        + (visits > 1)
        + rng.normal(0, 0.5, n_rows)
    )
    table = pd.DataFrame(
        {"age": age, "income": income, "colour": colour, "member": member, "visits": visits, "day": day}
    )
    if gaps:
        for name in ("age", "colour", "day"):
            table.loc[rng.random(n_rows) < 0.1, name] = None
    return table, np.where(score > np.median(score), "yes", "no")
