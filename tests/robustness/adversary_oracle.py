"""The certificate by its definition: every set of features, every vote their members may give."""

from __future__ import annotations

from itertools import combinations

import numpy as np


def tallies(votes, n_classes):
    return np.array([np.sum(votes == c) for c in range(n_classes)])


def can_be_changed(votes, supports, n_classes, features):
    """Whether the members that use one of the features can take the lead from the winner, or draw level."""
    totals = tallies(votes, n_classes)
    winner = totals.argmax()
    reached = supports[:, list(features)].any(axis=1)
    for c in range(n_classes):
        if c != winner:
            after = tallies(np.where(reached, c, votes), n_classes)
            if after[c] >= after[winner]:
                return True
    return False


def exhaustive_radius(votes, supports, n_classes):
    """For one row: the largest r such that no r features change or tie the vote; -1 for a tie at once."""
    voting = supports.any(axis=1)
    votes, supports = votes[voting], supports[voting]
    n_features = supports.shape[1]
    for r in range(n_features + 1):
        if any(
            can_be_changed(votes, supports, n_classes, chosen)
            for chosen in combinations(range(n_features), r)
        ):
            return r - 1
    return n_features
