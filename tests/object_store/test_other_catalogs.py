"""A source on another S3 server: buckets of one name, each read with the keys of its connection."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import replace

import pytest
from pyspark.sql import SparkSession

from airflow_provider_merge.sql.parser import parse_statement
from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.catalogs import scoped
from spark_jobs.contract.request import JobRequest, TableName, TableSource
from spark_jobs.run import run
from tests.support.gateway import serving
from tests.support.paimon_tables import create
from tests.support.stores import ObjectStore, gateway_program_or_skip

NAME = TableName("db", "t")
BUCKET = "tests-twice"


@pytest.fixture(scope="module")
def two_stores(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[ObjectStore, ObjectStore]]:
    """Two real servers, which take no other key than their own."""
    program = gateway_program_or_skip()
    found = []
    folders = [tmp_path_factory.mktemp("server") for _ in range(2)]
    keys = [("AKIAONE", "secret-of-the-first"), ("AKIATWO", "secret-of-the-second")]
    with (
        serving(program, folders[0], *keys[0]) as first,
        serving(program, folders[1], *keys[1]) as second,
    ):
        for endpoint, folder, (access, secret) in zip((first, second), folders, keys, strict=True):
            found.append(ObjectStore("gateway", endpoint, folder / "data", access, secret))
            found[-1].client().create_bucket(Bucket=BUCKET)
        yield found[0], found[1]


def test_each_bucket_with_its_own_keys(
    spark: SparkSession, two_stores: tuple[ObjectStore, ObjectStore]
) -> None:
    target, source = two_stores
    place = f"s3://{BUCKET}/warehouse"
    for store in two_stores:
        connector = open_connector(store.catalog(place), store.credentials)
        create(connector, {"id": "bigint", "v": "string"}, name=NAME)

    def asked(text: str, store: ObjectStore, *sources: TableSource) -> JobRequest:
        parsed = parse_statement(text, [each.name for each in sources])
        return JobRequest(
            *(str(uuid.uuid4()), parsed.target, store.catalog(place), parsed.statement),
            sources=(*sources, *parsed.sources),
        )

    filled = run(
        asked("INSERT INTO db.t VALUES (1L, 'a'), (2L, 'b')", source), spark, source.credentials
    )
    assert filled.error is None, filled.error
    other = TableSource("s", NAME, connection="b", catalog=source.catalog(place))
    merge = (
        "MERGE INTO db.t t USING s ON t.id = s.id WHEN MATCHED THEN DELETE "
        "WHEN NOT MATCHED THEN INSERT *"
    )
    both = {**target.credentials, **scoped("b", source.credentials)}
    done = run(asked(merge, target, other), spark, both)
    assert done.error is None, done.error
    assert done.metrics.inserted == 2
    assert run(asked(merge, target, other), spark, both).metrics.deleted == 2

    # The target's keys open nothing on the other server, and no secret is told.
    wrong = run(asked(merge, target, other), spark, {**target.credentials})
    assert wrong.error is not None
    assert "connection b" in wrong.error.message
    text = wrong.to_json()
    assert not any(each in text for store in two_stores for each in store.credentials.values())
    # A connection's keys are not those of another one.
    renamed = replace(other, connection="c")
    assert run(asked(merge, target, renamed), spark, both).error is not None
