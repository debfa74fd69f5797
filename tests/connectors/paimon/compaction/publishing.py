"""Compactions step by step: plan, write files, publish."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from spark_jobs.contract.compaction import CompactSpec
from spark_jobs.contract.partition_names import partition_key
from spark_jobs.spi.compaction import (
    CompactionGroup,
    ConnectorCompaction,
    GroupCommit,
    PartResult,
    PublishedGroup,
    PublishedParts,
)
from spark_jobs.spi.connector import Connector
from spark_jobs.spi.tables import TableHandle
from tests.support.paimon_tables import NAME, append, create
from tests.support.reachable import needed, stored

FULL = CompactSpec(mode="full")
VECTORS = {"deletion-vectors.enabled": "true"}


def small_files(
    connector: Connector, options: Mapping[str, str] | None = None, *, rows_each: int = 1
) -> TableHandle:
    """Two partitions with three files each, snapshot 3; ids are the file's number times ten."""
    create(connector, {"id": "int", "p": "int"}, ["p"], options)
    for number in range(3):
        ids = [10 * number + row for row in range(rows_each)]
        append(connector, [{"id": i, "p": p} for p in (0, 1) for i in ids], f"op-{number}")
    return connector.metadata.load_table(NAME)


def planned(connector: Connector, table: TableHandle, spec: CompactSpec = FULL) -> CompactionGroup:
    """The only group of a plan."""
    (group,) = compaction_of(connector).plan(table, spec, lambda _: True).groups
    return group


def compaction_of(connector: Connector) -> ConnectorCompaction:
    assert connector.compaction is not None
    return connector.compaction


def compacted(
    connector: Connector, table: TableHandle, group: CompactionGroup, spec: CompactSpec = FULL
) -> list[PartResult]:
    """The parts of a group, whose files are written."""
    compactor = compaction_of(connector).compactor(table, spec)
    return [
        PartResult(part, tuple(compactor.compact(part.native, f"task-{part.number}")))
        for part in group.parts
    ]


def noted(done: PublishedParts, lost: frozenset[int]) -> dict[str, str]:
    """Properties that say what was published."""
    return {"done": json.dumps(sorted(done.partitions)), "lost": json.dumps(sorted(lost))}


def publish(
    connector: Connector, table: TableHandle, results: Sequence[PartResult]
) -> PublishedGroup:
    return compaction_of(connector).publish(table, results, GroupCommit("compaction", noted))


def all_of(connector: Connector, table: TableHandle) -> PublishedGroup:
    """A whole compaction."""
    return publish(connector, table, compacted(connector, table, planned(connector, table)))


def document(warehouse: Path, snapshot_id: int) -> dict[str, Any]:
    folder = warehouse / "shop.db" / "orders"
    found: dict[str, Any] = json.loads((folder / f"snapshot/snapshot-{snapshot_id}").read_text())
    return found


def file_names(results: Sequence[PartResult], partition: int) -> set[str]:
    """The names of the new files in a partition."""
    return {
        file["path"].rpartition("/")[2]
        for result in results
        if result.part.partition == partition_key({"p": partition})
        for fragment in result.fragments
        for file in fragment.document["compacted"]["added"]
    }


def is_clean(warehouse: Path) -> bool:
    folder = warehouse / "shop.db" / "orders"
    return stored(folder) == needed(folder)
