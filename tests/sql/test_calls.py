"""CALL and DROP TABLE in a text of several statements: the operations that they become."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_merge.sql.script import ScriptStatement, read_script
from spark_jobs.errors import JobError

TARGET = {"target": "`db`.`t`"}


def only(text: str) -> ScriptStatement:
    (found,) = read_script(text).statements
    return found


CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    "CALL lake.system.expire_snapshots(table => 'db.t', "
    "older_than => TIMESTAMP '2026-01-31 06:00:00', retain_last => 5, "
    "clean_expired_metadata => true)": (
        "expire_snapshots",
        {
            "older_than": "2026-01-31T06:00:00+00:00",
            "retain_min": 5,
            "clean_expired_metadata": True,
        },
    ),
    "CALL system.expire_snapshots('db.t', NULL, 5)": ("expire_snapshots", {"retain_min": 5}),
    "SET TIME ZONE 'Europe/Berlin'; CALL sys.expire_snapshots(table => 'db.t', "
    "older_than => '2026-01-31 06:00:00', retain_max => 10, max_deletes => 3)": (
        "expire_snapshots",
        {"older_than": "2026-01-31T06:00:00+01:00", "retain_max": 10, "max_deletes": 3},
    ),
    "call SYSTEM.Remove_Orphan_Files(TABLE => 'db.t')": (
        "remove_orphan_files",
        {"older_than": "3 d"},
    ),
    "CALL sys.remove_orphan_files(table => 'db.t', dry_run => false)": ("remove_orphan_files", {}),
    "CALL system.rewrite_data_files('db.t')": ("compact", {}),
    "CALL system.rewrite_data_files(table => 'db.t', strategy => 'sort', "
    "sort_order => 'id DESC NULLS LAST, name', options => map('rewrite-all', 'true', "
    "'target-file-size-bytes', '1048576'))": (
        "compact",
        {
            "sort_by": ["id DESC NULLS LAST", "name"],
            "mode": "full",
            "target_file_size": "1048576 b",
        },
    ),
    "CALL system.rewrite_data_files(table => 'db.t', strategy => 'sort', "
    "sort_order => 'zorder(a, b)', options => map('min-input-files', '2'))": (
        "compact",
        {"zorder_by": ["a", "b"], "min_files": 2},
    ),
    "CALL system.rewrite_position_delete_files('db.t')": ("compact", {"mode": "deletes"}),
    "CALL system.rewrite_manifests('db.t');": ("compact", {"manifests": "only"}),
    "CALL system.rollback_to_snapshot('db.t', 8781458521384)": (
        "rollback",
        {"snapshot_id": 8781458521384},
    ),
    "CALL system.set_current_snapshot(table => 'db.t', ref => 'v1')": (
        "set_current_snapshot",
        {"tag": "v1"},
    ),
    "CALL system.cherrypick_snapshot('db.t', 7)": ("cherry_pick", {"snapshot_id": 7}),
    "CALL system.publish_changes('db.t', 'w')": ("cherry_pick", {"wap_id": "w"}),
    "CALL system.fast_forward('db.t', 'main', 'audit')": ("fast_forward", {"to": "audit"}),
    "CALL system.fast_forward('db.t', 'b', 'audit')": (
        "fast_forward",
        {"target": "`db`.`t$branch_b`", "to": "audit"},
    ),
    "CALL sys.compact(table => 'db.t')": ("compact", {"mode": "full"}),
    "CALL sys.compact(table => 'db.t', partitions => 'p=0,q=a;p=1', compact_strategy => 'minor')": (
        "compact",
        {"mode": "minor", "partitions": [{"p": "0", "q": "a"}, {"p": "1"}]},
    ),
    "CALL sys.compact('db.t', order_strategy => 'order', order_by => 'a, b')": (
        "compact",
        {"mode": "full", "sort_by": ["a", "b"]},
    ),
    "CALL sys.create_tag(table => 'db.t', tag => 'x', snapshot => 3, time_retained => '1 d')": (
        "create_tag",
        {"tag": "x", "snapshot_id": 3, "retention": "1 d"},
    ),
    "CALL sys.create_tag('db.t', 'x')": ("create_tag", {"tag": "x"}),
    "CALL sys.delete_tag(table => 'db.t', tag => 'x')": ("delete_tag", {"tag": "x"}),
    "CALL sys.rollback(table => 'db.t', version => '7')": ("rollback", {"snapshot_id": 7}),
    "CALL sys.rollback(table => 'db.t', version => 'x')": ("rollback", {"tag": "x"}),
    "CALL sys.rollback(table => 'db.t', tag => 'x')": ("rollback", {"tag": "x"}),
    "CALL sys.create_branch('db.t', 'b', 'x')": ("create_branch", {"branch": "b", "tag": "x"}),
    "DROP TABLE db.t": ("drop_table", {"if_exists": False, "purge": False}),
    "USE db; DROP TABLE IF EXISTS t PURGE": ("drop_table", {"if_exists": True, "purge": True}),
    "DROP TABLE lake.db.t": (
        "drop_table",
        {"target": "`lake`.`db`.`t`", "if_exists": False, "purge": False},
    ),
}


@pytest.mark.parametrize(("text", "wanted"), CALLS.items(), ids=CALLS)
def test_what_it_becomes(text: str, wanted: tuple[str, dict[str, Any]]) -> None:
    found = only(text)
    assert (found.operation, found.parameters) == (wanted[0], {**TARGET, **wanted[1]})


def test_a_call_tells_the_format_and_the_catalog_that_it_is_for() -> None:
    text = "DELETE FROM d.t;\nCALL lake.system.rewrite_manifests('d.t'); CALL sys.compact('d.t')"
    script = read_script(text)
    assert script.formats == {"iceberg": 2, "paimon": 2}
    assert [each.catalog for each in script.named] == ["lake"]


def test_a_table_without_a_database_is_of_the_one_in_use() -> None:
    assert only("USE d; CALL sys.compact('t')").parameters["target"] == "`d`.`t`"
    assert only("CALL sys.compact('`a.b`.t')").parameters["target"] == "`a.b`.`t`"


WRONG = {
    "CALL system.expire_snapshots(tabel => 'db.t')": ("has no argument tabel", "Known: table"),
    "CALL sys.create_branch('db.t', 'b')": ("without tag", "an empty branch"),
    "CALL system.expire_snapshots()": ("the argument table is missing", ""),
    "CALL system.expire_snapshots('db.t', table => 'db.t')": ("table is given twice", ""),
    "CALL system.expire_snapshots(table => 'db.t', 5)": ("stands behind one that has one", ""),
    "CALL system.expire_snapshots('db.t', older_than => 'x')": ("expected TIMESTAMP", ""),
    "CALL system.expire_snapshots('db.t', retain_last => 'x')": ("expected a whole number", ""),
    "CALL system.expire_snapshots('db.t', stream_results => true)": (
        "the argument stream_results of expire_snapshots is not supported",
        "Leave it out",
    ),
    "CALL system.remove_orphan_files('db.t', dry_run => true)": ("value True", "dry_run=True"),
    "CALL system.remove_orphan_files('db.t', location => '/x')": ("location", "own folders"),
    "CALL system.rewrite_data_files('db.t', where => 'a = 1')": ("where", "partitions"),
    "CALL system.rewrite_data_files('db.t', options => map('a', 'b'))": ("option a", "Known: t"),
    "CALL system.rewrite_data_files('db.t', options => map('min-input-files', 'x'))": (
        "'x' is no value",
        "",
    ),
    "CALL system.rewrite_data_files('db.t', strategy => 'best')": ("expected 'binpack'", ""),
    "CALL system.rollback_to_timestamp('db.t', TIMESTAMP '2026-01-01 00:00:00')": (
        "the procedure system.rollback_to_timestamp is not supported",
        "rollback_to_snapshot",
    ),
    "CALL sys.compact(table => 'db.t', order_strategy => 'zorder')": ("order_by is missing", ""),
    "CALL sys.compact('db.t', 'p=1', 'minor')": ("argument 3 has no name", "Write name =>"),
    "CALL sys.compact(table => 'db.t', partitions => 'p')": ("expected partitions such as", ""),
    "CALL sys.delete_tag('db.t', 'a,b')": ("tag with several names", "a CALL for each"),
    "CALL sys.compact(table => 't')": ("is not a table name", "database.table"),
    "CALL other('db.t')": ("the procedure other is not supported", "in system and in sys"),
    "CALL sys.compact('db.t'": ("( is not closed", ""),
    "CREATE TEMP VIEW v AS SELECT 1; DROP TABLE v": ("v is a temporary view", "DROP VIEW"),
    "DROP TABLE t": ("t is neither", "database.table"),
    "DROP DATABASE d": ("DROP is not supported", "DROP TABLE"),
}


@pytest.mark.parametrize(("text", "wanted"), WRONG.items(), ids=WRONG)
def test_what_is_wrong_is_named(text: str, wanted: tuple[str, str]) -> None:
    with pytest.raises(JobError) as caught:
        read_script(text)
    assert wanted[0] in caught.value.message
    assert wanted[1] in caught.value.remedy
