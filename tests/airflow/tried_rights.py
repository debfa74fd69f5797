"""What a user is told whose folders are closed: ``python -m tests.airflow.tried_rights FOLDER``.

Prints, by format and by the folder that may not be written, the code and message of the error that
a statement's operator has, before anything is started.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any, Final

from airflow_provider_merge.hooks.catalog import CatalogHook
from airflow_provider_merge.hooks.iceberg import IcebergHook
from airflow_provider_merge.hooks.paimon import PaimonHook
from airflow_provider_merge.operators._shared.rights import require_rights
from spark_jobs.contract.request import CatalogSpec
from spark_jobs.errors import JobError
from tests.airflow.support import example_request
from tests.support.paimon_metadata import TableFiles

# Below a warehouse; ``None`` closes nothing.
_CLOSED: Final = {
    "paimon": (None, "_operations", "shop.db/orders/snapshot", "shop.db/orders/manifest"),
    "iceberg": (None, "_operations", "shop/orders/metadata"),
}


def main(folder: Path) -> None:
    """Close each folder in turn."""
    hooks: dict[str, CatalogHook] = {
        "paimon": _paimon(folder / "paimon"),
        "iceberg": _iceberg(folder / "iceberg"),
    }
    told = {
        name: {closed or "": _told(hook, folder / name, closed) for closed in _CLOSED[name]}
        for name, hook in hooks.items()
    }
    sys.stdout.write(json.dumps(told))


def _paimon(warehouse: Path) -> PaimonHook:
    TableFiles(warehouse).create()
    _connect("paimon_default", conn_type="paimon", extra={"warehouse": str(warehouse)})
    return PaimonHook()


def _iceberg(warehouse: Path) -> IcebergHook:
    from pyiceberg.catalog.sql import SqlCatalog
    from pyiceberg.schema import Schema
    from pyiceberg.types import LongType, NestedField

    warehouse.mkdir()
    uri = f"sqlite:///{warehouse}/catalog.db"
    with SqlCatalog("iceberg_default", uri=uri, warehouse=str(warehouse)) as catalog:
        catalog.create_namespace("shop")
        columns = Schema(NestedField(1, "id", LongType(), required=False))
        catalog.create_table("shop.orders", columns, location=str(warehouse / "shop/orders"))
    extra = {"type": "sql", "warehouse": str(warehouse)}
    _connect("iceberg_default", conn_type="iceberg", host=uri, extra=extra)
    return IcebergHook()


def _connect(conn_id: str, **fields: Any) -> None:
    os.environ[f"AIRFLOW_CONN_{conn_id.upper()}"] = json.dumps(fields)


def _told(hook: CatalogHook, warehouse: Path, closed: str | None) -> list[str]:
    request = example_request(catalog=CatalogSpec("paimon", str(warehouse)))
    if closed is not None:
        (warehouse / closed).mkdir(parents=True, exist_ok=True)
        (warehouse / closed).chmod(0o555)
    try:
        require_rights([(request, hook)])
    except JobError as error:
        return [error.code.name, error.message]
    finally:
        if closed is not None:
            (warehouse / closed).chmod(0o755)
    return []


if __name__ == "__main__":
    main(Path(sys.argv[1]))
