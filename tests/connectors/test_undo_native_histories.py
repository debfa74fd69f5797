"""Random histories in which runs are undone between changes of native engines of any kind."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from spark_jobs.contract.request import TableName
from tests.connectors.iceberg.tables import opened
from tests.connectors.test_undo_histories import ICEBERG, IcebergTables, PaimonTables
from tests.connectors.undo_histories import History, Row
from tests.judge.conftest import java
from tests.judge.iceberg_spark import CATALOG, IcebergSpark, iceberg_spark
from tests.judge.judge import read_with_java
from tests.judge.writer import JavaTable
from tests.support.turns import EVERYTHING

__all__ = ["iceberg_spark", "java"]

TYPES = {"id": "INT", "s": "STRING"}
PAIMON = ("append", "vectors", "bucketed vectors", "row tracking", "tracked vectors", "key")
_MARKING = ("vectors", "bucketed vectors", "tracked vectors")
SEEDS = range(12 if EVERYTHING else 1)
RUNS = 10 if EVERYTHING else 4


class JavaPaimonTables(PaimonTables):
    """Tables that Paimon's Java changes, too."""

    is_native = True

    def __init__(self, folder: Path, kind: str) -> None:
        super().__init__(folder, kind)
        self.folder, self.kind = folder, kind

    def natively(self, name: TableName, chance: random.Random, ids: Sequence[int]) -> str:
        java = JavaTable(self.folder, str(name), TYPES)
        new = {"id": 5000 + chance.randint(0, 10**6), "s": "java"}
        chosen = chance.sample(list(ids), min(len(ids), chance.randint(1, 2)))
        what = chance.choice(["append", "change", "change", "compact", "compact", "expire"])
        if what == "expire" and chance.random() < 0.5:
            what = "compact"
        if what == "expire":
            java.expire()
        elif what == "compact":
            java.compact()
        elif what == "change" and self.kind in _MARKING and chosen:
            java.delete("id", chosen)
        elif what == "change" and self.is_keyed and chosen:
            java.append_records(
                [(chance.choice(["+U", "-D"]), {"id": n, "s": "java"}) for n in chosen]
            )
        else:
            what = "append"
            java.append_rows([new])
        return what

    def rows(self, name: TableName) -> Counter[Row]:
        found = super().rows(name)
        judged = read_with_java(self.folder, str(name))
        plain = Counter((row[0], row[1]) for row in found.elements())
        assert Counter((row["id"], row["s"]) for row in judged) == plain, "Java reads other rows"
        return found


class SparkIcebergTables(IcebergTables):
    """Tables of a catalog in which Spark with Iceberg changes them, too."""

    is_native = True

    def __init__(self, judge: IcebergSpark, mode: str, prefix: str) -> None:
        self.judge, self.catalog = judge, judge  # type: ignore[assignment]
        self.connector = opened(judge)
        self.names = [TableName("db", f"{prefix}{n}") for n in range(3)]
        self.is_keyed, self.is_3 = False, mode == "version 3"
        way = "copy-on-write" if mode == "copy-on-write" else "merge-on-read"
        properties = {f"write.{each}.mode": way for each in ("delete", "update", "merge")}
        properties["format-version"] = "3" if self.is_3 else "2"
        listed = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
        for name in self.names:
            judge.sql(
                f"CREATE TABLE {CATALOG}.{name} (id BIGINT, s STRING) USING iceberg "
                f"TBLPROPERTIES ({listed})"
            )

    def natively(self, name: TableName, chance: random.Random, ids: Sequence[int]) -> str:
        table = f"{CATALOG}.{name}"
        chosen = ", ".join(map(str, chance.sample(list(ids), min(len(ids), 2)))) or "-1"
        new = 5000 + chance.randint(0, 10**6)
        source = f"(SELECT explode(array({chosen}, {new})) AS id) AS s"
        statements = {
            "merge": f"MERGE INTO {table} AS t USING {source} ON t.id = s.id "
            f"WHEN MATCHED AND s.id % 2 = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET s = 'spark' "
            f"WHEN NOT MATCHED THEN INSERT (id, s) VALUES (s.id, 'spark')",
            "delete": f"DELETE FROM {table} WHERE id IN ({chosen})",
            "update": f"UPDATE {table} SET s = 'spark' WHERE id IN ({chosen})",
            "insert": f"INSERT INTO {table} VALUES ({new}, 'spark')",
            "rewrite": f"CALL {CATALOG}.system.rewrite_data_files(table => '{name}', "
            f"options => map('rewrite-all', 'true'))",
            "rewrite some": f"CALL {CATALOG}.system.rewrite_data_files(table => '{name}', "
            f"strategy => 'sort', sort_order => 'id DESC', where => 'id < {chance.randrange(60)}', "
            f"options => map('rewrite-all', 'true'))",
            "rewrite deletes": f"CALL {CATALOG}.system.rewrite_position_delete_files("
            f"table => '{name}', options => map('rewrite-all', 'true'))",
            "rewrite manifests": f"CALL {CATALOG}.system.rewrite_manifests('{name}')",
            "expire": "",
        }
        what = chance.choice([*statements, "merge", "update", "delete", "insert"])
        if what == "expire":
            self.judge.expire(str(name))
        else:
            self.judge.sql(statements[what])
        return what

    def append(self, name: TableName, ids: Sequence[int]) -> None:
        values = ", ".join(f"({each}, 'x')" for each in ids)
        self.judge.sql(f"INSERT INTO {CATALOG}.{name} VALUES {values}")

    def rows(self, name: TableName) -> Counter[Row]:
        found = super().rows(name)
        judged = self.judge.sql(f"SELECT id, s FROM {CATALOG}.{name}")
        plain = Counter((row[0], row[1]) for row in found.elements())
        assert Counter(tuple(row.values()) for row in judged) == plain, "Spark reads other rows"
        return found


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", PAIMON)
@pytest.mark.by_turns(6)
@pytest.mark.usefixtures("java")
def test_histories_with_java(tmp_path: Path, kind: str, seed: int) -> None:
    seen = History(JavaPaimonTables(tmp_path, kind), seed).play(RUNS)
    print(kind, seed, dict(seen))  # noqa: T201 - the counts are a result
    assert seen["undone"] + seen["refused"] > 1


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("mode", ICEBERG)
@pytest.mark.by_turns(3)
def test_histories_with_spark(iceberg_spark: IcebergSpark, mode: str, seed: int) -> None:
    prefix = f"history_{mode.replace(' ', '_').replace('-', '_')}_{seed}_"
    tables: Any = SparkIcebergTables(iceberg_spark, mode, prefix)
    seen = History(tables, seed).play(RUNS)
    print(mode, seed, dict(seen))  # noqa: T201 - the counts are a result
    assert seen["undone"] + seen["refused"] > 1
