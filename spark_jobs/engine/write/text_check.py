"""Refuses text that is not UTF-8: other readers fail on every column that has some.

Spark's strings are bytes, and nothing in Spark checks them. Imported by executors: nothing here
needs a table library.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from spark_jobs.engine.runtime.nested_arrays import parts
from spark_jobs.errors import DataError, ErrorCode
from spark_jobs.spi import rows

# A column, and the fields below it.
Path = tuple[str, ...]

_MOST_SHOWN = 100


@dataclass(frozen=True, slots=True)
class TextCheck:
    """Checks the text that a statement stores in columns and fields to which it gives values.

    ``given`` maps such paths to the numbers of the cases that do; ``labels`` name the cases.
    """

    labels: Sequence[str]
    given: Mapping[Path, frozenset[int]] = field(default_factory=dict)

    def require(self, changes: pa.RecordBatch) -> None:
        """Check change rows, which ``spi.rows`` describes.

        Raises:
            DataError: VALUE_NOT_STORABLE, naming the clause, the column and the bytes.
        """
        for path, cases in self.given.items():
            if path[0] in changes.schema.names and wrong_text(_at(changes, path)) is not None:
                self._require_of(changes, path, cases)

    def _require_of(self, changes: pa.RecordBatch, path: Path, cases: Iterable[int]) -> None:
        stored = pc.is_in(
            changes.column(rows.OPERATION), pa.array([rows.INSERT, rows.UPDATE], pa.int8())
        )
        for number in sorted(cases):
            of_case = pc.equal(changes.column(rows.CASE_NUMBER), number)
            wrong = wrong_text(_at(changes.filter(pc.and_(stored, of_case)), path))
            if wrong is not None:
                raise not_utf8(f"{self.labels[number]}: column {'.'.join(path)}", wrong)


def require_text(batch: pa.RecordBatch, names: Iterable[str], label: str) -> None:
    """Check all values of the columns ``names``.

    Raises:
        DataError: VALUE_NOT_STORABLE, naming ``label``, the column and the bytes.
    """
    for name in names:
        wrong = wrong_text(batch.column(name))
        if wrong is not None:
            raise not_utf8(f"{label}: column {name}", wrong)


def not_utf8(place: str, wrong: bytes) -> DataError:
    """The error for text at ``place`` that begins with these bytes."""
    shown = wrong[:_MOST_SHOWN].decode("utf-8", "backslashreplace")
    return DataError(
        ErrorCode.VALUE_NOT_STORABLE,
        f"{place} string cannot hold bytes that are not UTF-8: '{shown}'",
        "Decode them with decode(..., charset), store them in a BINARY column, or filter such rows "
        "out.",
    )


def wrong_text(values: pa.Array) -> bytes | None:
    """The first string in ``values``, at any depth, that is not UTF-8; None if all are."""
    for texts in _texts(values):
        try:
            texts.validate(full=True)
        except pa.ArrowInvalid:
            wrong = next(filter(_is_wrong, texts.cast(pa.binary()).to_pylist()), None)
            if wrong is not None:
                return bytes(wrong)
    return None


def _is_wrong(value: bytes | None) -> bool:
    try:
        (value or b"").decode()
    except UnicodeDecodeError:
        return True
    return False


def _texts(values: pa.Array) -> Iterator[pa.Array]:
    kind = values.type
    if len(values) == values.null_count:
        return
    if pa.types.is_dictionary(kind):
        yield from _texts(values.dictionary_decode())
    elif pa.types.is_string(kind):
        yield values
    else:
        for part in parts(values):
            yield from _texts(part)


def _at(batch: pa.RecordBatch, path: Path) -> pa.Array:
    values = batch.column(path[0])
    for name in path[1:]:
        values = values.field(name)
    return values
