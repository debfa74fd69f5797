"""Compactions of append tables: the same rows, in fewer files that are as the table writes them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow.fs as pafs
import pytest
from pypaimon.schema.data_types import AtomicType
from pypaimon.schema.schema_change import SchemaChange

from spark_jobs.connectors.paimon.compaction.append_plan import append_compactor, append_parts
from spark_jobs.connectors.paimon.compaction.options import CompactionOptions
from spark_jobs.connectors.paimon.table.table_handle import pinned_table
from spark_jobs.connectors.paimon.write.table_layout import NamePrefixes
from spark_jobs.connectors.shared.compaction.plan import PlannedPart
from spark_jobs.contract.compaction import CompactionReport, CompactSpec
from spark_jobs.contract.request import CatalogSpec
from spark_jobs.errors import CatalogError, ErrorCode
from spark_jobs.spi import rows
from spark_jobs.spi.connector import Connector
from tests.support import compaction_runs
from tests.support.paimon_tables import (
    NAME,
    append,
    append_with_pypaimon,
    change_rows,
    create,
    data_files,
    merge,
    read,
    snapshot_ids,
)

COLUMNS = {"id": "int", "name": "string", "p": "int"}
MARKS: dict[str, str] = {"deletion-vectors.enabled": "true"}
FULL = CompactSpec(mode="full")


def values(*ids: int, p: int | None = 0) -> list[dict[str, Any]]:
    return [{"id": i, "name": f"name {i}", "p": p} for i in ids]


def filled(
    connector: Connector, files: int, per_file: int = 10, options: dict[str, str] | None = None
) -> None:
    """Files with ids in order, in one partition."""
    create(connector, COLUMNS, ["p"], options)
    for number in range(files):
        start = number * per_file
        append(connector, values(*range(start, start + per_file)), f"op-{number}")


def delete(connector: Connector, ids: Sequence[int]) -> None:
    """Mark rows, or rewrite their files."""
    table = connector.metadata.load_table(NAME)
    places = []
    for ordinal, (path, _) in enumerate(pinned_table(table).files.located_entries):
        found = [each["id"] for each in read_file(path)]
        places += [{"file": ordinal, "position": found.index(i)} for i in ids if i in found]
    assert len(places) == len(ids)
    operation = f"delete-{min(ids)}-{len(ids)}"
    merge(connector, table, change_rows(table, rows.DELETE, places), operation_id=operation)


def read_file(path: str) -> list[dict[str, Any]]:
    import pyarrow.parquet as pq

    found: list[dict[str, Any]] = pq.ParquetFile(path).read().to_pylist()
    return found


def compact(connector: Connector, warehouse: Path, spec: CompactSpec = FULL) -> CompactionReport:
    """Compact, and check what must hold of every compaction."""
    before, snapshots = read(connector), len(snapshot_ids(connector))
    result = compaction_runs.compact(connector, CatalogSpec("paimon", str(warehouse)), spec)
    assert result.error is None, result.error
    assert result.compaction is not None
    assert read(connector) == before
    made = len(snapshot_ids(connector)) - snapshots
    assert made == len(result.compaction.snapshots)
    assert planned(connector, spec) == []
    return result.compaction


def planned(connector: Connector, spec: CompactSpec) -> list[PlannedPart]:
    table = pinned_table(connector.metadata.load_table(NAME))
    return list(append_parts(table, CompactionOptions.of(table, spec), lambda _: True))


def entries(connector: Connector) -> list[Any]:
    table = pinned_table(connector.metadata.load_table(NAME))
    return [entry for _, entry in table.files.located_entries]


def paths(connector: Connector) -> list[str]:
    return [
        path for path, _ in pinned_table(connector.metadata.load_table(NAME)).files.located_entries
    ]


def alter(connector: Connector, change: Any) -> None:
    table = connector.metadata.load_table(NAME).native.table
    catalog = table.catalog_environment.catalog_loader.load()
    catalog.alter_table(str(NAME), [change])


def test_small_files_become_one_with_the_rows_in_order(
    connector: Connector, warehouse: Path
) -> None:
    filled(connector, files=6)

    report = compact(connector, warehouse, CompactSpec())

    (entry,) = entries(connector)
    assert [each["id"] for each in read_file(paths(connector)[0])] == list(range(60))
    assert (entry.file.file_source, entry.file.row_count) == (1, 60)
    assert (entry.file.min_sequence_number, entry.file.max_sequence_number) == (0, 0)
    assert entry.file.value_stats.min_values.get_field(0) == 0
    assert entry.file.value_stats.max_values.get_field(0) == 59
    assert (report.files_before, report.files_after, report.rows) == (6, 1, 60)
    assert report.bytes_after == entry.file.file_size


def test_few_files_wait_for_others(connector: Connector, warehouse: Path) -> None:
    filled(connector, files=4)

    assert compact(connector, warehouse, CompactSpec()).snapshots == ()
    assert compact(connector, warehouse, CompactSpec(min_files=4)).files_before == 4


def test_the_options_of_the_table_are_the_defaults(connector: Connector, warehouse: Path) -> None:
    filled(connector, files=4, options={"compaction.min.file-num": "3", "target-file-size": "1 b"})

    assert compact(connector, warehouse, CompactSpec()).snapshots == ()
    assert len(planned(connector, CompactSpec(target_file_size="1 mb"))) == 1


def test_the_target_size_bounds_files(connector: Connector, warehouse: Path) -> None:
    filled(connector, files=12)
    size = max(entry.file.file_size for entry in entries(connector))

    compact(connector, warehouse, CompactSpec(mode="full", target_file_size=f"{4 * size} b"))

    found = sorted([each["id"] for each in read_file(path)] for path in paths(connector))
    assert [len(ids) for ids in found] == [40, 40, 40]
    assert [i for ids in found for i in ids] == list(range(120))


def test_later_files_are_put_behind_those_of_the_last_compaction(
    connector: Connector, warehouse: Path
) -> None:
    filled(connector, files=5)
    compact(connector, warehouse)
    append(connector, values(100, 101), "late")

    compact(connector, warehouse)

    (path,) = paths(connector)
    assert [each["id"] for each in read_file(path)] == [*range(50), 100, 101]


def test_partitions_and_null(connector: Connector, warehouse: Path) -> None:
    create(connector, COLUMNS, ["p"])
    for number in range(3):
        append(connector, [*values(number, p=1), *values(10 + number, p=None)], f"op-{number}")
    table = pinned_table(connector.metadata.load_table(NAME))

    options = CompactionOptions.of(table, FULL)
    (part,) = append_parts(table, options, lambda each: each["p"] is None)

    assert part.partition == (None,)
    assert part.expected.files_before == 3
    compact(connector, warehouse)
    assert sorted(entry.file.row_count for entry in entries(connector)) == [3, 3]


def test_files_of_which_many_rows_are_marked(connector: Connector, warehouse: Path) -> None:
    filled(connector, files=3, options={**MARKS, "compaction.small-file-ratio": "0"})
    delete(connector, [0, 1, 10, 11, 12])

    report = compact(connector, warehouse, CompactSpec())

    assert (report.files_before, report.vectors_removed, report.rows) == (1, 1, 7)
    assert len(vectors(connector)) == 1
    full = compact(connector, warehouse)
    assert (full.files_before, full.vectors_removed, full.rows) == (1, 1, 8)
    assert vectors(connector) == {}


def vectors(connector: Connector) -> Any:
    return pinned_table(connector.metadata.load_table(NAME)).files.vectors


def test_a_file_without_rows_leaves_nothing(connector: Connector, warehouse: Path) -> None:
    filled(connector, files=2, options={**MARKS, "merge.deletion-vectors.rewrite-share": "1"})
    table = connector.metadata.load_table(NAME)
    mark_all(connector, table, 10)

    (part,) = planned(connector, CompactSpec())

    expected = part.expected
    assert (expected.files_before, expected.files_after, expected.rows) == (1, 0, 0)
    compact(connector, warehouse, CompactSpec())
    assert [entry.file.row_count for entry in entries(connector)] == [10]
    assert vectors(connector) == {}


def mark_all(connector: Connector, table: Any, count: int) -> None:
    """Mark all rows of the first file, as the sink itself never does."""
    import numpy as np

    from spark_jobs.connectors.paimon.format.vectors import VectorIndexWriter
    from spark_jobs.spi.writes import Fragment
    from tests.support.paimon_tables import begin

    handle = begin(connector, table, "mark")
    (folder,) = {str(Path(paths(connector)[0]).parents[2] / "index")}
    writer = VectorIndexWriter(pafs.LocalFileSystem(), folder, lambda _: f"{folder}/index-all-0")
    writer.add(0, 0, folder, np.arange(count))
    fragments = [Fragment({"index": index.to_json()}) for index in writer.finish()]
    connector.writes.finish_merge(table, handle, fragments, {})


def test_fixed_buckets_keep_their_order(connector: Connector, warehouse: Path) -> None:
    options = {"bucket": "1", "bucket-key": "id", **MARKS}
    filled(connector, files=7, options=options)
    size = max(entry.file.file_size for entry in entries(connector))
    delete(connector, [0])

    spec = CompactSpec(mode="full", target_file_size=f"{4 * size} b")
    report = compact(connector, warehouse, spec)

    assert report.files_after == 2
    found = sorted(
        (e.file.min_sequence_number, e.file.max_sequence_number, e.file.row_count)
        for e in entries(connector)
    )
    assert found == [(0, 39, 39), (40, 69, 30)]
    append(connector, values(70), "late")
    assert max(entry.file.max_sequence_number for entry in entries(connector)) == 70


def test_older_columns_are_written_as_todays_by_full_ones(
    connector: Connector, warehouse: Path
) -> None:
    filled(connector, files=1)
    alter(connector, SchemaChange.add_column("new", AtomicType("INT")))
    append(connector, [{**values(100)[0], "new": 7}], "later")

    assert compact(connector, warehouse, CompactSpec()).snapshots == ()
    assert compact(connector, warehouse).files_before == 2
    (path,) = paths(connector)
    assert [each["new"] for each in read_file(path)] == [None] * 10 + [7]
    alter(connector, SchemaChange.rename_column("new", "newer"))
    assert compact(connector, warehouse).files_before == 1
    assert "newer" in read_file(paths(connector)[0])[0]


@pytest.mark.parametrize("format_", ["orc", "avro"])
def test_other_formats_come_out_as_parquet(
    connector: Connector, warehouse: Path, format_: str
) -> None:
    create(connector, COLUMNS, ["p"], {"file.format": format_})
    table = connector.metadata.load_table(NAME)
    append_with_pypaimon(table, values(*range(10)))

    assert compact(connector, warehouse, CompactSpec()).snapshots == ()
    assert compact(connector, warehouse).files_before == 1
    assert [Path(path).suffix for path in paths(connector)] == [".parquet"]


def test_files_elsewhere_come_home(connector: Connector, warehouse: Path, tmp_path: Path) -> None:
    outside = {
        "data-file.external-paths": f"file://{tmp_path / 'out'}",
        "data-file.external-paths.strategy": "round-robin",
    }
    filled(connector, files=1, options=outside)
    assert compact(connector, warehouse).snapshots == ()
    alter(connector, SchemaChange.set_option("data-file.external-paths.strategy", "none"))

    assert compact(connector, warehouse, CompactSpec()).snapshots == ()
    assert compact(connector, warehouse).files_before == 1
    assert paths(connector)[0].startswith(f"{warehouse}/")

    alter(connector, SchemaChange.set_option("data-file.external-paths.strategy", "round-robin"))
    assert compact(connector, warehouse).files_before == 1
    assert paths(connector)[0].startswith(f"{tmp_path / 'out'}/p=0/bucket-0/")


def test_what_is_expected_is_what_is_done(connector: Connector, warehouse: Path) -> None:
    filled(connector, files=3, options=MARKS)
    delete(connector, [0, 1])
    (part,) = planned(connector, FULL)
    sizes = [entry.file.file_size for entry in entries(connector)]

    report = compact(connector, warehouse)

    expected = part.expected
    assert (expected.files_before, expected.files_after) == (3, 1)
    assert expected.bytes_before == sum(sizes) == report.bytes_before
    assert sum(sizes) * 0.9 < expected.bytes_after < sum(sizes)
    assert expected.rows == report.rows == 28
    assert expected.vectors_removed == report.vectors_removed == 1


def test_lost_indexes_are_counted(connector: Connector) -> None:
    filled(connector, files=3)
    table = pinned_table(connector.metadata.load_table(NAME))
    table.files.located_entries[0][1].file.extra_files = ["data-0.index"]
    table.files.located_entries[1][1].file.embedded_index = b"index"

    options = CompactionOptions.of(table, FULL)
    (part,) = append_parts(table, options, lambda _: True)

    assert part.expected.indexes_lost == 2


@pytest.mark.parametrize("harm", ["cut", "missing", "index"])
def test_a_failed_part_leaves_no_file(connector: Connector, warehouse: Path, harm: str) -> None:
    filled(connector, files=3, options=MARKS)
    delete(connector, [20])
    handle = connector.metadata.load_table(NAME)
    loaded = pinned_table(handle)
    options = CompactionOptions.of(loaded, FULL)
    (part,) = append_parts(loaded, options, lambda _: True)
    harmed = Path(part.native.files[-1].path)
    if harm == "index":
        harmed = Path(next(iter(loaded.files.vectors.values())).path)
    if harm == "cut":
        harmed.write_bytes(harmed.read_bytes()[:-50])
    else:
        harmed.unlink()
    before = data_files(warehouse)
    # Every file is written at once.
    prefixes = NamePrefixes.of(loaded, "token")
    compactor = append_compactor(handle, FULL, pafs.LocalFileSystem(), 1, prefixes)

    with pytest.raises(CatalogError, match=harmed.name) as raised:
        compactor.compact(part.native, "task")

    of_data = raised.value.code is ErrorCode.DATA_FILE_UNREADABLE
    assert of_data or (harm == "index" and raised.value.code is ErrorCode.METADATA_UNREADABLE)
    assert data_files(warehouse) == before
