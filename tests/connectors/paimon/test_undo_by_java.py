"""Paimon's Java reads a table after an undo, goes on with it, and expires what the run removed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from spark_jobs.spi.connector import Connector
from tests.connectors.paimon.test_undo import KINDS, write
from tests.judge.judge import read_with_java
from tests.judge.writer import JavaTable
from tests.support.paimon_tables import NAME, begin, create
from tests.support.undone_runs import of_run, undone, undone_undo

TYPES = {"id": "INT", "s": "STRING"}
_TRACKED = ("row tracking", "tracked vectors")


def seen(warehouse: Path, kind: str) -> list[Any]:
    found = read_with_java(warehouse, str(NAME), tracked=kind in _TRACKED)
    return sorted(found, key=repr)


@pytest.mark.parametrize("kind", [each for each in KINDS if each != "dynamic key"])
@pytest.mark.by_turns(4)
@pytest.mark.usefixtures("java")
def test_java_reads_and_expires(connector: Connector, warehouse: Path, kind: str) -> None:
    options, key = KINDS[kind]
    create(connector, {"id": "int", "s": "string"}, (), options, primary_key=key)
    write(connector, "base1", "base", dict.fromkeys(range(8), "a"))
    write(connector, "base2", "base", {1: None, 2: "b"})
    before = seen(warehouse, kind)
    write(connector, "a", "r", {20: "new", 3: "c"})
    table = connector.metadata.load_table(NAME)
    handle = begin(connector, table, "b")
    fragments = connector.writes.drop_files(table, handle, handle.native.write.files)
    connector.writes.finish_merge(table, handle, fragments, of_run("r", "b"))
    connector.writes.release_guard(table, "b")
    assert seen(warehouse, kind) == []
    judge = JavaTable(warehouse, str(NAME), TYPES)

    undone(connector, NAME, "r", "u")

    assert seen(warehouse, kind) == before
    judge.append_rows([{"id": 100, "s": "java"}])
    judge.expire()
    now = seen(warehouse, kind)
    assert [row for row in now if row["id"] != 100] == before
    judge.compact()
    assert [(row["id"], row["s"]) for row in seen(warehouse, kind)] == [
        (row["id"], row["s"]) for row in now
    ]


@pytest.mark.parametrize("kind", ["append", "vectors", "key"])
@pytest.mark.by_turns(3)
@pytest.mark.usefixtures("java")
def test_an_undo_is_undone_behind_java(connector: Connector, warehouse: Path, kind: str) -> None:
    options, key = KINDS[kind]
    create(connector, {"id": "int", "s": "string"}, (), options, primary_key=key)
    write(connector, "base1", "base", dict.fromkeys(range(8), "a"))
    write(connector, "a", "r", {20: "new", 3: None})
    after = seen(warehouse, kind)
    undone(connector, NAME, "r", "u")
    JavaTable(warehouse, str(NAME), TYPES).append_rows([{"id": 100, "s": "java"}])

    undone_undo(connector, NAME, "u", "uu")

    assert [row for row in seen(warehouse, kind) if row["id"] != 100] == after
