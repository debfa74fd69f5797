"""Where a Paimon table keeps its metadata, including the guards of running operations.

Most of it is stored as ``<root>/<kind>/<kind>-<name>``. The root is the folder of the table or of
one of its branches, which have snapshots, tags, schemas and consumers of their own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final, Literal

Kind = Literal["branch", "changelog", "consumer", "removal", "schema", "snapshot", "tag"]

FIRST_SNAPSHOT: Final = 1
# A guard is a consumer: snapshot expiry in every engine keeps its snapshot and all later ones.
_GUARD: Final = "merge-"
_NEXT_SNAPSHOT: Final = "nextSnapshot"
_ID: Final = re.compile(r"[0-9]{1,18}")


def entry_name(kind: Kind, name: str | int) -> str:
    """The file name of the metadata called ``name``, or the folder name of a branch."""
    return f"{kind}-{name}"


def entry_path(root: str, kind: Kind, name: str | int) -> str:
    """The path of the metadata file called ``name``, or of the folder of a branch."""
    return f"{root}/{kind}/{entry_name(kind, name)}"


def names_of(kind: Kind, entries: Iterable[str]) -> list[str]:
    """The names of those ``entries`` of a folder that are of a kind, sorted."""
    prefix = entry_name(kind, "")
    return sorted(each.removeprefix(prefix) for each in entries if each.startswith(prefix))


def ids_of(kind: Literal["changelog", "schema", "snapshot"], entries: Iterable[str]) -> list[int]:
    """The ids of those ``entries`` of a folder that are of a kind, ascending."""
    return sorted(int(each) for each in names_of(kind, entries) if _ID.fullmatch(each))


def is_id(text: str) -> bool:
    """Whether a text is the id of a snapshot."""
    return _ID.fullmatch(text) is not None


def hint_path(root: str, hint: Literal["EARLIEST", "LATEST"]) -> str:
    """The file that says which snapshot is the earliest or the latest; it may be wrong."""
    return f"{root}/snapshot/{hint}"


def manifest_folder(table: str) -> str:
    """The folder of the manifests, which all branches of a table share."""
    return f"{table}/manifest"


def guard_name(operation_id: str) -> str:
    """The name of the consumer by which an operation guards its base snapshot."""
    return f"{_GUARD}{operation_id}"


def guard_path(root: str, operation_id: str) -> str:
    """The file of an operation's guard."""
    return entry_path(root, "consumer", guard_name(operation_id))


def guarding_operation(consumer: str) -> str | None:
    """The operation whose guard is the consumer of this name; None if it is not a guard."""
    return consumer.removeprefix(_GUARD) if consumer.startswith(_GUARD) else None


def consumer_document(next_snapshot_id: int) -> dict[str, int]:
    """The content of a consumer's file, with the snapshot that it reads next."""
    return {_NEXT_SNAPSHOT: next_snapshot_id}


def next_snapshot(document: Any) -> int:
    """The snapshot that a consumer reads next, from the content of its file.

    Raises:
        ValueError, KeyError, TypeError: it is not the content of a consumer's file.
    """
    value = document[_NEXT_SNAPSHOT]
    if type(value) is not int or not FIRST_SNAPSHOT <= value < 2**63:
        raise ValueError(f"{_NEXT_SNAPSHOT}: {str(value)[:100]} is not a snapshot id")
    return value
