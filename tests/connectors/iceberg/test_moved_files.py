"""Compactions of files of older partition specs, whose rows go to partitions of today."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spark_jobs.connectors.shared.compaction import bins
from spark_jobs.contract.compaction import CompactSpec
from tests.connectors.iceberg.direct import DirectWrite
from tests.connectors.iceberg.plain_history import NAME, stored, table
from tests.connectors.iceberg.plain_tables import PlainCatalog
from tests.connectors.iceberg.test_compaction import FULL, Compacting, compact, live, marked, plan

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("p", pa.string()),
        ("f", pa.float64()),
        ("m", pa.decimal128(9, 2)),
        ("at", pa.timestamp("us", "UTC")),
    ]
)
Field = tuple[str, str]


def rows(first: int, count: int = 8) -> list[dict[str, Any]]:
    """Rows with NULLs, NaN and both zeros among the values."""
    numbers = [None, float("nan"), -0.0, 0.0, 1.5]
    return [
        {
            "id": n,
            "p": [None, "a", "b/c"][n % 3],
            "f": numbers[n % 5],
            "m": None if n % 4 == 3 else Decimal(n % 4) / 4,
            "at": datetime(2026, 1, 1 + n % 2, n % 24, tzinfo=UTC),
        }
        for n in range(first, first + count)
    ]


def made(folder: Path, *files: list[dict[str, Any]], **properties: str) -> PlainCatalog:
    catalog = PlainCatalog(folder)
    catalog.create(SCHEMA, {"format-version": "2", **properties}, None)
    for each in files:
        append(catalog, each)
    return catalog


def append(catalog: PlainCatalog, added: list[dict[str, Any]]) -> None:
    table(catalog).append(pa.Table.from_pylist(added, schema=SCHEMA))


def partition(catalog: PlainCatalog, *fields: Field, drop: tuple[str, ...] = ()) -> None:
    """Give the table another spec: columns with transforms, and fields to drop."""
    from pyiceberg.transforms import parse_transform

    with table(catalog).update_spec() as change:
        for name in drop:
            change.remove_field(name)
        for column, transform in fields:
            change.add_field(column, parse_transform(transform))


def found(catalog: PlainCatalog) -> list[str]:
    return sorted(map(repr, table(catalog).scan().to_arrow().to_pylist()))


def told(*files: list[dict[str, Any]]) -> list[str]:
    wanted = pa.Table.from_pylist([row for each in files for row in each], schema=SCHEMA)
    return sorted(map(repr, wanted.to_pylist()))


def specs(catalog: PlainCatalog) -> Counter[int]:
    return Counter(each.file.spec_id for each in live(catalog))


@pytest.mark.parametrize("version", ["1", "2"])
@pytest.mark.parametrize(
    ("fields", "files"),
    [
        ([("p", "identity")], 3),
        ([("id", "bucket[4]")], 4),
        ([("p", "truncate[1]"), ("id", "truncate[10]")], 6),
        ([("at", "day")], 2),
        ([("at", "hour")], 16),
        ([("m", "identity"), ("m", "bucket[2]")], 4),
    ],
)
def test_a_table_that_became_partitioned(
    tmp_path: Path, fields: list[Field], files: int, version: str
) -> None:
    before = [rows(0), rows(8)]
    catalog = made(tmp_path, *before, **{"format-version": version})
    partition(catalog, *fields)

    (group,) = compact(catalog.open())

    assert found(catalog) == told(*before)
    assert specs(catalog) == {table(catalog).spec().spec_id: files}
    (done,) = group.done.partitions.values()
    assert (done.values, done.files_before, done.files_after) == ({}, 2, files)
    assert plan(catalog.open())[1].groups == ()
    assert table(catalog).current_snapshot().summary.operation.value == "replace"


@pytest.mark.parametrize("version", ["1", "2"])
def test_a_table_that_is_not_partitioned_any_more(tmp_path: Path, version: str) -> None:
    catalog = made(tmp_path, **{"format-version": version})
    partition(catalog, ("p", "identity"))
    append(catalog, rows(0))
    partition(catalog, drop=("p",))
    append(catalog, rows(8))

    (group,) = compact(catalog.open())

    assert found(catalog) == told(rows(0), rows(8))
    (only,) = live(catalog)
    assert only.file.spec_id == table(catalog).spec().spec_id
    # In version 1, the field stays without values, and pyiceberg makes a folder for it.
    assert Path(only.file.file_path).parent.name in ("data", "p=null")
    assert [each.files_before for each in group.done.partitions.values()] == [4]
    assert plan(catalog.open())[1].groups == ()


def test_fields_come_and_go(tmp_path: Path) -> None:
    catalog = made(tmp_path, rows(0), **{"format-version": "1"})
    partition(catalog, ("p", "identity"))
    append(catalog, rows(8))
    partition(catalog, ("id", "bucket[2]"), drop=("p",))

    compact(catalog.open())

    assert found(catalog) == told(rows(0), rows(8))
    assert specs(catalog).keys() == {table(catalog).spec().spec_id}


def test_rows_of_a_new_file_are_in_order(tmp_path: Path) -> None:
    catalog = made(tmp_path, rows(0), rows(8))
    partition(catalog, ("p", "identity"))
    spec = CompactSpec(mode="full", sort_by=("f DESC", "id"))
    order = ["nan", "1.5", "0.0", "-0.0", "None"]

    compact(catalog.open(), spec)

    assert found(catalog) == told(rows(0), rows(8))
    for each in live(catalog):
        file = pq.ParquetFile(each.file.file_path.removeprefix("file://"))
        keys = [(order.index(str(row["f"])), row["id"]) for row in file.read().to_pylist()]
        assert keys == sorted(keys)


def test_only_small_files_unless_it_is_full(tmp_path: Path) -> None:
    catalog = made(tmp_path, *(rows(8 * n) for n in range(5)))
    partition(catalog, ("p", "identity"))
    connector = catalog.open()
    assert plan(connector, CompactSpec(min_files=6))[1].groups == ()
    assert plan(connector, CompactSpec(target_file_size="1 kb"))[1].groups == ()

    compact(connector, CompactSpec())

    assert specs(catalog) == {1: 3}


def test_partitions_name_those_of_today(tmp_path: Path) -> None:
    catalog = made(tmp_path, rows(0))
    partition(catalog, ("p", "identity"))
    append(catalog, rows(8))
    append(catalog, rows(16))
    connector = catalog.open()
    assert connector.compaction is not None
    handle = connector.metadata.load_table(NAME)
    asked: list[Any] = []

    def wanted(values: Any) -> bool:
        asked.append(dict(values))
        return values == {"p": "a"}

    (group,) = connector.compaction.plan(handle, FULL, wanted).groups

    assert {} in asked
    assert [each.values for each in group.expected.values()] == [{"p": "a"}]


def test_deletes_are_applied_and_go(tmp_path: Path) -> None:
    catalog = made(tmp_path, rows(0), rows(8), **{"write.merge.mode": "merge-on-read"})
    marked(catalog.open(), 0)
    marked(catalog.open(), 1)
    left = found(catalog)
    assert len(left) == 14
    partition(catalog, ("p", "identity"))

    compact(catalog.open())

    assert found(catalog) == left
    assert [each.delete_files for each in live(catalog)] == [set()] * 3
    assert table(catalog).current_snapshot().summary["total-delete-files"] == "0"


def test_a_group_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = made(tmp_path, rows(0), rows(8))
    partition(catalog, ("p", "identity"))
    monkeypatch.setattr(bins, "SORTED_BYTES", 1)
    spec = CompactSpec(mode="full", target_file_size="1 kb")

    (group,) = plan(catalog.open(), spec)[1].groups

    assert len(group.parts) == 2
    compact(catalog.open(), spec)
    assert found(catalog) == told(rows(0), rows(8))


def test_who_changes_a_file_meanwhile_keeps_it(tmp_path: Path) -> None:
    catalog = made(tmp_path, rows(0), rows(8), **{"write.merge.mode": "merge-on-read"})
    partition(catalog, ("p", "identity"))
    work = Compacting(catalog.open())
    DirectWrite(catalog.open(), rewrite_share=1.0).delete(0, 0).publish()
    known, left = stored(catalog), found(catalog)

    (group,) = work.publish()

    assert (group.snapshot, group.lost) == (None, {0})
    assert found(catalog) == left
    assert len(known - stored(catalog)) == 3
