"""The compiled walk, as ``module.c`` has it."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

class Walk: ...  # opaque

MOST_WALKS: int
IS_CLOSE: int
SEEMS_CLOSE: int
IS_SLOW: int
IS_ON_ITS_WAY: int

def start_walk(
    numbers: object,
    columns: object,
    starts: object,
    labels: Floats,
    costs: Floats,
    weights: Floats,
    centre: Floats,
    mean_squares: Floats | None,
    intercept: float,
    stiffness: float,
    top: float,
    width: float,
    has_intercept: bool,
    /,
) -> Walk: ...
def go_on(
    walks: tuple[Walk, ...],
    goals: tuple[float, ...],
    most_steps: int,
    is_cancelled: Callable[[], bool] = ...,
    /,
) -> list[tuple[int, float, float, float, float, float, float]]: ...
def write_walk(walk: Walk, weights: Floats, slopes: Floats, dual: Floats, /) -> None: ...
def survey_rows(
    numbers: object,
    columns: object,
    starts: object,
    largest: Floats,
    row_squares: Floats,
    feature_squares: Floats,
    /,
) -> None: ...
def additive_pass(
    left: object,
    weight: Floats,
    cost: Floats,
    points: Floats,
    reach: object,
    low: Floats,
    shifted: object,
    group: object,
    radii: object,
    shares: Floats,
    own: Floats,
    moved: Floats,
    totals: Floats,
    hessian: Floats,
    intercept: float,
    eps: float,
    loss: int,
    n_groups: int,
    step: int,
    /,
) -> None: ...
