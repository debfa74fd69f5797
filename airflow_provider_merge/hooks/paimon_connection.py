"""A connection of the type ``paimon`` as the options of a catalog and of its storage."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Final

from airflow.providers.common.compat.sdk import Connection

from airflow_provider_merge.exceptions import invalid
from airflow_provider_merge.hooks.masked_secrets import masked
from airflow_provider_merge.storage.remote import storage_arguments
from spark_jobs.contract.checks import did_you_mean
from spark_jobs.contract.locations import WAREHOUSE_SCHEMES, scheme_of
from spark_jobs.contract.request import CatalogSpec
from spark_jobs.contract.s3_options import ACCESS_KEY, ENDPOINT, REGION, SECRET_KEY
from spark_jobs.contract.s3_options import SCHEMES as S3_SCHEMES
from spark_jobs.contract.secret_names import holds_secret, may_be_secret_name
from spark_jobs.errors import RequestError
from spark_jobs.formats.paimon.options import (
    BEARER,
    FILESYSTEM,
    METASTORE,
    METASTORES,
    REST,
    TOKEN,
    TOKEN_PROVIDER,
    URI,
    WAREHOUSE,
)

CONNECTION_TYPE: Final = "paimon"
WORKSPACE: Final = "workspace"


@dataclass(frozen=True)
class PaimonConnection:
    """The fields of the connection ``conn_id``; every method raises REQUEST_INVALID, naming one."""

    conn_id: str
    connection: Connection = field(repr=False)

    def catalog_spec(self) -> CatalogSpec:
        """Warehouse, workspace and catalog options, without any secret.

        Raises:
            RequestError: REQUEST_INVALID, naming the connection and the field.
        """
        options, workspace = self.options(), self._workspace()
        for name, value in {**options, WORKSPACE: workspace or ""}.items():
            if holds_secret(value):
                raise self._invalid(
                    name, "holds a password", "Put it into the connection's password field."
                )
        warehouse = options.pop(WAREHOUSE, "").strip()
        if not warehouse:
            raise self._no_warehouse()
        self._require_storage(WAREHOUSE, warehouse, "jobs cannot publish snapshots there")
        if workspace is not None:
            self._require_storage(WORKSPACE, workspace, "jobs cannot reach it")
        # The job gets an option either way.
        public = {name: each for name, each in options.items() if not may_be_secret_name(name)}
        try:
            return CatalogSpec(CONNECTION_TYPE, warehouse, public, workspace)
        except RequestError as error:
            raise self._invalid(": ".join(error.places), error.problem, error.remedy) from None

    def credentials(self) -> dict[str, str]:
        """The catalog options that are secret, by their Paimon names; masked in logs."""
        options = self.options()
        secrets = {name: value for name, value in options.items() if may_be_secret_name(name)}
        user, key = self._key_names(options)
        for name, value in ((user, self.connection.login), (key, self.connection.password)):
            if name and value:
                secrets[name] = value
        if key == TOKEN and TOKEN in secrets:
            secrets.setdefault(TOKEN_PROVIDER, options.get(TOKEN_PROVIDER, BEARER))
        return masked(secrets)

    def storage_options(self) -> dict[str, Any]:
        """Arguments of the fsspec file system of the warehouse; holds secrets."""
        options = {**self.options(), **self.credentials()}
        return storage_arguments(options.get(WAREHOUSE, ""), options)

    def workspace_options(self) -> dict[str, Any]:
        """Arguments of the fsspec file system of the workspace; holds secrets."""
        options = {**self.options(), **self.credentials()}
        return storage_arguments(self._workspace() or options.get(WAREHOUSE, ""), options)

    def options(self) -> dict[str, str]:
        """All catalog options that the connection's extra tells, secret or not."""
        extra = dict(self.connection.extra_dejson)
        options = self._free_options(extra.pop("options", None))
        metastore = extra.get(METASTORE) or FILESYSTEM
        if metastore not in METASTORES:
            allowed = ", ".join(METASTORES)
            problem = f"{metastore!r} is not one of: {allowed}"
            raise self._invalid("metastore", problem, did_you_mean(metastore, METASTORES))
        if metastore == REST and not extra.get(URI):
            raise self._invalid("uri", "is empty, but the rest metastore needs it")
        for name in (WAREHOUSE, URI):
            if extra.get(name):
                options[name] = self._text(name, extra[name])
        options[METASTORE] = self._text(METASTORE, metastore)
        for name, option in (("endpoint", ENDPOINT), ("region", REGION)):
            if extra.get(name):
                options[option] = self._text(name, extra[name])
        return options

    def _free_options(self, value: Any) -> dict[str, str]:
        remedy = 'Write a JSON object such as {"fs.s3.securityToken": "..."}.'
        if isinstance(value, str):
            try:
                value = json.loads(value) if value.strip() else None
            except ValueError:
                raise self._invalid("options", "is not JSON", remedy) from None
        if not isinstance(value, dict | None):
            raise self._invalid("options", "is not a JSON object", remedy)
        return {name: self._text(f"options.{name}", each) for name, each in (value or {}).items()}

    def _text(self, field: str, value: Any) -> str:
        if isinstance(value, bool):
            return "true" if value else "false"
        if value is None or isinstance(value, dict | list):
            problem = "is null" if value is None else "is not text"
            raise self._invalid(
                field, problem, "Write text, a number, true or false; or remove it."
            )
        return str(value)

    def _key_names(self, options: dict[str, str]) -> tuple[str | None, str | None]:
        """The options that login and password stand for: of the metastore, else of the storage."""
        if options[METASTORE] == REST:
            return None, TOKEN
        places = (options.get(WAREHOUSE, ""), self._workspace() or "")
        if not any(scheme_of(each) in S3_SCHEMES for each in places):
            return None, None
        return ACCESS_KEY, SECRET_KEY

    def _workspace(self) -> str | None:
        """Where jobs leave results and temporary files; None: in the warehouse."""
        text = str(self.connection.extra_dejson.get(WORKSPACE) or "").strip()
        return text or None

    def _require_storage(self, field: str, location: str, problem: str) -> None:
        scheme = scheme_of(location)
        if scheme not in WAREHOUSE_SCHEMES:
            remedy = "Use a path, file://, s3:// or hdfs://."
            raise self._invalid(field, f"{scheme}:// is not supported: {problem}", remedy)

    def _no_warehouse(self) -> RequestError:
        place = 'the field Warehouse (extra: {"warehouse": "/path or scheme://path"})'
        if self.connection.host:
            # Not repeated: it may hold a password.
            problem = "is empty, but Host is set, which is not read"
            return self._invalid(WAREHOUSE, problem, f"Move what Host holds to {place}.")
        return self._invalid(WAREHOUSE, "is empty", f"Write it into {place}.")

    def _invalid(self, field: str, problem: str, remedy: str = "") -> RequestError:
        return invalid(f"connection {self.conn_id!r}, {field}", problem, remedy)
