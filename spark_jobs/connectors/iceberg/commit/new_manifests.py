"""Writes the manifests and the manifest list of a snapshot. Driver only.

pyiceberg loses fields that it does not know; a manifest with a removed file is written again with
the fields that it has. Only the schemas come from pyiceberg.
"""

from __future__ import annotations

import json
import uuid
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from itertools import count
from typing import Any, Final, Literal, cast

from spark_jobs.avro import open_manifest
from spark_jobs.connectors.iceberg.commit.manifest_clusters import Cluster, ManifestRewrite, Shape
from spark_jobs.connectors.iceberg.commit.manifest_records import (
    NewDataFile,
    avro_value,
    completed,
    existing,
    field_summary,
    file_number,
    list_record,
    with_partition,
)
from spark_jobs.connectors.iceberg.table.manifests import (
    ADDED,
    DATA,
    DELETED,
    FileKey,
    ListedManifest,
    ManifestEntry,
    data_file_fields,
    entries_with_records,
    listed_manifest,
    partition_fields,
    read_manifest,
)
from spark_jobs.connectors.iceberg.table.pinned_table import PinnedTable
from spark_jobs.formats.avro.container import AvroFile
from spark_jobs.formats.avro.encoding import avro_file
from spark_jobs.packing import filled

# Iceberg's defaults.
_LEAST_COUNT: Final = 100
_TARGET_SIZE: Final = 8 * 1024 * 1024


class SnapshotFiles:
    """The metadata files of one attempt to make a snapshot of ``table``, which is as it is now.

    ``row_ids`` are the first id that the attempt hands out to rows, and how many, once the manifest
    list is written; None: tables of this version have none.
    """

    def __init__(self, table: PinnedTable, snapshot_id: int) -> None:
        self._table = table
        self._snapshot_id = snapshot_id
        self._version = cast(Literal[1, 2, 3], table.metadata.format_version)
        self._sequence_number = int(table.metadata.next_sequence_number())
        self._token = uuid.uuid4()
        folder = table.metadata.properties.get("write.metadata.path")
        self._folder = (folder or f"{table.metadata.location}/metadata").rstrip("/")
        self.written: list[str] = []
        self._numbers = count()
        self.row_ids: tuple[int, int] | None = None

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
        self, listed: ListedManifest, content: bytes, removed: Collection[FileKey]
    ) -> dict[str, Any]:
        """Write a manifest again with files ``removed``; its list entry."""
        file = open_manifest(content)
        records = [
            self._deleted(entry, record)
            if entry.key in removed
            else existing(entry, record, listed)
            for entry, record in entries_with_records(file, listed)
            if entry.status != DELETED
        ]
        shape = self._shape(file, listed.content)
        if shape.schema is not file.schema:
            records = [completed(shape.schema, record) for record in records]
        return self._stored(listed.spec_id, shape.schema, shape.header, records, listed.record)

    def _shape(self, file: AvroFile, content: int) -> Shape:
        """How a manifest is written again: as it is, unless it is of an older version."""
        header = {
            name: text for name, text in file.metadata.items() if not name.startswith("avro.")
        }
        written, version = header.get("format-version", b"1"), str(self._version).encode()
        lacks_ids = "first_row_id" not in {each["name"] for each in data_file_fields(file.schema)}
        if written == version and not (self._version == 3 and lacks_ids):
            return Shape(file.schema, header)
        kind = b"data" if content == DATA else b"deletes"
        newer = {**header, "format-version": version, "content": kind}
        return Shape(with_partition(self._entry_schema(), file.schema), newer)

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
        manifests: list[Mapping[str, Any]] = []
        for group in groups.values():
            bins = [[each] for each in group]
            if len(group) >= least:
                bins = filled(group, lambda each: each["manifest_length"], target)
            for members in bins:
                manifests += self._merged(members) if len(members) > 1 else members
        return manifests

    def clustered(self, rewrite: ManifestRewrite) -> list[Mapping[str, Any]]:
        """Write the new manifests of a rewrite; the entries of the list."""
        return [*rewrite.kept, *(self._of(each, rewrite.removed) for each in rewrite.clusters)]

    def _of(self, cluster: Cluster, removed: Collection[FileKey]) -> dict[str, Any]:
        spec_id, content, shape, files = cluster
        schema = self._schema(spec_id) if shape is None else shape.schema
        header = self._header(spec_id, content) if shape is None else shape.header
        records = [
            self._deleted(entry, record)
            if entry.key in removed
            else existing(entry, record, listed)
            for entry, record, listed in files
        ]
        records = [completed(schema, each) for each in records]
        places = [each.entry.partition for each in files]
        listed = {"partitions": self._summary(spec_id, places), "content": content}
        return self._stored(spec_id, schema, header, records, listed)

    def _merged(self, members: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        schemas: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
        files, shapes = {}, {}
        for member in members:
            path = member["manifest_path"]
            files[path] = open_manifest(self._table.storage.read(path))
            shapes[path] = self._shape(files[path], member.get("content") or DATA)
            schemas[json.dumps(shapes[path].schema)].append(member)
        manifests: list[Mapping[str, Any]] = []
        for alike in schemas.values():
            if len(alike) == 1:
                manifests += alike
                continue
            shape = shapes[alike[0]["manifest_path"]]
            records, places = [], []
            for each in alike:
                listed = listed_manifest(each)
                is_older = shapes[listed.path].schema is not files[listed.path].schema
                for entry, record in entries_with_records(files[listed.path], listed):
                    is_new = entry.snapshot_id == self._snapshot_id
                    if entry.status != DELETED or is_new:
                        keeps = is_new and listed.path in self.written
                        kept = record if keeps else existing(entry, record, listed)
                        records.append(completed(shape.schema, kept) if is_older else kept)
                        places.append(entry.partition)
            spec_id = alike[0]["partition_spec_id"]
            told = {**alike[0], "partitions": self._summary(spec_id, places)}
            manifests.append(self._stored(spec_id, shape.schema, shape.header, records, told))
            for path in {each["manifest_path"] for each in alike} & set(self.written):
                self.written.remove(path)
                self._table.storage.remove(path)
        return manifests

    def _deleted(self, entry: ManifestEntry, record: Mapping[str, Any]) -> dict[str, Any]:
        numbers = {
            "sequence_number": entry.sequence_number,
            "file_sequence_number": file_number(entry),
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
        records = [list_record(each) for each in entries]
        if self._version == 3:
            self.row_ids = self._with_row_ids(entries, records)
            header["first-row-id"] = str(self.row_ids[0])
        content = avro_file(schema, {k: v.encode() for k, v in header.items()}, records)
        return self._write(f"snap-{self._snapshot_id}-1-{self._token}.avro", content)

    def _with_row_ids(
        self, entries: Sequence[Mapping[str, Any]], records: Sequence[dict[str, Any]]
    ) -> tuple[int, int]:
        """Give ids to all manifests of data files that have none, as Iceberg's Java does.

        ``records`` are what the list says of ``entries``. The first id, and how many.
        """
        first = following = self._table.next_row_id
        for entry, record in zip(entries, records, strict=True):
            if record["content"] != DATA or record.get("first_row_id") is not None:
                record.setdefault("first_row_id", None)
                continue
            record["first_row_id"] = following
            following += self._live_rows(entry)
        return first, following - first

    def _live_rows(self, listed: Mapping[str, Any]) -> int:
        """The number of rows in the files of a manifest; lists of version 1 may not say it."""
        counts = [listed.get(f"{kind}_rows_count") for kind in ("added", "existing")]
        if None not in counts:
            return sum(map(int, filter(None, counts)))
        manifest = listed_manifest(listed)
        entries = read_manifest(self._table.storage.read(manifest.path), manifest)
        return sum(each.row_count for each in entries if each.status != DELETED)

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
                "file_sequence_number": file.file_number,
                "data_file": {**file.record, "partition": partition},
            }
            records.append(completed(schema, entry))
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
        location = self._write(f"{self._token}-m{next(self._numbers)}.avro", content)
        numbers = [
            self._sequence_number if number is None else number
            for record in records
            for number in [record.get("sequence_number")]
            if record["status"] != DELETED
        ]
        entry = {
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
            entry |= {f"{name}_files_count": len(of_kind), f"{name}_rows_count": rows}
        return entry

    def _write(self, name: str, content: bytes) -> str:
        location = f"{self._folder}/{name}"
        self.written.append(location)
        self._table.storage.write(location, content)
        return location

    def _spec(self, spec_id: int) -> Any:
        return self._table.metadata.specs()[spec_id]

    def _schema(self, spec_id: int) -> Any:
        """The schema of manifests of a partition spec, whose fields are all optional, as in Java.

        Pyiceberg's are required if their column is: a field that was dropped has no value then.
        """
        from pyiceberg.types import StructType

        kinds = self._spec(spec_id).partition_type(self._table.metadata.schema())
        fields = [each.model_copy(update={"required": False}) for each in kinds.fields]
        return self._entry_schema(StructType(*fields))

    def _entry_schema(self, kinds: Any = None) -> Any:
        """The schema of manifests with partitions of pyiceberg's type ``kinds``."""
        from pyiceberg.manifest import (
            data_file_with_partition,
            manifest_entry_schema_with_data_file,
        )
        from pyiceberg.types import StructType
        from pyiceberg.utils.schema_conversion import AvroSchemaConversion

        kinds = StructType() if kinds is None else kinds
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
        return [field_summary(part, [each.get(part.id) for each in partitions]) for part in parts]
