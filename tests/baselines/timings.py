"""Fit times of the baselines on 150 rows of 60 features; printed for docs/baselines.md, asserted nowhere."""

from __future__ import annotations

from time import process_time

import numpy as np
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier

from exclusivity.baselines import DRMClassifier, PSVMClassifier, drep_prune

MEMBERS = (10, 30)


def milliseconds(run, n_repeats=9):
    """The median CPU time of several runs; other work on the machine counts little in it."""
    times = []
    for _ in range(n_repeats):
        start = process_time()
        run()
        times.append(process_time() - start)
    return 1000 * float(np.median(times))


def data():
    """Features in [-1, 1], as in the paper's sets; the classes overlap."""
    X, y = make_classification(150, 60, n_informative=20, flip_y=0.1, class_sep=0.5, random_state=0)
    return 2 * (X - X.min(axis=0)) / np.ptp(X, axis=0) - 1, y


def main():
    X, y = data()
    for p in (1, 2):
        print(f"{f'PSVM, p = {p}':<32} {milliseconds(lambda p=p: PSVMClassifier(p=p).fit(X, y)):8.1f} ms")
    for variant, mu in (("relaxed", 0.001), ("relaxed", 0.0), ("sphere", 0.001), ("sphere", 0.01)):
        for n_members in MEMBERS:
            clf = DRMClassifier(n_members, variant=variant, mu=mu, random_state=0)
            name = f"DRM {variant}, mu = {mu:g}, T = {n_members}"
            print(
                f"{name:<32} {milliseconds(lambda clf=clf: clf.fit(X, y)):8.1f} ms  {clf.n_iter_[0]} sweeps"
            )
    for n_members in MEMBERS:
        forest = RandomForestClassifier(n_members, max_depth=3, random_state=0).fit(X, y)
        name = f"DREP of {n_members} trees"
        print(f"{name:<32} {milliseconds(lambda forest=forest: drep_prune(forest, X, y)):8.1f} ms")


if __name__ == "__main__":
    main()
