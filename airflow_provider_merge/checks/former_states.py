"""Former states of tables, looked up before a job starts."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from airflow_provider_merge.metadata.model import Snapshot
from airflow_provider_merge.metadata.reader import TableReader
from spark_jobs.contract.table_versions import TableVersion
from spark_jobs.errors import CatalogError, ErrorCode

# The names that an error lists.
_NAMES: Final = 20


def former_columns(table: TableReader, at: TableVersion) -> Mapping[str, str] | None:
    """The columns that ``table`` had at a former state; None: only the job finds the state.

    Only what is missing for certain is refused: a tag that is not there, a time before all history.

    Raises:
        CatalogError: TAG_NOT_FOUND, SNAPSHOT_NOT_FOUND.
    """
    if at.tag is not None:
        tag = table.tag(at.tag)
        if tag is None:
            known = ", ".join(table.tags()[:_NAMES])
            raise CatalogError(
                ErrorCode.TAG_NOT_FOUND,
                f"{table.name} has no tag {at.tag}",
                f"Use one of its tags: {known}." if known else "It has none: make one first.",
                ("tag",),
            )
        return _columns(table, tag.snapshot)
    if at.snapshot is not None:
        found = table.snapshot(at.snapshot)
        return None if found is None else _columns(table, found)
    if at.moment is not None:
        _require_history(table, at.moment)
    return None


def _require_history(table: TableReader, moment: datetime) -> None:
    if moment.tzinfo is None:
        return
    ids = table.history(table.latest()).ids
    first = table.snapshot(ids[0]) if ids else None
    if ids and first is None:
        return
    began = None if first is None else datetime.fromtimestamp(first.time_millis / 1000, UTC)
    if began is None or moment < began:
        since = "no snapshot" if began is None else f"no snapshot older than {began}"
        raise CatalogError(
            ErrorCode.SNAPSHOT_NOT_FOUND,
            f"{table.name} has {since}, and was asked for {moment}; older ones may have expired",
            "Choose a later time; keep states that are read later by a tag.",
            ("as_of",),
        )


def _columns(table: TableReader, snapshot: Snapshot) -> Mapping[str, str]:
    return table.schema(snapshot.schema_id).column_types
