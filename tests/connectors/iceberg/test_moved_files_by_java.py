"""Files of older partition specs that were compacted, as Spark with Iceberg sees them."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from spark_jobs.contract.compaction import CompactSpec
from tests.connectors.iceberg.plain_history import NAME
from tests.connectors.iceberg.tables import assert_read_alike, opened
from tests.connectors.iceberg.test_compaction import Compacting
from tests.connectors.iceberg.test_compaction_by_java import compacted, files, rows_of
from tests.judge.iceberg_spark import CATALOG, IcebergSpark

pytestmark = pytest.mark.slow

FULL = CompactSpec(mode="full")


def require_current_spec(judge: IcebergSpark, table: str) -> None:
    """Check that all live files are of the spec that Iceberg's library writes by."""
    library = judge.library().load_table(tuple(table.split(".")))
    found = judge.sql(f"SELECT DISTINCT spec_id AS n FROM {CATALOG}.{table}.files")
    assert [each["n"] for each in found] == [library.spec().spec_id]


@pytest.mark.parametrize("version", [1, 2])
def test_a_spec_that_evolves(
    spark: SparkSession, iceberg_spark: IcebergSpark, version: int
) -> None:
    judge, table = iceberg_spark, f"db.evolved_{version}"
    marks = "'write.delete.mode' = 'merge-on-read'" if version == 2 else "'a' = 'b'"
    judge.sql(
        f"CREATE TABLE {CATALOG}.{table} (id INT, day DATE, s STRING, m DECIMAL(9, 2)) "
        f"USING iceberg TBLPROPERTIES ('format-version' = '{version}', {marks})"
    )
    changes = (
        "ADD PARTITION FIELD day",
        "ADD PARTITION FIELD bucket(3, id)",
        "REPLACE PARTITION FIELD day WITH months(day)",
        "ADD PARTITION FIELD truncate(1, s)",
        "DROP PARTITION FIELD id_bucket_3",
        "ADD PARTITION FIELD truncate(100, m)",
    )
    for number, change in enumerate(changes):
        judge.sql(
            f"INSERT INTO {CATALOG}.{table} SELECT CAST(id + {number * 30} AS INT), "
            "DATE '2026-01-30' + CAST(id % 3 AS INT), get(array('x', 'yz', NULL), int(id % 3)), "
            "IF(id % 5 = 0, NULL, CAST(id % 4 AS DECIMAL(9, 2))) FROM range(30)",
            f"ALTER TABLE {CATALOG}.{table} {change}",
        )
    judge.sql(f"DELETE FROM {CATALOG}.{table} WHERE id % 7 = 0")
    before = rows_of(judge, table)

    report = compacted(spark, judge, table, FULL)

    assert report.partitions_compacted == 1
    assert rows_of(judge, table) == before
    require_current_spec(judge, table)
    assert files(judge, table).keys() == {0}
    assert_read_alike(spark, judge, table)
    assert judge.library().load_table(("db", table[3:])).scan().to_arrow().num_rows == len(before)
    # Once more, for files that were in today's partitions before.
    compacted(spark, judge, table, FULL)
    assert compacted(spark, judge, table, FULL).snapshots == ()
    judge.sql(f"ALTER TABLE {CATALOG}.{table} DROP PARTITION FIELD day_month")
    for field in ("s_trunc_1", "m_trunc_100"):
        judge.sql(f"ALTER TABLE {CATALOG}.{table} DROP PARTITION FIELD {field}")
    report = compacted(spark, judge, table, FULL)
    assert (report.partitions_compacted, report.files_after) == (1, 1)
    require_current_spec(judge, table)
    # Others go on.
    judge.sql(
        f"CALL {CATALOG}.system.rewrite_data_files(table => '{table}', "
        "options => map('rewrite-all', 'true'))",
        f"CALL {CATALOG}.system.rewrite_manifests('{table}')",
    )
    assert rows_of(judge, table) == before


def test_deletes_of_others_meanwhile(spark: SparkSession, iceberg_spark: IcebergSpark) -> None:
    """Equality deletes of a partition are about files of its spec alone."""
    judge, table = iceberg_spark, f"{CATALOG}.{NAME}"
    judge.sql(
        f"DROP TABLE IF EXISTS {table} PURGE",
        f"CREATE TABLE {table} (id INT, p STRING) USING iceberg "
        "TBLPROPERTIES ('format-version' = '2')",
        f"INSERT INTO {table} VALUES (1, 'a'), (2, 'a'), (3, 'b')",
    )
    judge.sql(f"ALTER TABLE {table} ADD PARTITION FIELD p")
    work = Compacting(opened(judge))
    place = judge.folder / "values.parquet"
    write_values(place, 2)
    judge.sql(f"INSERT INTO {table} VALUES (4, 'a')")
    judge.steps(str(NAME), ("delete_values", ["id"], str(place), 1))
    before = rows_of(judge, str(NAME))

    (group,) = work.publish()

    assert group.lost == {0}
    assert rows_of(judge, str(NAME)) == before
    report = compacted(spark, judge, str(NAME), FULL)
    assert report.partitions_compacted == 2
    assert rows_of(judge, str(NAME)) == before
    require_current_spec(judge, str(NAME))


def write_values(place: object, value: int) -> None:
    """A file of equality deletes by ``id``."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    field = pa.field("id", pa.int32(), metadata={"PARQUET:field_id": "1"})
    pq.write_table(pa.table({"id": [value]}, schema=pa.schema([field])), place)
