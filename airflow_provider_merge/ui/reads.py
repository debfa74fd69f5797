"""What each request reads of one table. Runs in a worker thread, with the table's lock."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from airflow_provider_merge.metadata.model import Snapshot, TableSchema
from airflow_provider_merge.ui.answers import (
    Care,
    CompactionAnswer,
    Comparison,
    ExpiryAnswer,
    HoldAnswer,
    PartitionDifference,
    Problem,
    RefAnswer,
    Schemas,
    Size,
    Sizes,
    SnapshotAnswer,
    Snapshots,
    TableAnswer,
)
from airflow_provider_merge.ui.opened import OpenTable
from airflow_provider_merge.ui.told import dag_of, told_schema, told_snapshot
from spark_jobs.contract.partition_names import partition_name
from spark_jobs.errors import JobError

T = TypeVar("T")
Readable = Callable[[set[str]], frozenset[str]]

# Snapshots whose files are counted, and seconds, to find what an expiry would free.
_MOST_EXPIRING: Final = 300
_AT_ONCE: Final = 50
_SECONDS: Final = 8.0


@dataclass(frozen=True, slots=True)
class Place:
    """Where a page of snapshots begins: at a snapshot, or at the newest before a time (millis)."""

    at: int | None = None
    until: int | None = None


def read_table(table: OpenTable, readable: Readable) -> TableAnswer:
    """What the table is now."""
    view = table.view
    schema, latest = view.schema, view.latest
    told = _told(table, [latest] if latest else [], readable)
    return TableAnswer(
        connection=table.connection,
        database=table.name.database,
        table=table.name.table,
        location=table.table.location,
        latest=told[0] if told else None,
        snapshots=len(view.history.ids) if latest else 0,
        schema_id=schema.schema_id,
        partition_keys=list(schema.partition_keys),
        primary_keys=list(schema.primary_keys),
        columns=len(schema.columns),
    )


def read_snapshots(table: OpenTable, readable: Readable, place: Place, limit: int) -> Snapshots:
    """A page of snapshots, the newest first; one that expires meanwhile is left out."""
    ids = _newest_first(table)
    start = _start(table, ids, place)
    page = ids[start : start + limit]
    found = [each for each in map(table.view.table.snapshot, _unknown(table, page)) if each]
    table.cache.snapshots.update({each.snapshot_id: each for each in found})
    snapshots = [table.cache.snapshots[each] for each in page if each in table.cache.snapshots]
    behind = start + limit
    return Snapshots(
        total=len(ids),
        snapshots=_told(table, snapshots, readable),
        next=str(ids[behind]) if behind < len(ids) else None,
    )


def read_sizes(table: OpenTable, place: Place, limit: int) -> Sizes:
    """Files and bytes of a page of snapshots, counted back from the newest of them."""
    ids = _newest_first(table)
    start = _start(table, ids, place)
    page = [table.snapshot(each) for each in ids[start : start + limit]]
    table.read_changes(page)
    sizes: list[Size] = []
    files: int | None = None
    size: int | None = None
    for snapshot in page:
        snapshot_id = snapshot.snapshot_id
        if not sizes or table.facts.totals(snapshot):
            total = table.total(snapshot)
            files, size = total.files, total.size
        sizes.append(Size(snapshot_id=str(snapshot_id), files=files, size=size))
        change = table.changes[snapshot_id]
        if change is None or files is None or size is None:
            files = size = None
        else:
            files -= change.files_added - change.files_removed
            size -= change.bytes_added - change.bytes_removed
    return Sizes(sizes=sizes)


def read_schemas(table: OpenTable, offset: int, limit: int) -> Schemas:
    """A page of schemas, the newest first, each with what differs from the one before."""
    ids = table.facts.schema_ids()[::-1]
    page = ids[offset : offset + limit + 1]
    found: list[TableSchema | None] = [table.table.schema(each) for each in page]
    pairs = zip(found, [*found[1:], None], strict=True)
    told = [told_schema(each, before) for each, before in pairs if each is not None]
    return Schemas(total=len(ids), schemas=told[:limit])


def read_care(table: OpenTable) -> Care:
    """What table care would do now; each part tells its own problem."""
    problems: dict[str, Problem] = {}

    def tried(part: str, read: Callable[[], T]) -> T | None:
        try:
            return read()
        except JobError as error:
            problems[part] = problem_of(error)
            return None

    facts = table.facts
    refs = tried("refs", facts.refs) or []
    holds = tried("holds", facts.holds) or []
    return Care(
        expiry=tried("expiry", lambda: _expiry(table)),
        compaction=tried("compaction", lambda: _compaction(table)),
        refs=[_ref(each.name, each.kind, each.snapshot_id) for each in refs],
        holds=[
            HoldAnswer(name=each.name, kind=each.kind, snapshot_id=str(each.snapshot_id))
            for each in holds
        ],
        problems=problems,
    )


def read_comparison(
    table: OpenTable,
    readable: Readable,
    sides: tuple[int, int],
    offset: int,
    limit: int,
    sample: bool,
) -> Comparison:
    """What two snapshots differ in, by partition; ``sample``: the caller may see rows."""
    before, after = (table.snapshot(each) for each in sides)
    changes = table.table.diff(before, after)
    snapshot_answers = _told(table, [before, after], readable)
    return Comparison(
        before=snapshot_answers[0],
        after=snapshot_answers[1],
        total=len(changes),
        files_added=sum(each.files_added for each in changes),
        files_removed=sum(each.files_removed for each in changes),
        rows_before=_sum(each.rows_before for each in changes),
        rows_after=_sum(each.rows_after for each in changes),
        partitions=[
            PartitionDifference(
                name=partition_name(change.values),
                files_added=change.files_added,
                files_removed=change.files_removed,
                rows_before=change.rows_before,
                rows_after=change.rows_after,
            )
            for change in changes[offset : offset + limit]
        ],
        sample=sample,
    )


def problem_of(error: JobError) -> Problem:
    """An error as the API tells it."""
    return Problem(code=error.code.name, message=error.message, remedy=error.remedy)


def _told(
    table: OpenTable, snapshots: Sequence[Snapshot], readable: Readable
) -> list[SnapshotAnswer]:
    dags = {dag_id for dag_id in map(dag_of, snapshots) if dag_id is not None}
    allowed = readable(dags) if dags else frozenset()
    refs: dict[int, list[str]] = defaultdict(list)
    for ref in table.refs() if snapshots else ():
        refs[ref.snapshot_id].append(f"{ref.kind} {ref.name}")
    return [told_snapshot(each, table.facts, allowed, refs) for each in snapshots]


def _newest_first(table: OpenTable) -> Sequence[int]:
    return table.view.history.ids[::-1] if table.view.latest else ()


def _start(table: OpenTable, ids: Sequence[int], place: Place) -> int:
    """The position where a page begins.

    Raises:
        CatalogError: SNAPSHOT_NOT_FOUND.
    """
    if place.at is not None:
        table.snapshot(place.at)
        return ids.index(place.at) if place.at in ids else 0
    if place.until is None:
        return 0
    # Times only grow, so that few snapshots are read.
    low, high = 0, len(ids)
    while low < high:
        middle = (low + high) // 2
        if table.snapshot(ids[middle]).time_millis >= place.until:
            low = middle + 1
        else:
            high = middle
    return low


def _unknown(table: OpenTable, ids: Iterable[int]) -> list[int]:
    return [each for each in ids if each not in table.cache.snapshots]


def _expiry(table: OpenTable) -> ExpiryAnswer:
    expiry = table.facts.expiry(int(time.time() * 1000))
    size, counted, deadline = 0, 0, time.monotonic() + _SECONDS
    newest_first = expiry.removing[::-1][:_MOST_EXPIRING]
    for start in range(0, len(newest_first), _AT_ONCE):
        if time.monotonic() > deadline:
            break
        found_now = map(table.table.snapshot, newest_first[start : start + _AT_ONCE])
        snapshots = [each for each in found_now if each is not None]
        table.read_changes(snapshots)
        changes = [table.changes[each.snapshot_id] for each in snapshots]
        size += sum(each.bytes_removed for each in changes if each is not None)
        counted += sum(each is not None for each in changes)
    return ExpiryAnswer(
        snapshots=len(expiry.expiring),
        snapshots_complete=not expiry.is_cut,
        first_retained=str(expiry.first_retained) if expiry.first_retained else None,
        size=size,
        size_complete=counted == len(expiry.removing) and not expiry.is_cut,
        limits=expiry.limits,
    )


def _compaction(table: OpenTable) -> CompactionAnswer:
    facts = list(table.compaction().values())
    return CompactionAnswer(
        partitions=sum(each.joinable_files > 1 for each in facts),
        small_files=sum(each.small_files for each in facts),
        small_size=sum(each.small_size for each in facts),
        files=sum(each.files for each in facts),
        marked_rows=_sum(each.marked_rows for each in facts),
        delete_files=len(frozenset[str]().union(*(each.delete_files for each in facts))),
    )


def _ref(name: str, kind: str, snapshot_id: int) -> RefAnswer:
    return RefAnswer.model_validate({"name": name, "kind": kind, "snapshot_id": str(snapshot_id)})


def _sum(counts: Iterable[int | None]) -> int | None:
    """The sum; None if one of them is not known."""
    found = list(counts)
    return None if None in found else sum(count or 0 for count in found)
