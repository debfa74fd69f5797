from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spark_jobs.landing import blocks, csv_reader
from spark_jobs.landing.csv_reader import CsvReader
from spark_jobs.landing.csv_records import Dialect
from spark_jobs.landing.records import Leniency
from spark_jobs.landing.rows import Wanted
from spark_jobs.landing.values import TextRules
from tests.landing.reading import Outcome, columns, read

ReadCsv = Callable[..., Outcome]


@pytest.fixture(params=["whole blocks", "exact way", "tiny blocks", "tiny blocks, exact way"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How files are read: what is found must be the same."""
    way: str = request.param
    if "exact" in way:
        monkeypatch.setattr(csv_reader, "regular_end", lambda *_, **__: 0)
    if "tiny" in way:
        monkeypatch.setattr(blocks, "BLOCK_BYTES", 7)
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
