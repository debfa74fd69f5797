"""Tables with a primary key whose files are written and committed by hand."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs
from pypaimon.manifest.manifest_file_manager import ManifestFileManager
from pypaimon.manifest.manifest_list_manager import ManifestListManager
from pypaimon.write.commit_message import CommitMessage

from spark_jobs.connectors.paimon.keyed.run_writer import SortedRunWriter, WrittenRun
from spark_jobs.connectors.paimon.library.data_files import new_keyed_file
from spark_jobs.connectors.paimon.library.table_schema import arrow_schema
from spark_jobs.datafiles.parquet.options import Compression
from spark_jobs.datafiles.rolling_writer import NewFiles
from tests.support.judged_values import Row

KINDS = ("+I", "-U", "+U", "-D")


def entries_of(table: Any) -> list[Any]:
    """The manifest entries of the live data files."""
    snapshot = table.snapshot_manager().get_latest_snapshot()
    manifests = ManifestListManager(table).read_all(snapshot) if snapshot else []
    return list(ManifestFileManager(table).read_entries_parallel(manifests, drop_stats=False))


def arrow_rows(table: Any, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Rows whose values are as in ``tests.support.judged_values``."""
    schema = arrow_schema(table)
    columns = [_array([row[field.name] for row in rows], field.type) for field in schema]
    return pa.Table.from_arrays(columns, schema=schema)


def write_run(
    table: Any, records: Iterable[tuple[str, Row]], first_number: int = 0, bucket: int = 0
) -> list[WrittenRun]:
    """Files of one bucket of a table without partitions; the records come in key order."""
    found = list(records)
    options = table.table_schema.options
    files = NewFiles(pafs.LocalFileSystem(), arrow_schema(table), 2**27, Compression())
    folder = f"{str(table.table_path).removeprefix('file:')}/bucket-{bucket}"
    writer = SortedRunWriter(
        files,
        tuple(table.trimmed_primary_keys),
        options.get("data-file.thin-mode") == "true",
        lambda: f"{folder}/data-{uuid.uuid4()}-0.parquet",
    )
    numbers = pa.array(range(first_number, first_number + len(found)), pa.int64())
    kinds = pa.array([KINDS.index(kind) for kind, _ in found], pa.int8())
    writer.write(arrow_rows(table, [row for _, row in found]), numbers, kinds)
    return [WrittenRun.from_json(run.to_json()) for run in writer.finish()]


def commit_runs(
    table: Any,
    runs: Iterable[WrittenRun],
    level: int,
    *,
    removed: Iterable[Any] = (),
    bucket: int = 0,
) -> None:
    """One commit that adds files and removes those of manifest entries."""
    added = [new_keyed_file(table, run, level) for run in runs]
    commit_files(table, added, removed=removed, bucket=bucket)


def commit_files(
    table: Any,
    added: Sequence[Any],
    *,
    removed: Iterable[Any] = (),
    index_adds: Iterable[Any] = (),
    bucket: int = 0,
) -> None:
    """One commit that adds files as pypaimon describes them and removes those of entries.

    ``index_adds``: entries of the index manifest.
    """
    deleted = [entry.file for entry in removed]
    message = CommitMessage(
        (), bucket, list(added), deleted_files=deleted, index_adds=list(index_adds)
    )
    commit = table.new_stream_write_builder().new_commit()
    try:
        commit.commit([message], uuid.uuid4().int % 10**9)
    finally:
        commit.close()


def _array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_timestamp(kind):
        unit = {"s": 10**9, "ms": 10**6, "us": 10**3}[kind.unit]
        counts = [None if value is None else value // unit for value in values]
        return pa.array(counts, pa.int64()).cast(kind)
    if pa.types.is_time(kind):
        milliseconds = [None if value is None else value // 1_000_000 for value in values]
        return pa.array(milliseconds, pa.int32()).cast(kind)
    return pa.array(values, kind)
