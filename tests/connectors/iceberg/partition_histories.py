"""Random tables whose partitions change, and statements that replace partitions of them.

Values are text, as Spark shows them; a partition is what a model in Python makes of a row.
"""

from __future__ import annotations

import random
import uuid
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pyiceberg.transforms import BucketTransform
from pyiceberg.types import LongType
from pyspark.sql import SparkSession

from airflow_provider_merge.sql.parser import parse_statement
from spark_jobs.contract.compaction import CompactSpec
from spark_jobs.contract.inserts import (
    DropPartitionsSpec,
    InsertOverwriteSpec,
    PartitionStatement,
    TruncateTableSpec,
)
from spark_jobs.contract.options import JobOptions
from spark_jobs.contract.request import JobRequest, SqlSource, TableName
from spark_jobs.contract.result import JobResult
from spark_jobs.run import run
from tests.connectors.iceberg.tables import assert_read_alike, catalog_of
from tests.judge.iceberg_spark import CATALOG, IcebergSpark

Row = dict[str, str | None]
_BUCKET: Final = BucketTransform(3).transform(LongType())
_LITERALS: Final[Mapping[str, str]] = {
    "id": "CAST({} AS BIGINT)",
    "p": "'{}'",
    "at": "TIMESTAMP'{} UTC'",
    "n": "TIMESTAMP_NTZ'{}'",
    "x": "CAST('{}' AS DOUBLE)",
    "f": "CAST('{}' AS FLOAT)",
    "b": "X'{}'",
}
_VALUES: Final[Mapping[str, Sequence[str | None]]] = {
    "p": (None, "a", "ab", "abc", "ü/ä b"),
    "at": (
        *(None, "1969-12-31 23:59:59", "1970-01-01 00:00:00", "2026-01-31 07:30:00"),
        *("2026-01-31 08:00:00", "2026-02-01 00:00:00"),
    ),
    "n": (None, "1969-12-31 23:59:59", "2026-03-29 02:30:00", "2026-10-25 02:30:00"),
    "x": (None, "NaN", "0.0", "-0.0", "1.5", "-Infinity"),
    "f": (None, "NaN", "0.0", "-0.0", "0.1", "Infinity"),
    "b": (None, "", "00", "00FF", "00FFAA", "C3A4"),
}
_SHOWN: Final = (
    "CAST(id AS STRING) AS id, p, CAST(at AS STRING) AS at, CAST(n AS STRING) AS n, "
    "CAST(x AS STRING) AS x, CAST(f AS STRING) AS f, hex(b) AS b"
)


def literal(column: str, value: str | None) -> str:
    """A value of a column as SQL."""
    text = _LITERALS[column]
    if value is not None:
        return text.format(value)
    kind = {"id": "BIGINT", "p": "STRING", "at": "TIMESTAMP", "n": "TIMESTAMP_NTZ"} | {
        "x": "DOUBLE",
        "f": "FLOAT",
        "b": "BINARY",
    }
    return f"CAST(NULL AS {kind[column]})"


@dataclass(frozen=True)
class Field:
    """A partition field: its transform in SQL, what it makes of a value, and that as SQL."""

    name: str
    transform: str
    column: str
    value: Callable[[str], str]
    literal: str

    def of(self, row: Row) -> str | None:
        """The value of a row; both zeros are one."""
        found = row[self.column]
        return None if found is None else self.value(found)

    def constant(self, row: Row) -> str:
        """The value of a row as SQL."""
        found = self.of(row)
        return "NULL" if found is None else self.literal.format(found)


def _unsigned(value: str) -> str:
    return "0.0" if value == "-0.0" else value


FIELDS: Final = (
    Field("by_p", "p", "p", str, "'{}'"),
    Field("p_1", "truncate(1, p)", "p", lambda each: each[:1], "'{}'"),
    Field("id_b", "bucket(3, id)", "id", lambda each: str(_BUCKET(int(each))), "{}"),
    Field("id_5", "truncate(5, id)", "id", lambda each: str(int(each) // 5 * 5), "{}"),
    Field("at_y", "years(at)", "at", lambda each: each[:4], "{}"),
    Field("at_m", "months(at)", "at", lambda each: each[:7], "'{}'"),
    Field("at_d", "days(at)", "at", lambda each: each[:10], "DATE'{}'"),
    Field("at_h", "hours(at)", "at", lambda each: each[:13].replace(" ", "-"), "'{}'"),
    Field("by_at", "at", "at", str, "TIMESTAMP'{} UTC'"),
    Field("by_n", "n", "n", str, "TIMESTAMP_NTZ'{}'"),
    Field("by_x", "x", "x", _unsigned, "CAST('{}' AS DOUBLE)"),
    Field("by_f", "f", "f", _unsigned, "CAST('{}' AS FLOAT)"),
    Field("by_b", "b", "b", str, "X'{}'"),
    Field("b_2", "truncate(2, b)", "b", lambda each: each[:4], "X'{}'"),
)


@dataclass
class PartitionHistory:
    """The table ``db.parts<seed>``; everything follows from the seed.

    ``done``: what was done so far. ``deleted``, ``read``: rows and files of all statements.
    """

    spark: SparkSession
    java: IcebergSpark
    seed: int
    rows: list[Row] = field(default_factory=list)
    fields: list[Field] = field(default_factory=list)
    done: list[str] = field(default_factory=list)
    deleted: int = 0
    read: int = 0

    def __post_init__(self) -> None:
        self.chance = random.Random(f"partitions {self.seed}")
        self.name = TableName("db", f"parts{self.seed}")
        self.version = self.chance.choice((1, 2, 2, 3))
        modes = ("copy-on-write", "merge-on-read")
        # Java's writer of ORC makes -0.0 of a 0.0 that follows one.
        self.file_format = self.chance.choice(("parquet", "parquet", "avro"))
        mode = "copy-on-write" if self.version == 1 else self.chance.choice(modes)
        self._java(
            "CREATE TABLE {t} (id BIGINT, p STRING, at TIMESTAMP, n TIMESTAMP_NTZ, x DOUBLE, "
            f"f FLOAT, b BINARY) USING iceberg TBLPROPERTIES ('format-version'='{self.version}', "
            f"'write.delete.mode'='{mode}', 'write.update.mode'='{mode}', "
            f"'write.format.default'='{self.file_format}')"
        )

    def step(self) -> None:
        """Change the table and the model alike."""
        others = (self._insert, self._change_fields, self._update, self._compact)
        act = self.chance.choice((*others, *[self._replace] * 3))
        if not self.rows:
            act = self._insert
        act()

    def check(self) -> None:
        """Compare with what Java reads."""
        rows = self.java.sql(f"SELECT {_SHOWN} FROM {CATALOG}.{self.name}")
        found, wanted = _told(rows), _told(self.rows)
        assert found == wanted, "\n".join([*self.done, _difference(found, wanted)])

    def end(self) -> None:
        """Compare what this project and pyiceberg read with what Java reads."""
        count = assert_read_alike(self.spark, self.java, str(self.name))
        assert count == len(self.rows)
        if self.file_format == "parquet":
            table = self.java.library().load_table((self.name.database, self.name.table))
            found = sorted(map(str, table.scan().to_arrow().column("id").to_pylist()))
            assert found == sorted(str(each["id"]) for each in self.rows), "\n".join(self.done)

    def _java(self, text: str) -> None:
        self.done.append(f"by Java: {text}")
        self.java.sql(text.format(t=f"{CATALOG}.{self.name}"))

    def _new_rows(self, like: Row | None = None) -> list[Row]:
        ids = self.chance.sample(range(40), self.chance.randrange(1, 9))
        fixed = {} if like is None else {each.column: like[each.column] for each in self.fields}
        rows = []
        for id_ in ids:
            row: Row = {name: self.chance.choice(values) for name, values in _VALUES.items()}
            rows.append({"id": str(id_), **row, **fixed})
        return rows

    def _insert(self) -> None:
        rows = self._new_rows()
        if self.fields and self.chance.random() < 0.5:
            self._here(InsertOverwriteSpec("s", "dynamic"), rows)
            return
        self._java(f"INSERT INTO {{t}} {_query(rows)}")
        self.rows += rows

    def _update(self) -> None:
        """Move rows to other partitions."""
        column = self.chance.choice(list(_VALUES))
        value, rest = self.chance.choice(_VALUES[column]), self.chance.randrange(3)
        text = f"UPDATE t SET {column} = {literal(column, value)} WHERE id % 3 = {rest}"
        self.done.append(text)
        result = self._run(parse_statement(text.replace(" t ", f" {self.name} ", 1)).statement)
        moved = [each for each in self.rows if int(str(each["id"])) % 3 == rest]
        assert result.metrics.updated == len(moved), "\n".join(self.done)
        for row in moved:
            row[column] = value

    def _compact(self) -> None:
        mode = self.chance.choice(("minor", "full"))
        self.done.append(f"compact, {mode}")
        self._run(CompactSpec(mode=mode, min_files=2))

    def _run(self, statement: Any, *sources: SqlSource, share: float | None = None) -> JobResult:
        request = JobRequest(
            operation_id=uuid.uuid4().hex,
            target=self.name,
            catalog=catalog_of(self.java),
            statement=statement,
            sources=sources,
            options=JobOptions(rewrite_share=share),
        )
        result = run(request, self.spark)
        assert result.error is None, "\n".join([*self.done, str(result.error)])
        return result

    def _change_fields(self) -> None:
        others = [each for each in FIELDS if each not in self.fields]
        if self.fields and self.chance.random() < 0.4:
            gone = self.chance.choice(self.fields)
            self.fields.remove(gone)
            self._java(f"ALTER TABLE {{t}} DROP PARTITION FIELD {gone.name}")
        new = self.chance.choice(others)
        name = new.name
        self.fields.append(new)
        self._java(f"ALTER TABLE {{t}} ADD PARTITION FIELD {new.transform} AS {name}")

    def _replace(self) -> None:
        if not self.fields:
            self._change_fields()
        like = self.chance.choice(self.rows)
        some = self.chance.sample(self.fields, self.chance.randrange(1, len(self.fields) + 1))
        spec = {each.name: each.constant(like) for each in some}
        kind = self.chance.choice(("dynamic", "dynamic part", "static", "drop", "truncate"))
        if kind == "dynamic":
            rows = self._new_rows(like if self.chance.random() < 0.3 else None)
            self._here(InsertOverwriteSpec("s", "dynamic"), rows)
        elif kind in ("dynamic part", "static"):
            rows = self._new_rows(like)
            rows = [each for each in rows if _place(some, each) == _place(some, like)]
            mode: Any = "static" if kind == "static" else "dynamic"
            self._here(InsertOverwriteSpec("s", mode, partition=spec), rows, (some, [like]))
        elif kind == "drop":
            other = self.chance.choice(self.rows)
            second = {each.name: each.constant(other) for each in some}
            self._here(DropPartitionsSpec((spec, second)), [], (some, [like, other]))
        else:
            self._here(TruncateTableSpec(spec), [], (some, [like]))

    def _here(
        self,
        statement: PartitionStatement,
        rows: list[Row],
        specs: tuple[list[Field], list[Row]] | None = None,
    ) -> None:
        """Run a statement, which replaces partitions of ``specs``: those of rows, by fields."""
        self.done.append(f"{statement} {rows}")
        query = _query(rows) if rows else f"{_query(self.rows)} LIMIT 0"
        sources = [SqlSource("s", query)] if isinstance(statement, InsertOverwriteSpec) else []
        result = self._run(statement, *sources, share=self.chance.choice((None, 0.9)))
        gone = [each for each in self.rows if self._goes(each, statement, rows, specs)]
        wanted = (len(rows), len(gone))
        metrics = result.metrics
        assert (metrics.inserted, metrics.deleted) == wanted, "\n".join(self.done)
        self.rows = [*(each for each in self.rows if each not in gone), *rows]
        self.deleted += len(gone)
        self.read += metrics.files_scanned

    def _goes(
        self,
        row: Row,
        statement: PartitionStatement,
        rows: list[Row],
        specs: tuple[list[Field], list[Row]] | None,
    ) -> bool:
        is_dynamic = isinstance(statement, InsertOverwriteSpec) and statement.mode == "dynamic"
        if specs is not None:
            some, likes = specs
            if _place(some, row) not in [_place(some, each) for each in likes]:
                return False
            is_dynamic = is_dynamic and len(some) < len(self.fields)
        places = [_place(self.fields, each) for each in rows]
        return not is_dynamic or _place(self.fields, row) in places


def _place(fields: Sequence[Field], row: Row) -> tuple[str | None, ...]:
    return tuple(each.of(row) for each in fields)


def _query(rows: Sequence[Row]) -> str:
    values = ", ".join(
        f"({', '.join(literal(name, value) for name, value in row.items())})" for row in rows
    )
    return f"SELECT id, p, at, n, x, f, b FROM VALUES {values} AS s(id, p, at, n, x, f, b)"


def _told(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    return sorted(repr(dict(row)) for row in rows)


def _difference(found: Sequence[str], wanted: Sequence[str]) -> str:
    many, few = Counter(found) - Counter(wanted), Counter(wanted) - Counter(found)
    return f"too many: {sorted(many)}, missing: {sorted(few)}"
