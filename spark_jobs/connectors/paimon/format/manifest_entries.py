"""What manifests say of data files, and which of these are live. Runs on executors, too."""

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
    """As much of a manifest entry as tells which file it means, whatever schema the file has.

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
    """The data files, and what belongs to them, that a manifest adds and removes."""

    adds: frozenset[Any]
    removes: frozenset[Any]


def named_file(record: Any) -> NamedFile:
    """The file of an entry as Avro has it.

    Raises:
        ValueError, KeyError, TypeError: it is no entry.
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
    """What entries add and remove, told apart by the ``keys`` of a file and of its extra files.

    A file that the same manifest adds and removes counts as added: when in doubt, it is needed.
    """
    adds: set[Hashable] = set()
    removes: set[Hashable] = set()
    for entry in entries:
        (adds if entry.kind == ADD else removes).update(keys(entry))
    return ManifestFiles(frozenset(adds), frozenset(removes - adds))


def live_files(
    roots: Iterable[Collection[M]], manifests: Mapping[M, ManifestFiles], among: Set[F]
) -> set[F]:
    """The files, of some, that are live in a snapshot or tag; ``roots`` are their manifests.

    A file is live in one if its manifests add it, and do not remove it as often.
    """
    # By manifest: what it adds and each of the snapshots that have it removes again.
    dead: dict[M, set[F]] = {}
    for root in roots:
        removed = _removed([manifests[each] for each in root], among)
        for each in root:
            dead[each] = dead[each] & removed if each in dead else removed
    live: set[F] = set()
    for each, removed in dead.items():
        live |= (manifests[each].adds & among) - removed
    return live


def _removed(manifests: Sequence[ManifestFiles], among: Set[F]) -> set[F]:
    """The files that are not live although one of the manifests adds them."""
    removes = Counter(each for manifest in manifests for each in manifest.removes if each in among)
    return {
        each
        for each, count in removes.items()
        if count >= sum(each in manifest.adds for manifest in manifests)
    }
