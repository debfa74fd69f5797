"""Tables as Airflow assets."""

from __future__ import annotations

from urllib.parse import quote

from airflow.sdk import Asset

from spark_jobs.contract.request import TableName

SCHEME = "paimon"


def table_asset(catalog_conn_id: str, table: str) -> Asset:
    """The asset of a table: ``paimon://<connection id>/<database>/<table>``.

    The connection id stands for the catalog: the DAG file knows it without a look-up, and it holds
    no path and no secret. Producers and consumers must name the connection alike.
    """
    name = TableName.parse(table)
    path = "/".join(quote(part, safe="") for part in (name.database, name.table))
    return Asset(uri=f"{SCHEME}://{quote(catalog_conn_id, safe='')}/{path}")
