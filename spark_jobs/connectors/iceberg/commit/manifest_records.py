"""Records of manifests and manifest lists, as they are written again or for the first time.

Driver only.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from spark_jobs.connectors.iceberg.format.schema import IcebergType
from spark_jobs.connectors.iceberg.format.values import bound_bytes, partition_value
from spark_jobs.connectors.iceberg.table.manifests import (
    DATA,
    EXISTING,
    ListedManifest,
    ManifestEntry,
    data_file_fields,
)
from spark_jobs.connectors.iceberg.table.partition_ranges import PartitionPart
from spark_jobs.formats.iceberg.transforms import keeps_type

# Of version 1, which must have it.
_BLOCK_SIZE: Final = 67_108_864
_LISTED_COUNTS: Final = ("added", "existing", "deleted")


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


_ZERO: Final = {"content": DATA, "sequence_number": 0, "min_sequence_number": 0}
