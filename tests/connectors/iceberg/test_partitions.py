"""Partitions by field: what statements without a session replace, and their names."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from spark_jobs.connectors.iceberg.table.live_files import partition_key
from spark_jobs.contract.inserts import (
    DropPartitionsSpec,
    PartitionStatement,
    TruncateTableSpec,
)
from spark_jobs.contract.request import CatalogSpec, JobRequest
from spark_jobs.contract.result import JobResult
from spark_jobs.engine.analysis.partition_specs import value_of
from spark_jobs.errors import ErrorCode, JobError
from spark_jobs.run import run
from spark_jobs.spi.tables import PlannedFile
from tests.connectors.iceberg.direct import DirectWrite, ids_of
from tests.connectors.iceberg.plain_tables import NAME, PlainCatalog

SCHEMA = pa.schema([("id", pa.int64()), ("at", pa.timestamp("us", "UTC")), ("p", pa.string())])
TIMES = (
    None,
    dt.datetime(1969, 12, 31, 23, 59, tzinfo=dt.UTC),
    dt.datetime(2026, 1, 31, 7, 30, tzinfo=dt.UTC),
    dt.datetime(2026, 2, 1, 0, 0, tzinfo=dt.UTC),
)
PLACES = tuple((at, p) for at in TIMES for p in "ab")
ROWS = [{"id": number, "at": at, "p": p} for number, (at, p) in enumerate(PLACES)]


def partitioned(folder: Path, *fields: tuple[str, str]) -> PlainCatalog:
    """A table with ROWS, partitioned by transforms of columns."""
    catalog = PlainCatalog(folder)
    table = catalog.create(SCHEMA, {"format-version": "2"}, None)
    with table.update_spec() as update:
        for column, transform in fields:
            update.add_field(column, transform, f"{column}_{transform.partition('[')[0]}")
    # pyiceberg needs another package to transform values.
    DirectWrite(catalog.open()).insert(*ROWS).publish()
    return catalog


def done(catalog: PlainCatalog, statement: PartitionStatement) -> JobResult:
    spec = CatalogSpec("iceberg", str(catalog.folder), catalog.options)
    return run(JobRequest(uuid.uuid4().hex, NAME, spec, statement), None)


@pytest.mark.parametrize(
    ("transform", "constant", "gone", "called"),
    [
        ("year", "2026", {4, 5, 6, 7}, "at_year=2026"),
        ("month", "'2026-01'", {4, 5}, "at_month=2026-01"),
        ("day", "DATE '2026-02-01'", {6, 7}, "at_day=2026-02-01"),
        ("hour", "'1969-12-31-23'", {2, 3}, "at_hour=1969-12-31-23"),
        ("day", "NULL", {0, 1}, "at_day=NULL"),
    ],
)
def test_a_partition_is_dropped(
    tmp_path: Path, transform: str, constant: str, gone: set[int], called: str
) -> None:
    catalog = partitioned(tmp_path, ("at", transform))

    result = done(catalog, DropPartitionsSpec(({f"at_{transform}": constant},)))

    assert result.error is None, result.error
    assert set(ids_of(catalog)) == set(range(8)) - gone
    assert result.partitions == (called,)
    snapshot = catalog.library().load_table(("db", "t")).current_snapshot()
    assert snapshot.summary.operation.value == "overwrite"


def test_parts_of_a_spec(tmp_path: Path) -> None:
    catalog = partitioned(tmp_path, ("p", "identity"), ("at", "year"))

    result = done(catalog, TruncateTableSpec({"p_identity": "'a'"}))

    assert result.error is None, result.error
    assert ids_of(catalog) == [1, 3, 5, 7]


@pytest.mark.parametrize(
    ("partition", "says"),
    [
        ({"at": "NULL"}, "at is not a partition column"),
        ({"at_day": "DATE '1999-01-01'"}, "has no partition at_day"),
    ],
)
def test_what_is_no_partition(tmp_path: Path, partition: dict[str, str], says: str) -> None:
    catalog = partitioned(tmp_path, ("at", "day"))

    result = done(catalog, DropPartitionsSpec((partition,)))

    assert result.error is not None
    assert says in result.error.message
    assert len(ids_of(catalog)) == len(ROWS)


@pytest.mark.parametrize("day", ["2026-01-31", "2026-02-01"])
def test_only_who_writes_into_the_partition_is_in_the_way(tmp_path: Path, day: str) -> None:
    catalog = partitioned(tmp_path, ("at", "day"))
    connector = catalog.open()
    replaced = dt.date(2026, 1, 31)

    def read_set(files: Sequence[PlannedFile]) -> Sequence[PlannedFile]:
        return [each for each in files if value_of(each.partition, "at_day") == replaced]

    write = DirectWrite(connector, read_set=read_set)
    write.delete(read_set(write.files)[0].ordinal, 0)
    at = dt.datetime.fromisoformat(f"{day}T08:00:00+00:00")
    DirectWrite(connector, reads=False).insert({"id": 20, "at": at, "p": "a"}).publish()

    if dt.date.fromisoformat(day) == replaced:
        with pytest.raises(JobError) as caught:
            write.publish()
        assert caught.value.code is ErrorCode.COMMIT_CONFLICT
        assert ids_of(catalog) == [*range(8), 20]
    else:
        write.publish()
        assert ids_of(catalog) == [*range(4), *range(5, 8), 20]


def test_floating_partitions_are_told_apart() -> None:
    found = {partition_key(0, {1: each}) for each in (float("nan"), float("nan"), 0.0, -0.0, None)}

    assert len(found) == 4
