"""How the columns of a table are found in a parquet file: by field id. Runs on executors.

Follows the Iceberg specification, "Column Projection": by the ids in the file; by the table's name
mapping, if the file has none; a column that the file does not have has the value of its partition
field, else its initial default, else NULL.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from spark_jobs.connectors.iceberg.format.schema import (
    FIELD_ID,
    IcebergField,
    IcebergType,
    arrow_field,
    arrow_type,
)
from spark_jobs.connectors.iceberg.format.values import default_value
from spark_jobs.datafiles.field_mapping import FieldMapping
from spark_jobs.datafiles.recorded_columns import (
    OtherColumnsError,
    holds_bytes_of,
    is_list,
    is_narrower,
    plain_type,
)
from spark_jobs.errors import NotSupportedError

NameMapping = Sequence[Mapping[str, Any]]
Constants = Mapping[int, pa.Scalar]
# Types whose values are read as those of the other one.
_PROMOTED: Final = {
    "long": (pa.int8(), pa.int16(), pa.int32(), pa.uint8(), pa.uint16(), pa.uint32()),
    "double": (pa.float32(),),
}


def file_mappings(
    fields: Iterable[IcebergField],
    found: pa.Schema,
    names: NameMapping | None,
    constants: Constants,
) -> tuple[FieldMapping, ...]:
    """The mapping of each of ``fields`` to the columns ``found`` in a file.

    ``constants`` are the values of partition fields, by the id of their column.

    Raises:
        OtherColumnsError: the file does not hold what the table says.
        NotSupportedError: neither the file nor the table says which column is which.
    """
    ids: _Ids = _ByMetadata() if _has_ids(found) else _ByName(_required(names))
    return tuple(_mapping(each, found, ids, constants) for each in fields)


def _required(names: NameMapping | None) -> NameMapping:
    if names is None:
        raise NotSupportedError(
            "A data file has no field ids, and the table no property schema.name-mapping.default "
            "that says which of its columns is which.",
            "Set the property with the engine that added the file.",
        )
    return names


def _has_ids(fields: Iterable[pa.Field]) -> bool:
    return any(
        FIELD_ID in (each.metadata or {}) or _has_ids(_children(each.type)) for each in fields
    )


def _children(kind: pa.DataType) -> list[pa.Field]:
    if pa.types.is_struct(kind):
        return [kind.field(i) for i in range(kind.num_fields)]
    if pa.types.is_map(kind):
        return [kind.key_field, kind.item_field]
    if is_list(kind):
        return [kind.value_field]
    return []


class _ByMetadata:
    """The ids that the file has."""

    def of(self, field: pa.Field, name: str) -> int | None:
        """The id of a field of the file, which Iceberg calls ``name``."""
        del name
        text = (field.metadata or {}).get(FIELD_ID)
        return None if text is None else int(text)

    def within(self, name: str) -> _ByMetadata:
        """The ids of the fields nested in the one that Iceberg calls ``name``."""
        del name
        return self


class _ByName:
    """The ids that a name mapping has."""

    def __init__(self, mapped: NameMapping) -> None:
        self._mapped = {name: each for each in mapped for name in each.get("names", ())}

    def of(self, field: pa.Field, name: str) -> int | None:
        """As ``_ByMetadata.of``."""
        del field
        found = self._mapped.get(name, {}).get("field-id")
        return None if found is None else int(found)

    def within(self, name: str) -> _ByName:
        """As ``_ByMetadata.within``."""
        return _ByName(self._mapped.get(name, {}).get("fields") or ())


_Ids = _ByMetadata | _ByName


def _mapping(
    field: IcebergField, found: Iterable[pa.Field], ids: _Ids, constants: Constants
) -> FieldMapping:
    for stored_field in found:
        if ids.of(stored_field, stored_field.name) == field.id:
            return _sourced(field, stored_field, ids.within(stored_field.name))
    constant = constants.get(field.id)
    if constant is None:
        constant = default_value(field.type, field.default)
    if constant is None and field.required:
        raise OtherColumnsError(f"has no column {field.name}, which must not be NULL")
    return FieldMapping(arrow_field(field), None, constant=constant)


def _sourced(field: IcebergField, found: pa.Field, ids: _Ids) -> FieldMapping:
    kind = field.type
    parts: tuple[FieldMapping, ...] = ()
    stored = plain_type(found.type)
    if kind.is_primitive:
        stored = _leaf(field.name, kind, stored)
    else:
        wanted, *_ = {"struct": (pa.types.is_struct,), "map": (pa.types.is_map,)}.get(
            kind.name, (is_list,)
        )
        if not wanted(stored):
            raise OtherColumnsError(f"holds {stored} in column {field.name}, not a {kind.name}")
        children = _children(stored)
        if kind.name == "struct":
            parts = tuple(_mapping(each, children, ids, {}) for each in kind.fields)
        else:
            parts = tuple(
                _sourced(each, child, ids.within(each.name))
                for each, child in zip(kind.fields, children, strict=True)
            )
        stored = _nested(stored, parts)
    new, number = arrow_field(field), (found.metadata or {}).get(FIELD_ID)
    # Without its id, a field cannot be copied to a new file.
    metadata = None if number is None else {**new.metadata, FIELD_ID: number}
    source = pa.field(found.name, stored, found.nullable, metadata)
    return FieldMapping(new, source, parts)


def _nested(stored: pa.DataType, parts: Sequence[FieldMapping]) -> pa.DataType:
    """The type of a nested column with only the fields that are read."""
    sources = [part.source for part in parts if part.source is not None]
    if pa.types.is_struct(stored):
        return pa.struct(sources) if sources else stored
    if pa.types.is_map(stored):
        return pa.map_(*sources)
    return pa.list_(sources[0])


def _leaf(name: str, kind: IcebergType, stored: pa.DataType) -> pa.DataType:
    """The type of a leaf as it is stored, if its values are also those of ``kind``."""
    wanted = arrow_type(kind)
    if pa.types.is_timestamp(wanted) and pa.types.is_timestamp(stored):
        # Those without a zone are UTC, as Java takes them. Files of before Iceberg have INT96.
        return wanted if stored.unit == "ns" else stored
    fits = (
        stored == wanted
        or stored in _PROMOTED.get(kind.name, ())
        or is_narrower(stored, wanted)
        or holds_bytes_of(stored, wanted)
    )
    if pa.types.is_decimal(wanted) and pa.types.is_decimal128(stored):
        fits = stored.scale == wanted.scale and stored.precision <= wanted.precision
    if not fits:
        raise OtherColumnsError(f"holds {stored} in column {name}, but its table has {kind.name}")
    return stored
