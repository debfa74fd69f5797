"""Random CSV files: what was meant, how it was written, and what was damaged. All from a seed."""

from __future__ import annotations

import codecs
import random
from dataclasses import dataclass, replace

from spark_jobs.landing.csv_records import Dialect
from tests.landing.texts import TYPES, any_text, good_text

# A byte that is not UTF-8, as Python's surrogateescape writes it.
_NO_UTF8 = "\udcff"
_BREAKS = ("\n", "\r\n", "\r")
_ENCODINGS = ("latin-1", "cp1252", "utf-16", "utf-16-le", "utf-16-be", "shift_jis")
_MUTATIONS = (b'"', b",", b"\n", b"\r", b"\\", b"'", b"", b"x", b" ", b"\0", b"\xff", b'""', b"#")


@dataclass(frozen=True)
class Cell:
    """A field's text as a reader should find it, and whether it is in quotes."""

    text: str
    quoted: bool


@dataclass(frozen=True)
class CsvFile:
    """A file, the columns that are wanted of it, and what its writer meant.

    ``columns``: names and types of the file's columns; ``wanted``: numbers of those asked for.
    ``meant``: the cells of each record, None for one that is damaged; None where nobody can say.
    """

    data: bytes
    dialect: Dialect
    encoding: str
    columns: tuple[tuple[str, str], ...]
    wanted: tuple[int, ...]
    has_header: bool
    null_text: str
    zone: str
    meant: tuple[tuple[Cell, ...] | None, ...] | None


def random_csv(seed: int) -> CsvFile:
    """The file of a seed."""
    writer = _Writer(random.Random(seed))
    chance = writer.chance
    kind = chance.random()
    if kind < 0.2:
        return _noise(chance, writer.dialect)
    return _mutated(chance, writer.file()) if kind < 0.4 else writer.file()


class _Writer:
    """Writes one file; ``chance`` decides everything."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.dialect = self._dialect()
        self.encoding = chance.choice(["utf-8"] * 12 + list(_ENCODINGS))
        self.breaks = chance.choice([("\n",), ("\n",), ("\r\n",), ("\r",), _BREAKS])
        self.null_text = chance.choice(["", "", "", "NULL", "NA", r"\N", "0"])
        count = chance.choice([1, 2, 3, 5, 12])
        self.columns = tuple((f"c{i}", chance.choice(TYPES)) for i in range(count))
        self.damage = chance.choice([0.0, 0.0, 0.0, 0.05, 0.3])
        self.has_damaged_values = chance.random() < 0.3
        self.is_over = False

    def _dialect(self) -> Dialect:
        chance = self.chance
        quote = chance.choice([b'"'] * 8 + [b"'", b""])
        return Dialect(
            separator=chance.choice([b","] * 5 + [b";", b"\t", b"|", b" "]),
            quote=quote,
            escape=chance.choice([quote] * 5 + [b"\\", b"\\", b""]),
            comment=chance.choice([b""] * 5 + [b"#"]),
            multi_line=chance.random() < 0.7,
            trim_left=chance.random() < 0.1,
            trim_right=chance.random() < 0.1,
        )

    def file(self) -> CsvFile:
        """The whole file, with a header in another order and case than asked for."""
        chance, count = self.chance, len(self.columns)
        has_header = chance.random() < 0.7
        wanted = list(range(count))
        if has_header:
            wanted = chance.sample(wanted, chance.randint(1, count))
        parts = [self._filling()]
        if has_header:
            names = [chance.choice([name, name.upper()]) for name, _ in self.columns]
            parts.append(self._line([Cell(name, self._may_quote()) for name in names]))
        meant: list[tuple[Cell, ...] | None] = []
        for _ in range(chance.choice([0, 1, 3, 10, 40])):
            if self.is_over:
                break
            text, cells = self._record()
            parts += [text, self._filling()]
            if text.strip("\r\n"):
                meant.append(cells)
        text = "".join(parts)
        if chance.random() < 0.3:
            text = text.removesuffix("\n").removesuffix("\r")
        data = text.encode(self.encoding, "surrogateescape")
        if self.encoding == "utf-8" and chance.random() < 0.2:
            data = codecs.BOM_UTF8 + data
        zone = chance.choice(["UTC", "Europe/Berlin", "America/New_York"])
        return CsvFile(
            data,
            self.dialect,
            self.encoding,
            self.columns,
            tuple(wanted),
            has_header,
            self.null_text,
            zone,
            tuple(meant),
        )

    def _record(self) -> tuple[str, tuple[Cell, ...] | None]:
        cells = [self._cell(type_name) for _, type_name in self.columns]
        if self.chance.random() >= self.damage:
            return self._line(cells), tuple(cells)
        makers = [self._ragged, self._undecodable]
        if self.dialect.quote:
            makers += [self._behind_quote, self._unclosed]
        return self.chance.choice(makers)(cells)

    def _ragged(self, cells: list[Cell]) -> tuple[str, None]:
        other = cells[:-1] if len(cells) > 1 and self.chance.random() < 0.5 else [*cells, cells[0]]
        return self._line(other), None

    def _undecodable(self, cells: list[Cell]) -> tuple[str, tuple[Cell, ...]]:
        if self.encoding == "utf-8":
            at = self.chance.randrange(len(cells))
            cells[at] = Cell(f"a{_NO_UTF8}", self._may_quote())
        return self._line(cells), tuple(cells)

    def _behind_quote(self, cells: list[Cell]) -> tuple[str, None]:
        quote = self.dialect.quote.decode()
        fields = self._fields(cells)
        fields[self.chance.randrange(len(fields))] = f"{quote}a{quote}b"
        return self._joined(fields), None

    def _unclosed(self, cells: list[Cell]) -> tuple[str, None]:
        """The last record of a file: of what follows, nobody can say what it is."""
        self.is_over = True
        return self._joined([*self._fields(cells)[:-1], f"{self.dialect.quote.decode()}a"]), None

    def _cell(self, type_name: str) -> Cell:
        chance = self.chance
        if chance.random() < 0.15:
            return Cell(chance.choice(["", self.null_text]), quoted=self._may_quote())
        make = any_text if self.has_damaged_values and chance.random() < 0.1 else good_text
        text = make(chance, type_name)
        if type_name in ("STRING", "BINARY"):
            text = self._text(text)
        return Cell(self._fitting(text), quoted=self._may_quote())

    def _text(self, text: str) -> str:
        chance, dialect = self.chance, self.dialect
        pieces = [text]
        for _ in range(chance.choice([0, 0, 1, 3])):
            marks = [dialect.separator.decode(), dialect.quote.decode(), "\\", "#", " ", '"']
            pieces.append(chance.choice([*marks, *_BREAKS, chance.choice("abc")]))
        chance.shuffle(pieces)
        if chance.random() < 0.003:
            pieces.append("0123456789" * 50_000)
        return "".join(pieces)

    def _fitting(self, text: str) -> str:
        """A text that this encoding and dialect can write."""
        text = text.encode(self.encoding, "ignore").decode(self.encoding)
        quote, escape = self.dialect.quote.decode(), self.dialect.escape.decode()
        if not quote or not self.dialect.multi_line:
            text = text.replace("\r", "").replace("\n", "")
        if not quote:
            text = text.replace(self.dialect.separator.decode(), "").lstrip("#")
            if self.dialect.trim_left or self.dialect.trim_right:
                text = text.strip(" \t#")
        elif not escape:
            text = text.replace(quote, "")
        return text

    def _may_quote(self) -> bool:
        return bool(self.dialect.quote) and self.chance.random() < 0.3

    def _line(self, cells: list[Cell]) -> str:
        return self._joined(self._fields(cells))

    def _joined(self, fields: list[str]) -> str:
        return self.dialect.separator.decode().join(fields) + self._break()

    def _fields(self, cells: list[Cell]) -> list[str]:
        """The cells as they are written; they are told whether that is in quotes."""
        for at, cell in enumerate(cells):
            if self._needs_quotes(cell.text, at, len(cells)):
                cells[at] = replace(cell, quoted=True)
        return [self._written(cell) for cell in cells]

    def _needs_quotes(self, text: str, at: int, count: int) -> bool:
        dialect = self.dialect
        if not dialect.quote:
            return False
        is_blank = not text.strip(" \t")
        return (
            any(mark in text for mark in (dialect.separator.decode(), "\n", "\r"))
            or text.startswith((dialect.quote.decode(), "#"))
            or ((dialect.trim_left or dialect.trim_right) and text != text.strip(" \t"))
            or (is_blank and at == 0 and count == 1)
        )

    def _written(self, cell: Cell) -> str:
        if not cell.quoted:
            return cell.text
        quote, escape = self.dialect.quote.decode(), self.dialect.escape.decode()
        text = cell.text
        if escape:
            text = text.replace(escape, escape * 2)
            if escape != quote:
                text = text.replace(quote, escape + quote)
        blanks = " " * self.chance.randint(0, 2)
        before = blanks if self.dialect.trim_left else ""
        behind = blanks if self.dialect.trim_right else ""
        if self.dialect.separator == b" ":
            before = behind = ""
        return f"{before}{quote}{text}{quote}{behind}"

    def _break(self) -> str:
        return self.chance.choice(self.breaks)

    def _filling(self) -> str:
        """Blank lines and comments, mostly none."""
        if self.chance.random() < 0.9:
            return ""
        lines = ["", ""]
        if self.dialect.comment:
            lines += ["#", '#a,"b']
        return "".join(line + self._break() for line in self.chance.choices(lines, k=2))


def _mutated(chance: random.Random, file: CsvFile) -> CsvFile:
    """The file with a few bytes changed, after which nobody says what was meant."""
    data = file.data
    for _ in range(chance.randint(1, 3)):
        at = chance.randint(0, len(data))
        cut = at + chance.choice([0, 0, 1, 2])
        data = data[:at] + chance.choice(_MUTATIONS) + data[cut:]
    return replace(file, data=data, meant=None)


def _noise(chance: random.Random, dialect: Dialect) -> CsvFile:
    """A few of the characters that mean something, in any order."""
    marks = [dialect.separator, dialect.quote, dialect.escape, b"\n", b"\r", b"a", b"#", b" "]
    weights = [chance.randint(0, 4) + 0.1 for _ in marks]
    data = b"".join(chance.choices(marks, weights, k=chance.choice([3, 6, 12, 24, 48])))
    columns = tuple((f"c{i}", "STRING") for i in range(chance.randint(1, 3)))
    wanted = tuple(range(len(columns)))
    return CsvFile(data, dialect, "utf-8", columns, wanted, False, "", "UTC", None)
