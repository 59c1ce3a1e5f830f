"""What a run-off asks of members: votes in the first round, and the side of the true class in every duel.

Let y be the true class of a row, v_c the votes of class c, and L_c = 2 u_yc - K the lead of y over c among
all K members. One broken feature changes one member. It takes y the victory only if (A) two rivals push it
out of the final, closing leads g <= h of v_y over them: a member closes each by 2 at most and both together
by 3; or if (B) a rival c beats it there, closing L_c by 2, and gets there, closing its distance D_c to the
best third class by 2. In units of 2 per member the lead of y is therefore

    min( max(h, 2 (g + h) / 3),  min_c max(L_c, D_c) ),

g and h the two smallest leads, and a row is certified at r if that exceeds 2 r.
"""

from __future__ import annotations

import numpy as np

from exclusivity._typing import Floats, Ints


def duels_of_truth(scores: Floats, truth: Ints, out: Floats) -> None:
    """Half the difference of the true class's score and every other, cut off at -1 and 1, into ``out``.

    ``scores`` are (members, classes, rows), in units in which a vote is decided by a difference of 2.
    """
    own = np.take_along_axis(scores, truth[None, None, :], axis=1)
    np.subtract(own, scores, out=out)
    out *= 0.5
    np.clip(out, -1.0, 1.0, out=out)


def sides_of_truth(scores: Floats, truth: Ints, slack: Floats) -> Floats:
    """1 where members prefer the true class, -1 for the other, or nearly; (..., classes, rows)."""
    own = scores[..., truth, np.arange(len(truth))][..., None, :]
    return np.where(own - scores > slack, 1.0, -1.0)


def runoff_leads(totals: Floats, truth: Ints) -> tuple[Floats, Floats]:
    """The lead of the true class, and its smallest lead in a duel.

    Parameters
    ----------
    totals : ndarray of shape (..., 2 n_classes, rows)
        Votes of all classes, then leads of the true class in its duels. Overwritten.
    truth : ndarray of shape (rows,)
    """
    n_classes, rows = totals.shape[-2] // 2, np.arange(len(truth))
    own = totals[..., truth, rows]
    totals[..., truth, rows], totals[..., n_classes + truth, rows] = -np.inf, np.inf
    rivals, duels = totals[..., :n_classes, :], totals[..., n_classes:, :]
    best = rivals.max(axis=-2, keepdims=True)
    is_best = rivals == best
    second = np.where(is_best, -np.inf, rivals).max(axis=-2, keepdims=True)
    second = np.where(is_best.sum(axis=-2, keepdims=True, dtype=np.int32) > 1, best, second)
    least, next_least = own - best[..., 0, :], own - second[..., 0, :]
    pushed_out = np.maximum(next_least, (least + next_least) * (2 / 3))
    distance = np.where(is_best, second, best)
    distance -= rivals
    beaten = np.maximum(duels, distance, out=distance).min(axis=-2)
    return np.minimum(pushed_out, beaten), duels.min(axis=-2)
