"""Manifest entries of data files, and which files are live. Runs on executors, too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence, Set
from typing import Any, Final, NamedTuple, TypeVar

from spark_jobs.connectors.paimon.format.file_names import require_file_name

ADD: Final = 0
DELETE: Final = 1

M = TypeVar("M", bound=Hashable)
F = TypeVar("F", bound=Hashable)


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
