"""Equality deletes that others commit meanwhile are in the way if a row has one of their keys."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform, MonthTransform
from pyiceberg.types import DateType, DecimalType, LongType, NestedField, StringType

from spark_jobs.connectors.iceberg.commit.changes import changes_of
from spark_jobs.connectors.iceberg.commit.conflicts import KeyConflicts
from spark_jobs.connectors.iceberg.table.pinned_table import pinned_table
from spark_jobs.errors import ErrorCode, JobError
from spark_jobs.spi.connector import Connector
from tests.connectors.iceberg.direct import DirectWrite, ids_in
from tests.connectors.iceberg.plain_tables import NAME, PlainCatalog
from tests.connectors.iceberg.test_commits import file_with, library_table, rows
from tests.connectors.iceberg.test_equality_deletes import delete_by_value, live_ids

SCHEMA = pa.schema([("id", pa.int64()), ("s", pa.string())])


@pytest.fixture
def catalog(tmp_path: Path) -> PlainCatalog:
    """A file with the ids 0 to 4, another one with 10 to 14."""
    made = PlainCatalog(tmp_path)
    made.create(SCHEMA, {"format-version": "2"}, rows(*range(5)))
    made.library().load_table(("db", "t")).append(rows(*range(10, 15)))
    return made


def refused(write: DirectWrite) -> None:
    with pytest.raises(JobError) as caught:
        write.publish()
    assert caught.value.code is ErrorCode.COMMIT_CONFLICT


@pytest.mark.parametrize("share", [0.0, 1.0], ids=["rewritten", "marked"])
@pytest.mark.parametrize(
    ("ids", "conflicts"),
    [
        ([2], False),  # of another file
        ([12], True),  # a row that stays
        ([11], True),  # the row that is deleted
        ([11.5], False),
        ([99], False),
        ([2, 14], True),
        ([None], False),
    ],
)
def test_keys_of_changed_files(
    catalog: PlainCatalog,
    connector: Connector,
    ids: list[float | None],
    conflicts: bool,
    share: float,
) -> None:
    with library_table(catalog).transaction() as transaction:
        transaction.set_properties({"write.merge.mode": "merge-on-read"})
    write = DirectWrite(connector, isolation="snapshot", rewrite_share=share)
    write.delete(file_with(write, 11), 1)
    column = "id" if all(each is None or each == int(each) for each in ids) else "s"
    delete_by_value(connector, [{"id": each, "s": str(each)} for each in ids], column)
    beside = live_ids(connector)

    if conflicts:
        refused(write)
        assert live_ids(connector) == beside
    else:
        write.publish()
        assert live_ids(connector) == [each for each in beside if each != 11]


@pytest.mark.parametrize(
    ("new", "read", "conflicts"),
    [
        (20, (0, 100), True),  # who had inserted it because there was none
        (21, (0, 100), False),
        (20, (0, 15), False),  # who had not looked for it
    ],
)
def test_keys_of_new_rows(
    catalog: PlainCatalog,
    connector: Connector,
    new: int,
    read: tuple[int, int],
    conflicts: bool,
) -> None:
    write = DirectWrite(connector, isolation="snapshot", read_set=ids_in(*read))
    write.insert({"id": new, "s": "new"})
    # As a stream does that upserts.
    delete_by_value(connector, [{"id": 20}], "id", measured=True)
    library_table(catalog).append(rows(20))

    if conflicts:
        refused(write)
        assert live_ids(connector).count(20) == 1
    else:
        write.publish()
        assert live_ids(connector) == sorted([*range(5), *range(10, 15), 20, new])


@pytest.mark.parametrize(
    ("key", "conflicts"), [(2, False), (12, True), (13, True), (30, False), (None, False)]
)
def test_what_a_serializable_statement_has_read(
    catalog: PlainCatalog, connector: Connector, key: int | None, conflicts: bool
) -> None:
    write = DirectWrite(connector, read_set=ids_in(10, 14)).insert({"id": 40, "s": "new"})
    delete_by_value(connector, [{"id": key}], "id", measured=True)

    if conflicts:
        refused(write)
    else:
        write.publish()
        assert 40 in live_ids(connector)


def test_rows_that_are_gone_have_no_keys(catalog: PlainCatalog, connector: Connector) -> None:
    delete_by_value(connector, [{"id": 12}], "id")
    write = DirectWrite(connector, isolation="snapshot")
    write.delete(file_with(write, 11), 1)
    delete_by_value(connector, [{"id": 12}], "id")

    write.publish()

    assert live_ids(connector) == [0, 1, 2, 3, 4, 10, 13, 14]


def test_many_commits_of_a_stream(catalog: PlainCatalog, connector: Connector) -> None:
    write = DirectWrite(connector, isolation="snapshot", read_set=ids_in(10, 14))
    write.update(file_with(write, 11), 1, "changed").insert({"id": 40, "s": "new"})
    for number in range(5):
        delete_by_value(connector, [{"id": number}], "id", measured=True)
        library_table(catalog).append(rows(number))

    write.publish()

    assert live_ids(connector) == [*range(5), *range(10, 15), 40]


def test_new_files_have_the_partitions_of_manifests(tmp_path: Path) -> None:
    """Decimals too, or deletes of their partition would seem to be of another one."""
    catalog = PlainCatalog(tmp_path)
    schema = Schema(
        NestedField(1, "id", LongType()),
        NestedField(2, "s", StringType()),
        NestedField(3, "amount", DecimalType(9, 2)),
        NestedField(4, "day", DateType()),
    )
    spec = PartitionSpec(
        PartitionField(3, 1000, IdentityTransform(), "amount"),
        PartitionField(4, 1001, MonthTransform(), "day_month"),
    )
    opened = catalog.library()
    opened.create_namespace("db")
    opened.create_table(("db", "t"), schema, partition_spec=spec)
    connector = catalog.open()
    write = DirectWrite(connector)
    for amount in (Decimal("-1.25"), Decimal("100000.5"), None):
        write.insert({"id": 1, "s": "x", "amount": amount, "day": dt.date(1969, 12, 31)})
    base = pinned_table(write.table)
    changes = changes_of(base, write.fragments, overwrites=False)
    keys = KeyConflicts(NAME, base, changes)

    write.publish()

    published = pinned_table(connector.metadata.load_table(NAME)).files
    stored = {each.entry.path: each.entry.partition for each in published}
    assert len(stored) == 3
    entries = [keys._added(each).entry for each in changes.added]
    assert {each.path: each.partition for each in entries} == stored
