"""Tables with columns of types that Spark does not have, which Java fills."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
import pytest
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.schema import Schema
from pyspark.sql import SparkSession

from airflow_provider_merge.sql.parser import parse_statement
from spark_jobs.contract.query import QuerySpec
from spark_jobs.contract.request import JobRequest, Source, SqlSource, TableName, TableSource
from spark_jobs.contract.result import JobResult
from spark_jobs.datafiles.parquet import footer as footers
from spark_jobs.errors import ErrorCode
from spark_jobs.run import run
from tests.connectors.iceberg.tables import catalog_of
from tests.judge.iceberg_spark import IcebergSpark
from tests.support.iceberg_files import spec_by

MODES = ("copy-on-write", "merge-on-read")
NESTED = {
    "type": "struct",
    "fields": [
        {"id": 7, "name": "a", "type": "uuid", "required": False},
        {"id": 8, "name": "b", "type": "time", "required": False},
    ],
}
TYPES: Mapping[str, Any] = {
    "id": "int",
    "u": "uuid",
    "n": "int",
    "t": "time",
    "f": "fixed[3]",
    "s": NESTED,
}
OPAQUE = {"u": "uuid", "t": "time", "f": "fixed[3]", "s": "uuid"}
Row = dict[str, Any]


def schema_of(columns: Sequence[str] = tuple(TYPES)) -> Schema:
    fields = [
        {"id": number, "name": name, "type": TYPES[name], "required": name == "id"}
        for number, name in enumerate(columns, 1)
    ]
    return Schema.model_validate({"type": "struct", "schema-id": 0, "fields": fields})


def row(number: int) -> Row:
    """Each third one has NULL in all columns but ``id``."""
    if number % 3 == 2:
        return {**dict.fromkeys(TYPES), "id": number}
    key = uuid.UUID(int=(number * 0x1F << 120) + number)
    time = dt.time(number, 59, 7, 123456 + number)
    nested = {"a": uuid.UUID(int=number), "b": time} if number else None
    fixed = bytes([number, 255, 0])
    return {"id": number, "u": key, "n": number * 10, "t": time, "f": fixed, "s": nested}


ROWS = [row(number) for number in range(9)]


def new(number: int, n: int | None = None) -> Row:
    return {**dict.fromkeys(TYPES), "id": number, "n": n}


@dataclass(frozen=True)
class Tables:
    """Tables that Java fills, and statements of this project on them."""

    judge: IcebergSpark
    spark: SparkSession

    def made(
        self,
        mode: str = MODES[0],
        *,
        columns: Sequence[str] = tuple(TYPES),
        rows: Sequence[Row] = ROWS,
        partition: tuple[str, str] | None = None,
    ) -> str:
        """The name of a new table."""
        name, schema = f"db.t{uuid.uuid4().hex[:8]}", schema_of(columns)
        modes = {f"write.{each}.mode": mode for each in ("merge", "update", "delete")}
        spec = spec_by(schema, *partition) if partition else UNPARTITIONED_PARTITION_SPEC
        self.judge.library().create_table(name, schema, partition_spec=spec, properties=modes)
        if rows:
            self.judge.append(name, [{each: found[each] for each in columns} for found in rows])
        return name

    def run(self, text: str, *sources: Source, dry_run: bool = False) -> JobResult:
        parsed = parse_statement(text, [each.name for each in sources])
        request = JobRequest(
            operation_id=uuid.uuid4().hex,
            target=parsed.target,
            catalog=catalog_of(self.judge),
            statement=parsed.statement,
            sources=(*sources, *parsed.sources),
            dry_run=dry_run,
        )
        return run(request, self.spark)

    def done(self, text: str, *sources: Source, dry_run: bool = False) -> JobResult:
        result = self.run(text, *sources, dry_run=dry_run)
        assert result.error is None, (text, result.error)
        return result

    def refused(self, text: str, *sources: Source) -> str:
        """The message."""
        error = self.run(text, *sources).error
        assert error is not None, text
        assert error.code == ErrorCode.NOT_SUPPORTED.name, (text, error)
        return error.message

    def query(self, text: str, *tables: str) -> JobResult:
        """Run a query over tables, which it calls ``s0``, ``s1`` …"""
        sources = [TableSource(f"s{i}", TableName.parse(each)) for i, each in enumerate(tables)]
        request = JobRequest(
            operation_id=uuid.uuid4().hex,
            target=None,
            catalog=catalog_of(self.judge),
            statement=QuerySpec("q", 100),
            sources=(*sources, SqlSource("q", text)),
        )
        return run(request, self.spark)

    def loaded(self, name: str) -> Any:
        """The table as pyiceberg opens it."""
        return self.judge.library().load_table(name)

    def assert_rows(self, name: str, wanted: Sequence[Row], *, by_java: bool = True) -> None:
        """Check the rows as pyiceberg and Java read them."""
        # pyiceberg fails on an empty table with a UUID.
        found = self.loaded(name).scan().to_arrow().to_pylist() if wanted else []
        assert sorted(map(repr, map(_plain, found))) == sorted(map(repr, map(_plain, wanted)))
        if by_java:
            records = self.judge.records(name)
            assert sorted(map(repr, records)) == sorted(map(repr, map(_java, wanted)))

    def elements(self, name: str) -> list[Any]:
        """What the footer of each data file says of the columns."""
        found = [footers.read_footer(pa.OSFile(path)).fields for path in self.paths(name)]
        return [footers.items(each[footers.FileField.SCHEMA])[1:] for each in found]

    def paths(self, name: str) -> list[str]:
        tasks = self.loaded(name).scan().plan_files()
        return [urlsplit(task.file.file_path).path for task in tasks]


def _plain(value: Any) -> Any:
    """pyiceberg has bytes for a UUID."""
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    return value.bytes if isinstance(value, uuid.UUID) else value


def _java(found: Row) -> Row:
    return {name: _java_text(value) for name, value in found.items()}


def _java_text(value: Any) -> Any:
    if isinstance(value, dict):
        return f"Record({', '.join(map(str, value.values()))})"
    return str(value) if isinstance(value, uuid.UUID | dt.time) else value


@pytest.fixture(scope="module")
def tables(iceberg_spark: IcebergSpark, spark: SparkSession) -> Tables:
    return Tables(iceberg_spark, spark)
