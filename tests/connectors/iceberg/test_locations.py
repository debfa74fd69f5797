"""Where new files go: the properties of tables about their folders."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urlsplit

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.connectors.iceberg.direct import DirectWrite, ids_of
from tests.connectors.iceberg.plain_tables import PlainCatalog
from tests.connectors.iceberg.tables import assert_read_alike, done_here
from tests.judge.iceberg_spark import CATALOG, IcebergSpark

SCHEMA = pa.schema([("id", pa.int64()), ("s", pa.string())])
SPREAD = "[01]{4}/[01]{4}/[01]{4}/[01]{8}"


def data_files(catalog: PlainCatalog) -> list[str]:
    """The paths of the live data files."""
    table = catalog.library().load_table(("db", "t"))
    return [urlsplit(task.file.file_path).path for task in table.scan().plan_files()]


@pytest.mark.parametrize(
    ("properties", "pattern"),
    [
        ({"write.data.path": "file://ROOT/else/"}, "ROOT/else/s=x/[^/]+"),
        ({"write.folder-storage.path": "file://ROOT/old"}, "ROOT/old/s=x/[^/]+"),
        ({"write.object-storage.enabled": "true"}, f"ROOT/db/t/data/{SPREAD}/s=x/[^/]+"),
        (
            {
                "write.object-storage.enabled": "TRUE",
                "write.object-storage.path": "file://ROOT/shared",
                "write.object-storage.partitioned-paths": "false",
            },
            f"ROOT/shared/{SPREAD}/db/t/[^/]+",
        ),
    ],
)
def test_folders_of_new_files(tmp_path: Path, properties: dict[str, str], pattern: str) -> None:
    catalog = PlainCatalog(tmp_path)
    filled = {name: value.replace("ROOT", str(tmp_path)) for name, value in properties.items()}
    table = catalog.create(SCHEMA, {"format-version": "2", **filled}, None)
    with table.update_spec() as update:
        update.add_identity("s")
    connector = catalog.open()
    DirectWrite(connector).insert({"id": 1, "s": "x"}, {"id": 2, "s": "x"}).publish()
    DirectWrite(connector).delete(0, 0).insert({"id": 3, "s": "x"}).publish()
    files = data_files(catalog)

    given_up = DirectWrite(connector).insert({"id": 4, "s": "x"})
    given_up.abort()

    expected = pattern.replace("ROOT", re.escape(str(tmp_path)))
    assert [path for path in files if not re.fullmatch(expected, path)] == []
    assert len(files) == 2
    assert ids_of(catalog) == [2, 3]
    # The rewritten file, and those that are live: none of what was given up.
    assert len(list(tmp_path.rglob("*.parquet"))) == 3


def test_metadata_elsewhere(tmp_path: Path) -> None:
    catalog = PlainCatalog(tmp_path)
    place = tmp_path / "more"
    properties = {"format-version": "2", "write.metadata.path": f"file://{place}"}
    catalog.create(SCHEMA, properties, None)

    DirectWrite(catalog.open()).insert({"id": 1, "s": "x"}).publish()

    assert ids_of(catalog) == [1]
    assert {path.suffix for path in place.iterdir()} == {".avro", ".json"}
    assert len(list(place.glob("snap-*.avro"))) == 1


@pytest.mark.slow
def test_java_goes_on_where_rows_are_spread_and_sorted(
    spark: SparkSession, iceberg_spark: IcebergSpark
) -> None:
    table = f"{CATALOG}.db.spread"
    folder = iceberg_spark.folder / "else where"
    iceberg_spark.sql(
        f"CREATE TABLE {table} (id BIGINT, v STRING) USING iceberg "
        "PARTITIONED BY (bucket(2, id)) TBLPROPERTIES ("
        "'write.object-storage.enabled'='true', 'write.merge.mode'='merge-on-read', "
        f"'write.data.path'='file://{folder}/data', "
        f"'write.metadata.path'='file://{folder}/metadata')",
        f"ALTER TABLE {table} WRITE ORDERED BY v DESC NULLS LAST, id",
        f"INSERT INTO {table} SELECT id, concat('v', id) FROM range(40)",
    )
    view = "SELECT id * 3 AS id, 'new' AS v FROM range(30)"
    text = (
        "MERGE INTO db.spread t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v "
        "WHEN NOT MATCHED THEN INSERT *"
    )

    done_here(spark, iceberg_spark, text, view)

    ids = {*range(40), *range(0, 90, 3)}
    assert assert_read_alike(spark, iceberg_spark, "db.spread") == len(ids)
    iceberg_spark.sql(f"UPDATE {table} SET v = 'java' WHERE id % 5 = 0")
    assert assert_read_alike(spark, iceberg_spark, "db.spread") == len(ids)
