"""The process that reads rows of data files with pyarrow: a question comes in, an answer goes out.

Rows that both sides of a partition have are left out. A side that stands alone differs in all of
its rows, of which the first are read.
"""

from __future__ import annotations

import json
import resource
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any, BinaryIO, Final

from airflow_provider_merge.storage.files import open_local
from airflow_provider_merge.storage.locations import is_local
from airflow_provider_merge.storage.remote import remote_files
from airflow_provider_merge.ui.row_samples.documents import (
    MOST_BYTES,
    MOST_CHARACTERS,
    MOST_ROWS,
    Part,
    PartRows,
    Question,
    Row,
)

_NOT_INSTALLED: Final = 3
_MEMORY: Final = 4 * 1024**3
_CPU_SECONDS: Final = 30
_MOST_UNPACKED: Final = 256 * 1024 * 1024
_BUFFER: Final = 64 * 1024
_FIELD_ID: Final = b"PARQUET:field_id"
_TOO_LARGE: Final = "Its files are too large to be read here."
_OTHER_COLUMNS: Final = "A file has other columns than the newer snapshot."

Stored = tuple[bytes | None, ...]


class ObstacleError(Exception):
    """Why the rows of a partition are not told; its text is for people."""


@dataclass(slots=True)
class Budget:
    """The bytes that may still be read."""

    left: int = MOST_BYTES

    def take(self, size: int) -> None:
        """Take so many; raises ObstacleError if there are not as many."""
        self.left -= size
        if self.left < 0:
            raise ObstacleError(_TOO_LARGE)


@dataclass(slots=True)
class BoundedFile:
    """An open file as pyarrow reads it, within a budget."""

    file: BinaryIO
    budget: Budget
    closed: bool = False

    def read(self, size: int = -1) -> bytes:
        """So many bytes; all that are left if ``size`` is negative."""
        if size < 0:
            raise ObstacleError(_TOO_LARGE)
        self.budget.take(size)
        return self.file.read(size)

    def seek(self, place: int, whence: int = 0) -> int:
        """Go to a place."""
        return self.file.seek(place, whence)

    def tell(self) -> int:
        """The place."""
        return self.file.tell()

    def close(self) -> None:
        """Nothing: who opened the file closes it."""


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads the columns of a question from data files."""

    question: Question
    budget: Budget = field(default_factory=Budget)

    def part(self, part: Part) -> PartRows:
        """The rows of one partition that differ."""
        try:
            if part.counts is None:
                return self._compared(part)
            removed, added = (self._first(each) for each in (part.removed, part.added))
            return PartRows(removed, added, *part.counts)
        except MemoryError:
            return PartRows(problem=_TOO_LARGE)
        except ObstacleError as error:
            return PartRows(problem=str(error))
        except Exception as error:  # noqa: BLE001 - stores and damaged files raise all kinds
            # Their texts may hold what opened the store.
            is_over = self.budget.left < 0
            text = f"A file cannot be read ({type(error).__name__})."
            return PartRows(problem=_TOO_LARGE if is_over else text)

    def _compared(self, part: Part) -> PartRows:
        removed, added = (Counter(self._all(each)) for each in (part.removed, part.added))
        only_removed, only_added = removed - added, added - removed
        return PartRows(
            self._shown(list(only_removed)[:MOST_ROWS]),
            self._shown(list(only_added)[:MOST_ROWS]),
            only_removed.total(),
            only_added.total(),
        )

    def _first(self, files: Sequence[tuple[str, int]]) -> list[Row]:
        for location, rows in files:
            with self._opened(location, rows) as (file, names):
                batches = file.iter_batches(MOST_ROWS, columns=names, use_threads=False)
                batch = next(batches, None)
                if batch is not None and batch.num_rows:
                    return self._shown(list(self._stored(batch, names)))
        return []

    def _all(self, files: Sequence[tuple[str, int]]) -> Iterator[Stored]:
        for location, rows in files:
            with self._opened(location, rows) as (file, names):
                groups = range(file.metadata.num_row_groups)
                sizes = (file.metadata.row_group(each).total_byte_size for each in groups)
                if sum(sizes) > _MOST_UNPACKED:
                    raise ObstacleError(_TOO_LARGE)
                yield from self._stored(file.read(columns=names, use_threads=False), names)

    @contextmanager
    def _opened(self, location: str, rows: int) -> Iterator[tuple[Any, list[str]]]:
        """The file, which has the rows that metadata tells, and its names of the columns."""
        import pyarrow.parquet as pq

        with _stored_file(location, self.question.options) as stored:
            file = pq.ParquetFile(
                BoundedFile(stored, self.budget), buffer_size=_BUFFER, pre_buffer=False
            )
            if file.metadata.num_rows != rows:
                raise ObstacleError("A file does not have the rows that the metadata tells.")
            schema = file.schema_arrow
            yield file, [_name_in(schema, *column) for column in self.question.columns]

    def _stored(self, rows: Any, names: Sequence[str]) -> Iterator[Stored]:
        """The rows of a batch or table, as tuples of their values' texts in bytes."""
        columns = [
            # By name: files have an order of their own.
            _texts(rows.column(rows.schema.get_field_index(name)), family)
            for name, (_, family, _) in zip(names, self.question.columns, strict=True)
        ]
        return zip(*columns, strict=True)

    def _shown(self, rows: Sequence[Stored]) -> list[Row]:
        families = [family for _, family, _ in self.question.columns]
        return [[_cut(*each) for each in zip(row, families, strict=True)] for row in rows]


def _name_in(schema: Any, name: str, family: str, field_id: int | None) -> str:
    """What a file calls a column, which it knows by its id, if that is given, or by its name.

    Raises:
        ObstacleError: it has no such column, or values of another family there.
    """
    columns = [each for each in schema if each.name == name]
    if field_id is not None:
        wanted = str(field_id).encode()
        columns = [each for each in schema if (each.metadata or {}).get(_FIELD_ID) == wanted]
    is_one = len(columns) == 1 and schema.get_field_index(columns[0].name) >= 0
    if not is_one or _family_of(_plain_type(columns[0].type)) != family:
        raise ObstacleError(_OTHER_COLUMNS)
    return str(columns[0].name)


def _plain_type(kind: Any) -> Any:
    import pyarrow as pa

    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _family_of(kind: Any) -> str | None:
    from pyarrow import types

    tests = {
        "boolean": (types.is_boolean,),
        "integer": (types.is_integer,),
        "float": (types.is_float32,),
        "double": (types.is_float64,),
        "decimal": (types.is_decimal,),
        "date": (types.is_date,),
        "time": (types.is_time,),
        "timestamp": (types.is_timestamp,),
        "text": (types.is_string, types.is_large_string),
        "bytes": (types.is_binary, types.is_large_binary, types.is_fixed_size_binary),
    }
    return next((name for name, any_of in tests.items() if any(t(kind) for t in any_of)), None)


def _texts(column: Any, family: str) -> list[bytes | None]:
    """The values as text; those of the family ``bytes`` as they are."""
    import pyarrow as pa

    kind = _plain_type(column.type)
    if kind != column.type:
        column = column.cast(kind)
    ending = b""
    if family == "timestamp" and kind.tz is not None:
        column, ending = column.cast(pa.timestamp(kind.unit)), b"Z"
    if family not in ("text", "bytes"):
        column = column.cast(pa.string())
    # What is no text at all may stand in a column of text.
    values = column.cast(pa.large_binary()).to_pylist()
    return [None if each is None else each + ending for each in values]


def _cut(value: bytes | None, family: str) -> str | None:
    if value is None:
        return None
    if family == "bytes":
        text = value[:MOST_CHARACTERS].hex()
    else:
        # No character has more than four bytes.
        text = value[: 4 * (MOST_CHARACTERS + 1)].decode("utf-8", "replace")
    return text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]}…"


@contextmanager
def _stored_file(location: str, options: Mapping[str, Any]) -> Iterator[BinaryIO]:
    if is_local(location):
        with open_local(location) as local:
            yield local
    else:
        with remote_files(location, options) as remote, remote.open(location, "rb") as file:
            yield file


def _question(document: Mapping[str, Any]) -> Question:
    parts = [
        Part(_files(part["removed"]), _files(part["added"]), part["counts"])
        for part in document["parts"]
    ]
    columns = tuple((name, family, number) for name, family, number in document["columns"])
    return Question(columns, tuple(parts), document["options"])


def _files(documents: Sequence[Any]) -> tuple[tuple[str, int], ...]:
    return tuple((location, rows) for location, rows in documents)


def main() -> None:
    """Answer the question on standard input."""
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError:
        sys.exit(_NOT_INSTALLED)
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (_CPU_SECONDS, _CPU_SECONDS))
    question = _question(json.load(sys.stdin))
    reader = Reader(question)
    json.dump([asdict(reader.part(each)) for each in question.parts], sys.stdout)


if __name__ == "__main__":
    main()
