"""Which stored files of a Paimon table nothing needs. Runs on executors, too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from spark_jobs.avro import open_manifest
from spark_jobs.connectors.paimon.format.manifest_entries import (
    ManifestFiles,
    NamedFile,
    files_of_manifest,
    live_files,
    named_file,
)
from spark_jobs.connectors.shared.maintenance.orphan_tasks import Names
from spark_jobs.formats.avro.records import records


def names_of(content: bytes) -> Names:
    """The names and places of the files that a manifest adds and removes.

    Raises:
        ValueError, KeyError, TypeError: it is not a manifest.
    """
    found = files_of_manifest(map(named_file, records(open_manifest(content))), _keys)
    return Names(found.adds, found.removes)


def needed_names(
    roots: Sequence[Sequence[int]], manifests: Mapping[int, Names], stored: Set[str]
) -> set[str]:
    """The names among ``stored`` of files that are live in a snapshot or tag.

    ``roots`` are the numbers of the manifests of each of them.
    """
    files = {number: ManifestFiles(*each) for number, each in manifests.items()}
    named = {key for each in files.values() for key in each.adds if key[0] in stored}
    known = [[each for each in root if each in files] for root in roots]
    return {name for name, _ in live_files(known, files, named)}


def _keys(file: NamedFile) -> list[tuple[str, bytes]]:
    """The name and place of a data file and of its extra files."""
    place = b"%d:%s:%s" % (file.bucket, file.partition, (file.external_path or "").encode())
    return [(name, place) for name in (file.name, *file.extra_files)]
