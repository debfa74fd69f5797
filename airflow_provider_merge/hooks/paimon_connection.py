"""A connection of the type ``paimon`` as the options of a catalog and of its storage."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from airflow.providers.common.compat.sdk import Connection

from airflow_provider_merge.exceptions import invalid
from airflow_provider_merge.secret_names import holds_secret, may_be_secret_name
from spark_jobs.contract.hdfs_options import SCHEME as HDFS_SCHEME
from spark_jobs.contract.hdfs_options import HdfsOptions
from spark_jobs.contract.request import CatalogSpec
from spark_jobs.contract.s3_options import SCHEMES as S3_SCHEMES
from spark_jobs.contract.s3_options import S3Options
from spark_jobs.errors import RequestError

CONNECTION_TYPE = "paimon"
_METASTORES = ("filesystem", "rest")
_SCHEMES = ("file", *S3_SCHEMES, HDFS_SCHEME)


@dataclass(frozen=True)
class PaimonConnection:
    """The fields of the connection ``conn_id``; every method raises REQUEST_INVALID, naming one."""

    conn_id: str
    connection: Connection = field(repr=False)

    def catalog_spec(self) -> CatalogSpec:
        """Warehouse and catalog options, without any secret.

        Raises:
            RequestError: REQUEST_INVALID, naming the connection and the field.
        """
        options = self.options()
        for name, value in options.items():
            if holds_secret(value):
                raise self._invalid(
                    name, "holds a password", "Put it into the connection's password field."
                )
        warehouse = options.pop("warehouse", "").strip()
        if not warehouse:
            raise self._invalid("warehouse", "is empty", "Write /path or scheme://path.")
        if (scheme := _scheme(warehouse)) not in _SCHEMES:
            problem = f"{scheme}:// is storage where no way to publish a snapshot is built"
            raise self._invalid("warehouse", problem, "Use a path, file://, s3:// or hdfs://.")
        # The job gets an option either way.
        public = {name: each for name, each in options.items() if not may_be_secret_name(name)}
        try:
            return CatalogSpec(CONNECTION_TYPE, warehouse, public)
        except RequestError as error:
            problem = error.message.removeprefix("warehouse: ")
            raise self._invalid("warehouse", problem, error.remedy) from None

    def credentials(self) -> dict[str, str]:
        """The catalog options that are secret, by their Paimon names."""
        options = self.options()
        secrets = {name: value for name, value in options.items() if may_be_secret_name(name)}
        user, key = self._key_names(options)
        for name, value in ((user, self.connection.login), (key, self.connection.password)):
            if name and value:
                secrets[name] = value
        if key == "token" and "token" in secrets:
            secrets.setdefault("token.provider", options.get("token.provider", "bear"))
        return secrets

    def storage_options(self) -> dict[str, Any]:
        """Arguments of the fsspec file system of the warehouse; holds secrets."""
        options = {**self.options(), **self.credentials()}
        warehouse = options.get("warehouse", "")
        if warehouse.startswith("hdfs://"):
            return _hdfs_arguments(HdfsOptions.of(warehouse, options))
        if _scheme(warehouse) not in S3_SCHEMES:
            return {}
        access = S3Options.of(options)
        keys = _given(key=access.access_key, secret=access.secret_key, token=access.session_token)
        return {
            **keys,
            "client_kwargs": _given(endpoint_url=access.endpoint, region_name=access.region),
            "config_kwargs": {"s3": {"addressing_style": access.addressing_style}},
            # Others write there too.
            "use_listings_cache": False,
        }

    def options(self) -> dict[str, str]:
        """All catalog options that the connection's extra tells, secret or not."""
        extra = dict(self.connection.extra_dejson)
        options = self._free_options(extra.pop("options", None))
        metastore = extra.get("metastore") or "filesystem"
        if metastore not in _METASTORES:
            allowed = ", ".join(_METASTORES)
            raise self._invalid("metastore", f"{metastore!r} is not one of: {allowed}")
        if metastore == "rest" and not extra.get("uri"):
            raise self._invalid("uri", "is empty, but the rest metastore needs it")
        for name in ("warehouse", "uri"):
            if extra.get(name):
                options[name] = str(extra[name])
        options["metastore"] = str(metastore)
        for name in ("endpoint", "region"):
            if extra.get(name):
                options[f"fs.s3.{name}"] = str(extra[name])
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

    def _key_names(self, options: dict[str, str]) -> tuple[str | None, str | None]:
        """The options that login and password stand for: of the metastore, else of the storage."""
        if options["metastore"] == "rest":
            return None, "token"
        if _scheme(options.get("warehouse", "")) not in S3_SCHEMES:
            return None, None
        return "fs.s3.accessKeyId", "fs.s3.accessKeySecret"

    def _invalid(self, field: str, problem: str, remedy: str = "") -> RequestError:
        return invalid(f"connection {self.conn_id!r}, {field}", problem, remedy)


def _scheme(location: str) -> str:
    scheme, separator, _ = location.partition("://")
    return scheme.lower() if separator else "file"


def _hdfs_arguments(access: HdfsOptions) -> dict[str, Any]:
    host, _, port = access.authority.partition(":")
    return {"host": host, "port": int(port) if port.isdecimal() else None, **dict(access.config)}


def _given(**values: str | None) -> dict[str, str]:
    return {name: value for name, value in values.items() if value}


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
