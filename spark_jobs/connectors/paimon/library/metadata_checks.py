"""Checks on a table's metadata before anything acts on it. Driver only.

Anybody with write access to the table can put snapshots and manifests there. These checks enforce
what the rest of the connector relies on: numbers are numbers, a name is the name of a single file,
and a path is where the table's files can be.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from spark_jobs.connectors.paimon.format.manifest_entries import require_file_name
from spark_jobs.connectors.paimon.library.rest_catalog import server_error
from spark_jobs.errors import JobError
from spark_jobs.storage.file_errors import causes, file_error

_MAXIMUM_LONG: Final = 2**63 - 1
_NAMES: Final = ("base_manifest_list", "delta_manifest_list")
_OPTIONAL_NAMES: Final = ("changelog_manifest_list", "index_manifest", "statistics")
_NUMBERS: Final = ("id", "schema_id", "total_record_count")
_TYPES: Final = {"delta_record_count": int, "commit_identifier": int, "commit_user": str}


def _metadata_error(place: str, error: Exception) -> JobError:
    """The job's error for a failure to read the metadata of ``place``, a table or its directory.

    METADATA_UNREADABLE, or STORAGE_UNAVAILABLE if the storage or catalog failed temporarily.
    Refusals of a catalog's server have their own codes.
    """
    for each in causes(error):
        refused = server_error(each)
        if refused is not None:
            return refused
    return file_error(place, error)


@contextmanager
def reading_metadata(place: str) -> Iterator[None]:
    """Turn every failure to read metadata within this context into a ``JobError``.

    ``place`` is the table or its directory. For damaged files, the library, its Avro reader and its
    codecs raise exceptions of every kind.

    Raises:
        CatalogError: METADATA_UNREADABLE, or WAREHOUSE_ACCESS_DENIED or WAREHOUSE_NOT_FOUND from a
            catalog's server.
        InternalError: STORAGE_UNAVAILABLE: the storage or the catalog's server failed temporarily.
    """
    try:
        yield
    except JobError:
        raise
    except Exception as error:
        raise _metadata_error(place, error) from error


def place_of_metadata(table: Any) -> str:
    """A table's name and directory, for error messages."""
    return f"{table.identifier.get_full_name()} in {table.table_path}"


def require_sound_snapshot(snapshot: Any, expected_id: int | None = None) -> None:
    """Check the fields of a snapshot that the connector uses.

    Raises:
        ValueError: a field has an invalid value, or the id is not ``expected_id``.
    """
    for field in _NUMBERS:
        _require_number(f"snapshot: {field}", getattr(snapshot, field))
    if expected_id not in (None, snapshot.id):
        raise ValueError(f"the file of snapshot {expected_id} says that it is {snapshot.id}")
    for field, kind in _TYPES.items():
        if type(getattr(snapshot, field)) is not kind:
            raise ValueError(f"snapshot {snapshot.id}: its {field} is of another type")
    for field in _NAMES:
        require_file_name(f"snapshot {snapshot.id}: {field}", getattr(snapshot, field))
    for field in _OPTIONAL_NAMES:
        if getattr(snapshot, field) is not None:
            require_file_name(f"snapshot {snapshot.id}: {field}", getattr(snapshot, field))
    properties = {} if snapshot.properties is None else snapshot.properties
    if not isinstance(properties, Mapping) or not all(
        isinstance(text, str) for item in properties.items() for text in item
    ):
        raise ValueError(f"snapshot {snapshot.id}: its properties are not text")


def require_sound_schema(schema: Any) -> None:
    """Check a table's schema, as pypaimon reads it.

    Raises:
        ValueError: a field has an invalid value.
    """
    _require_number("schema: id", schema.id)
    names = [field.name for field in schema.fields]
    if not names or not all(type(name) is str and name for name in names):
        raise ValueError("a column of the schema has no name")
    for field in schema.fields:
        # Raises for half a surrogate pair, which JSON can express, but which no text has.
        json.dumps([field.name, field.type.to_dict()], ensure_ascii=False).encode()
    keys = (schema.partition_keys, schema.primary_keys)
    if not all(isinstance(each, list) and set(each) <= set(names) for each in keys):
        raise ValueError("keys of the schema are not columns of it")
    if not isinstance(schema.options, Mapping) or not all(
        isinstance(text, str) for item in schema.options.items() for text in item
    ):
        raise ValueError("the schema's options are not text")
    int(schema.options.get("bucket", "-1"))


def require_sound_entry(entry: Any) -> None:
    """Check a manifest entry of a data file.

    Raises:
        ValueError: a field has an invalid value.
    """
    file = entry.file
    require_file_name("data file", file.file_name)
    for field in ("row_count", "file_size", "schema_id"):
        _require_number(f"{file.file_name}: {field}", getattr(file, field))
    if type(entry.bucket) is not int:
        raise ValueError(f"{file.file_name}: bucket {entry.bucket!r} is not a number")
    if file.external_path is not None and type(file.external_path) is not str:
        raise ValueError(f"{file.file_name}: its external path is not text")


def require_sound_index(entry: Any) -> None:
    """Check an index manifest entry.

    Raises:
        ValueError: a field has an invalid value.
    """
    file = entry.index_file
    require_file_name("index file", file.file_name)
    if type(entry.bucket) is not int or type(file.index_type) is not str:
        raise ValueError(f"{file.file_name}: its bucket or type is not valid")
    if file.external_path is not None and type(file.external_path) is not str:
        raise ValueError(f"{file.file_name}: its external path is not text")
    for name, vector in (file.dv_ranges or {}).items():
        require_file_name("data file of a deletion vector", name)
        _require_number(f"{name}: offset of its deletion vector", vector.offset)
        _require_number(f"{name}: length of its deletion vector", vector.length)
        if vector.cardinality is not None:
            _require_number(f"{name}: rows of its deletion vector", vector.cardinality)


def require_within(path: str, roots: Collection[str]) -> None:
    """Check that ``path`` is below one of ``roots`` and does not leave it through ``..``.

    Raises:
        ValueError: it does not.
    """
    if ".." in path.split("/") or not any(path.startswith(f"{root}/") for root in roots):
        raise ValueError(f"{path} lies neither in the table's directory nor in an external path")


def _require_number(what: str, value: Any) -> None:
    if type(value) is not int or not 0 <= value <= _MAXIMUM_LONG:
        raise ValueError(f"{what}: {str(value)[:100]!r} is not a number that it can have")
