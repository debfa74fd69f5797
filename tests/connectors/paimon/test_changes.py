"""Which files tell the changes of a table, and when they do not; without a JVM."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs
import pytest

from spark_jobs.connectors.paimon.read.arrow_scan import ArrowScan
from spark_jobs.connectors.paimon.read.changes import _mappings, _part
from spark_jobs.connectors.paimon.table.table_handle import pinned_table
from spark_jobs.connectors.shared.read.scans import ChangedScan
from spark_jobs.contract.marks import mark_text
from spark_jobs.contract.properties import OPERATION_ID
from spark_jobs.contract.request import TableName, TableSource
from spark_jobs.contract.table_versions import ChangeRange
from spark_jobs.engine.marks.marks import Marks, NewMark
from spark_jobs.engine.source.table_changes import chosen_changes
from spark_jobs.errors import CatalogError, CommitError, NotSupportedError
from spark_jobs.spi.changes import TableChanges
from spark_jobs.spi.connector import Connector
from tests.support.direct_merges import merge_rows
from tests.support.paimon_changelogs import with_changelogs
from tests.support.paimon_tables import (
    NAME,
    append,
    append_with_pypaimon,
    create,
    inserts,
    merge,
    schema_of,
    snapshot_ids,
)
from tests.support.undone_runs import of_run, undone

VECTORS = {"deletion-vectors.enabled": "true"}
TARGET = TableName("shop", "target")
MARK = "merge.mark.m"


def changes(connector: Connector, since: int, *, net: bool = False) -> TableChanges:
    assert connector.changes is not None
    table = connector.metadata.load_table(NAME)
    connector.changes.require_told(table, net=net)
    return connector.changes.changes(table, since, net=net)


def net_rows(found: TableChanges) -> dict[int, int]:
    """The ids that came (1) and went (-1)."""
    pinned = pinned_table(found.table)
    mappings = _mappings(pinned, [each.native.entry for each in found.files])
    fields = tuple(schema_of(found.table))
    scan = ChangedScan(ArrowScan(pafs.LocalFileSystem(), fields, {}, mappings))
    counts: dict[int, int] = {}
    for number, each in enumerate(found.files):
        for batch in scan.read([_part(pinned, number, each.native)]):
            for value in batch.column(0).to_pylist():
                counts[value] = counts.get(value, 0) + each.sign
    return {value: count for value, count in counts.items() if count}


def deletes(connector: Connector, operation_id: str, run: str, *ids: int) -> None:
    merge_rows(
        connector,
        NAME,
        ["id"],
        [{"id": each, "s": None} for each in ids],
        ["s"],
        lambda row: row["s"] is None,
        operation_id=operation_id,
        properties=of_run(run, operation_id),
    )


def test_rows_that_an_undo_brought_back_are_told_beside_later_deletes(
    connector: Connector,
) -> None:
    create(connector, {"id": "int", "s": "string"}, (), VECTORS)
    append(connector, [{"id": each, "s": "a"} for each in range(6)])
    deletes(connector, "first", "r", 1)
    since = snapshot_ids(connector)[-1]
    undone(connector, NAME, "r", "u")
    deletes(connector, "second", "s", 2)

    for net in (True, False):
        assert net_rows(changes(connector, since, net=net)) == {1: 1, 2: -1}


def overwritten(connector: Connector) -> None:
    table = connector.metadata.load_table(NAME).native.table
    builder = table.new_batch_write_builder().overwrite({})
    write, commit = builder.new_write(), builder.new_commit()
    rows: list[dict[str, Any]] = [{"id": 7, "v": "new"}]
    columns = pa.schema([pa.field("id", pa.int32(), nullable=False), ("v", pa.string())])
    write.write_arrow(pa.Table.from_pylist(rows, schema=columns))
    commit.commit(write.prepare_commit())
    write.close()
    commit.close()


def test_an_overwrite_that_no_changelog_tells_is_a_gap(
    connector: Connector, warehouse: Path
) -> None:
    with_changelogs(connector, warehouse, 3)
    assert len(changes(connector, 1).files) == 2
    overwritten(connector)
    with pytest.raises(CatalogError, match=r"SNAPSHOT_NOT_FOUND.*snapshot 4 changed rows"):
        changes(connector, 1)
    assert changes(connector, 4).files == ()


@pytest.mark.parametrize(
    "options", [{"merge-engine": "partial-update"}, {"sequence.field": "n"}], ids=str
)
def test_written_records_do_not_tell_the_last_state(
    connector: Connector, options: dict[str, str]
) -> None:
    columns = {"id": "int", "n": "int"}
    given = {"bucket": "1", "changelog-producer": "input", **options}
    create(connector, columns, (), given, primary_key=["id"])
    assert connector.changes is not None
    table = connector.metadata.load_table(NAME)
    connector.changes.require_told(table, net=False)
    with pytest.raises(NotSupportedError, match="net=True"):
        connector.changes.require_told(table, net=True)


def chosen(connector: Connector, asked: ChangeRange) -> Any:
    marks = Marks(connector, connector.metadata.load_table(TARGET))
    source: Any = None, TableSource("s", NAME, changes=asked)
    return chosen_changes(*source, connector, marks, MARK)


def target(connector: Connector, mark: NewMark | None = None) -> None:
    """A table that perhaps has a mark."""
    table = create(connector, {"id": "int"}, name=TARGET)
    if mark is not None:
        recorded = {mark.name: mark_text(mark.document), OPERATION_ID: "op"}
        merge(connector, table, inserts(table, [{"id": 1}]), properties=recorded)
        Marks(connector, connector.metadata.load_table(TARGET)).settle(mark.name)


def test_changes_begin_at_now_only_once(connector: Connector, warehouse: Path) -> None:
    create(connector, {"id": "int"})
    append(connector, [{"id": 1}])
    target(connector)
    begun = chosen(connector, ChangeRange("now"))
    assert begun.is_empty
    shutil.rmtree(warehouse / "shop.db" / TARGET.table)
    target(connector, begun.mark)
    assert chosen(connector, ChangeRange("now")).mark is None
    shutil.rmtree(warehouse / "shop.db" / TARGET.table)
    target(connector)
    with pytest.raises(CommitError, match=r"MARK_LOST.*source s"):
        chosen(connector, ChangeRange("now"))
    assert chosen(connector, ChangeRange("all")).since == 0


def test_a_table_that_was_empty_is_not_read_before_its_changelog_is_written(
    connector: Connector,
) -> None:
    options = {"bucket": "1", "changelog-producer": "lookup"}
    create(connector, {"id": "int", "s": "string"}, (), options, primary_key=["id"])
    target(connector)
    begun = chosen(connector, ChangeRange("all"))
    assert begun.mark.document["snapshot"] == 0
    target_ = connector.metadata.load_table(TARGET)
    recorded = {MARK: mark_text(begun.mark.document), OPERATION_ID: "op"}
    merge(connector, target_, inserts(target_, [{"id": 1}]), properties=recorded)
    append_with_pypaimon(connector.metadata.load_table(NAME), [{"id": 1, "s": "a"}])
    with pytest.raises(NotSupportedError, match="has still to write the changelog"):
        chosen(connector, ChangeRange("all"))
