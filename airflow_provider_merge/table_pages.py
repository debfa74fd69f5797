"""Addresses of the pages about tables, which stay as they are: links of tasks are stored."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode, urlsplit

from airflow.providers.common.compat.sdk import conf

# The plugin, which every process of Airflow loads, needs none of these.
if TYPE_CHECKING:
    from spark_jobs.contract.request import JobRequest, Origin, TableName
    from spark_jobs.contract.result import JobResult

# The XCom of a dry run that failed: the fields of ``ErrorInfo``.
DRY_RUN_ERROR: Final = "merge_dry_run_error"
# Where Airflow mounts the pages and their API.
PREFIX: Final = "/lakehouse"


def page_before(conn_id: str, table: TableName) -> str:
    """The table at its newest snapshot before now: what a task that fails has found."""
    return _table(conn_id, table, until=int(time.time() * 1000))


def page_of_result(conn_id: str, request: JobRequest, result: JobResult) -> str:
    """What the task did: the table at its snapshot, or what a dry run would do."""
    table = request.table
    if result.is_dry:
        return page_of_preview(request)
    if result.maintenance is not None:
        return _table(conn_id, table, tab="care")
    snapshot_id = result.new_snapshot_id or result.base_snapshot_id
    return _table(conn_id, table) if snapshot_id is None else _table(conn_id, table, snapshot_id)


def page_of_preview(request: JobRequest) -> str:
    """What a dry run would do, or why it would fail."""
    return page_of_task(request.origin)


def page_of_task(origin: Origin) -> str:
    """What a task has returned."""
    task = {"dag_id": origin.dag_id, "run_id": origin.run_id, "task_id": origin.task_id}
    return _page("preview", {**task, "map_index": origin.map_index})


def _table(
    conn_id: str,
    table: TableName,
    snapshot: int | None = None,
    until: int | None = None,
    tab: str | None = None,
) -> str:
    place = {"snapshot": snapshot, "until": until, "tab": tab}
    given = {name: value for name, value in place.items() if value is not None}
    names = {"connection": conn_id, "database": table.database, "table": table.table}
    return _page("table", {**names, **given})


def _page(name: str, parameters: dict[str, str | int]) -> str:
    """Without a host: Airflow's own page, wherever it is opened, has the right one."""
    root = urlsplit(conf.get("api", "base_url", fallback="") or "").path.rstrip("/")
    return f"{root}{PREFIX}/{name}?{urlencode(parameters)}"
