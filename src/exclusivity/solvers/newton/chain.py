"""p = 1 with many rows, one cost after the other: what the last costs tell about the next.

The optimum moves little from cost to cost, and smoothly on the whole: its scores are extrapolated from the
last three costs without a look at the rows. How wrong that was at the last cost says how wide the band around
the margin has to be at this one (see ``bands``); usually a per cent of the rows, where a cold start needs
ten times as many. Where nothing can be guessed, truncated Newton goes on from the last solution.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from exclusivity._typing import Floats
from exclusivity.objective.problem import ERMProblem
from exclusivity.solvers.newton.bands import FixedRows, drive_bands, first_width
from exclusivity.solvers.newton.run import Point, Run
from exclusivity.solvers.newton.truncated import drive_truncated

# Times the root mean square of the last error; scores are sums of many terms, so 2.5 leave few rows out.
_ERRORS = 2.5
# Of the last step, for the first guess of all.
_FIRST_ERROR = 0.3
_LARGEST_SHARE = 2.0
_MOST_BANDS = 2
# For the step from the last solution, where it cannot be guessed (tried: 0.02 to 0.5).
_STEP_WIDTH = 0.03


@dataclass(frozen=True, eq=False)
class _Scored:
    """A point and its scores x . w + b."""

    point: Point
    scores: Floats

    def beyond(self, before: _Scored, share: float) -> _Scored:
        """Where this one leads when the step from ``before`` is repeated in part."""
        step = Point(self.point.weights - before.point.weights, self.point.intercept - before.point.intercept)
        return _Scored(self.point.moved(step, share), self.scores + share * (self.scores - before.scores))

    def distance(self, other: _Scored) -> float:
        """Root mean square of the difference of the scores."""
        difference = self.scores - other.scores
        return float(np.sqrt(difference @ difference / len(difference)))


class BandChain:
    """Solves cost after cost, remembering the last three solutions."""

    def __init__(self, problem: ERMProblem) -> None:
        self._fixed = FixedRows(problem)
        self._solved: list[_Scored] = []
        self._guessed: _Scored | None = None
        self._error = np.inf

    def remember(self, run: Run, reduced: ERMProblem, scores: Floats | None = None) -> None:
        """Take in a solution (with its scores where they are known), and see how good the guess was."""
        point = run.best
        if scores is None:
            scores = reduced.design.times(point.weights) + point.intercept
        found = _Scored(point, scores)
        if self._guessed is not None:
            self._error, self._guessed = found.distance(self._guessed), None
        self._solved = [*self._solved[-2:], found]

    def solve(self, run: Run, reduced: ERMProblem) -> bool:
        """Solve the next cost if what is known allows it; else solve it otherwise and :meth:`remember` it."""
        if not self._solved:
            return False
        guess = self._guessed = self._guess() if len(self._solved) > 1 else None
        width, scores = self._width(), None
        # Where the guess is worth less than a sample of the rows, the last solution is where to go on.
        if guess is not None and width <= first_width(reduced, guess.point, guess.scores):
            scores = drive_bands(
                run, reduced, guess.point, guess.scores, width, most=_MOST_BANDS, fixed=self._fixed
            )
        else:
            drive_truncated(run, reduced, self._solved[-1].point, width=_STEP_WIDTH)
        if run.is_over:
            self.remember(run, reduced, scores)
        return run.is_over

    def _width(self) -> float:
        """How wide the band around the margin of the next guess should be."""
        expected = self._error
        if not np.isfinite(expected) and len(self._solved) > 1:  # a good guess spares most of the way
            expected = _FIRST_ERROR * self._solved[-1].distance(self._solved[-2])
        return _ERRORS * expected

    def _guess(self) -> _Scored:
        """The last solution and a part of the last step: as much as that was of the step before."""
        *earlier, second, third = self._solved
        if not earlier:
            return third.beyond(second, 1.0)
        before = second.point.weights - earlier[0].point.weights
        after = third.point.weights - second.point.weights
        share = float(after @ before) / max(float(before @ before), np.finfo(float).tiny)
        return third.beyond(second, float(np.clip(share, 0.0, _LARGEST_SHARE)))
