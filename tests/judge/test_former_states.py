"""Former states of Paimon's tables: the rows and columns that Java reads of them."""

from __future__ import annotations

import shutil

import pyarrow as pa
import pytest
from pypaimon import CatalogFactory
from pypaimon.schema.data_types import AtomicType
from pypaimon.schema.schema_change import SchemaChange

from airflow_provider_merge.sql.parser import parse_statement
from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.request import CatalogSpec, JobRequest, TableName
from spark_jobs.contract.table_versions import TableVersion
from spark_jobs.engine.runtime.session import fixed_settings, meaningful_settings
from spark_jobs.errors import JobError
from spark_jobs.run import run
from spark_jobs.spi.rows import ROW_ID
from tests.judge.judge import read_with_java
from tests.judge.writer import JavaTable
from tests.support.judged_values import from_arrow

NAME = TableName("d", "t")
VECTORS = {"deletion-vectors.enabled": "true"}
KINDS = {
    "append": ((), {}),
    "vectors": ((), VECTORS),
    "tracked": ((), {"row-tracking.enabled": "true"}),
    "key": (("id",), {"bucket": "1"}),
    "key, vectors": (("id",), {"bucket": "1", **VECTORS}),
}
ROWS = pa.table({"id": pa.array([1, 2, 3, 4], pa.int64()), "v": ["a", "b", "c", "d"]})


def done(spark, warehouse, text, number):
    parsed = parse_statement(text)
    request = JobRequest(
        f"s{number}", parsed.target, catalog(warehouse), parsed.statement, parsed.sources
    )
    result = run(request, spark)
    assert result.error is None, result.error


def catalog(warehouse):
    return CatalogSpec("paimon", str(warehouse.path))


def made(spark, warehouse, kind):
    """A table with a history of rows and columns."""
    keys, options = KINDS[kind]
    fields = [field.with_nullable(field.name not in keys) for field in ROWS.schema]
    warehouse.create("d.t", pa.schema(fields), primary_keys=keys, options=options)
    library = CatalogFactory.create({"warehouse": str(warehouse.path)})
    statements = (
        "INSERT INTO d.t VALUES (1, 'a'), (2, 'b'), (3, 'c'), (4, 'd')",
        "DELETE FROM d.t WHERE id = 2",
        [SchemaChange.add_column("more", AtomicType("INT"))],
        "INSERT INTO d.t VALUES (5, 'e', 50)",
        "UPDATE d.t SET v = 'A' WHERE id = 1",
        [SchemaChange.rename_column("v", "called")],
        "UPDATE d.t SET more = 30 WHERE id = 3",
        [SchemaChange.drop_column("more")],
        "DELETE FROM d.t WHERE id IN (4, 5)",
    )
    for number, each in enumerate(statements):
        if isinstance(each, str):
            done(spark, warehouse, each, number)
        else:
            library.alter_table("d.t", each, False)


def rows_then(spark, warehouse, at, millis=None, name=NAME):
    connector = open_connector(catalog(warehouse), {})
    table = connector.metadata.load_version(name, at, millis)
    files = connector.metadata.plan_files(table)
    with fixed_settings(spark, meaningful_settings("UTC")):
        frame = connector.scan.read(spark, table, files, table.column_names).drop(ROW_ID)
        return sorted(from_arrow(frame.toArrow()), key=repr)


@pytest.mark.parametrize("kind", KINDS)
def test_each_state_is_read_as_by_java(spark, warehouse, kind):
    made(spark, warehouse, kind)
    manager = warehouse.table("d.t").snapshot_manager()
    latest = manager.get_latest_snapshot().id
    assert latest >= 6
    for number in range(1, latest + 1):
        wanted = sorted(read_with_java(warehouse.path, "d.t", snapshot=number), key=repr)
        assert rows_then(spark, warehouse, TableVersion(snapshot=number)) == wanted, number
        millis = manager.get_snapshot_by_id(number).time_millis
        assert rows_then(spark, warehouse, TableVersion(as_of="2024-01-01"), millis) == wanted


def test_tags_outlive_snapshots_and_branches_have_their_own(spark, warehouse):
    table = JavaTable.create(warehouse.path, "d.t", ROWS.schema)
    table.append(ROWS)
    done(spark, warehouse, "DELETE FROM d.t WHERE id = 2", 0)
    warehouse.table("d.t").create_tag("2024", 1)
    branch = table.new_branch("side")
    branch.append(ROWS.slice(0, 1))
    snapshots = warehouse.path / "d.db/t/snapshot"
    (snapshots / "snapshot-1").unlink()
    (snapshots / "EARLIEST").write_text("2")

    wanted = sorted(from_arrow(ROWS), key=repr)
    # As in Paimon, a name is a tag before it is a snapshot.
    for at in (TableVersion(tag="2024"), TableVersion(version="2024")):
        assert rows_then(spark, warehouse, at) == wanted
    side = TableName("d", "t$branch_side")
    own = branch_ids(warehouse)
    for number in own:
        java = sorted(
            read_with_java(warehouse.path, "d.t", branch="side", snapshot=number), key=repr
        )
        assert rows_then(spark, warehouse, TableVersion(snapshot=number), name=side) == java

    metadata = open_connector(catalog(warehouse), {}).metadata
    for at, millis, code in (
        (TableVersion(snapshot=1), None, "SNAPSHOT_NOT_FOUND"),
        (TableVersion(snapshot=99), None, "SNAPSHOT_NOT_FOUND"),
        (TableVersion(version="99"), None, "SNAPSHOT_NOT_FOUND"),
        (TableVersion(tag="99"), None, "TAG_NOT_FOUND"),
        (TableVersion(tag="../tag/tag-2024"), None, "TAG_NOT_FOUND"),
        (TableVersion(version="gone"), None, "TAG_NOT_FOUND"),
        (TableVersion(as_of="2000-01-01"), 946_684_800_000, "SNAPSHOT_NOT_FOUND"),
    ):
        with pytest.raises(JobError, match=str(NAME)) as caught:
            metadata.load_version(NAME, at, millis)
        assert caught.value.code.name == code
        assert caught.value.places == (at.field,)
        assert caught.value.remedy
    shutil.rmtree(warehouse.path)


def branch_ids(warehouse):
    folder = warehouse.path / "d.db/t/branch/branch-side/snapshot"
    return sorted(int(each.name.partition("-")[2]) for each in folder.glob("snapshot-*"))
