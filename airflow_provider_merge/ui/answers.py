"""What the API answers, version 1. Times are ISO 8601 in UTC; sizes are bytes.

Ids of snapshots are text: some formats have ids of 19 digits, which browsers would round.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel


class Problem(BaseModel):
    """Why something cannot be told; ``code`` is stable."""

    code: str
    message: str
    remedy: str = ""


class CatalogConnection(BaseModel):
    """A connection that the caller may look at."""

    connection: str
    type: str


class Connections(BaseModel):
    """The catalog connections; those of secrets backends only if the configuration names them."""

    connections: list[CatalogConnection]


class Run(BaseModel):
    """The task that made a snapshot; ``page`` is its page, relative to Airflow's root."""

    dag_id: str
    run_id: str
    task_id: str
    map_index: int
    try_number: int | None
    page: str


class Change(BaseModel):
    """What a snapshot changed, in rows, files and bytes; None: it does not tell."""

    inserted: int | None = None
    updated: int | None = None
    deleted: int | None = None
    files_added: int | None = None
    files_removed: int | None = None
    bytes_added: int | None = None
    bytes_removed: int | None = None


class SnapshotAnswer(BaseModel):
    """One snapshot.

    ``operation`` is the statement's kind or, of another engine, the format's word. ``run`` is None
    for other engines, and for a DAG that the caller may not read (``run_hidden``). ``records`` are
    stored rows. ``seconds`` are by phase. ``checked``: what held before it was published.
    """

    snapshot_id: str
    time: str
    operation: str
    keeps_rows: bool
    writer: str
    run: Run | None
    run_hidden: bool
    change: Change
    records: int | None
    base_snapshot_id: str | None
    seconds: dict[str, float]
    checked: list[str]
    refs: list[str]


class ListedTable(BaseModel):
    """A table in a list; with ``problem`` nothing else is known of it."""

    database: str
    table: str
    latest: SnapshotAnswer | None = None
    files: int | None = None
    size: int | None = None
    problem: Problem | None = None


class Tables(BaseModel):
    """A page of a connection's tables; ``total`` counts those whose name the search finds.

    ``complete``: False if the catalog has more tables than are listed. ``looked_at`` of the tables
    were read for this page, which has those that pass the filters. ``next`` is the ``offset`` of
    the page behind it; None: there is none.
    """

    total: int
    complete: bool
    looked_at: int
    next: int | None
    tables: list[ListedTable]


class ColumnAnswer(BaseModel):
    """A column of a schema, with what became of it since the schema before."""

    name: str
    type: str
    change: Literal["added", "retyped", "same"] = "same"


class SchemaAnswer(BaseModel):
    """A schema; ``dropped`` are the columns of the schema before that it does not have."""

    schema_id: int
    columns: list[ColumnAnswer]
    dropped: list[str] = []
    partition_keys: list[str]
    primary_keys: list[str]


class Schemas(BaseModel):
    """Schemas, the newest first; ``total`` is their number."""

    total: int
    schemas: list[SchemaAnswer]


class RunningStatement(BaseModel):
    """A statement that has not ended, as its job told at the time ``told``.

    ``silent``: nothing came from it for ``silent_seconds``, so that its driver may be dead. ``run``
    is None for a DAG that the caller may not read (``run_hidden``), or without one. ``share`` is
    that of the tasks of the Spark stages at work, from 0 to 1; None: there are none.
    """

    operation_id: str
    operation: str
    statement: str
    silent: bool
    silent_seconds: int
    since: str
    told: str
    phase: str
    tasks_done: int
    tasks: int
    share: float | None
    rows: int | None
    run: Run | None
    run_hidden: bool


class RunningStatements(BaseModel):
    """What works on a table now, or was killed and not tried again, the newest first.

    A statement is here when it has run for ten seconds.
    """

    statements: list[RunningStatement]


class OperationAnswer(BaseModel):
    """What is known of a statement on a table.

    ``ended``: with ``status``, and the snapshot that it made or the ``problem`` that it met.
    ``unknown``: it never ran here, has run for a moment only, or ended so long ago that its result
    is not kept any more.
    """

    operation_id: str
    state: Literal["running", "silent", "ended", "unknown"]
    running: RunningStatement | None = None
    status: str | None = None
    snapshot_id: str | None = None
    problem: Problem | None = None


class RefAnswer(BaseModel):
    """A tag or branch and its snapshot."""

    name: str
    kind: Literal["tag", "branch"]
    snapshot_id: str


class HoldAnswer(BaseModel):
    """What keeps a snapshot and later ones: a consumer, or the guard of a running operation."""

    name: str
    kind: Literal["operation", "consumer"]
    snapshot_id: str


class TableAnswer(BaseModel):
    """What a table is now."""

    connection: str
    database: str
    table: str
    location: str
    latest: SnapshotAnswer | None
    snapshots: int
    schema_id: int
    partition_keys: list[str]
    primary_keys: list[str]
    columns: int


class Snapshots(BaseModel):
    """A page of snapshots, the newest first; ``next`` is the ``before`` of the page behind it."""

    total: int
    snapshots: list[SnapshotAnswer]
    next: str | None


class Size(BaseModel):
    """Files and bytes of a snapshot; None: not known."""

    snapshot_id: str
    files: int | None
    size: int | None


class Sizes(BaseModel):
    """Sizes of the snapshots of a page, the newest first."""

    sizes: list[Size]


class PartitionAnswer(BaseModel):
    """A partition; None where metadata does not tell. ``marked_share`` is from 0 to 1."""

    values: dict[str, str | None]
    name: str
    rows: int | None
    files: int
    size: int
    small_files: int | None
    delete_files: int | None
    marked_share: float | None
    last_change: str | None


class Partitions(BaseModel):
    """A page of partitions of the newest snapshot; the sums are of all that the search finds."""

    snapshot_id: str | None
    total: int
    rows: int | None
    files: int
    size: int
    small_files: int | None
    partitions: list[PartitionAnswer]


class Day(BaseModel):
    """What a table has of one day."""

    day: str
    rows: int | None
    files: int
    size: int


class Days(BaseModel):
    """The newest days of a table by a partition column of dates; no column: it has none."""

    column: str | None
    days: list[Day]


class ExpiryAnswer(BaseModel):
    """What an expiry by the table's limits would drop now.

    ``size`` is what it would free, without what tags and branches keep. There are at least so many
    ``snapshots``, or bytes, if ``snapshots_complete``, or ``size_complete``, is false.
    """

    snapshots: int
    snapshots_complete: bool
    first_retained: str | None
    size: int
    size_complete: bool
    limits: dict[str, str]


class CompactionAnswer(BaseModel):
    """What there is to compact.

    ``partitions`` are those with small files that would be put together. ``delete_files`` mark rows
    as deleted, in formats that have such files.
    """

    partitions: int
    small_files: int
    small_size: int
    files: int
    marked_rows: int | None
    delete_files: int


class Care(BaseModel):
    """What table care would do now; a part that cannot be told is None, with its problem."""

    expiry: ExpiryAnswer | None
    compaction: CompactionAnswer | None
    refs: list[RefAnswer]
    holds: list[HoldAnswer]
    problems: dict[str, Problem]


class PartitionDifference(BaseModel):
    """What two snapshots differ in, in one partition."""

    name: str
    files_added: int
    files_removed: int
    rows_before: int | None
    rows_after: int | None


class Comparison(BaseModel):
    """Two snapshots; ``total`` counts the partitions that differ, of which a page is there."""

    before: SnapshotAnswer
    after: SnapshotAnswer
    total: int
    files_added: int
    files_removed: int
    rows_before: int | None
    rows_after: int | None
    partitions: list[PartitionDifference]
    sample: bool


class PartitionSample(BaseModel):
    """Rows of one partition that only one of two snapshots has, each with a text for each column.

    They are the first of ``removed_count`` and ``added_count`` rows; long texts are cut off. With
    ``problem``, which says why, there are none.
    """

    name: str
    removed: list[list[str | None]] = []
    added: list[list[str | None]] = []
    removed_count: int = 0
    added_count: int = 0
    problem: str = ""


class Sample(BaseModel):
    """Rows in which two snapshots differ, of some of the ``total`` partitions that differ.

    Values are compared and shown only of ``columns``, not of ``left_out``.
    """

    total: int
    columns: list[str]
    left_out: list[str]
    partitions: list[PartitionSample]


class PreviewedRow(BaseModel):
    """A row that a dry run would change, with a text for each column; long texts are cut off.

    ``old`` is None for an inserted row, ``new`` for a deleted one. ``differs``: the positions of
    the columns that an update changes. ``clause``: the number of the WHEN clause of a MERGE.
    """

    operation: str
    clause: int | None
    old: list[str | None] | None
    new: list[str | None] | None
    differs: list[int]


class RowPreview(BaseModel):
    """Rows that a dry run would change, of each operation the first that it found.

    Values are shown only of ``columns``, not of ``left_out``.
    """

    columns: list[str]
    left_out: list[str]
    rows: list[PreviewedRow]
