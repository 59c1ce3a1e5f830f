"""``erm fit --dask`` on tables as they come: words, dates and gaps, block by block."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from exclusivity.cli import tables, training
from exclusivity.cli.data import Source
from exclusivity.cli.files import UsageError

if TYPE_CHECKING:
    from exclusivity.dask import ColumnReader, Evidence, FileLayout
    from exclusivity.io._cells import Cells
    from exclusivity.tables import TableEncoder

Pass = Callable[[Callable[[Any], list[Any]]], list[Any]]
"""Asks a question of every part of the files, and adds up the answers."""


@dataclass(frozen=True, eq=False)
class Learned:
    """What two passes over the files tell about a table.

    Attributes
    ----------
    encoder : TableEncoder
        Fitted.
    readers : list of ColumnReader
        How workers read the columns.
    columns : list of dict
        What was found, for people.
    """

    encoder: TableEncoder
    readers: list[ColumnReader]
    columns: list[dict[str, Any]]


def learn(
    args: argparse.Namespace,
    source: Source,
    columns: Any,
    layout: FileLayout,
    evidence: Evidence,
    ask: Pass,
) -> Learned:
    """Tell what the columns hold, by the rules for tables in memory, and learn to encode them.

    Parameters
    ----------
    args : Namespace
    source : Source
        The first file, by the title of all of them.
    columns : list of str or int
        All columns of the files.
    layout : FileLayout
    evidence : Evidence
        What the first pass found.
    ask : callable
        For a second pass, with the statistics of all columns.
    """
    from exclusivity.dask import summarise_part
    from exclusivity.tables import NumberSummary, TableEncoder, learn_from_summaries

    titles = training.feature_titles(layout.reading, columns)
    wanted = tables.wanted_kinds(args, columns, source.title)
    find = partial(_find, layout=layout, evidence=evidence, ask=ask)
    kinds, found = _kinds(args, source, titles, wanted, evidence, find)
    readers = _readers(titles, kinds, found, wanted)
    *summaries, lost = ask(partial(summarise_part, layout=layout, readers=readers))
    n_rows = summaries[0].n_rows
    found = [replace(read, n_lost=int(count)) for read, count in zip(found, lost, strict=True)]
    tables.warn_of_losses(titles, found, n_rows)
    chosen = tables.said_to_be_categories(titles, wanted)
    encoder = learn_from_summaries(
        TableEncoder(
            training.numeric(args),
            categorical=chosen,
            feature_groups=training.read_groups(args.groups, layout.names, len(titles)),
        ),
        kinds,
        summaries,
    )
    tables.remember(encoder, found)
    tables.warn_of_levels(encoder, titles, n_rows)
    named = [isinstance(summary, NumberSummary) and summary.names_rows for summary in summaries]
    training.warn_of_identifiers([place for place, is_so in enumerate(named) if is_so], titles, n_rows)
    return Learned(encoder, readers, tables.document(encoder, titles, [read.note for read in found]))


def _find(column: int, row: int, layout: FileLayout, evidence: Evidence, ask: Pass) -> str:
    """Where a cell stands first, by another pass: the evidence is distinct cells, without their rows."""
    from exclusivity.dask import places_of_text

    text = evidence.columns[column][0][row]
    (places,) = ask(partial(places_of_text, layout=layout, column=column, text=text))
    path, line = places[0]
    return f"{path}, line {line}"


def _kinds(
    args: argparse.Namespace,
    source: Source,
    titles: list[Any],
    wanted: dict[Any, str],
    evidence: Evidence,
    find: tables.Find,
) -> tuple[list[str], list[Cells]]:
    """What columns hold, and how their numbers are written."""
    import numpy as np

    from exclusivity.dask import kinds_of
    from exclusivity.io._cells import Cells
    from exclusivity.io._formats import RawTable
    from exclusivity.tables import kind_of

    tables.check_wanted(wanted, titles)
    if not any(texts for texts, _ in evidence.columns):
        if args.decimal is not None:
            raise UsageError(f"--decimal is for text, but {source.title} is read as {source.format.name}.")
        typed = dict(zip(titles, kinds_of(evidence), strict=True))
        for title, kind in wanted.items():
            tables.check_typed(kind, typed[title], title, source)
        return list((typed | wanted).values()), [Cells(np.empty(0)) for _ in titles]
    cells = [np.array(texts, dtype=np.bytes_) for texts, _ in evidence.columns]
    table, found = tables.as_trained(RawTable(cells, None, None), titles, wanted, args, source, find)
    held = [kind_of(column) for column in table.columns]
    return [wanted.get(title, kind) for title, kind in zip(titles, held, strict=True)], found


def _readers(
    titles: list[Any], kinds: list[str], found: list[Cells], wanted: dict[Any, str]
) -> list[ColumnReader]:
    from exclusivity.dask import ColumnReader
    from exclusivity.io._cells import Notation

    return [
        ColumnReader(str(title), kind, read.notation or Notation(), takes_texts=wanted.get(title) == "number")
        for title, kind, read in zip(titles, kinds, found, strict=True)
    ]
