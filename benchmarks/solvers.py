"""Measure solvers of the linear SVM and of logistic regression against each other.

    python -m benchmarks.solvers --quick                              # small rows, few peers: two minutes
    python -m benchmarks.solvers --only dense-500k,ijcnn1 --cost 0.2  # two workloads at one cost, all peers
    python -m benchmarks.solvers --loss logistic --only text --cost 1

Writes runs.csv (every run, at once), tables.md and one picture per case into --out: see benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import platform
import sys
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

import pandas as pd
from scipy import sparse

from benchmarks import peers, tables
from benchmarks.measure import Plan, Runner, run_case
from benchmarks.workloads import WORKLOADS, find_workloads

PACKAGES = (
    "exclusivity",
    "numpy",
    "scipy",
    "scikit-learn",
    "liblinear-official",
    "snapml",
    "skglm",
    "rehline",
)
OURS = {name for name, peer in peers.PEERS.items() if peer.ours}
LOSSES = ("hinge", "squared_hinge", "logistic")


def words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def arguments(argv: list[str] | None) -> argparse.Namespace:
    """Parse the command line and check it before anything is measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    add = parser.add_argument
    add("--quick", action="store_true", help="small rows, few peers, one process per ladder")
    add("--only", type=words, metavar="WORKLOAD,...", help="workloads, or how they begin (text)")
    add("--peers", type=words, metavar="PEER,...", help=f"or how they begin, of {', '.join(peers.PEERS)}")
    add("--loss", type=words, default=list(LOSSES[:2]), help=f"of {', '.join(LOSSES)}")
    add("--cost", type=words, metavar="C,...", help="default: 2, 0.2, 1/15; text 0.1, 1, 10")
    add("--repeats", type=int, metavar="N", help="runs of every point (default: 3; --quick: 1)")
    add("--limit", type=float, metavar="S", help="seconds of a fit (default: 300; --quick: 3)")
    add("--threads", type=int, default=1, help="CPUs and BLAS threads of every run (default: 1)")
    add("--clock", choices=["wall", "cpu"], default="wall", help="what the tables count")
    add("--out", type=Path, default=Path("benchmark"), metavar="DIR", help="default: benchmark")
    args = parser.parse_args(argv)
    words_meant = args.peers or (peers.QUICK if args.quick else list(peers.PEERS))
    starts = {word: [name for name in peers.PEERS if name.startswith(f"{word}-")] for word in words_meant}
    args.peers = [name for word, found in starts.items() for name in (found or [word])]
    args.repeats = args.repeats or (1 if args.quick else 3)
    args.limit = args.limit or (3.0 if args.quick else 300.0)
    for what, found, known in (("peer", args.peers, peers.PEERS), ("loss", args.loss, LOSSES)):
        for name in found:
            if name not in known:
                parser.error(f"there is no {what} {name!r}; choose from {', '.join(known)}")
    try:
        args.workloads = find_workloads(args.only, quick=args.quick)
        args.cost = [float(text) for text in args.cost] if args.cost else None
    except ValueError as error:
        parser.error(str(error))
    return args


def front(command: str, args: argparse.Namespace, skipped: list[str]) -> str:
    """Return how it was measured."""
    found = []
    for package in PACKAGES:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    way = "ladder" if args.quick else "fit"
    text = (
        f"`{command}`\n\n{datetime.now(UTC).date()}, {platform.machine()}, {args.threads} CPUs and threads "
        f"per run; {args.repeats} interleaved repeats, at most {args.limit:g} s per fit, one process per "
        f"{way}; {args.clock} clock. {', '.join(found)}."
    )
    return text + "".join(f"\n\nWithout {what}." for what in skipped)


def page(runs: pd.DataFrame, sizes: dict[str, int], args: argparse.Namespace) -> list[str]:
    """Return the summary and one section per case; write its picture where matplotlib is there."""
    points = tables.curves(runs, args.clock)
    sections = [tables.markdown(tables.summary(points, OURS))]
    for case, steps in points.groupby(tables.CASE, sort=False):
        name, loss, cost = case
        title = f"{WORKLOADS[name].title}: {loss}, C = {cost:.3g}"
        lines = [
            f"### {title}\n\n{tables.reference(runs, case)}\n",
            tables.markdown(tables.case_table(steps, OURS, sizes[name])),
        ]
        chosen = (runs["workload"] == name) & (runs["loss"] == loss) & (runs["cost"] == cost)
        lines += [f"\n{text}" for text in tables.endings(runs[chosen])]
        if find_spec("matplotlib"):
            picture = f"{name}-{loss}-C{cost:.3g}.svg"
            tables.draw(steps, title, OURS, args.out / picture)
            lines.append(f"\n![true excess against seconds]({picture})")
        sections.append("\n".join(lines))
    return sections


def main(argv: list[str] | None = None) -> None:
    args = arguments(argv)
    absent = {name: peers.PEERS[name].absence() for name in args.peers}
    skipped = [f"{name}: {why}" for name, why in absent.items() if why]
    present = [name for name, why in absent.items() if not why]
    command = "python -m benchmarks.solvers " + " ".join(sys.argv[1:] if argv is None else argv)
    args.out.mkdir(parents=True, exist_ok=True)
    plan = Plan(args.quick, args.repeats, args.limit, args.threads)
    records, sizes = [], {}
    for name in args.workloads:
        try:
            X, y = WORKLOADS[name].make()
        except (OSError, ValueError) as error:
            skipped.append(f"{name}: {error}")
            continue
        sizes[name] = X.data.nbytes + X.indices.nbytes if sparse.issparse(X) else X.nbytes
        costs = args.cost or ((0.2,) if args.quick else WORKLOADS[name].costs)
        with Runner(X, y, args.threads) as runner:
            for loss, cost in ((loss, cost) for loss in args.loss for cost in costs):
                records += [{"workload": name} | run for run in run_case(runner, present, loss, cost, plan)]
                print(f"{name}, {loss}, C = {cost:.3g}: done", file=sys.stderr, flush=True)
                pd.DataFrame(records).to_csv(args.out / "runs.csv", index=False)
    print("\n".join(f"without {what}" for what in skipped), file=sys.stderr)
    runs = pd.DataFrame(records, columns=tables.COLUMNS)
    if not (runs["status"] == "done").any():
        sys.exit("nothing was measured")
    sections = page(runs, sizes, args)
    text = "\n\n".join([front(command, args, skipped), *sections]) + "\n"
    (args.out / "tables.md").write_text(text, encoding="utf-8")
    print(f"{sections[0]}\n\n{args.out / 'tables.md'}")


if __name__ == "__main__":
    main()
