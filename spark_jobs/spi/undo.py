"""Taking back what a run committed to a table. Driver only, without a Spark session."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from spark_jobs.contract.request import TableName
from spark_jobs.contract.undo import TableUndo
from spark_jobs.spi.writes import always_wanted


def always_approved(table: TableUndo) -> None:
    """Whatever is planned for a table, it may be done."""
    del table


@dataclass(frozen=True, slots=True)
class Undoing:
    """The run that is taken back, by an operation whose snapshots record ``properties``.

    ``require_wanted`` is called before each publication, and ``require_approved`` with what each
    attempt is about to do, before it writes anything; both may raise JobError.
    """

    dag_id: str
    run_id: str
    properties: Mapping[str, str]
    require_wanted: Callable[[], None] = always_wanted
    require_approved: Callable[[TableUndo], None] = always_approved


class ConnectorUndo(Protocol):
    """Takes back commits by a new snapshot that restores what they changed, and nothing else.

    All methods raise CatalogError: TABLE_NOT_FOUND, METADATA_UNREADABLE; InternalError:
    STORAGE_UNAVAILABLE.
    """

    def earlier(self, name: TableName, undoing: Undoing) -> TableUndo | None:
        """What an earlier try of the operation did to the table; None: nothing."""
        ...

    def planned(self, name: TableName, undoing: Undoing) -> TableUndo:
        """What would be done; nothing is stored.

        Raises:
            CommitError: COMMITS_OF_OTHERS, naming the commit that is in the way;
                COMMIT_HISTORY_EXPIRED: files that must come back are gone.
            NotSupportedError: gives the reason.
        """
        ...

    def undone(self, name: TableName, undoing: Undoing) -> TableUndo:
        """Take back what the run committed, by one snapshot; planned again if others commit.

        Raises: as ``planned``, and
            CommitError: COMMIT_CONFLICT (nothing was published), COMMIT_OUTCOME_UNKNOWN.
            JobError: raised by ``require_wanted`` or ``require_approved`` (nothing was published).
        """
        ...
