"""A workspace may be on other storage than its warehouse."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.request import CatalogSpec, JobRequest, Origin, SqlSource
from spark_jobs.contract.statements import InsertAllAction, MergeCase, MergeSpec
from spark_jobs.run import run
from tests.support.paimon_tables import NAME, create, read, snapshot_ids
from tests.support.stores import ObjectStore

ROWS = SqlSource("s", "SELECT CAST(id AS INT) AS id FROM range(3)")
NEW_ROWS = MergeSpec("s", "t.id = s.id", (MergeCase("not_matched", InsertAllAction()),), "t", "s")


@pytest.fixture(params=["workspace", "warehouse"])
def catalog(request: pytest.FixtureRequest, store: ObjectStore, tmp_path: Path) -> CatalogSpec:
    """One of both is on the store, the other one a local folder."""
    remote = store.new_catalog()
    if request.param == "workspace":
        return replace(remote, warehouse=str(tmp_path), workspace=remote.warehouse)
    return replace(remote, workspace=str(tmp_path))


def names_in(store: ObjectStore, place: str) -> list[str]:
    """The files at a place."""
    if place.startswith("/"):
        return [str(each.relative_to(place)) for each in Path(place).rglob("*") if each.is_file()]
    bucket, _, prefix = place.removeprefix("s3://").partition("/")
    return [key.removeprefix(f"{prefix}/") for key in store.keys(bucket, f"{prefix}/")]


@pytest.mark.slow
def test_a_merge_leaves_its_result_there_and_a_retry_finds_it(
    spark: SparkSession, store: ObjectStore, catalog: CatalogSpec
) -> None:
    connector = open_connector(catalog, store.credentials)
    create(connector, {"id": "int"})
    request = JobRequest("op-1", NAME, catalog, NEW_ROWS, (ROWS,))

    first = run(request, spark, store.credentials)
    again = run(replace(request, origin=Origin(try_number=2)), spark, store.credentials)

    assert first.error is None, first.error
    assert again == first
    assert read(connector) == [{"id": 0}, {"id": 1}, {"id": 2}]
    assert snapshot_ids(connector) == [1]
    names = names_in(store, str(catalog.workspace))
    assert [each for each in names if not each.endswith(".fence")] == ["_operations/op-1.json"]
    beside = [name for name in names_in(store, catalog.warehouse) if ".db/" not in name]
    assert set(beside) <= {"_operations/conditional-put"}
    place = connector.storage
    with place.filesystem.open_input_stream(f"{place.root}/_operations/op-1.json") as stream:
        stored = stream.read().decode()
    assert not [secret for secret in store.credentials.values() if secret in stored]
