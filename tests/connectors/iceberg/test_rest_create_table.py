"""CREATE TABLE on Iceberg's own REST server, which describes what has become of it."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
import requests

from spark_jobs.contract.statements import ColumnSpec, CreateTableSpec
from tests.connectors.iceberg.direct import DirectWrite, ids_of
from tests.connectors.iceberg.plain_tables import NAME
from tests.connectors.iceberg.rest_tables import RestTables
from tests.judge.iceberg_server import IcebergRest, iceberg_rest

__all__ = ["iceberg_rest"]

TIMES = tuple(f"c{number}" for number in range(4))
UNITS = ("year", "month", "day", "hour")
# With the names that Iceberg's Java gives, as test_create_table has them from Spark.
FIELDS = {
    **{f"{column}_{unit}": unit for column, unit in zip(TIMES, UNITS, strict=True)},
    "id_bucket": "bucket[4]",
    "s_trunc": "truncate[1]",
    "p": "identity",
}


def described(server: IcebergRest) -> dict[str, Any]:
    """The table as Java's server has it."""
    address = f"{server.uri}/v1/namespaces/db/tables/t"
    answer = requests.get(address, headers={"Authorization": f"Bearer {server.secret}"}, timeout=60)
    metadata: dict[str, Any] = answer.json()["metadata"]
    return metadata


@pytest.mark.slow
@pytest.mark.parametrize("version", [1, 2])
def test_java_has_what_was_asked_for_and_takes_changes(
    iceberg_rest: IcebergRest, version: int
) -> None:
    tables = RestTables(iceberg_rest)
    tables.emptied()
    keys = (ColumnSpec("id", "BIGINT", nullable=False), ColumnSpec("s", "STRING", nullable=False))
    units = (f"{unit}s({column})" for column, unit in zip(TIMES, UNITS, strict=True))
    spec = CreateTableSpec(
        columns=(*keys, *(ColumnSpec(each, "TIMESTAMP") for each in TIMES), ColumnSpec("p", "INT")),
        partition_keys=(*units, "bucket(4, id)", "truncate(1, s)", "p"),
        primary_key=("s", "id"),
        table_options={"format-version": str(version), "owner.team": "sales"},
    )

    assert tables.open().metadata.create_table(NAME, spec) is True
    assert tables.open().metadata.create_table(NAME, spec) is False

    metadata = described(iceberg_rest)
    assert metadata["format-version"] == version
    assert metadata["properties"]["owner.team"] == "sales"
    (schema,) = metadata["schemas"]
    ids = {each["name"]: each["id"] for each in schema["fields"]}
    assert set(schema["identifier-field-ids"]) == {ids["id"], ids["s"]}
    assert {each["name"] for each in schema["fields"] if each["required"]} == {"id", "s"}
    (fields,) = (each["fields"] for each in metadata["partition-specs"])
    assert {each["name"]: each["transform"] for each in fields} == FIELDS
    assert [each["field-id"] for each in fields] == list(range(1000, 1000 + len(FIELDS)))
    sources = [*TIMES, "id", "s", "p"]
    assert [each["source-id"] for each in fields] == [ids[name] for name in sources]

    at = dt.datetime(1969, 12, 31, 23, tzinfo=dt.UTC)
    rows = [{"id": n, "s": "x", "p": 1, **dict.fromkeys(TIMES, at)} for n in (34, 35)]
    DirectWrite(tables.open()).insert(*rows).publish()
    merge = DirectWrite(tables.open()).delete(0, 0).delete(1, 0).insert({**rows[0], "id": 36})
    committed = merge.publish()

    assert ids_of(tables) == [36]
    *_, snapshot = described(iceberg_rest)["snapshots"]
    assert snapshot["snapshot-id"] == committed.snapshot_id
    assert snapshot["summary"]["operation"] == "overwrite"
    assert snapshot["summary"]["total-records"] == "1"
