"""Files that are written here for tables with a primary key; Java reads, extends, compacts them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from random import Random

import fastavro
import pytest
from pypaimon.manifest.manifest_list_manager import ManifestListManager
from pypaimon.table.row.generic_row import GenericRowSerializer

from spark_jobs.connectors.paimon.library.data_files import live_entries
from tests.judge.judge import changelog_from_java, read_with_java
from tests.judge.keyed_tables import commit_runs, entries_of, write_run
from tests.judge.writer import JavaTable
from tests.support.judged_values import differences
from tests.support.keyed_checker import problems_of

_LOCAL = " WITH LOCAL TIME ZONE"
_LONG = "a common prefix of many keys "
_MOMENTS = (
    -62_135_596_799_999_999_000,  # in the year 1
    -86_400_000_000_001_000,
    -1_000_000,
    0,
    999_999_000,
    1_774_751_400_120_345_000,
    9_214_646_399_654_321_000,
)


def _moments(precision):
    unit = 10 ** (9 - precision)
    return sorted({moment // unit * unit for moment in _MOMENTS})


# Values of a key column, in Paimon's order.
KEYS = {
    "TINYINT": (-128, -1, 0, 1, 2, 126, 127),
    "SMALLINT": (-(2**15), -1, 0, 1, 255, 256, 2**15 - 1),
    "INT": (-(2**31), -1, 0, 1, 65_536, 2**31 - 2, 2**31 - 1),
    "BIGINT": (-(2**63), -1, 0, 1, 2**32, 2**63 - 2, 2**63 - 1),
    "BOOLEAN": (False, True),
    "DECIMAL(10, 2)": tuple(
        map(Decimal, ("-99999999.99", "-1.28", "-0.01", "0.00", "0.01", "1.28", "99999999.99"))
    ),
    "DECIMAL(30, 4)": tuple(
        map(
            Decimal,
            (
                "-99999999999999999999999999.9999",
                "-0.0128",
                "-0.0001",
                "0.0000",
                "0.0128",
                "1844674407370955.1616",
                "99999999999999999999999999.9999",
            ),
        )
    ),
    "STRING": ("", "A", "a", "a\x00", _LONG * 50, _LONG * 50 + "é", "abcdefg", "abcdefgh", "é👩"),
    "VARCHAR(30)": ("", "abcdefg", "abcdefgh", "abcdefghijklmno", "東", "東京", "👩"),
    "CHAR(9)": ("        a", "abcdefghi", "b        ", "zzzzzzzzz", "東東東東東東東東東"),
    "BINARY(3)": (b"\0\0\0", b"\0\0\1", b"abc", b"\x7f\xff\xff", b"\x80\0\0", b"\xff\xff\xff"),
    "VARBINARY(20)": (b"", b"\0", b"\0\0", b"\x7f", b"\x80", b"\xff", b"\xff" * 20),
    "DATE": (
        date(1, 1, 1),
        date(1582, 10, 10),
        date(1969, 12, 31),
        date(1970, 1, 1),
        date(2026, 2, 28),
        date(9999, 12, 31),
    ),
    "TIME(3)": (0, 1_000_000, 43_200_000_000_000, 86_399_999_000_000),
    "TIMESTAMP(0)": _moments(0),
    "TIMESTAMP(3)": _moments(3),
    "TIMESTAMP(6)": _moments(6),
    f"TIMESTAMP(3){_LOCAL}": _moments(3),
    f"TIMESTAMP(6){_LOCAL}": _moments(6),
}
# Java compacts when asked to; then it puts the newest files together if there are more than two.
ONE_BUCKET = {
    "bucket": "1",
    "write-only": "true",
    "num-levels": "6",
    "num-sorted-run.compaction-trigger": "2",
    "compaction.max-size-amplification-percent": "1000000",
}


def made(warehouse, kinds, options: Mapping[str, str] | None = None, key=("k",)):
    return JavaTable.of_types(
        warehouse.path, "d.t", kinds, (), {**ONE_BUCKET, **(options or {})}, key
    )


def plus(rows):
    return [("+I", row) for row in rows]


def content(warehouse, expected):
    """Both readers find exactly these rows, and every file is what its entry says."""
    assert not differences(read_with_java(warehouse.path, "d.t"), expected)
    assert not differences(warehouse.read_with_python("d.t"), expected)
    assert problems_of(warehouse.table("d.t")) == []


def lives_on(warehouse, table, rows, changed):
    """Java adds records, compacts a part, reads; compacts everything, reads."""
    added = {**rows[1], "v": "java"}
    table.append_records([("-D", {**rows[0], "v": None}), ("+I", {**rows[1], "v": None})])
    table.append_records([("+U", added)])
    expected = [added, *rows[2:]]
    content(warehouse, expected)
    before = levels(warehouse)
    table.compact(full=False)
    assert levels(warehouse) == ([4, 5] if 5 in before else [5])
    content(warehouse, expected)
    table.append_records(plus([changed(expected[-1])]))
    expected = [*expected[:-1], changed(expected[-1])]
    table.compact()
    assert levels(warehouse) == [5]
    content(warehouse, expected)


def large(number):
    """A text that hardly compresses: the file that has it is larger than Java's small ones."""
    return Random(number).randbytes(4000).hex()


def levels(warehouse):
    return sorted(entry.file.level for entry in entries_of(warehouse.table("d.t")))


@pytest.mark.by_turns(2)
@pytest.mark.parametrize("level", [0, 5])
@pytest.mark.parametrize("kind", KEYS)
def test_java_goes_on_with_files_of_each_type_of_key(warehouse, kind, level):
    table = made(warehouse, {"v": "STRING", "k": f"{kind} NOT NULL"})
    rows = [{"v": large(i), "k": value} for i, value in enumerate(KEYS[kind])]
    native = warehouse.table("d.t")

    commit_runs(native, write_run(native, plus(rows)), level)

    content(warehouse, rows)
    lives_on(warehouse, table, rows, lambda row: {**row, "v": "again"})


@pytest.mark.parametrize("thin", ["false", "true"])
def test_java_goes_on_with_a_key_of_two_columns(warehouse, thin):
    kinds = {"v": "STRING", "b": "BIGINT NOT NULL", "a": "STRING NOT NULL", "n": "DECIMAL(30, 4)"}
    table = made(warehouse, kinds, {"data-file.thin-mode": thin}, ("a", "b"))
    keys = [(a, b) for a in ("", "abcdefgh", "東") for b in (-1, 0, 2**40)]
    rows = [{"v": large(b), "b": b, "a": a, "n": Decimal("-0.0128")} for a, b in keys]
    native = warehouse.table("d.t")

    commit_runs(native, write_run(native, plus(rows)), 5)
    changes = [("-D", rows[2]), ("+U", {**rows[4], "v": "new"})]
    commit_runs(native, write_run(native, changes, len(rows)), 0)

    expected = [*rows[:2], rows[3], {**rows[4], "v": "new"}, *rows[5:]]
    content(warehouse, expected)
    lives_on(warehouse, table, expected, lambda row: {**row, "n": None})


def test_a_rewrite_takes_the_place_of_what_java_wrote(warehouse):
    table = made(warehouse, {"k": "INT NOT NULL", "v": "STRING"})
    rows = [{"k": k, "v": f"v{k}"} for k in range(6)]
    table.append_records(plus(rows))
    table.append_records([("-D", rows[0]), ("+U", {"k": 1, "v": "one"})])
    native = warehouse.table("d.t")
    old = entries_of(native)

    merged = [{"k": 1, "v": large(1)}, *rows[3:]]
    commit_runs(native, write_run(native, plus(merged)), 5, removed=old)

    content(warehouse, merged)
    lives_on(warehouse, table, merged, lambda row: {**row, "v": None})


@pytest.mark.parametrize(
    ("options", "of_key_1"),
    [
        ({"deletion-vectors.enabled": "true"}, "java"),
        ({"merge-engine": "first-row"}, "mine"),
        ({"merge-engine": "partial-update"}, "java"),
        ({"merge-engine": "aggregation", "fields.v.aggregate-function": "listagg"}, "mine,java"),
        ({"sequence.field": "v"}, "mine"),
        ({"changelog-producer": "lookup"}, "java"),
    ],
)
def test_java_merges_with_files_of_the_highest_level(warehouse, options, of_key_1):
    table = made(warehouse, {"k": "INT NOT NULL", "v": "STRING"}, options)
    native = warehouse.table("d.t")
    rows = [{"k": 1, "v": "mine"}, {"k": 5, "v": large(5)}]

    commit_runs(native, write_run(native, plus(rows)), 5)
    content(warehouse, rows)
    added = [{"k": 0, "v": "zero"}, {"k": 1, "v": "java"}]
    table.append_records(plus(added))
    table.compact(full=False)

    expected = [added[0], {"k": 1, "v": of_key_1}, rows[1]]
    content(warehouse, expected)
    table.compact()
    content(warehouse, expected)


def test_a_stream_reads_appended_records(warehouse):
    made(warehouse, {"k": "INT NOT NULL", "v": "STRING"})
    native = warehouse.table("d.t")
    row = {"k": 1, "v": "a"}

    commit_runs(native, write_run(native, [("+I", row)]), 0)
    commit_runs(native, write_run(native, [("-D", row)], 1), 0)

    assert changelog_from_java(warehouse.path, "d.t", 1) == [("+I", row), ("-D", row)]


@pytest.mark.by_turns(2)
@pytest.mark.parametrize("kind", KEYS)
def test_keys_in_manifests_are_javas_byte_for_byte(warehouse, kind):
    table = made(warehouse, {"k": f"{kind} NOT NULL", "x": "STRING NOT NULL"}, key=("k", "x"))
    rows = [{"k": value, "x": _LONG} for value in KEYS[kind]]
    table.append_records(plus(rows))
    native = warehouse.table("d.t")
    theirs = _keys_in_manifests(native)
    assert _keys_read_here(native) == theirs

    commit_runs(native, write_run(native, plus(rows)), 5, removed=entries_of(native))

    assert _keys_in_manifests(native) == theirs


def _keys_read_here(table):
    snapshot = table.snapshot_manager().get_latest_snapshot()
    files = [entry.file for entry in live_entries(table, snapshot)]
    encode = GenericRowSerializer.to_bytes
    return [(encode(file.min_key), encode(file.max_key)) for file in files]


def _keys_in_manifests(table):
    """First and last key of each file that the latest snapshot adds."""
    snapshot = table.snapshot_manager().get_latest_snapshot()
    found = []
    for manifest in ManifestListManager(table).read_delta(snapshot):
        path = f"{table.table_path}/manifest/{manifest.file_name}"
        with table.file_io.new_input_stream(path) as stream:
            records = [record for record in fastavro.reader(stream) if record["_KIND"] == 0]
        found += [(r["_FILE"]["_MIN_KEY"], r["_FILE"]["_MAX_KEY"]) for r in records]
    return found
