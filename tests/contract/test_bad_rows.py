"""What a file source may ask for with bad records, and what is refused when it is made."""

from __future__ import annotations

from typing import Any

import pytest

from spark_jobs.contract.request import FileSource
from spark_jobs.errors import ErrorCode, RequestError

QUARANTINE: dict[str, Any] = {"on_bad_rows": "quarantine", "quarantine": "/bad"}


def source(path: str = "/landing/orders", format_: str = "csv", **fields: Any) -> FileSource:
    return FileSource("s", path, format_, **fields)


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "unknown": ({"on_bad_rows": "skip"}, "on_bad_rows: 'skip' is not one of: fail, quarantine"),
    "parquet": ({**QUARANTINE, "format_": "Parquet"}, "on_bad_rows: files of the format 'Parquet'"),
    "no folder": ({"on_bad_rows": "quarantine"}, "quarantine: is missing"),
    "empty folder": ({**QUARANTINE, "quarantine": ""}, "quarantine: '' is not an absolute"),
    "relative folder": ({**QUARANTINE, "quarantine": "bad/x"}, "quarantine: 'bad/x' is not an abs"),
    "folder alone": ({"quarantine": "/bad"}, "quarantine: is given, but"),
    "folder with fail": (
        {"on_bad_rows": "fail", "quarantine": "/bad"},
        "quarantine: is given, but",
    ),
    "limit alone": ({"max_bad_rows": 5}, "max_bad_rows: is given, but"),
    "limit with fail": ({"on_bad_rows": "fail", "max_bad_rows": 5}, "max_bad_rows: is given, but"),
    "limit 0": ({**QUARANTINE, "max_bad_rows": 0}, "max_bad_rows: 0 is neither"),
    "limit below 0": ({**QUARANTINE, "max_bad_rows": -0.1}, "max_bad_rows: -0.1 is neither"),
    "half a record": ({**QUARANTINE, "max_bad_rows": 1.5}, "max_bad_rows: 1.5 is neither"),
    "no number": ({**QUARANTINE, "max_bad_rows": float("nan")}, "max_bad_rows: nan is neither"),
    "infinite": ({**QUARANTINE, "max_bad_rows": float("inf")}, "max_bad_rows: inf is neither"),
    "mode": ({**QUARANTINE, "options": {"MODE": "Permissive"}}, "options.mode: 'Permissive' acc"),
}


@pytest.mark.parametrize(("fields", "problem"), REFUSED.values(), ids=REFUSED)
def test_what_does_not_fit_is_refused(fields: dict[str, Any], problem: str) -> None:
    with pytest.raises(RequestError) as caught:
        source(**fields)
    assert caught.value.code is ErrorCode.REQUEST_INVALID
    assert caught.value.message.startswith(problem)
    assert caught.value.remedy or "not one of" in problem


FITS: dict[str, dict[str, Any]] = {
    "fail": {"on_bad_rows": "fail"},
    "fail with a mode": {"on_bad_rows": "fail", "options": {"mode": "PERMISSIVE"}},
    "fail of parquet": {"on_bad_rows": "fail", "format_": "parquet"},
    "any case": {**QUARANTINE, "format_": "JSON", "options": {"Mode": "failfast"}},
    "text": {**QUARANTINE, "format_": "text"},
    "avro": {**QUARANTINE, "format_": "avro"},
    "uri": {**QUARANTINE, "quarantine": "s3://bucket/bad"},
    "one record": {**QUARANTINE, "max_bad_rows": 1},
    "many records": {**QUARANTINE, "max_bad_rows": 1e6},
    "share": {**QUARANTINE, "max_bad_rows": 0.001},
}


@pytest.mark.parametrize("fields", FITS.values(), ids=FITS)
def test_what_fits_is_taken(fields: dict[str, Any]) -> None:
    made = source(**fields)
    assert made.on_bad_rows == fields["on_bad_rows"]
    assert made.max_bad_rows == fields.get("max_bad_rows")


INSIDE = [
    ("/landing", "/landing"),
    ("/landing/", "/landing/bad"),
    ("/landing", "/landing//x/../bad/"),
    ("/", "/bad"),
    ("file:///landing", "/landing/bad"),
    ("file:/landing", "/landing/bad"),
    ("s3a://bucket/in", "s3://bucket/in/bad"),
    ("S3://bucket", "s3n://bucket/bad"),
    ("hdfs://node:8020/in", "hdfs://node:8020/in/bad"),
    ("/landing/*", "/landing/bad"),
    ("/landing/*/2024", "/landing/bad/2024/x"),
    ("/landing/b?d", "/landing/bad"),
    ("/landing/[a-c]ad", "/landing/bad"),
    ("/landing/[^x]ad", "/landing/bad"),
    ("/landing/{orders,bad{,2}}", "/landing/bad2/x"),
    ("/{landing/x,bad/y}", "/bad/y"),
    ("/land\\ing", "/landing/bad"),
]


@pytest.mark.parametrize(("path", "folder"), INSIDE)
def test_a_quarantine_that_would_be_read_is_refused(path: str, folder: str) -> None:
    with pytest.raises(RequestError, match="would be read as data") as caught:
        source(path, **{**QUARANTINE, "quarantine": folder})
    assert caught.value.message.startswith(f"quarantine: {folder!r}")


OUTSIDE = [
    ("/landing/orders", "/landing/orders_bad"),
    ("/landing/orders", "/landing"),
    ("/landing/orders/x.csv", "/landing/orders/bad"),
    ("/landing", "s3://landing/bad"),
    ("s3://bucket/landing", "s3://other/landing/bad"),
    ("hdfs://one/in", "hdfs://two/in/bad"),
    ("/landing/*.csv", "/landing/bad"),
    ("/landing/*/orders", "/landing/bad"),
    ("/landing/[^b]*", "/landing/bad"),
    ("/landing/{orders,items}", "/landing/bad"),
    ("/landing/\\*", "/landing/bad"),
    ("landing", "/landing/bad"),
    ("/Landing", "/landing/bad"),
]


@pytest.mark.parametrize(("path", "folder"), OUTSIDE)
def test_a_quarantine_beside_the_files_is_taken(path: str, folder: str) -> None:
    assert source(path, **{**QUARANTINE, "quarantine": folder}).quarantine == folder
