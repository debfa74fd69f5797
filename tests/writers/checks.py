"""What a table's files and their metadata must say after a statement, by several readers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Context, Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from spark_jobs.datafiles.parquet import footer as footers
from spark_jobs.datafiles.parquet.footer import MetaField
from tests.writers.columns import FLAT, schema_of
from tests.writers.foreign_tables import ForeignTable
from tests.writers.history import History

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Row = Mapping[str, Any]


def check(history: History, foreign: Sequence[Path]) -> set[Path]:
    """Compare rows by two readers, then look at the files that are new; returns all live ones.

    ``foreign`` are the files of the other writer.

    Raises:
        AssertionError: names what differs.
    """
    table, columns = history.table, history.columns
    expected = history.expected()
    _require_rows("Spark", by_spark(history.spark, table, columns), expected)
    _require_rows("the table's library", by_library(table, columns), expected)
    live = table.live_files()
    new = [path for path in live if path not in foreign]
    for path in new:
        for problem in problems_of_footer(path, columns):
            raise AssertionError(f"{path}: {problem}")
    check_bounds(table, columns)
    check_look_ups(new, columns)
    return set(live)


def by_spark(spark: SparkSession, table: ForeignTable, columns: Sequence[str]) -> list[Row]:
    """All rows as this project reads them, with Spark's reader where it can, and no filter."""
    connector = table.connector()
    handle = connector.metadata.load_table(table.name)
    files = connector.metadata.plan_files(handle)
    frame = connector.scan.read(spark, handle, files, columns).select(*columns)
    batches = frame._collect_as_arrow()
    # The zone of the session, in which Spark collects instants, is UTC.
    return _arranged([{**row} for batch in batches for row in batch.to_pylist()])


def by_library(table: ForeignTable, columns: Sequence[str]) -> list[Row]:
    """All rows as pypaimon or pyiceberg reads them."""
    if table.format == "paimon":
        builder = table.connector().metadata.load_table(table.name).native.table.new_read_builder()
        builder = builder.with_projection(list(columns))
        found = builder.new_read().to_arrow(builder.new_scan().plan().splits())
    else:
        library = table.library().load_table((table.name.database, table.name.table))
        found = library.scan(selected_fields=tuple(columns)).to_arrow()
    return _arranged(found.select(list(columns)).to_pylist())


def _arranged(found: Sequence[Row]) -> list[Row]:
    return sorted(found, key=lambda each: each["id"])


def _require_rows(reader: str, found: Sequence[Row], expected: Sequence[Row]) -> None:
    assert len(found) == len(expected), f"{reader} reads {len(found)} rows, not {len(expected)}"
    for one, other in zip(found, expected, strict=True):
        for name, value in other.items():
            # By their text, because -0.0 equals 0.0.
            assert repr(one[name]) == repr(value), (
                f"{reader} reads {one[name]!r} in column {name} of row {other['id']}, not {value!r}"
            )


def problems_of_footer(path: Path, columns: Sequence[str]) -> Iterator[str]:
    """What the footer of a file says that its values do not hold."""
    with pq.ParquetFile(path, page_checksum_verification=True) as file:
        for number in range(file.num_row_groups):
            group, values = file.metadata.row_group(number), file.read_row_group(number)
            if group.num_rows != values.num_rows:
                yield f"row group {number} has {values.num_rows} rows, not {group.num_rows}"
            for place in range(group.num_columns):
                chunk = group.column(place)
                if chunk.path_in_schema in FLAT and chunk.path_in_schema in columns:
                    yield from _problems_of_chunk(chunk, values.column(chunk.path_in_schema))
                if chunk.has_column_index or chunk.has_offset_index:
                    yield f"{chunk.path_in_schema} has page indexes, which rewritten files lack"
    with pa.OSFile(str(path)) as stream:
        for group in footers.read_footer(stream).row_groups:
            for chunk in footers.chunks_of(group):
                if any(each in footers.meta_of(chunk) for each in MetaField.BLOOM_FILTER):
                    yield "a chunk has a bloom filter of its source"


def _problems_of_chunk(chunk: Any, values: pa.ChunkedArray) -> Iterator[str]:
    name, statistics = chunk.path_in_schema, chunk.statistics
    if statistics is None:
        return
    if statistics.has_null_count and statistics.null_count != values.null_count:
        yield f"{name} has {values.null_count} NULLs, not {statistics.null_count}"
    known = [each for each in values.to_pylist() if each is not None]
    if statistics.has_min_max and chunk.physical_type != "INT96":
        low, high = _limits(chunk, values.type)
        for each in known:
            if not low <= each <= high:
                yield f"{name} has {each!r}, outside of {low!r} to {high!r}"


def _limits(chunk: Any, kind: pa.DataType) -> tuple[Any, Any]:
    statistics = chunk.statistics
    if not pa.types.is_decimal(kind):
        return statistics.min, statistics.max
    raw = (statistics.min_raw, statistics.max_raw)
    # Numbers, or big-endian bytes of one.
    low, high = (int.from_bytes(x, "big", signed=True) if isinstance(x, bytes) else x for x in raw)
    exact = Context(prec=38)
    return Decimal(low).scaleb(-kind.scale, exact), Decimal(high).scaleb(-kind.scale, exact)


def check_bounds(table: ForeignTable, columns: Sequence[str]) -> None:
    """Compare the bounds that manifests have of live files with the values in them."""
    connector = table.connector()
    handle = connector.metadata.load_table(table.name)
    for planned in connector.metadata.plan_files(handle):
        held = pq.ParquetFile(planned.path).read()
        for name in (each for each in columns if each in FLAT):
            found = planned.ranges[name]
            values = held.column(name).cast(schema_of([name]).field(name).type, safe=False)
            known = [each for each in values.to_pylist() if each is not None]
            said = f"the manifest's bounds of {name} in {planned.path}"
            if found.null_count is not None:
                assert found.null_count == values.null_count, f"{said}: NULLs {found.null_count}"
            if found.minimum is None or found.maximum is None:
                continue
            for each in known:
                assert found.minimum <= each <= found.maximum, f"{said} exclude {each!r}: {found}"


def check_look_ups(files: Sequence[Path], columns: Sequence[str]) -> None:
    """Let DuckDB look for values by whatever files say about their pages and row groups."""
    readable = [str(each) for each in files if not _splits_numbers(each)]
    if not readable:
        return
    source = f"read_parquet({readable!r})"
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    for name in (each for each in columns if each in FLAT):
        connection.execute(
            f'CREATE OR REPLACE TABLE held AS SELECT "{name}" AS v, count(*) AS n '
            f'FROM {source} WHERE "{name}" IS NOT NULL GROUP BY 1 LIMIT 12'
        )
        for value, count in connection.execute("SELECT v, n FROM held").fetchall():
            query = f'SELECT count(*) FROM {source} WHERE "{name}" = ?'
            (found,) = connection.execute(query, [value]).fetchone() or (0,)
            assert found >= count, f"DuckDB finds {found} of {count} rows with {name} = {value!r}"
    connection.close()


def _splits_numbers(path: Path) -> bool:
    """Whether a file has pages of BYTE_STREAM_SPLIT that DuckDB does not read."""
    metadata = pq.read_metadata(path)
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    chunks = [group.column(place) for group in groups for place in range(group.num_columns)]
    split = [each for each in chunks if "BYTE_STREAM_SPLIT" in each.encodings]
    return any(each.physical_type not in ("FLOAT", "DOUBLE") for each in split)
