"""Run-offs by their definition: every set of features, everything that their members may say."""

from __future__ import annotations

from itertools import combinations, combinations_with_replacement, permutations, product

import numpy as np

from exclusivity.voting.preferences import PairPreferences, pair_numbers


def possible_winners(votes, sides, n_classes):
    """The classes that win a run-off for some order of those that are tied.

    ``votes``: a class per member, or None. ``sides``: per member a function of two classes, which it prefers.
    """
    totals = [sum(vote == c for vote in votes) for c in range(n_classes)]
    winners = set()
    for c, f in combinations(range(n_classes), 2):
        others = [totals[d] for d in range(n_classes) if d not in (c, f)]
        if others and max(others) > min(totals[c], totals[f]):
            continue
        preferred = [side(c, f) for side in sides]
        for_c, for_f = preferred.count(c), preferred.count(f)
        winners |= {c} if for_c > for_f else {f} if for_f > for_c else {c, f}
    return winners


def by_ranking(ranking):
    return lambda c, f: None if ranking is None else min(c, f, key=ranking.index)


def winners_of_all_rankings(rankings, changed, n_classes):
    """What changed members can bring about, every ranking of each of them tried, and that it abstains."""
    winners = set()
    for new in product([None, *permutations(range(n_classes))], repeat=len(changed)):
        said = list(rankings)
        for member, ranking in zip(changed, new, strict=True):
            said[member] = ranking
        votes = [None if ranking is None else ranking[0] for ranking in said]
        winners |= possible_winners(votes, [by_ranking(ranking) for ranking in said], n_classes)
    return winners


def winners_of_all_votes(rankings, changed, n_classes):
    """The same, faster: changed members are alike but for their votes.

    Between finalists a changed member takes the side of its vote; one that voted for neither takes any.
    """
    kept = [ranking for member, ranking in enumerate(rankings) if member not in changed]
    before = [sum(r is not None and r[0] == c for r in kept) for c in range(n_classes)]
    duels = {
        (c, f): sum(0 if r is None else 1 if r.index(c) < r.index(f) else -1 for r in kept)
        for c, f in combinations(range(n_classes), 2)
    }
    winners = set()
    for new in combinations_with_replacement(range(n_classes), len(changed)):
        totals = [before[c] + new.count(c) for c in range(n_classes)]
        for c, f in combinations(range(n_classes), 2):
            others = [totals[d] for d in range(n_classes) if d not in (c, f)]
            if others and max(others) > min(totals[c], totals[f]):
                continue
            lead = duels[c, f] + new.count(c) - new.count(f)
            free = len(changed) - new.count(c) - new.count(f)
            winners |= {c} if lead + free >= 0 else set()
            winners |= {f} if lead - free <= 0 else set()
    return winners


def exhaustive_threats(rankings, supports, n_classes, search=winners_of_all_votes):
    """For one row and each class: the smallest number of features with which it can win or tie."""
    voting = supports.any(axis=1)
    rankings = [ranking for ranking, votes in zip(rankings, voting, strict=True) if votes]
    supports = supports[voting]
    n_features = supports.shape[1]
    threats = np.full(n_classes, n_features + 1)
    seen = set()
    for r in range(n_features + 1):
        for chosen in combinations(range(n_features), r):
            changed = np.flatnonzero(supports[:, list(chosen)].any(axis=1)).tolist()
            if tuple(changed) in seen:  # with fewer features, or as many
                continue
            seen.add(tuple(changed))
            winners = list(search(rankings, changed, n_classes))
            threats[winners] = np.minimum(threats[winners], r)
        if np.all(threats <= r):
            break
    return threats


def radius_of_one(threats, n_features):
    """Nothing but one winner, whatever r features do."""
    return min(int(np.sort(threats)[1]) - 1, n_features)


def preferences_of(rankings, n_classes):
    """The rankings of one row's members, None for none, as ballots."""
    pairs = list(combinations(range(n_classes), 2))
    votes = np.array([[-1 if ranking is None else ranking[0] for ranking in rankings]])
    duels = np.full((1, len(pairs), len(rankings)), -1, dtype=np.int8)
    for c, f in pairs:
        place = int(pair_numbers(np.array(c), np.array(f), n_classes))
        for member, ranking in enumerate(rankings):
            if ranking is not None:
                duels[0, place, member] = int(ranking.index(f) < ranking.index(c))
    return PairPreferences(votes, duels, n_classes)


def random_election(rng, *, overlap=False, abstain=0.1, n_members=None, n_classes=None):
    """Members that follow one order of the classes more or less, and which features they use."""
    n_members = int(rng.integers(1, 8)) if n_members is None else n_members
    n_classes = int(rng.integers(3, 6)) if n_classes is None else n_classes
    quality, noise = rng.normal(size=n_classes), rng.uniform(0.2, 3)
    rankings = [
        None
        if rng.random() < abstain
        else tuple(np.argsort(quality + noise * rng.normal(size=n_classes)).tolist())
        for _ in range(n_members)
    ]
    if overlap:
        return rankings, rng.random((n_members, int(rng.integers(2, 8)))) < rng.uniform(0.15, 0.5), n_classes
    supports = np.eye(n_members, dtype=bool)[
        :, rng.integers(n_members, size=int(rng.integers(1, 4))).tolist()
    ]
    supports = np.hstack([np.eye(n_members, dtype=bool), supports])
    supports[rng.random(n_members) < abstain] = False
    return rankings, supports, n_classes
