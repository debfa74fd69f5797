"""A table's metadata in the words of the API."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final
from urllib.parse import quote

from airflow_provider_merge.metadata.model import (
    CompactionFacts,
    PartitionFacts,
    Snapshot,
    TableSchema,
)
from airflow_provider_merge.metadata.page_facts import PageFacts
from airflow_provider_merge.metadata.snapshot_facts import time_text
from airflow_provider_merge.ui.answers import (
    Change,
    ColumnAnswer,
    PartitionAnswer,
    Run,
    SchemaAnswer,
    SnapshotAnswer,
)
from spark_jobs.contract import properties
from spark_jobs.contract.properties import recorded_metrics
from spark_jobs.contract.request import Origin
from spark_jobs.contract.result import GuardReport, Metrics
from spark_jobs.errors import JobError

Refs = Mapping[int, list[str]]
_NO_REFS: Final[Refs] = {}
_NOT_MAPPED: Final = -1


def dag_of(snapshot: Snapshot) -> str | None:
    """The DAG that made a snapshot; None: another engine did."""
    return snapshot.properties.get(properties.DAG_ID) or None


def told_snapshot(
    snapshot: Snapshot, facts: PageFacts, readable: Collection[str], refs: Refs = _NO_REFS
) -> SnapshotAnswer:
    """A snapshot for a user who may read the runs of the DAGs in ``readable``."""
    snapshot_properties, dag_id = snapshot.properties, dag_of(snapshot)
    metrics, hidden = metrics_of(snapshot), dag_id is not None and dag_id not in readable
    return SnapshotAnswer(
        snapshot_id=str(snapshot.snapshot_id),
        time=time_text(snapshot.time_millis),
        operation=snapshot_properties.get(properties.STATEMENT) or snapshot.commit_kind.lower(),
        keeps_rows=snapshot.keeps_rows,
        # The commit user of this project's jobs names their operation.
        writer="" if dag_id is not None else facts.writer(snapshot),
        run=None if dag_id is None or hidden else _run(dag_id, snapshot_properties),
        run_hidden=hidden,
        change=_change(snapshot, metrics, facts),
        records=snapshot.total_record_count,
        base_snapshot_id=snapshot_properties.get(properties.BASE_SNAPSHOT_ID) or None,
        seconds=dict(metrics.seconds) if metrics else {},
        checked=[] if metrics is None or hidden else list(map(_checked, metrics.guards)),
        refs=refs.get(snapshot.snapshot_id, []),
    )


def _checked(guard: GuardReport) -> str:
    return f"{guard.name} (allowed {guard.limit}): {guard.seen}"


def metrics_of(snapshot: Snapshot) -> Metrics | None:
    """The metrics that this project's job recorded; None: there are none, or of a later version."""
    if properties.METRICS not in snapshot.properties:
        return None
    try:
        return recorded_metrics(snapshot.properties)
    except JobError:
        return None


def told_partition(facts: PartitionFacts, compaction: CompactionFacts | None) -> PartitionAnswer:
    """A partition, with what a compaction would find there, if that is known."""
    last = facts.last_file_millis
    return PartitionAnswer(
        values=dict(facts.values),
        name=facts.name,
        rows=facts.rows,
        files=facts.files,
        size=facts.size,
        small_files=None if compaction is None else compaction.small_files,
        delete_files=None if compaction is None else len(compaction.delete_files),
        marked_share=None if compaction is None else compaction.marked_share,
        last_change=None if last is None else time_text(last),
    )


def told_schema(schema: TableSchema, before: TableSchema | None) -> SchemaAnswer:
    """A schema and what differs from the one before, in which a column is known by its name."""
    old = {each.name: each.type for each in before.columns} if before else {}
    new = {each.name for each in schema.columns}
    columns = []
    for column in schema.columns:
        answer = ColumnAnswer(name=column.name, type=column.type)
        if before is not None and column.name not in old:
            answer.change = "added"
        elif before is not None and old[column.name] != column.type:
            answer.change = "retyped"
        columns.append(answer)
    return SchemaAnswer(
        schema_id=schema.schema_id,
        columns=columns,
        dropped=[name for name in old if name not in new],
        partition_keys=list(schema.partition_keys),
        primary_keys=list(schema.primary_keys),
    )


def _change(snapshot: Snapshot, metrics: Metrics | None, facts: PageFacts) -> Change:
    if metrics is not None:
        return Change(
            inserted=metrics.inserted,
            updated=metrics.updated,
            deleted=metrics.deleted,
            files_added=metrics.files_added,
            files_removed=metrics.files_removed,
            bytes_added=metrics.bytes_added,
            bytes_removed=metrics.bytes_removed,
        )
    rows = facts.rows(snapshot)
    return Change() if rows is None else Change(inserted=rows[0], deleted=rows[1])


def told_origin(origin: Origin) -> Run:
    """The task that asked for a statement."""
    return _page_of(
        origin.dag_id, origin.run_id, origin.task_id, origin.map_index, origin.try_number
    )


def _run(dag_id: str, found: Mapping[str, str]) -> Run:
    run_id, task_id = found.get(properties.RUN_ID, ""), found.get(properties.TASK_ID, "")
    map_index = _whole(found.get(properties.MAP_INDEX), _NOT_MAPPED) or 0
    try_number = _whole(found.get(properties.TRY_NUMBER), None)
    return _page_of(dag_id, run_id, task_id, map_index, try_number)


def _page_of(dag_id: str, run_id: str, task_id: str, map_index: int, try_number: int | None) -> Run:
    mapped = () if map_index == _NOT_MAPPED else ("mapped", str(map_index))
    parts = ("dags", dag_id, "runs", run_id, "tasks", task_id, *mapped)
    page = "/".join(quote(part, safe="") for part in parts)
    return Run(
        dag_id=dag_id,
        run_id=run_id,
        task_id=task_id,
        map_index=map_index,
        try_number=try_number,
        page=page if try_number is None else f"{page}?try_number={try_number}",
    )


def _whole(text: str | None, default: int | None) -> int | None:
    try:
        return default if text is None else int(text[:10])
    except ValueError:
        return default
