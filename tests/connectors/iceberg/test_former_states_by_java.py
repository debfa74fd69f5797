"""Former states of tables: the rows and columns that Spark with Iceberg reads by AS OF."""

from __future__ import annotations

import datetime as dt
import itertools
import json
import time
import uuid
from typing import Any

import pytest
from pyspark.sql import SparkSession

from airflow_provider_merge.sql.parser import parse_query
from spark_jobs.connectors.iceberg.read.scan import IcebergScan
from spark_jobs.contract.query import QuerySpec
from spark_jobs.contract.request import JobRequest, TableName
from spark_jobs.contract.table_versions import TableVersion
from spark_jobs.engine.runtime.session import fixed_settings, meaningful_settings
from spark_jobs.errors import JobError
from spark_jobs.run import run
from spark_jobs.spi.rows import ROW_ID
from tests.connectors.iceberg.tables import READERS, catalog_of, done_here, opened
from tests.judge.iceberg_spark import CATALOG, IcebergSpark

NAME = TableName("db", "travelled")
TABLE = f"{CATALOG}.{NAME}"
HISTORY = (
    "INSERT INTO {t} VALUES (1, 'a', 1.5), (2, 'b', 2.5), (3, 'c', 3.5)",
    "DELETE FROM {t} WHERE id = 2",
    "ALTER TABLE {t} ADD COLUMN more BIGINT",
    "INSERT INTO {t} VALUES (4, 'd', 4.5, 40), (5, 'e', 5.5, 50)",
    "UPDATE {t} SET name = 'A' WHERE id = 1",
    "ALTER TABLE {t} RENAME COLUMN name TO called",
    "ALTER TABLE {t} ADD PARTITION FIELD bucket(3, id)",
    "INSERT INTO {t} VALUES (6, 'f', 6.5, 60)",
    "ALTER TABLE {t} DROP COLUMN amount",
    "DELETE FROM {t} WHERE id IN (3, 6)",
    "ALTER TABLE {t} REPLACE PARTITION FIELD bucket(3, id) WITH truncate(2, called)",
    "INSERT INTO {t} VALUES (7, 'g', 70)",
    "CALL {c}.system.rewrite_data_files(table => '{n}', options => map('rewrite-all', 'true'))",
)


def made(judge: IcebergSpark, mode: str) -> list[int]:
    """The ids of the snapshots of a table with a history."""
    properties = ", ".join(
        f"'write.{each}.mode' = '{mode}'" for each in ("delete", "update", "merge")
    )
    judge.sql(
        f"CREATE NAMESPACE IF NOT EXISTS {CATALOG}.db",
        f"DROP TABLE IF EXISTS {TABLE}",
        f"CREATE TABLE {TABLE} (id BIGINT, name STRING, amount DOUBLE) USING iceberg "
        f"TBLPROPERTIES ('format-version' = '2', {properties})",
        *(each.format(t=TABLE, c=CATALOG, n=NAME) for each in HISTORY),
    )
    rows = judge.sql(f"SELECT snapshot_id FROM {TABLE}.snapshots ORDER BY committed_at")
    return [row["snapshot_id"] for row in rows]


def rows_then(
    spark: SparkSession, judge: IcebergSpark, at: TableVersion, millis: int | None = None
) -> list[dict[str, Any]]:
    """The rows of a former state, the same by both readers."""
    connector = opened(judge)
    table = connector.metadata.load_version(NAME, at, millis)
    files = connector.metadata.plan_files(table)
    found = []
    for reader in READERS:
        with fixed_settings(spark, meaningful_settings("UTC")):
            frame = IcebergScan(reader).read(spark, table, files, table.column_names)
            rows = [row.asDict(recursive=True) for row in frame.drop(ROW_ID).collect()]
        found.append(sorted(rows, key=repr))
    assert found[0] == found[1]
    return found[0]


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_each_state_is_read_as_by_iceberg(
    spark: SparkSession, iceberg_spark: IcebergSpark, mode: str
) -> None:
    ids = made(iceberg_spark, mode)
    assert len(ids) == 8
    for each in ids:
        wanted = iceberg_spark.sql(f"SELECT * FROM {TABLE} VERSION AS OF {each}")
        found = rows_then(spark, iceberg_spark, TableVersion(snapshot=each))
        assert found == sorted(wanted, key=repr)
        assert found == rows_then(spark, iceberg_spark, TableVersion(version=str(each)))


def test_tags_branches_and_times(spark: SparkSession, iceberg_spark: IcebergSpark) -> None:
    judge = iceberg_spark
    ids = made(judge, "merge-on-read")
    judge.sql(
        f"ALTER TABLE {TABLE} CREATE TAG kept AS OF VERSION {ids[1]}",
        f"ALTER TABLE {TABLE} CREATE BRANCH side AS OF VERSION {ids[2]}",
        f"INSERT INTO {TABLE}.branch_side VALUES (9, 'side', 90)",
        f"CALL {CATALOG}.system.rollback_to_snapshot('{NAME}', {ids[3]})",
    )
    for text in ("kept", "side"):
        wanted = judge.sql(f"SELECT * FROM {TABLE} VERSION AS OF '{text}'")
        found = rows_then(spark, judge, TableVersion(version=text))
        assert found == sorted(wanted, key=repr)
    kept = judge.sql(f"SELECT * FROM {TABLE} VERSION AS OF 'kept'")
    assert rows_then(spark, judge, TableVersion(tag="kept")) == sorted(kept, key=repr)
    log = judge.sql(f"SELECT made_current_at, snapshot_id FROM {TABLE}.history")
    moments = sorted({row["made_current_at"] for row in log})
    for moment in (*moments, moments[-1] + dt.timedelta(days=1)):
        text = moment.strftime("%Y-%m-%d %H:%M:%S.%f")
        wanted = judge.sql(f"SELECT * FROM {TABLE} TIMESTAMP AS OF '{text}'")
        millis = round(moment.replace(tzinfo=dt.UTC).timestamp() * 1000)
        asked = TableVersion(as_of=f"{text}+00:00")
        assert rows_then(spark, judge, asked, millis) == sorted(wanted, key=repr)

    side = TableName("db", "travelled$branch_side")
    metadata = opened(judge).metadata
    assert metadata.load_version(side, TableVersion(snapshot=ids[1]), None).snapshot_id == ids[1]
    for at, millis, code in (
        (TableVersion(snapshot=5), None, "SNAPSHOT_NOT_FOUND"),
        (TableVersion(version="7"), None, "SNAPSHOT_NOT_FOUND"),
        (TableVersion(tag="side"), None, "TAG_NOT_FOUND"),
        (TableVersion(version="gone"), None, "TAG_NOT_FOUND"),
        (TableVersion(as_of="2000-01-01"), 946_684_800_000, "SNAPSHOT_NOT_FOUND"),
    ):
        with pytest.raises(JobError, match=str(NAME)) as caught:
            metadata.load_version(NAME, at, millis)
        assert caught.value.code.name == code
        assert caught.value.places == (at.field,)
        assert caught.value.remedy
    # In no history of the branch, but in the table.
    with pytest.raises(JobError, match="does not have a snapshot"):
        metadata.load_version(side, TableVersion(snapshot=ids[-1]), None)


def asked(spark: SparkSession, judge: IcebergSpark, text: str) -> list[dict[str, Any]]:
    name, sources = parse_query(text)
    request = JobRequest(str(uuid.uuid4()), None, catalog_of(judge), QuerySpec(name), sources)
    result = run(request, spark, {})
    assert result.error is None, result.error
    assert result.query is not None
    names = [each.name for each in result.query.columns]
    return [dict(zip(names, row, strict=True)) for row in result.query.rows or ()]


def test_statements_read_the_state_and_say_so(
    spark: SparkSession, iceberg_spark: IcebergSpark
) -> None:
    judge = iceberg_spark
    ids = made(judge, "copy-on-write")
    judge.sql(
        f"DROP TABLE IF EXISTS {CATALOG}.db.copy",
        f"CREATE TABLE {CATALOG}.db.copy (id BIGINT, state STRING) USING iceberg",
    )
    first, last = ids[0], ids[-1]
    done_here(
        spark,
        judge,
        f"INSERT INTO db.copy SELECT id, 'first' FROM {NAME} VERSION AS OF {first} "
        f"UNION ALL SELECT id, 'last' FROM {NAME}",
        "SELECT 1",
    )
    rows = judge.sql(f"SELECT id, state FROM {CATALOG}.db.copy")
    assert sorted((row["state"], row["id"]) for row in rows) == [
        *itertools.product(["first"], [1, 2, 3]),
        *itertools.product(["last"], [1, 4, 5, 7]),
    ]
    (told,) = judge.sql(f"SELECT summary['merge.sources'] AS told FROM {CATALOG}.db.copy.snapshots")
    assert json.loads(told["told"]) == {str(NAME): sorted([first, last])}

    # The target itself, as it was: what a mistake deleted comes back.
    text = (
        f"MERGE INTO {NAME} USING (SELECT id, more FROM {NAME} VERSION AS OF {ids[4]}) old "
        "ON travelled.id = old.id WHEN NOT MATCHED THEN INSERT (id, more) VALUES (id, more)"
    )
    done_here(spark, judge, text, "SELECT 1")
    back = judge.sql(f"SELECT id FROM {TABLE} ORDER BY id")
    assert [row["id"] for row in back] == [1, 3, 4, 5, 6, 7]
    newest = judge.sql(f"SELECT summary FROM {TABLE}.snapshots ORDER BY committed_at DESC LIMIT 1")
    assert json.loads(dict(newest[0]["summary"])["merge.sources"]) == {str(NAME): ids[4]}


def test_a_time_without_a_zone_is_of_the_session(
    spark: SparkSession, iceberg_spark: IcebergSpark
) -> None:
    judge = iceberg_spark
    made(judge, "copy-on-write")
    time.sleep(0.01)
    moment = dt.datetime.now(dt.UTC)
    judge.sql(f"DELETE FROM {TABLE}")
    with_zone = f"SELECT count(*) AS n FROM {NAME} TIMESTAMP AS OF '{moment.isoformat()}'"
    plain = moment.replace(tzinfo=None).isoformat(sep=" ")
    for text in (with_zone, f"SELECT count(*) AS n FROM {NAME} TIMESTAMP AS OF '{plain}'"):
        assert asked(spark, judge, text) == [{"n": 4}]
