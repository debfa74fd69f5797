"""The workspace: where a catalog's jobs leave results and temporary files. Driver only."""

from __future__ import annotations

from collections.abc import Mapping

from spark_jobs.contract.locations import WAREHOUSE_SCHEMES, scheme_of
from spark_jobs.contract.request import CatalogSpec
from spark_jobs.errors import NotSupportedError
from spark_jobs.spi.storage import WarehouseStorage
from spark_jobs.storage.warehouse import Warehouse, open_warehouse


def open_workspace(
    catalog: CatalogSpec, options: Mapping[str, str], warehouse: Warehouse | None = None
) -> WarehouseStorage:
    """The catalog's workspace, by default its ``warehouse``, which may be open.

    ``options`` are those of the catalog, secrets included.

    Raises:
        CatalogError: WAREHOUSE_NOT_FOUND, WAREHOUSE_ACCESS_DENIED, LIBRARY_MISSING.
        InternalError: STORAGE_UNAVAILABLE.
        NotSupportedError: the workspace is on storage that jobs cannot reach.
    """
    # No snapshot is published there, so nothing has to be exclusive.
    if catalog.workspace is not None:
        _refuse_other_storage(catalog.workspace)
        place = open_warehouse(catalog.workspace, options, is_exclusive=False, called="workspace")
    else:
        place = warehouse or open_warehouse(catalog.warehouse, options, is_exclusive=False)
    return WarehouseStorage(place.filesystem, place.root, place.spark_uri)


def _refuse_other_storage(workspace: str) -> None:
    scheme = scheme_of(workspace)
    if scheme not in WAREHOUSE_SCHEMES:
        raise NotSupportedError(
            f"The workspace {workspace} is on storage of the kind {scheme}, which jobs cannot "
            "reach.",
            "Use a local path, hdfs:// or s3://.",
        )
