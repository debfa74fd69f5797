from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spark_jobs.landing import blocks, csv_reader, csv_rows, json_blocks, json_reader
from spark_jobs.landing.csv_reader import CsvReader
from spark_jobs.landing.csv_records import Dialect
from spark_jobs.landing.json_reader import JsonReader
from spark_jobs.landing.records import Column, Leniency
from spark_jobs.landing.rows import Wanted
from spark_jobs.landing.values import TextRules
from tests.landing.reading import Outcome, columns, read

ReadCsv = Callable[..., Outcome]
ReadJson = Callable[..., Outcome]


@pytest.fixture(
    params=["whole blocks", "exact way", "tiny blocks", "tiny blocks, exact way", "tiny pieces"]
)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How files are read: what is found must be the same."""
    way: str = request.param
    if "exact" in way:
        monkeypatch.setattr(csv_rows, "regular_end", lambda *_, **__: 0)
    if "tiny blocks" in way:
        monkeypatch.setattr(blocks, "BLOCK_BYTES", 7)
    if way == "tiny pieces":
        monkeypatch.setattr(csv_reader, "_PIECE", 9)
    return way


@pytest.fixture
def read_csv(tmp_path: Path, way: str) -> ReadCsv:
    """Writes a CSV file and reads it; options are the reader's and the dialect's."""
    del way

    def read_it(
        data: str | bytes,
        ddl: str,
        *,
        name: str = "landed.csv",
        leniency: Leniency = "tell",
        corrupt: str | None = None,
        rules: TextRules | None = None,
        dialect: Dialect | None = None,
        has_header: bool = True,
        **options: Any,
    ) -> Outcome:
        path = tmp_path / name
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        wanted = Wanted(columns(ddl), leniency, corrupt, rules or TextRules())
        reader = CsvReader(wanted, dialect or Dialect(), has_header=has_header, **options)
        return read(reader, path)

    return read_it


@pytest.fixture(
    params=["whole blocks", "one sample", "exact way", "tiny blocks", "tiny blocks, exact way"]
)
def json_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How JSON files are read: what is found must be the same."""
    way: str = request.param
    if "exact" in way:
        monkeypatch.setattr(json_reader, "line_block", lambda _: None)
    if "tiny" in way:
        monkeypatch.setattr(blocks, "BLOCK_BYTES", 7)
    if "sample" in way:
        monkeypatch.setattr(json_blocks, "_SAMPLES", 1)
    return way


@pytest.fixture
def read_json(tmp_path: Path, json_way: str) -> ReadJson:
    """Writes a JSON file and reads it; options are the reader's."""
    del json_way

    def read_it(
        data: str | bytes,
        wanted: str | tuple[Column, ...],
        *,
        name: str = "landed.json",
        leniency: Leniency = "tell",
        corrupt: str | None = None,
        rules: TextRules | None = None,
        **options: Any,
    ) -> Outcome:
        path = tmp_path / name
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        chosen = columns(wanted) if isinstance(wanted, str) else wanted
        reader = JsonReader(Wanted(chosen, leniency, corrupt, rules or TextRules()), **options)
        return read(reader, path)

    return read_it
