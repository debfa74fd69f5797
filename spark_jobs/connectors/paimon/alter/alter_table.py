"""ALTER TABLE: all changes of a statement in one schema. Driver only."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from spark_jobs.connectors.paimon.alter.changes import Changing
from spark_jobs.connectors.paimon.alter.drop_table import drop_table
from spark_jobs.connectors.paimon.alter.fields import described
from spark_jobs.connectors.paimon.commit.manifest_merging import Thresholds
from spark_jobs.connectors.paimon.commit.publish import SnapshotStore
from spark_jobs.connectors.paimon.library import altered_schema, table_schema
from spark_jobs.connectors.paimon.metadata import PaimonMetadata
from spark_jobs.connectors.paimon.table.refusals import refuse_unreadable, refuse_unwritable
from spark_jobs.connectors.paimon.table.table_handle import PinnedTable, pinned_table
from spark_jobs.connectors.shared.commit.commit_loop import (
    before_publication,
    store_once,
    until_committed,
)
from spark_jobs.connectors.shared.table.alterations import alter_report, order_of_names
from spark_jobs.contract import codec
from spark_jobs.contract.alter_table import AlteredPart, AlterTableReport, AlterTableSpec
from spark_jobs.contract.drop_table import DropTableSpec
from spark_jobs.contract.request import TableName
from spark_jobs.errors import CommitError, ErrorCode, JobError
from spark_jobs.spi.alterations import NO_NOTE, ChangeNote
from spark_jobs.storage.warehouse import Warehouse


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
        """Drop the table with its files."""
        return drop_table(self.metadata, self.storage, self.server, name, spec, note)

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
        if altered_schema.text_of_schema(before) == altered_schema.text_of_schema(changing.schema):
            return report
        number = int(before.id) + 1
        native = altered_schema.with_schema(
            latest.table, altered_schema.next_schema(changing.schema, number)
        )
        target = PinnedTable(native, latest.snapshot, table_schema.schema_of(native), latest)
        _refuse_altered(name, target)
        if dry_run:
            return report
        note.write(_noted(latest, target, report))
        return report if self._stored(name, target, changing, note) else None

    def _stored(
        self, name: TableName, target: PinnedTable, changing: Changing, note: ChangeNote
    ) -> bool:
        noted = _noted(target.evolved_from or target, target, AlterTableReport())

        def look_up() -> bool | None:
            now = self._table(name)
            return _is_made(now, noted) if _has(now, noted["id"]) else None

        number = noted["id"]
        try:
            is_stored = store_once(
                f"schema {number}",
                partial(self.store.store_schema, target, changing.found),
                look_up,
            )
        except JobError as error:
            if error.code is not ErrorCode.COMMIT_OUTCOME_UNKNOWN:
                note.remove()
            if isinstance(error, CommitError) and error.code is ErrorCode.COMMIT_OUTCOME_UNKNOWN:
                raise CommitError(
                    error.code,
                    error.problem,
                    "Run the statement again: it looks for its own schema first.",
                ) from error
            raise
        if not is_stored:
            note.remove()
        return is_stored


def _changed(name: TableName, table: PinnedTable, spec: AlterTableSpec) -> Changing:
    """The table with all changes of ``spec``.

    Raises:
        AnalysisError, NotSupportedError: as the changes, with the number of the change.
    """
    changing = Changing(name, table, table.table.table_schema)
    for number, change in enumerate(spec.changes):
        try:
            changing.make(change)
        except JobError as error:
            place = f"changes[{number}]" if len(spec.changes) > 1 else change.kind
            raise error.within(place) from None
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
    return hashlib.sha256(altered_schema.text_of_schema(schema).encode()).hexdigest()
