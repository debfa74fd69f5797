"""Changes of a table's metadata without new files, each a commit that nobody else's slips under.

The catalog is asked under the condition that what was read still holds: so nothing of others is
replaced or lost silently, as by pyiceberg's own ``manage_snapshots`` and ``expire_snapshots``.
Driver only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from spark_jobs.connectors.iceberg.library.catalogs import IcebergCatalog
from spark_jobs.connectors.iceberg.metadata import IcebergMetadata
from spark_jobs.connectors.iceberg.table.pinned_table import PinnedTable, pinned_table
from spark_jobs.connectors.shared.commit.commit_loop import store_once
from spark_jobs.contract.request import TableName
from spark_jobs.errors import JobError


def asked(
    catalog: IcebergCatalog,
    table: Any,
    required: tuple[Any, ...],
    changes: tuple[Any, ...],
    look_up: Callable[[], bool | None],
) -> bool:
    """Ask to commit to pyiceberg's ``table``; False: it has moved on, so that it never will.

    ``look_up`` tells whether the commit was made; None: not, but it may still be.

    Raises:
        TimeoutError: there was no answer that tells what the catalog did.
        OSError: it certainly refused.
    """
    answer = catalog.committed(table, required, changes)
    if answer == "yes":
        return True
    if answer == "unknown":
        raise TimeoutError("the catalog's answer does not tell what it did")
    # A request may arrive twice: then the refusal is of the second one.
    try:
        was_made = look_up()
    except JobError as error:
        raise TimeoutError("the catalog refused, and did not show the table") from error
    if was_made is None and answer == "no":
        raise OSError("the catalog refused")
    return bool(was_made)


class Change(Protocol):
    """A change of metadata; its text says what is changed."""

    def updates(self, read: PinnedTable) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Pyiceberg's requirements, besides the table's id, and its updates."""
        ...

    def is_in(self, read: PinnedTable, now: PinnedTable) -> bool:
        """Whether the table has it since it was read."""
        ...

    def fits(self, read: PinnedTable, now: PinnedTable) -> bool:
        """Whether the table still is such that the change may appear."""
        ...


@dataclass(frozen=True, slots=True)
class MetadataCommits:
    """Changes the metadata of the table ``name``."""

    catalog: IcebergCatalog
    metadata: IcebergMetadata
    name: TableName

    def table(self) -> PinnedTable:
        """The table as it is now; raises as ``load_table`` does."""
        return pinned_table(self.metadata.load_table(self.name))

    def change(self, read: PinnedTable, wanted: Change) -> bool:
        """Change the table that was ``read``; False: others changed it meanwhile.

        Raises:
            CommitError: COMMIT_OUTCOME_UNKNOWN.
            InternalError: STORAGE_UNAVAILABLE: it is certainly not changed.
        """
        return store_once(
            str(wanted),
            partial(self._store, read, wanted),
            partial(self._look_up, read, wanted),
        )

    def _store(self, read: PinnedTable, wanted: Change) -> bool:
        from pyiceberg.table.update import AssertTableUUID

        required, updates = wanted.updates(read)
        required = (AssertTableUUID(uuid=read.metadata.table_uuid), *required)
        look_up = partial(self._look_up, read, wanted)
        return asked(self.catalog, read.table, required, updates, look_up)

    def _look_up(self, read: PinnedTable, wanted: Change) -> bool | None:
        """Whether the table has the change; None: not, but it may still get it."""
        now = self.table()
        if wanted.is_in(read, now):
            return True
        return None if wanted.fits(read, now) else False
