"""Whatever way a file is written, bounds of its chunks leave out no NaN and no zero."""

from __future__ import annotations

from collections.abc import Callable
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
from spark_jobs.datafiles.parquet.rewrite import rewrite_whole
from spark_jobs.datafiles.parquet.splice import splice
from spark_jobs.datafiles.parquet.writer import ParquetFileWriter, WrittenFile
from spark_jobs.datafiles.rolling_writer import NewFiles
from tests.datafiles.floats import (
    NAN_BITS,
    PLAIN,
    array_of,
    float_leaves,
    footer_of,
    has_page_bounds,
    leaf_values,
    require_sound_bounds,
    with_narrow_bounds,
)
from tests.datafiles.test_rewrite import delete, update
from tests.support.turns import examples

LOCAL = pafs.LocalFileSystem()
NAN = float("nan")


def columns_of(values: list[Any], kind: pa.DataType) -> pa.Table:
    """The same values flat and in each kind of nested column, with a column ``id``."""
    flat = array_of(kind, values)
    count = len(values)
    half = pa.array(np.arange(0, count + 1) // 2 * 2 % (count + 1), pa.int32())
    offsets = pa.array(np.sort(half.to_numpy()), pa.int32())
    listed = pa.ListArray.from_arrays(offsets, flat.slice(0, int(offsets[-1].as_py())))
    keys = pa.array([str(n) for n in range(len(listed.values))])
    missing = pa.array([n % 5 == 4 for n in range(count)])
    within = pa.StructArray.from_arrays([flat], ["x"], mask=missing)
    around = pa.StructArray.from_arrays([listed], ["l"])
    return pa.table(
        {
            "id": pa.array(range(count), pa.int64()),
            "f": flat,
            "l": listed,
            "s": within,
            "t": around,
            "m": pa.MapArray.from_arrays(offsets, keys, listed.values),
        }
    )


def spliced(source: Path, target: Path, rows: pa.Table) -> WrittenFile:
    return splice(LOCAL, str(source), str(target), update("id", {0: 9}, pa.int64()), Compression())


def updated(source: Path, target: Path, rows: pa.Table) -> WrittenFile:
    kind = rows.schema.field("f").type
    new = update("f", {0: NAN, rows.num_rows - 1: -0.0}, kind)
    return splice(LOCAL, str(source), str(target), new, Compression())


def deleted(source: Path, target: Path, rows: pa.Table) -> WrittenFile:
    return splice(LOCAL, str(source), str(target), delete(0), Compression("snappy", None))


def converted(source: Path, target: Path, rows: pa.Table) -> WrittenFile:
    mappings = [FieldMapping(each, each) for each in rows.schema]
    mappings[1] = FieldMapping(pa.field("f", pa.float64()), pa.field("f", rows["f"].type, False))
    changes = update("id", {0: 9}, pa.int64())
    return splice(LOCAL, str(source), str(target), changes, Compression(), mappings)


def whole(source: Path, target: Path, rows: pa.Table) -> WrittenFile:
    changes = update("id", {0: 9}, pa.int64())
    return rewrite_whole(LOCAL, str(source), str(target), changes, Compression())


def new(source: Path, target: Path, rows: pa.Table) -> WrittenFile:
    writer = ParquetFileWriter(LOCAL, str(target), rows.schema, Compression())
    writer.write_row_group(rows.slice(0, 2))
    writer.write_row_group(rows.slice(2))
    return writer.finish()


def put_together(source: Path, target: Path, rows: pa.Table, size: int) -> WrittenFile:
    none = np.empty(0, np.int64)
    file = InputFile(str(source), rows.num_rows, none)
    files = NewFiles(LOCAL, rows.schema, size, Compression())
    written = concatenate(
        LOCAL, [file, InputFile(file.path, file.row_count, none)], str(target), files
    )
    assert written is not None
    return written


def copied(source: Path, target: Path, rows: pa.Table) -> WrittenFile:
    return put_together(source, target, rows, 1)


def encoded(source: Path, target: Path, rows: pa.Table) -> WrittenFile:
    return put_together(source, target, rows, 2**28)


WAYS: list[Callable[[Path, Path, pa.Table], WrittenFile]] = [
    *(spliced, updated, deleted, converted, whole, new, copied, encoded)
]
# What they encode themselves: all, or the column that they change.
ENCODERS = {whole: "fstlm", new: "fstlm", encoded: "fstlm", updated: "f", converted: "f"}


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@settings(
    max_examples=examples(25),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_bounds_include_every_value(
    tmp_path: Path, way: Callable[[Path, Path, pa.Table], WrittenFile], data: Any
) -> None:
    kind = data.draw(st.sampled_from([pa.float32(), pa.float64()]))
    value = st.one_of(
        st.sampled_from(PLAIN), st.sampled_from(PLAIN), st.none(), st.sampled_from(NAN_BITS[kind])
    )
    rows = columns_of(data.draw(st.lists(value, min_size=2, max_size=12)), kind)
    source, target = tmp_path / "source.parquet", tmp_path / "target.parquet"
    pq.write_table(
        rows,
        source,
        row_group_size=data.draw(st.integers(1, rows.num_rows)),
        use_dictionary=data.draw(st.booleans()),
        write_statistics=data.draw(st.booleans()),
        write_page_index=data.draw(st.booleans()),
        compression=data.draw(st.sampled_from(["zstd", "snappy"])),
        store_schema=False,
    )
    if data.draw(st.booleans()):
        with_narrow_bounds(source, data.draw(st.sampled_from([None, NAN])))
        event("bounds of a careless writer")

    written = way(source, target, rows)

    require_sound_bounds(target)
    found = pq.ParquetFile(target).read().column("f")
    flat = found.drop_null().to_numpy()
    about = written.statistics["f"]
    assert (about.nan_count, about.null_count) == (np.isnan(flat).sum(), found.null_count)
    assert not np.isnan(flat).any() or (about.minimum, about.maximum) == (None, None)


@pytest.mark.parametrize("way", ENCODERS, ids=lambda way: way.__name__)
def test_pages_that_are_encoded_have_no_bounds_beside_a_nan(
    tmp_path: Path, way: Callable[[Path, Path, pa.Table], WrittenFile]
) -> None:
    rows = columns_of([1.0, NAN_BITS[pa.float64()][0], 2.0, None], pa.float64())
    source, target = tmp_path / "source.parquet", tmp_path / "target.parquet"
    pq.write_table(rows, source, store_schema=False)

    way(source, target, rows)

    file = pq.ParquetFile(target)
    checked = 0
    for group, leaf, meta in float_leaves(footer_of(target)):
        name = file.schema.column(leaf).path[0]
        if name in ENCODERS[way] and np.isnan(leaf_values(file, group, leaf)).any():
            assert not has_page_bounds(target, meta)
            checked += 1
    assert checked


def test_bounds_of_numbers_alone_stay(tmp_path: Path) -> None:
    rows = columns_of([1.0, -0.0, 2.0, None], pa.float64())
    source, target = tmp_path / "source.parquet", tmp_path / "target.parquet"
    pq.write_table(rows, source, store_schema=False)

    for way in WAYS:
        if way is not updated:
            way(source, target, rows)
            chunk = pq.ParquetFile(target).metadata.row_group(0).column(1)
            assert chunk.statistics.has_min_max
            assert str(chunk.statistics.min) == "-0.0"
