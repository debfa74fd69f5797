"""Files that change while they are read are an error."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spark_jobs.engine.source import landing as landing_module
from spark_jobs.engine.source import open_source as source_module
from tests.conformance.harness import Harness
from tests.engine.landed import Landing, new_landing


@pytest.fixture
def landing(make_table: Callable[..., Harness], tmp_path: Path) -> Landing:
    return new_landing(make_table, tmp_path)


def grown(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"3\n")


def replaced(path: Path) -> None:
    content = path.read_bytes()
    path.unlink()
    path.write_bytes(content)


def vanished(path: Path) -> None:
    path.unlink()


@pytest.mark.parametrize("change", [grown, replaced, vanished])
def test_a_text_file_that_changes(
    landing: Landing, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path], None]
) -> None:
    path = Path(landing.file("a.csv", "id\n1\n2\n"))
    listed = landing_module.source_files

    def changing(*arguments: Any) -> Any:
        found = listed(*arguments)
        change(path)
        return found

    monkeypatch.setattr(landing_module, "source_files", changing)

    result = landing.insert(str(path), "csv", {"header": "true"}, "id BIGINT")

    assert result.error is not None
    assert result.error.code == "SOURCE_UNREADABLE", result.error
    assert "a.csv" in result.error.message
    assert landing.rows("id") == []


@pytest.mark.parametrize("change", [grown, replaced])
def test_a_parquet_file_that_changes(
    landing: Landing, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path], None]
) -> None:
    landing.folder.mkdir()
    path = landing.folder / "a.parquet"
    pq.write_table(pa.table({"id": [1, 2]}), path)
    listed = source_module.files_of_frame

    def changing(*arguments: Any) -> Any:
        found = listed(*arguments)
        change(path)
        return found

    monkeypatch.setattr(source_module, "files_of_frame", changing)

    query = "SELECT id + 1 AS id FROM files"
    result = landing.insert(str(path), "parquet", query=query)

    assert result.error is not None
    assert result.error.code in ("SOURCE_UNREADABLE", "DATA_FILE_UNREADABLE"), result.error
    assert landing.rows("id") == []
