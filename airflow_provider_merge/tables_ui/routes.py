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
from airflow_provider_merge.tables_ui import answers, reads
from airflow_provider_merge.tables_ui.access import (
    PageUser,
    ReadableConnection,
    readable_dags,
    visible_connections,
)
from airflow_provider_merge.tables_ui.failures import unexpected
from airflow_provider_merge.tables_ui.lists import Names, read_tables
from airflow_provider_merge.tables_ui.opened import OpenTable, OpenTables
from airflow_provider_merge.tables_ui.partition_pages import (
    PartitionQuery,
    SortKey,
    read_days,
    read_partitions,
)
from airflow_provider_merge.tables_ui.reads import Place
from airflow_provider_merge.tables_ui.workers import Workers
from spark_jobs.contract.request import TableName
from spark_jobs.errors import JobError

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
AnySnapshotId = Annotated[str | None, Query(pattern="^[0-9]{1,19}$")]
Search = Annotated[str, Query(max_length=200, description="Part of the name, in any case")]


@dataclass
class Service:
    """What all requests share."""

    workers: Workers = field(default_factory=Workers)
    tables: OpenTables = field(default_factory=OpenTables)
    names: Names = field(default_factory=Names)


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

        return await self.service.workers.run(
            self.connection, lambda: without_secrets(self.connection, work)
        )


def without_secrets(connection: str, work: Callable[[], T]) -> T:
    """What ``work`` returns; its errors are raised without the secrets of the connection."""
    try:
        return work()
    except JobError as error:
        text, remedy = error.message, error.remedy
        for secret in _secrets(connection):
            text, remedy = text.replace(secret, "***"), remedy.replace(secret, "***")
        raise type(error)(error.code, text, remedy) from None
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


Question = Annotated[Asked, Depends(_asked)]
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
    offset: Offset = 0,
    limit: Limit = 50,
) -> answers.Tables:
    """A page of a connection's tables by name, with the newest snapshot of each."""
    service: Service = request.app.state.service

    def work() -> answers.Tables:
        readable = partial(readable_dags, user=user)
        return read_tables(connection, service.names, readable, search, offset, limit)

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


@router.get("/compare")
async def compare(
    asked: Question, before: SnapshotId, after: SnapshotId, offset: Offset = 0, limit: Limit = 100
) -> answers.Comparison:
    """What two snapshots differ in, by partition."""
    sides = (int(before), int(after))
    return await asked.answer(
        lambda found: reads.read_comparison(found, asked.readable, sides, offset, limit)
    )
