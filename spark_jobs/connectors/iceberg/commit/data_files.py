"""Records of new data files, as manifests have them. Driver only."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Final

from spark_jobs.connectors.iceberg.format.deletes import PATH_ID
from spark_jobs.connectors.iceberg.format.schema import IcebergField, all_fields, opaque_type
from spark_jobs.connectors.iceberg.format.transforms import unscaled
from spark_jobs.connectors.iceberg.format.values import bound_bytes, signed
from spark_jobs.connectors.iceberg.table.manifests import (
    DATA,
    POSITION_DELETES,
    PUFFIN,
    ManifestEntry,
    content_size,
)
from spark_jobs.connectors.iceberg.table.partition_ranges import text_after
from spark_jobs.connectors.iceberg.table.pinned_table import PinnedTable
from spark_jobs.datafiles.statistics import ColumnStatistics

_METRICS: Final = "write.metadata.metrics."
_TRUNCATE: Final = re.compile(r"truncate\(([1-9]\d*)\)")
_DEFAULT_MODE: Final = "truncate(16)"
_FLOATING: Final = ("float", "double")


Values = Mapping[int, Any]


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
