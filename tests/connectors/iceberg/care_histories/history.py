"""A random history of a table by Iceberg's library, two expiries and two searches for orphans.

This project expires the snapshots; then the table is put back as it was, and Spark's procedure
expires them: both must leave the same snapshots, tags, branches and files. (Iceberg's library,
without Spark, sometimes leaves a file that nothing needs.) Of an odd seed, both clean expired
metadata, too: the same schemas and partition specs must be left. Then files are lost in the folder,
and both must find the same.
"""

from __future__ import annotations

import os
import random
import shutil
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.maintenance import ExpireSnapshotsSpec, RemoveOrphanFilesSpec
from spark_jobs.contract.request import CatalogSpec, TableName
from spark_jobs.spi.maintenance import ConnectorMaintenance
from tests.judge.iceberg_spark import CATALOG, IcebergSpark

# An age, in milliseconds.
_FAR: Final = 2**40
_DAY: Final = 86_400
# Where lost files may be, below the table.
_PLACES: Final = (
    "data/lost.parquet",
    "data/p=1/lost.parquet",
    "data/p=1/_lost.parquet",
    "data/.lost/a.parquet",
    "_lost/a.parquet",
    "deletes/deep/er/lost.parquet",
    "metadata/lost-m0.avro",
    "metadata/snap-lost.avro",
    "metadata/00009-lost.metadata.json",
    "metadata/lost.stats",
    "lost",
)
# How often each step is taken.
_STEPS: Final = {
    "append": 5,
    "overwrite": 3,
    "rewrite": 2,
    "remove": 1,
    "mark": 3,
    "stage": 1,
    "cherry_pick": 1,
    "tag": 2,
    "branch": 2,
    "drop": 1,
    "current": 1,
    "spec": 1,
    "statistics": 1,
}


@dataclass(frozen=True)
class Left:
    """What an expiry leaves; ``files`` are paths, without metadata files.

    ``schemas`` and ``specs`` are their ids.
    """

    snapshots: frozenset[int]
    schemas: frozenset[int]
    specs: frozenset[int]
    refs: frozenset[tuple[str, int]]
    files: frozenset[str]


class CareHistory:
    """The history of ``seed``; ``kinds`` counts its steps."""

    def __init__(self, java: IcebergSpark, seed: int, kinds: Counter[str]) -> None:
        self._java = java
        self._random = random.Random(seed)
        self._columns = random.Random(f"columns {seed}")
        self._cleans = seed % 2 == 1
        self._kinds = kinds
        self.name = f"care_{seed}"
        self._names = ["a", "b", "c", "d"]

    def differences(self, steps: int) -> list[str]:
        """Take the steps, expire twice, and tell what differs."""
        self._make()
        taken = [each for _ in range(steps) if (each := self._step()) is not None]
        if self._cleans:
            # Each fourth step is behind one that changes the columns.
            taken = [each for step in taken for each in self._with_columns(step)]
        self._java.steps(f"db.{self.name}", *taken)
        table = self._loaded(self.name)
        root = Path(_path(table.location()))
        older_than, least = self._limits(table), self._random.choice([1, 1, 2, 3])
        kept = root.with_name(f"{root.name}.kept")
        shutil.copytree(root, kept)

        own = list(self._expired_here(root, older_than, least))
        shutil.rmtree(root)
        kept.rename(root)
        self._java_copy(table.metadata_location)
        moment = datetime.fromtimestamp(older_than / 1000, UTC).isoformat(" ", "milliseconds")
        self._java.sql(
            f"CALL {CATALOG}.system.expire_snapshots(table => 'db.{self.name}_java', "
            f"older_than => TIMESTAMP '{moment}', retain_last => {least}, "
            f"clean_expired_metadata => {str(self._cleans).lower()})"
        )
        java = self._left(f"{self.name}_java", root)
        orphans = self._orphans(f"{self.name}_java", root)
        return [
            f"seed {self.name}: {what}: {found} in place of {wanted} after {taken}, older than "
            f"{older_than}, at least {least}"
            for what, found, wanted in (*self._compared(own, java), *orphans)
        ]

    def _orphans(self, name: str, root: Path) -> list[tuple[str, Any, Any]]:
        """What this project and Spark's procedure take for orphan files, if they differ."""
        # Two tables of one folder would be refused.
        self._java.library().drop_table(f"db.{self.name}")
        for each in self._random.sample(_PLACES, 4):
            path = root / each
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"lost")
        old = time.time() - 3 * _DAY
        for file in root.rglob("*"):
            if file.is_file():
                os.utime(file, (old - self._random.choice([0, 0, -2.5]) * _DAY,) * 2)
        limit = datetime.fromtimestamp(time.time() - 1.1 * _DAY, UTC)
        spec = RemoveOrphanFilesSpec(limit.isoformat(timespec="milliseconds"))
        report = self._care().remove_orphan_files(TableName("db", name), spec, dry_run=True)
        moment = limit.isoformat(" ", "milliseconds").removesuffix("+00:00")
        rows = self._java.sql(
            f"CALL {CATALOG}.system.remove_orphan_files(table => 'db.{name}', "
            f"older_than => TIMESTAMP '{moment}', dry_run => true)"
        )
        found = {str(root / each) for each in report.files}
        wanted = {_path(row["orphan_file_location"]) for row in rows}
        self._kinds["orphans"] += len(found)
        return [("orphans", found - wanted, wanted - found)] if found != wanted else []

    def _compared(self, own: list[Any], java: Left) -> Iterator[tuple[str, Any, Any]]:
        left, needed, report = own
        if left.snapshots != java.snapshots:
            yield "snapshots", left.snapshots - java.snapshots, java.snapshots - left.snapshots
        if left.schemas != java.schemas:
            yield "schemas", left.schemas, java.schemas
        if left.specs != java.specs:
            yield "specs", left.specs, java.specs
        if left.refs != java.refs:
            yield "refs", left.refs, java.refs
        if left.files != java.files:
            yield "files", left.files - java.files, java.files - left.files
        if not needed <= left.files:
            yield "needed files", "gone", needed - left.files
        self._kinds["expired snapshots"] += report.snapshots
        self._kinds["removed schemas"] += report.schemas
        self._kinds["removed specs"] += report.partition_specs
        self._kinds["removed files"] += report.data_files + report.index_files + report.manifests

    def _expired_here(self, root: Path, older_than: int, least: int) -> Iterator[Any]:
        """What is left, what is needed of it, and the report."""
        maintenance = self._care()
        # To the millisecond, as Iceberg's library.
        limit = datetime.fromtimestamp(older_than / 1000, UTC).isoformat(timespec="milliseconds")
        limits = ExpireSnapshotsSpec(
            older_than=limit, retain_min=least, clean_expired_metadata=self._cleans
        )
        name = TableName("db", self.name)
        planned = maintenance.expire_snapshots(name, limits, dry_run=True)
        report = maintenance.expire_snapshots(name, limits, dry_run=False)
        assert planned == report, (planned, report)
        yield self._left(self.name, root)
        yield frozenset(_needed(self._loaded(self.name)))
        yield report

    def _care(self) -> ConnectorMaintenance:
        spec = CatalogSpec("iceberg", str(self._java.warehouse), self._java.options)
        maintenance = open_connector(spec, {}).maintenance
        assert maintenance is not None
        return maintenance

    def _make(self) -> None:
        version = self._random.choice([1, 2, 2, 2])
        self._version = version
        properties = {
            "format-version": str(version),
            "commit.manifest.min-count-to-merge": self._random.choice(["2", "3", "100"]),
            "write.wap.enabled": "true",
        }
        listed = ", ".join(f"'{name}' = '{value}'" for name, value in properties.items())
        self._java.sql(
            f"CREATE TABLE {CATALOG}.db.{self.name} (id INT NOT NULL, p INT) USING iceberg "
            f"TBLPROPERTIES ({listed})"
        )

    def _step(self) -> tuple[Any, ...] | None:
        chosen = self._random.choices(list(_STEPS), list(_STEPS.values()))[0]
        self._kinds[chosen] += 1
        seed, name = self._random.randrange(1000), self._random.choice(self._names)
        ages = (None, None, 1, _FAR)
        match chosen:
            case "append":
                return (chosen, self._random.choice(["main", "main", "main", name]))
            case "overwrite":
                return (chosen, "main", seed)
            case "mark":
                kind = self._random.choice(["position", "equality"])
                return (chosen, kind, seed) if self._version > 1 else None
            case "stage":
                return (chosen, f"w{seed}")
            case "tag":
                return (chosen, name, seed, self._random.choice(ages))
            case "branch":
                least = self._random.choice([None, 1, 2, 5])
                age, ref_age = (self._random.choice(ages) for _ in range(2))
                return (chosen, name, seed, age, least, ref_age)
            case "drop":
                return (chosen, name)
            case "spec":
                return (chosen,)
            case _:
                return (chosen, seed)

    def _with_columns(self, step: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
        if self._columns.random() < 1 / 4:
            self._kinds["column"] += 1
            yield ("column",)
        yield step

    def _limits(self, table: Any) -> int:
        """All, or what is older than some snapshot."""
        times = sorted(each.timestamp_ms for each in table.metadata.snapshots)
        return self._random.choice([times[-1] + 1, *times]) if times else 1

    def _java_copy(self, metadata: str) -> None:
        self._java.library().register_table(f"db.{self.name}_java", metadata)

    def _left(self, name: str, root: Path) -> Left:
        metadata = self._loaded(name).metadata
        # Hadoop's file system has a checksum beside each file.
        files = (each for each in root.rglob("[!.]*") if each.is_file())
        return Left(
            frozenset(each.snapshot_id for each in metadata.snapshots),
            frozenset(each.schema_id for each in metadata.schemas),
            frozenset(each.spec_id for each in metadata.partition_specs),
            frozenset((name, ref.snapshot_id) for name, ref in metadata.refs.items()),
            frozenset(str(each) for each in files if not each.name.endswith(".metadata.json")),
        )

    def _loaded(self, name: str) -> Any:
        return self._java.library().load_table(("db", name))


def _needed(table: Any) -> Iterator[str]:
    for snapshot in table.snapshots():
        yield _path(snapshot.manifest_list)
        for manifest in snapshot.manifests(table.io):
            yield _path(manifest.manifest_path)
            for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True):
                yield _path(entry.data_file.file_path)
    for each in (*table.metadata.statistics, *table.metadata.partition_statistics):
        yield _path(each.statistics_path)


def _path(location: str) -> str:
    return "/" + location.removeprefix("file:").lstrip("/")
