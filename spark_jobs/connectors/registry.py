"""Connectors by name. Opening a catalog imports the connector's table library."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Final

from spark_jobs.contract.request import CatalogSpec
from spark_jobs.contract.tested_versions import TABLE_LIBRARIES, requirement_of
from spark_jobs.errors import CatalogError, ErrorCode, RequestError
from spark_jobs.spi.connector import Connector

# By name: the module with a function `open_connector`.
_CONNECTORS: Final[Mapping[str, str]] = {
    "iceberg": "spark_jobs.connectors.iceberg.connector",
    "paimon": "spark_jobs.connectors.paimon.connector",
}


def open_connector(catalog: CatalogSpec, credentials: Mapping[str, str]) -> Connector:
    """The connector that ``catalog`` names, opened on its warehouse.

    ``credentials`` are additional catalog options that are never logged.

    Raises:
        RequestError: REQUEST_INVALID: the connector does not exist.
        CatalogError: LIBRARY_MISSING, or whatever opening the catalog raises.
    """
    if catalog.connector not in _CONNECTORS:
        known = ", ".join(sorted(_CONNECTORS))
        raise RequestError(
            ErrorCode.REQUEST_INVALID,
            f"catalog.connector: {catalog.connector!r} is not known.",
            f"Use one of: {known}.",
        )
    module_name = _CONNECTORS[catalog.connector]
    requirement = requirement_of(TABLE_LIBRARIES[catalog.connector])
    try:
        module = importlib.import_module(module_name)
        connector: Connector = module.open_connector(catalog, credentials)
    except ModuleNotFoundError as error:
        raise CatalogError(
            ErrorCode.LIBRARY_MISSING,
            f"The {catalog.connector} connector needs the Python module {error.name!r}, which the "
            "driver's environment does not have.",
            f"Install {requirement} into the Spark environment: pip install '{requirement}'.",
        ) from error
    return connector
