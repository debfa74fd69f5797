"""Data files outside their table's directory: read, replaced, and made where the options say."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from spark_jobs.connectors.paimon.format.locations import external_paths, filesystem_path
from spark_jobs.connectors.paimon.table.refusals import REWRITE_SHARE_OPTION
from spark_jobs.errors import NotSupportedError
from spark_jobs.spi import rows
from spark_jobs.spi.connector import Connector
from tests.support.paimon_tables import (
    NAME,
    append,
    append_with_pypaimon,
    begin,
    change_rows,
    create,
    inserts,
    merge,
    read,
    store,
)

OPTION = "data-file.external-paths"
COLUMNS = {"id": "int", "k": "string"}


def options_of(*folders: Path, strategy: str = "round-robin", **more: str) -> dict[str, str]:
    paths = ",".join(f"file://{folder}" for folder in folders)
    own = {f"{OPTION}.{name.replace('_', '-')}": value for name, value in more.items()}
    return {OPTION: paths, f"{OPTION}.strategy": strategy, **own}


def parquet_files(folder: Path) -> set[Path]:
    return {path.relative_to(folder) for path in folder.rglob("*.parquet")}


def test_new_and_replaced_files_go_outside(
    connector: Connector, warehouse: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "out side %2F"
    table = create(connector, COLUMNS, ["k"], options_of(outside))
    append_with_pypaimon(table, [{"id": 1, "k": "x=y"}, {"id": 2, "k": "x=y"}])
    append(connector, [{"id": 3, "k": "x=y"}])
    before = parquet_files(outside)
    assert len(before) == 2
    table = connector.metadata.load_table(NAME)
    paths = [file.path for file in connector.metadata.plan_files(table)]
    assert sorted(paths) == sorted(str(outside / path) for path in before)
    first = next(i for i, f in enumerate(connector.metadata.plan_files(table)) if f.row_count == 2)

    deleted = change_rows(table, rows.DELETE, [{"file": first, "position": 0}])
    merge(connector, table, deleted, inserts(table, [{"id": 4, "k": "z"}]))

    assert read(connector) == [
        {"id": 2, "k": "x=y"},
        {"id": 3, "k": "x=y"},
        {"id": 4, "k": "z"},
    ]
    assert not parquet_files(warehouse)
    new = parquet_files(outside) - before
    assert {str(path.parent) for path in new} == {"k=x%3Dy/bucket-0", "k=z/bucket-0"}


def test_all_roots_get_files(connector: Connector, warehouse: Path, tmp_path: Path) -> None:
    roots = [tmp_path / "a", tmp_path / "b"]
    table = create(connector, COLUMNS, ["k"], options_of(*roots))

    merge(connector, table, inserts(table, [{"id": i, "k": str(i)} for i in range(6)]))

    assert [len(parquet_files(root)) for root in roots] == [3, 3]
    assert len(read(connector)) == 6


def test_files_outside_come_home_when_the_option_is_gone(
    connector: Connector, warehouse: Path, tmp_path: Path
) -> None:
    from pypaimon.schema.schema_change import SchemaChange

    table = create(connector, COLUMNS, ["k"], options_of(tmp_path / "out"))
    append(connector, [{"id": 1, "k": "x"}, {"id": 2, "k": "x"}])
    catalog = table.native.table.catalog_environment.catalog_loader.load()
    catalog.alter_table(str(NAME), [SchemaChange.set_option(f"{OPTION}.strategy", "none")])
    table = connector.metadata.load_table(NAME)

    merge(connector, table, change_rows(table, rows.DELETE, [{"file": 0, "position": 0}]))

    assert read(connector) == [{"id": 2, "k": "x"}]
    (path,) = parquet_files(warehouse)
    assert str(path.parent) == "shop.db/orders/k=x/bucket-0"


def test_a_vector_of_a_file_outside_lies_where_the_table_looks_for_it(
    connector: Connector, warehouse: Path, tmp_path: Path
) -> None:
    from pypaimon.schema.schema_change import SchemaChange

    options = {
        "deletion-vectors.enabled": "true",
        "index-file-in-data-file-dir": "true",
        REWRITE_SHARE_OPTION: "1",
    }
    table = create(connector, COLUMNS, ["k"], options)
    catalog = table.native.table.catalog_environment.catalog_loader.load()
    outside = options_of(tmp_path / "out").items()
    catalog.alter_table(str(NAME), [SchemaChange.set_option(*each) for each in outside])
    table = connector.metadata.load_table(NAME)
    append_with_pypaimon(table, [{"id": 1, "k": "x"}, {"id": 2, "k": "x"}])
    catalog.alter_table(str(NAME), [SchemaChange.set_option(f"{OPTION}.strategy", "none")])
    table = connector.metadata.load_table(NAME)

    merge(connector, table, change_rows(table, rows.DELETE, [{"file": 0, "position": 0}]))

    assert read(connector) == [{"id": 2, "k": "x"}]
    assert len(parquet_files(tmp_path / "out")) == 1
    assert not parquet_files(warehouse)


def test_a_file_within_moves_outside_when_it_is_replaced(
    connector: Connector, warehouse: Path, tmp_path: Path
) -> None:
    from pypaimon.schema.schema_change import SchemaChange

    table = create(connector, COLUMNS, ["k"], {"data-file.path-directory": "data"})
    append(connector, [{"id": 1, "k": "x"}, {"id": 2, "k": "x"}])
    catalog = table.native.table.catalog_environment.catalog_loader.load()
    changes = [SchemaChange.set_option(*each) for each in options_of(tmp_path / "out").items()]
    catalog.alter_table(str(NAME), changes)
    table = connector.metadata.load_table(NAME)

    merge(connector, table, change_rows(table, rows.DELETE, [{"file": 0, "position": 0}]))

    assert read(connector) == [{"id": 2, "k": "x"}]
    (path,) = parquet_files(tmp_path / "out")
    assert str(path.parent) == "data/k=x/bucket-0"


def test_abort_removes_what_was_written_outside(
    connector: Connector, warehouse: Path, tmp_path: Path
) -> None:
    roots = [tmp_path / "a", tmp_path / "b"]
    create(connector, COLUMNS, ["k"], options_of(*roots))
    append(connector, [{"id": 1, "k": "x"}])
    before = [parquet_files(root) for root in roots]
    table = connector.metadata.load_table(NAME)
    handle = begin(connector, table)
    store(handle, inserts(table, [{"id": i, "k": str(i)} for i in range(4)]))
    assert [len(parquet_files(root)) for root in roots] == [len(each) + 2 for each in before]

    connector.writes.abort_merge(table, handle)

    assert [parquet_files(root) for root in roots] == before


def test_weights_decide_how_often_a_root_is_chosen(tmp_path: Path) -> None:
    roots = [tmp_path / "a", tmp_path / "b"]
    found = external_paths(options_of(*roots, strategy="weight-robin", weights="1, 3"))

    assert found is not None
    counts = Counter(found.root(number) for number in range(100, 140))
    assert counts == {str(roots[0]): 10, str(roots[1]): 30}


def test_specific_fs_leaves_the_paths_of_one_scheme() -> None:
    options = {
        OPTION: "s3://b/x, file:///tmp/x",
        f"{OPTION}.strategy": "specific-fs",
        f"{OPTION}.specific-fs": "FILE",
    }

    found = external_paths(options)

    assert found is not None
    assert found.roots == ("/tmp/x",)


@pytest.mark.parametrize("options", [{}, {OPTION: ""}, {OPTION: "s3://b/x"}])
def test_without_a_strategy_files_stay_in_the_table(options: dict[str, str]) -> None:
    assert external_paths(options) is None
    assert external_paths({**options, f"{OPTION}.strategy": "none"}) is None


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (options_of(Path("/x"), strategy="entropy-inject"), "strategy = entropy-inject"),
        ({OPTION: "s3://b/x", f"{OPTION}.strategy": "round-robin"}, "s3://b/x"),
        ({OPTION: "/x", f"{OPTION}.strategy": "round-robin"}, "not a file: URI"),
        (options_of(Path("/x"), strategy="specific-fs", specific_fs="s3"), "names no path"),
        (options_of(Path("/x"), Path("/y"), strategy="weight-robin", weights="1"), "one weight"),
        (options_of(Path("/x"), Path("/y"), strategy="weight-robin", weights="1,0"), "weights"),
        ({**options_of(Path("/x")), "index-file-in-data-file-dir": "true"}, "index-file-in-data"),
    ],
)
def test_what_can_not_be_honoured_is_refused_for_targets(
    connector: Connector, warehouse: Path, options: dict[str, str], reason: str
) -> None:
    with pytest.raises(NotSupportedError, match=reason):
        create(connector, COLUMNS, options=options)

    assert not list(warehouse.rglob("schema-*"))


@pytest.mark.parametrize("text", ["/a b/%41", "file:/a b/%41", "file:///a b/%41"])
def test_paths_are_not_decoded(text: str) -> None:
    assert filesystem_path(text) == "/a b/%41"


@pytest.mark.parametrize("text", ["oss://b/x", "hdfs:/x", "file://host/x"])
def test_files_on_other_storage_are_named(text: str) -> None:
    with pytest.raises(NotSupportedError, match=text):
        filesystem_path(text)
