"""Changes of tables with a primary key: those that Paimon's own streams read of the changelog."""

from __future__ import annotations

from collections import Counter

import pytest

from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.request import CatalogSpec, TableName, TableSource
from spark_jobs.contract.table_versions import ChangeRange
from spark_jobs.engine.runtime.session import fixed_settings, meaningful_settings
from spark_jobs.engine.source.table_changes import chosen_changes
from spark_jobs.errors import NotSupportedError
from tests.judge.judge import changelog_from_java
from tests.judge.merging import delete, update
from tests.judge.writer import JavaTable
from tests.support.judged_values import from_arrow

COLUMNS = {"k": "INT NOT NULL", "p": "STRING NOT NULL", "v": "STRING", "n": "INT"}
KINDS = {"+I": "insert", "-U": "update_before", "+U": "update_after", "-D": "delete"}
PRODUCERS = {
    "input": {"changelog-producer": "input"},
    "lookup": {"changelog-producer": "lookup"},
    "lookup, vectors": {"changelog-producer": "lookup", "deletion-vectors.enabled": "true"},
    "full-compaction": {"changelog-producer": "full-compaction"},
}


def row(k, v="old", n=1, p="a"):
    return {"k": k, "p": p, "v": v, "n": n}


def made(warehouse, options):
    table = JavaTable.of_types(
        warehouse.path, "d.t", COLUMNS, ["p"], {"bucket": "2", **options}, primary_keys=["p", "k"]
    )
    table.append_records([("+I", row(k)) for k in range(1, 9)] + [("+I", row(1, p="b"))])
    return table


def latest(warehouse):
    return warehouse.table("d.t").snapshot_manager().get_latest_snapshot().id


def changes(spark, warehouse, since, *, net=False, name="d.t"):
    connector = open_connector(CatalogSpec("paimon", str(warehouse.path)), {})
    asked = ChangeRange(from_snapshot=since, net=net)
    source = TableSource("s", TableName.parse(name), changes=asked)
    with fixed_settings(spark, meaningful_settings("UTC")):
        chosen = chosen_changes(spark, source, connector, None, "")
        rows = from_arrow(chosen.frame(spark, connector).toArrow())
    return [(each.pop("_change_type"), each.pop("_snapshot_id"), each) for each in rows]


@pytest.mark.parametrize("producer", PRODUCERS)
def test_changes_are_those_of_a_stream(spark, warehouse, producer):
    table = made(warehouse, PRODUCERS[producer])
    table.compact()
    since = latest(warehouse)
    assert update(spark, warehouse, {"v": "'new'"}, "k < 4").error is None
    assert delete(spark, warehouse, "k = 5 AND p = 'a'").error is None
    table = table.reloaded()
    table.append_records([("+I", row(2, "newer", 7)), ("-D", row(6)), ("+I", row(20))])
    table.compact()
    table.append_records([("+I", row(20, "last"))])
    table.compact()

    told = changes(spark, warehouse, since)
    streamed = changelog_from_java(warehouse.path, "d.t", since + 1)
    expected = Counter((KINDS[kind], repr(each)) for kind, each in streamed)
    assert Counter((kind, repr(each)) for kind, _, each in told) == expected
    assert {number for _, number, _ in told} <= {*range(since + 1, latest(warehouse) + 1)}

    net = changes(spark, warehouse, since, net=True)
    ends = {(each["p"], each["k"]): (kind, each["v"]) for kind, _, each in net}
    assert len(ends) == len(net)
    gone = {key for key, (kind, _) in ends.items() if kind == "delete"}
    assert gone == {("a", 5), ("a", 6)}
    assert {key: v for key, (_, v) in ends.items() if key not in gone} == {
        ("a", 1): "new",
        ("a", 2): "newer",
        ("a", 3): "new",
        ("a", 20): "last",
        ("b", 1): "new",
    }


def test_what_does_not_tell_its_changes_is_refused(spark, warehouse):
    made(warehouse, {})
    with pytest.raises(NotSupportedError, match="no changelog") as caught:
        changes(spark, warehouse, 1)
    assert "changelog-producer" in caught.value.remedy
    options = {"row-tracking.enabled": "true", "data-evolution.enabled": "true"}
    other = JavaTable.of_types(warehouse.path, "d.u", {"k": "INT"}, [], options)
    other.append_rows([{"k": 1}])
    other.append_rows([{"k": 2}])
    with pytest.raises(NotSupportedError, match="data evolution"):
        changes(spark, warehouse, 1, name="d.u")


def test_a_start_whose_changes_are_told_later_is_refused(warehouse):
    table = made(warehouse, {"changelog-producer": "full-compaction"})
    connector = open_connector(CatalogSpec("paimon", str(warehouse.path)), {})
    name = TableName("d", "t")
    with pytest.raises(NotSupportedError, match="has still to write the changelog"):
        connector.changes.require_start(connector.metadata.load_table(name))
    table.compact()
    connector.changes.require_start(connector.metadata.load_table(name))
