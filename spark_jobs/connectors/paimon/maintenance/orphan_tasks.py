"""The tasks of a search for orphan files. Run on executors, without a table library.

All are functions for ``mapInArrow``. They exchange rows of ``LISTED``, each a stored file, and rows
of ``NAMED``, each a file that a manifest adds or removes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.fs as pafs

from spark_jobs.avro import open_manifest
from spark_jobs.connectors.paimon.format.manifest_entries import (
    ManifestFiles,
    NamedFile,
    files_of_manifest,
    live_files,
    named_file,
)
from spark_jobs.connectors.paimon.maintenance.stored_files import (
    StoredFile,
    orphans_among,
    stored_files,
)
from spark_jobs.errors import JobError
from spark_jobs.formats.avro.records import records
from spark_jobs.storage.file_errors import file_error
from spark_jobs.storage.parallel import PARALLEL, in_parallel

LISTED: Final = pa.schema(
    {"name": pa.string(), "path": pa.string(), "kind": pa.string(), "size": pa.int64()}
    | {"stored": pa.int64()}
)
# ``place`` distinguishes files with the same name; ``manifest`` is a number.
NAMED: Final = pa.schema(
    {"name": pa.string(), "place": pa.binary(), "manifest": pa.int32(), "added": pa.bool_()}
)
ORPHANS: Final = pa.schema({"path": pa.string(), "kind": pa.string(), "size": pa.int64()})


@dataclass(frozen=True, slots=True)
class ListFolders:
    """Column ``folder`` in, ``LISTED`` out: the folders' files that were stored ``before``."""

    filesystem: pafs.FileSystem
    table_path: str
    before: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """List the folders, several in parallel."""
        for batch in batches:
            yield from _in_parallel(self._listed, batch.to_pylist())

    def _listed(self, row: Mapping[str, Any]) -> pa.RecordBatch:
        with _reading(row["folder"]):
            files = stored_files(self.filesystem, self.table_path, row["folder"])
            rows = [(each.name, *each) for each in files if each.stored < self.before]
        return _batch(rows, LISTED)


@dataclass(frozen=True, slots=True)
class ReadManifests:
    """Columns ``manifest`` and ``path`` in, ``NAMED`` out: what the manifests add and remove."""

    filesystem: pafs.FileSystem

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Read the manifests, several in parallel."""
        for batch in batches:
            yield from _in_parallel(self._named, batch.to_pylist())

    def _named(self, row: Mapping[str, Any]) -> pa.RecordBatch:
        with _reading(row["path"]), self.filesystem.open_input_stream(row["path"]) as stream:
            entries = map(named_file, records(open_manifest(stream.read())))
            files = files_of_manifest(entries, _keys)
        number = row["manifest"]
        rows = [(*key, number, True) for key in files.adds]
        rows += [(*key, number, False) for key in files.removes]
        return _batch(rows, NAMED)


@dataclass(frozen=True, slots=True)
class FindOrphans:
    """``LISTED`` and ``NAMED`` in, all rows of a name in the same task, ``ORPHANS`` out.

    ``roots`` are the numbers of the manifests of each snapshot and tag. ``metadata`` are the names
    of the other files that they need.
    """

    roots: tuple[tuple[int, ...], ...]
    metadata: frozenset[str]
    before: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Find the orphans among the files of a partition of names."""
        files: list[StoredFile] = []
        adds: defaultdict[int, set[tuple[str, bytes]]] = defaultdict(set)
        removes: defaultdict[int, set[tuple[str, bytes]]] = defaultdict(set)
        for batch in batches:
            for row in batch.to_pylist():
                if row["manifest"] is None:
                    files.append(StoredFile(row["path"], row["kind"], row["size"], row["stored"]))
                else:
                    named = adds if row["added"] else removes
                    named[row["manifest"]].add((row["name"], row["place"]))
        manifests = {
            each: ManifestFiles(frozenset(adds[each]), frozenset(removes[each]))
            for each in (*adds, *removes)
        }
        yield self._orphans(files, manifests)

    def _orphans(
        self, files: list[StoredFile], manifests: Mapping[int, ManifestFiles]
    ) -> pa.RecordBatch:
        stored = {each.name for each in files}
        named = {key for each in manifests.values() for key in each.adds if key[0] in stored}
        roots = [[each for each in root if each in manifests] for root in self.roots]
        needed = {name for name, _ in live_files(roots, manifests, named)} | self.metadata
        found = orphans_among(files, needed, self.before)
        return _batch([(each.path, each.kind, each.size) for each in found], ORPHANS)


def _keys(file: NamedFile) -> list[tuple[str, bytes]]:
    """The name and place of a data file and of its extra files."""
    place = b"%d:%s:%s" % (file.bucket, file.partition, (file.external_path or "").encode())
    return [(name, place) for name in (file.name, *file.extra_files)]


def _in_parallel(read: Any, rows: list[Any]) -> Iterator[pa.RecordBatch]:
    for start in range(0, len(rows), PARALLEL):
        yield from in_parallel(read, rows[start : start + PARALLEL])


def _batch(rows: list[tuple[Any, ...]], schema: pa.Schema) -> pa.RecordBatch:
    columns = zip(*rows, strict=True) if rows else [()] * len(schema)
    arrays = [pa.array(c, field.type) for c, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


@contextmanager
def _reading(path: str) -> Iterator[None]:
    """Turn every failure to read ``path`` within this context into a job error."""
    try:
        yield
    except JobError:
        raise
    except Exception as error:  # noqa: BLE001 - damaged files raise errors of every kind
        raise file_error(path, error) from None
