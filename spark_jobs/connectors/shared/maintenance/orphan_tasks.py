"""Files that can be orphans, and the tasks of a search for them. Runs on executors.

The tasks are functions for ``mapInArrow``, without a table library. They exchange rows of
``LISTED``, each a stored file, and rows of ``NAMED``, each a file that a manifest adds or removes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Set
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.fs as pafs

from spark_jobs.connectors.shared.maintenance.removal_notes import FileKind
from spark_jobs.errors import JobError
from spark_jobs.storage.file_errors import file_error
from spark_jobs.storage.files import PARALLEL, in_parallel

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
LISTED: Final = pa.schema(
    {"name": pa.string(), "path": pa.string(), "kind": pa.string(), "size": pa.int64()}
    | {"stored": pa.int64()}
)
# ``place`` distinguishes files with the same name; ``manifest`` is a number.
NAMED: Final = pa.schema(
    {"name": pa.string(), "place": pa.binary(), "manifest": pa.int32(), "added": pa.bool_()}
)
ORPHANS: Final = pa.schema({"path": pa.string(), "kind": pa.string(), "size": pa.int64()})
# The names and places of files that a manifest, whose content this is, adds and removes.
NamesOf = Callable[[bytes], "Names"]


class StoredFile(NamedTuple):
    """A file; ``size`` is in bytes, ``stored`` is its mtime in microseconds since 1970."""

    path: str
    kind: FileKind
    size: int
    stored: int

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rpartition("/")[2]


def microseconds(moment: datetime) -> int:
    """A time in microseconds since 1970, as in ``StoredFile``."""
    return (moment - _EPOCH) // timedelta(microseconds=1)


def orphans_among(
    files: Iterable[StoredFile], needed: Container[str], before: int
) -> list[StoredFile]:
    """The files that were stored ``before`` and whose names are not ``needed``.

    Compares only file names, because other writers may spell folders differently. Writers give
    each file a name of its own.
    """
    return [each for each in files if each.stored < before and each.name not in needed]


# The files of a folder that can be orphans; whether those of the folders in it, too.
ListFiles = Callable[[str, bool], Iterable[StoredFile]]


class Names(NamedTuple):
    """The files that a manifest adds and removes, by name and place."""

    adds: frozenset[tuple[str, bytes]]
    removes: frozenset[tuple[str, bytes]]


# Of stored files with these names, those that manifests, by number, keep in use.
NeededNames = Callable[[Mapping[int, Names], Set[str]], set[str]]


@dataclass(frozen=True, slots=True)
class ListFolders:
    """Columns ``folder`` and ``is_deep`` in, ``LISTED`` out.

    Tells the folders' files that were stored ``before``.
    """

    files: ListFiles
    before: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """List the folders, several in parallel."""
        for batch in batches:
            yield from _in_parallel(self._listed, batch.to_pylist())

    def _listed(self, row: Mapping[str, Any]) -> pa.RecordBatch:
        with _reading(row["folder"]):
            files = self.files(row["folder"], row["is_deep"])
            rows = [(each.name, *each) for each in files if each.stored < self.before]
        return _batch(rows, LISTED)


@dataclass(frozen=True, slots=True)
class ReadManifests:
    """Columns ``manifest`` and ``path`` in, ``NAMED`` out: what the manifests add and remove."""

    filesystem: pafs.FileSystem
    names: NamesOf

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Read the manifests, several in parallel."""
        for batch in batches:
            yield from _in_parallel(self._named, batch.to_pylist())

    def _named(self, row: Mapping[str, Any]) -> pa.RecordBatch:
        with _reading(row["path"]), self.filesystem.open_input_stream(row["path"]) as stream:
            names = self.names(stream.read())
        number = row["manifest"]
        rows = [(*key, number, True) for key in names.adds]
        rows += [(*key, number, False) for key in names.removes]
        return _batch(rows, NAMED)


@dataclass(frozen=True, slots=True)
class FindOrphans:
    """``LISTED`` and ``NAMED`` in, all rows of a name in the same task, ``ORPHANS`` out.

    ``metadata`` are the names of files in use that no manifest names.
    """

    needed: NeededNames
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
            each: Names(frozenset(adds[each]), frozenset(removes[each]))
            for each in (*adds, *removes)
        }
        needed = self.needed(manifests, {each.name for each in files}) | self.metadata
        found = orphans_among(files, needed, self.before)
        yield _batch([(each.path, each.kind, each.size) for each in found], ORPHANS)


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
