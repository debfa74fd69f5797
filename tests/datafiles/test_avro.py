"""Avro files are scanned by blocks, and rewritten as parquet."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest

from spark_jobs.datafiles.avro import row_groups
from spark_jobs.datafiles.field_mapping import FieldMapping
from spark_jobs.datafiles.file_changes import ColumnChange, FileChanges
from spark_jobs.datafiles.file_scan import FileScan
from spark_jobs.datafiles.key_probe import KeyProbe
from spark_jobs.datafiles.parquet.damage import reading_file
from spark_jobs.datafiles.parquet.options import Compression
from spark_jobs.datafiles.parquet.rewrite import rewrite
from spark_jobs.datafiles.row_groups import read_row
from spark_jobs.errors import CatalogError, ErrorCode
from tests.datafiles.avro_files import write

FILES = pafs.LocalFileSystem()
ROWS = 5_000
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
STORED = {
    "id": "long",
    "dropped": ["null", "bytes"],
    "s": ["null", {"type": "record", "name": "r_s", "fields": [{"name": "x", "type": "int"}]}],
    "a.b": ["string", "null"],
}


def row(i: int) -> dict[str, Any]:
    struct = {"y": None, "x": i} if i % 3 else None
    return {"id": i, "s": struct, "c": f"{i:040}" if i % 2 else None, "n": None}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    rows = [row(i) for i in range(ROWS)]
    stored = [each | {"dropped": b"\0", "a.b": each["c"]} for each in rows]
    return write(tmp_path_factory.mktemp("avro") / "data.avro", STORED, stored)


@pytest.fixture(params=["whole file", "several row groups"])
def _groups(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "several row groups":
        monkeypatch.setattr(row_groups, "_GROUP_BYTES", 50_000)


@pytest.mark.usefixtures("_groups")
def test_all_rows(path: str) -> None:
    found = list(FileScan(FILES, FIELDS, {}, BY_NAME).rows(path, np.array([0, 4_000]), ROWS))

    positions = np.concatenate([each for each, _ in found]).tolist()
    assert positions == [i for i in range(ROWS) if i not in (0, 4_000)]
    assert pa.concat_tables([rows for _, rows in found]).to_pylist() == list(map(row, positions))


@pytest.mark.usefixtures("_groups")
def test_rows_with_wanted_keys(path: str) -> None:
    probes = {"id": KeyProbe(pa.array([7, 3_001, ROWS + 1]))}
    found = list(FileScan(FILES, FIELDS, probes, BY_NAME).rows(path, NOTHING))
    assert [place for places, _ in found for place in places] == [7, 3_001]
    assert [each for _, rows in found for each in rows.to_pylist()] == [row(7), row(3_001)]


def test_row_groups_end_where_they_are_large_enough(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_groups, "_GROUP_BYTES", 50_000)
    with FILES.open_input_file(path) as stream:
        counts = [group.row_count for group in row_groups.row_groups(stream, [OLD.field("a.b")])]
    assert len(counts) == 3
    assert sum(counts) == ROWS
    assert max(counts) < 2_500


def test_columns_that_the_file_lacks_altogether_are_null(path: str) -> None:
    found = list(FileScan(FILES, [FIELDS[3]], {}, BY_NAME).rows(path, np.array([3])))
    assert sum(len(positions) for positions, _ in found) == ROWS - 1
    assert [rows.to_pylist() for _, rows in found] == [[{"n": None}] * (ROWS - 1)]


def test_one_row(path: str) -> None:
    found = read_row(FILES, path, 3_001, ["c", "n", "s"], MAPPINGS)
    assert found == {name: row(3_001)[name] for name in ("c", "n", "s")}


@pytest.mark.usefixtures("_groups")
def test_the_rewritten_file_is_parquet_with_the_tables_columns(path: str, tmp_path: Path) -> None:
    target = str(tmp_path / "new.parquet")
    values = ColumnChange(np.array([1]), pa.array([5], pa.int32()))
    changes = FileChanges(np.array([3, 4_000]), np.array([True, False]), {"n": values})

    written = rewrite(FILES, path, target, changes, Compression(), MAPPINGS)

    expected = [row(i) | ({"n": 5} if i == 4_000 else {}) for i in range(ROWS) if i != 3]
    assert pq.read_table(target).to_pylist() == expected
    assert written is not None
    assert (written.rows, written.statistics["n"].maximum) == (ROWS - 1, 5)


def test_rows_survive_where_no_column_is_left(path: str, tmp_path: Path) -> None:
    target = str(tmp_path / "new.parquet")
    changes = FileChanges(np.array([3]), np.array([True]), {})
    rewrite(FILES, path, target, changes, Compression(), MAPPINGS[3:])
    assert pq.read_table(target).to_pylist() == [{"n": None}] * (ROWS - 1)


def test_no_row_is_left(path: str, tmp_path: Path) -> None:
    changes = FileChanges(np.arange(ROWS), np.ones(ROWS, dtype=bool), {})
    target = tmp_path / "new.parquet"
    assert rewrite(FILES, path, str(target), changes, Compression(), MAPPINGS) is None
    assert not target.exists()


def test_a_damaged_file_is_not_rewritten(path: str, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.avro"
    damaged.write_bytes(Path(path).read_bytes()[:-100])
    changes = FileChanges(np.array([3]), np.array([True]), {})
    with pytest.raises(CatalogError, match=str(damaged)) as raised:
        rewrite(FILES, str(damaged), str(tmp_path / "n.parquet"), changes, Compression(), MAPPINGS)
    assert raised.value.code is ErrorCode.DATA_FILE_UNREADABLE


class LostConnection(io.BytesIO):
    """A file whose second megabyte does not arrive."""

    def read(self, size: int | None = -1, /) -> bytes:
        if self.tell():
            raise ConnectionResetError(104, "reset")
        return super().read(size)


def test_failures_of_the_storage_keep_their_kind(tmp_path: Path) -> None:
    rows = [{"v": "x" * 100_000}] * 50
    path = Path(write(tmp_path / "a.avro", {"v": "string"}, rows, "null"))
    stream = pa.PythonFile(LostConnection(path.read_bytes()), mode="r")
    with pytest.raises(ConnectionResetError), reading_file(str(path)):
        row_groups.row_count(stream)


def test_without_fastavro_the_error_says_what_to_install(path: str) -> None:
    program = "import sys; sys.modules['fastavro'] = None\nfrom tests.datafiles import test_avro\n"
    program = (
        "import sys; sys.modules['fastavro'] = None\n"
        "import pyarrow as pa, pyarrow.fs as pafs, numpy as np\n"
        "from spark_jobs.datafiles.field_mapping import FieldMapping\n"
        "from spark_jobs.datafiles.file_scan import FileScan\n"
        "field = pa.field('id', pa.int64())\n"
        "scan = FileScan(pafs.LocalFileSystem(), [field], {}, {'id': FieldMapping(field, field)})\n"
        f"list(scan.rows({path!r}, np.zeros(0, dtype=np.int64)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert "LIBRARY_MISSING" in done.stderr
    assert "pip install fastavro" in done.stderr
