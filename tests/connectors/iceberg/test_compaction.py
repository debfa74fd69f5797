"""Compaction: the same rows in fewer files, and nothing of others undone by it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from spark_jobs.contract.compaction import CompactSpec
from spark_jobs.contract.properties import OPERATION_ID
from spark_jobs.errors import CommitError, ErrorCode
from spark_jobs.spi.compaction import (
    CompactionPlan,
    ConnectorCompaction,
    GroupCommit,
    PartResult,
    PublishedGroup,
)
from spark_jobs.spi.connector import Connector
from spark_jobs.spi.tables import TableHandle
from tests.connectors.iceberg.answers import answering, lost_answer, lost_request
from tests.connectors.iceberg.direct import DirectWrite
from tests.connectors.iceberg.plain_history import (
    NAME,
    SCHEMA,
    append,
    ids,
    made,
    needed,
    refusal,
    snapshots,
    stored,
    table,
)
from tests.connectors.iceberg.plain_tables import PlainCatalog

FULL = CompactSpec(mode="full")


@pytest.fixture
def catalog(tmp_path: Path) -> PlainCatalog:
    """Six files, with the ids 0 to 5."""
    return made(tmp_path, 6, **{"write.merge.mode": "merge-on-read"})


def compaction(connector: Connector) -> ConnectorCompaction:
    assert connector.compaction is not None
    return connector.compaction


def all_partitions(partition: Mapping[str, Any]) -> bool:
    del partition
    return True


def plan(connector: Connector, spec: CompactSpec = FULL) -> tuple[TableHandle, CompactionPlan]:
    handle = connector.metadata.load_table(NAME)
    return handle, compaction(connector).plan(handle, spec, all_partitions)


class Compacting:
    """A plan whose new files are written, but not published."""

    def __init__(self, connector: Connector, spec: CompactSpec = FULL) -> None:
        self._compaction = compaction(connector)
        self.handle, self.plan = plan(connector, spec)
        self._compaction.begin(self.handle, "compact")
        self._done = []
        for group in self.plan.groups:
            compactor = self._compaction.compactor(self.handle, spec)
            results = [
                PartResult(part, tuple(compactor.compact(part.native, f"task-{part.number}")))
                for part in group.parts
            ]
            self._done.append(results)

    def publish(self, require_wanted: Callable[[], None] = lambda: None) -> list[PublishedGroup]:
        properties = {OPERATION_ID: "compact"}
        commit = GroupCommit("compact", lambda done, lost: properties, require_wanted)
        return [self._compaction.publish(self.handle, each, commit) for each in self._done]


def compact(connector: Connector, spec: CompactSpec = FULL) -> list[PublishedGroup]:
    found = Compacting(connector, spec).publish()
    compaction(connector).end(connector.metadata.load_table(NAME), "compact")
    return found


def marked(connector: Connector, file: int) -> None:
    """Delete the first row of a file by a file of position deletes."""
    DirectWrite(connector, rewrite_share=1.0).delete(file, 0).publish()


def live(catalog: PlainCatalog) -> list[Any]:
    """The tasks of a scan: data files with their deletes."""
    return list(table(catalog).scan().plan_files())


def test_files_become_one(catalog: PlainCatalog, connector: Connector) -> None:
    before = stored(catalog)

    (group,) = compact(connector)

    assert ids(catalog) == [0, 1, 2, 3, 4, 5]
    assert len(live(catalog)) == 1
    assert before <= stored(catalog)
    (done,) = group.done.partitions.values()
    assert (done.files_before, done.files_after, done.rows) == (6, 1, 6)
    newest = table(catalog).current_snapshot()
    assert newest.summary.operation.value == "replace"
    assert newest.summary["total-records"] == "6"
    assert newest.summary["total-data-files"] == "1"
    assert ids(catalog, snapshots(catalog)[0]) == [0]
    assert not list(Path(catalog.folder).rglob("*.base"))


def test_a_second_compaction_has_nothing_to_do(catalog: PlainCatalog, connector: Connector) -> None:
    compact(connector)
    assert plan(connector)[1].groups == ()
    append(catalog, 6)
    assert plan(connector, CompactSpec())[1].groups == ()


@pytest.mark.parametrize(
    ("spec", "files"),
    [
        (CompactSpec(), 6),
        (CompactSpec(min_files=7), 0),
        (CompactSpec(target_file_size="1 kb"), 0),
        (CompactSpec(mode="full", min_files=7), 6),
    ],
)
def test_what_is_worth_it(connector: Connector, spec: CompactSpec, files: int) -> None:
    groups = plan(connector, spec)[1].groups
    assert sum(each.files_before for g in groups for each in g.expected.values()) == files


def test_deleted_rows_go_with_their_delete_files(tmp_path: Path) -> None:
    catalog = made(tmp_path, 0, **{"write.merge.mode": "merge-on-read"})
    for number in range(0, 40, 10):
        rows = pa.table({"id": [*range(number, number + 5)]}, schema=SCHEMA)
        table(catalog).append(rows)
    connector = catalog.open()
    marked(connector, 0)
    marked(connector, 3)
    left = ids(catalog)
    assert sum(bool(each.delete_files) for each in live(catalog)) == 2

    compact(connector)

    assert ids(catalog) == left
    assert [each.delete_files for each in live(catalog)] == [set()]
    summary = table(catalog).current_snapshot().summary
    assert len(left) == 18
    assert summary["total-delete-files"] == "0"
    assert summary["removed-position-delete-files"] == "2"


def test_partitions_stay_apart(tmp_path: Path) -> None:
    catalog = PlainCatalog(tmp_path)
    schema = pa.schema([("id", pa.int64()), ("p", pa.string())])
    catalog.create(schema, {"format-version": "2"}, None)
    with table(catalog).update_spec() as change:
        change.add_identity("p")
    for number in range(4):
        rows = [{"id": number, "p": "a"}, {"id": number + 10, "p": "b/c"}, {"id": 20, "p": None}]
        table(catalog).append(pa.Table.from_pylist(rows, schema=schema))
    connector, before = catalog.open(), ids(catalog)

    (group,) = compact(connector)

    assert ids(catalog) == before
    found = {each.file.partition[0]: each.file.record_count for each in live(catalog)}
    assert found == {"a": 4, "b/c": 4, None: 4}
    folders = {Path(each.file.file_path).parent.name for each in live(catalog)}
    assert len(folders) == 3
    assert len(group.done.partitions) == 3


def test_files_of_other_schemas(catalog: PlainCatalog, connector: Connector) -> None:
    from pyiceberg.types import StringType

    with table(catalog).update_schema() as change:
        change.add_column("more", StringType())
        change.rename_column("id", "number")
    schema = pa.schema([("number", pa.int64()), ("more", pa.string())])
    table(catalog).append(pa.table({"number": [6], "more": ["x"]}, schema=schema))

    compact(connector)

    rows = table(catalog).scan().to_arrow().to_pylist()
    expected = [{"number": each, "more": "x" if each == 6 else None} for each in range(7)]
    assert sorted(rows, key=lambda row: row["number"]) == expected
    assert len(live(catalog)) == 1


def test_new_files_keep_the_number_of_the_snapshot_that_was_read(
    catalog: PlainCatalog, connector: Connector
) -> None:
    """So equality deletes that others commit meanwhile still apply."""
    begun = table(catalog).current_snapshot().sequence_number
    work = Compacting(connector)
    append(catalog, 6)

    work.publish()

    (manifest,) = [
        each
        for each in table(catalog).current_snapshot().manifests(table(catalog).io)
        if each.added_snapshot_id == table(catalog).current_snapshot().snapshot_id
        and each.added_files_count
    ]
    (entry,) = [
        each
        for each in manifest.fetch_manifest_entry(table(catalog).io, discard_deleted=True)
        if each.status.value == 1
    ]
    assert entry.sequence_number == begun
    assert manifest.min_sequence_number == begun
    assert ids(catalog) == [0, 1, 2, 3, 4, 5, 6]


def test_who_changes_a_file_meanwhile_keeps_it(catalog: PlainCatalog, connector: Connector) -> None:
    work = Compacting(connector)
    marked(catalog.open(), 0)
    left = ids(catalog)

    (group,) = work.publish()

    assert group.snapshot is None
    assert group.lost == {0}
    assert ids(catalog) == left
    assert stored(catalog) - needed(catalog) == set()


def test_an_append_meanwhile_is_no_conflict(catalog: PlainCatalog, connector: Connector) -> None:
    work = Compacting(connector)
    append(catalog, 6)
    (group,) = work.publish()
    assert group.lost == frozenset()
    assert ids(catalog) == [0, 1, 2, 3, 4, 5, 6]
    assert len(live(catalog)) == 2


@pytest.mark.parametrize("lost", [lost_answer, lost_request])
def test_a_lost_answer(
    catalog: PlainCatalog,
    connector: Connector,
    monkeypatch: pytest.MonkeyPatch,
    lost: Callable[[Any], Any],
) -> None:
    work = Compacting(connector)
    answering(connector, monkeypatch, lost)
    (group,) = work.publish()
    assert group.snapshot is not None
    assert ids(catalog) == [0, 1, 2, 3, 4, 5]
    assert len(live(catalog)) == 1
    known = compaction(connector).commits(connector.metadata.load_table(NAME), "compact")
    assert [each.snapshot_id for each in known] == [snapshots(catalog)[-1]]


def test_an_ended_task_publishes_nothing(catalog: PlainCatalog, connector: Connector) -> None:
    work, known = Compacting(connector), snapshots(catalog)

    def ended() -> None:
        raise CommitError(ErrorCode.RUN_GIVEN_UP, "the task has ended.", "Nothing.")

    assert refusal(lambda: work.publish(ended))[0] is ErrorCode.RUN_GIVEN_UP
    assert snapshots(catalog) == known
