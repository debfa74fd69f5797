"""Rewriting against a list computation: any types, any row groups, any changes."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, event, given, settings

from spark_jobs.datafiles.file_changes import ColumnChange, FileChanges
from spark_jobs.datafiles.parquet.options import Compression
from spark_jobs.datafiles.parquet.rewrite import rewrite
from spark_jobs.datafiles.statistics import ColumnStatistics
from tests.datafiles.strategies import Sample, samples
from tests.support.turns import examples

LOCAL = pafs.LocalFileSystem()


@pytest.mark.slow
@settings(
    max_examples=examples(200),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(sample=samples())
def test_a_rewritten_file_holds_what_a_list_computation_says(
    tmp_path: Path, sample: Sample
) -> None:
    source, target = tmp_path / "source.parquet", tmp_path / "target.parquet"
    target.unlink(missing_ok=True)
    pq.write_table(
        sample.table,
        source,
        row_group_size=sample.row_group_size,
        store_decimal_as_integer=sample.decimal_as_integer,
        use_dictionary=sample.dictionary,
    )

    written = rewrite(LOCAL, str(source), str(target), changes_of(sample), Compression())

    expected = expected_rows(sample)
    event("all rows gone" if not expected else "rows left")
    if not expected:
        assert written is None
        assert not target.exists()
        return
    assert written is not None
    file = pq.ParquetFile(target)
    assert same(pq.ParquetFile(target).read().to_pylist(), expected)
    assert (written.rows, written.size) == (len(expected), target.stat().st_size)
    assert_same_parquet_columns(pq.ParquetFile(source), file)
    assert [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)] == [
        n for n in rows_left_per_group(sample) if n
    ]
    for name, statistics in written.statistics.items():
        kind = sample.table.schema.field(name).type
        assert_statistics(kind, [row[name] for row in expected], statistics)


def changes_of(sample: Sample) -> FileChanges:
    positions = np.array(sorted({*sample.updates, *sample.deletes}), dtype=np.int64)
    deleted = np.array([p in sample.deletes for p in positions.tolist()], dtype=np.bool_)
    updated = np.flatnonzero(~deleted)
    columns = {}
    for name in sample.assigned:
        if len(updated):
            values = [sample.updates[p][name] for p in positions[updated].tolist()]
            kind = sample.table.schema.field(name).type
            columns[name] = ColumnChange(updated, pa.array(values, kind))
    return FileChanges(positions, deleted, columns)


def expected_rows(sample: Sample) -> list[dict[str, Any]]:
    return [
        {**row, **sample.updates.get(i, {})}
        for i, row in enumerate(sample.table.to_pylist())
        if i not in sample.deletes
    ]


def rows_left_per_group(sample: Sample) -> list[int]:
    size, total = sample.row_group_size, sample.table.num_rows
    groups = [range(start, min(start + size, total)) for start in range(0, total, size)]
    return [sum(1 for row in group if row not in sample.deletes) for group in groups]


def same(left: Any, right: Any) -> bool:
    """Equality in which NaN equals NaN and -0.0 differs from 0.0."""
    if isinstance(left, float) and isinstance(right, float):
        return left.hex() == right.hex()
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[k], right[k]) for k in left)
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(map(same, left, right))
    return type(left) is type(right) and left == right


def assert_same_parquet_columns(before: pq.ParquetFile, after: pq.ParquetFile) -> None:
    assert len(before.schema) == len(after.schema)
    for i in range(len(before.schema)):
        old, new = before.schema.column(i), after.schema.column(i)
        assert (old.path, old.physical_type, str(old.logical_type), old.max_definition_level) == (
            new.path,
            new.physical_type,
            str(new.logical_type),
            new.max_definition_level,
        )


def assert_statistics(kind: pa.DataType, values: list[Any], found: ColumnStatistics) -> None:
    present = [value for value in values if value is not None]
    assert found.null_count == len(values) - len(present)
    unbounded = pa.types.is_nested(kind) or not present
    if unbounded or any(isinstance(v, float) and math.isnan(v) for v in present):
        assert (found.minimum, found.maximum) == (None, None)
    else:
        assert (found.minimum, found.maximum) == (min(present), max(present))
    assert ColumnStatistics.from_json(found.to_json()) == found
