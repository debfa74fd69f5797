"""The connection type ``paimon``: an Apache Paimon catalog."""

from __future__ import annotations

import json
import re
from typing import Any

from airflow.providers.common.compat.sdk import BaseHook, Connection

from airflow_provider_merge.exceptions import invalid
from airflow_provider_merge.metadata.paimon import PaimonSnapshots
from spark_jobs.contract.properties import result_of_snapshot
from spark_jobs.contract.request import CatalogSpec, TableName
from spark_jobs.contract.result import JobResult
from spark_jobs.errors import RequestError

_METASTORES = ("filesystem", "jdbc", "rest")
# A name that looks like a secret is treated as one: the job gets the option either way.
_SECRET_NAME = re.compile(r"secret|password|passwd|credential|access-?key|api-?key|token$", re.I)
_SECRET_IN_URI = re.compile(r"://[^/@\s]*:[^/@\s]*@|[?&;](?:password|secret|token)=", re.I)
_STORAGE_OF_SCHEME = {"s3": "s3", "s3a": "s3", "s3n": "s3", "oss": "oss"}


class PaimonHook(BaseHook):
    """Reads a ``paimon`` connection.

    Fields: ``warehouse`` (absolute path or URI), ``metastore`` (filesystem, jdbc or rest), ``uri``
    (of the jdbc or rest metastore), ``endpoint`` and ``region`` (of the object store), ``options``
    (further catalog options, a JSON object); login and password are access key and secret key.
    """

    conn_name_attr = "catalog_conn_id"
    default_conn_name = "paimon_default"
    conn_type = "paimon"
    hook_name = "Apache Paimon"

    def __init__(self, catalog_conn_id: str = default_conn_name) -> None:
        super().__init__()
        self.catalog_conn_id = catalog_conn_id

    def catalog_spec(self) -> CatalogSpec:
        """Warehouse and catalog options, without any secret.

        Raises:
            RequestError: REQUEST_INVALID, naming the connection and the field.
        """
        options = self._options()
        for name, value in options.items():
            if _SECRET_IN_URI.search(value):
                raise self._invalid(
                    name, "holds a password", "Put it into the connection's password field."
                )
        warehouse = options.pop("warehouse", "").strip()
        if not warehouse:
            raise self._invalid("warehouse", "is empty", "Write /path or scheme://path.")
        public = {name: each for name, each in options.items() if not _SECRET_NAME.search(name)}
        try:
            return CatalogSpec(self.conn_type, warehouse, public)
        except RequestError as error:
            problem = error.message.removeprefix("warehouse: ")
            raise self._invalid("warehouse", problem, error.remedy) from None

    def credentials(self) -> dict[str, str]:
        """The catalog options that are secret, by their Paimon names."""
        options = self._options()
        secrets = {name: value for name, value in options.items() if _SECRET_NAME.search(name)}
        connection = self._connection()
        user, key = self._key_names(options)
        for name, value in ((user, connection.login), (key, connection.password)):
            if name and value:
                secrets[name] = value
        if key == "token" and "token" in secrets:
            secrets.setdefault("token.provider", options.get("token.provider", "bear"))
        return secrets

    def storage_options(self) -> dict[str, Any]:
        """Arguments of the fsspec file system of the warehouse; holds secrets."""
        options = {**self._options(), **self.credentials()}
        if self._storage(options) != "s3":
            return {}
        client = _given(
            endpoint_url=options.get("fs.s3.endpoint"), region_name=options.get("fs.s3.region")
        )
        keys = _given(
            key=options.get("fs.s3.accessKeyId"),
            secret=options.get("fs.s3.accessKeySecret"),
            token=options.get("fs.s3.securityToken"),
        )
        return {**keys, "client_kwargs": client}

    def table_location(self, target: TableName) -> str | None:
        """Path or URI of a table; None where only the catalog's server knows it (rest)."""
        options = self._options()
        if options["metastore"] == "rest":
            return None
        return f"{options['warehouse'].rstrip('/')}/{target.database}.db/{target.table}"

    def recorded_result(self, target: TableName, operation_id: str) -> JobResult | None:
        """What the target's snapshots tell of an operation whose job stored no result.

        Raises:
            CatalogError: METADATA_UNREADABLE.
            RequestError: no file system of the warehouse's scheme is installed beside Airflow.
        """
        snapshots = self._snapshots(target)
        found = snapshots.made_by(operation_id) if snapshots else None
        if found is None:
            return None
        return result_of_snapshot(str(target), found.snapshot_id, found.properties)

    def release_guard(self, target: TableName, operation_id: str) -> None:
        """Let the base snapshot of an operation expire whose result is stored.

        Raises:
            OSError: the storage refused.
        """
        snapshots = self._snapshots(target)
        if snapshots:
            snapshots.release(operation_id)

    def _snapshots(self, target: TableName) -> PaimonSnapshots | None:
        location = self.table_location(target)
        return PaimonSnapshots.find(location, self.storage_options()) if location else None

    def _connection(self) -> Connection:
        return self.get_connection(self.catalog_conn_id)

    def _options(self) -> dict[str, str]:
        """All catalog options that the connection's extra tells, secret or not."""
        extra = dict(self._connection().extra_dejson)
        options = self._free_options(extra.pop("options", None))
        metastore = extra.get("metastore") or "filesystem"
        if metastore not in _METASTORES:
            allowed = ", ".join(_METASTORES)
            raise self._invalid("metastore", f"{metastore!r} is not one of: {allowed}")
        if metastore != "filesystem" and not extra.get("uri"):
            raise self._invalid("uri", f"is empty, but the {metastore} metastore needs it")
        for name in ("warehouse", "uri"):
            if extra.get(name):
                options[name] = str(extra[name])
        options["metastore"] = str(metastore)
        storage = self._storage(options)
        for name in ("endpoint", "region"):
            if extra.get(name):
                options[f"fs.{storage or 's3'}.{name}"] = str(extra[name])
        return options

    def _free_options(self, value: Any) -> dict[str, str]:
        remedy = 'Write a JSON object such as {"fs.s3.securityToken": "…"}.'
        if isinstance(value, str):
            try:
                value = json.loads(value) if value.strip() else None
            except ValueError:
                raise self._invalid("options", "is not JSON", remedy) from None
        if not isinstance(value, dict | None):
            raise self._invalid("options", "is not a JSON object", remedy)
        return {name: _text(each) for name, each in (value or {}).items()}

    def _storage(self, options: dict[str, str]) -> str | None:
        scheme, separator, _ = options.get("warehouse", "").partition("://")
        return _STORAGE_OF_SCHEME.get(scheme.lower()) if separator else None

    def _key_names(self, options: dict[str, str]) -> tuple[str | None, str | None]:
        """The options that login and password stand for: of the metastore, else of the storage."""
        if options["metastore"] == "jdbc":
            return "jdbc.user", "jdbc.password"
        if options["metastore"] == "rest":
            return None, "token"
        storage = self._storage(options)
        if storage is None:
            return None, None
        return f"fs.{storage}.accessKeyId", f"fs.{storage}.accessKeySecret"

    def _invalid(self, field: str, problem: str, remedy: str = "") -> RequestError:
        return invalid(f"connection {self.catalog_conn_id!r}, {field}", problem, remedy)


def _given(**values: str | None) -> dict[str, str]:
    return {name: value for name, value in values.items() if value}


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
