"""Postponed records wait in sorted runs on disk, and keep the order in which they were written."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_jobs.connectors.paimon.format.buckets import key_hashes, remainders
from spark_jobs.connectors.paimon.keyed.file_columns import SEQUENCE_NUMBER
from spark_jobs.connectors.paimon.keyed.merge_engines import MergeEngine
from spark_jobs.connectors.paimon.keyed.waiting_records import WaitingRecords
from spark_jobs.errors import CatalogError, ErrorCode
from tests.connectors.paimon.keyed.merged_model import merged_rows
from tests.connectors.paimon.keyed.random_sections import (
    AFTER,
    DELETE,
    INSERT,
    Record,
    key_of,
    keys_of,
    random_row,
    reader_of,
    run_file,
    schema_of,
    table_of,
)
from tests.connectors.paimon.keyed.test_section_reader import ENGINES, SEEDS, engine_of

KINDS = ("int", "string")
BUCKETS = 3


def check(seed: int, kind: str, folder: Path) -> None:
    """Records of few keys, so that a key fills more than a window, in a section of two levels."""
    random = Random(seed)
    schema = schema_of(KINDS, engine_of(random, kind))
    bucket_key = random.choice([schema.key, schema.key[:1]])
    chosen = random.sample(keys_of(KINDS), 4)
    kinds = [INSERT, AFTER, *([DELETE] if kind == "deduplicate" else [])]

    def some(count: int) -> list[tuple[int, int, dict[str, object]]]:
        keys = [random.choice(chosen) for _ in range(count)]
        return [(7, random.choice(kinds), random_row(random, schema, key)) for key in keys]

    postponed = [some(random.randrange(1, 25)) for _ in range(3)]
    files = [
        run_file(schema, folder, 0, each, group_rows=random.choice([2, 9])) for each in postponed
    ]
    written = [each for batch in postponed for each in batch]
    hashes = key_hashes(
        table_of(schema, [row for *_, row in written]),
        [schema.columns.field(name) for name in bucket_key],
    )
    places = remainders(hashes, BUCKETS).tolist()
    by_bucket = defaultdict(list)
    for place, (_, kind_of, row) in zip(places, written, strict=True):
        by_bucket[place].append((kind_of, row))
    reader = reader_of(schema, random.choice([1, 3, 100]))
    spilled = folder / "spilled"
    spilled.mkdir()
    waiting = WaitingRecords(reader, bucket_key, BUCKETS, spilled, random.choice([1, 500, 2**20]))

    waiting.take(files)

    for bucket in range(BUCKETS):
        assert waiting.count(bucket) == len(by_bucket[bucket])
        stored = {key_of(schema, row): row for _, row in by_bucket[bucket][:2]}
        older = [(10 + n, INSERT, stored[key]) for n, key in enumerate(sorted(stored))]
        section = [run_file(schema, folder, 5, older)] if older else []
        model = [Record(number, kind_of, row, 0, 0) for number, kind_of, row in older]
        model += [Record(100 + n, *each, 0, 0) for n, each in enumerate(by_bucket[bucket])]
        expected = [(each.row, each.number) for each in merged_rows(schema, model).values()]
        windows = reader.windows(section, waiting.runs(bucket, len(section), 100))
        found = [row for window in windows for row in reader.merged(window).to_pylist()]
        names = schema.columns.names
        rows = [({name: row[name] for name in names}, row[SEQUENCE_NUMBER]) for row in found]
        assert rows == expected


@pytest.mark.parametrize("kind", ENGINES)
@settings(max_examples=15, deadline=None)
@given(seed=SEEDS)
def test_records_merge_in_the_order_of_writing(kind: str, seed: int) -> None:
    with TemporaryDirectory() as folder:
        check(seed, kind, Path(folder))


@given(st.integers(1, 3))
@settings(max_examples=3, deadline=None)
def test_a_file_with_another_number_of_records_is_named(more: int) -> None:
    schema = schema_of(KINDS, MergeEngine("deduplicate"))
    with TemporaryDirectory() as folder:
        records = [(0, INSERT, random_row(Random(1), schema, keys_of(KINDS)[0]))]
        file = run_file(schema, Path(folder), 0, records)._replace(row_count=1 + more)
        waiting = WaitingRecords(reader_of(schema), schema.key, 1, Path(folder))

        with pytest.raises(CatalogError) as caught:
            waiting.take([file])

    assert caught.value.code is ErrorCode.DATA_FILE_UNREADABLE
    assert file.path in str(caught.value)
