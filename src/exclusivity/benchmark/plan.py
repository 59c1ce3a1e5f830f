"""What a benchmark runs, checked before it starts."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from exclusivity.benchmark.peers import Peer, find_peers
from exclusivity.benchmark.workloads import Workload, find_workloads
from exclusivity.experiments import available_cpus

QUICK_COSTS = (0.2,)


@dataclass(frozen=True)
class Plan:
    """The settings of a benchmark; None means what ``quick`` or the full run takes.

    Parameters
    ----------
    quick : bool
        Small workloads, few peers, short ladders, and one process per ladder instead of one per point.
    workloads, peers : tuple of str or None
    powers : tuple of int
    costs : tuple of float or None
        None: what each workload asks for.
    repeats : int or None
        Runs of every point; medians count.
    limit : float or None
        Seconds after which a fit is ended, and with it the finer steps of its ladder.
    threads : int
        CPUs and BLAS threads of every run.
    clock : {"wall", "cpu"}
        What the tables count; CPU seconds are fairer where the machine is shared. Both are kept.

    Examples
    --------
    >>> plan = Plan(quick=True, workloads=("small-dense",), peers=("newton", "sgd"))
    >>> [workload.name for workload in plan.found_workloads()], plan.run_repeats
    (['small-dense'], 1)
    """

    quick: bool = False
    workloads: tuple[str, ...] | None = None
    peers: tuple[str, ...] | None = None
    powers: tuple[int, ...] = (1, 2)
    costs: tuple[float, ...] | None = None
    repeats: int | None = None
    limit: float | None = None
    threads: int = 1
    clock: Literal["wall", "cpu"] = "wall"

    def __post_init__(self) -> None:
        if not self.powers or set(self.powers) - {1, 2}:
            raise ValueError(f"p must be 1 or 2, the powers that peers know; got {self.powers}.")
        for name in ("repeats", "limit", "costs"):
            value = getattr(self, name)
            for number in value if isinstance(value, tuple) else (value,):
                if number is not None and not 0 < number < float("inf"):
                    raise ValueError(f"{name} must be positive and finite; got {number!r}.")
        if not 1 <= self.threads <= available_cpus():
            raise ValueError(f"threads must lie between 1 and {available_cpus()}, the CPUs here.")
        if self.clock not in ("wall", "cpu"):
            raise ValueError(f"clock must be 'wall' or 'cpu'; got {self.clock!r}.")
        self.found_workloads()
        self.found_peers()

    def found_workloads(self) -> tuple[Workload, ...]:
        """The workloads."""
        return find_workloads(self.workloads, quick=self.quick)

    def found_peers(self) -> dict[str, Peer]:
        """The peers by the names they were asked for."""
        return find_peers(self.peers, quick=self.quick)

    def costs_of(self, workload: Workload) -> tuple[float, ...]:
        """The costs that are run on a workload.

        Examples
        --------
        >>> plan = Plan(workloads=("text-words", "ijcnn1"))
        >>> [plan.costs_of(workload) for workload in plan.found_workloads()]
        [(0.1, 1.0, 10.0), (2.0, 0.2, 0.06666666666666667)]
        """
        return self.costs or (QUICK_COSTS if self.quick else workload.costs)

    @property
    def run_repeats(self) -> int:
        """The number of runs of every point."""
        return self.repeats or (1 if self.quick else 3)

    @property
    def run_limit(self) -> float:
        """The time limit of a fit, in seconds."""
        return self.limit or (3.0 if self.quick else 300.0)

    def document(self) -> dict[str, Any]:
        """The settings as they are run."""
        return asdict(self) | {
            "workloads": [workload.name for workload in self.found_workloads()],
            "peers": list(self.found_peers()),
            "powers": list(self.powers),
            "costs": list(self.costs) if self.costs else None,
            "repeats": self.run_repeats,
            "limit": self.run_limit,
        }
