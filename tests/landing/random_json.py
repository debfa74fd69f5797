"""Random JSON files, held against what others make of them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest import mock

from spark_jobs.landing import blocks, json_blocks, json_reader
from spark_jobs.landing.json_reader import JsonReader
from spark_jobs.landing.records import Column
from spark_jobs.landing.rows import Wanted
from spark_jobs.landing.streams import UndecodableError
from spark_jobs.landing.values import TextRules
from tests.landing.json_files import JsonFile, random_json
from tests.landing.json_judges import (
    ARROW_TYPES,
    BAD,
    DUCKDB_TYPES,
    by_duckdb,
    by_pyarrow,
    by_python,
    by_python_whole,
    is_same,
    judged_by,
)
from tests.landing.reading import Outcome, read


def check_json(seed: int, folder: Path) -> Counter[str]:
    """Read the file of a seed in all ways; returns which judges had a say.

    Raises:
        AssertionError: the reader found other rows, or called bad what a judge read.
    """
    return check_file(random_json(seed), folder, random.Random(seed))


def check_file(file: JsonFile, folder: Path, chance: random.Random) -> Counter[str]:
    """``check_json`` of a file; ``chance`` chooses where it is split."""
    path = folder / "landed.json"
    path.write_bytes(file.data)
    said = Counter({"files": 1})
    with mock.patch.object(json_reader, "line_records", wraps=json_reader.line_records) as exact:
        found = _found(file, path)
        said["fast"] += not exact.called and found is not None and found.records > 0
    _check_ways(file, path, found, chance)
    expected = by_python_whole(file) if file.multi_line else by_python(file)
    if expected is None:
        # Of what is no JSON as a whole, a part may be.
        assert found is None or file.multi_line, "rows of what is not of its encoding"
        said["undecodable"] += 1
        return said
    assert found is not None, "an error where Python found rows"
    said["json"] += 1
    _check_same(_sequence(found), expected, "json")
    if not file.multi_line and not found.bad:
        said.update(_check_others(file, found, folder))
    return said


def _check_others(file: JsonFile, found: Outcome, folder: Path) -> Iterator[str]:
    """DuckDB and pyarrow read the same, as far as they know what they read."""
    by_others = {
        "duckdb": (DUCKDB_TYPES, lambda part: by_duckdb(part, folder)),
        "pyarrow": (ARROW_TYPES, by_pyarrow),
    }
    for judge, (types, rows_of) in by_others.items():
        indexes, part = judged_by(types, file)
        rows = rows_of(part)
        if rows is not None:
            yield judge
            _check_same([tuple(row[i] for i in indexes) for row in found.rows], rows, judge)


def _found(file: JsonFile, path: Path, start: int = 0, end: int | None = None) -> Outcome | None:
    columns = tuple(Column(name, kind.kind, kind.name) for name, kind in file.columns)
    wanted = Wanted(columns, rules=TextRules(file.zone))
    reader = JsonReader(wanted, encoding=file.encoding, multi_line=file.multi_line)
    try:
        return read(reader, path, start, end)
    except UndecodableError:
        return None


def _sequence(found: Outcome) -> list[tuple[Any, ...]]:
    """Rows and bad records in the order of the file."""
    bad = {record.location.record for record in found.bad}
    assert len(bad) + len(found.rows) == found.records
    rows = iter(found.rows)
    return [BAD if i in bad else next(rows) for i in range(1, found.records + 1)]


def _check_ways(file: JsonFile, path: Path, found: Outcome | None, chance: random.Random) -> None:
    """The exact way, a single sample, tiny blocks and parts find the same."""
    exact = ("the exact way", json_reader, "line_block", lambda _: None)
    sample = ("one sample", json_blocks, "_SAMPLES", 1)
    tiny = ("tiny blocks", blocks, "BLOCK_BYTES", chance.randint(1, 300))
    for patches in ([exact], [sample], [tiny], [sample, tiny], [exact, tiny]):
        with ExitStack() as stack:
            for _, module, name, value in patches:
                stack.enter_context(mock.patch.object(module, name, value))
            other = _found(file, path)
        ways = " and ".join(name for name, *_ in patches)
        for part, one, two in zip(_PARTS, _parts(found), _parts(other), strict=True):
            assert one == two, f"{ways}: {part} differ: {one!r:.900} | {two!r:.900}"
    if found is None or file.multi_line or file.encoding != "utf-8":
        return
    cuts = sorted({0, *(chance.randint(0, len(file.data) + 1) for _ in range(3))})
    parts = [_found(file, path, *part) for part in zip(cuts, [*cuts[1:], None], strict=True)]
    rows = [row for part in parts if part is not None for row in part.rows]
    assert repr(rows) == repr(found.rows), f"parts at {cuts} differ"
    assert sum(part.records for part in parts if part is not None) == found.records


_PARTS = ("rows", "bad records", "names")


def _parts(found: Outcome | None) -> tuple[str, str, str]:
    if found is None:
        return ("", "", "")
    bad = sorted(found.bad, key=lambda each: each.location.record or 0)
    return repr(found.rows), repr(bad), repr(sorted(found.seen))


def _check_same(found: list[tuple[Any, ...]], expected: list[tuple[Any, ...]], judge: str) -> None:
    assert len(found) == len(expected), f"{len(found)} records, by {judge} {len(expected)}"
    for number, (row, other) in enumerate(zip(found, expected, strict=True), 1):
        assert is_same(row, other), f"record {number}: {row!r:.500}, by {judge} {other!r:.500}"
