"""Tables that Java wrote are compacted here: everybody reads the same rows, of every type."""

from __future__ import annotations

import pytest

from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.compaction import CompactSpec
from spark_jobs.contract.request import CatalogSpec, TableName
from spark_jobs.datafiles import concatenate
from tests.datafiles.files_to_concatenate import chunks
from tests.judge.judge import facts_from_java
from tests.judge.test_java_tables import TABLES, check, java_table, rows_of
from tests.support.append_checker import problems_of
from tests.support.compaction_runs import compact
from tests.support.judged_values import from_arrow

NAME = TableName("d", "t")


# Decoded and encoded anew as well.
ENCODED = ("partitioned", "deletion vectors", "partitioned buckets")


@pytest.mark.parametrize(
    ("name", "copies"), [*((n, True) for n in TABLES), *((n, False) for n in ENCODED)]
)
def test_a_table_of_java(warehouse, monkeypatch, name, copies):
    keys, options = TABLES[name]
    table, expected = java_table(warehouse, keys, options)
    if copies:
        monkeypatch.setattr(concatenate, "LEAST_BYTES", 1)
    before = [chunk for path in files(warehouse) for group in chunks(path) for chunk in group]
    catalog = CatalogSpec("paimon", str(warehouse.path))
    connector = open_connector(catalog, {})

    result = compact(connector, catalog, CompactSpec(mode="full"), name=NAME)

    assert result.error is None, result.error
    check(warehouse, expected)
    assert not problems_of(warehouse.table("d.t"))
    facts = facts_from_java(warehouse.path, "d.t")
    places = {(file.partition, file.bucket) for file in facts.files}
    assert len(facts.files) == len(places)
    after = {
        chunk
        for file in facts.files
        for path in files(warehouse)
        if path.name == file.name
        for group in chunks(path)
        for chunk in group
    }
    if "deletion" not in name:
        assert after == set(before) if copies else not after & set(before)
    again = compact(connector, catalog, CompactSpec(mode="full"), name=NAME)
    assert again.compaction.snapshots == ()

    table.append(rows_of(range(100, 110)))
    table.compact()
    check(warehouse, expected + from_arrow(rows_of(range(100, 110))))


def files(warehouse):
    return sorted(warehouse.path.rglob("*.parquet"))
