"""How OpenLineage names what a statement reads and writes.

After OpenLineage's "Naming Conventions": files by their store and path; tables by the connection
that stands for their catalog, as assets are named.
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from airflow_provider_merge.assets import dataset_name, table_asset
from airflow_provider_merge.table_names import quoted_name
from spark_jobs.contract.request import FileSource, Source, TableName, TableSource
from spark_jobs.contract.s3_options import SCHEMES as S3_SCHEMES

# Stores whose paths are keys, without a slash in front.
_KEYS = {**dict.fromkeys(S3_SCHEMES, "s3"), "gs": "gs", "oss": "oss"}


@dataclass(frozen=True, slots=True, order=True)
class DatasetName:
    """Namespace and name of a dataset."""

    namespace: str
    name: str


def of_table(catalog_conn_id: str, table: TableName) -> DatasetName:
    """The dataset of a table, the same as that of its asset."""
    return DatasetName(*dataset_name(table_asset(catalog_conn_id, quoted_name(table)).uri))


def of_source(catalog_conn_id: str, source: Source) -> DatasetName | None:
    """The dataset that a source reads; None for a query, whose sources are others."""
    if isinstance(source, TableSource):
        return of_table(source.connection or catalog_conn_id, source.table)
    return of_files(source.path) if isinstance(source, FileSource) else None


def of_files(path: str) -> DatasetName | None:
    """The dataset of files; None for what is no absolute path and no URI."""
    if path.startswith("/"):
        return DatasetName("file", path)
    scheme, separator, rest = path.partition("://")
    scheme = scheme.lower()
    if not separator:
        return DatasetName("file", path[5:]) if path.startswith("file:/") else None
    if scheme == "file":
        return DatasetName("file", f"/{rest.lstrip('/')}")
    parts = urlsplit(f"x://{rest}", allow_fragments=False)
    if scheme in _KEYS:
        return DatasetName(f"{_KEYS[scheme]}://{parts.netloc}", rest.partition("/")[2])
    return DatasetName(f"{scheme}://{parts.netloc}", f"/{rest.partition('/')[2]}")
