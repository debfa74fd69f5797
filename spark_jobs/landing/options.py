"""Makes the reader of a source's files from its options, which have Spark's names. Driver only.

An option that is not supported is refused by name, since ignoring it would go unnoticed.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

from spark_jobs.errors import ErrorCode, NotSupportedError, RequestError
from spark_jobs.landing.csv_reader import CsvReader
from spark_jobs.landing.csv_records import Dialect
from spark_jobs.landing.json_reader import JsonReader
from spark_jobs.landing.records import Column, Leniency
from spark_jobs.landing.rows import Wanted
from spark_jobs.landing.text_reader import TextReader
from spark_jobs.landing.time_patterns import TimePattern
from spark_jobs.landing.values import TextRules

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow.fs as pafs

    from spark_jobs.landing.files import FilePart
    from spark_jobs.landing.records import RowBlock

FORMATS: Final = ("csv", "json", "text", "avro")
# Options that choose files; the code that lists them uses them.
LISTING: Final = (
    *("pathglobfilter", "recursivefilelookup", "modifiedbefore", "modifiedafter", "basepath"),
)
# Options for how Spark infers the schema of a source that has none.
INFERENCE: Final = {
    "csv": ("inferschema", "samplingratio", "preferdate"),
    "json": (
        *("samplingratio", "primitivesasstring", "prefersdecimal", "dropfieldifallnull"),
        "infertimestamp",
    ),
}
_LENIENCY: Final[Mapping[str, Leniency]] = {
    "FAILFAST": "tell",
    "PERMISSIVE": "null",
    "DROPMALFORMED": "drop",
}
_MAX_RECORD_BYTES: Final = 64 * 1024 * 1024
_LINE_ENDS: Final = ("\n", "\r\n", "\r")
_ESCAPED: Final = {r"\t": "\t", r"\n": "\n", r"\r": "\r", r"\0": "\0", r"\\": "\\"}


class Reader(Protocol):
    """Reads parts of files as rows. Picklable."""

    @property
    def is_splittable(self) -> bool:
        """Whether a large uncompressed file may be read in parts."""
        ...

    def read(self, filesystem: pafs.FileSystem, part: FilePart) -> Iterator[RowBlock]:
        """The records of a part, block by block."""
        ...


@dataclass(slots=True)
class SourceOptions:
    """The options of a source; they are consumed one by one, and any that remain are refused.

    ``source`` is what errors call it, such as ``source updates``.
    """

    source: str
    format: str
    options: Mapping[str, str]
    _left: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        self._left = {name.lower(): value for name, value in self.options.items()}

    def reader(self, columns: Sequence[Column], zone: str) -> Reader:
        """The reader of files of this format; ``zone`` is the session's.

        Raises:
            RequestError: REQUEST_INVALID; the value of an option is invalid.
            NotSupportedError: an option, or its value, is not supported.
        """
        for name in (*LISTING, *INFERENCE.get(self.format, ())):
            self._left.pop(name, None)
        make: dict[str, Callable[[Sequence[Column], str], Reader]] = {
            "csv": self._csv,
            "json": self._json,
            "text": self._text,
            "avro": self._avro,
        }
        reader = make[self.format](columns, zone)
        if self._left:
            name = next(each for each in self.options if each.lower() in self._left)
            raise NotSupportedError(
                f"{self.source}: the option {name} of {self.format} is not supported.",
                "Leave it out. docs/sources.md lists the options that are.",
            )
        return reader

    def _csv(self, columns: Sequence[Column], zone: str) -> CsvReader:
        quote = self._character("quote", '"')
        # Limits of Spark's parser that this one does not have.
        for name in ("maxcolumns", "maxcharspercolumn"):
            self._left.pop(name, None)
        self._line_separator()
        return CsvReader(
            wanted=self._wanted(columns, zone, has_base64=self._has_base64(), **self._numbers()),
            dialect=Dialect(
                separator=self._character("sep", self._text_of("delimiter", ",")) or b",",
                quote=quote,
                escape=self._character("escape", quote.decode()),
                comment=self._character("comment", ""),
                multi_line=self._flag("multiline", default=True),
                trim_left=self._flag("ignoreleadingwhitespace"),
                trim_right=self._flag("ignoretrailingwhitespace"),
            ),
            encoding=self._encoding(),
            has_header=self._flag("header"),
            by_position=self._flag("enforceschema"),
            null_text=self._text_of("nullvalue", ""),
            empty_text=self._text_of("emptyvalue", ""),
            max_record_bytes=self._max_record_bytes(),
        )

    def _json(self, columns: Sequence[Column], zone: str) -> JsonReader:
        self._line_separator()
        return JsonReader(
            wanted=self._wanted(columns, zone),
            encoding=self._encoding(),
            multi_line=self._flag("multiline"),
            max_record_bytes=self._max_record_bytes(),
        )

    def _text(self, columns: Sequence[Column], zone: str) -> TextReader:
        self._line_separator()
        return TextReader(
            wanted=Wanted(tuple(columns), rules=TextRules(zone)),
            encoding=self._encoding(),
            whole_text=self._flag("wholetext"),
            max_record_bytes=self._max_record_bytes(),
        )

    def _avro(self, columns: Sequence[Column], zone: str) -> Reader:
        from spark_jobs.landing.avro_reader import AvroReader

        return AvroReader(Wanted(tuple(columns), rules=TextRules(zone)))

    def _numbers(self) -> dict[str, str]:
        """How CSV files write NaN and the infinities."""
        return {
            "nan": self._text_of("nanvalue", "NaN"),
            "positive_inf": self._text_of("positiveinf", "Inf"),
            "negative_inf": self._text_of("negativeinf", "-Inf"),
        }

    def _has_base64(self) -> bool:
        form = self._text_of("binaryformat", "text")
        if form not in ("text", "base64"):
            raise self._invalid("binaryFormat", f"{form!r} is neither text nor base64")
        return form == "base64"

    def _wanted(
        self, columns: Sequence[Column], zone: str, *, has_base64: bool = False, **numbers: str
    ) -> Wanted:
        mode = self._text_of("mode", "FAILFAST").upper()
        if mode not in _LENIENCY:
            raise self._invalid("mode", f"{mode!r} is not one of: {', '.join(_LENIENCY)}")
        corrupt = self._text_of("columnnameofcorruptrecord", "_corrupt_record").lower()
        named = [each.name for each in columns if each.name.lower() == corrupt]
        rules = TextRules(
            zone=self._text_of("timezone", zone),
            date=self._pattern("dateFormat"),
            timestamp=self._pattern("timestampFormat"),
            timestamp_ntz=self._pattern("timestampNTZFormat"),
            has_base64=has_base64,
            **numbers,
        )
        self._require_english()
        is_kept = _LENIENCY[mode] == "null" and bool(named)
        return Wanted(tuple(columns), _LENIENCY[mode], named[0] if is_kept else None, rules)

    def _pattern(self, name: str) -> TimePattern | None:
        pattern = self._left.pop(name.lower(), None)
        return None if pattern is None else TimePattern.of(f"{self.source}: {name}", pattern)

    def _text_of(self, name: str, default: str) -> str:
        return self._left.pop(name, default)

    def _flag(self, name: str, *, default: bool = False) -> bool:
        text = self._left.pop(name, str(default)).strip().lower()
        if text not in ("true", "false"):
            raise self._invalid(name, f"{text!r} is neither true nor false")
        return text == "true"

    def _character(self, name: str, default: str) -> bytes:
        text = self._left.pop(name, default)
        encoded = _ESCAPED.get(text, text).encode()
        if len(encoded) > 1:
            raise NotSupportedError(
                f"{self.source}: {self._spelled(name)} {text!r} is not one ASCII character.",
                "Read the file as text and split its lines in a query.",
            )
        return encoded

    def _encoding(self) -> str:
        name = self._left.pop("encoding", self._left.pop("charset", "utf-8"))
        self._left.pop("charset", None)
        try:
            return codecs.lookup(name).name
        except LookupError:
            raise self._invalid("encoding", f"{name!r} is not a known encoding") from None

    def _max_record_bytes(self) -> int:
        text = self._left.pop("maxrecordbytes", str(_MAX_RECORD_BYTES))
        if not text.isdecimal() or not int(text):
            raise self._invalid("maxRecordBytes", f"{text!r} is not a number of bytes")
        return int(text)

    def _line_separator(self) -> None:
        text = self._left.pop("linesep", "\n")
        if _ESCAPED.get(text, text) not in _LINE_ENDS:
            raise NotSupportedError(
                f"{self.source}: lineSep {text!r} is not supported.",
                "Lines end in \\n, \\r\\n or \\r, which needs no option.",
            )

    def _require_english(self) -> None:
        locale = self._left.pop("locale", "en-US")
        if not locale.lower().startswith("en"):
            raise NotSupportedError(
                f"{self.source}: the locale {locale} is not supported.",
                "Declare such columns as STRING and convert them in a query over the source.",
            )

    def _invalid(self, name: str, problem: str) -> RequestError:
        return RequestError(
            ErrorCode.REQUEST_INVALID,
            f"{self.source}: option {self._spelled(name)}: {problem}",
            "Correct the option in the source.",
        )

    def _spelled(self, name: str) -> str:
        return next((each for each in self.options if each.lower() == name.lower()), name)
