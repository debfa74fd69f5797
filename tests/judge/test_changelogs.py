"""What statements write into changelogs: Java's streams read exactly what happened to the rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from spark_jobs.contract.result import JobResult
from spark_jobs.contract.statements import (
    Assignment,
    DeleteAction,
    InsertAllAction,
    MergeCase,
    UpdateAction,
)
from tests.judge.judge import changelog_from_java, read_with_java
from tests.judge.keyed_tables import entries_of
from tests.judge.merging import delete, insert, merge, overwrite, truncate, update
from tests.judge.streams import wrong_changes
from tests.judge.writer import JavaTable
from tests.support.judged_values import Row, differences
from tests.support.keyed_checker import problems_of

KINDS = {"k": "INT NOT NULL", "p": "STRING NOT NULL", "v": "STRING", "n": "INT"}
INPUT = {"changelog-producer": "input"}
LOOKUP = {"changelog-producer": "lookup"}
FULL_COMPACTION = {"changelog-producer": "full-compaction"}
SEQUENCE = {"sequence.field": "n"}
VECTORS = {"deletion-vectors.enabled": "true"}
FIRST_ROW = {"merge-engine": "first-row"}
PARTIAL = {"merge-engine": "partial-update"}
SUMS = {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum"}
# Where sections are rewritten, the statement writes the changelog.
REWRITING = {
    "input": INPUT,
    "input, sequence": {**INPUT, **SEQUENCE},
    "input, vectors": {**INPUT, **VECTORS},
    "input, partial-update": {**INPUT, **PARTIAL},
    "input, aggregation": {**INPUT, **SUMS},
    "input, thin": {**INPUT, "data-file.thin-mode": "true"},
    "lookup, sequence": {**LOOKUP, **SEQUENCE},
    "lookup, vectors": {**LOOKUP, **VECTORS},
    "lookup, first-row": {**LOOKUP, **FIRST_ROW},
    "lookup, partial-update": {**LOOKUP, **PARTIAL},
    "lookup, aggregation": {**LOOKUP, **SUMS},
    "full-compaction, sequence": {**FULL_COMPACTION, **SEQUENCE},
    "full-compaction, partial-update": {**FULL_COMPACTION, **PARTIAL},
    "full-compaction, aggregation": {**FULL_COMPACTION, **SUMS},
}
APPENDING = {"lookup": LOOKUP, "full-compaction": FULL_COMPACTION}


def row(k: int, v: str | None = "old", n: int | None = 1, p: str = "a") -> Row:
    return {"k": k, "p": p, "v": v, "n": n}


ROWS = [row(k) for k in range(1, 9)] + [row(k, p="b") for k in range(1, 4)]


def source(*rows: Row) -> pa.Table:
    types = {"k": pa.int32(), "p": pa.string(), "v": pa.string(), "n": pa.int32()}
    return pa.Table.from_pylist(list(rows), pa.schema(types))


class Table:
    """The table ``d.t``, partitioned by ``p``, with ``ROWS``, which streams have seen."""

    def __init__(self, spark: Any, warehouse: Any, options: Mapping[str, str]) -> None:
        self.spark, self.warehouse = spark, warehouse
        given = {"bucket": "2", "num-sorted-run.compaction-trigger": "4", **options}
        self.java = JavaTable.of_types(
            warehouse.path, "d.t", KINDS, ["p"], given, primary_keys=["p", "k"]
        )
        self.java.append_records([("+I", each) for each in ROWS])
        self.java.compact()

    def rows(self) -> list[Row]:
        return read_with_java(self.warehouse.path, "d.t")

    def snapshot(self) -> Any:
        return self.warehouse.table("d.t").snapshot_manager().get_latest_snapshot()

    def files(self, kind: str) -> set[str]:
        folder = Path(self.warehouse.table("d.t").table_path)
        return {path.name for path in folder.rglob(f"{kind}-*.parquet")}

    def changes(self, run: Callable[[], Any], *, is_all: bool = True) -> list[tuple[str, Row]]:
        """What a stream reads of a statement; not ``is_all``: it may lack some changes."""
        before, first = self.rows(), self.snapshot().id + 1
        result = run()
        if isinstance(result, JobResult):
            assert result.error is None, result.error
        assert self.snapshot().id >= first
        changes = changelog_from_java(self.warehouse.path, "d.t", first)
        assert problems_of(self.warehouse.table("d.t")) == []
        assert not differences(self.warehouse.read_with_python("d.t"), self.rows())
        if changes and is_all:
            assert wrong_changes(("p", "k"), before, changes, self.rows()) == []
        return changes

    def update(self, assignments: Mapping[str, str], where: str) -> JobResult:
        return update(self.spark, self.warehouse, assignments, where)

    def delete(self, where: str) -> JobResult:
        return delete(self.spark, self.warehouse, where)

    def insert(self, *rows: Row) -> JobResult:
        return insert(self.spark, self.warehouse, source(*rows))

    def merge(self, *rows: Row, on: str = "t.k = s.k AND t.p = s.p") -> JobResult:
        """Rows with v = 'gone' are deleted, others updated (all but the key) or inserted."""
        sets = (Assignment("v", "s.v"), Assignment("n", "s.n"))
        cases = [
            MergeCase("matched", DeleteAction(), "s.v = 'gone'"),
            MergeCase("matched", UpdateAction(sets)),
            MergeCase("not_matched", InsertAllAction()),
        ]
        return merge(self.spark, self.warehouse, source(*rows), cases, on=on)


@pytest.fixture
def make(spark, warehouse):
    return lambda options: Table(spark, warehouse, options)


@pytest.mark.by_turns(3)
@pytest.mark.parametrize("kind", REWRITING)
def test_a_rewrite_writes_what_it_changes(make, kind):
    table = make(REWRITING[kind])

    merged = table.changes(
        lambda: table.merge(row(2, "gone", 5), row(3, "new", 0), row(9, "more"), row(1, None, 2))
    )
    updated = table.changes(lambda: table.update({"v": "NULL"}, "t.k >= 5 AND t.p = 'a'"))
    deleted = table.changes(lambda: table.delete("t.p = 'b'"))

    assert sorted(kind for kind, _ in merged) == ["+I", "+U", "+U", "-D", "-U", "-U"]
    assert [kind for kind, _ in updated] == ["-U", "+U"] * 5
    assert deleted == [("-D", each) for each in ROWS if each["p"] == "b"]
    assert table.snapshot().commit_kind == "OVERWRITE"


@pytest.mark.by_turns(3)
@pytest.mark.parametrize("kind", REWRITING)
def test_an_upsert_writes_what_it_changes(make, kind):
    table = make(REWRITING[kind])
    keeps = "first-row" in kind

    changes = table.changes(lambda: table.insert(row(1, "one", 7), row(50, "fifty", 3)))

    assert changes[-1] == ("+I", row(50, "fifty", 3)) or changes[0] == ("+I", row(50, "fifty", 3))
    assert sorted(kind for kind, _ in changes) == (["+I"] if keeps else ["+I", "+U", "-U"])


@pytest.mark.parametrize("kind", APPENDING)
def test_appended_records_leave_the_changelog_to_a_compaction(make, kind):
    table = make(APPENDING[kind])
    before, first = table.rows(), table.snapshot().id + 1

    for run in (
        lambda: table.merge(row(2, "gone"), row(3, "new"), row(9, "more"), row(1, None, 2)),
        lambda: table.update({"v": "NULL"}, "t.k >= 5 AND t.p = 'a'"),
        lambda: table.delete("t.p = 'b'"),
        lambda: table.insert(row(1, "one"), row(50, "fifty")),
    ):
        assert table.changes(run) == []
        assert table.snapshot().commit_kind == "APPEND"
    table.java.compact()

    changes = changelog_from_java(table.warehouse.path, "d.t", first)
    assert wrong_changes(("p", "k"), before, changes, table.rows()) == []
    assert {kind for kind, _ in changes} == {"+I", "-U", "+U", "-D"}


@pytest.mark.parametrize("kind", APPENDING)
def test_a_rewrite_that_would_lose_a_changelog_is_refused(make, kind):
    table = make({**APPENDING[kind], "bucket": "1", "write-only": "true"})
    table.java.append_records([("+U", row(2, "java"))])
    before, id_, files = table.rows(), table.snapshot().id, table.files("*")
    anywhere = "NOT (t.k <> s.k) AND t.p = s.p"

    refused = table.merge(row(3, "new"), row(20, "more"), on=anywhere)

    assert refused.error is not None
    assert refused.error.code == "NOT_SUPPORTED"
    assert "changelog" in refused.error.message
    assert "Compact" in refused.error.remedy
    assert (table.rows(), table.snapshot().id, table.files("*")) == (before, id_, files)
    table.java.compact()
    changes = table.changes(lambda: table.merge(row(3, "new"), row(20, "more"), on=anywhere))
    assert {kind for kind, _ in changes} == {"+I", "-U", "+U"}


def test_full_compaction_owes_the_changelog_of_all_lower_levels(make):
    few = {"num-sorted-run.compaction-trigger": "2", "num-levels": "6", "write-only": "true"}
    few["compaction.max-size-amplification-percent"] = "1000000"
    table = make({**FULL_COMPACTION, **SEQUENCE, "bucket": "1", **few})
    table.java.append_records([("+I", row(60, Random(1).randbytes(40_000).hex()))])
    table.java.compact()
    for n in (2, 3, 4, 5):
        table.java.append_records([("+U", row(2, f"java {n}", n))])
    table.java.compact(full=False)
    entries = entries_of(table.warehouse.table("d.t"))
    assert {4, 5} == {each.file.level for each in entries if each.partition.values == ["a"]}

    refused = table.update({"v": "'x'"}, "t.k = 2 AND t.p = 'a'")

    assert refused.error is not None
    assert refused.error.code == "NOT_SUPPORTED"


def test_rows_of_a_file_that_a_delete_empties_are_in_the_changelog(make):
    table = make(INPUT)

    changes = table.changes(lambda: table.delete("t.n = 1"))

    assert sorted(changes, key=str) == sorted((("-D", each) for each in ROWS), key=str)


def test_an_update_that_changes_nothing_is_in_the_changelog_unless_unchanged_rows_are_not(make):
    table = make(INPUT)
    changes = table.changes(lambda: table.update({"v": "t.v"}, "t.k = 1 AND t.p = 'b'"))
    assert changes == [("-U", row(1, p="b")), ("+U", row(1, p="b"))]


@pytest.mark.parametrize("producer", [INPUT, {**LOOKUP, **SEQUENCE}])
def test_unchanged_rows_can_be_left_out(make, producer):
    deduplicates = {
        "changelog-producer.row-deduplicate": "true",
        "changelog-producer.row-deduplicate-ignore-fields": "n",
    }
    table = make({**producer, **deduplicates})

    changes = table.changes(lambda: table.merge(row(1, n=9), row(2, "new"), row(20)), is_all=False)

    assert sorted(changes, key=str) == [
        ("+I", row(20)),
        ("+U", row(2, "new")),
        ("-U", row(2)),
    ]


@pytest.mark.parametrize("producer", [INPUT, LOOKUP, FULL_COMPACTION])
def test_replaced_partitions_are_not_in_the_changelog_as_in_javas(make, producer):
    table = make({**producer, "write-only": "true"})
    first = table.snapshot().id + 1

    table.java.append_records([("+I", row(1, "java"))], overwrites=True)
    assert changelog_from_java(table.warehouse.path, "d.t", first) == []

    overwritten = lambda mode: overwrite(  # noqa: E731
        table.spark, table.warehouse, source(row(2, "new"), row(3)), mode
    )
    assert table.changes(lambda: overwritten("dynamic")) == []
    assert table.changes(lambda: overwritten("table")) == []
    assert table.changes(lambda: truncate(table.spark, table.warehouse, {})) == []
    assert table.files("changelog").isdisjoint(added_since(table, first))


def added_since(table: Table, first: int) -> set[str]:
    folder = Path(table.warehouse.table("d.t").table_path) / "snapshot"
    documents = [json.loads((folder / f"snapshot-{first + n}").read_text()) for n in range(3)]
    return {each["changelogManifestList"] for each in documents if "changelogManifestList" in each}


def test_java_streams_files_with_the_options_of_changelog_files(make):
    options = {
        "changelog-file.prefix": "change-",
        "changelog-file.format": "avro",
        "changelog-file.compression": "snappy",
        "changelog-file.stats-mode": "none",
    }
    table = make({**INPUT, **options})

    changes = table.changes(lambda: table.merge(row(1, "new")))

    assert changes == [("-U", row(1)), ("+U", row(1, "new"))]
    (name,) = table.files("change")
    (path,) = table.warehouse.path.rglob(name)
    assert pa.parquet.ParquetFile(path).metadata.row_group(0).column(0).compression == "SNAPPY"


def test_a_statement_that_fails_leaves_no_changelog_files(make):
    table = make(INPUT)
    files = table.files("*")

    failed = table.merge(row(1, "x"), row(4, "new", p="a"), on="t.k = s.k AND s.v = 'x'")

    assert failed.error is not None
    assert failed.error.code == "DUPLICATE_KEY_INSERT"
    assert table.files("*") == files
