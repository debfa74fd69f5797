"""Parquet files as different writers lay them out, and what must hold of one that was rewritten."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st


@dataclass(frozen=True)
class Layout:
    """How a file is written, as arguments of ``pq.write_table``."""

    arguments: dict[str, Any] = field(default_factory=dict)

    def write(self, table: pa.Table, where: Any) -> None:
        pq.write_table(table, where, **self.arguments)


_ENCODINGS: dict[str, tuple[pa.DataType, ...]] = {
    "DELTA_BINARY_PACKED": (pa.int32(), pa.int64()),
    "DELTA_LENGTH_BYTE_ARRAY": (pa.string(), pa.binary()),
    "DELTA_BYTE_ARRAY": (pa.string(), pa.binary()),
    "BYTE_STREAM_SPLIT": (pa.float32(), pa.float64(), pa.int32(), pa.int64()),
    "PLAIN": (pa.string(), pa.int32(), pa.int64(), pa.float64(), pa.bool_()),
    "RLE": (pa.bool_(),),
}


@st.composite
def layouts(draw: st.DrawFn, schema: pa.Schema, rows: int) -> Layout:
    """Codecs, page versions, page sizes, dictionaries that overflow, other encodings, indexes."""
    arguments: dict[str, Any] = {
        "row_group_size": draw(st.integers(1, rows)),
        "compression": draw(st.sampled_from(["zstd", "snappy", "gzip", "none", "brotli", "lz4"])),
        "data_page_version": draw(st.sampled_from(["1.0", "2.0"])),
        "version": draw(st.sampled_from(["1.0", "2.4", "2.6"])),
        "data_page_size": draw(st.sampled_from([16, 1024 * 1024])),
        "write_batch_size": draw(st.sampled_from([1, 4, 1024])),
        "dictionary_pagesize_limit": draw(st.sampled_from([16, 1024 * 1024])),
        "write_page_index": draw(st.booleans()),
        "write_page_checksum": draw(st.booleans()),
        "write_statistics": draw(st.booleans()),
        "store_schema": draw(st.booleans()),
        "store_decimal_as_integer": draw(st.booleans()),
        "use_dictionary": draw(st.booleans()),
    }
    if not arguments["use_dictionary"]:
        encodings = {}
        for each in schema:
            fitting = [name for name, kinds in _ENCODINGS.items() if each.type in kinds]
            if fitting and draw(st.booleans()):
                encodings[each.name] = draw(st.sampled_from(sorted(fitting)))
        if encodings:
            arguments["column_encoding"] = encodings
    return Layout(arguments)


def require_consistent(path: Any) -> None:
    """What a footer says of a file agrees with the file."""
    file = pq.ParquetFile(path)
    metadata = file.metadata
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    assert sum(group.num_rows for group in groups) == metadata.num_rows
    end = 4
    for number, group in enumerate(groups):
        chunks = [group.column(i) for i in range(group.num_columns)]
        assert group.total_byte_size == sum(chunk.total_uncompressed_size for chunk in chunks)
        for chunk in chunks:
            assert _start(chunk) == end
            end += chunk.total_compressed_size
            assert (chunk.has_offset_index, chunk.has_column_index) == (False, False)
            values = file.read_row_group(number, columns=[chunk.path_in_schema]).column(0)
            _require_true_statistics(chunk, values)


def _start(chunk: Any) -> int:
    if chunk.has_dictionary_page:
        return min(chunk.dictionary_page_offset, chunk.data_page_offset)
    return int(chunk.data_page_offset)


def _require_true_statistics(chunk: Any, values: pa.ChunkedArray) -> None:
    statistics = chunk.statistics
    if statistics is None or pa.types.is_nested(values.type):
        return
    if statistics.has_null_count:
        assert statistics.null_count == values.null_count
    if not statistics.has_min_max or pa.types.is_floating(values.type):
        return
    present = values.drop_null().to_pylist()
    if pa.types.is_decimal(values.type) and chunk.physical_type.startswith("INT"):
        # pyarrow shows these as integers only.
        raw = (statistics.min_raw, statistics.max_raw)
        bounds = tuple(Decimal(each).scaleb(-values.type.scale) for each in raw)
    else:
        bounds = (statistics.min, statistics.max)
    assert bounds == (min(present), max(present))
