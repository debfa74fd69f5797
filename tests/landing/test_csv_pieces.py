"""How much of a file the exact way takes: little around what is not regular."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from spark_jobs.landing.csv_reader import CsvReader
from spark_jobs.landing.csv_records import Dialect
from spark_jobs.landing.csv_rows import CsvRows
from spark_jobs.landing.rows import Wanted
from tests.landing.reading import columns, read

RECORDS = 30_000


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many records the exact way found, by piece."""
    found: list[int] = []
    exact = CsvRows.exact

    def counted(self: CsvRows, data: bytes, *args: Any, **options: Any) -> Any:
        result = exact(self, data, *args, **options)
        found.append(result.block.records if result else 0)
        return result

    monkeypatch.setattr(CsvRows, "exact", counted)
    return found


@pytest.mark.parametrize(
    "record", ['7,5" pipe', "7", '7,"a"b', "7,a\r7,b", b"7,\xff".decode("latin-1")]
)
def test_one_record_that_is_not_regular_costs_a_small_piece(
    tmp_path: Path, taken: list[int], record: str
) -> None:
    lines = [f"{i},text" for i in range(RECORDS)]
    lines[RECORDS // 2] = record
    path = tmp_path / "landed.csv"
    path.write_bytes("\n".join(["id,v", *lines]).encode("latin-1"))

    found = read(CsvReader(Wanted(columns("id INT, v STRING")), Dialect(), has_header=True), path)

    assert found.records >= RECORDS
    assert 0 < sum(taken) < RECORDS / 5


def test_a_regular_file_is_taken_by_pyarrow_alone(tmp_path: Path, taken: list[int]) -> None:
    path = tmp_path / "landed.csv"
    records = (f'{i},"a ""b"", c\nd",\r\n' for i in range(RECORDS))
    path.write_bytes("".join(["id,v,w\r\n", *records]).encode())

    found = read(CsvReader(Wanted(columns("id INT, v STRING")), Dialect(), has_header=True), path)

    assert found.rows[-1] == (RECORDS - 1, 'a "b", c\nd')
    assert sum(taken) == 0
