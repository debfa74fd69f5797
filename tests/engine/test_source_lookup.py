"""The lookup of source rows by their keys finds exactly the rows with equal keys."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs
import pytest

from spark_jobs.engine.merge.source_lookup import (
    KeptRows,
    SourceLookup,
    make_lookup,
    one_batch,
    write_batch,
)

TYPES: dict[pa.DataType, list[Any]] = {
    pa.int8(): [-128, 0, 127],
    pa.int64(): [-(2**63), -1, 0, 2**63 - 1],
    pa.string(): ["", "a", "a ", "ä", "Z"],
    pa.date32(): [dt.date(1, 1, 1), dt.date(1582, 10, 10), dt.date(9999, 12, 31)],
    pa.decimal128(38, 2): [Decimal("-0.01"), Decimal("0.00"), Decimal(10) ** 35],
}


def joined(
    keys: Sequence[pa.Array], target: Sequence[pa.Array], folder: Path, most: int = 7
) -> list[tuple[int, int]]:
    """The pairs of target row and source row, by way of the files."""
    rows = pa.table({"c0": pa.array(range(len(keys[0])), pa.int64())})
    lookup = make_lookup(keys, rows)
    stored = SourceLookup(pafs.LocalFileSystem(), str(folder), len(keys))
    stored.write(lookup)
    opened = stored.opened()
    assert opened.rows.column(0).to_pylist() == rows["c0"].to_pylist()
    found = []
    for targets, sources in opened.pairs(opened.codes(target), most):
        assert 0 < len(targets) == len(sources) <= most
        found += zip(targets.tolist(), sources.tolist(), strict=True)
    return found


def expected(keys: Sequence[pa.Array], target: Sequence[pa.Array]) -> list[tuple[int, int]]:
    of_source = list(zip(*(key.to_pylist() for key in keys), strict=True))
    of_target = list(zip(*(column.to_pylist() for column in target), strict=True))
    return [
        (i, j)
        for i, wanted in enumerate(of_target)
        for j, found in enumerate(of_source)
        if wanted == found and None not in wanted
    ]


@pytest.mark.parametrize("kinds", [*((kind,) for kind in TYPES), tuple(TYPES)], ids=str)
def test_exactly_the_rows_with_equal_keys(kinds: Sequence[pa.DataType], tmp_path: Path) -> None:
    chance = np.random.default_rng(7)

    def column(kind: pa.DataType, count: int) -> pa.Array:
        values = [*TYPES[kind], None]
        return pa.array([values[i] for i in chance.integers(0, len(values), count)], kind)

    # Few values in most columns, so that composite keys meet, too.
    keys = [column(kind, 400) for kind in kinds]
    target = [column(kind, 50) for kind in kinds]

    pairs = joined(keys, target, tmp_path)

    assert sorted(pairs) == expected(keys, target)
    assert [target for target, _ in pairs] == sorted(target for target, _ in pairs)


@pytest.mark.parametrize("values", [[], [None, None]])
def test_a_source_without_keys_matches_nothing(values: list[Any], tmp_path: Path) -> None:
    keys = [pa.array(values, pa.int32())]

    assert joined(keys, [pa.array([1, None, 0], pa.int32())], tmp_path) == []


def test_many_columns_do_not_overflow_the_codes(tmp_path: Path) -> None:
    keys = [pa.array(range(5000), pa.int64())] * 8

    pairs = joined(keys, [pa.array([17, 4999, 5000], pa.int64())] * 8, tmp_path)

    assert pairs == [(0, 17), (1, 4999)]


def test_equal_keys_come_in_slices_of_a_bounded_size(tmp_path: Path) -> None:
    keys = [pa.array([1] * 100_000, pa.int32())]
    rows = pa.table({"c0": pa.array(range(100_000))})
    lookup = make_lookup(keys, rows)

    sizes = [
        len(t) for t, _ in lookup.pairs(lookup.codes([pa.array([1, 2, 1], pa.int32())]), 16384)
    ]

    assert sum(sizes) == 200_000
    assert max(sizes) == 16384


def test_kept_rows_are_read_in_slices(tmp_path: Path) -> None:
    path, filesystem = str(tmp_path / "rows.arrow"), pafs.LocalFileSystem()
    write_batch(filesystem, path, one_batch(pa.table({"c0": pa.array(range(10))})))

    found = KeptRows(filesystem, path).read([(0, 3), (7, 3)])

    assert [batch.column(0).to_pylist() for batch in found] == [[0, 1, 2], [7, 8, 9]]


def test_a_process_reads_a_lookup_of_a_store_once(tmp_path: Path) -> None:
    store = pafs.SubTreeFileSystem(str(tmp_path), pafs.LocalFileSystem())
    for folder, key in (("first", 1), ("second", 2)):
        (tmp_path / folder).mkdir()
        lookup = make_lookup([pa.array([key])], pa.table({"c0": [key]}))
        SourceLookup(store, folder, 1).write(lookup)

    once = SourceLookup(store, "first", 1).opened()
    (tmp_path / "first" / "rows.arrow").unlink()

    assert SourceLookup(store, "first", 1).opened() is once
    assert SourceLookup(store, "second", 1).opened().rows.column(0).to_pylist() == [2]
