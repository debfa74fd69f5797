"""Chosen rows of a file: those that live and whose keys are wanted, wherever they lie in it."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spark_jobs.datafiles.file_scan import FileScan
from spark_jobs.datafiles.key_probe import KeyProbe
from spark_jobs.datafiles.parquet.row_groups import decimals
from tests.datafiles.parquet_files import Layout, layouts
from tests.datafiles.strategies import samples
from tests.datafiles.test_rewrite_property import same
from tests.support.turns import examples

LOCAL = pafs.LocalFileSystem()
_KEYS = {
    "ids": ([3, -5, 2**62, 7, None, 7, 0], pa.int64()),
    "tiny": ([1, -128, 127, None, 0, 1], pa.int8()),
    "days": ([dt.date(2024, 1, 1), None, dt.date(1, 1, 1), dt.date(1970, 1, 1)], pa.date32()),
    "texts": (["a", "", None, "ü", "b"], pa.string()),
    "decimals": ([Decimal("1.50"), None, Decimal("-2.25"), Decimal("0.00")], pa.decimal128(9, 2)),
}


def scanned(
    path: str,
    schema: pa.Schema,
    keys: dict[str, pa.Array],
    deleted: list[int] | None = None,
) -> tuple[list[int], list[dict[str, Any]]]:
    """Positions and rows that a scan finds."""
    probes = {name: KeyProbe(values) for name, values in keys.items()}
    scan = FileScan(LOCAL, list(schema), probes)
    found = list(scan.rows(path, np.array(deleted or [], dtype=np.int64)))
    for _, table in found:
        table.validate(full=True)
    positions = [int(each) for positions, _ in found for each in positions]
    return positions, [row for _, table in found for row in table.to_pylist()]


def ascending(values: list[Any], kind: pa.DataType) -> pa.Array:
    """Distinct values without NULL, as a dynamic filter has them."""
    distinct = pc.unique(pa.array(values, kind).drop_null())
    return distinct.take(pc.sort_indices(distinct))


@pytest.mark.slow
@settings(
    max_examples=examples(200),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_rows_of_any_type_in_any_layout(tmp_path: Path, data: Any) -> None:
    sample = data.draw(samples())
    rows = sample.table.num_rows
    ids = data.draw(st.lists(st.none() | st.integers(0, 5), min_size=rows, max_size=rows))
    wanted = data.draw(st.lists(st.integers(0, 6), max_size=4))
    table = sample.table.append_column("a.b", pa.array(ids, pa.int32()))
    layout = data.draw(layouts(table.schema, rows))
    path = str(tmp_path / "file.parquet")
    layout.write(table, path)
    deleted = sorted(sample.deletes)
    keys = data.draw(st.sampled_from([{}, {"a.b": ascending(wanted, pa.int32())}]))

    positions, found = scanned(path, table.schema, keys, deleted)

    live = [i for i in range(rows) if i not in sample.deletes]
    expected = [i for i in live if not keys or (ids[i] is not None and ids[i] in wanted)]
    assert positions == expected
    assert same(found, table.take(pa.array(expected, pa.int64())).to_pylist())


@pytest.mark.parametrize("name", _KEYS)
@pytest.mark.parametrize("row_group_size", [1, 2, 100])
def test_keys_of_every_type_are_found(tmp_path: Path, name: str, row_group_size: int) -> None:
    values, kind = _KEYS[name]
    table = pa.table({"key": pa.array(values, kind), "n": list(range(len(values)))})
    path = str(tmp_path / "file.parquet")
    pq.write_table(table, path, row_group_size=row_group_size)
    for wanted in ([], values[:1], values[1:3], values):
        positions, _ = scanned(path, table.schema, {"key": ascending(wanted, kind)})

        assert positions == [
            i for i, value in enumerate(values) if value is not None and value in wanted
        ]


def test_a_row_needs_a_wanted_value_in_every_key(tmp_path: Path) -> None:
    table = pa.table({"a": [1, 1, 2, 2], "b": ["x", "y", "x", "y"]})
    pq.write_table(table, tmp_path / "file.parquet")
    keys = {"a": ascending([1, 3], pa.int64()), "b": ascending(["y"], pa.string())}

    assert scanned(str(tmp_path / "file.parquet"), table.schema, keys)[0] == [1]


def test_a_row_group_outside_of_the_keys_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "file.parquet"
    table = pa.table({"id": list(range(20)), "n": [1] * 20})
    pq.write_table(table, path, row_group_size=10, compression="none", use_dictionary=False)
    chunk = pq.ParquetFile(path).metadata.row_group(0).column(0)
    with path.open("r+b") as file:
        file.seek(chunk.data_page_offset)
        file.write(b"\xff" * chunk.total_compressed_size)

    positions, _ = scanned(str(path), table.schema, {"id": ascending([12, 99], pa.int64())})

    assert positions == [12]
    with pytest.raises(OSError, match=r"."):
        scanned(str(path), table.schema, {"id": ascending([2], pa.int64())})


@pytest.mark.parametrize("precision", [1, 4, 9, 18, 19, 38])
@pytest.mark.parametrize("as_integer", [True, False])
def test_decimals_of_every_width(tmp_path: Path, precision: int, as_integer: bool) -> None:
    biggest = 10**precision - 1
    digits = [0, 1, -1, biggest, -biggest, None, 5]
    kind = pa.decimal128(precision, 1)
    values = [None if n is None else Decimal(f"{n}e-1") for n in digits]
    table = pa.table({"d": pa.array(values, kind)})
    path = str(tmp_path / "file.parquet")
    Layout({"store_decimal_as_integer": as_integer, "row_group_size": 4}).write(table, path)

    assert scanned(path, table.schema, {})[1] == [{"d": value} for value in values]


def test_decimals_behind_an_offset() -> None:
    stored = pa.array([b"\x00\x01", None, b"\xff\xfe", b"\x01\x00"], pa.binary(2)).slice(1)

    assert decimals(stored, pa.decimal128(4, 1)).to_pylist() == [
        None,
        Decimal("-0.2"),
        Decimal("25.6"),
    ]


def test_impossible_bounds_leave_out_nothing(tmp_path: Path) -> None:
    least, most = 0x1111111111111111, 0x2222222222222222
    path = tmp_path / "file.parquet"
    rows = pa.table({"id": pa.array([least, most], pa.int64())})
    pq.write_table(rows, path, use_dictionary=False)
    data = path.read_bytes()
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    footer = data[start:].replace(b"\x11" * 8, b"\x33" * 8)
    footer = footer.replace(b"\x22" * 8, b"\x11" * 8).replace(b"\x33" * 8, b"\x22" * 8)
    path.write_bytes(data[:start] + footer)
    bounds = pq.read_metadata(path).row_group(0).column(0).statistics
    assert (bounds.min, bounds.max) == (most, least)

    positions, _ = scanned(str(path), rows.schema, {"id": ascending([least], pa.int64())})

    assert positions == [0]
