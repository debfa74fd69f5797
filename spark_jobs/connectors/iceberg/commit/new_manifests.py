"""Writes the manifests and the manifest list of a snapshot. Driver only.

pyiceberg loses fields that it does not know; a manifest with a removed file is written again with
the fields that it has. Only the schemas come from pyiceberg.
"""

from __future__ import annotations

import json
import math
import uuid
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, Literal

from spark_jobs.avro import open_manifest
from spark_jobs.connectors.iceberg.commit.data_files import NewDataFile, avro_value
from spark_jobs.connectors.iceberg.commit.manifest_clusters import Cluster, ManifestRewrite
from spark_jobs.connectors.iceberg.format.schema import IcebergType
from spark_jobs.connectors.iceberg.format.values import bound_bytes, partition_value
from spark_jobs.connectors.iceberg.table.manifests import (
    ADDED,
    DATA,
    DELETED,
    EXISTING,
    ListedManifest,
    ManifestEntry,
    entries_with_records,
    listed_manifest,
    partition_fields,
)
from spark_jobs.connectors.iceberg.table.partition_ranges import PartitionPart
from spark_jobs.connectors.iceberg.table.pinned_table import PinnedTable
from spark_jobs.formats.avro.encoding import avro_file
from spark_jobs.formats.iceberg.transforms import keeps_type
from spark_jobs.packing import filled

# Iceberg's defaults.
_LEAST_COUNT: Final = 100
_TARGET_SIZE: Final = 8 * 1024 * 1024
# Of version 1, which must have it.
_BLOCK_SIZE: Final = 67_108_864
_LISTED_COUNTS: Final = ("added", "existing", "deleted")


class SnapshotFiles:
    """The metadata files of one attempt to make a snapshot of ``table``, which is as it is now."""

    def __init__(self, table: PinnedTable, snapshot_id: int) -> None:
        self._table = table
        self._snapshot_id = snapshot_id
        self._version: Literal[1, 2] = 1 if table.metadata.format_version == 1 else 2
        self._sequence_number = int(table.metadata.next_sequence_number())
        self._token = uuid.uuid4()
        folder = table.metadata.properties.get("write.metadata.path")
        self._folder = (folder or f"{table.metadata.location}/metadata").rstrip("/")
        self.written: list[str] = []

    def manifests(self, added: Sequence[NewDataFile], content: int) -> list[dict[str, Any]]:
        """Write the manifests of new files, one for each partition spec; their list entries.

        ``content`` is ``DATA`` or ``DELETES``.
        """
        by_spec: dict[int, list[NewDataFile]] = defaultdict(list)
        for file in added:
            by_spec[file.spec_id].append(file)
        found = sorted(by_spec.items())
        return [self._of_added(spec_id, files, content) for spec_id, files in found]

    def without(
        self, listed: ListedManifest, content: bytes, removed: Collection[str]
    ) -> dict[str, Any]:
        """Write a manifest again with files ``removed``; its list entry."""
        file = open_manifest(content)
        records = [
            self._deleted(entry, record)
            if entry.path in removed
            else _existing(entry, record, listed)
            for entry, record in entries_with_records(file, listed)
            if entry.status != DELETED
        ]
        schema, header = file.schema, _kept_header(file.metadata)
        if header.get("format-version", b"1") != str(self._version).encode():
            schema = self._schema(listed.spec_id)
            header = self._header(listed.spec_id, listed.content)
            records = [_completed(schema, record) for record in records]
        return self._stored(listed.spec_id, schema, header, records, listed.record)

    def merged(self, entries: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """``entries`` of a list, but many small manifests have become fewer, as in Iceberg's Java.

        By the properties ``commit.manifest-merge.enabled``, ``commit.manifest.min-count-to-merge``
        and ``commit.manifest.target-size-bytes``. Manifests with different schemas stay apart.
        """
        properties = self._table.metadata.properties
        if properties.get("commit.manifest-merge.enabled", "true").lower() != "true":
            return list(entries)
        least = int(properties.get("commit.manifest.min-count-to-merge", _LEAST_COUNT))
        target = int(properties.get("commit.manifest.target-size-bytes", _TARGET_SIZE))
        groups: dict[tuple[int, int], list[Mapping[str, Any]]] = defaultdict(list)
        for each in entries:
            groups[each["partition_spec_id"], each.get("content") or DATA].append(each)
        found: list[Mapping[str, Any]] = []
        for group in groups.values():
            bins = [[each] for each in group]
            if len(group) >= least:
                bins = filled(group, lambda each: each["manifest_length"], target)
            for members in bins:
                found += self._merged(members) if len(members) > 1 else members
        return found

    def clustered(self, rewrite: ManifestRewrite) -> list[Mapping[str, Any]]:
        """Write the new manifests of a rewrite; the entries of the list."""
        return [*rewrite.kept, *(self._of(each, rewrite.removed) for each in rewrite.clusters)]

    def _of(self, cluster: Cluster, removed: Collection[str]) -> dict[str, Any]:
        spec_id, content, shape, files = cluster
        schema = self._schema(spec_id) if shape is None else shape.schema
        header = self._header(spec_id, content) if shape is None else shape.header
        records = [
            self._deleted(entry, record)
            if entry.path in removed
            else _existing(entry, record, listed)
            for entry, record, listed in files
        ]
        records = [_completed(schema, each) for each in records]
        places = [each.entry.partition for each in files]
        listed = {"partitions": self._summary(spec_id, places), "content": content}
        return self._stored(spec_id, schema, header, records, listed)

    def _merged(self, members: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        schemas: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
        files = {}
        for each in members:
            path = each["manifest_path"]
            files[path] = open_manifest(self._table.storage.read(path))
            schemas[json.dumps(files[path].schema)].append(each)
        found: list[Mapping[str, Any]] = []
        for alike in schemas.values():
            if len(alike) == 1:
                found += alike
                continue
            first = files[alike[0]["manifest_path"]]
            records, places = [], []
            for each in alike:
                listed = listed_manifest(each)
                for entry, record in entries_with_records(files[listed.path], listed):
                    is_new = entry.snapshot_id == self._snapshot_id
                    if entry.status != DELETED or is_new:
                        keeps = is_new and listed.path in self.written
                        records.append(record if keeps else _existing(entry, record, listed))
                        places.append(entry.partition)
            spec_id = alike[0]["partition_spec_id"]
            kept = {**alike[0], "partitions": self._summary(spec_id, places)}
            header = _kept_header(first.metadata)
            found.append(self._stored(spec_id, first.schema, header, records, kept))
            for path in {each["manifest_path"] for each in alike} & set(self.written):
                self.written.remove(path)
                self._table.storage.remove(path)
        return found

    def _deleted(self, entry: ManifestEntry, record: Mapping[str, Any]) -> dict[str, Any]:
        numbers = {
            "sequence_number": entry.sequence_number,
            "file_sequence_number": _file_number(entry),
        }
        return {**record, **numbers, "status": DELETED, "snapshot_id": self._snapshot_id}

    def manifest_list(self, entries: Sequence[Mapping[str, Any]]) -> str:
        """Write the manifest list; its location."""
        from pyiceberg.manifest import MANIFEST_LIST_FILE_SCHEMAS
        from pyiceberg.utils.schema_conversion import AvroSchemaConversion

        raw = MANIFEST_LIST_FILE_SCHEMAS[self._version]
        schema = AvroSchemaConversion().iceberg_to_avro(raw, "manifest_file")
        parent = self._table.snapshot
        header = {
            "snapshot-id": str(self._snapshot_id),
            "parent-snapshot-id": "null" if parent is None else str(parent.snapshot_id),
            "sequence-number": str(self._sequence_number),
            "format-version": str(self._version),
        }
        records = [_list_record(each) for each in entries]
        content = avro_file(schema, {k: v.encode() for k, v in header.items()}, records)
        return self._write(f"snap-{self._snapshot_id}-1-{self._token}.avro", content)

    def discard(self) -> None:
        """Remove all files, of a snapshot that was certainly not published."""
        for location in self.written:
            self._table.storage.remove(location)

    def _of_added(self, spec_id: int, files: Sequence[NewDataFile], content: int) -> dict[str, Any]:
        schema = self._schema(spec_id)
        kinds = partition_fields(schema)
        records = []
        for file in files:
            partition = {
                each["name"]: avro_value(each["type"], file.partition.get(each["field-id"]))
                for each in kinds
            }
            entry = {
                "status": ADDED,
                "snapshot_id": self._snapshot_id,
                "sequence_number": file.sequence_number,
                "data_file": {**file.record, "partition": partition},
            }
            records.append(_completed(schema, entry))
        places = [file.partition for file in files]
        listed = {"partitions": self._summary(spec_id, places), "content": content}
        return self._stored(spec_id, schema, self._header(spec_id, content), records, listed)

    def _stored(
        self,
        spec_id: int,
        schema: Any,
        header: Mapping[str, bytes],
        records: Sequence[Mapping[str, Any]],
        listed: Mapping[str, Any],
    ) -> dict[str, Any]:
        content = avro_file(schema, header, records)
        location = self._write(f"{self._token}-m{len(self.written)}.avro", content)
        numbers = [
            self._sequence_number if number is None else number
            for each in records
            for number in [each.get("sequence_number")]
            if each["status"] != DELETED
        ]
        found = {
            "manifest_path": location,
            "manifest_length": len(content),
            "partition_spec_id": spec_id,
            "content": listed.get("content") or DATA,
            "sequence_number": self._sequence_number,
            "min_sequence_number": min(numbers, default=self._sequence_number),
            "added_snapshot_id": self._snapshot_id,
            "partitions": listed.get("partitions"),
        }
        for status, name in enumerate(("existing", "added", "deleted")):
            of_kind = [each for each in records if each["status"] == status]
            rows = sum(each["data_file"]["record_count"] for each in of_kind)
            found |= {f"{name}_files_count": len(of_kind), f"{name}_rows_count": rows}
        return found

    def _write(self, name: str, content: bytes) -> str:
        location = f"{self._folder}/{name}"
        self.written.append(location)
        self._table.storage.write(location, content)
        return location

    def _spec(self, spec_id: int) -> Any:
        return self._table.metadata.specs()[spec_id]

    def _schema(self, spec_id: int) -> Any:
        from pyiceberg.manifest import (
            data_file_with_partition,
            manifest_entry_schema_with_data_file,
        )
        from pyiceberg.utils.schema_conversion import AvroSchemaConversion

        kinds = self._spec(spec_id).partition_type(self._table.metadata.schema())
        file = data_file_with_partition(kinds, self._version)
        entry = manifest_entry_schema_with_data_file(self._version, file)
        return AvroSchemaConversion().iceberg_to_avro(entry, "manifest_entry")

    def _header(self, spec_id: int, content: int) -> dict[str, bytes]:
        fields = [json.loads(each.model_dump_json()) for each in self._spec(spec_id).fields]
        return {
            "schema": self._table.metadata.schema().model_dump_json().encode(),
            "partition-spec": json.dumps(fields).encode(),
            "partition-spec-id": str(spec_id).encode(),
            "format-version": str(self._version).encode(),
            "content": b"data" if content == DATA else b"deletes",
        }

    def _summary(
        self, spec_id: int, partitions: Sequence[Mapping[int, Any]]
    ) -> list[dict[str, Any]]:
        parts = self._table.specs[spec_id]
        return [_field_summary(part, [each.get(part.id) for each in partitions]) for part in parts]


def _field_summary(part: PartitionPart, values: Sequence[Any]) -> dict[str, Any]:
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


def _existing(
    entry: ManifestEntry, record: Mapping[str, Any], listed: ListedManifest
) -> dict[str, Any]:
    """An entry of a file that stays, in a manifest that is written again."""
    return {
        **record,
        "status": EXISTING,
        "snapshot_id": _made_by(entry, listed),
        "sequence_number": entry.sequence_number,
        "file_sequence_number": _file_number(entry),
    }


def _made_by(entry: ManifestEntry, listed: ListedManifest) -> int | None:
    added = listed.record.get("added_snapshot_id")
    return added if entry.snapshot_id is None else entry.snapshot_id


def _file_number(entry: ManifestEntry) -> int:
    if entry.file_sequence_number is None:
        return entry.sequence_number
    return entry.file_sequence_number


def _kept_header(metadata: Mapping[str, bytes]) -> dict[str, bytes]:
    return {name: value for name, value in metadata.items() if not name.startswith("avro.")}


def _completed(schema: Any, record: Mapping[str, Any]) -> dict[str, Any]:
    """An entry with all fields of ``schema``, those that it lacks as NULL."""
    file = next(each["type"] for each in schema["fields"] if each["name"] == "data_file")
    found = {each["name"]: record.get(each["name"]) for each in schema["fields"]}
    given = {"content": DATA, "block_size_in_bytes": _BLOCK_SIZE, **record["data_file"]}
    found["data_file"] = {each["name"]: given.get(each["name"]) for each in file["fields"]}
    return found


def _list_record(listed: Mapping[str, Any]) -> dict[str, Any]:
    """An entry of a manifest list; tables of version 1 may call some counts otherwise."""
    found = {
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
        found[f"{kind}_files_count"] = count
        found[f"{kind}_rows_count"] = listed.get(f"{kind}_rows_count") or 0
    return {name: value if value is not None else _ZERO.get(name) for name, value in found.items()}


_ZERO: Final = {"content": DATA, "sequence_number": 0, "min_sequence_number": 0}
