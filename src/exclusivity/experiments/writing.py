"""JSON, CSV and the report on disk, each file whole or not at all."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from io import StringIO
from pathlib import Path
from typing import Any

from exclusivity.experiments.report import render_page
from exclusivity.experiments.study import Study

Row = Mapping[str, Any]


def write_study(study: Study, out: Path) -> list[Path]:
    """Write a JSON and CSV file for every part, the verdicts and ``report.html``.

    Parameters
    ----------
    study : Study
        What :func:`reproduce` returned.
    out : Path
        The folder; made if it does not exist.

    Returns
    -------
    written : list of Path

    Examples
    --------
    >>> import tempfile
    >>> from exclusivity.experiments import Settings, collect, reproduce, write_study
    >>> settings = Settings(parts=("table2",), trials=1, quick=True)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     study = reproduce(settings, collect(["liver"]), Path(folder))
    ...     [path.name for path in write_study(study, Path(folder))]
    ['table2.json', 'table2.csv', 'table2_ratios.csv', 'verdicts.json', 'report.html']
    """
    out.mkdir(parents=True, exist_ok=True)
    written = []
    for part, document in study.documents.items():
        written.append(_write(out / f"{part}.json", _json({**document, **study.provenance})))
        for name, rows in csv_tables(part, document).items():
            written.append(_write(out / f"{name}.csv", _csv(rows)))
    verdicts = [verdict.as_json() for verdict in study.verdicts]
    written.append(_write(out / "verdicts.json", _json({"verdicts": verdicts, **study.provenance})))
    written.append(_write(out / "report.html", render_page(study)))
    return written


def csv_tables(part: str, document: Mapping[str, Any]) -> dict[str, list[Row]]:
    """File name -> rows of one part."""
    if part == "table1":
        cells = [*document["cells"], *document["ijcnn1"]]
        return {"table1": [_flat(cell) for cell in cells], "ranks": list(document["average_ranks"])}
    if part == "table2":
        return {"table2": [_flat(row) for row in document["rows"]], "table2_ratios": list(document["ratios"])}
    if part == "figure1":
        return _figure_tables(document)
    return {}


def _flat(row: Row) -> Row:
    """Without the raw trials, which are in the JSON file."""
    return {name: value for name, value in row.items() if name != "trials"}


def _figure_tables(document: Mapping[str, Any]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    sweep, convergence, scaling = (document[name] for name in ("sweep", "convergence", "scaling"))
    if sweep is not None:
        found["figure1_errors"] = [
            {
                **{name: curve[name] for name in ("p", "system", "members")},
                "lambda": cost,
                **{
                    f"{part}_{what}": curve[part][what][at]
                    for part in ("train", "test")
                    for what in ("mean", "std")
                },
            }
            for curve in sweep["curves"]
            for at, cost in enumerate(sweep["costs"])
        ]
    if convergence is not None:
        found["figure1_convergence"] = [
            {"p": run["p"], "members": run["members"], "iteration": step, "objective": value}
            for run in convergence["runs"]
            for step, value in enumerate(run["objective"], start=1)
        ]
    if scaling is not None:
        found["figure1_times"] = [
            {"method": curve["method"], "rows": size, "seconds": seconds}
            for curve in scaling["curves"]
            for size, seconds in zip(scaling["rows"], curve["seconds"], strict=True)
        ]
    return found


def _json(document: Mapping[str, Any]) -> str:
    # NaN is not JSON: better an error here than a file that nobody can read.
    return json.dumps(document, indent=1, allow_nan=False) + "\n"


def _csv(rows: Sequence[Row]) -> str:
    text = StringIO()
    writer = csv.DictWriter(text, fieldnames=_columns(rows), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _columns(rows: Iterable[Row]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row))


def _write(path: Path, text: str) -> Path:
    draft = path.with_name(f".{path.name}.part")
    draft.write_text(text, encoding="utf-8")
    os.replace(draft, path)
    return path
