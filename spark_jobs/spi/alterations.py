"""Changes of tables, but not of rows, that a format can offer. Driver only, without Spark.

An operation notes what it is about to change: a tag or a branch does not tell which operation made
it; by the note, a retry tells its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from spark_jobs.contract.alter_table import AlterTableReport, AlterTableSpec
from spark_jobs.contract.drop_table import DropTableSpec
from spark_jobs.contract.request import TableName

# What an operation notes, as JSON.
Noted = Mapping[str, Any]


class ChangeNote(Protocol):
    """The note of one operation, for the connector's own use."""

    def read(self) -> Noted | None:
        """What an earlier try of the same work has noted; None: nothing.

        Raises:
            CatalogError: METADATA_UNREADABLE, WORKSPACE_ACCESS_DENIED.
        """
        ...

    def write(self, change: Noted) -> None:
        """Note a change, as JSON, unless this try was given up.

        Raises:
            CatalogError: WORKSPACE_ACCESS_DENIED.
            CommitError: RUN_GIVEN_UP.
        """
        ...

    def remove(self) -> None:
        """Forget a change that was certainly not made."""
        ...


class _NoNote:
    """Remembers nothing: for callers that try once."""

    def read(self) -> Noted | None:
        return None

    def write(self, change: Noted) -> None:
        del change

    def remove(self) -> None:
        return


NO_NOTE: Final[ChangeNote] = _NoNote()


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


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """A column or nested field that is added, or that gets a wider type.

    ``path`` leads from the column to the field; ``element``, ``key`` and ``value`` lead into arrays
    and maps. ``type`` is a Spark SQL type in DDL form, as is ``before``, the type so far; None: the
    column or field is added, nullable, behind the others.
    """

    path: tuple[str, ...]
    type: str
    before: str | None = None

    @property
    def place(self) -> str:
        """The path as people write it."""
        return ".".join(self.path)

    def __str__(self) -> str:
        if self.before is None:
            return f"added {self.place} {_shown(self.type)}"
        return f"widened {self.place} from {_shown(self.before)} to {_shown(self.type)}"


def _shown(ddl: str) -> str:
    """The type with the names of its fields as they are."""
    return ddl if "<" in ddl else ddl.upper()
