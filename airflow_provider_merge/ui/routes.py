"""The API, version 1: read-only, in pages, with a limit of time on each request."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any, Final, TypeVar

from airflow.api_fastapi.auth.managers.models.base_user import BaseUser
from fastapi import APIRouter, Depends, Query, Request

from airflow_provider_merge.hooks.catalog import catalog_hook_once
from airflow_provider_merge.storage.failures import reaching
from airflow_provider_merge.ui import answers, reads
from airflow_provider_merge.ui.access import (
    PageUser,
    ReadableConnection,
    may_see_rows,
    readable_dags,
    require_rows,
    visible_connections,
)
from airflow_provider_merge.ui.failures import unexpected
from airflow_provider_merge.ui.lags import SourceLags, read_lags
from airflow_provider_merge.ui.lists import Names, TableQuery, read_tables
from airflow_provider_merge.ui.opened import OpenTable, OpenTables
from airflow_provider_merge.ui.partition_pages import (
    PartitionQuery,
    SortKey,
    read_days,
    read_partitions,
)
from airflow_provider_merge.ui.previews import read_preview
from airflow_provider_merge.ui.reads import Place
from airflow_provider_merge.ui.running import OpenNotes, read_operation, read_running
from airflow_provider_merge.ui.samples import plan_sample, read_sample
from airflow_provider_merge.ui.workers import Workers
from spark_jobs.contract.request import TableName
from spark_jobs.errors import JobError, error_of

T = TypeVar("T")

# Every answer but a Problem is refused to a user without the rights.
_REFUSALS: Final[dict[int | str, dict[str, Any]]] = {
    status: {"model": answers.Problem} for status in (400, 401, 403, 404, 422, 429, 502, 503, 504)
}
router = APIRouter(prefix="/v1", tags=["Tables"], responses=_REFUSALS)
# Secrets that are shorter would black out ordinary words.
_SHORTEST_SECRET: Final = 6

Name = Annotated[str, Query(max_length=1024)]
Offset = Annotated[int, Query(ge=0, le=10_000_000)]
Limit = Annotated[int, Query(ge=1, le=200)]
SnapshotId = Annotated[str, Query(pattern="^[0-9]{1,19}$")]
OperationId = Annotated[str, Query(pattern=r"^[A-Za-z0-9_-]{1,100}$")]
AnySnapshotId = Annotated[str | None, Query(pattern="^[0-9]{1,19}$")]
Seconds = Annotated[
    int | None, Query(ge=0, le=10**10, description="The age that the newest snapshot exceeds")
]
Writer = Annotated[
    str, Query(max_length=200, description="Part of the DAG, task, engine or user that wrote last")
]
Search = Annotated[str, Query(max_length=200, description="Part of the name, in any case")]


@dataclass
class Service:
    """What all requests share."""

    workers: Workers = field(default_factory=Workers)
    tables: OpenTables = field(default_factory=OpenTables)
    names: Names = field(default_factory=Names)
    notes: OpenNotes = field(default_factory=OpenNotes)


@dataclass(frozen=True, slots=True)
class Asked:
    """A user's question about one table."""

    service: Service
    user: BaseUser
    connection: str
    name: TableName

    def readable(self, dag_ids: set[str]) -> frozenset[str]:
        """The DAGs whose runs the user may see."""
        return readable_dags(dag_ids, self.user)

    async def answer(self, read: Callable[[OpenTable], T]) -> T:
        """What a worker thread reads of the table.

        Raises:
            BusyError, TimeoutError: it cannot be read now.
            JobError: the table cannot be read.
        """

        def work() -> T:
            table = self.service.tables.table(self.connection, self.name)
            with table.lock:
                table.look()
                with reaching(table.table.location):
                    found = read(table)
            self.service.tables.give_back(table)
            return found

        return await self.in_worker(work, self.name)

    async def in_worker(self, work: Callable[[], T], table: TableName | None = None) -> T:
        """What a worker thread does, alone with ``table``; raises as ``answer`` does."""
        return await self.service.workers.run(
            self.connection, lambda: without_secrets(self.connection, work), table
        )


def without_secrets(connection: str, work: Callable[[], T]) -> T:
    """What ``work`` returns; its errors are raised without the secrets of the connection."""
    try:
        return work()
    except JobError as error:
        message, remedy = error.message, error.remedy
        for secret in _secrets(connection):
            message, remedy = message.replace(secret, "***"), remedy.replace(secret, "***")
        raise error_of(error.code, message, remedy) from None
    except Exception as error:  # noqa: BLE001 - libraries of stores and catalogs raise all kinds
        raise unexpected(error) from None


def _secrets(connection: str) -> list[str]:
    try:
        found = catalog_hook_once(connection).credentials().values()
    except JobError:
        return []
    return [each for each in found if len(each) >= _SHORTEST_SECRET]


def _asked(
    request: Request, user: PageUser, connection: ReadableConnection, database: Name, table: Name
) -> Asked:
    return Asked(request.app.state.service, user, connection, TableName(database, table))


def _place(
    at: AnySnapshotId = None, until: Annotated[int | None, Query(ge=0, le=2**53)] = None
) -> Place:
    return Place(None if at is None else int(at), until)


def _asked_for_rows(asked: Annotated[Asked, Depends(_asked)]) -> Asked:
    require_rows(asked.connection, asked.user)
    return asked


Question = Annotated[Asked, Depends(_asked)]
RowQuestion = Annotated[Asked, Depends(_asked_for_rows)]
Start = Annotated[Place, Depends(_place)]


@router.get("/connections")
async def connections(request: Request, user: PageUser) -> answers.Connections:
    """The catalog connections that the user may look at."""
    service: Service = request.app.state.service
    # A secrets backend may be asked, too.
    found = await service.workers.run("", lambda: visible_connections(user))
    return answers.Connections(connections=found)


@router.get("/tables")
async def tables(
    request: Request,
    user: PageUser,
    connection: ReadableConnection,
    search: Search = "",
    older_than: Seconds = None,
    writer: Writer = "",
    offset: Offset = 0,
    limit: Limit = 50,
) -> answers.Tables:
    """A page of a connection's tables by name, with the newest snapshot of each."""
    service: Service = request.app.state.service
    query = TableQuery(search, older_than, writer, offset, limit)

    def work() -> answers.Tables:
        readable = partial(readable_dags, user=user)
        return read_tables(connection, service.names, readable, query)

    return await service.workers.run(connection, lambda: without_secrets(connection, work))


@router.get("/table")
async def table(asked: Question) -> answers.TableAnswer:
    """What a table is now."""
    return await asked.answer(lambda found: reads.read_table(found, asked.readable))


@router.get("/size")
async def size(asked: Question) -> answers.Size | None:
    """Files and bytes of the newest snapshot; its manifests may be read."""

    def read(found: OpenTable) -> answers.Size | None:
        latest = found.view.latest
        if latest is None:
            return None
        total = found.total(latest)
        return answers.Size(snapshot_id=str(latest.snapshot_id), files=total.files, size=total.size)

    return await asked.answer(read)


@router.get("/snapshots")
async def snapshots(asked: Question, start: Start, limit: Limit = 100) -> answers.Snapshots:
    """Snapshots, the newest first: from ``at`` on, or from the newest before ``until`` (millis)."""
    return await asked.answer(
        lambda found: reads.read_snapshots(found, asked.readable, start, limit)
    )


@router.get("/sizes")
async def sizes(asked: Question, start: Start, limit: Limit = 100) -> answers.Sizes:
    """Files and bytes of the snapshots that ``/snapshots`` has with the same parameters."""
    return await asked.answer(lambda found: reads.read_sizes(found, start, limit))


@router.get("/partitions")
async def partitions(
    asked: Question,
    search: Search = "",
    sort: SortKey = "name",
    descending: bool = False,
    offset: Offset = 0,
    limit: Limit = 100,
) -> answers.Partitions:
    """Partitions of the newest snapshot; those of which the sort key is not known come last."""
    query = PartitionQuery(search, sort, descending, offset, limit)
    return await asked.answer(lambda found: read_partitions(found, query))


@router.get("/days")
async def days(asked: Question) -> answers.Days:
    """Rows by day, if a partition column holds dates."""
    return await asked.answer(read_days)


@router.get("/schemas")
async def schemas(asked: Question, offset: Offset = 0, limit: Limit = 20) -> answers.Schemas:
    """Schemas, the newest first."""
    return await asked.answer(lambda found: reads.read_schemas(found, offset, limit))


@router.get("/care")
async def care(asked: Question) -> answers.Care:
    """What table care would do now."""
    return await asked.answer(reads.read_care)


@router.get("/lags")
async def lags(asked: Question) -> SourceLags:
    """How far tasks are behind the sources whose changes they apply to the table."""
    return await asked.answer(lambda found: read_lags(found, asked.readable))


@router.get("/running")
async def running(asked: Question) -> answers.RunningStatements:
    """The statements that work on the table now, and how far they are."""
    notes = asked.service.notes

    def work() -> answers.RunningStatements:
        return read_running(notes.of(asked.connection), asked.name, asked.readable)

    # Without the table's lock: it tells nothing of the table.
    return await asked.in_worker(work)


@router.get("/operation")
async def operation(asked: Question, operation_id: OperationId) -> answers.OperationAnswer:
    """What is known of one statement on the table, also when it has ended."""
    notes = asked.service.notes

    def work() -> answers.OperationAnswer:
        found = notes.of(asked.connection)
        return read_operation(found, asked.name, operation_id, asked.readable)

    return await asked.in_worker(work)


@router.get("/compare")
async def compare(
    asked: Question, before: SnapshotId, after: SnapshotId, offset: Offset = 0, limit: Limit = 100
) -> answers.Comparison:
    """What two snapshots differ in, by partition."""
    sides = (int(before), int(after))

    def read(found: OpenTable) -> answers.Comparison:
        sample = may_see_rows(asked.connection, asked.user)
        return reads.read_comparison(found, asked.readable, sides, offset, limit, sample)

    return await asked.answer(read)


@router.get("/sample")
async def sample(asked: RowQuestion, before: SnapshotId, after: SnapshotId) -> answers.Sample:
    """Rows in which two snapshots differ, from few data files; only for those who may see rows."""
    planned = await asked.answer(lambda found: plan_sample(found, (int(before), int(after))))
    # Without the table's lock: files take longer than metadata.
    return await asked.in_worker(lambda: read_sample(planned))


@router.get("/preview")
async def preview(asked: RowQuestion, operation_id: OperationId) -> answers.RowPreview | None:
    """Rows that a dry run would change, old beside new; only for those who may see rows."""
    notes = asked.service.notes
    return await asked.in_worker(
        lambda: read_preview(notes.of(asked.connection), asked.name, operation_id)
    )
