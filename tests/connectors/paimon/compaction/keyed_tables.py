"""Small tables with a primary key: written, compacted and looked at without Spark and Java."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pypaimon.manifest.manifest_file_manager import ManifestFileManager
from pypaimon.manifest.manifest_list_manager import ManifestListManager

from spark_jobs.connectors.paimon.table.table_handle import PinnedTable, pinned_table
from spark_jobs.contract.compaction import CompactionReport, CompactSpec
from spark_jobs.contract.request import CatalogSpec
from spark_jobs.spi.connector import Connector
from tests.support import compaction_runs
from tests.support.direct_merges import live_rows, merge_rows
from tests.support.keyed_checker import problems_of
from tests.support.paimon_tables import (
    NAME,
    append_with_pypaimon,
    create,
    read,
    snapshot_ids,
)

COLUMNS = {"p": "int", "id": "int", "v": "string"}
KEY = ("p", "id")
FULL = CompactSpec(mode="full")
MINOR = CompactSpec()
ONE_BUCKET = {"bucket": "1"}
KINDS = ("+I", "-U", "+U", "-D")


def row(number: int, text: str | None = "a", p: int = 0) -> dict[str, Any]:
    return {"p": p, "id": number, "v": text}


def new_table(connector: Connector, options: Mapping[str, str] | None = None) -> None:
    create(connector, COLUMNS, ["p"], {**ONE_BUCKET, **(options or {})}, primary_key=KEY)


def native(connector: Connector) -> PinnedTable:
    return pinned_table(connector.metadata.load_table(NAME))


def records(connector: Connector, *batches: Sequence[dict[str, Any]]) -> None:
    """Each batch becomes a file of level 0 in each bucket."""
    for batch in batches:
        append_with_pypaimon(connector.metadata.load_table(NAME), batch)


def merged(connector: Connector, rows: Sequence[dict[str, Any]], *, deletes: bool = False) -> None:
    merge_rows(connector, NAME, KEY, rows, ["v"], lambda _: deletes, may_exist=True)


def seen(connector: Connector) -> list[dict[str, Any]]:
    """The rows that readers see, by this project's reader."""
    found = live_rows(connector, connector.metadata.load_table(NAME))
    columns = connector.metadata.load_table(NAME).column_names
    return sorted([{name: each[name] for name in columns} for each in found], key=repr)


def levels(connector: Connector) -> dict[int, int]:
    """The number of files on each level."""
    return dict(Counter(entry.file.level for _, entry in native(connector).files.located_entries))


def file_names(connector: Connector) -> set[str]:
    return {entry.file.file_name for _, entry in native(connector).files.located_entries}


def compact(
    connector: Connector, warehouse: Path, spec: CompactSpec = FULL, *, shows: bool = False
) -> CompactionReport:
    """Compact, and check what must hold of every compaction; ``shows``: rows may appear."""
    before, snapshots = seen(connector), len(snapshot_ids(connector))
    result = compaction_runs.compact(connector, CatalogSpec("paimon", str(warehouse)), spec)
    assert result.error is None, result.error
    assert shows or seen(connector) == before
    assert read(connector) == seen(connector)
    found = native(connector)
    # pypaimon's writers, which set no field ids, have written some of the files.
    assert problems_of(found.table, numbered=False) == []
    report = result.compaction
    assert report is not None
    assert len(snapshot_ids(connector)) == snapshots + len(report.snapshots)
    if report.snapshots:
        assert (found.snapshot.commit_kind, found.snapshot.commit_identifier) == ("COMPACT", 2)
        again = compaction_runs.compact(connector, CatalogSpec("paimon", str(warehouse)), spec)
        assert again.error is None
        assert again.compaction is not None
        assert again.compaction.snapshots == ()
    return report


def changelog(connector: Connector) -> list[tuple[str, int, str | None]]:
    """The records in the changelog of the latest snapshot, in order: kind, id and v."""
    found = native(connector)
    manifests = ManifestListManager(found.table).read_changelog(found.snapshot)
    entries = ManifestFileManager(found.table).read_entries_parallel(manifests)
    rows = [
        each
        for entry in entries
        for each in pq.ParquetFile(
            Path(found.path) / f"p={entry.partition.values[0]}/bucket-0/{entry.file.file_name}"
        )
        .read()
        .to_pylist()
    ]
    return [(KINDS[each["_VALUE_KIND"]], each["id"], each["v"]) for each in rows]
