"""What a table's metadata needs, from its files alone: no code of the project, no pypaimon.

Data files are told apart by their names, which are unique.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fastavro

_STORED = ("manifest", "index", "statistics")


def needed(table: Path) -> set[str]:
    """Names of the files that snapshots, tags and branches of the table need."""
    names: set[str] = set()
    for document in _documents(table):
        names |= _of(table, document)
    return names


def stored(table: Path) -> set[str]:
    """Names of all data files, index files, manifests, lists and statistics on disk."""
    files = (path for path in table.rglob("*") if path.is_file())
    return {
        path.name
        for path in files
        if path.parent.name.startswith("bucket-")
        or (path.parent.parent == table and path.parent.name in _STORED)
    }


def _documents(table: Path) -> Iterator[dict[str, Any]]:
    for folder in (table, *table.glob("branch/branch-*")):
        for path in (*folder.glob("snapshot/snapshot-*"), *folder.glob("tag/tag-*")):
            document = json.loads(path.read_text())
            if path.parent.name == "tag":
                document.pop("changelogManifestList", None)  # no tag keeps it
            yield document


def _of(table: Path, snapshot: dict[str, Any]) -> set[str]:
    folder = table / "manifest"
    names = {snapshot["baseManifestList"], snapshot["deltaManifestList"]}
    if snapshot.get("changelogManifestList"):
        names.add(snapshot["changelogManifestList"])
    if snapshot.get("statistics"):
        names.add(snapshot["statistics"])
    manifests = [each["_FILE_NAME"] for name in names for each in _records(folder / name)]
    added: set[str] = set()
    removed: set[str] = set()
    for manifest in manifests:
        for entry in _records(folder / manifest):
            file = entry["_FILE"]
            group = {file["_FILE_NAME"], *(file["_EXTRA_FILES"] or ())}
            (removed if entry["_KIND"] else added).update(group)
    names |= set(manifests) | (added - removed)
    if snapshot.get("indexManifest"):
        names.add(snapshot["indexManifest"])
        names |= {each["_FILE_NAME"] for each in _records(folder / snapshot["indexManifest"])}
    return names


def _records(path: Path) -> list[dict[str, Any]]:
    with path.open("rb") as stream:
        return list(fastavro.reader(stream))
