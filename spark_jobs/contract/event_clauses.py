"""The clauses with which a MERGE applies the last events of each key."""

from __future__ import annotations

from collections.abc import Sequence

from spark_jobs.contract.cdc import CdcSource
from spark_jobs.contract.sql_text import quote
from spark_jobs.contract.statements import (
    Action,
    Assignment,
    DeleteAction,
    InsertAction,
    InsertAllAction,
    MergeCase,
    UpdateAction,
    UpdateAllAction,
)
from spark_jobs.contract.table_versions import CHANGE_TYPE, DELETE


def event_on(source: CdcSource, target_alias: str, source_alias: str) -> str:
    """The condition that joins events with the rows that they are of."""
    pairs = (f"{target_alias}.{quote(k)} = {source_alias}.{quote(k)}" for k in source.keys)
    return " AND ".join(pairs)


def event_cases(source: CdcSource, target_alias: str, source_alias: str) -> tuple[MergeCase, ...]:
    """The clauses: an event that is not newer than the row has no effect."""
    is_deleted = f"{source_alias}.{quote(CHANGE_TYPE)} = '{DELETE}'"
    newer = is_newer(source, target_alias, source_alias)
    told = (newer is not None and f"{newer} AND {is_deleted}") or is_deleted
    columns = [each.column for each in source.sequence] if newer is not None else []
    gone: Action = DeleteAction()
    if source.deleted is not None:
        gone = UpdateAction(
            (
                Assignment(quote(source.deleted), "TRUE"),
                *(Assignment(quote(each), f"{source_alias}.{quote(each)}") for each in columns),
            )
        )
    cases = [MergeCase("matched", gone, told), MergeCase("matched", UpdateAllAction(), newer)]
    if source.deleted is not None and columns:
        cases.append(
            MergeCase("not_matched", _tombstone(source, columns, source_alias), is_deleted)
        )
        cases.append(MergeCase("not_matched", InsertAllAction()))
    else:
        cases.append(MergeCase("not_matched", InsertAllAction(), f"NOT ({is_deleted})"))
    return tuple(cases)


def is_newer(source: CdcSource, target_alias: str, left: str) -> str | None:
    """Whether the sequence in ``left`` is above that of the target's row; None: never asked.

    A row without a sequence is older than every event.
    """
    if source.late == "apply":
        return None
    names = [quote(each.column) for each in source.sequence]
    text = ""
    for name in reversed(names):
        mine, row = f"{left}.{name}", f"{target_alias}.{name}"
        above = f"{row} IS NULL OR {mine} > {row}"
        text = f"({above} OR ({mine} = {row} AND {text}))" if text else f"({above})"
    return text


def _tombstone(source: CdcSource, kept: Sequence[str], source_alias: str) -> InsertAction:
    """The row of a key that was deleted before it was ever seen: an insert may come later."""
    names = [*source.keys, *kept]
    values = [f"{source_alias}.{quote(each)}" for each in names]
    deleted = source.deleted or ""
    return InsertAction((*values, "TRUE"), tuple(map(quote, (*names, deleted))))
