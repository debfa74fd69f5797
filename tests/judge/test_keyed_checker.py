"""The checker of tables with a primary key finds what is wrong with broken ones."""

from __future__ import annotations

import uuid
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pypaimon.deletionvectors.bitmap_deletion_vector import BitmapDeletionVector
from pypaimon.index.deletion_vector_meta import DeletionVectorMeta
from pypaimon.index.index_file_meta import IndexFileMeta
from pypaimon.manifest.index_manifest_entry import IndexManifestEntry
from pypaimon.table.row.generic_row import GenericRow

from spark_jobs.connectors.paimon.library.data_files import new_keyed_file
from tests.judge.keyed_tables import commit_files, entries_of, write_run
from tests.judge.tables import Warehouse
from tests.support.keyed_checker import problems_of

SCHEMA = pa.schema([pa.field("k", pa.int32(), nullable=False), pa.field("v", pa.string())])


@pytest.fixture
def table(tmp_path):
    warehouse = Warehouse(tmp_path)
    warehouse.create("d.t", SCHEMA, (), ["k"], {"bucket": "1"})
    return warehouse.table("d.t")


def run(table, *keys, first=0, kind="+I"):
    records = [(kind, {"k": k, "v": f"v{k}" if k else None}) for k in keys]
    return write_run(table, records, first)[0]


def file_of(table, *keys, level=0, first=0, kind="+I"):
    return new_keyed_file(table, run(table, *keys, first=first, kind=kind), level)


def rows(table, *values):
    return GenericRow(list(values), table.trimmed_primary_keys_fields)


def test_sound_tables(table):
    assert problems_of(table) == []

    commit_files(table, [file_of(table, 0, 1, 5, level=5), file_of(table, 6, 9, level=5)])
    commit_files(table, [file_of(table, 1, 2, first=10, kind="-D")])
    commit_files(table, [file_of(table, 5, 8, first=20)])

    assert problems_of(table) == []
    assert problems_of(table.table_path) == []


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        (lambda t: {"row_count": 4}, "its row count is 3, but its entry says 4"),
        (lambda t: {"delete_row_count": 1}, "its delete count is 0, but its entry says 1"),
        (lambda t: {"file_size": 7}, "its size is"),
        (lambda t: {"min_key": rows(t, 0)}, "its first key is (1,), but its entry says (0,)"),
        (lambda t: {"max_key": rows(t, 4)}, "its last key is (3,), but its entry says (4,)"),
        (lambda t: {"min_sequence_number": 6}, "its lowest sequence number is 7"),
        (lambda t: {"max_sequence_number": 8}, "its highest sequence number is 9"),
    ],
)
def test_wrong_entries(table, wrong, problem):
    file = file_of(table, 1, 2, 3, first=7)

    commit_files(table, [replace(file, **wrong(table))])

    assert any(problem in each for each in problems_of(table)), problems_of(table)


def test_wrong_statistics(table):
    file = file_of(table, 0, 2, 3)
    narrow = GenericRow([1, "v3"], table.table_schema.fields)
    stats = replace(file.value_stats, min_values=narrow, null_counts=[0, 0])
    key_stats = replace(file.key_stats, max_values=rows(table, 2))

    commit_files(table, [replace(file, value_stats=stats, key_stats=key_stats)])

    found = [each.partition(": ")[2] for each in problems_of(table)]
    assert found == [
        "the statistics of key k are wrong: (0, 2, 0)",
        "k has 0, which is not from 1 to 3",
        "v has 'v2', which is not from 'v3' to 'v3'",
        "v has 1 NULLs, but its entry says 0",
    ]


def test_wrong_deletes_hide_in_no_file(table):
    file = file_of(table, 1, 2, kind="-D")

    commit_files(table, [replace(file, delete_row_count=0)])

    (problem,) = problems_of(table)
    assert problem.endswith("its delete count is 2, but its entry says 0")


def broken(table, change):
    """Commit a file with other content than was written, of which the entry knows the size."""
    written = run(table, 1, 2, 3)
    content = pq.ParquetFile(written.path).read()
    pq.write_table(change(content), written.path, store_schema=False)
    file = new_keyed_file(table, replace(written, size=Path(written.path).stat().st_size), 0)
    commit_files(table, [file])


def renumbered(content):
    index = content.schema.get_field_index("v")
    field = content.schema.field("v").with_metadata({"PARQUET:field_id": "9"})
    return content.set_column(index, field, content["v"])


def with_key(values):
    def change(content):
        field = content.schema.field(0)
        return content.set_column(0, field, pa.array(values, field.type))

    return change


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda content: content.drop_columns(["_VALUE_KIND"]), "its columns are"),
        (lambda content: content.drop_columns(["_KEY_k"]), "its columns are"),
        (renumbered, "its field id of v is 9, but its entry says 1"),
        (with_key([1, 3, 2]), "key (2,) stands behind (3,)"),
        (with_key([1, 1, 3]), "key (1,) stands behind (1,)"),
        (with_key([1, 2, 3]), None),
        (lambda content: content.take([2, 1, 0]), "key (2,) stands behind (3,)"),
        (lambda content: content.slice(1), "its row count is 2"),
    ],
)
def test_broken_files(table, change, problem):
    broken(table, change)

    found = problems_of(table)

    assert any(problem in each for each in found) if problem else found == [], found


def test_files_without_field_ids_are_pypaimons(table):
    broken(table, lambda content: content.replace_schema_metadata().cast(_unnumbered(content)))

    assert problems_of(table)
    assert problems_of(table, numbered=False) == []


def _unnumbered(content):
    return pa.schema([field.remove_metadata() for field in content.schema])


def test_a_missing_file(table):
    file = file_of(table, 1)
    commit_files(table, [file])

    Path(file.file_path).unlink()

    assert problems_of(table) == [f"{file.file_name}: there is no such file"]


def test_levels_with_an_overlap(table):
    files = [file_of(table, 1, 4, level=3), file_of(table, 4, 9, level=3, first=5)]
    commit_files(table, [*files, file_of(table, 1, 9, level=2, first=9)])

    (problem,) = problems_of(table)

    assert problem.endswith("of level 3 overlap")


def test_a_sequence_number_twice(table):
    commit_files(table, [file_of(table, 1, 2)])
    commit_files(table, [file_of(table, 2, 3, first=1)])

    (problem,) = problems_of(table)

    assert problem.endswith("key (2,) has sequence number 1 2 times")


def test_vectors_of_files_that_are_gone(tmp_path):
    warehouse = Warehouse(tmp_path)
    options = {"bucket": "1", "deletion-vectors.enabled": "true"}
    warehouse.create("d.t", SCHEMA, (), ["k"], options)
    table = warehouse.table("d.t")
    commit_files(table, [file_of(table, 1, 2, level=5)])
    (old,) = entries_of(table)
    commit_files(table, [], index_adds=[vector_of(table, old.file.file_name, 1)])
    assert problems_of(table) == []

    commit_files(table, [file_of(table, 1, level=5)], removed=[old])

    (problem,) = problems_of(table)
    assert problem.startswith(f"{old.file.file_name}: it has a deletion vector in bucket")


@pytest.mark.parametrize(
    ("marked", "said", "problem"),
    [
        ((0,), 1, None),
        ((0, 1), 1, "2 rows are marked, not 1"),
        ((1, 2), 2, "its deletion vector marks no row, or one beyond its 2"),
        ((), 0, "its deletion vector marks no row, or one beyond its 2"),
    ],
)
def test_vectors_that_do_not_fit_their_file(tmp_path, marked, said, problem):
    warehouse = Warehouse(tmp_path)
    options = {"bucket": "1", "deletion-vectors.enabled": "true"}
    warehouse.create("d.t", SCHEMA, (), ["k"], options)
    table = warehouse.table("d.t")
    file = file_of(table, 1, 2, level=5)
    commit_files(table, [file])

    commit_files(
        table, [], index_adds=[vector_of(table, file.file_name, *marked, cardinality=said)]
    )

    expected = [f"{file.file_name}: {problem}"] if problem else []
    assert problems_of(table) == expected


def test_two_vectors_of_a_file(tmp_path):
    warehouse = Warehouse(tmp_path)
    options = {"bucket": "1", "deletion-vectors.enabled": "true"}
    warehouse.create("d.t", SCHEMA, (), ["k"], options)
    table = warehouse.table("d.t")
    file = file_of(table, 1, 2, level=5)
    commit_files(table, [file])

    twice = [vector_of(table, file.file_name, each) for each in (0, 1)]
    commit_files(table, [], index_adds=twice)

    assert problems_of(table) == [f"{file.file_name}: it has 2 deletion vectors"]


def vector_of(table, name, *marked, cardinality=1):
    """The entry of a new index file that marks rows of a data file."""
    vector = BitmapDeletionVector()
    for position in marked:
        vector.delete(position)
    content = b"\x01" + vector.serialize()
    index = f"index-{uuid.uuid4()}"
    folder = Path(str(table.table_path).removeprefix("file:")) / "index"
    folder.mkdir(exist_ok=True)
    (folder / index).write_bytes(content)
    ranges = {name: DeletionVectorMeta(name, 1, len(content) - 9, cardinality)}
    meta = IndexFileMeta("DELETION_VECTORS", index, len(content), 1, ranges)
    return IndexManifestEntry(0, GenericRow([], []), 0, meta)
