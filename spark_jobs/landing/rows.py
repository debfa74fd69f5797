"""Turns columns of parsed values into rows, and handles records with bad values.

Imported by executors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from spark_jobs.landing.records import (
    BadRecord,
    Column,
    Leniency,
    NotAValue,
    Problem,
    RecordLocation,
    RowBlock,
    text_of,
)
from spark_jobs.landing.values import Mask, Parsed, TextRules, value_of

_VALUE_REMEDY = (
    "Correct the file or the type in the source's schema; on_bad_rows='quarantine' sets such "
    "records aside, options={'mode': 'PERMISSIVE'} makes such values NULL"
)
_HEADER_REMEDY = (
    "It is the column's name: of a file whose first line has the names, say so by "
    "options={'header': True}."
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """The wanted columns of a source, and what happens to records that cannot be read.

    ``corrupt``: the column that gets the text of such a record if ``leniency`` is "null"; None if
    there is no such column.
    """

    columns: tuple[Column, ...]
    leniency: Leniency = "tell"
    corrupt: str | None = None
    rules: TextRules = field(default_factory=TextRules)

    @property
    def schema(self) -> pa.Schema:
        """The schema of the rows."""
        return pa.schema([pa.field(column.name, column.kind) for column in self.columns])

    @property
    def read(self) -> tuple[Column, ...]:
        """The columns to read from files."""
        return tuple(column for column in self.columns if column.name != self.corrupt)


@dataclass(frozen=True, slots=True)
class Found:
    """The content of some records that could be parsed as records.

    ``values`` has one item per column in ``Wanted.read``. ``problem(column, row)`` says what is
    wrong with a value; ``location(row)`` gives a record's location and bytes. ``damaged`` marks
    records of which only a part was kept.
    """

    values: Sequence[Parsed]
    count: int
    problem: Callable[[int, int], Problem]
    location: Callable[[int], tuple[RecordLocation, bytes]]
    damaged: Mask | None = None

    @property
    def masks(self) -> list[Mask]:
        """The masks of bad values, for the columns that have any."""
        return [parsed.bad for parsed in self.values if parsed.bad is not None]


def block_of(
    wanted: Wanted, found: Found, unreadable: Sequence[BadRecord], seen: frozenset[str]
) -> RowBlock:
    """The rows of ``found``; ``unreadable`` are further records, which could not be parsed."""
    if wanted.leniency == "null":
        return _completed(wanted, found, unreadable, seen)
    rows, masks = _batch(wanted, found, {}), found.masks
    bad = list(unreadable)
    if masks:
        is_bad = np.logical_or.reduce(masks)
        bad += [_told(found, int(row)) for row in np.flatnonzero(is_bad)]
        bad.sort(key=lambda each: (each.location.line or 0, each.location.record or 0))
        rows = rows.filter(pa.array(~is_bad))
    records = found.count + len(unreadable)
    if wanted.leniency == "drop":
        return RowBlock(rows, records, lost_records=len(bad), seen=seen)
    return RowBlock(rows, records, bad, seen=seen)


def _completed(
    wanted: Wanted, found: Found, unreadable: Sequence[BadRecord], seen: frozenset[str]
) -> RowBlock:
    """All records as rows, with NULL for what cannot be read."""
    lost_values = sum(int(mask.sum()) for mask in found.masks)
    damaged = int(found.damaged.sum()) if found.damaged is not None else 0
    texts: dict[int, str] = {}
    if wanted.corrupt is not None:
        masks = [*found.masks, *([found.damaged] if found.damaged is not None else [])]
        if masks:
            bad_rows = np.flatnonzero(np.logical_or.reduce(masks))
            texts = {int(row): text_of(found.location(int(row))[1]) for row in bad_rows}
    rows = _batch(wanted, found, texts)
    if unreadable:
        rows = _appended(wanted, rows, unreadable)
    records = found.count + len(unreadable)
    lost_records = damaged + len(unreadable)
    return RowBlock(rows, records, (), lost_values, lost_records, seen)


def _batch(wanted: Wanted, found: Found, corrupt: Mapping[int, str]) -> pa.RecordBatch:
    values = iter(found.values)
    texts = (
        pa.array([corrupt.get(row) for row in range(found.count)], pa.string()) if corrupt else None
    )
    arrays = [
        next(values).values
        if column.name != wanted.corrupt
        else (pa.nulls(found.count, pa.string()) if texts is None else texts)
        for column in wanted.columns
    ]
    return _batch_of(wanted, arrays, found.count)


def _appended(
    wanted: Wanted, rows: pa.RecordBatch, unreadable: Sequence[BadRecord]
) -> pa.RecordBatch:
    """``rows`` and one row of NULLs for each unreadable record."""
    empty = [
        pa.array([bad.text for bad in unreadable], pa.string())
        if column.name == wanted.corrupt
        else pa.nulls(len(unreadable), column.kind)
        for column in wanted.columns
    ]
    arrays = [pa.concat_arrays(pair) for pair in zip(rows.columns, empty, strict=True)]
    return _batch_of(wanted, arrays, rows.num_rows + len(unreadable))


def _batch_of(wanted: Wanted, arrays: Sequence[pa.Array], count: int) -> pa.RecordBatch:
    """Rows of the wanted columns; there may be no columns."""
    if not arrays:
        return pa.RecordBatch.from_struct_array(pa.array([{}] * count, pa.struct([])))
    return pa.RecordBatch.from_arrays(arrays, schema=wanted.schema)


def _told(found: Found, row: int) -> BadRecord:
    column = next(
        i for i, each in enumerate(found.values) if each.bad is not None and each.bad[row]
    )
    location, raw = found.location(row)
    return BadRecord(location, raw, found.problem(column, row))


def text_problem(column: Column, text: str, rules: TextRules) -> Problem:
    """Why ``text`` is not a value of ``column``."""
    try:
        value_of(text, column.kind, rules)
        reason = ""
    except NotAValue as error:
        reason = str(error)
    problem = value_problem(column, text, reason)
    if text.strip().lower() == column.name.lower():
        return problem._replace(remedy=_HEADER_REMEDY)
    more = " nullValue names a text that stands for NULL."
    return problem._replace(remedy=problem.remedy + more)


def value_problem(column: Column, text: str, reason: str) -> Problem:
    """The problem that ``text`` is not a value of ``column``; ``reason`` may be empty."""
    more = ""
    if pa.types.is_date(column.kind):
        more = ", dateFormat says how dates are written"
    elif pa.types.is_timestamp(column.kind):
        option = "timestampFormat" if column.kind.tz else "timestampNTZFormat"
        more = f", {option} says how times are written"
    return Problem(
        reason=f"is not a valid {column.type_name}" + (f": {reason}" if reason else ""),
        remedy=_VALUE_REMEDY + more + ".",
        column=column.name,
        value=text,
        expected=column.type_name,
    )
