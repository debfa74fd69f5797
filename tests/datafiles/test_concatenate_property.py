"""Files are put together: any types, layouts, row groups and deleted rows, against a list."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from spark_jobs.datafiles.concatenate import InputFile, concatenate
from spark_jobs.datafiles.field_mapping import FieldMapping
from spark_jobs.datafiles.parquet.options import Compression
from spark_jobs.datafiles.parquet.writer import ParquetFileWriter
from spark_jobs.datafiles.rolling_writer import NewFiles
from tests.datafiles.parquet_files import layouts, require_consistent
from tests.datafiles.strategies import types
from tests.datafiles.test_rewrite_property import same
from tests.support.turns import examples

LOCAL = pafs.LocalFileSystem()


@st.composite
def tables(draw: st.DrawFn) -> list[pa.Table]:
    columns = draw(st.lists(types(), min_size=1, max_size=4))
    nullable = [draw(st.booleans()) for _ in columns]
    fields = [
        pa.field(f"c.{i}", kind, nullable=may_be_null)
        for i, ((kind, _), may_be_null) in enumerate(zip(columns, nullable, strict=True))
    ]
    found = []
    for _ in range(draw(st.integers(1, 4))):
        rows = draw(st.integers(1, 12))
        arrays = [
            pa.array(
                draw(st.lists(st.none() | value if n else value, min_size=rows, max_size=rows)),
                kind,
            )
            for (kind, value), n in zip(columns, nullable, strict=True)
        ]
        found.append(pa.Table.from_arrays(arrays, schema=pa.schema(fields)))
    return found


@pytest.mark.slow
@settings(
    max_examples=examples(200),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_the_new_file_has_all_rows_in_order(tmp_path: Path, data: Any) -> None:
    parts = data.draw(tables())
    names = data.draw(st.permutations(parts[0].column_names))
    schema = pa.schema([parts[0].schema.field(n).with_name(f"{n} new") for n in names])
    # As if all columns had been renamed and moved.
    mappings = [
        FieldMapping(field, parts[0].schema.field(name))
        for field, name in zip(schema, names, strict=True)
    ]
    is_older = data.draw(st.booleans())
    target_size = data.draw(st.sampled_from([1, 200, 2**28]))
    compression = data.draw(st.sampled_from([Compression(), Compression("snappy", None)]))
    files = NewFiles(LOCAL, schema if is_older else parts[0].schema, target_size, compression)
    inputs, left = [], []
    for number, part in enumerate(parts):
        path = str(tmp_path / f"{number}.parquet")
        if data.draw(st.booleans()):
            size = data.draw(st.integers(1, part.num_rows))
            pq.write_table(part, path, size, store_decimal_as_integer=True, store_schema=False)
        else:
            data.draw(layouts(part.schema, part.num_rows)).write(part, path)
        rows = st.integers(0, part.num_rows - 1)
        deleted = np.array(sorted(data.draw(st.sets(rows) | st.just(set()))), np.int64)
        keep = np.isin(np.arange(part.num_rows), deleted, invert=True)
        inputs.append(InputFile(path, part.num_rows, deleted, mappings if is_older else None))
        left.append(part.filter(pa.array(keep)))
    target, plain = tmp_path / "target.parquet", tmp_path / "plain.parquet"
    target.unlink(missing_ok=True)

    written = concatenate(LOCAL, inputs, str(target), files)

    expected = pa.concat_tables(left)
    if is_older:
        expected = expected.select(names).rename_columns(schema.names)
    event("rows left" if expected.num_rows else "all rows gone")
    if not expected.num_rows:
        assert written is None
        assert not target.exists()
        return
    assert written is not None
    file = pq.ParquetFile(target, page_checksum_verification=True)
    assert same(file.read().to_pylist(), expected.to_pylist())
    writer = ParquetFileWriter(LOCAL, str(plain), expected.schema, compression)
    writer.write_row_group(expected)
    fresh = writer.finish()
    assert (written.rows, dict(written.statistics)) == (fresh.rows, dict(fresh.statistics))
    assert written.size == target.stat().st_size
    assert file.schema.equals(pq.ParquetFile(plain).schema)
    require_consistent(target)
