"""The tokens of a statement with their positions in the text.

Strings, backticks and comments are found by the rules of Spark's lexer (SqlBaseLexer.g4) and
blanked, at equal length, before sqlglot's Spark tokenizer reads the rest: so no keyword inside them
is ever seen, and all positions hold in the text as it was written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Literal

from spark_jobs.contract.sql_text import unquoted

if TYPE_CHECKING:
    from sqlglot.tokens import Tokenizer

Kind = Literal["word", "quoted", "string", "number", "symbol", "end"]

_REGION = re.compile(
    r"""
      (?P<string> [rR]'[^']*' | [rR]"[^"]*" | '(?:[^'\\]|\\.)*' | "(?:[^"\\]|\\.)*" )
    | (?P<quoted> `(?:[^`]|``)*` )
    | (?P<comment> --(?:\\\n|[^\r\n])* )
    | (?P<block> /\* )
    | (?P<unclosed> ['"`] )
    | \w+ | \s+ | .
    """,
    re.VERBOSE | re.DOTALL,
)
# "/*+" starts a hint, not a comment, so it does not nest.
_BLOCK_MARK = re.compile(r"/\*(?!\+)|\*/")
_OPTIONS = re.compile(r"/\*\+\s*OPTIONS\b", re.IGNORECASE)
_PIECE = re.compile(r"\w+|[^\w\s]+")
_NOT_SPACE = re.compile(r"\S")
# Half a surrogate pair: no file and no log can hold it.
_NO_TEXT = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of the text from ``start`` to before ``end``; ``text`` is as it was written."""

    kind: Kind
    text: str
    start: int
    end: int

    def is_word(self, *words: str) -> bool:
        """Whether this is one of the upper-case ``words``, without backticks."""
        return self.kind == "word" and self.text.upper() in words

    def is_symbol(self, *symbols: str) -> bool:
        """Whether this is one of ``symbols``."""
        return self.kind == "symbol" and self.text in symbols

    @property
    def is_name(self) -> bool:
        """Whether this can be a part of a name: a word or something in backticks."""
        return self.kind in ("word", "quoted")

    @property
    def name(self) -> str:
        """The name that this stands for, without backticks."""
        return unquoted(self.text)


class LexicalError(Exception):
    """What cannot be split into tokens, and where."""

    def __init__(self, offset: int, problem: str) -> None:
        super().__init__(offset, problem)
        self.offset = offset
        self.problem = problem


@dataclass(frozen=True, slots=True)
class _Region:
    """Where no keyword is seen; ``kind`` None: a comment or a hint, which is no token."""

    kind: Kind | None
    start: int
    end: int


def tokenize(text: str) -> list[Token]:
    """The tokens of ``text`` without comments, and one of the kind ``end`` behind them.

    Raises:
        LexicalError: an unclosed string, name or comment, or a character that SQL does not know.
    """
    if no_text := _NO_TEXT.search(text):
        raise LexicalError(no_text.start(), "no Unicode text")
    regions = list(_regions(text))
    blanked = _blanked(text, regions)
    quoted = {
        part.start: Token(part.kind, text[part.start : part.end], part.start, part.end)
        for part in regions
        if part.kind is not None
    }
    tokens: list[Token] = []
    for kind, start, end in _pieces(blanked):
        if tokens and start < tokens[-1].end:
            continue  # the inside of a string, or what sqlglot makes of the L in 1L
        if kind == "number" and _starts_fraction(tokens, start):
            start = tokens.pop().start  # noqa: PLW2901
        tokens.append(quoted.get(start) or Token(kind, text[start:end], start, end))
    for region in regions:
        if text.startswith("/*+", region.start) and not _OPTIONS.match(text, region.start):
            _require_select_before(region.start, tokens)
    return [*tokens, Token("end", "", len(text), len(text))]


def option_hints(text: str) -> list[tuple[int, int]]:
    """Start and end of each hint ``/*+ OPTIONS …`` in a text that has been split into tokens."""
    places = [(each.start, each.end) for each in _regions(text)]
    return [(start, end) for start, end in places if _OPTIONS.match(text, start)]


def _starts_fraction(tokens: list[Token], start: int) -> bool:
    """Whether the last token is the dot of a number like ``.5``, not the one in ``a.5``."""
    if not tokens or not tokens[-1].is_symbol(".") or tokens[-1].end != start:
        return False
    return len(tokens) == 1 or tokens[-2].end != tokens[-1].start or tokens[-2].kind == "symbol"


def _regions(text: str) -> Iterator[_Region]:
    position = 0
    while match := _REGION.match(text, position):
        position = match.end()
        if match.lastgroup == "unclosed":
            raise LexicalError(match.start(), f"{match[0]} is not closed")
        if match.lastgroup == "block":
            is_hint = text.startswith("+", position)
            position = _block_end(text, match.start(), is_hint)
            yield _Region(None, match.start(), position)
        elif match.lastgroup == "string":
            yield _Region("string", match.start(), position)
        elif match.lastgroup == "quoted":
            if match[0] == "``":
                raise LexicalError(match.start(), "an empty name")
            yield _Region("quoted", match.start(), position)
        elif match.lastgroup == "comment":
            yield _Region(None, match.start(), position)


def _block_end(text: str, start: int, is_hint: bool) -> int:
    depth = 1
    for mark in _BLOCK_MARK.finditer(text, start + 2):
        if mark[0] == "*/":
            depth -= 1
        elif not is_hint:
            depth += 1
        if depth == 0:
            return mark.end()
    raise LexicalError(start, "the comment is not closed")


def _blanked(text: str, regions: list[_Region]) -> str:
    """The text with comments as spaces and quoted pieces as plain ones of the same length."""
    parts, position = [], 0
    for region in regions:
        length = region.end - region.start
        parts.append(text[position : region.start])
        if region.kind == "string":
            parts.append("'" + "0" * (length - 2) + "'")
        elif region.kind == "quoted":
            parts.append("`" + "_" * (length - 2) + "`")
        else:
            parts.append(" " * length)
        position = region.end
    return "".join([*parts, text[position:]])


@cache
def _tokenizer() -> type[Tokenizer]:
    """sqlglot's, imported when the first text is read: that takes half a second."""
    from sqlglot.dialects.spark import Spark

    class StatementTokenizer(Spark.Tokenizer):
        COMMANDS = set()  # noqa: RUF012  # else the text after SHOW, CALL … is one token

    return StatementTokenizer


def _pieces(blanked: str) -> Iterator[tuple[Kind, int, int]]:
    """Kind, start and end of each token; keywords that sqlglot joins (GROUP BY) are split again."""
    from sqlglot import TokenType
    from sqlglot.errors import TokenError

    # Of a text of several statements, there may be many blank lines before each.
    position = first = len(blanked) - len(blanked.lstrip())
    try:
        found = _tokenizer()(dialect="spark").tokenize(blanked[first:])
    except TokenError as error:
        place = first + (getattr(error, "start", None) or 0)
        raise LexicalError(place, "unreadable text") from None
    for token in found:
        start, end = first + token.start, first + token.end + 1
        _require_nothing_skipped(blanked, position, start)
        position = max(position, end)
        if token.token_type == TokenType.NUMBER:
            yield "number", start, end
            continue
        for piece in _PIECE.finditer(blanked, start, end):
            is_word = piece[0][0].isalnum() or piece[0][0] == "_"
            yield "word" if is_word else "symbol", *piece.span()
    _require_nothing_skipped(blanked, position, len(blanked))


def _require_nothing_skipped(blanked: str, start: int, end: int) -> None:
    skipped = _NOT_SPACE.search(blanked, start, max(start, end))
    if skipped is not None:
        raise LexicalError(skipped.start(), f"{skipped[0]!r} is not expected")


def _require_select_before(hint: int, tokens: list[Token]) -> None:
    before = [token for token in tokens if token.end <= hint]
    if not before or not before[-1].is_word("SELECT"):
        raise LexicalError(hint, "a hint can stand only behind SELECT")
