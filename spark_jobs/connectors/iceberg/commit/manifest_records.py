"""Records of manifests and manifest lists, of new files and of those written again. Driver only."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Final

from spark_jobs.connectors.iceberg.format.deletes import PATH_ID
from spark_jobs.connectors.iceberg.format.schema import (
    IcebergField,
    IcebergType,
    all_fields,
    opaque_type,
)
from spark_jobs.connectors.iceberg.format.transforms import unscaled
from spark_jobs.connectors.iceberg.format.values import bound_bytes, partition_value, signed
from spark_jobs.connectors.iceberg.table.manifests import (
    DATA,
    EXISTING,
    POSITION_DELETES,
    PUFFIN,
    ListedManifest,
    ManifestEntry,
    content_size,
    data_file_fields,
)
from spark_jobs.connectors.iceberg.table.partition_ranges import PartitionPart, text_after
from spark_jobs.connectors.iceberg.table.pinned_table import PinnedTable
from spark_jobs.datafiles.statistics import ColumnStatistics
from spark_jobs.formats.iceberg.transforms import keeps_type

_METRICS: Final = "write.metadata.metrics."
_TRUNCATE: Final = re.compile(r"truncate\(([1-9]\d*)\)")
_DEFAULT_MODE: Final = "truncate(16)"
_FLOATING: Final = ("float", "double")


Values = Mapping[int, Any]
# Of version 1, which must have it.
_BLOCK_SIZE: Final = 67_108_864
_LISTED_COUNTS: Final = ("added", "existing", "deleted")
_ZERO: Final = {"content": DATA, "sequence_number": 0, "min_sequence_number": 0}


@dataclass(frozen=True, slots=True)
class NewDataFile:
    """A new file of the partition ``partition`` (Avro's values by field id, but decimals).

    ``sequence_number`` None: that of its snapshot; the same for ``file_number``, that of the
    snapshot that added the file.
    """

    spec_id: int
    partition: Values
    record: Mapping[str, Any]
    sequence_number: int | None = None
    file_number: int | None = None

    def of_number(self, sequence_number: int | None) -> NewDataFile:
        """The same with a sequence number."""
        return replace(self, sequence_number=sequence_number)

    @property
    def row_count(self) -> int:
        """The number of its rows."""
        return int(self.record["record_count"])

    @property
    def size(self) -> int:
        """In bytes; of a deletion vector, that of its part of the file."""
        return content_size(self.record)

    @property
    def is_vector(self) -> bool:
        """Whether it is a deletion vector."""
        return bool(self.record["file_format"] == PUFFIN)


def kept_order(table: PinnedTable, entry: ManifestEntry, assigned: Collection[str]) -> int:
    """The sort order of the file of ``entry`` if columns ``assigned`` get new values; 0: none."""
    same = {each.id for each in all_fields(f for f in table.fields if f.name not in assigned)}
    orders = {each.order_id: each for each in table.metadata.sort_orders}
    order = orders.get(entry.record.get("sort_order_id"))
    return order.order_id if order and same.issuperset(f.source_id for f in order.fields) else 0


def new_data_file(
    table: PinnedTable, document: Mapping[str, Any], spec_id: int, partition: Values, order_id: int
) -> NewDataFile:
    """The file that a sink has written, from its fragment's ``document``."""
    statistics = {
        name: ColumnStatistics.from_json(each) for name, each in document["statistics"].items()
    }
    measured = [each for each in table.fields if each.type.is_primitive and each.name in statistics]
    modes = {each.id: _mode(table, each) for each in measured}
    counted = [each for each in measured if modes[each.id] != "none"]
    bounds = {each.id: _bounds(each, statistics[each.name], modes[each.id]) for each in counted}
    record = {
        **_described(table, document, DATA),
        "value_counts": _pairs((each.id, document["rows"]) for each in counted),
        "null_value_counts": _pairs(
            (each.id, statistics[each.name].null_count) for each in counted
        ),
        "nan_value_counts": _pairs(
            (field.id, statistics[field.name].nan_count)
            for field in counted
            if field.type.name in _FLOATING
            # Of a file with nothing else, Iceberg's library takes ``x > 5`` for false; in Spark NaN
            # is above every number.
            and statistics[field.name].nan_count < max(document["rows"], 1)
        ),
        "lower_bounds": _pairs((key, low) for key, (low, _) in bounds.items() if low is not None),
        "upper_bounds": _pairs((key, top) for key, (_, top) in bounds.items() if top is not None),
        "sort_order_id": order_id,
    }
    return NewDataFile(spec_id, partition, record)


def new_delete_file(
    table: PinnedTable, document: Mapping[str, Any], data: ManifestEntry
) -> NewDataFile:
    """The file of position deletes, or the vector, for ``data`` that a sink has written."""
    if "offset" in document:
        record = {
            **_described(table, document, POSITION_DELETES),
            "file_format": PUFFIN,
            "referenced_data_file": data.path,
            "content_offset": document["offset"],
            "content_size_in_bytes": document["length"],
        }
        return NewDataFile(data.spec_id, data.partition, record)
    path = [{"key": PATH_ID, "value": data.path.encode()}]
    record = {
        **_described(table, document, POSITION_DELETES),
        "value_counts": [],
        "null_value_counts": [],
        "nan_value_counts": [],
        "lower_bounds": path,
        "upper_bounds": path,
    }
    return NewDataFile(data.spec_id, data.partition, record)


def _described(table: PinnedTable, document: Mapping[str, Any], content: int) -> dict[str, Any]:
    """What an entry says of any new file, from its fragment's ``document``."""
    return {
        "content": content,
        "file_path": table.storage.location(document["path"], table.metadata.location),
        "file_format": "PARQUET",
        "record_count": document["rows"],
        "file_size_in_bytes": document["size"],
        # pyiceberg expects them to be there.
        "column_sizes": [],
    }


def _pairs(values: Iterator[tuple[int, Any]]) -> list[dict[str, Any]]:
    return [{"key": key, "value": value} for key, value in values]


def _mode(table: PinnedTable, field: IcebergField) -> str:
    properties = table.metadata.properties
    default = properties.get(f"{_METRICS}default", _DEFAULT_MODE)
    mode: str = properties.get(f"{_METRICS}column.{field.name}", default).lower()
    return mode


def _bounds(
    field: IcebergField, found: ColumnStatistics, mode: str
) -> tuple[bytes | None, bytes | None]:
    low, high = found.minimum, found.maximum
    truncated = _TRUNCATE.fullmatch(mode)
    if mode == "counts" or low is None or high is None or opaque_type(field.type):
        return None, None
    if truncated and field.type.name == "string":
        width = int(truncated[1])
        low, high = low[:width], high if len(high) <= width else text_after(high[:width])
    elif truncated and field.type.name == "binary":
        width = int(truncated[1])
        low, high = low[:width], high if len(high) <= width else None
    return bound_bytes(field.type, low), None if high is None else bound_bytes(field.type, high)


def avro_value(kind: Any, value: Any) -> Any:
    """A partition value for a field of the Avro type ``kind``, which may be wider than it was."""
    fixed = next((each for each in kind if isinstance(each, Mapping) and "size" in each), None)
    if value is None or fixed is None:
        return value
    number = unscaled(value) if isinstance(value, Decimal) else signed(value)
    return number.to_bytes(fixed["size"], "big", signed=True)


def field_summary(part: PartitionPart, values: Sequence[Any]) -> dict[str, Any]:
    """What a manifest list tells of a field; of a column that is gone, no bounds."""
    kind: IcebergType | None = IcebergType("int")
    if keeps_type(part.transform):
        kind = part.source.type if part.source else None
    some = [each for each in values if each is not None]
    known = [each for each in some if not (isinstance(each, float) and math.isnan(each))]
    low = high = None
    if kind is not None and known:
        if kind.name.startswith("decimal"):
            # Those of files that there were before are as Avro has them.
            known = [partition_value(kind, v) if isinstance(v, bytes) else v for v in known]
        least, greatest = min(known), max(known)
        if isinstance(least, float):
            # Iceberg's order, in which -0.0 comes before 0.0, leaves neither out.
            least, greatest = least or -0.0, greatest or 0.0
        low, high = bound_bytes(kind, least), bound_bytes(kind, greatest)
    return {
        "contains_null": len(some) < len(values),
        "contains_nan": len(known) < len(some),
        "lower_bound": low,
        "upper_bound": high,
    }


def existing(
    entry: ManifestEntry, record: Mapping[str, Any], listed: ListedManifest
) -> dict[str, Any]:
    """An entry of a file that stays, in a manifest that is written again."""
    return {
        **record,
        "status": EXISTING,
        "snapshot_id": _made_by(entry, listed),
        "sequence_number": entry.sequence_number,
        "file_sequence_number": file_number(entry),
    }


def _made_by(entry: ManifestEntry, listed: ListedManifest) -> int | None:
    added = listed.record.get("added_snapshot_id")
    return added if entry.snapshot_id is None else entry.snapshot_id


def file_number(entry: ManifestEntry) -> int:
    """The sequence number of the snapshot that added a file."""
    if entry.file_sequence_number is None:
        return entry.sequence_number
    return entry.file_sequence_number


def with_partition(schema: Any, other: Any) -> Any:
    """The schema of a manifest with the partitions that ``other`` has."""
    own = next(each for each in data_file_fields(other) if each["name"] == "partition")
    fields = [own if each["name"] == "partition" else each for each in data_file_fields(schema)]
    entry = [
        {**field, "type": {**field["type"], "fields": fields}}
        if field["name"] == "data_file"
        else field
        for field in schema["fields"]
    ]
    return {**schema, "fields": entry}


def completed(schema: Any, record: Mapping[str, Any]) -> dict[str, Any]:
    """An entry with all fields of ``schema``, those that it lacks as NULL."""
    file = next(each["type"] for each in schema["fields"] if each["name"] == "data_file")
    entry = {each["name"]: record.get(each["name"]) for each in schema["fields"]}
    given = {"content": DATA, "block_size_in_bytes": _BLOCK_SIZE, **record["data_file"]}
    entry["data_file"] = {each["name"]: given.get(each["name"]) for each in file["fields"]}
    return entry


def list_record(listed: Mapping[str, Any]) -> dict[str, Any]:
    """An entry of a manifest list; tables of version 1 may call some counts otherwise."""
    entry = {
        "content": DATA,
        "sequence_number": 0,
        "min_sequence_number": 0,
        **{name: listed.get(name) for name in ("partitions", "key_metadata")},
        **listed,
    }
    for kind in _LISTED_COUNTS:
        count = listed.get(f"{kind}_files_count")
        if count is None:
            count = listed.get(f"{kind}_data_files_count") or 0
        entry[f"{kind}_files_count"] = count
        entry[f"{kind}_rows_count"] = listed.get(f"{kind}_rows_count") or 0
    return {name: value if value is not None else _ZERO.get(name) for name, value in entry.items()}
