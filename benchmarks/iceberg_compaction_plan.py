"""The plan of a compaction of a table with a million data files, from generated metadata.

``.venv-spark/bin/python -m benchmarks.iceberg_compaction_plan [--files 1000000] [--partitions 1000]
[--manifests 100]``: there are no data files, only manifests that list them, with the bounds of
three columns. Prints the seconds of the plan in a process of its own, its parts, its peak memory,
and what it had before.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import shutil
import struct
import time
import uuid
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from benchmarks.comparison import ROOT
from benchmarks.iceberg_care_tables import DATABASE, Place
from spark_jobs.connectors.iceberg.commit.changes import Changes
from spark_jobs.connectors.iceberg.commit.manifest_records import NewDataFile
from spark_jobs.connectors.iceberg.commit.snapshot_commit import SnapshotCommits
from spark_jobs.connectors.iceberg.table.manifests import DATA
from spark_jobs.connectors.iceberg.table.pinned_table import pinned_table
from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.compaction import CompactSpec
from spark_jobs.contract.request import TableName
from spark_jobs.engine.runtime.collector import paused_collector

_NAME = "many"
_ROWS = 1000
_SIZE = 2**20


def build(place: Place, files: int, partitions: int, manifests: int) -> None:
    """A table with the columns part (partition), id and comment, in so many commits."""
    from pyiceberg.partitioning import PartitionField, PartitionSpec
    from pyiceberg.schema import Schema
    from pyiceberg.transforms import IdentityTransform
    from pyiceberg.types import IntegerType, LongType, NestedField, StringType

    schema = Schema(
        NestedField(1, "part", IntegerType()),
        NestedField(2, "id", LongType()),
        NestedField(3, "comment", StringType()),
    )
    spec = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "part"))
    # Each commit adds a manifest, which stays as it is.
    properties = {"format-version": "2", "commit.manifest-merge.enabled": "false"}
    with closing(place.library()) as catalog:
        catalog.create_namespace(DATABASE)
        catalog.create_table((DATABASE, _NAME), schema, partition_spec=spec, properties=properties)
    connector: Any = open_connector(place.catalog, {})
    for part in range(manifests):
        numbers = range(part * files // manifests, (part + 1) * files // manifests)
        handle = connector.metadata.load_table(TableName(DATABASE, _NAME))
        latest = pinned_table(handle)
        root = f"{latest.metadata.location}/data"
        added = [_data_file(root, number * partitions // files, number) for number in numbers]
        commits = SnapshotCommits(connector.writes.catalog, connector.metadata, handle)
        commits.publish(latest, Changes(added, [], {}, []), {}, lambda: None)


def _data_file(root: str, part: int, number: int) -> NewDataFile:
    lowest = (struct.pack("<i", part), struct.pack("<q", number * _ROWS), b"a" * 16)
    highest = (struct.pack("<i", part), struct.pack("<q", (number + 1) * _ROWS - 1), b"z" * 16)
    record = {
        "content": DATA,
        "file_path": f"{root}/part={part}/{number:08}-{uuid.UUID(int=number)}.parquet",
        "file_format": "PARQUET",
        "record_count": _ROWS,
        "file_size_in_bytes": _SIZE,
        "column_sizes": _by_column((_ROWS,) * 3),
        "value_counts": _by_column((_ROWS,) * 3),
        "null_value_counts": _by_column((0,) * 3),
        "nan_value_counts": [],
        "lower_bounds": _by_column(lowest),
        "upper_bounds": _by_column(highest),
        "split_offsets": [4],
        "sort_order_id": 0,
    }
    return NewDataFile(0, {1000: part}, record)


def _by_column(values: Sequence[Any]) -> list[dict[str, Any]]:
    return [{"key": number, "value": value} for number, value in enumerate(values, 1)]


def planned(place: Place, report: Any) -> None:
    """Plan a compaction; tells the seconds, what it found, and the memory before and at most."""
    connector = open_connector(place.catalog, {})
    assert connector.compaction is not None
    handle = connector.metadata.load_table(TableName(DATABASE, _NAME))
    before = _peak()
    started = time.perf_counter()
    with paused_collector():
        plan = connector.compaction.plan(handle, CompactSpec(min_files=2), lambda _: True)
    seconds = time.perf_counter() - started
    parts = sum(len(group.parts) for group in plan.groups)
    files = sum(each.files_before for group in plan.groups for each in group.expected.values())
    report.put((seconds, len(plan.groups), parts, files, before, _peak()))


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=1_000_000)
    parser.add_argument("--partitions", type=int, default=1000)
    parser.add_argument("--manifests", type=int, default=100)
    chosen = parser.parse_args()
    place = Place(Path(ROOT / f"many-{uuid.uuid4().hex}"))
    (place.folder / "warehouse").mkdir(parents=True)
    try:
        build(place, chosen.files, chosen.partitions, chosen.manifests)
        context = multiprocessing.get_context("spawn")
        report = context.Queue()
        process = context.Process(target=planned, args=(place, report))
        process.start()
        seconds, groups, parts, files, before, peak = report.get(timeout=3600)
        process.join()
        print(
            f"{files:,} files in {parts:,} parts and {groups:,} groups: {seconds:.1f} s, "
            f"{peak / 2**20:.0f} MiB at most, {before / 2**20:.0f} MiB before"
        )
    finally:
        shutil.rmtree(place.folder, ignore_errors=True)


if __name__ == "__main__":
    main()
