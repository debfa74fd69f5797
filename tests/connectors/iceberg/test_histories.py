"""Random histories of a table: this project, Spark with Iceberg and pyiceberg take turns.

A twin table gets the same statements from Spark with Iceberg alone: after each step both must have
the same rows, whether Java, pyiceberg or this project reads them. `MERGE_TESTS=all` takes all.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyspark.sql import SparkSession

from airflow_provider_merge.sql.parser import parse_statement
from spark_jobs.contract.request import CatalogSpec, JobRequest, SqlSource, TableName
from spark_jobs.run import run
from tests.connectors.iceberg.tables import assert_read_alike
from tests.judge.iceberg_spark import CATALOG, IcebergSpark

pytestmark = pytest.mark.slow

_SPECS = (
    "",
    "PARTITIONED BY (p)",
    "PARTITIONED BY (bucket(4, id))",
    "PARTITIONED BY (days(at))",
    "PARTITIONED BY (truncate(3, id), months(d), p)",
)
_EVOLUTIONS = (
    "ALTER TABLE {t} ADD COLUMN extra{n} STRING",
    "ALTER TABLE {t} ADD COLUMN n.y{n} INT",
    "ALTER TABLE {t} ADD PARTITION FIELD bucket(1{n}, id)",
    "CALL {c}.system.rewrite_data_files(table => '{u}', options => map('rewrite-all','true'))",
    "CALL {c}.system.rewrite_manifests('{u}')",
    "DELETE FROM {t} WHERE id % 7 = {n} % 7",
    "UPDATE {t} SET v = v + 1 WHERE id % 5 = {n} % 5",
)
_INSERTED = "(id, p, v, at, d, m, n) VALUES (s.id, s.p, s.v, s.at, s.d, s.m, NULL)"
_STATEMENTS = (
    (
        "MERGE INTO {t} t USING s ON t.id = s.id WHEN MATCHED AND s.v % 3 = 0 THEN DELETE "
        "WHEN MATCHED THEN UPDATE SET v = s.v, at = s.at "
        f"WHEN NOT MATCHED THEN INSERT {_INSERTED}"
    ),
    (
        "MERGE INTO {t} t USING s ON t.id = s.id AND t.p = s.p "
        "WHEN MATCHED THEN UPDATE SET m = s.m "
        "WHEN NOT MATCHED BY SOURCE AND t.v < 3 THEN DELETE"
    ),
    (
        "MERGE INTO {t} t USING s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET p = s.p, d = s.d, n.x = s.v"
    ),
    "UPDATE {t} SET v = v * 2, n.x = v WHERE id > 10 AND p = 'a'",
    "UPDATE {t} SET p = 'z' WHERE id % 4 = 1",
    "UPDATE {t} SET at = NULL WHERE v IS NULL",
    "DELETE FROM {t} WHERE id BETWEEN 5 AND 9",
    "DELETE FROM {t} WHERE at < TIMESTAMP'2000-01-01' OR d IS NULL",
    "INSERT INTO {t} (id, p, v, at, d, m, n) SELECT id + 1000, p, v, at, d, m, NULL FROM s",
)


@dataclass
class History:
    """A table and its twin."""

    spark: SparkSession
    judge: IcebergSpark
    seed: int
    chance: random.Random = field(init=False)
    heads: list[tuple[int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        self.ours, self.twin = f"h{self.seed}", f"t{self.seed}"
        spec, version = self.chance.choice(_SPECS), self.chance.choice((1, 2, 2, 2))
        modes = self.chance.choice(("merge-on-read", "copy-on-write"))
        if version == 1:
            modes = "copy-on-write"
        for table in (self.ours, self.twin):
            properties = ", ".join(
                f"'write.{each}.mode'='{modes}'" for each in ("merge", "update", "delete")
            )
            self.judge.sql(
                f"CREATE TABLE {CATALOG}.db.{table} (id BIGINT NOT NULL, p STRING, v INT, "
                "at TIMESTAMP, d DATE, m DECIMAL(12,2), n STRUCT<x: INT>) "
                f"USING iceberg {spec} TBLPROPERTIES ('format-version'='{version}', {properties})"
            )

    def step(self, number: int) -> str:
        """One change of both tables; what it was."""
        done = self._change(number, self.chance.random() if number else 1.0)
        self.heads.append(self._heads())
        return done

    def _change(self, number: int, kind: float) -> str:
        # pyiceberg computes no transforms.
        fields = self._library(self.ours).spec().fields
        if kind < 0.1 and all(str(each.transform) == "identity" for each in fields):
            return self._append_by_pyiceberg()
        if kind < 0.18:
            return self._roll_back()
        return self._statement(number, evolves=kind < 0.45, by_java=0.45 <= kind < 0.6)

    def _append_by_pyiceberg(self) -> str:
        for table in (self.ours, self.twin):
            opened = self._library(table)
            schema = opened.schema().as_arrow()
            rows = [{"id": 2000 + n, "p": "ü", "v": n} for n in range(3)]
            opened.append(pa.Table.from_pylist(rows, schema=schema))
        return "append by pyiceberg"

    def _roll_back(self) -> str:
        place = self.chance.randrange(len(self.heads))
        for table, head in zip((self.ours, self.twin), self.heads[place], strict=True):
            self.judge.sql(f"CALL {CATALOG}.system.set_current_snapshot('db.{table}', {head})")
        return f"roll back to what there was after step {place}"

    def _heads(self) -> tuple[int, int]:
        """The current snapshots of both tables."""
        ours, twin = (self._library(each).metadata for each in (self.ours, self.twin))
        return ours.current_snapshot_id, twin.current_snapshot_id

    def _library(self, table: str) -> Any:
        options = self.judge.options
        catalog = SqlCatalog(CATALOG, uri=options["uri"], warehouse=options["warehouse"])
        return catalog.load_table(("db", table))

    def rows_by_pyiceberg(self) -> Iterator[str]:
        """The rows as pyiceberg reads them."""
        for row in self._library(self.ours).scan().to_arrow().to_pylist():
            at = row["at"]
            yield repr({**row, "at": at and at.replace(tzinfo=None)})

    def _statement(self, number: int, *, evolves: bool, by_java: bool) -> str:
        source = ", ".join(self._row(id_) for id_ in self._ids())
        view = (
            "SELECT CAST(id AS BIGINT) AS id, p, v, at, d, CAST(m AS DECIMAL(12,2)) AS m "
            f"FROM VALUES {source} AS x(id, p, v, at, d, m)"
        )
        if evolves:
            text = self.chance.choice(_EVOLUTIONS)
            for table in (self.ours, self.twin):
                name = f"{CATALOG}.db.{table}"
                self.judge.sql(text.format(t=name, n=number + 2, c=CATALOG, u=f"db.{table}"))
            return text
        text = _STATEMENTS[-1] if not number else self.chance.choice(_STATEMENTS)
        self.judge.sql(
            f"CREATE OR REPLACE TEMPORARY VIEW s AS {view}",
            text.format(t=f"{CATALOG}.db.{self.twin}"),
        )
        if by_java:
            self.judge.sql(text.format(t=f"{CATALOG}.db.{self.ours}"))
            return f"by Java: {text}"
        parsed = parse_statement(text.format(t=f"db.{self.ours}"), ["s"])
        request = JobRequest(
            operation_id=str(uuid.uuid4()),
            target=TableName("db", self.ours),
            catalog=CatalogSpec("iceberg", str(self.judge.warehouse), self.judge.options),
            statement=parsed.statement,
            sources=(SqlSource("s", view), *parsed.sources),
        )
        result = run(request, self.spark)
        assert result.error is None, (text, result.error)
        return text

    def _ids(self) -> list[int]:
        return sorted(self.chance.sample(range(30), self.chance.randrange(1, 20)))

    def _row(self, id_: int) -> str:
        chance = self.chance
        v = chance.choice(("NULL", *map(str, range(12))))
        p = chance.choice(("NULL", "'a'", "'b'", "'ü/ä b'"))
        year = chance.choice((1905, 1969, 1970, 2024))
        at = f"TIMESTAMP'{year}-0{chance.randrange(1, 9)}-01 00:00:00.000001'"
        d = chance.choice(("CAST(NULL AS DATE)", "DATE'1969-12-31'", "DATE'2024-02-29'"))
        return f"({id_}, {p}, CAST({v} AS INT), {at}, {d}, {chance.randrange(-99999, 99999)}.25)"

    def rows(self, table: str) -> Iterator[str]:
        """The rows as Java reads them."""
        return map(repr, self.judge.sql(f"SELECT * FROM {CATALOG}.db.{table}"))


@pytest.mark.by_turns(48)
@pytest.mark.parametrize("seed", range(48))
def test_a_history(spark: SparkSession, iceberg_spark: IcebergSpark, seed: int) -> None:
    history, done = History(spark, iceberg_spark, seed), []
    for number in range(8):
        done.append(history.step(number))
        assert sorted(history.rows(history.ours)) == sorted(history.rows(history.twin)), done
        assert sorted(history.rows_by_pyiceberg()) == sorted(history.rows(history.twin)), done
        assert_read_alike(spark, iceberg_spark, f"db.{history.ours}")
    iceberg_spark.sql(
        f"CALL {CATALOG}.system.rewrite_manifests('db.{history.ours}')",
        f"CALL {CATALOG}.system.expire_snapshots(table => 'db.{history.ours}', "
        "older_than => TIMESTAMP'2100-01-01 00:00:00', retain_last => 1)",
    )
    assert sorted(history.rows(history.ours)) == sorted(history.rows(history.twin))
    assert_read_alike(spark, iceberg_spark, f"db.{history.ours}")


def test_odd_names(spark: SparkSession, iceberg_spark: IcebergSpark) -> None:
    table = f"{CATALOG}.db.odd"
    iceberg_spark.sql(
        f"CREATE TABLE {table} (id BIGINT, `a b` STRING, `c.d` STRUCT<`e f`: INT>) USING iceberg",
        f"INSERT INTO {table} VALUES (1, 'x', named_struct('e f', 1)), (2, 'y', NULL)",
    )
    for text in (
        "UPDATE db.odd SET `a b` = 'z', `c.d`.`e f` = 7 WHERE id = 2",
        "INSERT INTO db.odd VALUES (3, 'new', named_struct('e f', 3))",
    ):
        parsed = parse_statement(text)
        request = JobRequest(
            operation_id=str(uuid.uuid4()),
            target=TableName("db", "odd"),
            catalog=CatalogSpec("iceberg", str(iceberg_spark.warehouse), iceberg_spark.options),
            statement=parsed.statement,
            sources=parsed.sources,
        )
        result = run(request, spark)
        assert result.error is None, result.error

    found = iceberg_spark.sql(f"SELECT id, `a b`, `c.d`.`e f` AS n FROM {table} ORDER BY id")
    assert [tuple(row.values()) for row in found] == [(1, "x", 1), (2, "z", 7), (3, "new", 3)]
    assert_read_alike(spark, iceberg_spark, "db.odd")
