"""``erm demo``: the ERM beside the SVMs it should be compared with, on data that ships with scikit-learn."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any

from exclusivity.cli import options, output
from exclusivity.cli.errors import UsageError

if TYPE_CHECKING:
    from exclusivity import ERMClassifier

SUMMARY = "train an ERM on bundled data and compare it with one SVM"
DESCRIPTION = (
    "Trains the exclusivity regularised machine on half of the breast cancer data that ships with "
    "scikit-learn, by the paper's algorithm and to its certified optimum, next to one SVM of the same cost C "
    "and one of the matched cost C / members."
)


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    label: str
    model: ERMClassifier
    error: float
    seconds: float

    def cells(self) -> list[str]:
        """The line as text."""
        return [
            self.label,
            f"{self.error:.1%}",
            f"{self.model.objective_[0]:.6g}",
            f"{self.model.dual_gap_[0]:.1e}",
            f"{self.model.n_iter_[0]}",
            f"{1000 * self.seconds:.0f} ms",
        ]


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--members", type=int, default=10, metavar="K", help="members (default: 10)")
    parser.add_argument(
        "--cost", type=options.POSITIVE, default=2.0, metavar="C", help="cost of the loss (default: 2)"
    )
    parser.add_argument(
        "--p", type=options.POWER, default=2.0, metavar="P", help="power of the hinge (default: 2)"
    )
    parser.add_argument(
        "--seed", type=options.FROM_ZERO, default=0, metavar="S", help="seed of the split (default: 0)"
    )


def run(args: argparse.Namespace) -> None:
    """Train, print the table, explain it."""
    if args.members < 2:
        raise UsageError(f"--members must be at least 2: an ensemble is compared here; got {args.members}.")
    data = _split(args.seed)
    members, cost = args.members, args.cost
    rows = [
        _train(f"ERM, {members} members, the paper's algorithm", data, args.p, members, cost, "paper"),
        _train(f"ERM, {members} members, certified", data, args.p, members, cost, "auto"),
        _train(f"SVM at cost C = {cost:g}", data, args.p, 1, cost, "auto"),
        _train(f"SVM at cost C/{members} = {cost / members:.4g}", data, args.p, 1, cost / members, "auto"),
    ]
    header = ["model", "test error", "objective", "duality gap", "iterations", "time"]
    output.print_table(header, [row.cells() for row in rows])
    print()
    print(explanation(rows, data, members))


def _split(seed: int) -> tuple[Any, Any, Any, Any]:
    from sklearn.datasets import load_breast_cancer
    from sklearn.model_selection import train_test_split
    from sklearn.preprocessing import StandardScaler

    X, y = load_breast_cancer(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=seed, stratify=y)
    scaler = StandardScaler().fit(X_train)
    return scaler.transform(X_train), scaler.transform(X_test), y_train, y_test


def _train(label: str, data: tuple[Any, ...], p: float, members: int, cost: float, solver: str) -> Row:
    from exclusivity import ERMClassifier

    X_train, X_test, y_train, y_test = data
    model = ERMClassifier(members, C=cost, p=p, solver=solver, tol=1e-6)
    started = perf_counter()
    model.fit(X_train, y_train)
    seconds = perf_counter() - started
    return Row(label, model, 1 - model.score(X_test, y_test), seconds)


def explanation(rows: list[Row], data: tuple[Any, ...], members: int) -> str:
    """Two lines on what the table shows, from its own numbers."""
    paper, certified, _, matched = rows
    X_test = data[1]
    same = int((certified.model.predict(X_test) == matched.model.predict(X_test)).sum())
    ratio = certified.model.objective_[0] / matched.model.objective_[0]
    excess = paper.model.objective_[0] / certified.model.objective_[0] - 1
    return (
        f"The certified ERM is the SVM at cost C/{members}: {same} of {len(X_test)} test predictions agree, "
        f"objectives differ by the factor {ratio:.4f} = {members}^2.\n"
        f"The paper's algorithm ends {excess:.1%} above the optimum. The duality gap bounds that distance "
        "without knowing the optimum."
    )
