"""The document as files: JSON, Markdown, and pictures where matplotlib is there."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any, Literal

from exclusivity.benchmark.bars import NO_VERDICT, judge
from exclusivity.benchmark.measures import CLOCKS, LEVELS, level_name, table_rows
from exclusivity.benchmark.plots import draw_case, file_name
from exclusivity.pages import can_plot, duration

_READING = (
    "Excess is (objective - best) / best; the objective, 1/2 |w|^2 + C sum_i max(0, 1 - y_i (w . x_i + b))^p "
    "with an intercept that is not penalised, is evaluated in float64 for every solver, at its own intercept "
    "or the best one for its weights, whichever is lower; best is the lowest objective of all solvers. "
    "Seconds ({clock} clock) are medians of cold fits in fresh processes; in brackets the multiple of the "
    "fastest peer's (newton, alm and psvm are ours, all others peers). A dash: not reached by any step of "
    "the ladder within the time limit. Passes: how many products X @ w take as long."
)


def write_report(document: dict[str, Any], folder: Path) -> list[Path]:
    """Write bench.json, bench.md and, with matplotlib, one SVG per case; the paths, Markdown first."""
    folder.mkdir(parents=True, exist_ok=True)
    write_json(document, folder)
    cases = document["cases"] if can_plot() else []
    pictures = [draw_case(case, document["peers"], folder) for case in cases]
    page = folder / "bench.md"
    page.write_text(markdown(document, pictures=can_plot()), encoding="utf-8")
    return [page, folder / "bench.json", *pictures]


def write_json(document: dict[str, Any], folder: Path) -> None:
    """Write bench.json, as a whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    part = folder / "bench.json.part"
    part.write_text(json.dumps(document | {"bars": judge(document)}, indent=1, allow_nan=False))
    part.replace(folder / "bench.json")


def markdown(document: dict[str, Any], *, pictures: bool = False) -> str:
    """The whole page: how it was measured, verdicts, one table per case, the solvers."""
    sections = [_front(document), bars_table(judge(document))]
    sections += [_case(document, case, pictures) for case in document["cases"]]
    sections.append(_solvers(document))
    return "\n\n".join(sections) + "\n"


def _front(document: dict[str, Any]) -> str:
    settings, machine = document["settings"], document["machine"]
    versions = ", ".join(f"{name} {text}" for name, text in document["versions"].items())
    lines = [
        f"`{command(settings)}`",
        "",
        f"{document['date']}, {machine['processor'] or machine['architecture']}, {settings['threads']} of "
        f"{machine['cpus']} CPUs and as many threads per run; {settings['repeats']} interleaved repeats, "
        f"at most {settings['limit']:g} s per fit"
        + (", one process per ladder." if settings["quick"] else ", one process per fit.")
        + f" {versions}.",
        "",
        _READING.format(clock=settings["clock"]),
    ]
    lines += [f"\nWithout {each['what']}: {each['why']}." for each in document["skipped"]]
    return "\n".join(lines)


def command(settings: dict[str, Any]) -> str:
    """The command line that repeats a run."""
    words = ["erm bench"]
    words += ["--quick"] if settings["quick"] else []
    for option, key in (("only", "workloads"), ("p", "powers"), ("cost", "costs"), ("peers", "peers")):
        if settings[key] is not None:  # None: every workload's own costs
            words += [f"--{option}", ",".join(str(value) for value in settings[key])]
    words += [f"--{key} {settings[key]:g}" for key in ("repeats", "limit", "threads")]
    words += [f"--clock {settings['clock']}"]
    return " ".join(words)


def bars_table(verdicts: Sequence[dict[str, Any]]) -> str:
    """The claims and what was found."""
    rows = []
    for each in verdicts:
        if each["outcome"] in NO_VERDICT:
            rows.append([each["statement"], _short(each["factor"]), "", "", each["outcome"]])
            continue
        found = f"{each['holding']} of {each['comparisons']}"
        found += f" ({each['unrivalled']} with no rival there)" if each["unrivalled"] else ""
        worst = "-" if each["ratio"] is None else _short(each["ratio"])
        rows.append(
            [
                each["statement"],
                _short(each["factor"]),
                f"{worst} ({each['worst']}), median {_short(each['middle'])}",
                found,
                f"**{each['outcome']}**",
            ]
        )
    return _table(["claim", "bar", "worst ratio", "comparisons that hold", "verdict"], rows)


def _case(document: dict[str, Any], case: dict[str, Any], pictures: bool) -> str:
    ours = {name for name, peer in document["peers"].items() if peer["ours"]}
    found = case["reference"]
    rows = [_line(row, case) for row in table_rows(case, ours)]
    header = [
        "solver",
        *(f"to {level_name(level)}" for level in LEVELS),
        "passes",
        "best excess",
        "gap",
        "extra memory",
    ]
    lines = [f"### {case['title']}: p = {case['p']}, C = {case['cost']:.3g}", ""]
    if found["objective"] is not None:
        error = "" if found["error"] is None else f", proven to be within {found['error']:.0e} of the optimum"
        lines += [f"Best objective {found['objective']:.8g} by {found['peer']}{error}.", ""]
    if rows:
        lines.append(_table(header, rows))
    if case["yardsticks"]:
        lines += ["", yardsticks_line(case["yardsticks"], document["settings"]["clock"])]
    lines += [f"\n{text}" for text in _endings(case)]
    if pictures:
        lines += ["", f"![excess against time]({file_name(case)})"]
    return "\n".join(lines)


def yardsticks_line(runs: Sequence[dict[str, Any]], clock: Literal["wall", "cpu"]) -> str:
    """Times of solvers that minimise something else, each until its own rule ends it.

    Examples
    --------
    >>> runs = [{"peer": "other", "status": "done", "step": 1e-4, "seconds": s} for s in (1.0, 4.0, 2.0)]
    >>> yardsticks_line(runs, "wall")
    'Other objectives, each until its own rule ends it, in no claim: other 2 s.'
    """
    times = []
    for name in dict.fromkeys(run["peer"] for run in runs):
        done = [run[CLOCKS[clock]] for run in runs if run["peer"] == name and run["status"] == "done"]
        times.append(f"{name} {duration(median(done)) if done else '-'}")
    return f"Other objectives, each until its own rule ends it, in no claim: {', '.join(times)}."


def _line(row: dict[str, Any], case: dict[str, Any]) -> list[str]:
    times = [_time(row["times"][level_name(level)]) for level in LEVELS]
    finest = list(row["passes"].items())[-1:]
    passes = "".join(f"{_short(number)} to {level}" for level, number in finest)
    gaps = [point["gap"] for point in case["curves"][row["peer"]] if point["gap"] is not None]
    memory = "-" if row["extra_bytes"] is None else f"{row['extra_bytes'] / case['bytes']:.2f} X"
    best = "-" if row["best_excess"] is None else f"{row['best_excess']:.1e}"
    return [row["peer"], *times, passes or "-", best, f"{min(gaps):.1e}" if gaps else "", memory]


def _time(found: dict[str, Any]) -> str:
    if found["seconds"] is None:
        return "-"
    return duration(found["seconds"]) + ("" if found["ratio"] is None else f" (x {_short(found['ratio'])})")


def _short(value: float | None) -> str:
    return "-" if value is None else f"{value:.2g}" if value < 100 else f"{value:.0f}"


def _endings(case: dict[str, Any]) -> list[str]:
    """A line for every run that did not end well."""
    told = {}
    for run in (*case["runs"], *case["yardsticks"]):
        key = (run["peer"], run["step"])
        if run["status"] == "limit":
            told[key] = f"{run['peer']} was ended at its time limit at step {run['step']:g}."
        elif run["status"] == "failed":
            told[key] = f"{run['peer']} failed at step {run['step']:g}: {run['message']}"
    return list(told.values())


def _solvers(document: dict[str, Any]) -> str:
    rows = [
        [
            name,
            peer["title"],
            peer["intercept"],
            f"{peer['step']} {', '.join(f'{s:g}' for s in peer['ladder'])}",
        ]
        for name, peer in document["peers"].items()
    ]
    return _table(["solver", "what it is", "its intercept", "ladder"], rows)


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
