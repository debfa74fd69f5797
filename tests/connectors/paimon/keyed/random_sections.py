"""Random sections: files of several levels, and the live records that are in them."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise, product
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from spark_jobs.connectors.paimon.format.vectors import VectorLocation, encode, write_index
from spark_jobs.connectors.paimon.keyed.file_columns import (
    KEY_PREFIX,
    SEQUENCE_NUMBER,
    VALUE_KIND,
    file_schema,
)
from spark_jobs.connectors.paimon.keyed.merge_engines import KeyedSchema, MergeEngine
from spark_jobs.connectors.paimon.keyed.section_reader import RunFile, SectionReader
from spark_jobs.datafiles.field_mapping import FieldMapping

LOCAL = pafs.LocalFileSystem()
INSERT, BEFORE, AFTER, DELETE = range(4)
OLDER_SCHEMA = 7

Row = dict[str, Any]
Key = tuple[Any, ...]

_LONG = "a common prefix of many keys " * 9
# Values of a key column of each type in Paimon's order, which is Python's, too.
KEY_VALUES: Mapping[str, tuple[pa.DataType, Sequence[Any]]] = {
    "tinyint": (pa.int8(), [-128, -1, 0, 1, 2, 126, 127]),
    "smallint": (pa.int16(), [-(2**15), -1, 0, 1, 255, 256, 2**15 - 1]),
    "int": (pa.int32(), [-(2**31), -7, -1, 0, 1, 65_536, 2**31 - 1]),
    "bigint": (pa.int64(), [-(2**63), -1, 0, 1, 2**53, 2**53 + 1, 2**63 - 1]),
    "boolean": (pa.bool_(), [False, True]),
    "decimal": (pa.decimal128(10, 2), [*map(Decimal, ("-9999.99", "-0.01", "0.00", "1.28"))]),
    "wide decimal": (
        pa.decimal128(38, 4),
        [
            *map(
                Decimal,
                (
                    "-9999999999999999999999999999999999.9999",
                    "-1844674407370955161600.0001",
                    "-0.0001",
                    "0.0000",
                    "0.0128",
                    "9007199254740993.0000",
                    "9007199254740993.0001",
                    "9999999999999999999999999999999999.9999",
                ),
            )
        ],
    ),
    "string": (
        pa.string(),
        ["", "A", "a", "a\x00", _LONG, _LONG + "é", "z", "é", "東", "東京", "\uffff", "\U0001f469"],
    ),
    "binary": (pa.binary(), [b"", b"\0", b"\0\0", b"\x7f", b"\x80", b"\x80\0", b"\xff"]),
    "date": (
        pa.date32(),
        [dt.date(1, 1, 1), dt.date(1582, 10, 10), dt.date(1969, 12, 31), dt.date(9999, 12, 31)],
    ),
    "time": (pa.time32("ms"), [dt.time(0), dt.time(0, 0, 0, 1000), dt.time(23, 59, 59, 999000)]),
    "timestamp": (
        pa.timestamp("us"),
        [
            dt.datetime(1, 1, 1),  # noqa: DTZ001
            dt.datetime(1969, 12, 31, 23, 59, 59, 999999),  # noqa: DTZ001
            dt.datetime(1970, 1, 1),  # noqa: DTZ001
            dt.datetime(9999, 12, 31, 23, 59, 59, 999999),  # noqa: DTZ001
        ],
    ),
    "instant": (
        pa.timestamp("ms", "UTC"),
        [
            dt.datetime(1, 1, 1, tzinfo=dt.UTC),
            dt.datetime(1969, 12, 31, 23, 59, 59, 999000, dt.UTC),
            dt.datetime(1970, 1, 1, tzinfo=dt.UTC),
            dt.datetime(2026, 3, 29, 1, 0, 0, 1000, dt.UTC),
        ],
    ),
}
VALUES: Mapping[str, tuple[pa.DataType, Sequence[Any]]] = {
    "text": (pa.string(), [None, "", "a", "é", "東京", "\U0001f469"]),
    "n": (pa.int64(), [None, *range(-3, 4), 2**31 - 1]),
    "amount": (
        pa.decimal128(30, 4),
        [None, Decimal("-12345678901234567890.1234"), Decimal("0.0001"), Decimal("7.5000")],
    ),
    "flag": (pa.bool_(), [None, False, True]),
    "s1": (pa.int32(), [None, None, -1, 0, 1]),
    "s2": (pa.string(), [None, "", "a", "é"]),
}


@dataclass(frozen=True)
class Record:
    """A live record; ``file`` is its file's index in the section."""

    number: int
    kind: int
    row: Row
    file: int
    position: int

    @property
    def place(self) -> int:
        """The record's value of ``_POSITION``."""
        return self.file * 2**40 + self.position


@dataclass(frozen=True)
class RandomSection:
    """Files in any order, their live records, and the range of all their keys."""

    files: tuple[RunFile, ...]
    records: tuple[Record, ...]
    first: Key
    last: Key


def column(name: str, kind: pa.DataType, number: int, *, nullable: bool = True) -> pa.Field:
    return pa.field(name, kind, nullable, {"PARQUET:field_id": str(number)})


def schema_of(kinds: Sequence[str], engine: MergeEngine, *, thin: bool = False) -> KeyedSchema:
    """A table whose key columns ``k0``, ``k1`` … are not its first ones."""
    fields = [column("text", VALUES["text"][0], 0)]
    key = tuple(f"k{index}" for index in range(len(kinds)))
    for index, (name, kind) in enumerate(zip(key, kinds, strict=True)):
        fields.insert(1, column(name, KEY_VALUES[kind][0], 20 + index, nullable=False))
    fields += [column(name, VALUES[name][0], 1 + i) for i, name in enumerate([*VALUES][1:])]
    return KeyedSchema(pa.schema(fields), key, engine, thin)


def keys_of(kinds: Sequence[str]) -> list[Key]:
    """Keys of a table of ``schema_of`` in order."""
    found = list(product(*(KEY_VALUES[kind][1] for kind in kinds)))
    assert found == sorted(found)
    return found


def key_of(schema: KeyedSchema, row: Row) -> Key:
    return tuple(row[name] for name in schema.key)


def reader_of(schema: KeyedSchema, window_rows: int = 2**17) -> SectionReader:
    mappings = tuple(_older(field) for field in schema.columns)
    return SectionReader(LOCAL, schema, {OLDER_SCHEMA: mappings}, window_rows)


def table_of(schema: KeyedSchema, rows: Sequence[Row]) -> pa.Table:
    return pa.table(
        {name: [row[name] for row in rows] for name in schema.columns.names}, schema=schema.columns
    )


def write_records(
    schema: KeyedSchema,
    path: str,
    records: Sequence[tuple[int, int, Row]],
    group_rows: int = 1000,
    schema_id: int | None = None,
) -> None:
    """A data file with (number, kind, row) as they are given, sorted or not."""
    columns = schema.columns
    rows = table_of(schema, [row for *_, row in records])
    if schema_id is not None:
        rows = rows.drop_columns(["amount"]).rename_columns(
            ["old_n" if name == "n" else name for name in rows.column_names if name != "amount"]
        )
        index = rows.column_names.index("old_n")
        field = column("old_n", pa.int32(), 1)
        rows = rows.set_column(index, field, rows.column(index).cast(pa.int32()))
        columns = rows.schema
    found = {f"{KEY_PREFIX}{name}": rows.column(name) for name in schema.key}
    found[SEQUENCE_NUMBER] = pa.array([number for number, *_ in records], pa.int64())
    found[VALUE_KIND] = pa.array([kind for _, kind, _ in records], pa.int8())
    found |= {name: rows.column(name) for name in rows.column_names}
    layout = file_schema(columns, schema.key, thin=schema.thin)
    arrays = [found[name] for name in layout.names]
    pq.write_table(pa.Table.from_arrays(arrays, schema=layout), path, row_group_size=group_rows)


def run_file(
    schema: KeyedSchema,
    folder: Path,
    level: int,
    records: Sequence[tuple[int, int, Row]],
    deleted: Sequence[int] = (),
    group_rows: int = 1000,
    schema_id: int | None = None,
) -> RunFile:
    """Write a file and describe it; ``deleted`` are the positions that a vector marks."""
    path = f"{folder}/{uuid.uuid4().hex}.parquet"
    write_records(schema, path, records, group_rows, schema_id)
    vector = None
    if deleted:
        content = encode(np.array(deleted, np.int64))
        write_index(LOCAL, f"{path}.index", b"\x01" + content)
        vector = VectorLocation(f"{path}.index", 1, len(content) - 8, len(deleted))
    return RunFile(
        path=path,
        level=level,
        first=key_of(schema, records[0][2]),
        row_count=len(records),
        delete_count=sum(kind in (BEFORE, DELETE) for _, kind, _ in records),
        vector=vector,
        schema_id=schema_id,
    )


def random_section(
    random: Random, schema: KeyedSchema, folder: Path, keys: Sequence[Key]
) -> RandomSection:
    """A section with some of ``keys``, which are in order."""
    runs = _random_runs(random, schema, keys)
    files, records = [], []
    for level, members in runs:
        written_before = random.random() < 0.2
        written = [
            (number, kind, {**row, "amount": None} if written_before else row)
            for number, kind, row in members
        ]
        for part in _cut(random, written) if level else [written]:
            marked = random.random() < 0.25
            deleted = [p for p in range(len(part)) if marked and random.random() < 0.4]
            file = run_file(
                schema,
                folder,
                level,
                part,
                deleted,
                random.choice([1, 2, 3, 1000]),
                OLDER_SCHEMA if written_before else None,
            )
            files.append((file, part, set(deleted)))
    random.shuffle(files)
    for index, (_, part, gone) in enumerate(files):
        records += [
            Record(number, kind, row, index, position)
            for position, (number, kind, row) in enumerate(part)
            if position not in gone
        ]
    stored = [key_of(schema, row) for _, part, _ in files for *_, row in part]
    return RandomSection(tuple(f for f, *_ in files), tuple(records), min(stored), max(stored))


def random_row(random: Random, schema: KeyedSchema, key: Key) -> Row:
    row = {name: random.choice(values) for name, (_, values) in VALUES.items()}
    return row | dict(zip(schema.key, key, strict=True))


def _random_runs(
    random: Random, schema: KeyedSchema, keys: Sequence[Key]
) -> list[tuple[int, list[tuple[int, int, Row]]]]:
    """Sorted runs by level; a key is at most once in each."""
    upper = random.sample(range(1, 6), random.randrange(4))
    levels = [*upper, *[0] * random.randrange(0 if upper else 1, 5)]
    kinds = [INSERT, AFTER]
    if schema.engine.kind == "deduplicate":
        kinds = [INSERT, INSERT, AFTER, BEFORE, DELETE]
    # The order of records is that of their numbers, wherever they are.
    numbers = iter(random.sample(range(1000), len(levels) * len(keys)))
    runs = []
    for level in levels:
        share = random.choice([0.1, 0.5, 1.0])
        chosen = [key for key in keys if random.random() < share] or [random.choice(keys)]
        members = [
            (next(numbers), random.choice(kinds), random_row(random, schema, key)) for key in chosen
        ]
        runs.append((level, members))
    return runs


def _cut(random: Random, members: list[Any]) -> list[list[Any]]:
    """The members of a run, cut into files."""
    inner = range(1, len(members))
    cuts = sorted(random.sample(inner, min(len(inner), random.randrange(4))))
    bounds = [0, *cuts, len(members)]
    return [members[a:b] for a, b in pairwise(bounds)]


def _older(field: pa.Field) -> FieldMapping:
    """Before this schema, there was no ``amount``, and ``n`` was an INT with another name."""
    if field.name == "amount":
        return FieldMapping(field, None)
    if field.name == "n":
        return FieldMapping(field, pa.field("old_n", pa.int32()))
    return FieldMapping(field, field)
