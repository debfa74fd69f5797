"""Both ways to rewrite a file against each other: any layout, any types, any changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st

from spark_jobs.datafiles.parquet.footer import NotSpliceableError
from spark_jobs.datafiles.parquet.options import Compression
from spark_jobs.datafiles.parquet.rewrite import rewrite_whole
from spark_jobs.datafiles.parquet.splice import splice
from tests.datafiles.parquet_files import layouts, require_consistent
from tests.datafiles.strategies import samples
from tests.datafiles.test_rewrite_property import changes_of, expected_rows, same
from tests.support.turns import examples

LOCAL = pafs.LocalFileSystem()
_CODECS = [Compression(), Compression("snappy", None), Compression("none", None)]


@pytest.mark.slow
@settings(
    max_examples=examples(200),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_a_spliced_file_holds_what_a_whole_rewrite_holds(tmp_path: Path, data: Any) -> None:
    sample = data.draw(samples())
    expected = expected_rows(sample)
    assume(expected)
    layout = data.draw(layouts(sample.table.schema, sample.table.num_rows))
    compression = data.draw(st.sampled_from(_CODECS))
    source, spliced, whole = (str(tmp_path / f"{name}.parquet") for name in ("s", "a", "b"))
    layout.write(sample.table, source)
    changes = changes_of(sample)

    other = rewrite_whole(LOCAL, source, whole, changes, compression)
    try:
        written = splice(LOCAL, source, spliced, changes, compression)
    except NotSpliceableError as error:
        event(f"not spliced: {error}")
        return

    event("spliced")
    assert same(read_rows(spliced), expected)
    assert same(read_rows(spliced), read_rows(whole))
    assert (written.rows, dict(written.statistics)) == (other.rows, dict(other.statistics))
    assert written.size == Path(spliced).stat().st_size
    assert group_sizes(spliced) == group_sizes(whole)
    assert pq.ParquetFile(spliced).schema.equals(pq.ParquetFile(source).schema)
    require_consistent(spliced)


def read_rows(path: str) -> list[dict[str, Any]]:
    """By the parquet types alone, page checksums verified."""
    return pq.ParquetFile(path, page_checksum_verification=True).read().to_pylist()


def group_sizes(path: str) -> list[int]:
    metadata = pq.ParquetFile(path).metadata
    return [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
