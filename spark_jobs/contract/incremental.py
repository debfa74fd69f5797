"""Which statements may read incremental sources."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from spark_jobs.contract.catalogs import CatalogSpec
from spark_jobs.contract.checks import require
from spark_jobs.contract.inserts import InsertIntoSpec
from spark_jobs.contract.sources import Source, TableSource
from spark_jobs.contract.statements import (
    DeleteSpec,
    MergeSpec,
    Statement,
    UpdateSpec,
    created_table,
)
from spark_jobs.contract.table_name import MAIN_BRANCH, TableName
from spark_jobs.errors import NotSupportedError

_MARK_OF: Final = "dry_run_of"
_STATEMENTS: Final = MergeSpec | InsertIntoSpec | DeleteSpec | UpdateSpec


def require_incremental(
    statement: Statement,
    sources: Sequence[Source],
    target: TableName | None,
    catalog: CatalogSpec,
) -> None:
    """Refuse incremental sources where a part of the rows does not mean what all rows mean.

    ``catalog``: that of ``target``.

    Raises:
        NotSupportedError: names the source, and the statement, the branch or the target.
    """
    incremental = [each for each in sources if each.is_incremental]
    names = [each.name for each in incremental]
    if not names:
        return
    first = f"source {names[0]} reads only what is new"
    whole = "table_source" if isinstance(incremental[0], TableSource) else "file_source"
    if not isinstance(statement, _STATEMENTS) or created_table(statement) is not None:
        raise NotSupportedError(
            f"{first}: {statement.kind} does not remember how far it was applied.",
            f"Use MERGE, INSERT INTO, UPDATE or DELETE, or read all of it: {whole}.",
        )
    if len(names) > 1:
        raise NotSupportedError(
            f"{first}, and so does source {names[1]}: a statement has one such source.",
            "Make a statement for each of them, or read one of them whole.",
        )
    if isinstance(statement, MergeSpec) and any(
        each.when == "not_matched_by_source" for each in statement.cases
    ):
        raise NotSupportedError(
            f"{first}: WHEN NOT MATCHED BY SOURCE would change all rows of earlier runs.",
            f"Leave the clause out, or read all of the source: {whole}.",
        )
    if target is not None and target.branch != MAIN_BRANCH:
        raise NotSupportedError(
            f"{first}: how far it was applied is not published with the branch {target.branch}.",
            f"Write to the table itself, or read all of the source: {whole}.",
        )
    source = incremental[0]
    if target is not None and isinstance(source, TableSource) and source.table.may_be(target):
        is_here = source.catalog is None or source.catalog.may_have_tables_of(catalog)
        if is_here and (source.connection is None or source.catalog is not None):
            raise NotSupportedError(
                f"{first}, but that is of the target itself, {target}: each run would read what "
                "the one before it changed.",
                "Name the table that the target follows; or read a range of the target's "
                "changes: from_snapshot and to_snapshot.",
            )


def require_mark_of(task: str, sources: Sequence[Source], *, dry_run: bool) -> None:
    """Refuse to go by the marks of another ``task`` where they would be moved, or none is read.

    Raises:
        RequestError: REQUEST_INVALID.
    """
    require(
        not task or dry_run,
        _MARK_OF,
        "only a dry run goes by the mark of another task",
        "Set dry_run, or leave dry_run_of out: each task has a mark of its own.",
    )
    require(
        not task or any(each.is_incremental for each in sources),
        _MARK_OF,
        "no source is read incrementally, so no mark is read",
        "Leave it out: a dry run reads what the statement would read.",
    )
