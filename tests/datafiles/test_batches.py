"""Files that are read in batches have the same rows and errors as those read by row groups."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spark_jobs.datafiles.decoded_rows import BatchSize
from spark_jobs.datafiles.file_scan import FileScan
from spark_jobs.datafiles.parquet import footer as footers
from spark_jobs.datafiles.parquet import row_groups
from spark_jobs.datafiles.parquet.damage import reading_file
from spark_jobs.datafiles.parquet.footer import FileField, GroupField
from spark_jobs.datafiles.parquet.thrift import STRUCT, i64, list_of
from spark_jobs.errors import CatalogError, ErrorCode
from tests.datafiles import avro_files, test_avro, test_int96, test_older_schemas, test_orc
from tests.datafiles.parquet_files import layouts
from tests.datafiles.strategies import samples
from tests.datafiles.test_rewrite_property import same

LOCAL = pafs.LocalFileSystem()
NOTHING = np.zeros(0, np.int64)
MIB = 2**20
SIZES = [BatchSize(MIB, 1), BatchSize(100, 1000), BatchSize(5_000, 7), BatchSize(MIB, 2**17)]


@pytest.fixture(autouse=True, params=["step by step", "buffered", "at once"])
def _reading(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """How parquet row groups are decoded; they are too small to be decoded in all ways."""
    if request.param != "at once":
        monkeypatch.setattr(row_groups, "_READER_BYTES", 0)
    if request.param == "buffered":
        monkeypatch.setattr(row_groups, "_BUFFER_BYTES", 64)


def found(
    scan: FileScan, path: str, deleted: Sequence[int] = (), rows: int | None = None
) -> tuple[list[int], list[dict[str, Any]]]:
    parts = list(scan.rows(path, np.array(deleted, np.int64), rows))
    for positions, table in parts:
        table.validate(full=True)
        assert table.schema == pa.schema(scan.fields)
        assert table.num_rows == len(positions) > 0
        assert scan.most is None or table.num_rows <= scan.most.rows
    positions = [place for places, _ in parts for place in places.tolist()]
    return positions, [row for _, table in parts for row in table.to_pylist()]


def check(scan: FileScan, path: str, deleted: Sequence[int] = (), rows: int | None = None) -> None:
    expected = found(scan, path, deleted, rows)
    for most in SIZES:
        assert same(found(dataclasses.replace(scan, most=most), path, deleted, rows), expected)


@pytest.mark.slow
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_rows_of_any_type_in_any_layout(tmp_path: Path, data: Any) -> None:
    sample = data.draw(samples())
    table, path = sample.table, str(tmp_path / "file.parquet")
    data.draw(layouts(table.schema, table.num_rows)).write(table, path)
    check(FileScan(LOCAL, list(table.schema), {}), path, sorted(sample.deletes), table.num_rows)


old_file = test_older_schemas.old_file


@pytest.mark.by_turns(3)
@pytest.mark.parametrize("deleted", [[], [3, 299, 300], list(range(300, 600)), list(range(1000))])
def test_files_of_older_schemas(old_file: str, deleted: list[int]) -> None:
    mappings = {each.field.name: each for each in test_older_schemas.MAPPINGS}
    fields = [each.field for each in mappings.values()]
    check(FileScan(LOCAL, fields, {}, mappings), old_file, deleted, test_older_schemas.ROWS)


def test_only_columns_that_the_file_does_not_have(old_file: str) -> None:
    mappings = {each.field.name: each for each in test_older_schemas.MAPPINGS}
    check(FileScan(LOCAL, [mappings["gone"].field], {}, mappings), old_file, [5])


source = test_int96.source


def test_timestamps_that_are_int96(source: str) -> None:
    check(FileScan(LOCAL, [pa.field("at", test_int96.MICROS)], {}), source, [1])


def test_orc_stripes(tmp_path: Path) -> None:
    path = str(tmp_path / "file.orc")
    rows = {"id": pa.array(range(5_000)), "a.b": [f"{i:040}" for i in range(5_000)]}
    rows["s"] = pa.array([{"x": i} for i in range(5_000)], test_orc.OLD.field("s").type)
    orc.write_table(pa.table(rows, test_orc.OLD), path, stripe_size=20_000, batch_size=1_000)
    assert orc.ORCFile(path).nstripes > 2
    scan = FileScan(LOCAL, test_orc.FIELDS, {}, test_orc.BY_NAME)
    check(scan, path, [0, 4_999], 5_000)


def test_avro_blocks(tmp_path: Path) -> None:
    rows = [test_avro.row(i) for i in range(1_000)]
    stored = [each | {"dropped": b"\0", "a.b": each["c"]} for each in rows]
    path = avro_files.write(tmp_path / "data.avro", test_avro.STORED, stored, block_bytes=2_000)
    check(FileScan(LOCAL, test_avro.FIELDS, {}, test_avro.BY_NAME), path, [7], 1_000)


def test_avro_batches_are_small(tmp_path: Path) -> None:
    rows = [{"id": i} for i in range(10_000)]
    path = avro_files.write(tmp_path / "data.avro", {"id": "long"}, rows, block_bytes=1_000)
    scan = FileScan(LOCAL, [pa.field("id", pa.int64())], {}, most=BatchSize(8_000, 10_000))
    counts = [table.num_rows for _, table in scan.rows(path, NOTHING)]
    assert sum(counts) == 10_000
    assert max(counts) < 3_000


def test_rows_that_are_missing(tmp_path: Path) -> None:
    path = str(tmp_path / "file.parquet")
    pq.write_table(pa.table({"n": list(range(10))}), path, row_group_size=4)
    for most in (None, *SIZES):
        scan = FileScan(LOCAL, [pa.field("n", pa.int64())], {}, most=most)
        with pytest.raises(pa.ArrowInvalid, match="it has 10 rows, but should have 11"):
            list(scan.rows(path, NOTHING, 11))


def test_damage_is_told_with_the_file(tmp_path: Path) -> None:
    path = tmp_path / "file.parquet"
    table = pa.table({"n": list(range(1_000))})
    pq.write_table(table, path, row_group_size=250, compression="zstd", use_dictionary=False)
    chunk = pq.ParquetFile(path).metadata.row_group(2).column(0)
    content = bytearray(path.read_bytes())
    content[chunk.data_page_offset : chunk.data_page_offset + 40] = b"\xff" * 40
    path.write_bytes(content)
    for most in (None, *SIZES):
        scan = FileScan(LOCAL, [pa.field("n", pa.int64())], {}, most=most)
        seen = 0
        with pytest.raises(CatalogError) as raised, reading_file(str(path)):  # noqa: PT012
            for _, rows in scan.rows(str(path), NOTHING):
                seen += rows.num_rows
        assert raised.value.code is ErrorCode.DATA_FILE_UNREADABLE
        assert str(path) in raised.value.message
        assert seen == 500


def test_fewer_rows_than_the_footer_says(tmp_path: Path) -> None:
    path = tmp_path / "file.parquet"
    pq.write_table(pa.table({"n": list(range(10))}), path, store_schema=False)
    with LOCAL.open_input_file(str(path)) as stream:
        fields = footers.read_footer(stream).fields
    (group,) = footers.items(fields[FileField.ROW_GROUPS])
    groups = list_of(STRUCT, [{**group, GroupField.NUM_ROWS: i64(11)}])
    content = path.read_bytes()
    length = int.from_bytes(content[-8:-4], "little") + 8
    new = {**fields, FileField.ROW_GROUPS: groups, FileField.NUM_ROWS: i64(11)}
    path.write_bytes(content[:-length] + footers.framed(new))
    for most in (None, *SIZES):
        scan = FileScan(LOCAL, [pa.field("n", pa.int64())], {}, most=most)
        with pytest.raises(CatalogError) as raised, reading_file(str(path)):  # noqa: PT012
            for positions, rows in scan.rows(str(path), NOTHING, 11):
                rows.append_column("place", pa.array(positions))
        assert raised.value.code is ErrorCode.DATA_FILE_UNREADABLE
