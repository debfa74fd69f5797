"""A misspelt format is known before anything starts; formats of other libraries pass."""

from __future__ import annotations

import pytest

from spark_jobs.contract.request import FileSource
from spark_jobs.errors import RequestError


@pytest.mark.parametrize("name", ["csv", "Parquet", "ORC", "xml", "delta", "com.example.excel"])
def test_formats_that_pass(name: str) -> None:
    assert FileSource("s", "/landing", name).format == name


@pytest.mark.parametrize(
    ("name", "meant"),
    [("csvv", "csv"), ("cvs", "csv"), ("jsonl", "json"), ("txt", "text"), ("Parket", "parquet")],
)
def test_misspelt(name: str, meant: str) -> None:
    with pytest.raises(RequestError) as raised:
        FileSource("s", "/landing", name)

    assert raised.value.message == f"format: Spark has no format {name!r}"
    known = "csv, json, text, avro, parquet, orc"
    assert raised.value.remedy == f"Did you mean {meant}? Formats of files: {known}."
