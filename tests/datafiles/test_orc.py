"""ORC files are scanned by stripes, and rewritten as parquet."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

from spark_jobs.datafiles.field_mapping import FieldMapping
from spark_jobs.datafiles.file_changes import ColumnChange, FileChanges
from spark_jobs.datafiles.file_scan import FileScan
from spark_jobs.datafiles.key_probe import KeyProbe
from spark_jobs.datafiles.parquet.options import Compression
from spark_jobs.datafiles.parquet.rewrite import rewrite
from spark_jobs.datafiles.row_groups import read_row
from spark_jobs.errors import CatalogError, ErrorCode

FILES = pafs.LocalFileSystem()
ROWS = 50_000
NOTHING = np.zeros(0, dtype=np.int64)
OLD = pa.schema([("id", pa.int64()), ("a.b", pa.string()), ("s", pa.struct([("x", pa.int32())]))])
NEW_STRUCT = pa.struct([("y", pa.string()), ("x", pa.int64())])
MAPPINGS = (
    FieldMapping(pa.field("id", pa.int64()), OLD.field("id")),
    FieldMapping(
        pa.field("s", NEW_STRUCT),
        OLD.field("s"),
        (
            FieldMapping(pa.field("y", pa.string()), None),
            FieldMapping(pa.field("x", pa.int64()), pa.field("x", pa.int32())),
        ),
    ),
    FieldMapping(pa.field("c", pa.string()), OLD.field("a.b")),
    FieldMapping(pa.field("n", pa.int32()), None),
)
BY_NAME = {each.field.name: each for each in MAPPINGS}
FIELDS = [each.field for each in MAPPINGS]


def row(i: int) -> dict[str, Any]:
    struct = {"y": None, "x": i} if i % 3 else None
    return {"id": i, "s": struct, "c": f"{i:040}" if i % 2 else None, "n": None}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("orc") / "data.orc")
    rows = [row(i) for i in range(ROWS)]
    columns = {
        "id": pa.array([each["id"] for each in rows]),
        "a.b": pa.array([each["c"] for each in rows]),
        "s": pa.array([each["s"] and {"x": each["s"]["x"]} for each in rows], OLD.field("s").type),
    }
    orc.write_table(pa.table(columns, OLD), path, stripe_size=100_000, batch_size=1_000)
    assert orc.ORCFile(path).nstripes > 2
    return path


def test_all_rows(path: str) -> None:
    found = list(FileScan(FILES, FIELDS, {}, BY_NAME).rows(path, np.array([0, 40_000])))

    positions = np.concatenate([each for each, _ in found]).tolist()
    assert positions == [i for i in range(ROWS) if i not in (0, 40_000)]
    assert pa.concat_tables([rows for _, rows in found]).to_pylist() == list(map(row, positions))


def test_rows_with_wanted_keys(path: str) -> None:
    probes = {"id": KeyProbe(pa.array([7, 30_001, ROWS + 1]))}
    found = list(FileScan(FILES, FIELDS, probes, BY_NAME).rows(path, NOTHING))
    assert [place for places, _ in found for place in places] == [7, 30_001]
    assert [each for _, rows in found for each in rows.to_pylist()] == [row(7), row(30_001)]


def test_one_row(path: str) -> None:
    found = read_row(FILES, path, 30_001, ["c", "n", "s"], MAPPINGS)
    assert found == {name: row(30_001)[name] for name in ("c", "n", "s")}


def test_the_rewritten_file_is_parquet_with_the_tables_columns(path: str, tmp_path: Path) -> None:
    target = str(tmp_path / "new.parquet")
    values = ColumnChange(np.array([1]), pa.array([5], pa.int32()))
    changes = FileChanges(np.array([3, 40_000]), np.array([True, False]), {"n": values})

    written = rewrite(FILES, path, target, changes, Compression(), MAPPINGS)

    expected = [row(i) | ({"n": 5} if i == 40_000 else {}) for i in range(ROWS) if i != 3]
    assert pq.read_table(target).to_pylist() == expected
    assert written is not None
    assert (written.rows, written.statistics["n"].maximum) == (ROWS - 1, 5)


def test_no_row_is_left(path: str, tmp_path: Path) -> None:
    changes = FileChanges(np.arange(ROWS), np.ones(ROWS, dtype=bool), {})
    target = tmp_path / "new.parquet"
    assert rewrite(FILES, path, str(target), changes, Compression(), MAPPINGS) is None
    assert not target.exists()


def test_a_damaged_file_is_named(path: str, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.orc"
    damaged.write_bytes(Path(path).read_bytes()[:-100])
    changes = FileChanges(np.array([3]), np.array([True]), {})
    with pytest.raises(CatalogError) as raised:
        rewrite(FILES, str(damaged), str(tmp_path / "n.parquet"), changes, Compression(), MAPPINGS)

    assert raised.value.code is ErrorCode.DATA_FILE_UNREADABLE
    assert str(damaged) in raised.value.message
