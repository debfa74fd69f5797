"""Whole compaction jobs whose tasks run in this process, one after another, without Spark."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pyarrow as pa

from spark_jobs.connectors.iceberg.compaction.compaction import IcebergCompaction
from spark_jobs.connectors.paimon.compaction.compaction import PaimonCompaction
from spark_jobs.connectors.shared.compaction.plan import GroupSize
from spark_jobs.contract.compaction import CompactSpec
from spark_jobs.contract.compaction_record import ManifestRecord
from spark_jobs.contract.request import CatalogSpec, JobRequest, Origin, TableName
from spark_jobs.contract.result import JobResult
from spark_jobs.engine.compaction import group_run, part_tasks
from spark_jobs.engine.job import compaction_job, request_job
from spark_jobs.engine.job.compaction_job import CompactionJob
from spark_jobs.spi.compaction import ManifestCommit
from spark_jobs.spi.connector import Connector
from spark_jobs.spi.tables import TableHandle
from tests.support.paimon_tables import NAME


@dataclass
class _Session:
    """As much of a Spark session as a compaction needs whose partition specs are plain."""

    sparkContext: Any = field(  # noqa: N815 - Spark's name
        default_factory=lambda: SimpleNamespace(defaultParallelism=2)
    )


def compact(
    connector: Connector,
    catalog: CatalogSpec,
    spec: CompactSpec,
    *,
    name: TableName = NAME,
    operation_id: str | None = None,
    try_number: int = 1,
    dry_run: bool = False,
    before_publication: Callable[[], None] = lambda: None,
) -> JobResult:
    """A compaction from start to end.

    ``before_publication`` runs before that of each group, and of manifests that are written anew.
    """
    request = JobRequest(
        operation_id=operation_id or f"compaction-{uuid.uuid4().hex}",
        target=name,
        catalog=catalog,
        statement=spec,
        origin=Origin(try_number=try_number, retries=100),
        dry_run=dry_run,
    )
    compaction = connector.compaction
    assert compaction is not None
    publish, rewrite = compaction.publish, compaction.rewrite_manifests

    def published(*arguments: Any) -> Any:
        before_publication()
        return publish(*arguments)

    def rewritten(table: TableHandle, commit: ManifestCommit) -> Any:
        def properties(record: ManifestRecord) -> dict[str, str]:
            before_publication()
            return dict(commit.properties(record))

        return rewrite(table, replace(commit, properties=properties))

    with (
        _tasks_here(),
        mock.patch.object(compaction, "publish", published),
        mock.patch.object(compaction, "rewrite_manifests", rewritten),
    ):
        return CompactionJob(request, _Session(), connector).run()  # type: ignore[arg-type]


def in_groups_of(connector: Connector, partitions: int) -> Connector:
    """The connector, whose compactions publish at most so many partitions at once."""
    found, size = connector.compaction, GroupSize(partitions=partitions)
    if isinstance(found, IcebergCompaction):
        iceberg = IcebergCompaction(found._catalog, found._metadata, found._notes, size)
        return replace(connector, compaction=iceberg)
    assert isinstance(found, PaimonCompaction)
    compaction = PaimonCompaction(found._metadata, found._filesystem, found._snapshots, size)
    return replace(connector, compaction=compaction)


@contextmanager
def _tasks_here() -> Iterator[None]:
    """Run the tasks of compactions in this process."""
    keys = (f"here-{number}" for number in itertools.count())
    with (
        mock.patch.object(request_job, "fixed_meaning", return_value=nullcontext({})),
        mock.patch.object(compaction_job, "require_utf8_names"),
        mock.patch.object(group_run, "map_tasks", _mapped),
        mock.patch.object(group_run, "wait_for_stragglers", return_value=None),
        mock.patch.object(part_tasks, "task_key", side_effect=keys),
    ):
        yield


def _mapped(_: Any, tasks: int, function: Callable[..., Iterable[pa.RecordBatch]], __: Any) -> Any:
    def collect() -> list[tuple[Any, ...]]:
        numbers = (pa.record_batch({"id": [number]}) for number in range(tasks))
        found = [row for batch in function(numbers) for row in batch.to_pylist()]
        return [tuple(row.values()) for row in found]

    return SimpleNamespace(collect=collect)
