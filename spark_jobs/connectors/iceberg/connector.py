"""Opens an Iceberg catalog: the module that the registry loads. Driver only."""

from __future__ import annotations

from collections.abc import Mapping

from spark_jobs.connectors.iceberg.alter.alter_table import IcebergAlterations
from spark_jobs.connectors.iceberg.commit.base_notes import BaseNotes
from spark_jobs.connectors.iceberg.commit.merge_writes import IcebergMergeWrites
from spark_jobs.connectors.iceberg.compaction.compaction import IcebergCompaction
from spark_jobs.connectors.iceberg.library.catalogs import IcebergCatalog
from spark_jobs.connectors.iceberg.maintenance.table_branches import IcebergBranches
from spark_jobs.connectors.iceberg.maintenance.table_maintenance import IcebergMaintenance
from spark_jobs.connectors.iceberg.maintenance.undo import IcebergUndo
from spark_jobs.connectors.iceberg.metadata import IcebergMetadata
from spark_jobs.connectors.iceberg.read.changes import IcebergChanges
from spark_jobs.connectors.iceberg.read.scan import IcebergScan
from spark_jobs.contract.request import CatalogSpec
from spark_jobs.formats.iceberg.options import require_catalog, storage_options
from spark_jobs.spi.connector import Connector
from spark_jobs.storage.table_storage import source_location
from spark_jobs.storage.warehouse import open_workspace


def open_connector(catalog: CatalogSpec, credentials: Mapping[str, str]) -> Connector:
    """The connector for a REST catalog or a SQL catalog; it is asked when a table is loaded.

    Raises:
        CatalogError: WAREHOUSE_NOT_FOUND, WAREHOUSE_ACCESS_DENIED, LIBRARY_MISSING.
        InternalError: STORAGE_UNAVAILABLE.
        NotSupportedError: the catalog or its storage is of another kind.
        RequestError: REQUEST_INVALID, naming the option.
    """
    options = {**catalog.options, **credentials}
    require_catalog(options)
    import pyiceberg  # noqa: F401 - the registry says what to install

    stored = {**options, **storage_options(options)}
    workspace, opened = open_workspace(catalog, stored), IcebergCatalog(options)
    metadata, notes = IcebergMetadata(opened), BaseNotes(workspace)
    return Connector(
        metadata=metadata,
        scan=IcebergScan(),
        writes=IcebergMergeWrites(opened, metadata, notes),
        storage=workspace,
        maintenance=IcebergMaintenance(opened, metadata, notes),
        compaction=IcebergCompaction(opened, metadata, notes),
        branches=IcebergBranches(opened, metadata),
        alterations=IcebergAlterations(opened, metadata),
        undo=IcebergUndo(opened, metadata),
        changes=IcebergChanges(),
        locate=lambda uri: source_location(uri, stored),
    )
