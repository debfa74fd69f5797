"""How rows lie in files: what each file, row group and page has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.evidence.columns import ALL

# More than any column has values.
_WIDEST = 11


@dataclass(frozen=True)
class Layout:
    """A file: the numbers of its rows' values in each column, None for NULL."""

    name: str
    numbers: tuple[int | None, ...]
    row_group_size: int = 100
    dictionary: bool = True


def layouts() -> list[Layout]:
    """All layouts; each single value alone, with and without a dictionary."""
    return list(_layouts())


def _layouts() -> Iterator[Layout]:
    for each in range(_WIDEST):
        yield Layout(f"only {each}", (each,) * 3)
        yield Layout(f"only {each}, plain", (each,) * 2, dictionary=False)
        yield Layout(f"{each} and NULL", (each, None))
        yield Layout(f"{each} and the next", (each, each + 1, each), dictionary=False)
    everything = tuple(range(_WIDEST))
    yield Layout("only NULL", (None,) * 3)
    yield Layout("all in groups", (*everything, None), row_group_size=3)
    yield Layout("all in plain groups", everything[::-1], row_group_size=2, dictionary=False)
    yield Layout("all at once", everything * 2)


def rows(layout: Layout, first_id: int) -> list[dict[str, Any]]:
    """The rows of a file; the ids count from ``first_id``."""
    return [
        {"id": first_id + place} | {each.name: _value(each.values, n) for each in ALL}
        for place, n in enumerate(layout.numbers)
    ]


def _value(values: Sequence[Any], number: int | None) -> Any:
    return None if number is None else values[number % len(values)]


def schema(*, of_files: bool) -> pa.Schema:
    """The columns of files, or of tables."""
    kinds = [each.arrow if of_files else each.of_table or each.arrow for each in ALL]
    named = [pa.field(each.name, kind) for each, kind in zip(ALL, kinds, strict=True)]
    return pa.schema([pa.field("id", pa.int32(), nullable=False), *named])


def all_rows() -> list[tuple[Layout, list[dict[str, Any]]]]:
    """Each layout with its rows."""
    found, next_id = [], 0
    for layout in layouts():
        found.append((layout, rows(layout, next_id)))
        next_id += len(layout.numbers)
    return found


def write(layout: Layout, content: Sequence[dict[str, Any]], path: Path) -> None:
    """Write a file as other writers do: bounds without NaN, page indexes."""
    pq.write_table(
        pa.Table.from_pylist(list(content), schema(of_files=True)),
        path,
        row_group_size=layout.row_group_size,
        use_dictionary=layout.dictionary,
        write_page_index=True,
    )
