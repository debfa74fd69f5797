"""Merged sections are what a record-by-record model says, and so is what changelogs get."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings

from spark_jobs.connectors.paimon.compaction.keyed_compactor import (
    KeyedBucket,
    KeyedCompactor,
    KeyedFiles,
    KeyedPart,
    OwedChangelog,
)
from spark_jobs.connectors.paimon.format.manifest_entries import BucketKey
from spark_jobs.connectors.paimon.keyed.changelog import ChangelogFiles
from spark_jobs.connectors.paimon.keyed.file_columns import SEQUENCE_NUMBER, VALUE_KIND
from spark_jobs.connectors.paimon.keyed.merge_engines import KeyedSchema, MergeEngine
from spark_jobs.connectors.paimon.keyed.run_writer import WrittenRun
from spark_jobs.connectors.paimon.keyed.section_reader import RunFile
from spark_jobs.connectors.paimon.write.file_layout import NewFileLayout
from spark_jobs.datafiles.parquet.options import Compression
from spark_jobs.datafiles.rolling_writer import NewFiles
from spark_jobs.errors import CatalogError, ErrorCode
from spark_jobs.formats.paimon.paths import PartitionLayout
from spark_jobs.spi.writes import Fragment
from tests.connectors.paimon.keyed.merged_model import merged_rows
from tests.connectors.paimon.keyed.random_sections import (
    DELETE,
    INSERT,
    LOCAL,
    Key,
    RandomSection,
    Record,
    key_of,
    keys_of,
    random_row,
    random_section,
    reader_of,
    run_file,
    schema_of,
)
from tests.connectors.paimon.keyed.test_section_reader import ENGINES, SEEDS, engine_of

HIGHEST = 5
KINDS = ("int", "string")
PLACE = BucketKey((), 0)
LETTERS = ("+I", "-U", "+U", "-D")

Change = tuple[str, dict[str, Any], int]


def compactor_of(
    schema: KeyedSchema,
    folder: Path,
    window_rows: int = 2**17,
    target_size: int = 2**27,
    changelog: OwedChangelog | None = None,
) -> KeyedCompactor:
    layout = NewFileLayout(
        files=NewFiles(LOCAL, schema.columns, target_size, Compression()),
        root=str(folder),
        partitions=PartitionLayout((), "", legacy_names=True),
        table_path=str(folder),
        external=None,
        bucketed=True,
    )
    reader = reader_of(schema, window_rows)
    return KeyedCompactor("data-new-", layout, reader, schema.key, changelog)


def part_of(*stretches: Sequence[Sequence[RunFile]]) -> KeyedPart:
    """Stretches of sections, whose files have numbers in this order."""
    numbers = iter(range(1000))
    found = tuple(
        tuple(
            KeyedFiles(tuple(next(numbers) for _ in section), tuple(section), 1000)
            for section in stretch
        )
        for stretch in stretches
    )
    return KeyedPart((KeyedBucket(PLACE, HIGHEST, found),))


def compacted(compactor: KeyedCompactor, part: KeyedPart) -> tuple[Fragment, dict[str, Any]]:
    """The fragment of a compaction, sent as the engine does, and its document."""
    sent = pickle.loads(pickle.dumps((compactor, part)))
    (fragment,) = sent[0].compact(sent[1], "task-0")
    received = Fragment.from_json(fragment.to_json())
    return received, received.document["compacted"]


def runs_of(documents: Sequence[Mapping[str, Any]]) -> list[WrittenRun]:
    assert {(each["bucket"], each["level"]) for each in documents} <= {(0, HIGHEST)}
    return [WrittenRun.from_json(each["run"]) for each in documents]


def records_of(schema: KeyedSchema, runs: Sequence[WrittenRun]) -> Iterator[Change]:
    """The records in files: kind, row and sequence number."""
    for run in runs:
        for row in pq.read_table(run.path).to_pylist():
            values = {name: row[name] for name in schema.columns.names}
            yield LETTERS[row[VALUE_KIND]], values, row[SEQUENCE_NUMBER]


def counting(schema: KeyedSchema, section: RandomSection) -> list[Record]:
    """The records that count: of a key's levels above 0 only the lowest, if compactions look up."""
    if not schema.looks_up:
        return list(section.records)
    lowest: dict[Key, int] = {}
    for record in section.records:
        level = section.files[record.file].level
        if level:
            key = key_of(schema, record.row)
            lowest[key] = min(level, lowest.get(key, level))
    return [
        record
        for record in section.records
        if section.files[record.file].level in (0, lowest.get(key_of(schema, record.row)))
    ]


def changes_of(schema: KeyedSchema, section: RandomSection, below: int) -> list[Change]:
    """What the records of the levels below ``below`` have changed, in key order."""

    def level(record: Record) -> int:
        return section.files[record.file].level

    kept = counting(schema, replace(section, records=_from(section, below)))
    before = merged_rows(schema, kept)
    after = merged_rows(schema, counting(schema, section))
    touched = {key_of(schema, record.row) for record in section.records if level(record) < below}
    found: list[Change] = []
    for key in sorted(touched):
        was, now = before.get(key), after.get(key)
        if was is not None:
            found.append(("-D" if now is None else "-U", was.row, was.number))
        if now is not None:
            found.append(("+I" if was is None else "+U", now.row, now.number))
    return found


def _from(section: RandomSection, level: int) -> tuple[Record, ...]:
    return tuple(each for each in section.records if section.files[each.file].level >= level)


def check(seed: int, kind: str, folder: Path) -> None:
    random = Random(seed)
    schema = schema_of(KINDS, engine_of(random, kind), thin=random.random() < 0.5)
    schema = replace(schema, looks_up=kind != "first-row" and random.random() < 0.5)
    keys = keys_of(KINDS)
    chosen = sorted(random.sample(keys, random.choice([1, 5, 20])))
    section = random_section(random, schema, folder, chosen)
    below = random.choice([1, HIGHEST])
    owed = OwedChangelog(ChangelogFiles("changelog-new-", Compression()), below)
    target_size = random.choice([1, 2**27])
    compactor = compactor_of(schema, folder, random.choice([1, 3, 2**17]), target_size, owed)

    fragment, document = compacted(compactor, part_of([section.files]))

    rows = merged_rows(schema, counting(schema, section)).values()
    runs = runs_of(document["added"])
    assert list(records_of(schema, runs)) == [("+I", each.row, each.number) for each in rows]
    assert all(run.delete_count == 0 for run in runs)
    assert all(one.last_key < other.first_key for one, other in pairwise(runs))
    assert document["files"] == list(range(len(section.files)))
    assert (fragment.files_removed, fragment.files_added) == (len(section.files), len(runs))
    assert fragment.rows_carried == len(rows)
    changelog = runs_of(document["changelog"])
    assert list(records_of(schema, changelog)) == changes_of(schema, section, below)


@pytest.mark.parametrize("kind", ENGINES)
@settings(max_examples=25, deadline=None)
@given(seed=SEEDS)
def test_new_files_and_changelogs_are_what_the_model_says(kind: str, seed: int) -> None:
    with TemporaryDirectory() as folder:
        check(seed, kind, Path(folder))


@pytest.fixture
def schema() -> KeyedSchema:
    return schema_of(("int",), MergeEngine("deduplicate"))


def rows_of(schema: KeyedSchema, keys: Sequence[int], first: int = 0, kind: int = INSERT) -> Any:
    """Records of keys, numbered from ``first``."""
    random = Random(first)
    return [
        (first + number, kind, random_row(random, schema, (key,)))
        for number, key in enumerate(keys)
    ]


def test_the_sections_of_a_stretch_share_files_and_stretches_do_not(
    schema: KeyedSchema, tmp_path: Path
) -> None:
    sections = [
        [run_file(schema, tmp_path, 0, rows_of(schema, [key, key + 1], key))] for key in (0, 10, 20)
    ]

    _, document = compacted(compactor_of(schema, tmp_path), part_of(sections[:2], sections[2:]))

    found = [(run.first_key, run.last_key) for run in runs_of(document["added"])]
    assert found == [((0,), (11,)), ((20,), (21,))]


def test_a_section_of_which_no_row_is_left_leaves_no_file(
    schema: KeyedSchema, tmp_path: Path
) -> None:
    files = [
        run_file(schema, tmp_path, HIGHEST, rows_of(schema, [1, 2])),
        run_file(schema, tmp_path, 0, rows_of(schema, [1, 2], 10, DELETE)),
    ]
    before = set(tmp_path.iterdir())

    fragment, document = compacted(compactor_of(schema, tmp_path), part_of([files]))

    assert (document["added"], document["changelog"]) == ([], [])
    assert (fragment.files_added, fragment.files_removed) == (0, 2)
    assert set(tmp_path.iterdir()) == before


def test_a_row_of_a_first_row_table_is_in_the_changelog_only_if_its_key_is_new(
    tmp_path: Path,
) -> None:
    schema = schema_of(("int",), MergeEngine("first-row"))
    files = [
        run_file(schema, tmp_path, HIGHEST, rows_of(schema, [1, 2])),
        run_file(schema, tmp_path, 0, rows_of(schema, [2, 3], 10)),
    ]
    owed = OwedChangelog(ChangelogFiles("log-", Compression(), drops_unchanged=True), 1)

    _, document = compacted(compactor_of(schema, tmp_path, changelog=owed), part_of([files]))

    changes = records_of(schema, runs_of(document["changelog"]))
    assert [(kind, row["k0"], number) for kind, row, number in changes] == [("+I", 3, 11)]


def _unsorted(schema: KeyedSchema, folder: Path) -> RunFile:
    return run_file(schema, folder, 0, rows_of(schema, [2, 1]))


def _miscounted(schema: KeyedSchema, folder: Path) -> RunFile:
    return run_file(schema, folder, 0, rows_of(schema, [1, 2]))._replace(row_count=3)


def _with_other_deletes(schema: KeyedSchema, folder: Path) -> RunFile:
    return run_file(schema, folder, 0, rows_of(schema, [1, 2], 0, DELETE))._replace(delete_count=0)


def _truncated(schema: KeyedSchema, folder: Path) -> RunFile:
    file = run_file(schema, folder, 0, rows_of(schema, [1, 2]))
    content = Path(file.path).read_bytes()
    Path(file.path).write_bytes(content[: len(content) // 2])
    return file


def _missing(schema: KeyedSchema, folder: Path) -> RunFile:
    file = run_file(schema, folder, 0, rows_of(schema, [1, 2]))
    Path(file.path).unlink()
    return file


@pytest.mark.parametrize(
    "damaged", [_unsorted, _miscounted, _with_other_deletes, _truncated, _missing]
)
def test_a_damaged_file_is_named_and_no_new_file_stays(
    schema: KeyedSchema, tmp_path: Path, damaged: Any
) -> None:
    good = [run_file(schema, tmp_path, 0, rows_of(schema, [-9, -8], 50))]
    bad = damaged(schema, tmp_path)
    before = set(tmp_path.rglob("*"))
    compactor = compactor_of(schema, tmp_path, target_size=1)

    with pytest.raises(CatalogError) as caught:
        compactor.compact(part_of([good, [bad]]), "task-0")

    assert caught.value.code is ErrorCode.DATA_FILE_UNREADABLE
    assert bad.path in str(caught.value)
    left = {path for path in tmp_path.rglob("*") if path.is_file()}
    assert left <= before


def test_a_vector_beyond_the_end_of_its_file_is_named(schema: KeyedSchema, tmp_path: Path) -> None:
    file = run_file(schema, tmp_path, HIGHEST, rows_of(schema, [1, 2]), deleted=[0, 2])

    with pytest.raises(CatalogError) as caught:
        compactor_of(schema, tmp_path).compact(part_of([[file]]), "task-0")

    assert caught.value.code is ErrorCode.METADATA_UNREADABLE
    assert file.path in str(caught.value)


def test_no_more_than_a_window_of_each_run_is_merged_at_once(
    schema: KeyedSchema, tmp_path: Path
) -> None:
    largest = 0
    keys = range(5000)
    files = [
        run_file(schema, tmp_path, level, rows_of(schema, keys, 10_000 * (HIGHEST - level)))
        for level in (0, 1, HIGHEST)
    ]
    compactor = compactor_of(schema, tmp_path, window_rows=100)
    for window in compactor.reader.windows(files):
        largest = max(largest, window.records.num_rows)

    _, document = compacted(compactor, part_of([files]))

    assert largest == 300
    (run,) = runs_of(document["added"])
    assert run.rows == len(keys)
    assert pa.table(pq.read_table(run.path)).column("k0").to_pylist() == list(keys)
