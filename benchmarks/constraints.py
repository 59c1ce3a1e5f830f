"""What bounds cost: the time of a fit with signs and boxes over that of the free fit, and accuracy on german.

    OPENBLAS_NUM_THREADS=1 EXCLUSIVITY_DATA=DIR python benchmarks/constraints.py

Both fits end with the proof of a relative gap of 1e-6. "signs": every second weight at least 0, the others at
most 0, so that about half of them are at their bound; "boxes": all weights within half of the
largest free one.
Processor time, medians of interleaved repeats.

    EXCLUSIVITY_DATA=DIR python benchmarks/constraints.py --accuracy

What monotone directions cost on german: the same hundred random splits for all.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
from sklearn.model_selection import StratifiedShuffleSplit, cross_validate

from exclusivity import ERMClassifier
from exclusivity.datasets import load_dataset

LOSSES = {"p = 1": {"p": 1}, "p = 2": {"p": 2}, "logistic": {"loss": "logistic"}}
WORKLOADS = ("500,000 x 50", "ijcnn1")
TOL = 1e-6
# The score of bad credit on german: it falls with the checking account, savings, years employed, years in the
# home and age, and rises with months, amount, property that is worth less, credits and people to support.
DIRECTIONS = {0: -1, 1: 1, 3: 1, 4: -1, 5: -1, 7: -1, 8: 1, 9: -1, 11: 1, 12: 1}
# The credit history counts up to "critical"; in these data such customers pay better.
HISTORY = {2: 1}
TRAINED_ON = (900, 100)


def data(name):
    """Dense rows and labels."""
    if name == "ijcnn1":
        bunch = load_dataset(name)
        return bunch.data, bunch.target
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500_000, 50))
    return X, (X[:, :5].sum(axis=1) + 2 * rng.normal(size=500_000) > 0).astype(int)


def bounds_of(X, y, loss):
    """Parameters of the bounded fits, by name."""
    free = ERMClassifier(1, C=1.0, tol=1e-3, **loss).fit(X, y)
    half = float(np.abs(free.coef_).max()) / 2
    signs = np.where(np.arange(X.shape[1]) % 2 == 0, 1, -1)
    return {"free": {}, "signs": {"monotonic_cst": signs}, "boxes": {"coef_bounds": (-half, half)}}


def measured(X, y, settings):
    """Processor seconds, and the fitted model."""
    model = ERMClassifier(1, C=1.0, tol=TOL, **settings)
    start = time.process_time()
    model.fit(X, y)
    return time.process_time() - start, model


def run(name, n_repeats):
    """One line per loss: the free time, and the ratios of the bounded ones."""
    X, y = data(name)
    for label, loss in LOSSES.items():
        kinds = bounds_of(X, y, loss)
        times = {kind: [] for kind in kinds}
        bound = {}
        for _ in range(n_repeats):
            for kind, settings in kinds.items():
                seconds, model = measured(X, y, {**loss, **settings})
                times[kind].append(seconds)
                w = model.coef_[0]
                limit = settings.get("coef_bounds", (0, np.inf))[1]
                bound[kind] = int(np.count_nonzero((w == 0) | (np.abs(w) == limit)))
                if not model.converged_.all():
                    raise RuntimeError(f"{name}, {label}, {kind}: gap {model.dual_gap_[0]:.1e}")
        medians = {kind: float(np.median(found)) for kind, found in times.items()}
        ratios = ", ".join(
            f"{kind} {medians[kind] / medians['free']:.2f} ({bound[kind]} of {X.shape[1]} at a bound)"
            for kind in ("signs", "boxes")
        )
        print(f"{name}, {label}: free {medians['free']:.3f} s; times that: {ratios}", flush=True)


def accuracy():
    """Mean scores on held-out rows, and mean differences of the same splits with their standard errors."""
    bunch = load_dataset("german")
    X, y = bunch.data, bunch.target
    scoring = ("accuracy", "roc_auc", "neg_log_loss")
    for n_train in TRAINED_ON:
        splits = StratifiedShuffleSplit(100, train_size=n_train, test_size=100, random_state=0)
        found = {}
        for kind, directions in {"free": {}, "monotone": DIRECTIONS, "history": DIRECTIONS | HISTORY}.items():
            signs = np.zeros(X.shape[1])
            signs[list(directions)] = list(directions.values())
            model = ERMClassifier(1, C=1.0, loss="logistic", monotonic_cst=signs)
            scores = cross_validate(model, X, y, cv=splits, scoring=scoring)
            found[kind] = {name: scores[f"test_{name}"] for name in scoring}
        for name in scoring:
            line = f"trained on {n_train}, {name}: free {found['free'][name].mean():.4f}"
            for kind in ("monotone", "history"):
                difference = found[kind][name] - found["free"][name]
                line += f"; {kind} {difference.mean():+.4f} +- {difference.std(ddof=1) / 10:.4f}"
            print(line)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--accuracy", action="store_true", help="german instead of times")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if arguments.accuracy:
        accuracy()
        return
    for name in WORKLOADS:
        run(name, arguments.repeats)


if __name__ == "__main__":
    main()
