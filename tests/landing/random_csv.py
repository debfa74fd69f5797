"""Random CSV files, held against what was meant and what others make of them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import Any
from unittest import mock

from spark_jobs.errors import CatalogError
from spark_jobs.landing import blocks, csv_reader, csv_rows
from spark_jobs.landing.csv_reader import CsvReader
from spark_jobs.landing.records import Column
from spark_jobs.landing.rows import Wanted
from spark_jobs.landing.streams import UndecodableError
from spark_jobs.landing.values import TextRules
from tests.landing.casts import cast
from tests.landing.csv_files import Cell, CsvFile, random_csv
from tests.landing.csv_judges import by_duckdb, by_pyarrow, by_python, is_cut_off
from tests.landing.reading import REFUSED, Outcome, kind_of, read

# A record that is no row, in a list of rows.
BAD = ("bad",)
ERROR = "an error"
# NULL or an empty text: nobody but the reader knows.
EMPTY = "empty"
Records = list[tuple[Any, ...]]


def check_csv(seed: int, folder: Path) -> Counter[str]:
    """Read the file of a seed in all ways; returns which judges had a say.

    Raises:
        AssertionError: the reader found other rows, or called bad what all judges read.
    """
    return check_file(random_csv(seed), folder, random.Random(seed))


def check_file(file: CsvFile, folder: Path, chance: random.Random) -> Counter[str]:
    """``check_csv`` of a file; ``chance`` chooses where it is split."""
    path = folder / "landed.csv"
    path.write_bytes(file.data)
    found = _check_ways(file, path, chance)
    said = Counter({"files": 1})
    if is_cut_off(file):
        assert found == ERROR
        said["undecodable"] += 1
        return said
    if file.meant is not None:
        said["meant"] += 1
        _check_meant(file, found)
    records = by_python(file)
    if records is not None:
        said["csv"] += 1
        _check_python(file, found, records)
    said.update(_check_texts(file, path, folder, records))
    return said


def _reader(file: CsvFile) -> CsvReader:
    columns = tuple(
        Column(name, kind_of(type_name), type_name)
        for name, type_name in (file.columns[i] for i in file.wanted)
    )
    return CsvReader(
        Wanted(columns, rules=TextRules(file.zone)),
        file.dialect,
        encoding=file.encoding,
        has_header=file.has_header,
        null_text=file.null_text,
    )


def _found(reader: CsvReader, path: Path) -> Records | str:
    found = _all_found(reader, path)
    return found if isinstance(found, str) else _sequence(found)


def _all_found(reader: CsvReader, path: Path) -> Outcome | str:
    try:
        return read(reader, path)
    except (CatalogError, UndecodableError):
        return ERROR


def _sequence(found: Outcome) -> Records:
    """Rows and bad records in the order of the file."""
    bad = {record.location.record for record in found.bad}
    assert len(bad) + len(found.rows) == found.records
    rows = iter(found.rows)
    return [BAD if i in bad else next(rows) for i in range(1, found.records + 1)]


def _check_ways(file: CsvFile, path: Path, chance: random.Random) -> Records | str:
    """What is found, in the same places the exact way, in tiny blocks and pieces, and in parts."""
    reader = _reader(file)
    found = _all_found(reader, path)
    exact = mock.patch.object(csv_rows, "regular_end", return_value=0)
    tiny = mock.patch.object(blocks, "BLOCK_BYTES", chance.randint(1, 40))
    pieces = mock.patch.object(csv_reader, "_PIECE", chance.randint(1, 40))
    for name, patches in {
        "the exact way": [exact],
        "tiny blocks": [tiny],
        "tiny blocks, the exact way": [exact, tiny],
        "tiny pieces": [pieces],
    }.items():
        with ExitStack() as stack:
            for patch in patches:
                stack.enter_context(patch)
            assert _parts_of(_all_found(reader, path)) == _parts_of(found), f"{name} differs"
    if isinstance(found, str):
        return found
    if reader.is_splittable:
        cuts = sorted({0, *(chance.randint(0, len(file.data) + 1) for _ in range(3))})
        parts = [read(reader, path, *part) for part in zip(cuts, [*cuts[1:], None], strict=True)]
        rows = [row for part in parts for row in part.rows]
        assert repr(rows) == repr(found.rows), f"parts at {cuts} differ"
        assert sum(part.records for part in parts) == found.records
    return _sequence(found)


def _parts_of(found: Outcome | str) -> object:
    """What is compared; NaN is the same as another."""
    if isinstance(found, str):
        return found
    return repr(found.rows), found.bad, found.records, found.seen


def _check_meant(file: CsvFile, found: Records | str) -> None:
    assert file.meant is not None
    # Its writer closes each quote but the last.
    unclosed = found == ERROR and not file.dialect.multi_line and file.meant[-1:] == (None,)
    if unclosed:
        return
    expected = [
        BAD if cells is None else _row(file, [cells[i] for i in file.wanted])
        for cells in file.meant
    ]
    _check_same(found, expected, "the writer")


def _check_python(
    file: CsvFile, found: Records | str, records: Sequence[Sequence[Cell | None]]
) -> None:
    names, indexes = [name for name, _ in file.columns], list(file.wanted)
    if file.has_header:
        if not records:
            assert found == []
            return
        names = ["" if cell is None else cell.text.strip().lower() for cell in records[0]]
        wanted = [file.columns[i][0] for i in file.wanted]
        if any(names.count(name) != 1 for name in wanted):
            assert found == ERROR
            return
        indexes, records = [names.index(name) for name in wanted], records[1:]
    expected = [
        _row(file, [cells[i] for i in indexes]) if len(cells) == len(names) else BAD
        for cells in records
    ]
    is_damaged = bool(records) and not records[-1]
    if is_damaged and found != ERROR:
        # What follows the damage, only the reader says.
        found = found[: len(expected)]
    _check_same(found, expected, "csv")


def _row(file: CsvFile, cells: Sequence[Cell | None]) -> tuple[Any, ...]:
    types = [file.columns[i][1] for i in file.wanted]
    row = tuple(_value(file, cell, kind) for cell, kind in zip(cells, types, strict=True))
    return BAD if REFUSED in row else row


def _value(file: CsvFile, cell: Cell | None, type_name: str) -> Any:
    if cell is None:
        return EMPTY if type_name == "STRING" else None
    text = cell.text
    if any("\udc80" <= character <= "\udcff" for character in text):
        return REFUSED
    if (not text and not (cell.quoted and type_name == "STRING")) or (
        file.null_text and text == file.null_text
    ):
        return None
    return cast(text, type_name, file.zone)


def _check_same(found: Records | str, expected: Records, judge: str) -> None:
    assert found != ERROR, f"an error where {judge} found {expected}"
    assert len(found) == len(expected), f"{judge} found {len(expected)} records"
    for number, (row, other) in enumerate(zip(found, expected, strict=True), 1):
        assert _is_same(row, other), f"record {number}: {row!r}, by {judge} {other!r}"


def _is_same(row: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    if len(row) != len(other):
        return False
    pairs = zip(row, other, strict=True)
    return all(
        one in (None, "") if two is EMPTY else _shown(one) == _shown(two) for one, two in pairs
    )


def _shown(value: Any) -> str:
    # Instants have the zone of their library.
    return value.isoformat() if hasattr(value, "isoformat") else repr(value)


def _check_texts(
    file: CsvFile, path: Path, folder: Path, records: Sequence[Sequence[Cell | None]] | None
) -> Iterator[str]:
    """DuckDB and pyarrow read the same texts, or cannot read them."""
    count = len(records[0]) if records and records[0] else len(file.columns)
    plain = replace(
        file,
        columns=tuple((f"c{i}", "STRING") for i in range(count)),
        wanted=tuple(range(count)),
        has_header=False,
        null_text="",
    )
    found = _found(_reader(plain), path)
    judged = {
        "duckdb": by_duckdb(file, count, folder),
        "pyarrow": by_pyarrow(file, count),
    }
    for judge, rows in judged.items():
        if rows is None:
            continue
        if found != ERROR and BAD not in found:
            texts = [tuple(text or "" for text in row) for row in found]
            differences = [pair for pair in zip_longest(rows, texts) if pair[0] != pair[1]]
            assert not differences, f"{judge}, and the reader: {differences}"
            yield judge
    if found == ERROR or BAD in found:
        can_read = [rows for rows in judged.values() if rows is not None]
        agree = len(can_read) == 2 and can_read[0] == can_read[1]
        assert not agree, f"bad, where all judges read {can_read[0]}"
