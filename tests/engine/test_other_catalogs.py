"""Sources in another catalog than the target: both formats in one statement, each with its keys."""

from __future__ import annotations

import itertools
import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from airflow_provider_merge.sql.parser import parse_statement
from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.catalogs import scoped
from spark_jobs.contract.request import CatalogSpec, JobRequest, Origin, TableName, TableSource
from spark_jobs.contract.result import JobResult
from spark_jobs.contract.statements import ColumnSpec, CreateTableSpec
from spark_jobs.contract.table_versions import ChangeRange, TableVersion
from spark_jobs.run import run
from tests.support.iceberg_files import catalog_spec

NAME = TableName("db", "t")
COLUMNS = (
    *(ColumnSpec("id", "BIGINT"), ColumnSpec("v", "STRING"), ColumnSpec("d", "DECIMAL(12,3)")),
    *(
        ColumnSpec("at", "TIMESTAMP"),
        ColumnSpec("day", "DATE"),
        ColumnSpec("tags", "ARRAY<STRING>"),
    ),
)
ROWS = (
    "(1L, 'one', 1.5BD, TIMESTAMP '2026-01-31 06:00:00.123456', DATE '1500-02-28', "
    "array('a', NULL)), "
    "(2L, NULL, NULL, NULL, NULL, NULL), (3L, 'three', -0.001BD, NULL, NULL, array())"
)
MERGE = (
    "MERGE INTO db.t t USING (SELECT s.*, o.v AS own FROM s LEFT JOIN db.t o ON o.id = s.id) x "
    "ON t.id = x.id WHEN MATCHED THEN UPDATE SET v = concat(coalesce(x.v, '-'), x.own) "
    "WHEN NOT MATCHED THEN INSERT (id, v, d, at, day, tags) "
    "VALUES (x.id, x.v, x.d, x.at, x.day, x.tags)"
)
PAIRS = [("paimon", "iceberg"), ("iceberg", "paimon"), ("paimon", "paimon"), ("iceberg", "iceberg")]


@dataclass
class Lake:
    """A catalog with a table ``db.t``; tables of the same name in two lakes are two tables."""

    spark: SparkSession
    catalog: CatalogSpec

    @classmethod
    def made(cls, spark: SparkSession, folder: Path, connector: str) -> Lake:
        folder.mkdir()
        catalog = CatalogSpec("paimon", str(folder))
        if connector == "iceberg":
            spec = catalog_spec(folder)
            catalog = replace(spec, options={**spec.options, "init_catalog_tables": "true"})
        lake = cls(spark, catalog)
        lake.connector.metadata.create_table(NAME, CreateTableSpec(COLUMNS))
        return lake

    @property
    def connector(self) -> Any:
        return open_connector(self.catalog, {})

    def request(self, text: str, sources: Sequence[Any] = (), **more: Any) -> JobRequest:
        parsed = parse_statement(text, [each.name for each in sources])
        made = JobRequest(
            *(str(uuid.uuid4()), parsed.target, self.catalog, parsed.statement),
            sources=(*sources, *parsed.sources),
            origin=Origin("d", str(uuid.uuid4()), "load"),
        )
        return replace(made, **more)

    def run(self, text: str, sources: Sequence[Any] = (), **more: Any) -> JobResult:
        return run(self.request(text, sources, **more), self.spark)

    def do(self, text: str, sources: Sequence[Any] = (), **more: Any) -> JobResult:
        result = self.run(text, sources, **more)
        assert result.error is None, result.error
        return result

    def rows(self) -> list[tuple[Any, ...]]:
        connector = self.connector
        table = connector.metadata.load_table(NAME)
        files = connector.metadata.plan_files(table)
        found = connector.scan.read(self.spark, table, files, table.column_names).collect()
        return sorted(tuple(row[: len(COLUMNS)]) for row in found)

    def properties(self, snapshot: int | None) -> Mapping[str, str]:
        connector = self.connector
        table = connector.metadata.load_table(NAME)
        return connector.writes.recall(table, snapshot).properties


def lakes(spark: SparkSession, folder: Path, pair: tuple[str, str]) -> tuple[Lake, Lake]:
    target, source = (Lake.made(spark, folder / f"{i}", each) for i, each in enumerate(pair))
    source.do(f"INSERT INTO db.t VALUES {ROWS}")
    return target, source


def other(lake: Lake, **more: Any) -> TableSource:
    return TableSource("s", NAME, connection="lake_b", catalog=lake.catalog, **more)


@pytest.mark.slow
@pytest.mark.by_turns(4)
@pytest.mark.parametrize("pair", PAIRS, ids="-from-".join)
def test_one_statement_reads_another_catalog(
    spark: SparkSession, tmp_path: Path, pair: tuple[str, str]
) -> None:
    target, source = lakes(spark, tmp_path, pair)
    copied = target.do("INSERT INTO db.t SELECT * FROM s", [other(source)])
    assert target.rows() == source.rows()
    read = json.loads(target.properties(copied.new_snapshot_id)["merge.sources"])
    first = source.connector.metadata.load_table(NAME).snapshot_id
    assert read == {"lake_b:db.t": first}

    source.do("INSERT INTO db.t VALUES (4L, 'four', 4BD, NULL, NULL, array('x'))")
    target.do("DELETE FROM db.t WHERE id = 3")
    merged = target.do(MERGE, [other(source)])
    assert (merged.metrics.inserted, merged.metrics.updated) == (2, 2)
    assert [(row[0], row[1]) for row in target.rows()] == [
        *((1, "oneone"), (2, None), (3, "three"), (4, "four"))
    ]
    before = TableVersion(snapshot=first)
    target.do("DELETE FROM db.t WHERE id IN (SELECT id FROM s)", [other(source, at=before)])
    assert [row[0] for row in target.rows()] == [4]


@pytest.mark.slow
@pytest.mark.by_turns(4)
@pytest.mark.parametrize("pair", PAIRS[:2], ids="-from-".join)
def test_changes_of_another_catalog_are_applied_once(
    spark: SparkSession, tmp_path: Path, pair: tuple[str, str]
) -> None:
    target, source = lakes(spark, tmp_path, pair)
    changes = other(source, changes=ChangeRange("all"))
    text = "INSERT INTO db.t SELECT id, v, d, at, day, tags FROM s"
    assert target.do(text, [changes]).metrics.inserted == 3
    assert target.do(text, [changes]).status == "unchanged"
    source.do("INSERT INTO db.t VALUES (4L, 'four', 4BD, NULL, NULL, array('x'))")
    assert target.do(text, [changes]).metrics.inserted == 1
    # Another connection's table is another one, though it has the same name.
    moved = replace(changes, connection="lake_c")
    error = target.run(text, [moved]).error
    assert error is not None
    assert error.code == "SNAPSHOT_NOT_FOUND"
    assert "the mark is one of db.t of the connection lake_b" in error.message
    assert target.rows() == source.rows()


@pytest.mark.slow
def test_what_cannot_be_opened_names_source_and_connection(
    spark: SparkSession, tmp_path: Path
) -> None:
    target = Lake.made(spark, tmp_path / "a", "paimon")
    gone = CatalogSpec("paimon", str(tmp_path / "gone"))
    source = TableSource("s", NAME, connection="lake_b", catalog=gone)
    for catalog, code in ((gone, "WAREHOUSE_NOT_FOUND"), (None, "REQUEST_INVALID")):
        error = target.run(
            "INSERT INTO db.t SELECT * FROM s", [replace(source, catalog=catalog)]
        ).error
        assert error is not None
        assert error.code == code
        assert error.message.startswith("source s: connection lake_b: ")
    assert target.rows() == []


def test_each_connection_has_its_own_secrets() -> None:
    from spark_jobs.contract.catalogs import credentials_of, of_catalog, of_sources

    own = {"fs.s3.accessKeyId": "A"}
    given = {**own, **scoped("b", {"fs.s3.accessKeyId": "B"}), **scoped("bb", {"key": "BB"})}
    assert of_catalog(given) == own
    assert credentials_of("b", of_sources(given)) == {"fs.s3.accessKeyId": "B"}
    assert credentials_of("bb", given) == {"key": "BB"}
    assert credentials_of("c", given) == {}
    names = list(itertools.chain(of_catalog(given), of_sources(given)))
    assert sorted(names) == sorted(given)
