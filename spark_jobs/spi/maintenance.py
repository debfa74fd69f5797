"""Table maintenance that a table format can offer. Driver only; a Spark session is optional.

Modelled on the procedures of the table formats' own engines. Each method can be called again after
an interruption at any point, and then reaches the same result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from spark_jobs.contract.maintenance import (
    CreateTagSpec,
    DeleteTagSpec,
    ExpireSnapshotsSpec,
    MaintenanceReport,
    RemoveOrphanFilesSpec,
    RollbackSpec,
)
from spark_jobs.contract.request import TableName
from spark_jobs.spi.alterations import NO_NOTE, ChangeNote
from spark_jobs.spi.writes import always_wanted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class ConnectorMaintenance(Protocol):
    """Maintains the snapshots, tags and files of tables. A ``dry_run`` changes and removes nothing.

    Ages are computed by the clock of the table's store. A method notes in ``note`` what it is about
    to change; called again with the same note, it reports what it did the first time.

    If a method cannot read all the metadata that keeps files in use, it fails before it removes
    anything. All methods raise CatalogError: TABLE_NOT_FOUND, METADATA_UNREADABLE; CommitError:
    COMMIT_CONFLICT if other writers interfered; InternalError: STORAGE_UNAVAILABLE.
    """

    def expire_snapshots(
        self,
        name: TableName,
        spec: ExpireSnapshotsSpec,
        *,
        dry_run: bool,
        require_wanted: Callable[[], None] = always_wanted,
    ) -> MaintenanceReport:
        """Drop the oldest snapshots and the files that nothing else needs.

        ``require_wanted`` is called before each removal.

        Raises:
            JobError: raised by ``require_wanted`` (nothing more was removed).
            RequestError: REQUEST_INVALID: the limits contradict the table's own.
        """
        ...

    def remove_orphan_files(
        self,
        name: TableName,
        spec: RemoveOrphanFilesSpec,
        *,
        dry_run: bool,
        spark: SparkSession | None = None,
        require_wanted: Callable[[], None] = always_wanted,
    ) -> MaintenanceReport:
        """Remove files that belong to no snapshot, tag or branch of the table.

        With ``spark``, tasks list and compare the files. Without it, the driver holds all names.
        ``require_wanted`` is called before each removal.

        Raises:
            JobError: raised by ``require_wanted`` (nothing more was removed).
            RequestError: REQUEST_INVALID: the limit is not in the past.
        """
        ...

    def create_tag(
        self, name: TableName, spec: CreateTagSpec, *, note: ChangeNote = NO_NOTE
    ) -> MaintenanceReport:
        """Create a tag that names a snapshot.

        Raises:
            CatalogError: SNAPSHOT_NOT_FOUND, TAG_EXISTS.
        """
        ...

    def delete_tag(
        self, name: TableName, spec: DeleteTagSpec, *, dry_run: bool, note: ChangeNote = NO_NOTE
    ) -> MaintenanceReport:
        """Delete tags, and the files that only they keep.

        Raises:
            CatalogError: TAG_NOT_FOUND.
        """
        ...

    def roll_back(
        self,
        name: TableName,
        spec: RollbackSpec,
        *,
        dag_id: str,
        dry_run: bool,
        note: ChangeNote = NO_NOTE,
    ) -> MaintenanceReport:
        """Drop the snapshots after a given one.

        Unless ``spec`` forces it, all of them must be commits of the DAG ``dag_id``.

        Raises:
            CatalogError: SNAPSHOT_NOT_FOUND, TAG_NOT_FOUND.
            CommitError: COMMITS_OF_OTHERS.
        """
        ...
