"""Manifest descriptions of data files of tables with a primary key, made with pypaimon. Driver
only.
"""

from __future__ import annotations

from typing import Any

from spark_jobs.connectors.paimon.keyed.run_writer import WrittenRun
from spark_jobs.connectors.paimon.library.data_files import (
    APPENDED,
    COMPACTED,
    manifest_statistics,
)
from spark_jobs.connectors.paimon.library.exact_partitions import encoded_row
from spark_jobs.connectors.paimon.library.table_schema import schema_id


def new_keyed_file(
    table: Any,
    run: WrittenRun,
    level: int,
    *,
    is_external: bool = False,
    is_changelog: bool = False,
) -> Any:
    """The manifest's description of a new data file, as by ``KeyValueDataFileWriter``.

    ``is_external``: the file is outside the table's directory. A file of a level above 0 counts as
    the result of a compaction, because Java's writers append to level 0 only; ``is_changelog``:
    never.
    """
    from pypaimon.data.timestamp import Timestamp
    from pypaimon.manifest.schema.data_file_meta import DataFileMeta

    key = table.trimmed_primary_keys_fields
    return DataFileMeta.create(
        file_name=run.path.rpartition("/")[2],
        file_size=run.size,
        row_count=run.rows,
        min_key=encoded_row(run.first_key, key),
        max_key=encoded_row(run.last_key, key),
        key_stats=manifest_statistics(key, run.key_statistics),
        value_stats=manifest_statistics(table.table_schema.fields, run.statistics),
        min_sequence_number=run.min_sequence_number,
        max_sequence_number=run.max_sequence_number,
        schema_id=schema_id(table),
        level=level,
        extra_files=[],
        creation_time=Timestamp.now(),
        delete_row_count=run.delete_count,
        file_source=APPENDED if level == 0 or is_changelog else COMPACTED,
        external_path=f"file:{run.path}" if is_external else None,
        file_path=run.path,
    )
