"""DROP TABLE of Iceberg's tables: a name leaves the catalog. Driver only."""

from __future__ import annotations

from spark_jobs.connectors.iceberg.library.catalogs import IcebergCatalog
from spark_jobs.connectors.iceberg.metadata import IcebergMetadata
from spark_jobs.connectors.iceberg.table.pinned_table import pinned_table
from spark_jobs.connectors.shared.table.drops import drop_noted
from spark_jobs.contract.drop_table import DropTableSpec
from spark_jobs.contract.request import TableName
from spark_jobs.errors import NotSupportedError
from spark_jobs.formats.iceberg.expiry import GC_ENABLED
from spark_jobs.spi.alterations import ChangeNote
from spark_jobs.spi.connector import find_table


def drop_table(
    catalog: IcebergCatalog,
    metadata: IcebergMetadata,
    name: TableName,
    spec: DropTableSpec,
    note: ChangeNote,
) -> bool:
    """Drop the table; its files stay, unless a server is asked to purge them.

    Raises as ``ConnectorAlterations.drop_table``.
    """
    if spec.purge and catalog.decides_at_client:
        raise NotSupportedError(
            f"DROP TABLE {name} PURGE: in this catalog, nobody removes the files of a table that "
            "is gone.",
            "Leave PURGE out, and remove the table's folder; or clear it before with TRUNCATE, "
            "ExpireSnapshotsOperator and RemoveOrphanFilesOperator.",
        )

    def identity() -> str | None:
        handle = find_table(metadata, name)
        if handle is None:
            return None
        table = pinned_table(handle)
        properties = table.metadata.properties
        if spec.purge and str(properties.get(GC_ENABLED, "true")).lower() == "false":
            raise NotSupportedError(
                f"{name} has the property {GC_ENABLED} = false: its files may belong to other "
                "tables, too.",
                "Leave PURGE out.",
            )
        return str(table.metadata.table_uuid)

    return drop_noted(name, spec, identity, lambda: catalog.drop(name, purge=spec.purge), note)
