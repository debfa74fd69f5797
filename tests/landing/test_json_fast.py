"""Which blocks Arrow reads: plain ones, and none on which it is not to be trusted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from spark_jobs.landing import json_reader
from spark_jobs.landing.json_reader import JsonReader
from spark_jobs.landing.records import Column
from spark_jobs.landing.rows import Wanted
from tests.landing.reading import columns, read

IsFast = Callable[..., bool]
WANTED = columns(
    "id BIGINT, n INT, m DECIMAL(10,2), w DECIMAL(38,18), f DOUBLE, d DATE, at TIMESTAMP, "
    "s STRING, b BOOLEAN, x BINARY"
)
PLAIN = (
    '{"id":1,"n":2,"m":1.50,"w":12345.678,"f":1e5,"d":"2024-02-29","at":"2024-02-29T12:00:00Z",'
    '"s":"\\u00e9\\n","b":true,"x":"AP8="}'
)


@pytest.fixture
def is_fast(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> IsFast:
    """Whether a file is read without taking records apart."""

    def asked(data: str | bytes, wanted: tuple[Column, ...] = WANTED) -> bool:
        path = tmp_path / "landed.json"
        # One block, also of the last line.
        path.write_bytes((data.encode() if isinstance(data, str) else data) + b"\n")
        with monkeypatch.context() as patch:
            patch.setattr(json_reader, "line_records", lambda _: iter(()))
            found = read(JsonReader(Wanted(wanted)), path)
        return found.records > 0

    return asked


@pytest.mark.parametrize(
    "data",
    [
        PLAIN,
        PLAIN + "\n",
        f"\n\n{PLAIN}\r\n{PLAIN}\r\n",
        PLAIN + '\n{"id":null}\n{}\n{ "n" : 1 }\n',
        PLAIN.replace('"id"', '"ID"').replace('"s"', '"S"'),
        PLAIN.replace('"id":1', '"id":"1"').replace("true", '"true"').replace("1.50", '"1.5"'),
        PLAIN.replace("{", '{"other":[{"a":1,"b":null}],"more":1,', 1) + '\n{"other":[]}\n',
        PLAIN.replace("2024-02-29T", "bad"),
    ],
)
def test_plain_lines(is_fast: IsFast, data: str) -> None:
    assert is_fast(data)


def test_nested_columns(is_fast: IsFast) -> None:
    kind = pa.struct([("a", pa.list_(pa.field("element", pa.string()))), ("b", pa.int32())])
    assert is_fast('{"v":{"a":["x"],"b":1}}\n{"v":null}\n', (Column("v", kind, "STRUCT"),))


@pytest.mark.parametrize(
    "data",
    [
        f"{PLAIN} {PLAIN}",
        f"[{PLAIN}]",
        f"{PLAIN}\n\n{PLAIN}",
        f"{PLAIN} \n{PLAIN}",
        f"{PLAIN}null\n{PLAIN}",
        PLAIN.replace("1.50", "150e-2"),
        PLAIN.replace("1.50", "100000000"),
        PLAIN.replace("\\n", "\\n\0"),
        PLAIN.replace('"n":2', '"n":NaN'),
        PLAIN.replace('"n":2', '"f2":Infinity'),
        PLAIN.encode() + b'\n{"other":"\xff"}',
        PLAIN + '\n{"s":1}',
        PLAIN + '\n{"ID":1}',
    ],
)
def test_lines_that_are_looked_at_one_by_one(is_fast: IsFast, data: str | bytes) -> None:
    assert not is_fast(data)
