"""Values that a statement does not assign are those of the old file, bit for bit."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest

from spark_jobs.datafiles.field_mapping import FieldMapping
from spark_jobs.datafiles.file_changes import ColumnChange, FileChanges
from spark_jobs.datafiles.parquet.options import Compression
from spark_jobs.datafiles.parquet.splice import splice
from tests.datafiles.physical_values import physical_rows

LOCAL = pafs.LocalFileSystem()
ROWS = 300
# Quiet and signalling NaN with payloads, -0.0, infinity, a denormalised number, a common one.
DOUBLES = np.array(
    [0x7FF8_0000_0000_0001, 0xFFF0_0000_0000_0002, 2**63, 0x7FF0 << 48, 1, 0x3FF8 << 48], np.uint64
).view(np.float64)
FLOATS = np.array([0x7FC0_0001, 0xFF80_0002, 2**31, 0x7F80_0000, 1, 0x3FC0_0000], np.uint32).view(
    np.float32
)
TEXTS = [b"\xff\xfe", b"a\x00b", "ü".encode(), b"\xc3", b"", b"plain"]
MOMENTS = [
    dt.datetime.fromisoformat(text)
    for text in (
        *("0001-01-01", "1969-12-31 23:59:59.999999", "1677-01-01", "2262-12-31"),
        *("9999-12-31 23:59:59.999999", "2024-02-29 12:30:00.123456"),
    )
]


def repeated(values: Any, kind: pa.DataType | None = None) -> pa.Array:
    """``values`` again and again, each seventh NULL."""
    array = values if isinstance(values, pa.Array) else pa.array(values, kind)
    places = [None if i % 7 == 3 else i % len(array) for i in range(ROWS)]
    return array.take(pa.array(places, pa.int32()))


def not_utf8() -> pa.Array:
    stored = pa.array(TEXTS, pa.binary())
    return pa.Array.from_buffers(pa.string(), len(stored), stored.buffers())


def decimals(precision: int) -> pa.Array:
    most = 10**precision - 1
    digits = [0, 1, -1, most, -most, 12]
    return pa.array([Decimal(f"{each}e-1") for each in digits], pa.decimal128(precision, 1))


doubles = repeated(DOUBLES)
TABLE = pa.table(
    {
        "id": pa.array(range(ROWS), pa.int32()),
        "double": doubles,
        "float": repeated(FLOATS),
        "text": repeated(not_utf8()),
        "bytes": repeated(TEXTS),
        "distinct": pa.array([f"{i:09}" for i in range(ROWS)]),
        "at": repeated(MOMENTS, pa.timestamp("us")),
        "day": repeated([-719162, -1, 0, 2932896], pa.int32()).cast(pa.date32()),
        "flag": repeated([True, False]),
        "decimal9": repeated(decimals(9)),
        "decimal18": repeated(decimals(18)),
        "decimal38": repeated(decimals(38)),
        "list": pa.ListArray.from_arrays(pa.array(range(ROWS + 1), pa.int32()), doubles),
        "struct": pa.StructArray.from_arrays([doubles, repeated(not_utf8())], ["x", "y"]),
    }
)
LAYOUTS = list(product(["zstd", "snappy", "lz4", "gzip", "none"], [True, False], ["1.0", "2.0"]))
ASSIGNED = {0: 1000, 150: 1001, 299: 1002}
GONE = (1, 5, 151, 298)


def changes(*, deletes: bool) -> FileChanges:
    positions = np.array(sorted([*ASSIGNED, *(GONE if deletes else ())]), np.int64)
    deleted = np.isin(positions, GONE)
    assigned = ColumnChange(np.flatnonzero(~deleted), pa.array(ASSIGNED.values(), pa.int32()))
    return FileChanges(positions, deleted, {"id": assigned})


@pytest.mark.parametrize("deletes", [False, True], ids=["update", "update and delete"])
@pytest.mark.parametrize("statistics", [True, False], ids=["statistics", "no statistics"])
@pytest.mark.parametrize(("codec", "dictionary", "version"), LAYOUTS)
def test_in_a_file_of_any_layout(
    tmp_path: Path, codec: str, dictionary: bool, version: str, statistics: bool, deletes: bool
) -> None:
    source = tmp_path / "source.parquet"
    pq.write_table(
        TABLE,
        source,
        compression=codec,
        use_dictionary=dictionary,
        data_page_version=version,
        write_statistics=statistics,
        row_group_size=200,
        store_decimal_as_integer=dictionary,
        use_deprecated_int96_timestamps=True,
    )
    require_carried(source, deletes=deletes)


@pytest.mark.parametrize("deletes", [False, True], ids=["update", "update and delete"])
def test_in_a_file_of_an_older_schema(tmp_path: Path, deletes: bool) -> None:
    """The new file has the columns in another order, with other names, and a wider one."""
    source = tmp_path / "source.parquet"
    pq.write_table(TABLE, source, row_group_size=200, use_deprecated_int96_timestamps=True)
    wider = FieldMapping(pa.field("id", pa.int64()), TABLE.schema.field("id"))
    renamed = [
        FieldMapping(field.with_name(f"{field.name} now"), field, parts_of(field.type))
        for field in TABLE.schema
        if field.name != "id"
    ]
    require_carried(source, [*reversed(renamed), wider], deletes=deletes)


def parts_of(kind: pa.DataType) -> tuple[FieldMapping, ...]:
    fields = [kind.field(i) for i in range(kind.num_fields)]
    return tuple(FieldMapping(field, field, parts_of(field.type)) for field in fields)


def require_carried(
    source: Path, mappings: Sequence[FieldMapping] | None = None, *, deletes: bool
) -> None:
    target = source.with_name("target.parquet")

    splice(LOCAL, str(source), str(target), changes(deletes=deletes), Compression(), mappings)

    old, new = physical_rows(source), physical_rows(target)
    gone = GONE if deletes else ()
    expected = [row | {"id": ASSIGNED.get(i, i)} for i, row in enumerate(old) if i not in gone]
    assert [{name.removesuffix(" now"): row[name] for name in row} for row in new] == expected
