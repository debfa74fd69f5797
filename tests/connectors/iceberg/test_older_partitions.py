"""Statements that replace partitions where some files are of an older spec, without Spark."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from spark_jobs.contract.inserts import (
    DropPartitionsSpec,
    PartitionStatement,
    TruncateTableSpec,
)
from spark_jobs.contract.plain_constants import Constant
from spark_jobs.contract.request import CatalogSpec, JobRequest
from spark_jobs.contract.result import JobResult, PartitionMetrics
from spark_jobs.engine.insert.replacement import Replacement
from spark_jobs.errors import ErrorCode, JobError
from spark_jobs.run import run
from spark_jobs.spi.tables import PlannedFile
from tests.connectors.iceberg.direct import DirectWrite, ids_of
from tests.connectors.iceberg.plain_tables import NAME, PlainCatalog
from tests.connectors.iceberg.test_partitions import ROWS, SCHEMA, done
from tests.support.iceberg_version_3 import give_ids, upgrade

# Of the older file of each: "a" has even ids, the days are 0-1, 2-3, 4-5 and 6-7.
_OLD = list(range(8))
_NEW = list(range(100, 108))
_JANUARY = dt.datetime(2026, 1, 31, 7, 30, tzinfo=dt.UTC)


def evolved(
    folder: Path,
    before: Sequence[tuple[str, str]],
    after: Sequence[tuple[str, str]],
    rows: Sequence[dict[str, object]] = ROWS,
    **properties: str,
) -> PlainCatalog:
    """A table with ROWS in files by ``before``, and again, with greater ids, in ones by ``after``.

    Fields of ``before`` that are not in ``after`` are gone.
    """
    catalog = PlainCatalog(folder)
    table = catalog.create(SCHEMA, {"format-version": "2", **properties}, None)
    names = {each: f"{each[0]}_{each[1].partition('[')[0]}" for each in (*before, *after)}
    with table.update_spec() as update:
        for each in before:
            update.add_field(*each, names[each])
    DirectWrite(catalog.open()).insert(*clustered(rows, before)).publish()
    table = catalog.library().load_table(("db", "t"))
    with table.update_spec() as update:
        for each in set(before) - set(after):
            update.remove_field(names[each])
        for each in after:
            if each not in before:
                update.add_field(*each, names[each])
    newer = [{**each, "id": each["id"] + 100} for each in ROWS]
    DirectWrite(catalog.open()).insert(*clustered(newer, after)).publish()
    return catalog


def clustered(
    rows: Sequence[dict[str, object]], fields: Sequence[tuple[str, str]]
) -> list[dict[str, object]]:
    """Rows in the order of the columns of some fields."""
    columns = [column for column, _ in fields]
    return sorted(rows, key=lambda row: [str(row[each] or "") for each in columns])


def paths_of(catalog: PlainCatalog) -> list[Path]:
    """The data files."""
    tasks = catalog.library().load_table(("db", "t")).scan().plan_files()
    return [Path(task.file.file_path.removeprefix("file://")) for task in tasks]


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read", "vectors"])
def test_rows_of_older_files_go_or_stay(tmp_path: Path, mode: str) -> None:
    properties = {} if mode == "copy-on-write" else {"write.delete.mode": "merge-on-read"}
    # Of four files by the day only one has more than a third of its rows in the partition.
    rows = [each for each in ROWS if each["p"] == "b"] * 3 + ROWS
    rows = [{**each, "id": number} for number, each in enumerate(rows)]
    catalog = evolved(tmp_path, [("at", "year")], [("p", "identity")], rows, **properties)
    if mode == "vectors":
        upgrade(catalog.library().load_table(("db", "t")))
        give_ids(CatalogSpec("iceberg", str(catalog.folder), catalog.options), NAME)

    result = done(catalog, TruncateTableSpec({"p_identity": "'a'"}))

    assert result.error is None, result.error
    metrics = result.metrics
    assert (metrics.deleted, metrics.files_scanned) == (8, 3)
    assert metrics.files_rewritten == (3 if mode == "copy-on-write" else 0)
    assert metrics.deletion_vectors_added == (0 if mode == "copy-on-write" else 3)
    assert ids_of(catalog) == [*(r["id"] for r in rows if r["p"] == "b"), 101, 103, 105, 107]
    assert result.partitions == ("at_year=1969", "at_year=2026", "at_year=NULL", "p_identity=a")


# The fields before, those after, a constant for each of these, the ids that go, and files read.
_KNOWN = {
    "the same field": (
        *([("p", "identity")], [("p", "identity"), ("at", "day")]),
        *({"p_identity": "'a'"}, {0, 2, 4, 6}, 0),
    ),
    "a bucket": (
        *([("id", "bucket[2]"), ("p", "identity")], [("id", "bucket[2]")]),
        *({"id_bucket": "0"}, None, 0),
    ),
    "a day of a month": ([("at", "day")], [("at", "month")], {"at_month": "'2026-01'"}, {4, 5}, 0),
    "the month of a day": (
        *([("at", "month")], [("at", "day")], {"at_day": "DATE '2026-01-31'"}, {4, 5}, 0),
    ),
    "a year of several days": (
        *([("p", "identity")], [("at", "day")], {"at_day": "DATE '2026-01-31'"}, {4, 5}, 2),
    ),
    "before 1970": ([("at", "day")], [("at", "year")], {"at_year": "1969"}, {2, 3}, 0),
    "NULL": ([("at", "day")], [("at", "hour")], {"at_hour": "NULL"}, {0, 1}, 0),
    "no partitions": ([], [("p", "identity")], {"p_identity": "'b'"}, {1, 3, 5, 7}, 1),
    "none of them": ([], [("p", "identity")], {"p_identity": "'c'"}, set(), 0),
}


@pytest.mark.parametrize(
    ("before", "after", "constants", "gone", "read"), _KNOWN.values(), ids=_KNOWN
)
def test_what_need_not_be_read(
    tmp_path: Path,
    before: list[tuple[str, str]],
    after: list[tuple[str, str]],
    constants: dict[str, str],
    gone: set[int] | None,
    read: int,
) -> None:
    catalog = evolved(tmp_path, before, after)
    wanted = ids_of(catalog)

    result = done(catalog, DropPartitionsSpec((constants,), if_exists=True))

    assert result.error is None, result.error
    assert result.metrics.files_scanned == read
    found = ids_of(catalog)
    assert len(wanted) - len(found) == result.metrics.deleted
    if gone is None:
        # Which bucket a row is in does not depend on the spec.
        assert {each for each in found if each < 100} < set(_OLD)
        gone = set(_OLD) - set(found)
    assert [each for each in found if each < 100] == sorted(set(_OLD) - gone)


def test_whole_files_go_unread(tmp_path: Path) -> None:
    catalog = evolved(tmp_path, [("at", "day")], [("at", "month")])
    for path in paths_of(catalog):
        path.unlink()

    result = done(catalog, TruncateTableSpec({"at_month": "'2026-02'"}))

    assert result.error is None, result.error
    assert (result.metrics.deleted, result.metrics.files_removed) == (4, 2)


def test_a_row_that_cannot_be_read_leaves_the_table(tmp_path: Path) -> None:
    catalog = evolved(tmp_path, [("at", "year")], [("p", "identity")])
    (old,) = (each for each in paths_of(catalog) if "at_year=1969" in str(each))
    old.write_bytes(b"damaged")
    files = set(tmp_path.rglob("*.parquet"))
    before = catalog.library().load_table(("db", "t")).current_snapshot().snapshot_id

    result = done(catalog, TruncateTableSpec({"p_identity": "'a'"}))

    assert result.error is not None
    assert result.error.code == "DATA_FILE_UNREADABLE"
    assert catalog.library().load_table(("db", "t")).current_snapshot().snapshot_id == before
    assert set(tmp_path.rglob("*.parquet")) == files
    assert not list((tmp_path / "_operations").glob(f"{result.operation_id}.base"))


def test_a_partition_that_only_rows_could_tell(tmp_path: Path) -> None:
    catalog = evolved(tmp_path, [], [("p", "identity"), ("at", "day")])
    february = {"p_identity": "'aa'", "at_day": "DATE '2026-01-31'"}
    files = set(tmp_path.rglob("*.parquet"))

    result = done(catalog, DropPartitionsSpec(({"p_identity": "'a'"}, february)))

    assert result.error is not None
    assert result.error.code == "PARTITION_NOT_FOUND"
    assert "'aa'" in result.error.message
    assert ids_of(catalog) == [*_OLD, *_NEW]
    assert set(tmp_path.rglob("*.parquet")) == files
    result = done(catalog, DropPartitionsSpec(({"p_identity": "'aa'"},), if_exists=True))
    assert (result.status, result.metrics.files_scanned) == ("unchanged", 1)


def test_a_partition_within_another_one_is_looked_for(tmp_path: Path) -> None:
    """All rows of the older files of "a" go, yet only they tell whether the day is among them."""
    catalog = evolved(tmp_path, [("p", "identity")], [("p", "identity"), ("at", "day")])
    whole = {"p_identity": "'a'"}
    within = {**whole, "at_day": "DATE '2026-01-31'"}

    none = done(catalog, DropPartitionsSpec((whole, {**whole, "at_day": "DATE '2026-01-30'"})))
    result = done(catalog, DropPartitionsSpec((whole, within)))

    assert none.error is not None
    assert none.error.code == "PARTITION_NOT_FOUND"
    assert result.error is None, result.error
    assert (result.metrics.deleted, result.metrics.files_scanned) == (8, 1)
    assert ids_of(catalog) == [1, 3, 5, 7, 101, 103, 105, 107]


def test_a_dry_run(tmp_path: Path) -> None:
    catalog = evolved(tmp_path, [("at", "year")], [("p", "identity")])
    spec = CatalogSpec("iceberg", str(catalog.folder), catalog.options)
    statement = TruncateTableSpec({"p_identity": "'a'"})
    files = set(tmp_path.rglob("*.parquet"))

    result = run(JobRequest("1" * 32, NAME, spec, statement, dry_run=True), None)

    assert result.error is None, result.error
    assert result.status == "dry_run"
    assert result.metrics.deleted == 8
    by_year = [
        PartitionMetrics(f"at_year={year}", deleted=count, files_added=1, files_removed=1)
        for year, count in (("1969", 1), ("2026", 2), ("NULL", 1))
    ]
    assert list(result.partition_metrics) == [
        *by_year,
        PartitionMetrics("p_identity=a", deleted=4, files_removed=1),
    ]
    assert set(tmp_path.rglob("*.parquet")) == files
    assert ids_of(catalog) == [*_OLD, *_NEW]


def rewritten(catalog: PlainCatalog, where: str) -> DirectWrite:
    """A write that changes a row of the older file in this folder."""
    write = DirectWrite(catalog.open())
    (file,) = (each for each in write.files if where in each.path)
    return write.delete(file.ordinal, 0)


@pytest.mark.parametrize(
    ("constants", "where", "is_conflict"),
    [
        # The new version of the file may hold rows of the partition.
        ({"p_identity": Constant("a", "a")}, "at_year=2026", True),
        ({"p_identity": Constant("c", "c")}, "at_year=2026", False),
    ],
)
def test_what_others_do_to_older_files(
    tmp_path: Path, constants: dict[str, Constant], where: str, is_conflict: bool
) -> None:
    catalog = evolved(tmp_path, [("at", "year")], [("p", "identity")])
    table = catalog.open().metadata.load_table(NAME)
    replacement = Replacement(table, (constants,))

    def read_set(files: Sequence[PlannedFile]) -> Sequence[PlannedFile]:
        return replacement.replaced(files, ()).all

    write = DirectWrite(catalog.open(), read_set=read_set)
    at = {"at": _JANUARY}
    write.insert({"id": 200, "p": constants["p_identity"].value, **at})
    rewritten(catalog, where).publish()

    if not is_conflict:
        write.publish()
        assert 200 in ids_of(catalog)
        return
    with pytest.raises(JobError) as caught:
        write.publish()
    assert caught.value.code is ErrorCode.COMMIT_CONFLICT
    assert 200 not in ids_of(catalog)


def test_the_last_writer_reads_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = evolved(tmp_path, [("at", "year")], [("p", "identity")])
    others = [rewritten(catalog, "at_year=2026")]
    statement = replace(TruncateTableSpec({"p_identity": "'a'"}), last_writer_wins=True)

    result = beside(catalog, statement, others, monkeypatch)

    assert result.error is None, result.error
    assert (result.metrics.attempts, result.metrics.deleted) == (2, 7)
    assert ids_of(catalog) == [1, 3, 5, 7, 101, 103, 105, 107]


def beside(
    catalog: PlainCatalog,
    statement: PartitionStatement,
    others: list[DirectWrite],
    monkeypatch: pytest.MonkeyPatch,
) -> JobResult:
    """Run a statement; before it commits, others do."""
    from spark_jobs.connectors.iceberg.commit.merge_writes import IcebergMergeWrites

    real = IcebergMergeWrites.finish_merge

    def finish_merge(self: object, *arguments: object) -> object:
        while others:
            real(*others_of(others.pop()))
        return real(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(IcebergMergeWrites, "finish_merge", finish_merge)
    return done(catalog, statement)


def others_of(write: DirectWrite) -> tuple[object, ...]:
    """What ``finish_merge`` takes for it."""
    return write.connector.writes, write.table, write.handle, write.fragments, {}
