"""Why tags are not made or deleted, and why a table is not rolled back. Driver only."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from spark_jobs.contract.request import TableName
from spark_jobs.errors import CatalogError, CommitError, ErrorCode

# The numbers of tags and of reasons that an error names.
_TAGS: Final = 20
_REASONS: Final = 10


def no_snapshot(name: TableName, snapshot_id: int | None) -> CatalogError:
    """The error for a snapshot that does not exist; None: the table has no snapshot at all."""
    what = "any snapshot" if snapshot_id is None else f"a snapshot {snapshot_id}"
    return CatalogError(
        ErrorCode.SNAPSHOT_NOT_FOUND,
        f"{name} does not have {what}; it may have expired.",
        "Look at the table's snapshots and tags.",
    )


def no_tag(name: TableName, tag: str, tags: Iterable[str]) -> CatalogError:
    """The error for a tag that is not one of ``tags``."""
    known = ", ".join(sorted(tags)[:_TAGS])
    remedy = f"Use one of its tags: {known}." if known else "It has none: make one first."
    return CatalogError(ErrorCode.TAG_NOT_FOUND, f"{name} has no tag {tag}.", remedy)


def tag_exists(name: TableName, kind: str, tag: str) -> CatalogError:
    """The error for a tag whose name a tag or branch has already."""
    return CatalogError(
        ErrorCode.TAG_EXISTS,
        f"{name} has a {kind} {tag} already.",
        "Choose another name, delete the tag first, or set if_not_exists.",
    )


def refuse_loss(what: str, losses: Sequence[str]) -> None:
    """Refuse ``what`` (``Rolling t back``), if it takes something from others.

    Raises:
        CommitError: COMMITS_OF_OTHERS; names the losses.
    """
    if losses:
        more = len(losses) - _REASONS
        listed = ", ".join(losses[:_REASONS]) + (f" and {more} more" if more > 0 else "")
        raise CommitError(
            ErrorCode.COMMITS_OF_OTHERS,
            f"{what} would take from others: {listed}.",
            "Ask them; then set force=True.",
        )
