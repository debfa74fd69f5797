"""Random JSON files: values of columns as they may be written, and damage. All from a seed."""

from __future__ import annotations

import base64
import codecs
import json
import random
import re
from dataclasses import dataclass

import pyarrow as pa

from tests.landing.reading import kind_of
from tests.landing.texts import TYPES, any_text, good_text

_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_NUMERIC = ("TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL")
_ENCODINGS = ("utf-16", "utf-16-le", "latin-1", "cp1252")
_JUNK = [
    *("null", "true", "{}", "[]", '""', "{", "}", "[", "]", ",", ":", '"', "\\", "0", "-", "e5"),
    *("NaN", "Inf", "Infinity", "\t", " ", "\n", "\r", "x", "\0", "\x7f", "\ufeff", "é", "//"),
    *("\\ud800", "\\u0000", "\\u0030", "0x1", "e-2000000000", "9" * 40, "9" * 5000, "[" * 1500),
]
_TEXTS = ["", "x", "null", "é😀", "\\ud83d\\ude00", "a\\nb", '\\"', "\\/", "} null", "}{", "{x}"]


@dataclass(frozen=True)
class Type:
    """A type of Spark: ``name`` is ARRAY, MAP and STRUCT for those with parts."""

    name: str
    parts: tuple[tuple[str, Type], ...] = ()

    @property
    def kind(self) -> pa.DataType:
        """The type in Arrow."""
        kinds = [part.kind for _, part in self.parts]
        if self.name == "ARRAY":
            return pa.list_(pa.field("element", kinds[0]))
        if self.name == "MAP":
            return pa.map_(*kinds)
        if self.name == "STRUCT":
            return pa.struct([(name, part.kind) for name, part in self.parts])
        return kind_of(self.name)


@dataclass(frozen=True)
class JsonFile:
    """A file and the columns that are wanted of it."""

    data: bytes
    columns: tuple[tuple[str, Type], ...]
    encoding: str = "utf-8"
    zone: str = "UTC"
    multi_line: bool = False


def random_json(seed: int) -> JsonFile:
    """The file of a seed."""
    return _Writer(random.Random(seed)).file()


class _Writer:
    """Writes one file; ``chance`` decides everything."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        names = chance.sample(["id", "n", "Name", "été", "a b", "x.y", "k", '"', "ID2"], 5)
        self.columns = tuple((name, self._type(2)) for name in names[: chance.randint(1, 5)])
        self.others = [(f"o{i}", self._type(2)) for i in range(chance.choice([0, 0, 1, 3]))]
        # How often a value is another than its column's.
        self.wrong = chance.choice([0, 0, 0, 0.01, 0.2])
        self.absent = chance.choice([0, 0.1, 0.5])
        self.as_text = chance.choice([0, 0, 0, 1, 0.2])
        self.spellings = chance.choice([0, 0, 0, 0.2])
        self.blank = chance.choice(["", " ", "", " ", "\t", "random"])
        self.cased = {
            name: chance.choice([name, name, name.upper(), name.title()])
            for name, _ in (*self.columns, *self.others)
        }

    def file(self) -> JsonFile:
        chance = self.chance
        multi_line = chance.random() < 0.15
        count = chance.choice([0, 1, 2, 5, 20, 70])
        records = [self._record() for _ in range(count)]
        text = self._values(records) if multi_line else self._lines(records)
        if chance.random() < 0.25:
            for _ in range(chance.randint(1, 3)):
                at = chance.randint(0, len(text))
                text = text[:at] + chance.choice(_JUNK) + text[at + chance.choice([0, 0, 1, 9]) :]
        encoding = "utf-8" if chance.random() < 0.93 else chance.choice(_ENCODINGS)
        data = text.encode(encoding, "ignore")
        if encoding == "utf-8":
            data = self._bytes(data)
        zone = chance.choice(["UTC", "UTC", "America/New_York", "Asia/Kolkata"])
        return JsonFile(data, self.columns, encoding, zone, multi_line)

    def _bytes(self, data: bytes) -> bytes:
        chance = self.chance
        if chance.random() < 0.05:
            at = chance.randint(0, len(data))
            data = data[:at] + chance.choice([b"\xff", b"\xc3", b"\xed\xa0\x80"]) + data[at:]
        return codecs.BOM_UTF8 + data if chance.random() < 0.1 else data

    def _lines(self, records: list[str]) -> str:
        chance = self.chance
        ends = chance.choice([["\n"], ["\n"], ["\n"], ["\r\n"], ["\r"], ["\n", "\r\n", "\n\n"]])
        arrays, lines = chance.choice([0, 0, 0, 0.2]), []
        while records:
            size = chance.randint(0, 3) if chance.random() < arrays else None
            taken, records = records[: size or 1], records[size if size is not None else 1 :]
            line = taken[0] if size is None else f"[{','.join(taken[:size])}]"
            lines.append(line + chance.choice(ends))
        text = "".join(lines)
        return text.rstrip("\r\n") if chance.random() < 0.3 else text

    def _values(self, records: list[str]) -> str:
        chance = self.chance
        between = chance.choice(["\n", "", "\r\n\r\n"])
        text = (
            between.join(records) if chance.random() < 0.4 else f"[{between}{','.join(records)}\n]"
        )
        return text.replace(",", ",\n") if chance.random() < 0.3 else text

    def _record(self) -> str:
        chance = self.chance
        members = []
        for name, kind in (*self.columns, *self.others):
            if chance.random() < self.absent:
                continue
            for _ in range(2 if chance.random() < 0.01 else 1):
                members.append((self._spelled(name), self._value(kind)))
        if chance.random() < 0.2:
            chance.shuffle(members)
        return self._object(members)

    def _spelled(self, name: str) -> str:
        spelled = self.cased[name]
        if self.chance.random() < self.spellings:
            spelled = self.chance.choice([name.upper(), name.lower(), name.swapcase()])
        return self._quoted(spelled)

    def _object(self, members: list[tuple[str, str]]) -> str:
        space = self._space
        inner = ",".join(
            f"{space()}{name}{space()}:{space()}{value}{space()}" for name, value in members
        )
        return f"{{{inner or space()}}}"

    def _space(self) -> str:
        if self.blank != "random":
            return self.blank
        return self.chance.choice(["", "", " ", "\t", "  "])

    def _value(self, kind: Type) -> str:
        chance = self.chance
        if chance.random() < 0.08:
            return "null"
        if chance.random() < self.wrong:
            return self._any(2)
        if kind.name == "ARRAY":
            items = [self._value(kind.parts[0][1]) for _ in range(chance.randint(0, 3))]
            return f"[{','.join(items)}]"
        if kind.name == "STRUCT":
            parts = [part for part in kind.parts if chance.random() < 0.8]
            members = [(self._quoted(name), self._value(part)) for name, part in parts]
            if chance.random() < 0.1:
                members.append((self._quoted("a" if chance.random() < 0.5 else "more"), "1"))
            return self._object(members)
        if kind.name == "MAP":
            key, value = kind.parts[0][1], kind.parts[1][1]
            keys = [good_text(chance, key.name) for _ in range(chance.randint(0, 3))]
            return self._object([(self._quoted(each), self._value(value)) for each in keys])
        return self._scalar(kind.name)

    def _scalar(self, name: str) -> str:
        chance = self.chance
        if name == "BINARY":
            return self._quoted(base64.b64encode(chance.randbytes(chance.randint(0, 5))).decode())
        is_text = chance.random() < self.as_text
        text = any_text(chance, name) if chance.random() < self.wrong else good_text(chance, name)
        if name == "BOOLEAN" and not is_text:
            return chance.choice(["true", "false"])
        if name.startswith(_NUMERIC) and not is_text:
            text = text.lstrip("+")
            text = re.sub(r"^(-?)0+(?=\d)", r"\1", text)
            text = re.sub(r"^(-?)\.", r"\g<1>0.", text)
            if _NUMBER.fullmatch(text):
                return text
        return self._quoted(text)

    def _any(self, depth: int) -> str:
        chance = self.chance
        kind = chance.random()
        if kind < 0.3 and depth:
            items = [self._any(depth - 1) for _ in range(chance.randint(0, 3))]
            if kind < 0.15:
                return f"[{self._space()}{','.join(items)}]"
            names = [self._quoted(chance.choice(["a", "A", "b", ""])) for _ in items]
            return self._object(list(zip(names, items, strict=True)))
        if kind < 0.5:
            return f'"{chance.choice(_TEXTS)}"'
        if kind < 0.9:
            return self._scalar(chance.choice(TYPES))
        return chance.choice(["null", "1.0", "-0", "1e400", "NaN", "-Infinity", "1E5", '"\\ud800"'])

    def _quoted(self, text: str) -> str:
        kind = self.chance.random()
        if kind < 0.02:
            return '"' + "".join(f"\\u{ord(each) & 0xFFFF:04x}" for each in text) + '"'
        return json.dumps(text, ensure_ascii=kind < 0.3)

    def _type(self, depth: int) -> Type:
        chance = self.chance
        kind = chance.random() if depth else 1.0
        if kind < 0.1:
            return Type("ARRAY", (("element", self._type(depth - 1)),))
        if kind < 0.15:
            key = Type(chance.choice(["STRING", "STRING", "INT", "DATE"]))
            return Type("MAP", (("key", key), ("value", self._type(depth - 1))))
        if kind < 0.25:
            return Type("STRUCT", tuple((name, self._type(depth - 1)) for name in ("a", "B")))
        return Type(chance.choice(TYPES))
