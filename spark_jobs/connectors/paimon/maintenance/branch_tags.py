"""Who keeps the tags and schemas of branches: files, or a REST catalog's server. Driver only."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from spark_jobs.connectors.paimon.library import rest_tags, snapshot_files
from spark_jobs.connectors.paimon.maintenance.branch_folder import BranchFolder
from spark_jobs.connectors.paimon.table.table_handle import PinnedTable
from spark_jobs.connectors.shared.commit.commit_loop import store_once
from spark_jobs.contract.request import TableName
from spark_jobs.errors import CommitError, ErrorCode, NotSupportedError
from spark_jobs.formats.paimon.metadata_files import entry_path
from spark_jobs.storage.warehouse import Warehouse


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
        self.storage.files.create(path, snapshot_files.snapshot_json(snapshot))

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
            rest_tags.create_tag, self.catalog, table.table, tag, int(snapshot.id), None
        )

        def look_up() -> bool | None:
            found = rest_tags.tagged_snapshot(self.catalog, table.table, tag)
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
