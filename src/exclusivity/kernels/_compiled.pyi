"""The compiled extension, as ``module.c`` has it."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

class Solver: ...  # opaque

CONVERGED: int
STALLED: int
STEP_LIMIT: int

def new_solver(
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
) -> Solver: ...
def advance(
    solver: Solver, goal: float, most_steps: int, is_cancelled: Callable[[], bool] = ..., /
) -> tuple[int, float, float, float, float, float, float]: ...
def write_iterate(solver: Solver, weights: Floats, slopes: Floats, dual: Floats, /) -> None: ...
def summarise_rows(
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
