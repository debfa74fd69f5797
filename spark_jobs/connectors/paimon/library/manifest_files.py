"""Manifests and manifest lists, read and written with pypaimon. Driver only.

A *listed manifest* is an entry of a manifest list: a manifest's name and a summary of its content
(``ManifestFileMeta``).
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from spark_jobs.connectors.paimon.format.manifest_entries import (
    ADD,
    DELETE,
    BucketKey,
    NamedFile,
    named_file,
    require_file_name,
)
from spark_jobs.connectors.paimon.library.exact_partitions import (
    index_manifest_file,
    manifest_file_manager,
    new_partition,
)
from spark_jobs.connectors.paimon.library.metadata_checks import (
    place_of_metadata,
    reading_metadata,
    require_sound_entry,
)
from spark_jobs.connectors.paimon.library.table_schema import table_path
from spark_jobs.formats.paimon.metadata_files import manifest_folder

_SNAPSHOT_VERSION: Final = 3


def added_entry(table: Any, place: BucketKey, file: Any, total_buckets: int) -> Any:
    """The manifest entry that adds a data file (from ``data_files.new_data_file``).

    ``total_buckets`` is the number of buckets of its partition; -1 if they are dynamic.
    """
    from pypaimon.manifest.schema.manifest_entry import ManifestEntry

    partition = new_partition(table, place.partition)
    return ManifestEntry(ADD, partition, place.bucket, total_buckets, file)


def removed_entry(entry: Any) -> Any:
    """The manifest entry that removes the file of ``entry``."""
    return replace(entry, kind=DELETE)


def changed_entries(table: Any, snapshot: Any) -> list[Any]:
    """The manifest entries of the files that a snapshot adds and removes, with statistics.

    Raises:
        CatalogError: METADATA_UNREADABLE.
    """
    from pypaimon.manifest.manifest_list_manager import ManifestListManager

    with reading_metadata(place_of_metadata(table)):
        manifests = ManifestListManager(table).read_delta(snapshot)
    return [entry for manifest in manifests for entry in manifest_entries(table, manifest)]


def listed_manifests(table: Any, snapshot: Any | None) -> list[Any]:
    """The listed manifests of all files of a snapshot, oldest first; empty without a snapshot.

    Raises:
        CatalogError: METADATA_UNREADABLE.
    """
    from pypaimon.manifest.manifest_list_manager import ManifestListManager

    with reading_metadata(place_of_metadata(table)):
        manifests: list[Any] = ManifestListManager(table).read_all(snapshot)
        return manifests


def listed_changelog(table: Any, snapshot: Any) -> list[Any] | None:
    """The listed manifests of a snapshot's changelog; None if it has none, or has none any more.

    Another engine removes the changelog of a snapshot that expires, even if a branch began there.

    Raises:
        CatalogError: METADATA_UNREADABLE.
    """
    from pypaimon.manifest.manifest_list_manager import ManifestListManager

    if snapshot.changelog_manifest_list is None:
        return None
    with reading_metadata(place_of_metadata(table)):
        try:
            manifests: list[Any] = ManifestListManager(table).read_changelog(snapshot)
        except FileNotFoundError:
            return None
        return manifests


def manifest_entries(table: Any, manifest: Any) -> list[Any]:
    """The entries of a listed manifest, with statistics.

    Raises:
        CatalogError: METADATA_UNREADABLE.
    """
    with reading_metadata(place_of_metadata(table)):
        require_file_name("manifest", manifest.file_name)
        entries: list[Any] = manifest_file_manager(table).read(
            manifest.file_name, drop_stats=False, file_size=manifest.file_size
        )
        for entry in entries:
            require_sound_entry(entry)
        return entries


def named_files(table: Any, name: str) -> list[NamedFile]:
    """The entries of the manifest ``name`` of any branch, in order.

    Does not use pypaimon's reader, which needs the schema that each file was written with.

    Raises:
        CatalogError: METADATA_UNREADABLE; caused by a FileNotFoundError if the manifest is gone.
    """
    import fastavro

    with reading_metadata(place_of_metadata(table)):
        require_file_name("manifest", name)
        path = f"{manifest_folder(table_path(table))}/{name}"
        with table.file_io.new_input_stream(path) as stream:
            return [named_file(record) for record in fastavro.reader(stream)]


def partition_values(table: Any, encoded: bytes) -> tuple[Any, ...]:
    """The values of a partition, decoded from the binary row in a manifest.

    Raises:
        CatalogError: METADATA_UNREADABLE.
    """
    from pypaimon.table.row.generic_row import GenericRowDeserializer

    with reading_metadata(place_of_metadata(table)):
        return tuple(GenericRowDeserializer.from_bytes(encoded, table.partition_keys_fields).values)


def write_manifests(table: Any, entries: Sequence[Any], target_size: int, prefix: str) -> list[Any]:
    """Write manifests ``<prefix>-<number>``, rolled at ``target_size`` bytes, and list them.

    Raises:
        RuntimeError: the storage failed; the files written so far are removed.
    """
    manifests: list[Any] = manifest_file_manager(table).rolling_write(
        list(entries), target_size, prefix
    )
    return manifests


def write_list(table: Any, name: str, manifests: Sequence[Any]) -> int:
    """Write a manifest list and return its size in bytes.

    Raises:
        RuntimeError: the storage failed; the file is removed.
    """
    from pypaimon.manifest.manifest_list_manager import ManifestListManager

    return int(ManifestListManager(table).write(name, list(manifests)))


def write_index_manifest(
    table: Any, previous: str | None, adds: Sequence[Any], deletes: Sequence[Any]
) -> str | None:
    """Write an index manifest and return its name; None if no index file is left.

    ``adds`` and ``deletes`` are entries from ``library.index_manifest``. Without any, nothing is
    written and the name is the previous one.

    Raises:
        RuntimeError, OSError: the storage failed; the file is removed.
    """
    if previous is not None and (adds or deletes):
        require_index_manifest(table, previous)
    name: str | None = index_manifest_file(table).combine_changes(
        previous, list(adds), list(deletes)
    )
    return name


def require_index_manifest(table: Any, name: str) -> None:
    """Check that an index manifest exists, because pypaimon treats a missing one as empty.

    Raises:
        FileNotFoundError: it does not exist.
    """
    file = index_manifest_file(table)
    path = f"{file.manifest_path}/{name}"
    if not file.file_io.exists(path):
        raise FileNotFoundError(f"index manifest {path} does not exist")


def remove_manifests(table: Any, names: Iterable[str]) -> None:
    """Remove manifests and manifest lists that no snapshot refers to; ignore failures."""
    for name in names:
        table.file_io.delete_quietly(f"{manifest_folder(table_path(table))}/{name}")


def file_key(entry: Any) -> Any:
    """A hashable key that identifies the file of a manifest entry within its table."""
    return entry.identifier()


def new_snapshot(
    table: Any,
    previous: Any | None,
    lists: Mapping[str, tuple[str, int]],
    index_manifest: str | None,
    entries: Sequence[Any],
    changelog: Sequence[Any],
    kind: str,
    user: str,
    identifier: int,
    properties: Mapping[str, str],
    next_row_id: int | None,
) -> Any:
    """The snapshot after ``previous`` that adds and removes the files of ``entries``.

    ``lists`` has the name and size in bytes of the manifest lists ``base`` and ``delta``, and of
    ``changelog`` if there are entries of changelog files.
    """
    from pypaimon.snapshot.snapshot import Snapshot

    rows = sum(e.file.row_count if e.kind == ADD else -e.file.row_count for e in entries)
    changelog_list, changelog_list_size = lists.get("changelog", (None, None))
    schema_id = table.table_schema.id
    keeps_statistics = previous is not None and previous.schema_id == schema_id
    return Snapshot(
        version=_SNAPSHOT_VERSION,
        id=previous.id + 1 if previous else 1,
        schema_id=schema_id,
        base_manifest_list=lists["base"][0],
        base_manifest_list_size=lists["base"][1],
        delta_manifest_list=lists["delta"][0],
        delta_manifest_list_size=lists["delta"][1],
        total_record_count=(previous.total_record_count or 0 if previous else 0) + rows,
        delta_record_count=rows,
        changelog_manifest_list=changelog_list,
        changelog_manifest_list_size=changelog_list_size,
        changelog_record_count=sum(each.file.row_count for each in changelog) or None,
        commit_user=user,
        commit_identifier=identifier,
        commit_kind=kind,
        time_millis=int(time.time() * 1000),
        watermark=previous.watermark if previous else None,
        statistics=previous.statistics if previous and keeps_statistics else None,
        index_manifest=index_manifest,
        next_row_id=next_row_id,
        properties=dict(properties) or None,
    )
