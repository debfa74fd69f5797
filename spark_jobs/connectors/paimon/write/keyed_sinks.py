"""Describes the sinks of a write to a table with a primary key. Driver only."""

from __future__ import annotations

from collections import defaultdict
from typing import Final

import pyarrow.fs as pafs

from spark_jobs.connectors.paimon.format.manifest_entries import BucketKey, bucket_key_of
from spark_jobs.connectors.paimon.keyed.bucket_rewriter import Section
from spark_jobs.connectors.paimon.keyed.changelog import ChangelogFiles
from spark_jobs.connectors.paimon.library.data_files import key_range
from spark_jobs.connectors.paimon.read.planning import run_files, section_reader
from spark_jobs.connectors.paimon.table.primary_key import KeyedTable
from spark_jobs.connectors.paimon.table.table_handle import PinnedTable
from spark_jobs.connectors.paimon.write.bucket_choice import bucket_indexes
from spark_jobs.connectors.paimon.write.keyed_sink import Bucket, KeyedSinkFactory
from spark_jobs.connectors.paimon.write.table_layout import (
    NamePrefixes,
    changelog_compression,
    new_file_layout,
)
from spark_jobs.spi.writes import InsertedKeys, MergeWrite

_DEDUPLICATES: Final = "changelog-producer.row-deduplicate"
_IGNORED: Final = "changelog-producer.row-deduplicate-ignore-fields"


def keyed_sinks(
    table: PinnedTable,
    keyed: KeyedTable,
    write: MergeWrite,
    filesystem: pafs.FileSystem,
    written_to: pafs.FileSystem,
    prefixes: NamePrefixes,
) -> KeyedSinkFactory:
    """The sinks of ``write``, which read from ``filesystem`` and write to ``written_to``.

    A statement that replaces partitions writes into them as if they were empty, and is not in the
    changelog, as with Paimon's own engines.
    """
    appends = keyed.appends(write.inserted_keys) and not write.overwrites
    records = keyed.producer != "none" and not appends and not write.overwrites
    # An upsert does not change the first row of a key.
    keeps_rows = keyed.engine.kind == "first-row" and write.inserted_keys is InsertedKeys.UPSERTED
    return KeyedSinkFactory(
        name_prefix=prefixes.data,
        layout=new_file_layout(table, written_to, write.target_file_size),
        reader=section_reader(table, keyed, filesystem),
        appends=appends,
        level=keyed.highest_level,
        inserted_keys=write.inserted_keys,
        assigned_columns=write.assigned_columns,
        buckets={} if write.overwrites else _buckets(table, keyed),
        changelog=changelog_files(table, prefixes.changelog, keeps_rows=keeps_rows)
        if records
        else None,
        indexes=bucket_indexes(
            table, filesystem, written_to, prefixes.indexes, replaces=write.overwrites
        ),
    )


def changelog_files(table: PinnedTable, name_prefix: str, *, keeps_rows: bool) -> ChangelogFiles:
    """How the table keeps its changelog; ``keeps_rows``: rows of known keys stay what they are."""
    names = table.options.get(_IGNORED, "").split(",")
    asked = table.options.get(_DEDUPLICATES, "false").lower() == "true"
    return ChangelogFiles(
        name_prefix=name_prefix,
        compression=changelog_compression(table),
        drops_unchanged=asked or keeps_rows,
        ignored=tuple(name.strip() for name in names if name.strip()) if asked else (),
    )


def _buckets(table: PinnedTable, keyed: KeyedTable) -> dict[BucketKey, Bucket]:
    newest: dict[BucketKey, int] = defaultdict(lambda: -1)
    for _, entry in table.files.located_entries:
        place = bucket_key_of(entry)
        newest[place] = max(newest[place], entry.file.max_sequence_number)
    sections: dict[BucketKey, list[Section]] = defaultdict(list)
    for ordinal, unit in enumerate(table.files.units):
        if unit.is_pending:
            continue
        sections[bucket_key_of(table.files.unit_entries(ordinal)[0])].append(
            _section(table, keyed, ordinal)
        )
    return {
        place: Bucket(
            sections=tuple(sorted(sections[place], key=lambda each: each.first)),
            newest=number,
            is_pending=place in table.files.pending_buckets,
        )
        for place, number in newest.items()
    }


def _section(table: PinnedTable, keyed: KeyedTable, ordinal: int) -> Section:
    entries = table.files.unit_entries(ordinal)
    ranges = [key_range(entry) for entry in entries]
    return Section(
        ordinal=ordinal,
        files=run_files(table, ordinal),
        size=sum(entry.file.file_size for entry in entries),
        first=min(each.first for each in ranges),
        last=max(each.last for each in ranges),
        owes_changelog=any(keyed.owes_changelog(entry.file.level) for entry in entries),
    )
