"""What a table format can do to keep its tables small. Driver only; a Spark session
is used where it is given, and none is needed.

After the procedures of table formats' own engines. Each method may be called again after it was
interrupted at any point, and then comes to the same end.
"""

from __future__ import annotations

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

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class ConnectorMaintenance(Protocol):
    """Snapshots, tags and files of tables. With ``dry_run``, nothing is stored or removed.

    Whatever cannot be read of what keeps files in use ends a method before anything is removed.
    All raise CatalogError: TABLE_NOT_FOUND, METADATA_UNREADABLE; CommitError: COMMIT_CONFLICT when
    others were at work at the same time; InternalError: STORAGE_UNAVAILABLE.
    """

    def expire_snapshots(
        self, name: TableName, spec: ExpireSnapshotsSpec, *, dry_run: bool
    ) -> MaintenanceReport:
        """Drop the oldest snapshots and the files that nothing else needs.

        Raises:
            RequestError: REQUEST_INVALID: the limits contradict those of the table.
        """
        ...

    def remove_orphan_files(
        self,
        name: TableName,
        spec: RemoveOrphanFilesSpec,
        *,
        dry_run: bool,
        spark: SparkSession | None = None,
    ) -> MaintenanceReport:
        """Remove files that are of no snapshot, tag or branch of the table.

        With ``spark``, tasks list and compare the files; without it, the driver holds all names.

        Raises:
            RequestError: REQUEST_INVALID: the limit is not a past moment.
        """
        ...

    def create_tag(self, name: TableName, spec: CreateTagSpec) -> MaintenanceReport:
        """Name a snapshot.

        Raises:
            CatalogError: SNAPSHOT_NOT_FOUND, TAG_EXISTS.
        """
        ...

    def delete_tag(
        self, name: TableName, spec: DeleteTagSpec, *, dry_run: bool
    ) -> MaintenanceReport:
        """Delete tags and the files that only they kept.

        Raises:
            CatalogError: TAG_NOT_FOUND.
        """
        ...

    def roll_back(
        self, name: TableName, spec: RollbackSpec, *, dag_id: str, dry_run: bool
    ) -> MaintenanceReport:
        """Drop the snapshots after one; ``dag_id`` is whose commits may go without ``force``.

        Raises:
            CatalogError: SNAPSHOT_NOT_FOUND, TAG_NOT_FOUND.
            CommitError: COMMITS_OF_OTHERS.
        """
        ...
