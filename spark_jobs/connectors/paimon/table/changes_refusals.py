"""Refuses to tell the changes of tables whose files do not tell them. Driver only."""

from __future__ import annotations

from spark_jobs.connectors.paimon.table.table_handle import PinnedTable
from spark_jobs.contract.request import TableName
from spark_jobs.errors import CatalogError, ErrorCode, NotSupportedError


def refuse_untold(name: TableName, table: PinnedTable, *, net: bool) -> None:
    """Refuse tables whose changed files do not tell which rows changed, or (``net``) in the end.

    Raises:
        NotSupportedError: gives the reason.
    """
    if table.evolves_columns:
        raise NotSupportedError(
            f"changes of {name}: with data evolution (option data-evolution.enabled), an UPDATE "
            "adds files of some columns, which do not tell the rows before.",
            "Compare two states of the table: table_source(..., snapshot=...).",
        )
    if table.keyed is not None and table.keyed.producer == "none":
        raise NotSupportedError(
            f"changes of {name}: the table has a primary key and no changelog, so that an added "
            "record does not tell whether its row was there before.",
            "Set the option changelog-producer (lookup, full-compaction or input), or compare two "
            "states of the table: table_source(..., snapshot=...).",
        )
    keyed = table.keyed
    if net and keyed is not None and keyed.producer == "input":
        engine = keyed.engine
        if engine.kind != "deduplicate" or engine.sequence_fields:
            option = "sequence.field" if engine.sequence_fields else f"merge-engine={engine.kind}"
            raise NotSupportedError(
                f"changes of {name} with net=True: its changelog has records as they were written "
                f"(changelog-producer=input), and with {option} the last one of a key need not be "
                "the row.",
                "Set the option changelog-producer to lookup, or read each change (net=False).",
            )


def refuse_start(name: TableName, table: PinnedTable) -> None:
    """Refuse to begin at a snapshot whose changes a later changelog tells again.

    Raises:
        NotSupportedError: a compaction of the table owes changelog.
    """
    keyed = table.keyed
    if keyed is None:
        return
    if any(keyed.owes_changelog(entry.file.level) for _, entry in table.files.located_entries):
        raise NotSupportedError(
            f"changes of {name}: its compaction has still to write the changelog of rows that are "
            "in the table already, so that they would be told twice.",
            "Compact the table fully, and begin right behind that.",
        )


def untold_snapshot(name: TableName, snapshot_id: int) -> CatalogError:
    """The error for a snapshot that changed rows, of which the changelog says nothing."""
    return CatalogError(
        ErrorCode.SNAPSHOT_NOT_FOUND,
        f"{name}: snapshot {snapshot_id} changed rows and has no changelog, as an INSERT OVERWRITE,"
        " so that the changes are not known without a gap",
        "Read all rows once more: with on_gap='full', as inserts; rows that are gone are not among "
        "them. Change tables that others follow by MERGE or DELETE.",
        ("changes",),
    )
