"""What others make of a random CSV file: Python's csv module, DuckDB and pyarrow."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.csv as pacsv

from tests.landing.csv_files import Cell, CsvFile

# Nobody writes it.
_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_NEVER = "\x02never\x03"


def text_of(file: CsvFile) -> str:
    """The file as text, with what is not UTF-8 as surrogates.

    Raises:
        UnicodeError: it is not of another encoding.
    """
    if file.encoding == "utf-16" and file.data and not file.data.startswith(_MARKS):
        raise UnicodeError("whose order of bytes nobody knows")
    errors = "surrogateescape" if file.encoding == "utf-8" else "strict"
    return file.data.decode(file.encoding, errors).removeprefix("\ufeff")


def by_python(file: CsvFile) -> list[list[Cell | None]] | None:
    """Records by the csv module; the last is empty if it is damaged. None: it cannot judge.

    Of an empty field it does not know whether it is in quotes: those are None.
    """
    dialect, text = file.dialect, text_of(file)
    if dialect.trim_left or dialect.trim_right or _has_comments(text, dialect.comment):
        return None
    # Where quotes are not doubled, it takes text behind them.
    if dialect.escape != dialect.quote:
        return None
    csv.field_size_limit(1 << 30)
    reader = csv.reader(
        io.StringIO(text, newline=""),
        strict=True,
        delimiter=dialect.separator.decode(),
        quotechar=dialect.quote.decode() or None,
        quoting=csv.QUOTE_MINIMAL if dialect.quote else csv.QUOTE_NONE,
    )
    records = list(_until_error(reader))
    if not dialect.multi_line and any(
        not fields or any("\n" in field or "\r" in field for field in fields) for fields in records
    ):
        return None
    return [
        [Cell(field, quoted=False) if field else None for field in fields] for fields in records
    ]


def _until_error(reader: Iterator[list[str]]) -> Iterator[list[str]]:
    try:
        # Blank lines are empty records.
        yield from (fields for fields in reader if fields)
    except csv.Error:
        yield []


def by_duckdb(file: CsvFile, count: int, folder: Path) -> list[tuple[str, ...]] | None:
    """Records of ``count`` fields as texts by DuckDB; None: it cannot read the file.

    An empty field is an empty text.
    """
    dialect, text = file.dialect, text_of(file)
    if dialect.trim_left or dialect.trim_right or not dialect.multi_line:
        return None
    if _misleads_duckdb(file, text):
        return None
    path = folder / "duckdb.csv"
    try:
        path.write_bytes(text.encode())
    except UnicodeError:
        return None
    columns = ", ".join(f"'c{i}': 'VARCHAR'" for i in range(count))
    options = {
        "delim": dialect.separator.decode(),
        "quote": dialect.quote.decode(),
        "escape": dialect.escape.decode(),
        "comment": dialect.comment.decode(),
        "nullstr": _NEVER,
        "header": False,
        "auto_detect": False,
        "strict_mode": True,
        "null_padding": False,
        "parallel": False,
    }
    given = ", ".join(f"{name} = ${name}" for name in options)
    query = f"SELECT * FROM read_csv('{path}', columns = {{{columns}}}, {given})"
    try:
        with duckdb.connect() as connection:
            return connection.execute(query, options).fetchall()
    except duckdb.Error:
        return None


def _misleads_duckdb(file: CsvFile, text: str) -> bool:
    """Whether DuckDB leaves out characters of a value.

    It does so with a blank that a field begins with, with an escape before any other character,
    and with what stands behind the mark of a comment within a line. Where line ends are mixed, it
    leaves out records.
    """
    dialect = file.dialect
    separator, escape = re.escape(dialect.separator.decode()), re.escape(dialect.escape.decode())
    if re.search(rf"(?:^|[\r\n]|{separator}) ", text):
        return True
    if dialect.escape == b"\\" and re.search(
        rf"{escape}(?![{escape}{dialect.quote.decode()}])", text
    ):
        return True
    if len(set(re.findall(r"\r\n|\r|\n", text))) > 1:
        return True
    mark = dialect.comment.decode()
    return bool(mark) and any(mark in line[1:] for line in _lines(text))


def by_pyarrow(file: CsvFile, count: int) -> list[tuple[str, ...]] | None:
    """Records of ``count`` fields as texts by pyarrow; None: it cannot read the file."""
    dialect = file.dialect
    if dialect.trim_left or dialect.trim_right or not dialect.multi_line:
        return None
    text = text_of(file)
    if _has_comments(text, dialect.comment):
        return None
    if dialect.escape not in (b"", dialect.quote) and dialect.escape.decode() in text:
        return None
    names = [f"c{i}" for i in range(count)]
    try:
        table = pacsv.read_csv(
            pa.BufferReader(text.encode()),
            pacsv.ReadOptions(column_names=names, block_size=1 << 28, use_threads=False),
            pacsv.ParseOptions(
                delimiter=dialect.separator.decode(),
                quote_char=dialect.quote.decode() or False,
                double_quote=dialect.escape == dialect.quote,
                newlines_in_values=True,
            ),
            pacsv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False
            ),
        )
    except (pa.ArrowInvalid, UnicodeError):
        return None
    return [tuple(row.values()) for row in table.to_pylist()]


def _has_comments(text: str, comment: bytes) -> bool:
    mark = comment.decode()
    return bool(mark) and any(line.startswith(mark) for line in _lines(text))


def _lines(text: str) -> Sequence[str]:
    return text.replace("\r", "\n").split("\n")


def is_cut_off(file: CsvFile) -> bool:
    """Whether the file is not of its encoding, as a whole."""
    try:
        text_of(file)
    except UnicodeError:
        return True
    return False
