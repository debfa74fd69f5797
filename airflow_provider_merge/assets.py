"""Tables as Airflow assets: ``lakehouse://<connection id>/<database>/<table>``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, quote, unquote, urlsplit

from airflow.sdk import Asset
from airflow.sdk.definitions.asset import AssetNameRef, AssetUriRef

from airflow_provider_merge.table_names import parse_table_name
from spark_jobs.contract.request import TableName
from spark_jobs.errors import NotSupportedError, RequestError

if TYPE_CHECKING:
    from airflow.providers.common.compat.openlineage.facet import Dataset as OpenLineageDataset

SCHEME = "lakehouse"
# A URI by the first format's own scheme names the same table.
SCHEMES = (SCHEME, "paimon")


def table_asset(catalog_conn_id: str, table: str) -> Asset:
    """The asset of a table: ``lakehouse://<connection id>/<database>/<table>``.

    The connection id stands for the catalog, whatever its format: the DAG file knows it without a
    request, and it contains no path and no secret. Producers and consumers must use the same
    connection id.
    """
    name = parse_table_name(table, "table")
    path = "/".join(quote(part, safe="") for part in (name.database, name.table))
    return Asset(uri=f"{SCHEME}://{quote(catalog_conn_id, safe='')}/{path}")


def is_table(asset: Any) -> bool:
    """Whether a declared inlet or outlet is a table's asset."""
    return _uri(asset).partition("://")[0] in SCHEMES


def same_asset(declared: Iterable[Any], asset: Asset) -> Any:
    """The declared asset of the same table, or reference to it; None where there is none.

    It may have a name or a scheme of its own.
    """
    wanted = _neutral(asset.uri)
    return next((each for each in declared if _neutral(_uri(each)) == wanted), None)


def with_assets(declared: Sequence[Any], found: Sequence[Any]) -> list[Any]:
    """The declared assets, and those found that are not among them."""
    return [*declared, *(each for each in found if same_asset(declared, each) is None)]


def create_asset(*, catalog_conn_id: str, table: str, extra: dict[str, Any] | None = None) -> Asset:
    """Create an asset for Airflow's hook lineage (``asset-uris``, factory)."""
    asset = table_asset(catalog_conn_id, table)
    return Asset(uri=asset.uri, extra=extra)


def sanitize_uri(uri: SplitResult) -> SplitResult:
    """Check the URI of a table (``asset-uris``, handler), and return it unchanged.

    Raises:
        ValueError: it is not ``<scheme>://<connection id>/<database>/<table>``.
    """
    wanted = f"URI format {uri.scheme}:// must be {uri.scheme}://<connection id>/<database>/<table>"
    parts = uri.path.split("/")
    if not uri.netloc or len(parts) != 3 or parts[0] or uri.query:
        raise ValueError(wanted)
    try:
        TableName(unquote(parts[1]), unquote(parts[2]))
    except RequestError as error:
        raise ValueError(f"{wanted}: {error.message}") from None
    return uri


def convert_asset_to_openlineage(asset: Asset, lineage_context: Any) -> OpenLineageDataset:
    """The dataset of OpenLineage (``asset-uris``): the connection is its namespace."""
    from airflow.providers.common.compat.openlineage.facet import Dataset

    namespace, name = dataset_name(asset.uri)
    return Dataset(namespace=namespace, name=name)


def dataset_name(uri: str) -> tuple[str, str]:
    """Namespace and name that lineage gives the table behind an asset's URI."""
    parts = urlsplit(uri)
    name = ".".join(unquote(part) for part in parts.path.strip("/").split("/"))
    return f"{SCHEME}://{parts.netloc}", name


def _uri(declared: Any) -> str:
    """The URI of an asset or of a reference; an asset without a name of its own has it as name."""
    if isinstance(declared, AssetNameRef):
        return declared.name
    return declared.uri if isinstance(declared, Asset | AssetUriRef) else ""


def _neutral(uri: str) -> str:
    scheme, separator, rest = uri.partition("://")
    return f"{SCHEME}{separator}{rest}" if scheme in SCHEMES else uri


def require_partition_keys() -> None:
    """Check that events of assets can carry partition keys.

    Raises:
        NotSupportedError: this is Airflow before 3.3.
    """
    from airflow.providers.common.compat.version_compat import AIRFLOW_V_3_3_PLUS

    if not AIRFLOW_V_3_3_PLUS:
        raise NotSupportedError(
            "emit_partition_keys needs Airflow 3.3.",
            "Leave it out: the event's extra names the partitions.",
        )
