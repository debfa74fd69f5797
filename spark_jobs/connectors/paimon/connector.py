"""Opens a Paimon catalog: the module that the registry loads. Driver only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from spark_jobs.connectors.paimon import library, rest_library
from spark_jobs.connectors.paimon.catalog_server import CatalogServer
from spark_jobs.connectors.paimon.commit import PaimonMergeWrites
from spark_jobs.connectors.paimon.maintenance import PaimonMaintenance
from spark_jobs.connectors.paimon.metadata import PaimonMetadata
from spark_jobs.connectors.paimon.publish import SnapshotStore
from spark_jobs.connectors.paimon.scan import PaimonScan
from spark_jobs.connectors.paimon.source_location import source_location
from spark_jobs.connectors.paimon.storage import PaimonStorage, open_storage
from spark_jobs.contract.request import CatalogSpec
from spark_jobs.errors import NotSupportedError
from spark_jobs.spi.connector import Connector, ConnectorScan
from spark_jobs.spi.storage import WarehouseStorage

# What the server of a REST catalog calls the warehouse, where that is not its location.
REST_WAREHOUSE: Final = "rest.warehouse"


def open_connector(catalog: CatalogSpec, credentials: Mapping[str, str]) -> Connector:
    """The connector for a filesystem catalog or a REST catalog.

    Raises:
        CatalogError: WAREHOUSE_NOT_FOUND, WAREHOUSE_ACCESS_DENIED, LIBRARY_MISSING.
        InternalError: STORAGE_UNAVAILABLE.
        NotSupportedError: another kind of catalog or storage.
    """
    options = {**catalog.options, **credentials}
    metastore = options.get("metastore", "filesystem")
    if metastore == "filesystem":
        storage = open_storage(catalog.warehouse, options)
        native = library.open_catalog(_native_options(options, storage, storage.location))
        metadata = PaimonMetadata(native, storage)
        snapshots: SnapshotStore = storage.snapshots
        maintenance: PaimonMaintenance | None = PaimonMaintenance(metadata, storage)
    elif metastore == "rest":
        storage = open_storage(catalog.warehouse, options, publishes=False)
        name = options.get(REST_WAREHOUSE, storage.location)
        native = rest_library.open_rest_catalog(_native_options(options, storage, name))
        metadata = PaimonMetadata(native, storage)
        # The server has tags and rollbacks of its own.
        snapshots, maintenance = CatalogServer(native), None
    else:
        raise NotSupportedError(
            f"Catalog option metastore = {metastore} is not supported yet.",
            "Use a filesystem catalog (leave the option out) or a REST catalog (rest).",
        )
    return Connector(
        metadata=metadata,
        scan=_scan(storage),
        writes=PaimonMergeWrites(metadata, storage.filesystem, snapshots),
        storage=WarehouseStorage(storage.filesystem, storage.root, storage.spark_uri),
        maintenance=maintenance,
        locate=lambda uri: source_location(uri, options),
    )


def _native_options(
    options: Mapping[str, str], storage: PaimonStorage, warehouse: str
) -> dict[str, str]:
    return {**options, **storage.catalog_options, "warehouse": warehouse}


def _scan(storage: PaimonStorage) -> ConnectorScan:
    """Where Spark can not reach the files, pyarrow reads them."""
    if storage.spark_prefix is None:
        return PaimonScan(storage.filesystem, "pyarrow")
    return PaimonScan(storage.filesystem, spark_prefix=storage.spark_prefix)
