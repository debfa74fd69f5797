"""Manifest entries of data files: their names, buckets and sequence numbers, and which are live.

Sequence numbers order the files of a fixed bucket when Paimon reads and compacts it (option
``bucket-append-ordered``; ``AppendOnlyWriter``, ``BucketedAppendCompactManager``). Every file has
its own range. A rewritten file takes the range, and so the place, of the file that it replaces. New
files follow all others of their bucket. A table without fixed buckets has no order. Never imports a
table library.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence, Set
from typing import Any, Final, NamedTuple, TypeVar

_LONGEST_NAME: Final = 255
POSTPONED: Final = -2
ADD: Final = 0
DELETE: Final = 1
M = TypeVar("M", bound=Hashable)
F = TypeVar("F", bound=Hashable)


def require_file_name(what: str, name: Any) -> None:
    """Check that ``name`` is the name of a single file, and leads to no other folder.

    Raises:
        ValueError: it is not.
    """
    if (
        type(name) is not str
        or name in ("", ".", "..")
        or len(name) > _LONGEST_NAME
        or any(character in name for character in "/\\\0")
    ):
        raise ValueError(f"{what}: {str(name)[:100]!r} is not the name of a file")


class BucketKey(NamedTuple):
    """The values of the partition columns, and the bucket within that partition.

    The files of bucket ``POSTPONED`` wait for their bucket: batch readers do not see them.
    """

    partition: tuple[Any, ...]
    bucket: int


class NamedFile(NamedTuple):
    """The part of a manifest entry that identifies its file, independent of the file's schema.

    ``partition`` is a binary row.
    """

    kind: int
    partition: bytes
    bucket: int
    name: str
    size: int
    external_path: str | None
    extra_files: tuple[str, ...]


class ManifestFiles(NamedTuple):
    """The keys of the data files, with their extra files, that a manifest adds and removes."""

    adds: frozenset[Any]
    removes: frozenset[Any]


def named_file(record: Any) -> NamedFile:
    """The file of an entry that is given as an Avro record.

    Raises:
        ValueError, KeyError, TypeError: it is not a manifest entry.
    """
    file = record["_FILE"]
    extra = tuple(file["_EXTRA_FILES"] or ())
    for each in (file["_FILE_NAME"], *extra):
        require_file_name("data file", each)
    if record["_KIND"] not in (ADD, DELETE) or type(file["_FILE_SIZE"]) is not int:
        raise ValueError(f"the entry of {file['_FILE_NAME']} has a value that none has")
    return NamedFile(
        record["_KIND"],
        record["_PARTITION"],
        record["_BUCKET"],
        file["_FILE_NAME"],
        file["_FILE_SIZE"],
        file.get("_EXTERNAL_PATH"),
        extra,
    )


def files_of_manifest(
    entries: Iterable[NamedFile], keys: Callable[[NamedFile], Iterable[Hashable]]
) -> ManifestFiles:
    """What a manifest's entries add and remove; ``keys`` identify a file and its extra files.

    A file that the manifest both adds and removes counts as added: when in doubt, it is needed.
    """
    adds: set[Hashable] = set()
    removes: set[Hashable] = set()
    for entry in entries:
        (adds if entry.kind == ADD else removes).update(keys(entry))
    return ManifestFiles(frozenset(adds), frozenset(removes - adds))


def live_files(
    roots: Iterable[Collection[M]], manifests: Mapping[M, ManifestFiles], among: Set[F]
) -> set[F]:
    """The files of ``among`` that are live in a snapshot or tag.

    ``roots`` has the manifests of each snapshot or tag. A file is live in one of them if fewer of
    its manifests remove the file than add it.
    """
    # By manifest: the files that are removed in every snapshot or tag that has the manifest.
    dead: dict[M, set[F]] = {}
    for root in roots:
        removed = _removed([manifests[each] for each in root], among)
        for manifest in root:
            dead[manifest] = dead[manifest] & removed if manifest in dead else removed
    live: set[F] = set()
    for manifest, removed in dead.items():
        live |= (manifests[manifest].adds & among) - removed
    return live


def _removed(manifests: Sequence[ManifestFiles], among: Set[F]) -> set[F]:
    """The files that at least as many of the manifests remove as add."""
    removes = Counter(each for manifest in manifests for each in manifest.removes if each in among)
    return {
        file
        for file, count in removes.items()
        if count >= sum(file in manifest.adds for manifest in manifests)
    }


class SequenceNumbers:
    """The next sequence number in each bucket of a snapshot."""

    def __init__(self, entries: Iterable[Any], *, ordered: bool) -> None:
        self._ordered = ordered
        self._next: dict[BucketKey, int] = defaultdict(int)
        for entry in entries:
            place = bucket_key_of(entry)
            self._next[place] = max(self._next[place], entry.file.max_sequence_number + 1)

    def of_new_file(self, place: BucketKey, rows: int) -> tuple[int, int]:
        """The first and last number of a new file, which follows all others of its bucket."""
        if not self._ordered:
            return 0, 0
        first = self._next[place]
        self._next[place] = first + rows
        return first, first + rows - 1


def bucket_key_of(entry: Any) -> BucketKey:
    """The partition and bucket of a manifest entry's file."""
    return BucketKey(tuple(entry.partition.values), entry.bucket)


def numbers_of(entry: Any) -> tuple[int, int]:
    """The first and last sequence number of a manifest entry's file."""
    return entry.file.min_sequence_number, entry.file.max_sequence_number
