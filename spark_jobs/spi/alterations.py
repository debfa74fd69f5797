"""Changes of tables, but not of rows, that a format can offer. Driver only, without Spark."""

from __future__ import annotations

from typing import Protocol

from spark_jobs.contract.alter_table import AlterTableReport, AlterTableSpec
from spark_jobs.contract.drop_table import DropTableSpec
from spark_jobs.contract.request import TableName
from spark_jobs.spi.change_notes import NO_NOTE, ChangeNote


class ConnectorAlterations(Protocol):
    """Changes definitions of tables, each with all changes of a statement at once."""

    def alter_table(
        self,
        name: TableName,
        spec: AlterTableSpec,
        *,
        dry_run: bool,
        note: ChangeNote = NO_NOTE,
    ) -> AlterTableReport:
        """Change the table, unless it is already as it shall be; a ``dry_run`` stores nothing.

        The method notes in ``note`` what it is about to change; called again with the same note,
        it reports what it did the first time, and changes nothing.

        Raises:
            AnalysisError: COLUMN_NOT_FOUND, COLUMN_EXISTS, TYPE_MISMATCH.
            CatalogError: TABLE_NOT_FOUND, METADATA_UNREADABLE.
            CommitError: COMMIT_CONFLICT, COMMIT_OUTCOME_UNKNOWN, RUN_GIVEN_UP.
            InternalError: STORAGE_UNAVAILABLE.
            NotSupportedError: the format, or this connector, does not allow a change.
        """
        ...

    def drop_table(
        self, name: TableName, spec: DropTableSpec, *, note: ChangeNote = NO_NOTE
    ) -> bool:
        """Drop the table; False: there is none, which is no error.

        The method notes in ``note`` which table it is about to drop; called again with the same
        note, it drops no other one that has the name since.

        Raises:
            CatalogError: TABLE_NOT_FOUND, METADATA_UNREADABLE.
            CommitError: COMMIT_OUTCOME_UNKNOWN, RUN_GIVEN_UP.
            InternalError: STORAGE_UNAVAILABLE.
            NotSupportedError: the format, or this connector, cannot drop it.
        """
        ...
