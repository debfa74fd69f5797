"""The retained snapshots of a table, as people ask for them."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import takewhile

from airflow_provider_merge.metadata.model import Snapshot
from airflow_provider_merge.metadata.reader import TableReader
from airflow_provider_merge.metadata.table_view import TableView


def retained_snapshots(table: TableReader, since: int | datetime | None) -> list[Snapshot]:
    """The retained snapshots, oldest first: all, those after an id, or those since a time.

    A time without a time zone is UTC. A snapshot that expires meanwhile is left out.

    Raises:
        CatalogError: METADATA_UNREADABLE.
    """
    view = TableView(table)
    if isinstance(since, int):
        return list(view.after_id(since))[::-1]
    snapshots = view.newest_first()
    if since is not None:
        earliest = _utc(since).timestamp() * 1000
        snapshots = takewhile(lambda each: each.time_millis >= earliest, snapshots)
    return list(snapshots)[::-1]


def _utc(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
