"""Opens a Paimon catalog: the module that the registry loads. Driver only."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import unquote, urlsplit

import pyarrow.fs as pafs

from spark_jobs.connectors.paimon import library
from spark_jobs.connectors.paimon.commit import PaimonMergeWrites
from spark_jobs.connectors.paimon.metadata import PaimonMetadata, require_warehouse
from spark_jobs.connectors.paimon.publish import HardLinkStore
from spark_jobs.connectors.paimon.scan import PaimonScan
from spark_jobs.contract.request import CatalogSpec
from spark_jobs.errors import NotSupportedError
from spark_jobs.spi.connector import Connector, WarehouseStorage


def open_connector(catalog: CatalogSpec, credentials: Mapping[str, str]) -> Connector:
    """The connector for a filesystem catalog on local storage.

    Raises:
        CatalogError: WAREHOUSE_NOT_FOUND.
        NotSupportedError: another kind of catalog or storage.
    """
    metastore = catalog.options.get("metastore", "filesystem")
    if metastore != "filesystem":
        raise NotSupportedError(
            f"Catalog option metastore = {metastore} is not supported yet.",
            "Use a filesystem catalog: leave the option out.",
        )
    root = local_path(catalog.warehouse)
    require_warehouse(root)
    native = library.open_catalog({**catalog.options, **credentials, "warehouse": root})
    filesystem = pafs.LocalFileSystem()
    metadata = PaimonMetadata(native, root)
    return Connector(
        metadata=metadata,
        scan=PaimonScan(filesystem),
        writes=PaimonMergeWrites(metadata, filesystem, HardLinkStore()),
        storage=WarehouseStorage(filesystem, root, f"file://{root}"),
    )


def local_path(warehouse: str) -> str:
    """The path behind a local warehouse, given as a path or a ``file:`` URI.

    Raises:
        NotSupportedError: the warehouse is on another kind of storage.
    """
    if warehouse.startswith("/"):
        path = warehouse
    else:
        parts = urlsplit(warehouse)
        if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
            raise NotSupportedError(
                f"The warehouse {warehouse} is not on a local file system, which is all that is "
                "supported yet.",
                "Use /path or file:///path.",
            )
        path = unquote(parts.path)
    return path.rstrip("/") or "/"
