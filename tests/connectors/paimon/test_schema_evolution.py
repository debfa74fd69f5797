"""A table gets columns with a statement's snapshot, or without one; each schema is made once."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from spark_jobs.connectors.paimon.commit.merge_writes import PaimonMergeWrites
from spark_jobs.connectors.paimon.commit.publish import SnapshotFiles
from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.request import CatalogSpec
from spark_jobs.errors import ErrorCode, JobError
from spark_jobs.spi.alterations import SchemaChange
from spark_jobs.spi.connector import Connector
from spark_jobs.spi.tables import TableHandle
from spark_jobs.storage.hard_link import HardLinkFiles
from tests.support.paimon_tables import NAME, append, create, inserts, merge, read, snapshot_ids

MORE = SchemaChange(("more",), "string")
NEW = {"id": 2, "more": "new"}
OLD_ROW, NEW_ROW = {"id": 1, "more": None}, NEW


class FailingFiles(HardLinkFiles):
    """Storage that fails at one kind of file: before it is there, or after."""

    def __init__(self, kind: str, error: OSError, *, acts: bool = False) -> None:
        self.kind, self.error, self.acts = kind, error, acts

    def create(self, path: str, text: str) -> bool:
        if f"/{self.kind}-" not in path:
            return super().create(path, text)
        if self.acts:
            super().create(path, text)
        raise self.error


@pytest.fixture
def table(connector: Connector) -> TableHandle:
    create(connector, {"id": "int"})
    append(connector, [{"id": 1}])
    return connector.metadata.load_table(NAME)


def evolved(connector: Connector, *changes: SchemaChange) -> TableHandle:
    return connector.metadata.evolved(connector.metadata.load_table(NAME), changes or (MORE,))


def on(connector: Connector, files: FailingFiles) -> Connector:
    """The connector on storage that fails."""
    writes = connector.writes
    assert isinstance(writes, PaimonMergeWrites)
    filesystem = connector.storage.filesystem
    failing = PaimonMergeWrites(writes._metadata, filesystem, SnapshotFiles(files))
    return replace(connector, writes=failing)


def schemas(table: TableHandle) -> list[str]:
    return sorted(path.name for path in Path(table.native.path, "schema").iterdir())


def failure(action: Callable[[], object]) -> JobError:
    with pytest.raises(JobError) as raised:
        action()
    return raised.value


def test_nothing_is_stored_before_the_write_is_published(
    connector: Connector, table: TableHandle
) -> None:
    wider = evolved(connector)
    assert wider.column_names == ("id", "more")
    assert wider.added_columns == ("more",)
    assert wider.snapshot_id == table.snapshot_id
    assert schemas(table) == ["schema-0"]
    assert connector.metadata.load_table(NAME).columns == table.columns


def test_schema_and_snapshot_are_published(connector: Connector, table: TableHandle) -> None:
    wider = evolved(connector)
    merge(connector, wider, inserts(wider, [NEW]))
    assert schemas(table) == ["schema-0", "schema-1"]
    assert read(connector) == [OLD_ROW, NEW_ROW]
    snapshot = json.loads(Path(table.native.path, "snapshot", "snapshot-2").read_text())
    assert snapshot["schemaId"] == 1


def test_a_schema_without_a_snapshot(connector: Connector, table: TableHandle) -> None:
    connector.writes.store_schema(evolved(connector))
    connector.writes.store_schema(table)
    assert schemas(table) == ["schema-0", "schema-1"]
    assert snapshot_ids(connector) == [1]
    assert read(connector) == [OLD_ROW]


@pytest.mark.parametrize(
    ("error", "code", "says"),
    [
        (OSError("full"), ErrorCode.STORAGE_UNAVAILABLE, "its rows have not"),
        (TimeoutError("no answer"), ErrorCode.COMMIT_OUTCOME_UNKNOWN, "has been changed (added"),
    ],
)
def test_an_error_after_the_schema_says_that_it_is_stored(
    connector: Connector, table: TableHandle, error: OSError, code: ErrorCode, says: str
) -> None:
    wider = evolved(connector)
    failing = on(connector, FailingFiles("snapshot", error))

    found = failure(lambda: merge(failing, wider, inserts(wider, [NEW])))

    assert found.code is code
    assert says in found.message
    assert "added more STRING" in found.message
    assert schemas(table) == ["schema-0", "schema-1"]
    assert read(connector) == [OLD_ROW]
    again = connector.metadata.load_table(NAME)
    merge(connector, again, inserts(again, [NEW]), operation_id="again")
    assert read(connector) == [OLD_ROW, NEW_ROW]


@pytest.mark.parametrize("error", [OSError("full"), TimeoutError("no answer")])
def test_a_schema_that_cannot_be_stored(
    connector: Connector, table: TableHandle, error: OSError
) -> None:
    wider = evolved(connector)
    failing = on(connector, FailingFiles("schema", error))
    found = failure(lambda: merge(failing, wider, inserts(wider, [NEW])))
    assert found.code is ErrorCode.STORAGE_UNAVAILABLE
    assert "chema 1" in found.message
    assert snapshot_ids(connector) == [1]
    assert read(connector) == [{"id": 1}]


def test_a_schema_whose_answer_is_lost(connector: Connector, table: TableHandle) -> None:
    wider = evolved(connector)
    failing = on(connector, FailingFiles("schema", OSError("reset"), acts=True))
    merge(failing, wider, inserts(wider, [NEW]))
    assert read(connector) == [OLD_ROW, NEW_ROW]


def test_another_schema_that_was_faster(connector: Connector, table: TableHandle) -> None:
    wider = evolved(connector)
    connector.writes.store_schema(evolved(connector, SchemaChange(("other",), "int")))

    found = failure(lambda: merge(connector, wider, inserts(wider, [NEW])))

    assert found.code is ErrorCode.COMMIT_CONFLICT
    assert "schema" in found.message
    assert schemas(table) == ["schema-0", "schema-1"]
    assert connector.metadata.load_table(NAME).column_names == ("id", "other")


def test_the_same_schema_that_was_faster(connector: Connector, table: TableHandle) -> None:
    wider = evolved(connector)
    connector.writes.store_schema(evolved(connector))
    merge(connector, wider, inserts(wider, [NEW]))
    assert read(connector) == [OLD_ROW, NEW_ROW]
    assert schemas(table) == ["schema-0", "schema-1"]


def test_a_conflict_of_rows_comes_before_the_schema(
    connector: Connector, table: TableHandle
) -> None:
    wider = evolved(connector)
    append(connector, [{"id": 5}], "other")
    found = failure(lambda: merge(connector, wider, inserts(wider, [NEW])))
    assert found.code is ErrorCode.COMMIT_CONFLICT
    assert schemas(table) == ["schema-0"]


def test_new_columns_come_before_the_partition_columns_where_the_table_wants_it(
    warehouse: Path,
) -> None:
    connector = open_connector(CatalogSpec("paimon", str(warehouse)), {})
    options = {"add-column-before-partition": "true"}
    create(connector, {"id": "int", "p": "int"}, ["p"], options)
    assert evolved(connector).column_names == ("id", "more", "p")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (SchemaChange(("_SEQUENCE_NUMBER",), "int"), "keeps the name for itself"),
        (SchemaChange(("p",), "bigint", "int"), "is a partition column"),
        (SchemaChange(("b",), "bigint", "int"), "is a bucket key column"),
        (SchemaChange(("m", "key", "y"), "int"), "in the keys of a map"),
        (SchemaChange(("id",), "date", "int"), "refuses to change"),
        (SchemaChange(("n",), "interval day"), "INTERVAL DAY"),
        (SchemaChange(("__merge_x",), "int"), "reserved"),
    ],
    ids=str,
)
def test_what_paimon_does_not_allow(connector: Connector, change: SchemaChange, says: str) -> None:
    columns = {"id": "int", "b": "int", "p": "int", "m": "map<struct<x:int>,int>"}
    create(connector, columns, ["p"], {"bucket": "2", "bucket-key": "b"})
    found = failure(lambda: evolved(connector, change))
    assert found.code is ErrorCode.NOT_SUPPORTED
    assert says in found.message
    assert change.path[0] in found.message
