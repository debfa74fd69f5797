"""DROP TABLE, with a note of which table it is about: a retry drops no other one. Driver only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from spark_jobs.contract.drop_table import DropTableSpec
from spark_jobs.contract.request import TableName
from spark_jobs.contract.table_name import MAIN_BRANCH
from spark_jobs.errors import CatalogError, CommitError, ErrorCode, NotSupportedError
from spark_jobs.spi.alterations import ChangeNote

_TABLE: Final = "table"


def drop_noted(
    name: TableName,
    spec: DropTableSpec,
    identity: Callable[[], str | None],
    drop: Callable[[], None],
    note: ChangeNote,
) -> bool:
    """Whether the table was dropped by this operation; raises as ``ConnectorAlterations``.

    ``identity`` tells the table that has the name now from others that had it or will have it;
    None: there is none. ``drop`` raises TimeoutError if nobody knows whether it did.
    """
    if name.branch != MAIN_BRANCH:
        raise NotSupportedError(
            f"{name} is a branch, which DROP TABLE does not drop.",
            "Use DeleteBranchOperator, or the engine that made the branch.",
        )
    noted, current_id = note.read(), identity()
    if noted is not None and current_id != noted[_TABLE]:
        # An earlier try has dropped it; what has the name now is of somebody else.
        return True
    if current_id is None:
        if spec.if_exists:
            return False
        raise CatalogError(
            ErrorCode.TABLE_NOT_FOUND,
            f"Table {name} does not exist.",
            "Check the name, or write DROP TABLE IF EXISTS.",
        )
    note.write({_TABLE: current_id})
    try:
        drop()
    except TimeoutError as error:
        raise CommitError(
            ErrorCode.COMMIT_OUTCOME_UNKNOWN,
            f"It is not known whether {name} was dropped: {error}",
            "Run the statement again: it looks for the table that it was about to drop.",
        ) from error
    return True
