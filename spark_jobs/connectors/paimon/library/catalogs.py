"""Opening a catalog and its tables with pypaimon. Driver only."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from spark_jobs.connectors.paimon.library.table_schema import CheckedSchemas, table_path
from spark_jobs.contract.hdfs_options import HdfsOptions
from spark_jobs.contract.request import TableName
from spark_jobs.contract.s3_options import (
    ACCESS_KEY,
    ENDPOINT,
    REGION,
    SECRET_KEY,
    SESSION_TOKEN,
    S3Options,
)


def catalog_options(access: S3Options | HdfsOptions | None) -> Mapping[str, str]:
    """The options for a warehouse with this access, including secrets."""
    if isinstance(access, S3Options):
        return _s3_options(access)
    if isinstance(access, HdfsOptions):
        # Otherwise pypaimon would try Hadoop's native library if the HDFS client is missing.
        return {**dict(access.config), "hdfs.client.impl": "native"}
    return {}


def _s3_options(access: S3Options) -> dict[str, str]:
    named = {
        ENDPOINT: access.endpoint,
        REGION: access.region,
        ACCESS_KEY: access.access_key,
        SECRET_KEY: access.secret_key,
        SESSION_TOKEN: access.session_token,
    }
    given = {name: value for name, value in named.items() if value}
    return {**given, "s3.path-style-access": str(access.path_style).lower()}


class _CheckedFiles:
    """pypaimon's file IO, except that it rejects manifests that could exhaust the memory."""

    def __init__(self, file_io: Any) -> None:
        self._file_io = file_io

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file_io, name)

    def new_input_stream(self, path: str) -> Any:
        """Open a file as pypaimon does, which reads a manifest in one piece anyway."""
        stream = self._file_io.new_input_stream(path)
        if path.rpartition("/")[0].rpartition("/")[2] != "manifest":
            return stream
        with stream:
            content = stream.read()
        _require_plain_avro(content)
        return io.BytesIO(content)


def _require_plain_avro(content: bytes) -> None:
    """Check that every record and every array item of an Avro file takes at least one byte.

    Otherwise, an array of a few bytes could have more items than fit into memory.

    Raises:
        ValueError: the file's schema is not a record, or has types that take no bytes.
    """
    import fastavro

    schema = fastavro.reader(io.BytesIO(content)).writer_schema
    members = schema if isinstance(schema, list) else [schema]
    if not all(isinstance(each, dict) and each.get("type") == "record" for each in members):
        raise ValueError("an Avro file has no records")
    if any(map(_takes_no_room, _nodes(schema))):
        raise ValueError("an Avro file has items that take no room")


def _nodes(schema: Any) -> Iterator[dict[str, Any]]:
    """All types within a schema that are JSON objects."""
    if isinstance(schema, list):
        for member in schema:
            yield from _nodes(member)
    elif isinstance(schema, dict):
        yield schema
        for part in ("type", "items", "values"):
            yield from _nodes(schema.get(part))
        for field in schema.get("fields", ()):
            yield from _nodes(field.get("type"))


def _takes_no_room(node: dict[str, Any]) -> bool:
    match node.get("type"):
        case "fixed":
            return not node.get("size")
        case "record":
            return all(field.get("type") == "null" for field in node.get("fields", ()))
        case "array":
            return node.get("items") == "null"
    return False


def open_catalog(options: Mapping[str, str]) -> Any:
    """The catalog that the options describe; does not check that the warehouse exists."""
    from pypaimon import CatalogFactory

    return CatalogFactory.create(dict(options))


def find_table(catalog: Any, name: TableName) -> Any | None:
    """The table with its latest schema; None if it or its database does not exist.

    If no table has exactly this name, it is the only one with this name in another case. The branch
    in a name such as ``table$branch_b`` must match exactly.
    """
    from pypaimon.catalog.catalog_exception import DatabaseNotExistException, TableNotExistException

    try:
        return _opened(catalog, name)
    except DatabaseNotExistException:
        return None
    except TableNotExistException:
        spelled = _in_another_case(catalog, name)
    try:
        return _opened(catalog, spelled) if spelled else None
    except TableNotExistException:
        return None


def _opened(catalog: Any, name: TableName) -> Any:
    table = catalog.get_table(_identifier(name))
    table.file_io = _CheckedFiles(table.file_io)
    table.schema_manager = CheckedSchemas(table.schema_manager, table_path(table))
    return table


def _in_another_case(catalog: Any, name: TableName) -> TableName | None:
    from pypaimon.catalog.catalog_exception import DatabaseNotExistException

    try:
        tables = catalog.list_tables(name.database)
    except DatabaseNotExistException:
        return None
    table, *branch = name.table.split("$", 1)
    same = [each for each in tables if each.lower() == table.lower()]
    return replace(name, table="$".join([*same, *branch])) if len(same) == 1 else None


def _identifier(name: TableName) -> Any:
    from pypaimon.common.identifier import Identifier

    return Identifier.create(name.database, name.table)
