"""The whole reproduction: what to run, what to make of it, what to write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from exclusivity.experiments import curves, tables
from exclusivity.experiments.checkpoint import Checkpoint
from exclusivity.experiments.figure1 import lambda_grid
from exclusivity.experiments.methods import METHODS
from exclusivity.experiments.progress import Progress
from exclusivity.experiments.provenance import machine, today, versions
from exclusivity.experiments.published import FIGURE_MEMBERS, N_TRAIN
from exclusivity.experiments.runner import run_all
from exclusivity.experiments.sets import LARGE, SWEEP, Collection, ExperimentSet
from exclusivity.experiments.tasks import Result, Task
from exclusivity.experiments.theory import CHECKS
from exclusivity.experiments.verdicts import Verdict, all_verdicts

PARTS = ("figure1", "table1", "table2", "theory")
"""What can be run alone."""

CHECKPOINT = "checkpoint.jsonl"

_THEORY_SETS = ("sonar", "german")
# Panel 3: past the last stop by the paper's rule on ijcnn1.
_MAX_ITER = 120
_QUICK_TRIALS, _FULL_TRIALS = 3, 10


@dataclass(frozen=True)
class Settings:
    """What decides the numbers, and how many of them there are.

    Attributes
    ----------
    parts : tuple of str
        Of :data:`PARTS`.
    trials : int
        Random splits per data set, and runs per point of panel 4.
    seed : int
    quick : bool
        Fewer costs and sizes.
    jobs : int
        Processes; does not change results.
    """

    parts: tuple[str, ...] = PARTS
    trials: int = _FULL_TRIALS
    seed: int = 0
    quick: bool = False
    jobs: int = 1

    def __post_init__(self) -> None:
        unknown = sorted(set(self.parts) - set(PARTS))
        if unknown or not self.parts:
            raise ValueError(f"parts must be some of {', '.join(PARTS)}; got {self.parts!r}.")
        for name, least in (("trials", 1), ("seed", 0), ("jobs", 1)):
            value = getattr(self, name)
            if not isinstance(value, int) or value < least:
                raise ValueError(f"{name} must be a whole number of at least {least}; got {value!r}.")

    @property
    def costs(self) -> list[float]:
        """The values of lambda of panels 1 and 2."""
        return lambda_grid(6 if self.quick else 16)

    def sizes(self, n_rows: int) -> list[int]:
        """Rows of panel 4: halved again and again from all of them.

        Parameters
        ----------
        n_rows : int
            Rows of the data set.
        """
        return sorted(n_rows // 2**power for power in range(3 if self.quick else 5))


@dataclass(frozen=True)
class Study:
    """The outcome of a run.

    Attributes
    ----------
    settings : Settings
    documents : dict
        ``table1``, ``table2``, ``figure1``, ``theory``: what was run, as plain JSON.
    verdicts : list of Verdict
    provenance : dict
        Seed, versions, machine, data sets and what is missing.
    """

    settings: Settings
    documents: Mapping[str, dict[str, Any]]
    verdicts: Sequence[Verdict]
    provenance: Mapping[str, Any]


def default_trials(quick: bool) -> int:
    """How many trials a run has unless told otherwise."""
    return _QUICK_TRIALS if quick else _FULL_TRIALS


def reproduce(
    settings: Settings, collection: Collection, out: Path, *, progress: Progress | None = None
) -> Study:
    """Run what is not in the checkpoint of the folder ``out`` yet, and draw the conclusions.

    Parameters
    ----------
    settings : Settings
        What to run.
    collection : Collection
        The data; see :func:`exclusivity.experiments.sets.collect`.
    out : Path
        The folder of the checkpoint; made if it does not exist.
    progress : Progress, default=None
        None: silent.

    Returns
    -------
    study : Study

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from exclusivity.experiments import Settings, collect, reproduce
    >>> settings = Settings(parts=("table2",), trials=1, quick=True)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     study = reproduce(settings, collect(["liver"]), Path(folder))
    >>> [verdict.key for verdict in study.verdicts]
    ['erm-faster', 'drm-2000']
    """
    plan = Plan(settings, collection)
    checkpoint = Checkpoint(out / CHECKPOINT)
    results = run_all(
        plan.tasks(), collection.sets, checkpoint, jobs=settings.jobs, progress=progress or Progress()
    )
    documents = plan.documents(results)
    return Study(settings, documents, all_verdicts(documents), _provenance(settings, collection))


def _provenance(settings: Settings, collection: Collection) -> dict[str, Any]:
    decisive = {name: value for name, value in asdict(settings).items() if name not in ("parts", "jobs")}
    return {
        **decisive,
        "splits": "numpy.random.default_rng([seed, crc32(name of the data set), number of the trial])",
        "versions": versions(),
        "machine": machine(),
        "date": today(),
        "datasets": {
            name: {"rows": data.shape[0], "features": data.shape[1], "source": data.source}
            for name, data in collection.sets.items()
        },
        "missing": dict(collection.missing),
    }


class Plan:
    """Which tasks there are, and which results belong where."""

    def __init__(self, settings: Settings, collection: Collection) -> None:
        self.settings, self.collection = settings, collection

    def tasks(self) -> list[Task]:
        """Everything to run; slow tasks first, so that processes end together."""
        found: list[Task] = []
        if "figure1" in self.settings.parts:
            found += [task for tasks in reversed(self._scaling().values()) for task in tasks]
            found += list(self._convergence().values())
            found += self._sweep()
        if "theory" in self.settings.parts:
            found += [task for tasks in self._theory().values() for task in tasks.values()]
        if {"table1", "table2"} & set(self.settings.parts):
            found += [task for tasks in self._trials().values() for task in tasks]
        return found

    def documents(self, results: Mapping[str, Result]) -> dict[str, dict[str, Any]]:
        """The parts that were asked for, from the results of all tasks."""
        found: dict[str, dict[str, Any]] = {}
        parts = self.settings.parts
        if {"table1", "table2"} & set(parts):
            trials = {name: [results[task.key] for task in tasks] for name, tasks in self._trials().items()}
            large = trials.pop(LARGE, [])
            if "table1" in parts:
                found["table1"] = tables.table1(trials, large)
            if "table2" in parts and trials:
                found["table2"] = tables.table2(trials)
        if "figure1" in parts:
            found["figure1"] = self._figure1(results)
        if "theory" in parts:
            found["theory"] = {
                "checks": {
                    check: {name: results[task.key] for name, task in tasks.items()}
                    for check, tasks in self._theory().items()
                }
            }
        return found

    def _figure1(self, results: Mapping[str, Result]) -> dict[str, Any]:
        sweep, convergence, scaling = self._sweep(), self._convergence(), self._scaling()
        large = self.collection.large()
        name = "" if large is None else large.name
        return {
            "sweep": curves.sweep(SWEEP, self.settings.costs, [results[task.key] for task in sweep])
            if sweep
            else None,
            "convergence": curves.convergence(
                name, {key: results[task.key] for key, task in convergence.items()}
            )
            if convergence
            else None,
            "scaling": curves.scaling(
                name, {size: [results[task.key] for task in tasks] for size, tasks in scaling.items()}
            )
            if scaling
            else None,
        }

    def _task(self, kind: str, data: ExperimentSet, **params: object) -> Task:
        return Task(kind, {"dataset": data.name, "fingerprint": data.fingerprint, **params})

    def _trials(self) -> dict[str, list[Task]]:
        sets = self.collection.sets
        names = [*self.collection.table1(), *([LARGE] if LARGE in sets else [])]
        shared = {"seed": self.settings.seed, "n_train": N_TRAIN, "methods": list(METHODS)}
        return {
            name: [
                self._task("trial", sets[name], trial=trial, **shared)
                for trial in range(self.settings.trials)
            ]
            for name in names
        }

    def _sweep(self) -> list[Task]:
        data = self.collection.sets.get(SWEEP)
        if data is None:
            return []
        shared = {"seed": self.settings.seed, "costs": self.settings.costs}
        return [self._task("sweep", data, trial=trial, **shared) for trial in range(self.settings.trials)]

    def _convergence(self) -> dict[tuple[int, int], Task]:
        data = self.collection.large()
        if data is None:
            return {}
        return {
            (p, k): self._task("convergence", data, p=p, members=k, max_iter=_MAX_ITER)
            for p in (2, 1)
            for k in FIGURE_MEMBERS
        }

    def _scaling(self) -> dict[int, list[Task]]:
        data = self.collection.large()
        if data is None:
            return {}
        runs = range(1 if self.settings.quick else self.settings.trials)
        return {
            size: [self._task("scaling", data, seed=self.settings.seed, trial=run, rows=size) for run in runs]
            for size in self.settings.sizes(data.shape[0])
        }

    def _theory(self) -> dict[str, dict[str, Task]]:
        sets, seed = self.collection.sets, self.settings.seed
        chosen = [name for name in _THEORY_SETS if name in sets] or self.collection.table1()[:1]
        if self.settings.quick:
            chosen = chosen[:1]
        large = self.collection.large()
        found = {}
        for check in CHECKS:
            names = list(chosen)
            if check == "splitting" and large is not None and large.name not in names:
                names.append(large.name)
            found[check] = {name: self._task("theory", sets[name], check=check, seed=seed) for name in names}
        return found
