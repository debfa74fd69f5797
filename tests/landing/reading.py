"""Reads small landed files as a task of a statement would."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.fs as pafs

from spark_jobs.landing.files import FilePart, FileVersion, LandedFile
from spark_jobs.landing.records import BadRecord, Column, NotAValue, RowBlock
from spark_jobs.landing.values import TextRules, parsed, value_of

LOCAL = pafs.LocalFileSystem()
# What a text is that is no value.
REFUSED = "refused"
_KINDS = {
    "STRING": pa.string(),
    "BINARY": pa.binary(),
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "DATE": pa.date32(),
    "TIMESTAMP": pa.timestamp("us", "UTC"),
    "TIMESTAMP_NTZ": pa.timestamp("us"),
}


class Reader(Protocol):
    """What reads files of a format."""

    def read(self, filesystem: pafs.FileSystem, part: FilePart) -> Iterable[RowBlock]: ...


@dataclass
class Outcome:
    """All blocks of a file as one."""

    rows: list[tuple[Any, ...]] = field(default_factory=list)
    bad: list[BadRecord] = field(default_factory=list)
    records: int = 0
    lost_values: int = 0
    lost_records: int = 0
    seen: set[str] = field(default_factory=set)

    @property
    def reasons(self) -> list[tuple[int | None, str]]:
        """Line and reason of each bad record."""
        places = [bad.location for bad in self.bad]
        lines = [place.record if place.line is None else place.line for place in places]
        return [(line, bad.problem.reason) for line, bad in zip(lines, self.bad, strict=True)]

    @property
    def values(self) -> list[Any]:
        """The rows of a file of one column."""
        assert all(len(row) == 1 for row in self.rows)
        return [row[0] for row in self.rows]


def kind_of(type_name: str) -> pa.DataType:
    """The type in Arrow of one in Spark's DDL."""
    decimal = re.fullmatch(r"DECIMAL\((\d+),(\d+)\)", type_name)
    if decimal:
        return pa.decimal128(int(decimal[1]), int(decimal[2]))
    return _KINDS[type_name]


def columns(ddl: str) -> tuple[Column, ...]:
    """``id INT, price DECIMAL(6,2)`` as wanted columns."""
    names = [each.split() for each in re.split(r",\s+", ddl) if each]
    return tuple(Column(name, kind_of(kind), kind) for name, kind in names)


def landed(path: Path) -> LandedFile:
    """A file as a listing finds it."""
    return LandedFile(str(path), path.name, FileVersion.of(LOCAL.get_file_info(str(path))))


def read(reader: Reader, path: Path, start: int = 0, end: int | None = None) -> Outcome:
    """What a reader makes of a file, or of a part of it."""
    found = Outcome()
    for block in reader.read(LOCAL, FilePart(landed(path), start, end)):
        found.rows += [tuple(row.values()) for row in block.rows.to_pylist()]
        found.bad += block.bad
        found.records += block.records
        found.lost_values += block.lost_values
        found.lost_records += block.lost_records
        found.seen |= block.seen
    return found


def value(text: str, type_name: str, rules: TextRules | None = None) -> Any:
    """What a text is as a value of a type, alone as in a column, or ``REFUSED``."""
    rules, kind = rules or TextRules(), kind_of(type_name)
    column = parsed(pa.array([text, None]), kind, rules)
    assert column.values.type == kind
    assert not column.values[1].is_valid
    found = column.values[0].as_py()
    try:
        expected = pa.scalar(value_of(text, kind, rules), kind).as_py()
    except NotAValue:
        assert column.bad is not None, f"{text!r} is {found!r} by Arrow alone"
        assert column.bad.tolist() == [True, False]
        assert found is None
        return REFUSED
    assert column.bad is None
    assert repr(found) == repr(expected)
    return found
