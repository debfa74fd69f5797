"""The statistics of a file whose chunks are copied are exactly those of its values."""

from __future__ import annotations

from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars
import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest

from spark_jobs.datafiles.parquet.options import Compression
from spark_jobs.datafiles.parquet.splice import splice
from spark_jobs.datafiles.statistics import StatisticsCollector
from tests.datafiles.test_rewrite import update

LOCAL = pafs.LocalFileSystem()
FAR = Decimal(10) ** 37
VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "int8": (pa.int8(), [-128, 127, 5]),
    "int16": (pa.int16(), [-32768, 32767, 0]),
    "int32": (pa.int32(), [-(2**31), 2**31 - 1, 7]),
    "int64": (pa.int64(), [-(2**63), 2**63 - 1, 7]),
    "uint32": (pa.uint32(), [2**31, 2**32 - 1, 1]),
    "uint64": (pa.uint64(), [2**63, 2**64 - 1, 1]),
    "bool": (pa.bool_(), [True, False, True]),
    "double": (pa.float64(), [-1.5, 3.25, 0.0]),
    "date": (pa.date32(), [date(1, 1, 1), date(9999, 12, 31), date(1969, 12, 31)]),
    "millis": (pa.timestamp("ms"), [*map(datetime.fromisoformat, ("0001-01-01", "9999-12-31"))]),
    "micros": (pa.timestamp("us"), [-62135596800000000, 253402300799999999, 0]),
    "nanos": (pa.timestamp("ns"), [-1001, 1001, 0]),
    "zoned": (pa.timestamp("us", "UTC"), [-(10**16), 10**15, 1]),
    "time": (pa.time32("ms"), [time(0, 0, 1), time(23, 59, 59, 999_000)]),
    "fine_time": (pa.time64("us"), [time(0, 0, 1), time(23, 59, 59, 999_999)]),
    "text": (pa.string(), ["", "é", "😀", "a" * 2000]),
    "short_text": (pa.string(), ["", "é", "😀"]),
    "bytes": (pa.binary(), [b"", b"\xff", b"\x00"]),
    "fixed": (pa.binary(3), [b"abc", b"\xff\x00\x00", b"\x00\x00\x00"]),
    "decimal4": (pa.decimal128(4, 2), [Decimal("-99.99"), Decimal("99.99"), Decimal("0.00")]),
    "decimal18": (pa.decimal128(18, 5), [Decimal(-(10**12)), Decimal("999999999999.99999")]),
    "decimal38": (pa.decimal128(38, 0), [-FAR, FAR, Decimal(-1)]),
    "missing": (pa.int64(), [None, None]),
}


def table() -> pa.Table:
    """Ninety rows, each third one NULL, in which every value occurs."""
    columns = {"id": pa.array(range(90), pa.int64())}
    for name, (kind, values) in VALUES.items():
        cycle = [*values * 90][:60]
        columns[name] = pa.array(
            [x for i in range(30) for x in (None, *cycle[2 * i : 2 * i + 2])], kind
        )
    return pa.table(columns)


@pytest.mark.parametrize("as_integer", [True, False])
@pytest.mark.parametrize("row_group_size", [90, 40])
def test_of_every_type(tmp_path: Path, as_integer: bool, row_group_size: int) -> None:
    source, target = tmp_path / "source.parquet", tmp_path / "target.parquet"
    rows = table()
    pq.write_table(rows, source, row_group_size=row_group_size, store_decimal_as_integer=as_integer)

    written = splice(
        LOCAL, str(source), str(target), update("id", {3: 1000}, pa.int64()), Compression()
    )

    collector = StatisticsCollector()
    collector.add(pq.ParquetFile(target).read())
    expected = collector.result()
    assert {n: each.to_json() for n, each in written.statistics.items()} == {
        n: each.to_json() for n, each in expected.items()
    }
    assert written.statistics["decimal38"].maximum == FAR
    assert written.statistics["missing"].to_json() == [None, None, 90]


def test_of_texts_that_are_not_utf8(tmp_path: Path) -> None:
    source, target = tmp_path / "source.parquet", tmp_path / "target.parquet"
    stored = pa.array([b"\xff\xfe", b"a"], pa.binary())
    texts = pa.Array.from_buffers(pa.string(), 2, stored.buffers())
    pq.write_table(pa.table({"id": [1, 2], "text": texts}), source)

    written = splice(
        LOCAL, str(source), str(target), update("id", {0: 9}, pa.int64()), Compression()
    )

    assert written.statistics["text"].to_json() == ["a", None, 0]


def test_bounds_that_another_writer_states_wrongly(tmp_path: Path) -> None:
    """Polars 1.44 mixes the bounds of pages up, where a decimal has more than 18 digits."""
    source, target = tmp_path / "source.parquet", tmp_path / "target.parquet"
    numbers = [Decimal(each) for each in range(-100, 100)]
    kind = pa.decimal128(38, 0)
    structs = [{"n": each} for each in numbers]
    rows = pa.table(
        {
            "id": pa.array(range(200), pa.int64()),
            "n": pa.array(numbers, kind),
            "s": pa.array(structs, pa.struct([pa.field("n", kind)])),
        }
    )
    frame = polars.from_arrow(rows)
    assert isinstance(frame, polars.DataFrame)
    frame.write_parquet(source, statistics=True, data_page_size=64)
    stated = pq.ParquetFile(source).metadata.row_group(0).column(1).statistics
    assert int.from_bytes(stated.min_raw, "big", signed=True) > -100

    written = splice(
        LOCAL, str(source), str(target), update("id", {3: 1000}, pa.int64()), Compression()
    )

    found = written.statistics["n"]
    assert (found.minimum, found.maximum) == (-100, 99)
    group = pq.ParquetFile(target).metadata.row_group(0)
    assert [group.column(each).statistics.has_min_max for each in (1, 2)] == [False, False]
    assert pq.read_table(target).column("n").to_pylist() == numbers
