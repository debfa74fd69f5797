"""A table with small files, and its compactions, whose tasks run in this process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.compaction import CompactionReport, CompactSpec
from spark_jobs.contract.partition_names import partition_name
from spark_jobs.contract.request import CatalogSpec
from spark_jobs.contract.result import JobResult
from spark_jobs.spi import rows
from tests.support.compaction_runs import compact, in_groups_of
from tests.support.paimon_tables import NAME, append, change_rows, create, merge, read
from tests.support.reachable import needed, stored


class Lake:
    """A table with partitions 0, 1, 2 of 6, 7, 8 files, and its compactions."""

    def __init__(self, warehouse: Path, groups_of: int = 200) -> None:
        self.warehouse = warehouse
        self.catalog = CatalogSpec("paimon", str(warehouse))
        self.plain = open_connector(self.catalog, {})
        self.connector = in_groups_of(self.plain, groups_of)
        create(self.plain, {"id": "int", "p": "int"}, ["p"])
        for number in range(8):
            found = [{"id": 10 * number + p, "p": p} for p in range(3) if number < 6 + p]
            append(self.plain, found, f"op-{number}")
            table = self.plain.metadata.load_table(NAME)
            self.plain.writes.release_guard(table, f"op-{number}")
        self.rows = read(self.plain)

    def compact(self, spec: CompactSpec | None = None, **more: Any) -> JobResult:
        more = {"operation_id": "compact-1", **more}
        return compact(self.connector, self.catalog, spec or CompactSpec(), **more)

    @property
    def folder(self) -> Path:
        return self.warehouse / "shop.db" / "orders"

    @property
    def files(self) -> dict[int, int]:
        """The number of files in each partition."""
        table = self.plain.metadata.load_table(NAME)
        found: dict[int, int] = dict.fromkeys(range(3), 0)
        for file in self.plain.metadata.plan_files(table):
            found[file.partition["p"]] += 1
        return found

    def data_file(self, partition: int) -> Path:
        table = self.plain.metadata.load_table(NAME)
        files = self.plain.metadata.plan_files(table)
        return Path(next(f.path for f in files if f.partition["p"] == partition))

    def delete(self, partition: int, operation_id: str) -> None:
        """Delete a row of a partition, and the file that had only this row."""
        table = self.plain.metadata.load_table(NAME)
        files = self.plain.metadata.plan_files(table)
        file = next(f.ordinal for f in files if f.partition["p"] == partition)
        gone = change_rows(table, rows.DELETE, [{"file": file, "position": 0}])
        merge(self.plain, table, gone, operation_id=operation_id)

    def is_clean(self) -> bool:
        """Whether there are no files but the table's, no temporary ones, and no guard."""
        guards = list(self.folder.glob("consumer/consumer-merge-compact*"))
        folders = [each for each in self.warehouse.glob("_operations/*") if each.is_dir()]
        return stored(self.folder) == needed(self.folder) and not guards and not folders


def report_of(result: JobResult) -> CompactionReport:
    assert result.compaction is not None
    return result.compaction


def names(report: CompactionReport) -> list[str]:
    return [partition_name(each.values) for each in report.partitions]


def in_turn(*actions: Callable[[], None]) -> Callable[[], None]:
    """Calls the actions, one each time it is called."""
    left = iter(actions)

    def turn() -> None:
        next(left, nothing)()

    return turn


def nothing() -> None:
    pass
