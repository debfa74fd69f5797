"""What is copied and what is encoded anew where files are put together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spark_jobs.datafiles.concatenate import InputFile, concatenate
from spark_jobs.datafiles.field_mapping import FieldMapping
from spark_jobs.datafiles.parquet import footer as footers
from spark_jobs.datafiles.parquet import thrift
from spark_jobs.datafiles.parquet.footer import ElementField, FileField, MetaField
from spark_jobs.datafiles.parquet.options import Compression
from spark_jobs.datafiles.rolling_writer import NewFiles
from tests.datafiles.files_to_concatenate import (
    LARGE,
    LOCAL,
    SCHEMA,
    TINY,
    chunks,
    groups,
    nothing,
    put_together,
    rows_of,
    stored,
    with_footer,
    without,
)


def test_small_files_become_one_row_group(tmp_path: Path) -> None:
    inputs = [stored(tmp_path / f"{i}.parquet", rows_of(i * 10, 10)) for i in range(40)]

    written = put_together(tmp_path / "new.parquet", inputs)

    assert groups(tmp_path / "new.parquet") == [400]
    assert pq.read_table(tmp_path / "new.parquet").equals(rows_of(0, 400))
    assert written.statistics["id"].maximum == 399


def test_large_row_groups_are_copied_byte_for_byte(tmp_path: Path) -> None:
    first = stored(tmp_path / "a.parquet", rows_of(0, 300), 100, compression="gzip")
    second = stored(
        tmp_path / "b.parquet",
        rows_of(300, 50),
        compression="snappy",
        data_page_version="2.0",
        write_page_index=True,
    )

    written = put_together(tmp_path / "new.parquet", [first, second], TINY)

    assert groups(tmp_path / "new.parquet") == [100, 100, 100, 50]
    assert chunks(tmp_path / "new.parquet") == chunks(first.path) + chunks(second.path)
    assert pq.read_table(tmp_path / "new.parquet").equals(rows_of(0, 350))
    assert written.statistics["id"].to_json() == [0, 349, 0]
    assert written.statistics["text"].to_json() == ["text 0", "text 4", 50]
    assert written.statistics["list"].null_count == 88


def test_row_groups_of_some_megabytes_are_large(tmp_path: Path) -> None:
    noise = np.random.default_rng(1).random(1_000_000)
    schema = pa.schema([("ratio", pa.float64())])
    large = stored(tmp_path / "a.parquet", pa.table({"ratio": noise}), compression="none")
    small = stored(tmp_path / "b.parquet", pa.table({"ratio": noise[:100_000]}))

    put_together(tmp_path / "new.parquet", [small, large, small, small], schema=schema)

    assert groups(tmp_path / "new.parquet") == [100_000, 1_000_000, 200_000]
    assert chunks(tmp_path / "new.parquet")[1] == chunks(large.path)[0]


def test_many_rows_are_large_however_well_they_compress(tmp_path: Path) -> None:
    schema = pa.schema([("same", pa.int32())])
    rows = pa.table({"same": pa.array(np.zeros(2**20, np.int32))})
    large = stored(tmp_path / "a.parquet", rows)
    small = stored(tmp_path / "b.parquet", rows.slice(0, 1000))

    put_together(tmp_path / "new.parquet", [small, small, large], schema=schema)

    assert groups(tmp_path / "new.parquet") == [2000, 2**20]
    assert chunks(tmp_path / "new.parquet")[1] == chunks(large.path)[0]


def test_only_row_groups_without_deleted_rows_are_copied(tmp_path: Path) -> None:
    source = stored(tmp_path / "a.parquet", rows_of(0, 400), 100)

    changed = without(source, 120, 130, *range(200, 300))
    written = put_together(tmp_path / "new.parquet", [changed], TINY)

    new = chunks(tmp_path / "new.parquet")
    assert (new[0], new[-1]) == (chunks(source.path)[0], chunks(source.path)[3])
    keep = [n for n in range(400) if n not in {120, 130, *range(200, 300)}]
    assert pq.read_table(tmp_path / "new.parquet").equals(rows_of(0, 400).take(keep))
    assert written.rows == 298


def test_no_row_is_left(tmp_path: Path) -> None:
    source = stored(tmp_path / "a.parquet", rows_of(0, 20), 10)
    empty = stored(tmp_path / "b.parquet", rows_of(0, 0))
    files = NewFiles(LOCAL, SCHEMA, LARGE, Compression())

    inputs = [without(source, *range(20)), empty]
    written = concatenate(LOCAL, inputs, str(tmp_path / "new.parquet"), files)

    assert written is None
    assert not (tmp_path / "new.parquet").exists()


def test_new_row_groups_are_bounded(tmp_path: Path) -> None:
    source = stored(tmp_path / "a.parquet", rows_of(0, 50_000))
    limit = 200_000

    inputs = [without(source, 1), without(source, 2)]
    put_together(tmp_path / "new.parquet", inputs, limit)

    file = pq.ParquetFile(tmp_path / "new.parquet")
    sizes = [file.read_row_group(i).nbytes for i in range(file.num_row_groups)]
    assert max(sizes) < 2.1 * limit
    assert len(sizes) < 2.1 * sum(sizes) / limit
    assert file.read().equals(
        pa.concat_tables(
            [
                rows_of(0, 50_000).take([0, *range(2, 50_000)]),
                rows_of(0, 50_000).take([0, 1, *range(3, 50_000)]),
            ]
        )
    )


def test_ids_and_the_name_of_the_root_may_differ(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    source = stored(path, rows_of(0, 100))

    def as_java(fields: Any) -> None:
        root, *others = footers.items(fields[FileField.SCHEMA])
        root[ElementField.NAME] = thrift.binary(b"paimon_schema")
        for number, element in enumerate(others):
            element[ElementField.FIELD_ID] = thrift.i32(number + 50)
        fields[FileField.CREATED_BY] = thrift.binary(b"parquet-mr version 1.15.1 (build 1)")

    with_footer(path, as_java)
    put_together(tmp_path / "new.parquet", [source], TINY)

    assert chunks(tmp_path / "new.parquet") == chunks(path)
    with LOCAL.open_input_file(str(tmp_path / "new.parquet")) as file:
        assert (
            footers.read_footer(file).fields[FileField.CREATED_BY].data.startswith(b"parquet-cpp")
        )


def test_single_columns_that_are_stored_in_another_form_are_encoded_anew(tmp_path: Path) -> None:
    schema = pa.schema([*SCHEMA, ("new", pa.int32()), ("a.b", pa.int64())])
    old = pa.schema([("gone", pa.int8()), *SCHEMA, ("smaller", pa.int32())])
    rows = rows_of(0, 100)
    others = {"gone": pa.array([1] * 100, pa.int8()), "smaller": pa.array(range(100), pa.int32())}
    columns = {**others, **dict(zip(SCHEMA.names, rows.columns, strict=True))}
    source = stored(
        tmp_path / "a.parquet",
        pa.table({name: columns[name] for name in old.names}, old),
        60,
        store_decimal_as_integer=False,
    )
    named = {"new": None, "a.b": old.field("smaller")}
    mappings = [FieldMapping(f, named.get(f.name, f)) for f in schema]

    inputs = [InputFile(source.path, 100, nothing(), mappings)]
    written = put_together(tmp_path / "new.parquet", inputs, TINY, schema)

    before, after = chunks(source.path), chunks(tmp_path / "new.parquet")
    assert groups(tmp_path / "new.parquet") == [60, 40]
    for old_group, new_group in zip(before, after, strict=True):
        kept = [index for index in range(6) if index != 2]
        assert [new_group[index] for index in kept] == [old_group[1 + index] for index in kept]
    found = pq.read_table(tmp_path / "new.parquet")
    assert found.select(SCHEMA.names).equals(rows)
    assert found.column("new").null_count == 100
    assert found.column("a.b").to_pylist() == list(range(100))
    assert written.statistics["a.b"].to_json() == [0, 99, 0]
    assert written.statistics["price"].to_json() == [
        {"decimal": "0.00"},
        {"decimal": "99.00"},
        0,
    ]
    fresh = stored(tmp_path / "fresh.parquet", found)
    assert pq.ParquetFile(tmp_path / "new.parquet").schema.equals(pq.ParquetFile(fresh.path).schema)


def test_a_renamed_column_is_copied(tmp_path: Path) -> None:
    schema = pa.schema([("key", pa.int64()), ("text", pa.string())])
    rows = pa.table({"text": ["b", "c"], "id": [1, 2]})
    source = stored(tmp_path / "a.parquet", rows)
    mappings = [
        FieldMapping(schema.field("key"), pa.field("id", pa.int64())),
        FieldMapping(schema.field("text"), schema.field("text")),
    ]

    inputs = [InputFile(source.path, 2, nothing(), mappings)]
    put_together(tmp_path / "new.parquet", inputs, TINY, schema)

    ((text, key),) = chunks(source.path)
    assert chunks(tmp_path / "new.parquet") == [[key, text]]
    assert pq.read_table(tmp_path / "new.parquet").to_pydict() == {
        "key": [1, 2],
        "text": ["b", "c"],
    }


def test_mostly_foreign_row_groups_are_encoded_in_row_groups_of_bounded_size(
    tmp_path: Path,
) -> None:
    schema = pa.schema([("wide", pa.int64()), ("same", pa.bool_())])
    old = pa.schema([("wide", pa.int32()), ("same", pa.bool_())])
    rows = pa.table({"wide": range(1000), "same": [True] * 1000}, schema=old)
    source = stored(tmp_path / "a.parquet", rows, use_dictionary=False)
    mappings = [FieldMapping(new, old.field(new.name)) for new in schema]

    inputs = [InputFile(source.path, 1000, nothing(), mappings)]
    put_together(tmp_path / "new.parquet", inputs, 1000, schema)

    assert max(groups(tmp_path / "new.parquet")) <= 125
    assert pq.read_table(tmp_path / "new.parquet").equals(rows.cast(schema))


@pytest.mark.parametrize(
    "arguments",
    [
        {"store_decimal_as_integer": False},
        {"coerce_timestamps": "ms"},
        {"use_compliant_nested_type": False},
    ],
    ids=str,
)
def test_what_is_stored_in_another_form_is_encoded_anew(
    tmp_path: Path, arguments: dict[str, Any]
) -> None:
    rows = rows_of(0, 100)
    if "use_compliant_nested_type" in arguments:
        named = pa.list_(pa.field("item", pa.int32()))
        rows = rows.set_column(5, "list", rows.column("list").cast(named))
    source = stored(tmp_path / "a.parquet", rows, **arguments)
    fresh = stored(tmp_path / "fresh.parquet", rows_of(0, 100))

    put_together(tmp_path / "new.parquet", [source], TINY)

    new, old = pq.ParquetFile(tmp_path / "new.parquet"), pq.ParquetFile(source.path)
    assert new.schema.equals(pq.ParquetFile(fresh.path).schema)
    assert not new.schema.equals(old.schema)
    assert new.read().equals(rows_of(0, 100))


@pytest.mark.parametrize("nullable", [True, False])
def test_nullability_of_the_table(tmp_path: Path, nullable: bool) -> None:
    other = pa.schema([pa.field("id", pa.int64(), nullable=not nullable), *list(SCHEMA)[1:]])
    schema = pa.schema([pa.field("id", pa.int64(), nullable=nullable), *list(SCHEMA)[1:]])
    source = stored(tmp_path / "a.parquet", rows_of(0, 100).cast(other))

    put_together(tmp_path / "new.parquet", [source], TINY, schema)

    assert pq.read_schema(tmp_path / "new.parquet").field("id").nullable == nullable
    assert pq.read_table(tmp_path / "new.parquet").equals(rows_of(0, 100).cast(schema))


def test_columns_in_another_order(tmp_path: Path) -> None:
    rows = rows_of(0, 100)
    source = stored(tmp_path / "a.parquet", rows.select(rows.column_names[::-1]))

    put_together(tmp_path / "new.parquet", [source], TINY)

    assert pq.read_table(tmp_path / "new.parquet").equals(rows)


def test_files_whose_pages_are_read_otherwise_by_their_writer_are_not_copied(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a.parquet"
    source = stored(path, rows_of(0, 100), group=50)

    def of_old_writer(fields: Any) -> None:
        fields[FileField.CREATED_BY] = thrift.binary(b"parquet-cpp-arrow version 1.0.1")

    with_footer(path, of_old_writer)
    put_together(tmp_path / "new.parquet", [source])

    assert groups(tmp_path / "new.parquet") == [100]


def test_bounds_of_an_unknown_order_are_not_kept(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    source = stored(path, rows_of(0, 100))

    def wrong_bounds(fields: Any) -> None:
        del fields[FileField.COLUMN_ORDERS]
        (group,) = footers.items(fields[FileField.ROW_GROUPS])
        meta = footers.meta_of(footers.chunks_of(group)[0])
        meta[MetaField.STATISTICS].data[footers.StatisticsField.MAX_VALUE] = thrift.binary(bytes(8))

    with_footer(path, wrong_bounds)
    written = put_together(tmp_path / "new.parquet", [source], TINY)

    assert chunks(tmp_path / "new.parquet") == chunks(path)
    assert written.statistics["id"].to_json() == [0, 99, 0]
    statistics = pq.ParquetFile(tmp_path / "new.parquet").metadata.row_group(0).column(0).statistics
    assert (statistics.has_min_max, statistics.null_count) == (False, 0)
