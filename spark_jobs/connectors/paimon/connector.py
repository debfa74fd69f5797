"""Opens a Paimon catalog: the module that the registry loads. Driver only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from spark_jobs.connectors.paimon.alter.alter_table import PaimonAlterations
from spark_jobs.connectors.paimon.commit.merge_writes import PaimonMergeWrites
from spark_jobs.connectors.paimon.commit.publish import CatalogServer, SnapshotFiles, SnapshotStore
from spark_jobs.connectors.paimon.compaction.compaction import PaimonCompaction
from spark_jobs.connectors.paimon.library import catalogs, rest_catalog
from spark_jobs.connectors.paimon.library.catalogs import catalog_options
from spark_jobs.connectors.paimon.maintenance.server_branches import ServerBranches
from spark_jobs.connectors.paimon.maintenance.server_maintenance import ServerMaintenance
from spark_jobs.connectors.paimon.maintenance.table_branches import PaimonBranches
from spark_jobs.connectors.paimon.maintenance.table_maintenance import PaimonMaintenance
from spark_jobs.connectors.paimon.maintenance.undo import PaimonUndo
from spark_jobs.connectors.paimon.metadata import PaimonMetadata
from spark_jobs.connectors.paimon.read.changes import PaimonChanges
from spark_jobs.connectors.paimon.read.scan import PaimonScan
from spark_jobs.contract.request import CatalogSpec
from spark_jobs.contract.s3_options import SCHEMES
from spark_jobs.errors import NotSupportedError
from spark_jobs.formats.paimon.options import (
    FILESYSTEM,
    METASTORE,
    REST,
    REST_WAREHOUSE,
    WAREHOUSE,
    metastore_of,
)
from spark_jobs.spi.connector import Connector, ConnectorScan
from spark_jobs.spi.maintenance import ConnectorMaintenance
from spark_jobs.storage.table_storage import source_location
from spark_jobs.storage.warehouse import Warehouse, open_warehouse, open_workspace

_LOCK_OPTION: Final = "lock.enabled"


def open_connector(catalog: CatalogSpec, credentials: Mapping[str, str]) -> Connector:
    """The connector for a filesystem catalog or a REST catalog.

    Raises:
        CatalogError: WAREHOUSE_NOT_FOUND, WAREHOUSE_ACCESS_DENIED, LIBRARY_MISSING.
        InternalError: STORAGE_UNAVAILABLE.
        NotSupportedError: the catalog or its storage is of another kind.
    """
    options = {**catalog.options, **credentials}
    metastore = metastore_of(options)
    if metastore == FILESYSTEM:
        _refuse_lock(catalog.warehouse, options)
        storage = open_warehouse(catalog.warehouse, options)
        opened = catalogs.open_catalog(_library_options(options, storage, storage.location))
        metadata = PaimonMetadata(opened, storage)
        snapshots: SnapshotStore = SnapshotFiles(storage.files)
        maintenance: ConnectorMaintenance = PaimonMaintenance(metadata, storage)
        branches = PaimonBranches(metadata, storage, snapshots)
        server = None
    elif metastore == REST:
        storage = open_warehouse(catalog.warehouse, options, is_exclusive=False)
        name = options.get(REST_WAREHOUSE, storage.location)
        opened = rest_catalog.open_rest_catalog(_library_options(options, storage, name))
        metadata = PaimonMetadata(opened, storage, has_server=True)
        snapshots = CatalogServer(opened)
        maintenance = ServerMaintenance(metadata, storage, opened)
        branches = ServerBranches(metadata, storage, snapshots, opened)
        server = opened
    else:
        raise NotSupportedError(
            f"Catalog option {METASTORE} = {metastore} is not supported yet.",
            "Use a filesystem catalog (leave the option out) or a REST catalog (rest).",
        )
    return Connector(
        metadata=metadata,
        scan=_scan(storage),
        writes=PaimonMergeWrites(metadata, storage.filesystem, snapshots),
        storage=open_workspace(catalog, options, storage),
        maintenance=maintenance,
        branches=branches,
        compaction=PaimonCompaction(metadata, storage.filesystem, snapshots),
        alterations=PaimonAlterations(metadata, snapshots, storage, server),
        undo=PaimonUndo(metadata, storage.filesystem, snapshots),
        changes=PaimonChanges(storage.filesystem),
        locate=lambda uri: source_location(uri, options),
    )


def _library_options(
    options: Mapping[str, str], storage: Warehouse, warehouse: str
) -> dict[str, str]:
    return {**options, **catalog_options(storage.access), WAREHOUSE: warehouse}


def _scan(storage: Warehouse) -> ConnectorScan:
    """The catalog's scan, which uses pyarrow if Spark cannot reach the files."""
    if storage.spark_prefix is None:
        return PaimonScan(storage.filesystem, "pyarrow")
    return PaimonScan(storage.filesystem, spark_prefix=storage.spark_prefix)


def _refuse_lock(warehouse: str, options: Mapping[str, str]) -> None:
    scheme = urlsplit(warehouse).scheme.lower()
    if scheme in SCHEMES and options.get(_LOCK_OPTION, "false").lower() == "true":
        raise NotSupportedError(
            f"Catalog option {_LOCK_OPTION} = true: Java writers rely on a lock that this job can "
            "not take, so one of them could replace a snapshot of this job on an object store.",
            "Let all writers of the catalog publish by conditional put, or use a REST catalog.",
        )
