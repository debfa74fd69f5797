"""Tables with random histories by this project's statements, and what is told of their changes."""

from __future__ import annotations

import random
import uuid
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from airflow_provider_merge.sql.parser import parse_statement
from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.compaction import CompactSpec
from spark_jobs.contract.request import CatalogSpec, JobRequest, TableName, TableSource
from spark_jobs.contract.statements import ColumnSpec, CreateTableSpec, Statement
from spark_jobs.contract.table_versions import CHANGE_TYPE, SNAPSHOT_ID, ChangeRange, TableVersion
from spark_jobs.engine.runtime.session import fixed_settings, meaningful_settings
from spark_jobs.engine.source.table_changes import ChosenChanges, chosen_changes
from spark_jobs.run import run
from tests.connectors.iceberg.plain_tables import PlainCatalog

NAME = TableName("db", "t")
COLUMNS = (
    ColumnSpec("id", "BIGINT"),
    ColumnSpec("v", "STRING"),
    ColumnSpec("f", "DOUBLE"),
    ColumnSpec("m", "MAP<STRING, INT>"),
    ColumnSpec("p", "INT"),
)
VECTORS = {"deletion-vectors.enabled": "true"}
MARKS = {f"write.{each}.mode": "merge-on-read" for each in ("delete", "update", "merge")}
# Options by kind; those of Iceberg have a version.
KINDS: dict[str, dict[str, str]] = {
    "append": {},
    "vectors": VECTORS,
    "tracked": {"row-tracking.enabled": "true"},
    "bucketed": {"bucket": "2", "bucket-key": "id"},
    "iceberg-cow": {"format-version": "2"},
    "iceberg-mor": {"format-version": "2", **MARKS},
    "iceberg-v3": {"format-version": "3", **MARKS},
}
# A table with a primary key, which tells its changes in a changelog.
KEYED = "key"
_KEYED = {"bucket": "2", "changelog-producer": "input"}
Row = tuple[Any, ...]


@dataclass
class ChangedTable:
    """The table ``db.t``, partitioned by ``p``."""

    spark: SparkSession
    folder: Path
    kind: str
    statements: list[str] = field(default_factory=list)

    @property
    def catalog(self) -> CatalogSpec:
        if self.kind.startswith("iceberg"):
            return CatalogSpec("iceberg", str(self.folder), PlainCatalog(self.folder).options)
        return CatalogSpec("paimon", str(self.folder))

    @property
    def connector(self) -> Any:
        return open_connector(self.catalog, {})

    def make(self) -> None:
        if self.kind.startswith("iceberg"):
            PlainCatalog(self.folder).library().create_namespace("db")
        self.connector.metadata.create_table(NAME, self.definition)

    @property
    def definition(self) -> CreateTableSpec:
        """What makes the table."""
        key, options = ("p", "id") if self.kind == KEYED else (), KINDS.get(self.kind, _KEYED)
        return CreateTableSpec(COLUMNS, ("p",), primary_key=key, table_options=options)

    def request(self, text: str | Statement, sources: Sequence[Any] = ()) -> JobRequest:
        if not isinstance(text, str):
            return JobRequest(str(uuid.uuid4()), NAME, self.catalog, text)
        parsed = parse_statement(text, [each.name for each in sources])
        return JobRequest(
            *(str(uuid.uuid4()), parsed.target, self.catalog, parsed.statement),
            sources=(*sources, *parsed.sources),
        )

    def do(self, text: str | Statement) -> None:
        """Run a statement."""
        self.statements.append(str(text))
        result = run(self.request(text), self.spark)
        assert result.error is None, (self.statements, result.error)

    def ids(self) -> list[int]:
        """The snapshots, oldest first."""
        connector = self.connector
        history = connector.writes.history(connector.metadata.load_table(NAME))
        return [each.snapshot_id for each in history.entries][::-1]

    def rows(self, snapshot: int) -> Counter[Row]:
        """The rows of a snapshot, with its columns."""
        connector = self.connector
        table = connector.metadata.load_version(NAME, TableVersion(snapshot=snapshot), None)
        files = connector.metadata.plan_files(table)
        with fixed_settings(self.spark, meaningful_settings("UTC")):
            frame = connector.scan.read(self.spark, table, files, table.column_names)
            return Counter(plain(row[:-1]) for row in frame.collect())

    def chosen(self, since: int, until: int | None = None, *, net: bool = False) -> ChosenChanges:
        """What is read of the changes between two snapshots."""
        asked = ChangeRange(from_snapshot=since, to_snapshot=until, net=net)
        source = TableSource("s", NAME, changes=asked)
        return chosen_changes(self.spark, source, self.connector, None, "")

    def changes(self, since: int, until: int | None = None, *, net: bool = False) -> list[Change]:
        """The changes between two snapshots."""
        with fixed_settings(self.spark, meaningful_settings("UTC")):
            chosen = self.chosen(since, until, net=net)
            frame = chosen.frame(self.spark, self.connector)
            assert frame.columns[-2:] == [CHANGE_TYPE, SNAPSHOT_ID]
            return [Change(plain(row[:-2]), row[-2], row[-1]) for row in frame.collect()]


@dataclass(frozen=True)
class Change:
    """A changed row."""

    row: Row
    kind: str
    snapshot: int

    @property
    def sign(self) -> int:
        return 1 if self.kind in ("insert", "update_after") else -1


def applied(rows: Counter[Row], changes: Sequence[Change]) -> Counter[Row]:
    """``rows`` after ``changes``, none of which takes a row away that is not there."""
    found = Counter(rows)
    for each in changes:
        found[each.row] += each.sign
    assert min(found.values(), default=0) >= 0, found
    return +found


def plain(values: Sequence[Any]) -> Row:
    """Values that compare as they are stored: -0.0 is not 0.0, NaN is itself."""
    return tuple(repr(sorted(v.items())) if isinstance(v, dict) else repr(v) for v in values)


def random_statement(chance: random.Random, number: int) -> str | CompactSpec:
    """The next statement of a history."""
    some = ", ".join(str(chance.randrange(12)) for _ in range(3))
    values = ", ".join(_values(chance) for _ in range(chance.randrange(1, 5)))
    merged = (
        f"MERGE INTO db.t t USING (SELECT * FROM VALUES {values} AS s (id, v, f, m, p)) s "
        "ON t.id = s.id + 20 WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT *"
    )
    overwritten = (
        f"INSERT OVERWRITE db.t PARTITION (p = 1) SELECT id, v, f, m FROM VALUES {values} "
        "AS s (id, v, f, m, p)"
    )
    return chance.choice(
        [
            f"INSERT INTO db.t VALUES {values}",
            f"INSERT INTO db.t VALUES {values}",
            f"DELETE FROM db.t WHERE id IN ({some})",
            f"UPDATE db.t SET v = 'u{number}' WHERE id IN ({some})",
            f"UPDATE db.t SET f = -0.0 WHERE id IN ({some}) AND f = 0.0",
            f"UPDATE db.t SET v = v WHERE id IN ({some})",
            merged,
            overwritten,
            CompactSpec(mode="full"),
        ]
    )


def _values(chance: random.Random) -> str:
    number = chance.choice(["0.0D", "-0.0D", "1.5D", "double('NaN')", "NULL"])
    pairs = chance.choice(["map('a', 1)", "map('b', 2, 'a', 1)", "NULL"])
    name = chance.choice(["'x'", "'y'", "NULL"])
    return f"({chance.randrange(12)}L, {name}, {number}, {pairs}, {chance.randrange(2)})"
