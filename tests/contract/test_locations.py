"""Both sides see the same storage behind a location."""

from __future__ import annotations

import pytest

from spark_jobs.contract.locations import WAREHOUSE_SCHEMES, require_absolute, scheme_of
from spark_jobs.errors import RequestError


@pytest.mark.parametrize(
    ("location", "scheme"),
    [("/a", "file"), ("file:///a", "file"), ("S3A://b/a", "s3a"), ("hdfs://n:1/a", "hdfs")],
)
def test_the_scheme_of_a_location(location: str, scheme: str) -> None:
    assert scheme_of(location) == scheme


def test_the_storage_of_warehouses() -> None:
    assert WAREHOUSE_SCHEMES == ("file", "s3", "s3a", "s3n", "hdfs")


@pytest.mark.parametrize("location", ["", "a/b", "./a", "file:a"])
def test_a_relative_location_is_refused(location: str) -> None:
    with pytest.raises(RequestError, match=f"place: {location!r} is not an absolute path or URI"):
        require_absolute("place", location)
