"""Why a former state of a table cannot be read. Driver only."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from spark_jobs.contract.request import TableName
from spark_jobs.contract.table_versions import TableVersion
from spark_jobs.errors import CatalogError, ErrorCode

# The names that an error lists.
_NAMES: Final = 20


def no_such_snapshot(name: TableName, snapshot_id: int, field: str) -> CatalogError:
    """The error for a snapshot that ``name`` does not have, or not any more."""
    return CatalogError(
        ErrorCode.SNAPSHOT_NOT_FOUND,
        f"{name} does not have a snapshot {snapshot_id}; it may have expired or been rolled back",
        "Name a snapshot or a tag that the table has; keep states that are read later by a tag.",
        (field,),
    )


def no_such_name(name: TableName, version: TableVersion, names: list[str]) -> CatalogError:
    """The error for a tag, or another name, that is not among ``names``."""
    known = ", ".join(sorted(names)[:_NAMES])
    what = "tag" if version.tag is not None else "snapshot, tag or branch"
    remedy = f"Use one of its names: {known}." if known else "It has none: make a tag first."
    return CatalogError(
        ErrorCode.TAG_NOT_FOUND,
        f"{name} has no {what} {version.tag or version.version}",
        remedy,
        (version.field,),
    )


def before_history(name: TableName, asked: int, first: int | None) -> CatalogError:
    """The error for a time (ms since 1970) before the first retained snapshot, of ``first``."""
    since = "no snapshot" if first is None else f"no snapshot older than {_text(first)}"
    return CatalogError(
        ErrorCode.SNAPSHOT_NOT_FOUND,
        f"{name} has {since}, and was asked for {_text(asked)}; older ones may have expired",
        "Choose a later time; keep states that are read later by a tag.",
        ("as_of",),
    )


def no_history(name: TableName, snapshot_id: int, branch: str) -> CatalogError:
    """The error for a snapshot that does not lead to the state of ``name`` that is read."""
    return CatalogError(
        ErrorCode.SNAPSHOT_NOT_FOUND,
        f"{name}: its history on the branch {branch} does not lead back to snapshot {snapshot_id}: "
        "snapshots have expired, or it was rolled back, made anew, or another branch was read",
        "Begin at a snapshot of its history; keep the snapshots until all that read the changes "
        "have done so.",
        ("changes",),
    )


def _text(millis: int) -> str:
    moment = datetime.fromtimestamp(millis / 1000, UTC)
    return moment.isoformat(sep=" ", timespec="milliseconds")
