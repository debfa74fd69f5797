"""Avro files are scanned by blocks, checked against their recorded schema, and rewritten."""

from __future__ import annotations

import io
import math
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
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
from spark_jobs.datafiles.row_reader import read_row
from spark_jobs.errors import CatalogError, ErrorCode

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
STORED = {
    "id": "long",
    "dropped": ["null", "bytes"],
    "s": ["null", {"type": "record", "name": "r_s", "fields": [{"name": "x", "type": "int"}]}],
    "a.b": ["string", "null"],
}


def row(i: int) -> dict[str, Any]:
    struct = {"y": None, "x": i} if i % 3 else None
    return {"id": i, "s": struct, "c": f"{i:040}" if i % 2 else None, "n": None}


def write(
    path: Path,
    types: Mapping[str, Any],
    rows: Sequence[Mapping[str, Any]],
    codec: str = "zstandard",
    block_bytes: int = 16_000,
) -> str:
    fields = [{"name": name, "type": kind} for name, kind in types.items()]
    schema = {"type": "record", "name": "r", "fields": fields}
    with path.open("wb") as file:
        fastavro.writer(file, schema, rows, codec, sync_interval=block_bytes)
    return str(path)


def scan(path: str, fields: Sequence[pa.Field], rows: int | None = None) -> list[dict[str, Any]]:
    """All rows of a file whose columns are the table's."""
    mappings = {field.name: FieldMapping(field, field, parts(field.type)) for field in fields}
    with reading_file(path):
        found = list(FileScan(FILES, fields, {}, mappings).rows(path, NOTHING, rows))
    return [each for _, table in found for each in table.to_pylist()]


def parts(kind: pa.DataType) -> tuple[FieldMapping, ...]:
    if pa.types.is_map(kind):
        inner = [kind.key_field, kind.item_field]
    else:
        inner = [kind.field(i) for i in range(kind.num_fields)]
    return tuple(FieldMapping(field, field, parts(field.type)) for field in inner)


def refused(path: str, field: pa.Field, rows: int | None = None) -> str:
    with pytest.raises(CatalogError) as raised:
        scan(path, [field], rows)
    assert raised.value.code is ErrorCode.DATA_FILE_UNREADABLE
    assert path in raised.value.message
    return raised.value.message


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    rows = [row(i) for i in range(ROWS)]
    stored = [each | {"dropped": b"\0", "a.b": each["c"]} for each in rows]
    return write(tmp_path_factory.mktemp("avro") / "data.avro", STORED, stored)


@pytest.fixture(params=["whole file", "several row groups"])
def _groups(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "several row groups":
        monkeypatch.setattr(row_groups, "_GROUP_BYTES", 50_000)


BY_NAME = {each.field.name: each for each in MAPPINGS}
FIELDS = [each.field for each in MAPPINGS]


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


def decimal(precision: int, scale: int) -> dict[str, Any]:
    return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}


def record(name: str, **fields: Any) -> dict[str, Any]:
    named = [{"name": key, "type": kind} for key, kind in fields.items()]
    return {"type": "record", "name": name, "fields": named}


def long(kind: str) -> dict[str, str]:
    return {"type": "long", "logicalType": kind}


EDGES: dict[str, tuple[pa.DataType, Any, list[Any]]] = {
    "boolean": (pa.bool_(), "boolean", [True, False]),
    "tinyint": (pa.int8(), "int", [-128, 127]),
    "smallint": (pa.int16(), "int", [-(2**15), 2**15 - 1]),
    "int": (pa.int32(), "int", [-(2**31), 2**31 - 1]),
    "bigint": (pa.int64(), "long", [-(2**63), 2**63 - 1]),
    "float": (pa.float32(), "float", [-0.0, math.inf, 1.401298464324817e-45]),
    "double": (pa.float64(), "double", [-0.0, -math.inf, 5e-324, 1.7976931348623157e308]),
    "decimal": (
        pa.decimal128(38, 38),
        decimal(38, 38),
        [Decimal(f"{sign}0.{'9' * 38}") for sign in ("", "-")] + [Decimal("0E-38")],
    ),
    "whole decimal": (pa.decimal128(38, 0), decimal(38, 0), [Decimal(10**38 - 1), Decimal(-1)]),
    "string": (pa.string(), "string", ["", "中\0é", "a" * 70_000]),
    "bytes": (pa.binary(), "bytes", [b"", b"\xff\0"]),
    "date": (
        pa.date32(),
        {"type": "int", "logicalType": "date"},
        [date(1, 1, 1), date(1969, 12, 31), date(9999, 12, 31)],
    ),
    "timestamp": (
        pa.timestamp("us"),
        long("local-timestamp-micros"),
        [datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999)],  # noqa: DTZ001
    ),
    "instant": (
        pa.timestamp("ms", "UTC"),
        long("timestamp-millis"),
        [datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999000, UTC)],
    ),
    "array": (
        pa.list_(pa.list_(pa.int8())),
        {"type": "array", "items": ["null", {"type": "array", "items": ["null", "int"]}]},
        [[], [None, [], [1, None]]],
    ),
    "record": (
        pa.struct([("b", pa.decimal128(3, 1)), ("a", pa.struct([("é", pa.string())]))]),
        record(
            "r_v",
            a=["null", record("r_v_a", é=["null", "string"])],
            b=["null", decimal(3, 1)],
        ),
        [{"b": None, "a": None}, {"b": Decimal("-9.9"), "a": {"é": None}}],
    ),
}


@pytest.mark.parametrize("null_first", [True, False])
@pytest.mark.parametrize("name", EDGES)
def test_values(tmp_path: Path, name: str, null_first: bool) -> None:
    kind, stored, values = EDGES[name]
    union = ["null", stored] if null_first else [stored, "null"]
    rows = [{"v": value} for value in [None, *values]]
    path = write(tmp_path / "a.avro", {"v": union}, rows)

    found = scan(path, [pa.field("v", kind)], len(rows))

    expected = pa.array([None, *values], kind).to_pylist()
    assert repr([each["v"] for each in found]) == repr(expected)  # 0.0 is not -0.0.


def test_nan(tmp_path: Path) -> None:
    path = write(tmp_path / "a.avro", {"v": "double"}, [{"v": math.nan}])
    assert math.isnan(scan(path, [pa.field("v", pa.float64())])[0]["v"])


def test_maps_with_keys_that_are_texts(tmp_path: Path) -> None:
    stored = {"type": "map", "values": ["null", {"type": "int", "logicalType": "date"}]}
    rows = [{"v": {}}, {"v": {"": None, "k": date(2000, 1, 1)}}, {"v": None}]
    path = write(tmp_path / "a.avro", {"v": ["null", stored]}, rows)
    found = scan(path, [pa.field("v", pa.map_(pa.string(), pa.date32()))])
    assert found == [{"v": []}, {"v": [("", None), ("k", date(2000, 1, 1))]}, {"v": None}]


def test_maps_with_other_keys_are_arrays_of_records(tmp_path: Path) -> None:
    entries = {"type": "array", "items": record("r_v", key="int", value=["null", "string"])}
    rows = [{"v": [{"key": 2, "value": None}, {"key": 1, "value": "x"}]}, {"v": []}, {"v": None}]
    path = write(tmp_path / "a.avro", {"v": ["null", entries]}, rows)
    found = scan(path, [pa.field("v", pa.map_(pa.int32(), pa.string()))])
    assert found == [{"v": [(2, None), (1, "x")]}, {"v": []}, {"v": None}]


def test_a_record_that_is_named_twice(tmp_path: Path) -> None:
    types = {"a": record("x", é="int"), "b": ["null", "x"]}
    path = write(tmp_path / "a.avro", types, [{"a": {"é": 1}, "b": {"é": 2}}])
    kind = pa.struct([("é", pa.int32())])
    found = scan(path, [pa.field("a", kind), pa.field("b", kind)])
    assert found == [{"a": {"é": 1}, "b": {"é": 2}}]


@pytest.mark.parametrize("codec", ["null", "deflate", "snappy", "zstandard", "bzip2", "xz"])
def test_codecs(tmp_path: Path, codec: str) -> None:
    rows = [{"v": i} for i in range(1_000)]
    path = write(tmp_path / "a.avro", {"v": "long"}, rows, codec, 500)
    assert scan(path, [pa.field("v", pa.int64())], 1_000) == rows


def test_no_rows(tmp_path: Path) -> None:
    path = write(tmp_path / "a.avro", {"v": "long"}, [])
    assert scan(path, [pa.field("v", pa.int64())], 0) == []


OTHERWISE: dict[str, tuple[Any, Any, pa.DataType]] = {
    "a longer number": ("long", 1, pa.int32()),
    "a shorter number": ("int", 1, pa.int64()),
    "a number that does not fit": ("int", 128, pa.int8()),
    "a date for a number": ({"type": "int", "logicalType": "date"}, date(2000, 1, 1), pa.int32()),
    "bytes for a text": ("bytes", b"x", pa.string()),
    "a decimal of another scale": (decimal(9, 3), Decimal(1), pa.decimal128(9, 2)),
    "a decimal with more digits": (decimal(4, 0), Decimal(9999), pa.decimal128(3, 0)),
    "a number for an instant": ("long", 1, pa.timestamp("us", "UTC")),
    "several types": (["int", "string"], 1, pa.int32()),
    "an array for a struct": (
        {"type": "array", "items": "int"},
        [1],
        pa.struct([("x", pa.int32())]),
    ),
    "another element": ({"type": "array", "items": "long"}, [1], pa.list_(pa.int32())),
    "a field is missing": (record("r_v", y="int"), {"y": 1}, pa.struct([("x", pa.int32())])),
    "a map for other keys": (
        {"type": "map", "values": "int"},
        {"a": 1},
        pa.map_(pa.int32(), pa.int32()),
    ),
}


@pytest.mark.parametrize("case", OTHERWISE)
def test_files_that_do_not_hold_what_their_schema_says(tmp_path: Path, case: str) -> None:
    stored, value, kind = OTHERWISE[case]
    path = write(tmp_path / "a.avro", {"v": stored}, [{"v": value}])
    refused(path, pa.field("v", kind))


def test_a_missing_column(tmp_path: Path) -> None:
    path = write(tmp_path / "a.avro", {"v": "int"}, [{"v": 1}])
    assert "no column w" in refused(path, pa.field("w", pa.int32()))


def test_damaged_files(tmp_path: Path) -> None:
    rows = [{"v": f"{i}"} for i in range(1_000)]
    whole = Path(write(tmp_path / "a.avro", {"v": "string"}, rows, "deflate", 500)).read_bytes()
    blocks = list(fastavro.block_reader(io.BytesIO(whole)))
    damaged = tmp_path / "damaged.avro"
    field = pa.field("v", pa.string())
    for content in (
        b"",
        whole[:3],
        whole[:30],
        whole[:-1],
        whole[:-20],
        whole[: blocks[-1].offset],
        whole[:-30] + b"\0" + whole[-29:],
        whole.replace(b"deflate", b"inflate"),
        whole.replace(b'"string"', b'"double"'),
        b"PAR1" + whole,
    ):
        damaged.write_bytes(content)
        refused(str(damaged), field, 1_000)


def test_a_damaged_file_is_not_rewritten(path: str, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.avro"
    damaged.write_bytes(Path(path).read_bytes()[:-100])
    changes = FileChanges(np.array([3]), np.array([True]), {})
    with pytest.raises(CatalogError, match=str(damaged)) as raised:
        rewrite(FILES, str(damaged), str(tmp_path / "n.parquet"), changes, Compression(), MAPPINGS)
    assert raised.value.code is ErrorCode.DATA_FILE_UNREADABLE


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
