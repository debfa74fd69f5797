"""Tables of Iceberg that need care; every builder gets a share of the whole size."""

from __future__ import annotations

import uuid
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from benchmarks.comparison import session
from spark_jobs.contract.request import CatalogSpec
from tests.judge.iceberg_spark import JARS
from tests.judge.toolchain import fetched_jar

HEAP: Final = "3g"
CATALOG: Final = "ice"
DATABASE: Final = "bench"
PARTITIONS: Final = 50
# In each file.
_ROWS: Final = 1000
_KINDS: Final = {
    "part": pa.int32(),
    "id": pa.int64(),
    "amount": pa.float64(),
    "comment": pa.string(),
}
_PROPERTIES: Final = {"format-version": "2", "write.delete.mode": "merge-on-read"}
_FIRST_MILLIS: Final = 1_700_000_000_000


@dataclass(frozen=True)
class Place:
    """A folder with a SQL catalog, in SQLite, and its tables."""

    folder: Path

    @property
    def catalog(self) -> CatalogSpec:
        """The catalog for this project."""
        options = {
            "type": "sql",
            "uri": f"sqlite:///{self.folder}/catalog.db",
            "warehouse": f"file://{self.folder}/warehouse",
            "catalog-name": CATALOG,
        }
        return CatalogSpec("iceberg", str(self.folder / "warehouse"), options)

    def library(self) -> Any:
        """The catalog as pyiceberg opens it."""
        from pyiceberg.catalog.sql import SqlCatalog

        options = self.catalog.options
        return SqlCatalog(CATALOG, uri=options["uri"], warehouse=options["warehouse"])

    def java(self) -> SparkSession:
        """A session with Iceberg's own runtime, whose catalog this is."""
        prefix = f"spark.sql.catalog.{CATALOG}"
        return session(
            HEAP,
            {
                "spark.jars": ",".join(str(fetched_jar(jar)) for jar in JARS),
                "spark.sql.extensions": (
                    "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
                ),
                prefix: "org.apache.iceberg.spark.SparkCatalog",
                f"{prefix}.type": "jdbc",
                f"{prefix}.uri": f"jdbc:sqlite:{self.folder}/catalog.db",
                f"{prefix}.warehouse": f"file://{self.folder}/warehouse",
                f"{prefix}.jdbc.schema-version": "V1",
            },
        )


def build_snapshots(place: Place, name: str, share: float) -> None:
    """Snapshots, each of which replaced the two files of the one before."""
    with closing(place.library()) as catalog:
        table = catalog.create_table((DATABASE, name), _schema(), properties=_PROPERTIES)
        folder = Path(table.location().removeprefix("file://"), "data")
        folder.mkdir(parents=True)
        rows = _written(folder / "rows.parquet", 0)
        snapshots: list[Any] = []
        files: list[Any] = []
        for number in range(1, max(int(10_000 * share), 10) + 1):
            replaced, files = files, [_linked(rows, folder / f"{number}-{each}") for each in "ab"]
            snapshots.append(_snapshot(table, number, files, replaced))
        _publish(catalog, table, snapshots)


def _snapshot(table: Any, number: int, added: list[Any], removed: list[Any]) -> Any:
    """A snapshot of two manifests."""
    from pyiceberg.manifest import ManifestEntryStatus, write_manifest_list
    from pyiceberg.table.snapshots import Operation, Snapshot, Summary

    manifests = [_manifest(table, number, added, ManifestEntryStatus.ADDED)]
    if removed:
        manifests.append(_manifest(table, number, removed, ManifestEntryStatus.DELETED))
    parent = number - 1 or None
    path = f"{table.location()}/metadata/snap-{number}-{uuid.uuid4()}.avro"
    target = table.io.new_output(path)
    with write_manifest_list(2, target, number, parent, number, "deflate") as writer:
        writer.add_manifests(manifests)
    return Snapshot(
        snapshot_id=number,
        parent_snapshot_id=parent,
        sequence_number=number,
        timestamp_ms=_FIRST_MILLIS + number,
        manifest_list=path,
        summary=Summary(Operation.OVERWRITE),
        schema_id=table.schema().schema_id,
    )


def _manifest(table: Any, number: int, files: list[Any], status: Any) -> Any:
    from pyiceberg.manifest import ManifestEntry, ManifestEntryStatus, write_manifest

    added_by = number - (status is ManifestEntryStatus.DELETED)
    target = table.io.new_output(f"{table.location()}/metadata/{uuid.uuid4()}-m0.avro")
    with write_manifest(2, table.spec(), table.schema(), target, number, "deflate") as writer:
        for file in files:
            entry = ManifestEntry.from_args(
                status=status,
                snapshot_id=number,
                sequence_number=added_by,
                file_sequence_number=added_by,
                data_file=file,
            )
            writer.add_entry(entry)
    return writer.to_manifest_file()


def _publish(catalog: Any, table: Any, snapshots: list[Any]) -> None:
    """Give the table, which has no snapshot yet, these, the last as its newest."""
    from pyiceberg.serializers import ToOutputFile
    from pyiceberg.table.refs import SnapshotRef, SnapshotRefType
    from pyiceberg.table.snapshots import SnapshotLogEntry

    last = snapshots[-1]
    log = [
        SnapshotLogEntry(snapshot_id=each.snapshot_id, timestamp_ms=each.timestamp_ms)
        for each in snapshots
    ]
    reference = SnapshotRef(snapshot_id=last.snapshot_id, snapshot_ref_type=SnapshotRefType.BRANCH)
    metadata = table.metadata.model_copy(
        update={
            "snapshots": snapshots,
            "snapshot_log": log,
            "current_snapshot_id": last.snapshot_id,
            "last_sequence_number": last.sequence_number,
            "refs": {"main": reference},
            "last_updated_ms": last.timestamp_ms,
        }
    )
    place = f"{table.location()}/metadata/00001-{uuid.uuid4()}.metadata.json"
    ToOutputFile.table_metadata(metadata, table.io.new_output(place))
    catalog.drop_table(table.name())
    catalog.register_table(table.name(), place)


def _schema() -> Any:
    from pyiceberg.schema import Schema
    from pyiceberg.types import DoubleType, IntegerType, LongType, NestedField, StringType

    return Schema(
        NestedField(1, "part", IntegerType()),
        NestedField(2, "id", LongType()),
        NestedField(3, "amount", DoubleType()),
        NestedField(4, "comment", StringType()),
    )


def build_files(place: Place, name: str, share: float, rows: int = _ROWS) -> None:
    """Small files of ``rows`` rows in 50 partitions, which ten snapshots added."""
    from pyiceberg.partitioning import PartitionField, PartitionSpec
    from pyiceberg.transforms import IdentityTransform

    spec = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "part"))
    count = max(int(200 * share), 2)
    with closing(place.library()) as catalog:
        table = catalog.create_table(
            (DATABASE, name), _schema(), partition_spec=spec, properties=_PROPERTIES
        )
        folder = Path(table.location().removeprefix("file://"))
        for numbers in np.array_split(np.arange(count), 10):
            with table.transaction() as changes, changes.update_snapshot().fast_append() as append:
                for part in range(PARTITIONS):
                    (folder / f"data/part={part}").mkdir(parents=True, exist_ok=True)
                    for number in numbers.tolist():
                        path = folder / f"data/part={part}/{number}.parquet"
                        _written(path, part * count + number, part, rows)
                        append.append_data_file(_data_file(path, part, rows))


def _written(path: Path, number: int, part: int = 0, rows: int = _ROWS) -> Path:
    """A file of ``rows`` rows."""
    ids = np.arange(number * rows, (number + 1) * rows)
    content = {
        "part": np.full(rows, part, np.int32),
        "id": ids,
        "amount": (ids * 7919 % 100_003) / 100,
        "comment": [f"comment {each * 31 % 9973} of {each}" for each in ids.tolist()],
    }
    fields = [
        pa.field(name, kind, metadata={"PARQUET:field_id": str(number)})
        for number, (name, kind) in enumerate(_KINDS.items(), 1)
    ]
    pq.write_table(pa.table(content, schema=pa.schema(fields)), path, compression="zstd")
    return path


def _linked(rows: Path, name: Path) -> Any:
    path = name.with_suffix(".parquet")
    path.hardlink_to(rows)
    return _data_file(path, None)


def _data_file(path: Path, part: int | None, rows: int = _ROWS) -> Any:
    from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
    from pyiceberg.typedef import Record

    return DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=f"file://{path}",
        file_format=FileFormat.PARQUET,
        partition=Record() if part is None else Record(part),
        record_count=rows,
        file_size_in_bytes=path.stat().st_size,
        column_sizes={},
        value_counts={},
        null_value_counts={},
        nan_value_counts={},
        lower_bounds={},
        upper_bounds={},
        spec_id=0,
    )


def build_marks(place: Place, name: str, share: float) -> None:
    """Rows of which every fifth is marked, by Spark with Iceberg."""
    spark = place.java()
    table = f"{CATALOG}.{DATABASE}.{name}"
    spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {CATALOG}.{DATABASE}")
    spark.sql(
        f"CREATE TABLE {table} (part INT, id BIGINT, amount DOUBLE, comment STRING) USING iceberg "
        "TBLPROPERTIES ('format-version' = '2', 'write.delete.mode' = 'merge-on-read', "
        "'write.distribution-mode' = 'none', 'write.delete.distribution-mode' = 'none')"
    )
    rows = max(int(10_000_000 * share), 1000)
    spark.range(0, rows, 1, 16).selectExpr(
        "CAST(id % 50 AS INT) AS part",
        "id",
        "id * 7919 % 100003 / 100 AS amount",
        "concat('comment ', id * 31 % 9973, ' of ', id) AS comment",
    ).writeTo(table).append()
    spark.sql(f"DELETE FROM {table} WHERE id % 5 = 3")
