"""Manifests written anew: fewer, clustered by partition, and nothing else is another."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import LongType, NestedField

from spark_jobs.contract.compaction import CompactSpec
from spark_jobs.contract.compaction_record import ManifestRecord
from spark_jobs.contract.request import CatalogSpec
from spark_jobs.contract.result import JobResult
from spark_jobs.errors import CommitError, ErrorCode, JobError
from spark_jobs.spi.compaction import ManifestCommit
from spark_jobs.spi.connector import Connector
from spark_jobs.spi.tables import CommittedSnapshot
from tests.connectors.iceberg.answers import answering, lost_answer, lost_request, refused
from tests.connectors.iceberg.direct import DirectWrite
from tests.connectors.iceberg.plain_history import NAME, SCHEMA, append, ids, made, stored, table
from tests.connectors.iceberg.plain_tables import PlainCatalog
from tests.support.compaction_runs import compact

ONLY = CompactSpec(manifests="only")
_SMALL = {"commit.manifest.target-size-bytes": "6000"}


@pytest.fixture
def catalog(tmp_path: Path) -> PlainCatalog:
    """Six files, each in a manifest of its own, with the ids 0 to 5."""
    return made(tmp_path, 6, **{"write.merge.mode": "merge-on-read"})


def rewrite(
    connector: Connector, require_wanted: Callable[[], None] = lambda: None
) -> tuple[CommittedSnapshot | None, ManifestRecord]:
    commit = ManifestCommit("rewrite", lambda record: record.to_property(), require_wanted)
    assert connector.compaction is not None
    return connector.compaction.rewrite_manifests(connector.metadata.load_table(NAME), commit)


def entries(catalog: PlainCatalog) -> list[tuple[Any, ...]]:
    """What is known of each live file, whichever manifest it is in."""
    now = table(catalog)
    return sorted(
        (
            entry.data_file.file_path,
            entry.snapshot_id,
            entry.sequence_number,
            entry.file_sequence_number,
            entry.data_file.record_count,
            str(entry.data_file.lower_bounds),
        )
        for manifest in now.current_snapshot().manifests(now.io)
        for entry in manifest.fetch_manifest_entry(now.io, discard_deleted=True)
    )


def manifests(catalog: PlainCatalog) -> list[Any]:
    now = table(catalog)
    return list(now.current_snapshot().manifests(now.io))


def test_files_of_a_compaction_keep_both_numbers(
    catalog: PlainCatalog, connector: Connector
) -> None:
    """They are older for deletes than they are."""
    spec = CatalogSpec("iceberg", str(catalog.folder), catalog.options)
    assert compact(connector, spec, CompactSpec(mode="full"), name=NAME).error is None
    append(catalog, 6)
    before = entries(catalog)
    assert any(number < of_file for _, _, number, of_file, _, _ in before)

    rewrite(connector)

    assert entries(catalog) == before


def test_manifests_become_one(catalog: PlainCatalog, connector: Connector) -> None:
    before, size = entries(catalog), table(catalog).current_snapshot().summary["total-files-size"]
    assert len(manifests(catalog)) == 6

    snapshot, record = rewrite(connector)

    assert record == ManifestRecord(6, 1, 0)
    assert entries(catalog) == before
    assert ids(catalog) == [0, 1, 2, 3, 4, 5]
    newest = table(catalog).current_snapshot()
    assert snapshot is not None
    assert newest.snapshot_id == snapshot.snapshot_id
    assert newest.summary.operation.value == "replace"
    assert newest.summary["total-records"] == "6"
    assert newest.summary["total-files-size"] == size
    assert newest.summary["manifests-created"] == "1"
    assert newest.summary["manifests-replaced"] == "6"
    assert newest.summary["entries-processed"] == "6"
    (one,) = manifests(catalog)
    assert (one.existing_files_count, one.added_files_count, one.min_sequence_number) == (6, 0, 1)
    assert rewrite(connector) == (None, ManifestRecord(1, 1, 0))


def test_a_table_without_a_snapshot(tmp_path: Path) -> None:
    assert rewrite(made(tmp_path, 0).open()) == (None, ManifestRecord())


def _partitioned(folder: Path, **properties: str) -> PlainCatalog:
    """Twelve commits, each of which adds a file to four partitions."""
    catalog = PlainCatalog(folder)
    schema = Schema(NestedField(1, "id", LongType()), NestedField(2, "p", LongType()))
    spec = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "p"))
    library = catalog.library()
    library.create_namespace_if_not_exists("db")
    library.create_table(
        ("db", "t"), schema, partition_spec=spec, properties={"format-version": "2", **properties}
    )
    for number in range(12):
        rows = {"id": [number] * 4, "p": [3, None, 1, 2]}
        table(catalog).append(pa.table(rows, pa.schema([("id", pa.int64()), ("p", pa.int64())])))
    return catalog


def test_entries_are_clustered_by_partition(tmp_path: Path) -> None:
    catalog = _partitioned(tmp_path, **_SMALL)
    before = entries(catalog)

    _, record = rewrite(catalog.open())

    assert 1 < record.after < record.before == 12
    assert entries(catalog) == before
    found = []
    now = table(catalog)
    for manifest in manifests(catalog):
        files = [each.data_file for each in manifest.fetch_manifest_entry(now.io)]
        found += [-1 if each.partition[0] is None else each.partition[0] for each in files]
    assert found == sorted(found)
    assert len(found) == 48
    assert rewrite(catalog.open())[0] is None
    # A filter reads only some of them.
    assert now.scan("p = 3").to_arrow().num_rows == 12
    now.append(pa.table({"id": [99, 99], "p": [0, 3]}))
    assert rewrite(catalog.open())[0] is not None
    assert len(entries(catalog)) == 50


def test_deletes_that_apply_to_nothing_go(tmp_path: Path) -> None:
    catalog = made(tmp_path, 0, **{"write.merge.mode": "merge-on-read"})
    for number in range(4):
        rows = {"id": [number, number + 10, number + 20, number + 30]}
        table(catalog).append(pa.table(rows, schema=SCHEMA))
    connector = catalog.open()
    for file in (0, 1):
        DirectWrite(connector, rewrite_share=1.0).delete(file, 0).publish()
    gone = next(each for each in table(catalog).scan().plan_files() if each.delete_files)
    # As engines do that know nothing of its deletes.
    _without_file(catalog, gone.file.file_path)
    live = ids(catalog)
    assert sum(each.content.value != 0 for each in _files(catalog)) == 2

    _, record = rewrite(connector)

    assert record.deletes_removed == 1
    assert ids(catalog) == live
    newest = table(catalog).current_snapshot()
    assert newest.summary["removed-position-delete-files"] == "1"
    assert newest.summary["total-position-deletes"] == "1"
    assert newest.summary["total-delete-files"] == "1"
    assert sum(each.content.value != 0 for each in _files(catalog)) == 1
    assert rewrite(connector)[0] is None


def _files(catalog: PlainCatalog) -> list[Any]:
    now = table(catalog)
    return [
        entry.data_file
        for manifest in manifests(catalog)
        for entry in manifest.fetch_manifest_entry(now.io, discard_deleted=True)
    ]


def _without_file(catalog: PlainCatalog, path: str) -> None:
    now = table(catalog)
    (file,) = [each for each in _files(catalog) if each.file_path == path]
    with now.transaction() as transaction, transaction.update_snapshot().overwrite() as update:
        update.delete_data_file(file)


@pytest.mark.parametrize("lost", [lost_answer, lost_request])
def test_a_lost_answer(
    catalog: PlainCatalog,
    connector: Connector,
    monkeypatch: pytest.MonkeyPatch,
    lost: Callable[[Any], Any],
) -> None:
    before = entries(catalog)
    answering(connector, monkeypatch, lost)

    snapshot, _ = rewrite(connector)

    assert snapshot is not None
    assert entries(catalog) == before
    assert len(table(catalog).snapshots()) == 7
    assert len(manifests(catalog)) == 1


def test_others_that_are_faster(
    catalog: PlainCatalog, connector: Connector, monkeypatch: pytest.MonkeyPatch
) -> None:
    def faster(commit: Callable[[], Any]) -> Any:
        append(catalog, 9)
        return refused(commit)

    answering(connector, monkeypatch, faster)

    _, record = rewrite(connector)

    assert record == ManifestRecord(7, 1, 0)
    assert ids(catalog) == [0, 1, 2, 3, 4, 5, 9]


def test_nothing_is_left_of_a_rewrite_that_is_given_up(
    catalog: PlainCatalog, connector: Connector
) -> None:
    def unwanted() -> None:
        raise CommitError(ErrorCode.RUN_GIVEN_UP, "given up", "none")

    before = stored(catalog)
    with pytest.raises(JobError, match="given up"):
        rewrite(connector, unwanted)
    assert stored(catalog) == before


def _job(connector: Connector, spec: CompactSpec, **more: Any) -> JobResult:
    return compact(connector, CatalogSpec("iceberg", "/"), spec, name=NAME, **more)


def test_jobs_rewrite_behind_a_compaction_once(catalog: PlainCatalog, connector: Connector) -> None:
    spec = CompactSpec(mode="full", manifests="rewrite")
    foretold = _job(connector, spec, dry_run=True).compaction
    assert foretold is not None
    assert (foretold.manifests_before, foretold.manifests_after) == (6, 1)
    assert len(table(catalog).snapshots()) == 6

    result = _job(connector, spec, operation_id="once")

    report = result.compaction
    assert result.error is None
    assert report is not None
    assert (report.files_before, report.manifests_after, len(report.snapshots)) == (6, 1, 2)
    assert len(manifests(catalog)) == 1
    assert ids(catalog) == [0, 1, 2, 3, 4, 5]
    assert not list(Path(catalog.folder).rglob("*.base"))


def test_a_later_try_finds_what_an_earlier_one_rewrote(
    catalog: PlainCatalog, connector: Connector, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = _job(connector, ONLY, operation_id="once")
    assert first.compaction is not None
    for note in Path(catalog.folder).rglob("once.json"):
        note.unlink()
    append(catalog, 9)
    assert connector.compaction is not None
    monkeypatch.setattr(connector.compaction, "rewrite_manifests", None)

    again = _job(connector, ONLY, operation_id="once", try_number=2)

    assert (again.status, again.error) == ("committed", None)
    assert again.compaction == first.compaction
