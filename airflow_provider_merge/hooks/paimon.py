"""The connection type ``paimon``: an Apache Paimon catalog."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Final

from airflow.providers.common.compat.sdk import AirflowNotFoundException, BaseHook, Connection

from airflow_provider_merge.exceptions import invalid
from airflow_provider_merge.hooks.connections import missing, require_type
from airflow_provider_merge.hooks.storage_arguments import storage_arguments
from airflow_provider_merge.links import filled_page
from airflow_provider_merge.metadata.paimon import PaimonSnapshots, Snapshot
from airflow_provider_merge.metadata.partitions import PartitionFacts
from airflow_provider_merge.metadata.rest_catalog import RestCatalog
from airflow_provider_merge.metadata.schema import TableSchema
from airflow_provider_merge.metadata.storage import list_names, reaching, require_folder
from airflow_provider_merge.metadata.table import (
    PaimonTable,
    PartitionChange,
    Tag,
    snapshots_since,
)
from airflow_provider_merge.secret_names import holds_secret, may_be_secret_name
from airflow_provider_merge.table_names import parse_table_name
from spark_jobs.contract.locations import WAREHOUSE_SCHEMES, scheme_of
from spark_jobs.contract.paimon_options import (
    BEARER,
    FILESYSTEM,
    METASTORE,
    METASTORES,
    REST,
    REST_WAREHOUSE,
    TOKEN,
    TOKEN_PROVIDER,
    URI,
    WAREHOUSE,
)
from spark_jobs.contract.properties import result_of_snapshot
from spark_jobs.contract.request import CatalogSpec, TableName
from spark_jobs.contract.result import JobResult
from spark_jobs.contract.s3_options import (
    ACCESS_KEY,
    ENDPOINT,
    REGION,
    SECRET_KEY,
)
from spark_jobs.contract.s3_options import SCHEMES as S3_SCHEMES
from spark_jobs.errors import JobError, NotSupportedError, RequestError

_WORKSPACE: Final = "workspace"


class PaimonHook(BaseHook):
    """Reads a ``paimon`` connection.

    Fields: ``warehouse`` (absolute path or URI), ``workspace`` (where jobs leave results and
    temporary files; by default the warehouse), ``metastore`` (filesystem or rest), ``uri`` (of the
    rest metastore), ``endpoint`` and ``region`` (of the object store), ``options`` (further catalog
    options, a JSON object), ``ui_url`` (a page for people, with the placeholders ``{database}``,
    ``{table}`` and ``{snapshot_id}``), ``quarantine-url`` (another one, with ``{path}``); login and
    password are access key and secret key.
    """

    conn_name_attr = "catalog_conn_id"
    default_conn_name = "paimon_default"
    conn_type = "paimon"
    hook_name = "Apache Paimon"

    def __init__(
        self, catalog_conn_id: str = default_conn_name, connection: Connection | None = None
    ) -> None:
        super().__init__()
        self.catalog_conn_id = catalog_conn_id
        # An event loop fetches connections itself, without blocking.
        self._given = connection

    def catalog_spec(self) -> CatalogSpec:
        """Warehouse, workspace and catalog options, without any secret.

        Raises:
            RequestError: REQUEST_INVALID, naming the connection and the field.
        """
        options, workspace = self._options(), self._workspace()
        for name, value in {**options, _WORKSPACE: workspace or ""}.items():
            if holds_secret(value):
                raise self._invalid(
                    name, "holds a password", "Put it into the connection's password field."
                )
        warehouse = options.pop(WAREHOUSE, "").strip()
        if not warehouse:
            raise self._invalid("warehouse", "is empty", "Write /path or scheme://path.")
        self._require_storage(WAREHOUSE, warehouse, "where no way to publish a snapshot is built")
        if workspace is not None:
            self._require_storage(_WORKSPACE, workspace, "that jobs can not reach")
        # The job gets an option either way.
        public = {name: each for name, each in options.items() if not may_be_secret_name(name)}
        try:
            return CatalogSpec(self.conn_type, warehouse, public, workspace)
        except RequestError as error:
            field, _, problem = error.message.partition(": ")
            raise self._invalid(field, problem, error.remedy) from None

    def credentials(self) -> dict[str, str]:
        """The catalog options that are secret, by their Paimon names."""
        options = self._options()
        secrets = {name: value for name, value in options.items() if may_be_secret_name(name)}
        connection = self._connection()
        user, key = self._key_names(options)
        for name, value in ((user, connection.login), (key, connection.password)):
            if name and value:
                secrets[name] = value
        if key == TOKEN and TOKEN in secrets:
            secrets.setdefault(TOKEN_PROVIDER, options.get(TOKEN_PROVIDER, BEARER))
        return secrets

    def storage_options(self) -> dict[str, Any]:
        """Arguments of the fsspec file system of the warehouse; holds secrets."""
        options = {**self._options(), **self.credentials()}
        return storage_arguments(options.get(WAREHOUSE, ""), options)

    def workspace_options(self) -> dict[str, Any]:
        """Arguments of the fsspec file system of the workspace; holds secrets."""
        options = {**self._options(), **self.credentials()}
        return storage_arguments(self._workspace() or options.get(WAREHOUSE, ""), options)

    def table(self, name: str | TableName) -> PaimonTable:
        """The metadata of a table, ``database.table`` or ``database.table$branch_name``.

        Raises:
            CatalogError: TABLE_NOT_FOUND, WAREHOUSE_ACCESS_DENIED.
            InternalError: STORAGE_UNAVAILABLE.
            NotSupportedError: a rest catalog whose server hands out keys of the storage.
            RequestError: the name or the connection is wrong.
        """
        warehouse = self.catalog_spec().warehouse
        target = name if isinstance(name, TableName) else parse_table_name(name, "table")
        server = self._server()
        location = server.location(target) if server else None
        with reaching(warehouse):
            if location is not None:
                return PaimonTable.at(location, target, self.storage_options())
            return PaimonTable.find(warehouse, target, self.storage_options())

    def latest_snapshot(self, table: str) -> Snapshot | None:
        """The newest snapshot; None for a table without one. Raises as ``table`` does, too.

        Raises:
            CatalogError: METADATA_UNREADABLE.
        """
        with self._reading(table) as found:
            return found.latest()

    def snapshot(self, table: str, snapshot_id: int) -> Snapshot | None:
        """The snapshot of an id; None when it never was or has expired. Raises as ``table`` does.

        Raises:
            CatalogError: METADATA_UNREADABLE.
        """
        with self._reading(table) as found:
            return found.snapshots.snapshot(snapshot_id)

    def snapshots(self, table: str, since: int | datetime | None = None) -> list[Snapshot]:
        """The retained snapshots, oldest first: all, those after an id, or not before a time.

        Raises:
            CatalogError: METADATA_UNREADABLE. And as ``table`` does.
        """
        with self._reading(table) as found:
            return snapshots_since(found, since)

    def partitions(
        self, table: str, wanted: Mapping[str, Any] | None = None
    ) -> list[PartitionFacts]:
        """The partitions of the newest snapshot; ``wanted`` has values of some partition columns.

        Raises:
            CatalogError: METADATA_UNREADABLE. And as ``table`` does.
            RequestError: a column or a value of ``wanted`` is wrong.
        """
        with self._reading(table) as found:
            return found.partitions(wanted)

    def tags(self, table: str) -> list[Tag]:
        """All tags by name, each with its snapshot.

        Raises:
            CatalogError: METADATA_UNREADABLE. And as ``table`` does.
        """
        with self._reading(table) as found:
            tags = (found.tag(name) for name in found.tags())
            return [tag for tag in tags if tag is not None]

    def schema(self, table: str | TableName, schema_id: int | None = None) -> TableSchema:
        """The schema of an id, by default the newest one.

        Raises:
            CatalogError: METADATA_UNREADABLE. And as ``table`` does.
        """
        with self._reading(table) as found:
            return found.schema(schema_id)

    def columns(self, target: TableName) -> dict[str, str]:
        """The columns of the newest schema, name → type. Raises as ``schema`` does."""
        return {each.name: each.type for each in self.schema(target).columns}

    def partition_columns(self, target: TableName) -> tuple[str, ...]:
        """The partition columns of the newest schema. Raises as ``schema`` does."""
        return self.schema(target).partition_keys

    def row_count(self, table: str) -> int:
        """The rows that a reader of the newest snapshot finds.

        Raises:
            CatalogError: METADATA_UNREADABLE. And as ``table`` does.
            NotSupportedError: only reading can tell, as on a primary-key table that is not
                compacted.
        """
        with self._reading(table) as found:
            count = found.row_count()
        if count is None:
            raise NotSupportedError(
                f"How many rows {table} has can not be told from its metadata: it has versions of "
                "keys that are not compacted, or deletion vectors that do not tell their size.",
                "Count the rows with a query, or use partitions(), whose records tell stored rows.",
            )
        return count

    def diff(self, table: str, before: int, after: int) -> list[PartitionChange]:
        """What two retained snapshots differ in, by partition.

        Raises:
            CatalogError: METADATA_UNREADABLE. And as ``table`` does.
            RequestError: one of the snapshots never was or has expired.
        """
        with self._reading(table) as found:
            sides = [found.snapshots.snapshot(each) for each in (before, after)]
            for snapshot_id, snapshot in zip((before, after), sides, strict=True):
                if snapshot is None:
                    raise invalid("snapshot", f"{table} has no snapshot {snapshot_id} (any more)")
            return found.diff(*(each for each in sides if each is not None))

    def test_connection(self) -> tuple[bool, str]:
        """Whether the warehouse can be reached with this connection, and a text for people."""
        try:
            self.snapshot_page(TableName("database", "table"), 1)
            self.quarantine_page("/path")
            spec = self.catalog_spec()
            warehouse = spec.warehouse
            if spec.workspace:
                require_folder(spec.workspace, self.workspace_options(), _WORKSPACE)
            server = self._server()
            if server:
                server.options()
                return True, f"The catalog's server at {server.uri} knows {server.warehouse}."
            require_folder(warehouse, self.storage_options())
            with reaching(warehouse):
                names = list_names(warehouse, self.storage_options())
        except JobError as error:
            return False, str(error)
        databases = sum(name.endswith(".db") for name in names)
        return True, f"{warehouse} can be read; it has {databases} databases."

    @contextmanager
    def _reading(self, name: str | TableName) -> Iterator[PaimonTable]:
        table = self.table(name)
        with reaching(table.location):
            yield table

    def _snapshots_of(self, target: TableName) -> PaimonSnapshots | None:
        """The target's snapshots; None for a rest catalog, of whose jobs no guard is looked for."""
        options = self._options()
        if options[METASTORE] == REST:
            return None
        return PaimonSnapshots.find(options[WAREHOUSE], target, self.storage_options())

    def recorded_result(self, target: TableName, operation_id: str) -> JobResult | None:
        """What the target's snapshots tell of an operation whose job stored no result.

        Raises:
            CatalogError: METADATA_UNREADABLE.
            RequestError: no file system of the warehouse's scheme is installed beside Airflow.
        """
        snapshots = self._snapshots_of(target)
        found = snapshots.made_by(operation_id) if snapshots else None
        if found is None:
            return None
        return result_of_snapshot(str(target), found.snapshot_id, found.properties)

    def snapshot_page(self, target: TableName, snapshot_id: int) -> str:
        """The page where people see a snapshot: ``ui_url``, filled in; empty without it.

        Raises:
            RequestError: ``ui_url`` is no page, holds a secret or an unknown placeholder.
        """
        names = {"database": target.database, "table": target.table}
        return self._page("ui_url", **names, snapshot_id=snapshot_id)

    def quarantine_page(self, path: str) -> str:
        """The page of a file of quarantined records: ``quarantine-url``; empty without it.

        Raises:
            RequestError: ``quarantine-url`` is no page, holds a secret or an unknown placeholder.
        """
        return self._page("quarantine-url", path=path)

    def _page(self, field: str, **values: Any) -> str:
        template = self._connection().extra_dejson.get(field)
        if not template:
            return ""
        return filled_page(f"connection {self.catalog_conn_id!r}, {field}", str(template), **values)

    def release_guard(self, target: TableName, operation_id: str) -> None:
        """Let the base snapshot of an operation expire whose result is stored.

        Raises:
            OSError: the storage refused.
        """
        snapshots = self._snapshots_of(target)
        if snapshots:
            snapshots.release(operation_id)

    def _server(self) -> RestCatalog | None:
        """The server of a rest catalog; None: the catalog has none."""
        options = self._options()
        if options[METASTORE] != REST:
            return None
        warehouse = options.get(REST_WAREHOUSE) or options.get(WAREHOUSE, "")
        return RestCatalog(options[URI], warehouse, self.credentials().get(TOKEN, ""))

    def _connection(self) -> Connection:
        try:
            found = self._given or self.get_connection(self.catalog_conn_id)
        except AirflowNotFoundException:
            raise missing(self.catalog_conn_id, [self.conn_type]) from None
        require_type(self.catalog_conn_id, found, [self.conn_type])
        return found

    def _options(self) -> dict[str, str]:
        """All catalog options that the connection's extra tells, secret or not."""
        extra = dict(self._connection().extra_dejson)
        options = self._free_options(extra.pop("options", None))
        metastore = extra.get(METASTORE) or FILESYSTEM
        if metastore not in METASTORES:
            allowed = ", ".join(METASTORES)
            raise self._invalid("metastore", f"{metastore!r} is not one of: {allowed}")
        if metastore == REST and not extra.get(URI):
            raise self._invalid("uri", "is empty, but the rest metastore needs it")
        for name in (WAREHOUSE, URI):
            if extra.get(name):
                options[name] = str(extra[name])
        options[METASTORE] = str(metastore)
        for name, option in (("endpoint", ENDPOINT), ("region", REGION)):
            if extra.get(name):
                options[option] = str(extra[name])
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
        if options[METASTORE] == REST:
            return None, TOKEN
        places = (options.get(WAREHOUSE, ""), self._workspace() or "")
        if not any(scheme_of(each) in S3_SCHEMES for each in places):
            return None, None
        return ACCESS_KEY, SECRET_KEY

    def _workspace(self) -> str | None:
        """Where jobs leave results and temporary files; None: in the warehouse."""
        text = str(self._connection().extra_dejson.get(_WORKSPACE) or "").strip()
        return text or None

    def _require_storage(self, field: str, location: str, problem: str) -> None:
        scheme = scheme_of(location)
        if scheme not in WAREHOUSE_SCHEMES:
            remedy = "Use a path, file://, s3:// or hdfs://."
            raise self._invalid(field, f"{scheme}:// is storage {problem}", remedy)

    def _invalid(self, field: str, problem: str, remedy: str = "") -> RequestError:
        return invalid(f"connection {self.catalog_conn_id!r}, {field}", problem, remedy)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
