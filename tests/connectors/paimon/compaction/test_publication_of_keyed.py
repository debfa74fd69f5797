"""Publishing compactions of tables with a primary key, and merges beside compactions."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from spark_jobs.contract.compaction import CompactSpec
from spark_jobs.contract.partition_names import partition_key
from spark_jobs.errors import ErrorCode, JobError
from spark_jobs.spi import rows
from spark_jobs.spi.connector import Connector
from spark_jobs.spi.tables import TableHandle
from tests.connectors.paimon.compaction.publishing import (
    VECTORS,
    all_of,
    compacted,
    document,
    is_clean,
    planned,
    publish,
    small_files,
)
from tests.support.paimon_appends import as_compacted
from tests.support.paimon_tables import (
    NAME,
    append,
    begin,
    change_rows,
    create,
    inserts,
    merge,
    read,
    schema_of,
    store,
)


class TestKeyed:
    @pytest.fixture
    def table(self, connector: Connector) -> TableHandle:
        """Three runs of the keys 1 and 3."""
        create(
            connector,
            {"id": "int", "v": "string"},
            options={"bucket": "1", "write-only": "true"},
            primary_key=["id"],
        )
        for number in range(3):
            values = [{"id": key, "v": f"{number}"} for key in (1, 3)]
            append(connector, values, f"op-{number}")
        return connector.metadata.load_table(NAME)

    def test_records_of_level_0_are_never_in_the_way(
        self, connector: Connector, table: TableHandle, warehouse: Path
    ) -> None:
        results = compacted(connector, table, planned(connector, table))
        append(connector, [{"id": 1, "v": "new"}, {"id": 2, "v": "new"}], "other")

        group = publish(connector, table, results)

        assert group.lost == frozenset()
        assert [row["v"] for row in read(connector)] == ["new", "new", "2"]
        assert document(warehouse, 5)["totalRecordCount"] == 4

    def test_a_file_of_the_level_within_the_keys_is_in_the_way(
        self, connector: Connector, table: TableHandle, warehouse: Path
    ) -> None:
        results = compacted(connector, table, planned(connector, table))
        builder = table.native.table.new_batch_write_builder()
        write, commit = builder.new_write(), builder.new_commit()
        write.write_arrow(pa.Table.from_pylist([{"id": 2, "v": "x"}], schema=schema_of(table)))
        messages = write.prepare_commit()
        as_compacted(messages)
        commit.commit(messages)

        group = publish(connector, table, results)

        assert (group.snapshot, group.lost) == (None, {0})
        assert is_clean(warehouse)

    def test_an_append_does_not_fail_on_it(self, connector: Connector, table: TableHandle) -> None:
        handle = begin(connector, table, "append")
        fragments = store(handle, inserts(table, [{"id": 1, "v": "mine"}]))
        all_of(connector, table)

        assert connector.writes.finish_merge(table, handle, fragments, {}).snapshot_id == 5
        assert [row["v"] for row in read(connector)] == ["mine", "2"]


class TestMergesBesideIt:
    """A merge that began before a compaction, and commits after it."""

    def test_it_does_not_fail_where_files_were_not_taken(self, connector: Connector) -> None:
        table = small_files(connector, rows_each=2)
        handle = begin(connector, table)
        file = next(f for f in connector.metadata.plan_files(table) if f.partition["p"] == 1)
        gone = change_rows(table, rows.DELETE, [{"file": file.ordinal, "position": 0}])
        fragments = store(handle, gone)
        results = compacted(connector, table, planned(connector, table))
        kept = [r for r in results if r.part.partition == partition_key({"p": 0})]
        publish(connector, table, kept)

        connector.writes.finish_merge(table, handle, fragments, {})

        assert len(read(connector)) == 11

    def test_it_conflicts_where_its_file_was_taken(self, connector: Connector) -> None:
        table = small_files(connector, rows_each=2)
        handle = begin(connector, table)
        fragments = store(handle, change_rows(table, rows.DELETE, [{"file": 0, "position": 0}]))
        all_of(connector, table)

        with pytest.raises(JobError) as caught:
            connector.writes.finish_merge(table, handle, fragments, {})
        assert caught.value.code is ErrorCode.COMMIT_CONFLICT
        assert len(read(connector)) == 12

    def test_it_follows_vectors_that_a_compaction_moved(
        self, connector: Connector, warehouse: Path
    ) -> None:
        """Files 0 and 1 share an index file; file 0 is compacted, file 1 gets more marks."""
        create(connector, {"id": "int", "p": "int"}, ["p"], VECTORS)
        for number in range(2):
            values = [{"id": 100 * number + row, "p": 0} for row in range(20)]
            append(connector, values, f"op-{number}")
        table = connector.metadata.load_table(NAME)
        marks = [{"file": 0, "position": n} for n in range(5)] + [{"file": 1, "position": 3}]
        merge(connector, table, change_rows(table, rows.DELETE, marks), operation_id="mark")
        table = connector.metadata.load_table(NAME)
        assert len(table.native.files.index_files) == 1
        planned_files = connector.metadata.plan_files(table)
        first, second = (file.ranges["id"].minimum for file in planned_files)
        handle = begin(connector, table)
        more = change_rows(table, rows.DELETE, [{"file": 1, "position": 7}])
        fragments = store(handle, more)
        spec = CompactSpec(deleted_share=0.2, target_file_size="1 b", small_file_share=0)
        results = compacted(connector, table, planned(connector, table, spec), spec)
        assert publish(connector, table, results).snapshot is not None

        connector.writes.finish_merge(table, handle, fragments, {})

        gone = {*range(first, first + 5), second + 3, second + 7}
        assert {row["id"] for row in read(connector)} == {*range(20), *range(100, 120)} - gone
        latest = connector.metadata.load_table(NAME).native
        assert [each.cardinality for each in latest.files.vectors.values()] == [2]
        assert is_clean(warehouse)
