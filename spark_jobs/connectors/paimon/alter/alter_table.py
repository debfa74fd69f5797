"""ALTER TABLE, all changes of a statement in one schema, and DROP TABLE. Driver only."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import pyarrow.fs as pafs

from spark_jobs.connectors.paimon.alter.changes import Changing
from spark_jobs.connectors.paimon.alter.fields import described
from spark_jobs.connectors.paimon.commit.manifest_merging import Thresholds
from spark_jobs.connectors.paimon.commit.publish import SnapshotStore
from spark_jobs.connectors.paimon.format.locations import OPTION
from spark_jobs.connectors.paimon.library import new_schemas, rest_catalog, table_schema
from spark_jobs.connectors.paimon.metadata import PaimonMetadata
from spark_jobs.connectors.paimon.table.refusals import refuse_unreadable, refuse_unwritable
from spark_jobs.connectors.paimon.table.table_handle import PinnedTable, pinned_table
from spark_jobs.connectors.shared.commit.commit_loop import (
    before_publication,
    store_once,
    until_committed,
)
from spark_jobs.connectors.shared.table.alterations import (
    alter_report,
    change_each,
    drop_noted,
    order_of_names,
    store_noted,
)
from spark_jobs.contract import codec
from spark_jobs.contract.alter_table import AlteredPart, AlterTableReport, AlterTableSpec
from spark_jobs.contract.drop_table import DropTableSpec
from spark_jobs.contract.request import TableName
from spark_jobs.errors import CommitError, ErrorCode, JobError, NotSupportedError
from spark_jobs.spi.alterations import NO_NOTE, ChangeNote
from spark_jobs.spi.connector import find_table
from spark_jobs.storage.files import remove_file, remove_folder
from spark_jobs.storage.warehouse import Warehouse

# The folders of a table that are removed first and last.
_FIRST: Final = "snapshot"
_LAST: Final = "schema"


@dataclass(frozen=True, slots=True)
class PaimonAlterations:
    """Implements ``ConnectorAlterations``."""

    metadata: PaimonMetadata
    store: SnapshotStore
    storage: Warehouse
    # Of a catalog with a server.
    server: Any | None = None

    def drop_table(
        self, name: TableName, spec: DropTableSpec, *, note: ChangeNote = NO_NOTE
    ) -> bool:
        """Drop the table with its files, by a request to the server if the catalog has one."""
        table = _existing(self.metadata, name)

        def drop() -> None:
            if table is None:
                return
            if self.server is None:
                _remove(self.storage, table)
            else:
                rest_catalog.drop_table(self.server, table.table)

        return drop_noted(name, spec, partial(_identity, table), drop, note)

    def alter_table(
        self,
        name: TableName,
        spec: AlterTableSpec,
        *,
        dry_run: bool,
        note: ChangeNote = NO_NOTE,
    ) -> AlterTableReport:
        """Change the schema of the table, or of its branch."""
        noted = None if dry_run else note.read()
        if noted is not None and _is_made(self._table(name), noted):
            return codec.decode(AlterTableReport, noted["report"])
        return until_committed(partial(self._attempt, name, spec, dry_run, note))

    def _table(self, name: TableName) -> PinnedTable:
        return pinned_table(self.metadata.load_table(name))

    def _attempt(
        self, name: TableName, spec: AlterTableSpec, dry_run: bool, note: ChangeNote, number: int
    ) -> AlterTableReport | None:
        """What was changed; None: others changed the table meanwhile."""
        del number
        with before_publication():
            latest = self._table(name)
        changing = _changed(name, latest, spec)
        before = latest.table.table_schema
        report = _report(before, changing.schema)
        if new_schemas.text_of_schema(before) == new_schemas.text_of_schema(changing.schema):
            return report
        number = int(before.id) + 1
        native = new_schemas.with_schema(
            latest.table, new_schemas.next_schema(changing.schema, number)
        )
        target = PinnedTable(native, latest.snapshot, table_schema.schema_of(native), latest)
        _refuse_altered(name, target)
        if dry_run:
            return report
        noted = _noted(latest, target, report)
        store = partial(self._store, name, target, changing, noted)
        return report if store_noted(note, noted, store) else None

    def _store(
        self, name: TableName, target: PinnedTable, changing: Changing, noted: Mapping[str, Any]
    ) -> bool:
        number = noted["id"]

        def look_up() -> bool | None:
            now = self._table(name)
            return _is_made(now, noted) if _has(now, number) else None

        store = partial(self.store.store_schema, target, changing.found)
        try:
            return store_once(f"schema {number}", store, look_up)
        except CommitError as error:
            if error.code is not ErrorCode.COMMIT_OUTCOME_UNKNOWN:
                raise
            remedy = "Run the statement again: it looks for its own schema first."
            raise CommitError(error.code, error.problem, remedy) from error


def _changed(name: TableName, table: PinnedTable, spec: AlterTableSpec) -> Changing:
    """The table with all changes of ``spec``.

    Raises:
        AnalysisError, NotSupportedError: as the changes, with the number of the change.
    """
    changing = Changing(name, table, table.table.table_schema)
    change_each(spec, changing.make)
    return changing


def _refuse_altered(name: TableName, target: PinnedTable) -> None:
    """Refuse what would make the table no target; one that is none may be altered."""
    refuse_unreadable(name, target.schema)
    before = target.evolved_from or target
    try:
        refuse_unwritable(name, before.schema)
    except JobError:
        return
    refuse_unwritable(name, target.schema)
    Thresholds.of(target.options)


def _report(before: Any, after: Any) -> AlterTableReport:
    report = alter_report(described(before), described(after))
    was, now = ({each.id: each.name for each in schema.fields} for schema in (before, after))
    moved = order_of_names([now[i] for i in was if i in now], [now[i] for i in now if i in was])
    if moved is None:
        return report
    return replace(report, parts=(*report.parts, AlteredPart("order of columns", *moved)))


def _noted(base: PinnedTable, target: PinnedTable, report: AlterTableReport) -> dict[str, Any]:
    """What tells a later try whether the schema of ``target`` was stored; JSON."""
    number = table_schema.schema_id(base.table)
    return {
        "base": number,
        "table": str(table_schema.identity(base.table, number)),
        "id": table_schema.schema_id(target.table),
        "mark": _mark(target.table.table_schema),
        "report": codec.encode(report),
    }


def _has(table: PinnedTable, number: int) -> bool:
    return table_schema.schema_id(table.table) >= number


def _is_made(table: PinnedTable, noted: Mapping[str, Any]) -> bool:
    """Whether a table has got the schema that was ``noted``, whatever followed it."""
    if not _has(table, noted["id"]):
        return False
    try:
        if str(table_schema.identity(table.table, noted["base"])) != noted["table"]:
            return False
        stored = table.table.schema_manager.get_schema(noted["id"])
    except FileNotFoundError:
        return False
    return bool(_mark(stored) == noted["mark"])


def _mark(schema: Any) -> str:
    return hashlib.sha256(new_schemas.text_of_schema(schema).encode()).hexdigest()


def _existing(metadata: PaimonMetadata, name: TableName) -> PinnedTable | None:
    handle = find_table(metadata, name)
    if handle is None:
        return None
    table = pinned_table(handle)
    if table.options.get(OPTION):
        raise NotSupportedError(
            f"{name} has files in other folders (option {OPTION}), which tables may share.",
            "Drop it with the engine that made it.",
        )
    return table


def _identity(table: PinnedTable | None) -> str | None:
    return None if table is None else str(table_schema.identity(table.table, 0))


def _remove(storage: Warehouse, table: PinnedTable) -> None:
    """Remove the folder: first the snapshots, and then it is an empty table; last its schemas.

    So a retry still finds the table that is half removed, and no later table finds its snapshots.
    """
    files, root = storage.filesystem, table.path
    remove_folder(files, f"{root}/{_FIRST}")
    for info in _inside(storage, root):
        if info.base_name == _LAST:
            continue
        if info.type is pafs.FileType.Directory:
            remove_folder(files, info.path)
        else:
            remove_file(files, info.path)
    remove_folder(files, f"{root}/{_LAST}")
    # Its name may be taken again at once: then the folder is that of another table.
    if not _inside(storage, root):
        remove_folder(files, root)


def _inside(storage: Warehouse, root: str) -> list[pafs.FileInfo]:
    return list(storage.filesystem.get_file_info(pafs.FileSelector(root, allow_not_found=True)))
