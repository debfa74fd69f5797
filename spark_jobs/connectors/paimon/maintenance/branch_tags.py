"""The folders of branches, the tags that keep their files, and who keeps both. Driver only."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Protocol

import pyarrow.fs as pafs

from spark_jobs.connectors.paimon.library import rest_references, stored_snapshots
from spark_jobs.connectors.paimon.maintenance.branch_history import BranchHistory
from spark_jobs.connectors.paimon.table.table_handle import PinnedTable
from spark_jobs.connectors.shared.commit.commit_loop import store_once
from spark_jobs.contract.request import TableName
from spark_jobs.contract.table_name import MAIN_BRANCH
from spark_jobs.errors import CatalogError, CommitError, ErrorCode, NotSupportedError
from spark_jobs.formats.paimon.branches import is_tag_of
from spark_jobs.formats.paimon.metadata_files import entry_path, ids_of
from spark_jobs.storage.files import read_file
from spark_jobs.storage.warehouse import Warehouse

# How many names an error has.
_NAMES: Final = 20


@dataclass(frozen=True, slots=True)
class BranchFolder:
    """The metadata of a table or a branch, in the folder ``path``."""

    filesystem: pafs.FileSystem
    path: str

    @classmethod
    def of(cls, filesystem: pafs.FileSystem, table_path: str, branch: str) -> BranchFolder:
        """The folder of a branch that is not main."""
        return cls(filesystem, entry_path(table_path, "branch", branch))

    def schemas(self) -> dict[int, str]:
        """The texts of the stored schemas by id, in ascending order."""
        folder = pafs.FileSelector(f"{self.path}/schema", allow_not_found=True)
        names = [info.base_name for info in self.filesystem.get_file_info(folder)]
        texts_by_id = {}
        for number in ids_of("schema", names):
            text = self.text(entry_path(self.path, "schema", number))
            if text is not None:
                texts_by_id[number] = text
        return texts_by_id

    def has_files(self) -> bool:
        """Whether there is any file below the folder, which others may have left half made."""
        folder = pafs.FileSelector(self.path, allow_not_found=True, recursive=True)
        infos = self.filesystem.get_file_info(folder)
        return any(info.type == pafs.FileType.File for info in infos)

    def text(self, path: str) -> str | None:
        """The text of a small file; None: there is none."""
        try:
            return read_file(self.filesystem, path).decode(errors="replace")
        except FileNotFoundError:
            return None


def kept_tags(histories: tuple[BranchHistory, ...], branch: str) -> list[str]:
    """The files of the tags that other branches have for a branch."""
    own = [each for each in histories if each.name != branch]
    return [each.tag_path(tag) for each in own for tag in each.tags if is_tag_of(branch, tag)]


def no_branch(name: object, branch: str, known: Iterable[str]) -> CatalogError:
    """The error for a branch that is not one of ``known``."""
    return CatalogError(
        ErrorCode.BRANCH_NOT_FOUND,
        f"{name} has no branch {branch}.",
        f"Use one of: {', '.join(sorted(known)[:_NAMES])}.",
    )


def branch_exists(name: object, branch: str) -> CatalogError:
    """The error for a branch whose name another one has already."""
    return CatalogError(
        ErrorCode.BRANCH_EXISTS,
        f"{name} has a branch {branch} already.",
        "Choose another name, delete the branch first, or set if_not_exists.",
    )


def refuse_nesting(name: TableName) -> None:
    """Refuse to begin a branch at another one.

    Raises:
        NotSupportedError: the target is a branch.
    """
    if name.branch != MAIN_BRANCH:
        raise NotSupportedError(
            f"create_branch: {name} is a branch, from which no other one begins: its own files "
            "would be lost with it.",
            f"Begin the branch at {name.database}.{name.without_branch}.",
        )


class BranchKeeper(Protocol):
    """Stores what belongs to a branch beside its snapshots."""

    def tag(self, table: PinnedTable, tag: str, snapshot: Any) -> None:
        """Tag a snapshot of the branch that ``table`` is, unless there is a tag of the name."""
        ...

    def schemas(self, table: PinnedTable) -> Mapping[int, str]:
        """What tells the schemas of the branch apart, by their ids, in ascending order."""
        ...

    def store_schema(self, name: TableName, table: PinnedTable, number: int, text: str) -> bool:
        """Store one of another branch; False: the branch has another one of its id.

        Raises:
            NotSupportedError: schemas cannot be stored.
        """
        ...


@dataclass(frozen=True, slots=True)
class FileKeeper:
    """Implements ``BranchKeeper`` in the folders of branches."""

    storage: Warehouse

    def tag(self, table: PinnedTable, tag: str, snapshot: Any) -> None:
        """Create the tag's file."""
        path = entry_path(table.branch_path, "tag", tag)
        self.storage.files.create(path, stored_snapshots.snapshot_json(snapshot))

    def schemas(self, table: PinnedTable) -> Mapping[int, str]:
        """Their texts."""
        return BranchFolder(self.storage.filesystem, table.branch_path).schemas()

    def store_schema(self, name: TableName, table: PinnedTable, number: int, text: str) -> bool:
        """Create the schema's file."""
        del name
        path = entry_path(table.branch_path, "schema", number)
        if self.storage.files.create(path, text):
            return True
        return BranchFolder(self.storage.filesystem, table.branch_path).text(path) == text


@dataclass(frozen=True, slots=True)
class ServerKeeper:
    """Implements ``BranchKeeper`` by requests to the server of ``catalog``."""

    storage: Warehouse
    catalog: Any

    def tag(self, table: PinnedTable, tag: str, snapshot: Any) -> None:
        """Ask for the tag.

        Raises:
            CommitError: COMMIT_CONFLICT: the server has no such snapshot, or another tag.
        """
        create = partial(
            rest_references.create_tag, self.catalog, table.table, tag, int(snapshot.id), None
        )

        def look_up() -> bool | None:
            found = rest_references.tagged_snapshot(self.catalog, table.table, tag)
            return None if found is None else bool(found.id == snapshot.id)

        if not store_once(f"tag {tag}", create, look_up) and look_up() is not True:
            raise CommitError(
                ErrorCode.COMMIT_CONFLICT,
                f"The catalog's server did not make the tag {tag} of snapshot {snapshot.id}, which "
                "keeps files that two branches share.",
                "Look at the tags of the table and its branch, and run it again.",
            )

    def schemas(self, table: PinnedTable) -> Mapping[int, str]:
        """The latest one, which is all that the server tells."""
        schema = table.table.table_schema
        fields = [field.to_dict() for field in schema.fields]
        document = {"fields": fields, "options": dict(schema.options)}
        return {int(schema.id): json.dumps(document, sort_keys=True)}

    def store_schema(self, name: TableName, table: PinnedTable, number: int, text: str) -> bool:
        """Refuse: the server takes changes, and no schemas."""
        del table, text
        raise NotSupportedError(
            f"{name} is in a REST catalog, and the branch has columns or options of its own "
            f"(schema {number}): its server stores no schema of another branch.",
            "Alter the table in the same way first.",
        )
