"""The same cells in every container that a table may come in, typed or as mixed objects.

A cell has one value here (3, True, "red", a moment, a duration, or None) and many forms: a numpy scalar, a
Decimal, a text, one of the many missing values. A container takes columns of values and a random generator,
and chooses forms and types; None stands for "these values do not fit".
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

MISSING = (
    *(None, float("nan"), np.float32("nan"), pd.NA, pd.NaT, "", "  ", b"", Decimal("NaN")),
    *(np.datetime64("NaT"), np.datetime64("NaT", "ns"), np.timedelta64("NaT", "s")),
)

KINDS = {
    "amount": "number",
    "count": "number",
    "flag": "boolean",
    "answer": "boolean",
    "code": "code",
    "colour": "text",
    "grade": "text",
    "since": "date",
    "waited": "duration",
    "mixed": "mixed",
}
"""The columns of a table of everything; those before "code" fit into an array of numbers."""

_DAY = dt.datetime(2021, 3, 1)


def values_of(name, rng, n_rows, *, unseen=True):
    """Draw values of a column; ``unseen`` ones are not in training rows."""
    moments = [_DAY + dt.timedelta(days=int(day), seconds=int(s)) for day, s in rng.integers(0, 900, (6, 2))]
    pools = {
        "amount": [*rng.normal(size=8).tolist(), 0.5, 3.0, 1.0, 0.0],
        "count": [0, 1, 2, 3, 5, 8],
        "flag": [True, False],
        "answer": [True, False],
        "code": [1, 2, 30, 2**60, 2**60 + 1],
        "colour": ["red", "green", "blue", "x" * 300],
        "grade": ["a", "b", "1", "2.0"],
        "since": [*moments, _DAY, _DAY + dt.timedelta(days=400)],
        "waited": [dt.timedelta(seconds=int(s), microseconds=7) for s in rng.integers(0, 10**7, 8)],
        "mixed": [True, False, 1, 2.5, "a", "b"],
    }
    strange = {
        "amount": [np.inf, -np.inf, 1e308, -0.0, 5e-324, 2**53 + 1, 10**400],
        "count": [-7, 2**60, 0.5],
        "code": [7, -1, 2**63 - 1],
        "colour": ["never seen", "True", "3", "é"],
        "grade": ["0", "False", "c"],
        "since": [dt.datetime(1700, 1, 1), dt.datetime(2200, 12, 31, 23, 59, 59, 999999)],
        "waited": [dt.timedelta(-400), dt.timedelta(days=9999, microseconds=1)],
        "mixed": [3, "never seen"],
    }
    pool = pools[name] + (strange.get(name, []) if unseen else [])
    drawn = [pool[place] for place in rng.integers(0, len(pool), n_rows)]
    gaps = 0.0 if name in ("count", "flag", "code") and not unseen else 0.15
    return [
        None if is_missing else cell
        for cell, is_missing in zip(drawn, rng.random(n_rows) < gaps, strict=True)
    ]


def forms(kind, cell):
    """Give the forms of a value: objects that stand for the same."""
    if cell is None:
        return MISSING
    if kind == "mixed":  # its training rows have True as well as 1
        kind = "boolean only" if isinstance(cell, bool) else "text" if isinstance(cell, str) else "code"
    if kind in ("boolean", "boolean only"):
        number = int(cell)
        own = [cell, np.bool_(cell), str(cell)]
        more = [number, float(number), np.int8(number), np.float32(number), Decimal(number), str(number)]
        return own if kind == "boolean only" else own + more
    if kind == "text":
        return [cell, np.str_(cell), cell.encode()] if cell.isascii() else [cell, np.str_(cell)]
    if kind == "date":
        text = cell.isoformat(sep=" ")
        own = [cell, np.datetime64(cell, "us"), np.datetime64(cell, "ns"), pd.Timestamp(cell), text]
        own += [cell.replace(tzinfo=dt.UTC), cell.replace(tzinfo=dt.timezone(dt.timedelta(hours=5)))]
        return own + ([cell.date(), np.datetime64(cell.date())] if cell.time() == dt.time() else [])
    if kind == "duration":
        return [
            cell,
            np.timedelta64(cell, "us"),
            np.timedelta64(cell, "us").astype("m8[ns]"),
            pd.Timedelta(cell),
        ]
    return _number_forms(cell)


def _number_forms(cell):
    found = [cell, str(cell)]
    if isinstance(cell, int):
        found += [Decimal(cell), f" {cell}"[1:]]
        found += [np.int64(cell)] if abs(cell) < 2**63 else []
        found += [float(cell), np.float64(cell)] if abs(cell) < 2**53 else []
    else:
        found += [np.float64(cell), np.longdouble(cell), Decimal(cell)]
        found += (
            [np.float32(cell)]
            if np.isinf(cell) or float(np.float32(min(abs(cell), 1e38))) == abs(cell)
            else []
        )
        found += [int(cell)] if cell.is_integer() else []
    return found


def _mixed(columns, rng):
    """Give rows of cells in any form."""
    chosen = [
        [(own := forms(KINDS[name], cell))[rng.integers(len(own))] for cell in cells]
        for name, cells in columns.items()
    ]
    return [list(row) for row in zip(*chosen, strict=True)]


def as_lists(columns, rng):
    """Give a list of lists of cells in any form."""
    return _mixed(columns, rng)


def as_plain_lists(columns, rng):
    """Give a list of lists of the values themselves."""
    return [list(row) for row in zip(*columns.values(), strict=True)]


def as_tuples(columns, rng):
    """Give a tuple of tuples."""
    return tuple(map(tuple, _mixed(columns, rng)))


def _objects(rows):
    found = np.empty((len(rows), len(rows[0])), dtype=object)
    for number, row in enumerate(rows):
        found[number] = row
    return found


def as_object_array(columns, rng):
    """Give an array of objects."""
    return _objects(_mixed(columns, rng))


def as_list_of_arrays(columns, rng):
    """Give a list of arrays of objects, one for each row."""
    return list(_objects(_mixed(columns, rng)))


def as_float_array(columns, rng):
    """Give an array of one type of numbers."""
    if not {KINDS[name] for name in columns} <= {"number", "boolean", "code"}:
        return None
    if "code" in columns and _is_large(columns["code"]):
        return None
    rows = np.array(
        [[np.nan if cell is None else _float(cell) for cell in cells] for cells in columns.values()]
    ).T
    fits = [np.float64]
    with np.errstate(over="ignore"):
        fits += [np.float32] if np.array_equal(rows.astype(np.float32), rows, equal_nan=True) else []
    whole = np.array_equal(rows, np.rint(rows)) and np.abs(rows).max() < 100  # NaN is unlike itself
    return rows.astype(_one(fits + ([np.int64, np.int8] if whole else []), rng))


def as_text_array(columns, rng):
    """Give an array of texts."""
    if not {KINDS[name] for name in columns} <= {"text", "number", "boolean", "code", "mixed"}:
        return None
    rows = [
        ["" if cell is None else _text(cell) for cell in row] for row in zip(*columns.values(), strict=True)
    ]
    return np.array(rows, dtype=str)


def _text(cell):
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)


def _one(options, rng):
    return options[rng.integers(len(options))]


def _frame(columns, rng, one):
    return pd.DataFrame({name: one(KINDS[name], cells, rng) for name, cells in columns.items()})


def as_pandas_objects(columns, rng):
    """Give a frame of pandas whose columns are objects."""
    return pd.DataFrame(_objects(_mixed(columns, rng)), columns=list(columns), dtype=object)


def as_pandas(columns, rng):
    """Give a frame of pandas with the types of numpy."""
    return _frame(columns, rng, _numpy_column)


def _numpy_column(kind, cells, rng):
    gaps = None in cells
    if kind == "date":
        values = pd.Series(np.array(cells, dtype="M8[us]")).astype(f"M8[{_one(['us', 'ns'], rng)}]")
        return values.dt.tz_localize("Asia/Tokyo") if rng.random() < 0.3 else values
    if kind == "duration":
        return pd.Series(np.array(cells, dtype="m8[us]")).astype(f"m8[{_one(['us', 'ns'], rng)}]")
    if kind in ("text", "mixed") or (kind == "code" and _is_large(cells)):
        return pd.Series(cells, dtype=object)
    if kind == "boolean":
        return pd.Series(cells, dtype=_one([object, float] if gaps else [bool, object, int, float], rng))
    values = np.array([np.nan if cell is None else _float(cell) for cell in cells])
    whole = not gaps and all(isinstance(cell, int) and abs(cell) < 2**63 for cell in cells)
    return pd.Series(cells, dtype=np.int64) if whole else pd.Series(values)


def _float(cell):
    try:
        return float(cell)
    except OverflowError:
        return np.inf


def _is_large(cells):
    return any(cell is not None and abs(cell) > 2**53 for cell in cells)


def as_nullable_pandas(columns, rng):
    """Give a frame of pandas with its own types, which know missing values."""
    return _frame(columns, rng, _nullable_column)


def _nullable_column(kind, cells, rng):
    if kind == "boolean":
        return pd.array(cells, dtype=_one(["boolean", "Int8"], rng))
    if kind in ("text", "mixed"):
        return pd.array([None if cell is None else _text(cell) for cell in cells], dtype="string")
    if kind == "code":
        return pd.array(cells, dtype="Int64")
    if kind == "number":
        return pd.array([None if cell is None else _float(cell) for cell in cells], dtype="Float64")
    return _numpy_column(kind, cells, rng)


def as_categories(columns, rng):
    """Give a frame of pandas of categories, in any order, with some that no row has."""
    return _frame(columns, rng, _category_column)


def _category_column(kind, cells, rng):
    if kind == "mixed":  # to pandas True and 1 are one category
        cells = [None if cell is None else _text(cell) for cell in cells]
    known = [*dict.fromkeys(cell for cell in cells if cell is not None)]
    known += ["no row has it", (1, 2)] if rng.random() < 0.5 else []
    place = {known[old]: new for new, old in enumerate(rng.permutation(len(known)))}
    categories = np.fromiter(place, dtype=object, count=len(place))
    codes = [place.get(cell, -1) for cell in cells]
    return pd.Categorical.from_codes(
        codes, pd.Index(categories, tupleize_cols=False, dtype=object), ordered=rng.random() < 0.5
    )


ARROW_TYPES = {
    "number": [pa.float64()],
    "boolean": [pa.bool_(), pa.int8(), pa.float32()],
    "code": [pa.int64(), pa.decimal128(30, 2)],
    "text": [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())],
    "mixed": [pa.string()],
    "date": [pa.timestamp("us"), pa.timestamp("ns"), pa.timestamp("us", tz="Etc/GMT-2")],
    "duration": [pa.duration("us"), pa.duration("ns")],
}


def _arrow_column(kind, cells, rng):
    dtype = _one(ARROW_TYPES[kind], rng)
    if kind == "number":
        cells = [None if cell is None else _float(cell) for cell in cells]
    elif kind == "mixed":
        cells = [None if cell is None else _text(cell) for cell in cells]
    elif kind == "boolean":
        cells = [None if cell is None else dtype.to_pandas_dtype()(cell) for cell in cells]
    elif pa.types.is_decimal(dtype):
        cells = [None if cell is None else Decimal(cell) for cell in cells]
    elif getattr(dtype, "tz", None) is not None:  # the clock on the wall is to show these
        local = pd.Series(np.array(cells, dtype="M8[us]")).dt.tz_localize(dtype.tz, ambiguous=True)
        return pa.array(local, type=dtype)
    return pa.array(cells, type=dtype)


def as_arrow_pandas(columns, rng):
    """Give a frame of pandas with the types of Arrow."""

    def column(kind, cells, rng):
        found = _arrow_column(kind, cells, rng)
        return pd.Series(pd.arrays.ArrowExtensionArray(pa.chunked_array([found])))

    return _frame(columns, rng, column)


def as_arrow(columns, rng):
    """Give an Arrow table, in one chunk or several."""
    table = pa.table({name: _arrow_column(KINDS[name], cells, rng) for name, cells in columns.items()})
    cut = int(rng.integers(0, table.num_rows + 1))
    return pa.concat_tables([table[:cut], table[cut:]]) if rng.random() < 0.5 else table


def as_polars(columns, rng):
    """Give a frame of polars."""
    found = {}
    for name, cells in columns.items():
        series = pl.Series(name, pl.from_arrow(_arrow_column(KINDS[name], cells, rng)))
        found[name] = series.cast(pl.Categorical) if KINDS[name] == "text" and rng.random() < 0.5 else series
    return pl.DataFrame(found)


CONTAINERS = (
    as_plain_lists,
    as_lists,
    as_tuples,
    as_list_of_arrays,
    as_object_array,
    as_float_array,
    as_text_array,
    as_pandas_objects,
    as_pandas,
    as_nullable_pandas,
    as_categories,
    as_arrow_pandas,
    as_arrow,
    as_polars,
)
