"""What a compaction may ask for, and what its snapshots record."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_jobs.contract.compaction import PARTITION_COUNTS, CompactedPartition, CompactSpec
from spark_jobs.contract.compaction_order import SortTerm, resolved_terms, sort_terms
from spark_jobs.contract.compaction_record import COMPACTION, GroupRecord, PartitionRecord
from spark_jobs.contract.partition_names import partition_key, partition_name
from spark_jobs.contract.request import CatalogSpec, JobRequest, TableName
from spark_jobs.contract.sizes import parse_size, parse_size_option
from spark_jobs.errors import AnalysisError, ErrorCode, RequestError
from tests.contract.strategies import counts, texts


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"mode": "deletes", "sort_by": ("a",)}, "sort_by: has no effect if mode is 'deletes'"),
        ({"mode": "tiny"}, "mode: 'tiny' is not one of: minor, full, deletes"),
        ({"partitions": ({"day": "1"}, {"day": " "})}, "partitions[1].day: the value is empty"),
        ({"target_file_size": "128"}, "target_file_size: '128' has no unit"),
        ({"target_file_size": "0 mb"}, "target_file_size: 0 mb is not positive"),
        ({"target_file_size": "8193 mb"}, "target_file_size: 8193 mb is more than 8 gb"),
        ({"max_bytes": "1 parsec"}, "max_bytes: '1 parsec' is not a size such as 128 mb"),
        ({"max_bytes": "-1 mb"}, "max_bytes: '-1 mb' is not a size"),
        ({"min_files": 1}, "min_files: 1 is less than 2"),
        ({"sorted_runs": 0}, "sorted_runs: 0 is less than 2"),
        ({"max_partitions": 0}, "max_partitions: 0 is less than 1"),
        ({"small_file_share": 1.1}, "small_file_share: 1.1 is not from 0 to 1"),
        ({"deleted_share": -0.1}, "deleted_share: -0.1 is not from 0 to 1"),
        ({"sort_by": ("",)}, "sort_by[0]: '' does not name one column"),
        ({"sort_by": ("a", "b` DESC")}, "sort_by[1]: 'b` DESC' does not name one column"),
        ({"sort_by": ("a b",)}, "sort_by[0]: 'a b' does not name one column"),
        ({"sort_by": ("a", "n.x DESC")}, "sort_by[1]: n.x is a nested field"),
        ({"sort_by": ("a", "`A` DESC")}, "sort_by[1]: A is there twice"),
        ({"zorder_by": ("a DESC",)}, "zorder_by[0]: 'a DESC' has a direction"),
        ({"zorder_by": ("a NULLS LAST",)}, "zorder_by[0]: 'a NULLS LAST' has a direction"),
        ({"sort_by": ("a",), "zorder_by": ("b",)}, "zorder_by: is given beside sort_by"),
    ],
)
def test_wrong_fields_are_named(fields: dict[str, Any], problem: str) -> None:
    with pytest.raises(RequestError) as caught:
        CompactSpec(**fields)
    assert caught.value.message.startswith(problem)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("1 b", 1),
        ("1 kb", 2**10),
        ("128 mb", 2**27),
        ("128MB", 2**27),
        (" 2 gib ", 2**31),
        ("1 terabytes", None),
        ("1 t", 2**40),
        ("109951162777600 b", 100 * 2**40),
        ("1.5 gb", None),
        ("", None),
        ("mb", None),
        ("٣ mb", None),
    ],
)
def test_sizes_have_units(text: str, size: int | None) -> None:
    if size is not None:
        assert parse_size(text) == size
        return
    with pytest.raises(ValueError, match="is not a size"):
        parse_size(text)


def test_only_options_are_bytes_without_a_unit() -> None:
    assert parse_size_option("1024") == 1024
    with pytest.raises(ValueError, match="has no unit: write 1024 mb, gb, kb or b"):
        parse_size("1024")


def test_the_digest_never_changes_between_releases() -> None:
    table, catalog = TableName("shop", "orders"), CatalogSpec("paimon", "/w")
    digest = JobRequest("op", table, catalog, CompactSpec()).digest()
    assert digest == "5e8f5731cacf4f9b037d4d0d1ebfbb60e276207ac4b3c2c8f19b210a6dcb0524"
    other = JobRequest("op", table, catalog, CompactSpec(mode="full")).digest()
    assert other != digest
    sorted_rows = JobRequest("op", table, catalog, CompactSpec(sort_by=("a",))).digest()
    assert sorted_rows not in (
        digest,
        JobRequest("op", table, catalog, CompactSpec(zorder_by=("a",))).digest(),
    )


@pytest.mark.parametrize(
    ("text", "term"),
    [
        ("a", SortTerm("a", True, True)),
        (" A  desc ", SortTerm("A", False, False)),
        ("a ASC NULLS LAST", SortTerm("a", True, False)),
        ("a desc nulls first", SortTerm("a", False, True)),
        ("a NULLS LAST", SortTerm("a", True, False)),
        ("`a.``b` DESC", SortTerm("a.`b", False, False)),
        ("`a DESC`", SortTerm("a DESC", True, True)),
        ("`a b` DESC", SortTerm("a b", False, False)),
    ],
)
def test_terms_of_an_order(text: str, term: SortTerm) -> None:
    assert sort_terms("sort_by", (text,)) == (term,)


def test_columns_of_an_order_are_those_of_the_table() -> None:
    columns = {"Id": "BIGINT", "at": "TIMESTAMP(6) WITH LOCAL TIME ZONE", "list": "ARRAY<INT>"}
    terms = resolved_terms("sort_by", ("AT DESC", "id"), "db.t", columns)
    assert terms == (SortTerm("at", False, False), SortTerm("Id"))
    for text, code, problem in (
        ("day", ErrorCode.COLUMN_NOT_FOUND, "sort_by[1]: day is not a column of db.t"),
        ("LIST", ErrorCode.TYPE_MISMATCH, "sort_by[1]: list of db.t is ARRAY<INT>"),
    ):
        with pytest.raises(AnalysisError) as caught:
            resolved_terms("sort_by", ("id", text), "db.t", columns)
        assert caught.value.code is code
        assert caught.value.message.startswith(problem)


_records = st.builds(
    PartitionRecord,
    st.lists(st.none() | texts, max_size=3).map(tuple),
    st.lists(counts, min_size=7, max_size=7).map(tuple),
    st.booleans(),
)


@given(st.builds(GroupRecord, st.lists(_records, max_size=3).map(tuple), counts))
def test_a_record_is_read_as_it_was_written(record: GroupRecord) -> None:
    assert GroupRecord.of_properties(record.to_property()) == record


def test_a_snapshot_without_a_record_did_nothing() -> None:
    assert GroupRecord.of_properties({"merge.statement": "merge"}) == GroupRecord()


@pytest.mark.parametrize("text", ["{", "[]", "[" * 100_000, '{"partitions": 1}', '{"more": 1}'])
def test_a_record_of_another_version_is_refused(text: str) -> None:
    with pytest.raises(RequestError, match=COMPACTION):
        GroupRecord.of_properties({COMPACTION: text})


def test_a_record_has_what_was_done() -> None:
    done = CompactedPartition({"day": "2026-01-31", "hour": None}, *range(1, 8))
    record = PartitionRecord.of(done, complete=True)
    assert record.partition(["day", "hour"]) == done
    assert [getattr(done.plus(done), name) for name in PARTITION_COUNTS] == [
        2 * n for n in range(1, 8)
    ]
    with pytest.raises(RequestError, match="other values or counts"):
        record.partition(["day"])


def test_a_key_tells_apart_what_a_name_does_not() -> None:
    null, text = {"p": None}, {"p": "NULL"}
    assert partition_name(null) == partition_name(text)
    assert partition_key(null) != partition_key(text)
    two, one = {"a": "x/b=y", "b": "z"}, {"a": "x", "b": "y/b=z"}
    assert partition_key(two) != partition_key(one)
    values = {"d": dt.date(2026, 1, 31), "n": Decimal("1.50"), "t": True, "i": 7}
    assert partition_key(values) == '["2026-01-31", "1.50", "true", "7"]'
