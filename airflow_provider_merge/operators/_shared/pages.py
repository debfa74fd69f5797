"""The pages that the links of a task lead to when its job is done."""

from __future__ import annotations

import logging
from collections.abc import Callable

from airflow_provider_merge.hooks.catalog import CatalogHook
from airflow_provider_merge.links import QUARANTINE_PAGE, SNAPSHOT_PAGE
from spark_jobs.contract.request import TableName
from spark_jobs.contract.result import JobResult
from spark_jobs.errors import JobError

log = logging.getLogger(__name__)


def pages_of_result(
    hook: CatalogHook, target: TableName | None, result: JobResult
) -> dict[str, str]:
    """The pages of the snapshot and of the quarantined rows, by the XCom of their link.

    ``target`` is None for a query. A wrong address is only a warning in the log.
    """
    pages: dict[str, str] = {}
    snapshot_id, file = result.new_snapshot_id, quarantine_file(result)
    if target is not None and snapshot_id is not None:
        page = _page("snapshot", lambda: hook.snapshot_page(target, snapshot_id))
        pages[SNAPSHOT_PAGE] = page
    if file is not None:
        pages[QUARANTINE_PAGE] = _page("quarantined rows", lambda: hook.quarantine_page(file))
    return pages


def quarantine_file(result: JobResult) -> str | None:
    """Where the quarantined records of the first source are that has any; None: of no source."""
    files = (each.quarantine for each in result.metrics.sources.values() if each.quarantined)
    return next((file for file in files if file), None)


def _page(what: str, ask: Callable[[], str]) -> str:
    try:
        return ask()
    except JobError as error:
        log.warning("There is no link to the %s: %s", what, error)
        return ""
