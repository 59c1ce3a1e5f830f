"""Solvers of the linear SVM against each other: the objective is ours, in float64, for everyone."""

from exclusivity.benchmark.bars import NO_VERDICT as NO_VERDICT, Bar, judge
from exclusivity.benchmark.measures import reached as reached
from exclusivity.benchmark.peers import PEERS, Peer, Setting, Solution, find_peer
from exclusivity.benchmark.plan import Plan
from exclusivity.benchmark.report import markdown, write_json as write_json, write_report
from exclusivity.benchmark.runner import run_benchmark
from exclusivity.benchmark.workloads import WORKLOADS, Workload, find_workloads

__all__ = [
    "PEERS",
    "WORKLOADS",
    "Bar",
    "Peer",
    "Plan",
    "Setting",
    "Solution",
    "Workload",
    "find_peer",
    "find_workloads",
    "judge",
    "markdown",
    "run_benchmark",
    "write_report",
]
