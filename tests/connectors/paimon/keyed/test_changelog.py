"""What a rewrite writes into a changelog: -U and +U, +I, -D of the rows that its changes touch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_jobs.connectors.paimon.keyed.changelog import Changelog, ChangelogFiles
from spark_jobs.connectors.paimon.keyed.merge_engines import KeyedSchema, MergeEngine
from spark_jobs.connectors.paimon.keyed.run_writer import SortedRunWriter, WrittenRun
from spark_jobs.datafiles.parquet.options import Compression
from spark_jobs.datafiles.rolling_writer import NewFiles
from spark_jobs.errors import InternalError

KINDS = ("+I", "-U", "+U", "-D")
NUMBERED = [("part", pa.string()), ("id", pa.int64()), ("v", pa.string()), ("n", pa.int32())]
NUMBERED += [("tags", pa.list_(pa.string()))]
COLUMNS = pa.schema(
    [
        pa.field(name, kind, name in "vntags", {"PARQUET:field_id": str(index)})
        for index, (name, kind) in enumerate(NUMBERED)
    ]
)
SCHEMA = KeyedSchema(COLUMNS, ("part", "id"), MergeEngine("deduplicate"))
TARGET_SIZE = 2**27

Key = tuple[str, int]
Row = tuple[Any, ...]
Record = tuple[str, Key, Row, int]
Make = Callable[..., Changelog]


@pytest.fixture(scope="module")
def make(tmp_path_factory: pytest.TempPathFactory) -> Make:
    """New changelogs of empty folders."""

    def changelog(target_size: int = TARGET_SIZE, **options: Any) -> Changelog:
        folder, made = tmp_path_factory.mktemp("bucket-0"), iter(range(1000))
        files = NewFiles(pafs.LocalFileSystem(), COLUMNS, target_size, Compression())
        writer = SortedRunWriter(
            files,
            SCHEMA.key,
            False,
            lambda: str(folder / f"changelog-{next(made)}.parquet"),
            is_changelog=True,
        )
        return Changelog(SCHEMA, ChangelogFiles("changelog-", Compression(), **options), writer)

    return changelog


def stored(rows: Mapping[Key, tuple[Row, int]]) -> pa.Table:
    """Rows with their sequence numbers, in key order."""
    found = [(*key, *row, number) for key, (row, number) in sorted(rows.items())]
    columns: Iterable[Any] = zip(*found, strict=True) if found else [[]] * 6
    schema = pa.schema([*COLUMNS, pa.field("_SEQUENCE_NUMBER", pa.int64())])
    return pa.Table.from_arrays(list(map(pa.array, columns, schema.types)), schema=schema)


def changes(keys: Iterable[Key]) -> pa.Table:
    found = sorted(keys)
    parts, ids = pa.array([k[0] for k in found]), pa.array([k[1] for k in found], pa.int64())
    return pa.table({"id": ids, "part": parts})


def records_of(changelog: Changelog) -> tuple[list[WrittenRun], list[Record]]:
    """The files, and what is in them, in order."""
    runs = changelog.writer.finish()
    found = []
    for run in runs:
        for row in pq.read_table(run.path).to_pylist():
            key = (row["_KEY_part"], row["_KEY_id"])
            assert key == (row["part"], row["id"])
            values = (row["v"], row["n"], row["tags"])
            found.append((KINDS[row["_VALUE_KIND"]], key, values, row["_SEQUENCE_NUMBER"]))
    return runs, found


ROW = st.tuples(
    st.sampled_from([None, "a", "b"]),
    st.sampled_from([None, 1, 2]),
    st.sampled_from([None, [], ["x", None]]),
)
KEY = st.tuples(st.sampled_from("pq"), st.integers(0, 4))
ROWS = st.dictionaries(KEY, st.tuples(ROW, st.integers(0, 9)))


@settings(max_examples=150, deadline=None)
@given(old=ROWS, new=ROWS, touched=st.sets(KEY, min_size=1), drops=st.booleans())
def test_every_changed_key_has_the_records_of_its_change(
    make: Make,
    old: dict[Key, tuple[Row, int]],
    new: dict[Key, tuple[Row, int]],
    touched: set[Key],
    drops: bool,
) -> None:
    after = {key: row for key, row in old.items() if key not in touched}
    after |= {key: row for key, row in new.items() if key in touched}
    changelog = make(drops_unchanged=drops)

    changelog.write(stored(old), changes([*touched, *touched]), stored(after))

    expected: list[Record] = []
    for key in sorted(touched):
        was, is_ = old.get(key), after.get(key)
        if was is not None and is_ is not None and not (drops and was[0] == is_[0]):
            expected += [("-U", key, *was), ("+U", key, *is_)]
        elif was is None and is_ is not None:
            expected.append(("+I", key, *is_))
        elif was is not None and is_ is None:
            expected.append(("-D", key, *was))
    assert records_of(changelog)[1] == expected


def test_a_row_that_differs_in_an_ignored_column_is_unchanged(make: Make) -> None:
    changelog = make(drops_unchanged=True, ignored=("n",))
    old = {("p", 1): (("a", 1, None), 4), ("p", 2): (("a", 1, None), 5)}
    new = {("p", 1): (("a", 2, None), 6), ("p", 2): (("b", 2, None), 7)}

    changelog.write(stored(old), changes(old), stored(new))

    key, rows = ("p", 2), (old["p", 2], new["p", 2])
    assert records_of(changelog)[1] == [("-U", key, *rows[0]), ("+U", key, *rows[1])]


def test_the_two_records_of_an_update_are_in_the_same_file(make: Make) -> None:
    changelog = make(target_size=1)
    keys = [("p", number) for number in range(5)]
    for key in keys:
        old, new = {key: (("a", 1, None), 1)}, {key: (("b", 1, None), 2)}
        changelog.write(stored(old), changes([key]), stored(new))

    runs, records = records_of(changelog)

    assert [(run.first_key, run.last_key, run.rows) for run in runs] == [(k, k, 2) for k in keys]
    assert {run.delete_count for run in runs} == {1}
    assert [kind for kind, *_ in records] == ["-U", "+U"] * 5


def test_changes_that_leave_no_trace_make_no_file(make: Make) -> None:
    changelog = make(drops_unchanged=True)
    rows = {("p", 1): (("a", 1, None), 1)}

    changelog.write(stored(rows), changes(rows), stored(rows))
    changelog.write(stored(rows), changes([]), stored(rows))

    assert records_of(changelog) == ([], [])


def test_keys_that_do_not_ascend_are_a_defect(make: Make) -> None:
    changelog = make()
    rows = {("p", 1): (("a", 1, None), 1)}
    changelog.write(stored({}), changes(rows), stored(rows))
    before = {("a", 1): (("a", 1, None), 1)}

    with pytest.raises(InternalError, match="not in ascending order"):
        changelog.write(stored({}), changes(before), stored(before))
