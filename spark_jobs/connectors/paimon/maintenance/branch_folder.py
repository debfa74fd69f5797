"""The folder of a branch, and the tags of other branches that keep its files. Driver only."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import pyarrow.fs as pafs

from spark_jobs.connectors.paimon.maintenance.branch_history import BranchHistory
from spark_jobs.contract.request import TableName
from spark_jobs.contract.table_name import MAIN_BRANCH
from spark_jobs.errors import CatalogError, ErrorCode, NotSupportedError
from spark_jobs.formats.paimon.branches import is_tag_of
from spark_jobs.formats.paimon.metadata_files import entry_path, ids_of
from spark_jobs.storage.files import read_file

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
