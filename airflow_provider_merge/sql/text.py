"""One statement's text: its tokens, where expressions end, and errors that show the place."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from airflow_provider_merge.sql.lexer import (
    LexicalError,
    Token,
    option_hints,
    rough_tokens,
    tokenize,
)
from spark_jobs.errors import ErrorCode, JobError, NotSupportedError, error_of

_SETTING = re.compile(r"\s*SET\s", re.IGNORECASE)
_CLOSING = {"(": ")", "[": "]"}
_DEEPEST = 200
_EXCERPT = 40
# In a text of so many characters, words are found in 0.1 s.
_MOST_CHARACTERS: Final = 50_000
# After these an expression goes on: END is then a name, not the end of a CASE.
_OPERATORS = (
    *("CASE", "WHEN", "THEN", "ELSE", "AND", "OR", "NOT", "IN", "IS", "BETWEEN", "DIV"),
    *("LIKE", "ILIKE", "RLIKE", "REGEXP", "ESCAPE", "FROM"),
)
# Before these stands a whole operand: a CASE there is a name.
_INFIX = (
    *("AND", "OR", "THEN", "ELSE", "END", "IN", "IS", "BETWEEN", "DIV", "AS"),
    *("LIKE", "ILIKE", "RLIKE", "REGEXP"),
)
# Behind an operand these need another one; where none follows, Spark takes them for an alias.
_NEEDS_OPERAND: Final = (
    *("AND", "OR", "NOT", "IN", "IS", "BETWEEN", "DIV", "LIKE", "ILIKE", "RLIKE", "REGEXP"),
)
# Words of Spark's grammar after which such a word may be a name.
_BEFORE_NAME: Final = (*_OPERATORS, "DISTINCT", "ALL", "ANY", "SOME", "BY", "COLLATE", "SELECT")
# What no expression ends in; a type (``a::ARRAY<INT>``) may end in >.
_OPEN_END: Final = re.compile(r"(?:<>|[=<+\-/%|&^,!~:])\Z|\A[^<]*>\Z")
# FROM is a part of their arguments: EXTRACT(YEAR FROM day).
FROM_FUNCTIONS = ("EXTRACT", "TRIM", "SUBSTRING", "SUBSTR", "OVERLAY")
_PREFIX_SYMBOLS = ("(", "-", "+", "~", "!", ":", "?", "$", "@")


@dataclass(frozen=True, slots=True)
class Span:
    """The tokens from index ``first`` to before ``last``."""

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Edit:
    """``text`` in place of what stands between two positions of the statement."""

    start: int
    end: int
    text: str


def without_mark(text: str) -> str:
    """The text of a file without its byte order mark."""
    return text.removeprefix("\ufeff")


class SqlText:
    """A text that holds one statement.

    ``closing`` has, for the index of each opening parenthesis or bracket, that of its closing one.

    ``split`` makes the tokens.

    Raises:
        RequestError: SYNTAX_ERROR, when the text cannot be split into tokens or its parentheses
            do not fit.
    """

    def __init__(self, text: str, split: Callable[[str], list[Token]] = tokenize) -> None:
        self.text = without_mark(text)
        try:
            self.tokens = split(self.text)
        except LexicalError as error:
            before = self.text[: error.offset]
            if _SETTING.match(before, 1 + max(before.rfind(";"), before.rfind("\n"))):
                # A value may be a secret: what stands there is not shown.
                problem = f"{self.where(error.offset)}: {error.problem}"
                remedy = "Put the value of SET in quotes, or leave the SET out."
                raise error_of(ErrorCode.SYNTAX_ERROR, problem, remedy) from None
            raise self.error(error.offset, error.problem) from None
        self.closing = self._closing(None if split is rough_tokens else _DEEPEST)
        self._hints = option_hints(self.text)

    def take_hints(self, start: int, end: int) -> list[tuple[int, str]]:
        """The hints ``/*+ OPTIONS …`` between two positions, which are understood by now."""
        hints = [hint for hint in self._hints if start <= hint[0] < end]
        self._hints = [hint for hint in self._hints if hint not in hints]
        return [(first, self.text[first:last]) for first, last in hints]

    def refuse_hints(self) -> None:
        """Refuse what ``take_hints`` did not give; raises NotSupportedError."""
        for start, _ in self._hints:
            raise self.unsupported(
                start,
                "OPTIONS can stand only behind the target of INSERT",
                "Leave it out. A source is read at its latest snapshot.",
            )

    def error(
        self,
        offset: int,
        problem: str,
        remedy: str = "",
        code: ErrorCode = ErrorCode.SYNTAX_ERROR,
    ) -> JobError:
        """The error for what stands at ``offset``, with line and column, both from 1."""
        return error_of(code, self.at(offset, problem), remedy)

    def unsupported(self, offset: int, problem: str, remedy: str = "") -> NotSupportedError:
        """The refusal of what stands at ``offset``."""
        return NotSupportedError(self.at(offset, problem), remedy)

    def at(self, offset: int, problem: str) -> str:
        """``problem`` with line and column in front and the text that stands there behind."""
        rest = self.text[offset:].lstrip().partition("\n")[0].strip()
        excerpt = rest if len(rest) <= _EXCERPT else rest[:_EXCERPT].rstrip() + " ..."
        near = f" (near {excerpt!r})" if excerpt else " (at the end of the text)"
        return f"{self.where(offset)}: {problem}{near}"

    def where(self, offset: int) -> str:
        """Line and column of a position, from 1."""
        line = self.text.count("\n", 0, offset) + 1
        return f"line {line}, column {offset - self.text.rfind(chr(10), 0, offset)}"

    def slice(self, span: Span, edits: Iterable[Edit] = ()) -> str:
        """The text of ``span`` as it was written, but for ``edits``."""
        start, end = self.tokens[span.first].start, self.tokens[span.last - 1].end
        parts = []
        for edit in sorted(edits, key=lambda each: (each.start, each.end)):
            parts += [self.text[start : edit.start], edit.text]
            start = edit.end
        return "".join([*parts, self.text[start:end]])

    def expression_end(self, span: Span, stops: tuple[str, ...] = (), comma: bool = False) -> int:
        """The index behind the expression that starts the span.

        It ends before one of the words ``stops``, before a comma where ``comma`` says so, before a
        semicolon and at the end of the span; not inside parentheses, brackets or CASE … END.

        Raises:
            RequestError: SYNTAX_ERROR for a CASE without END.
        """
        cases: list[Token] = []
        index = span.first
        while index < span.last:
            token = self.tokens[index]
            if index in self.closing:
                index = self.closing[index]
            elif token.is_symbol("::"):
                index = self._type_end(index + 1, span.last) - 1
            elif self._is_keyword(index) and self._opens_case(index):
                cases.append(token)
            elif cases and self._is_keyword(index) and self._closes_case(index):
                cases.pop()
            elif not cases and self._stops(index, stops, comma):
                break
            index += 1
        if cases:
            raise self.error(cases[-1].start, "CASE has no END")
        return index

    def is_subquery(self, opening: int) -> bool:
        """Whether the parenthesis at ``opening`` starts with SELECT, FROM or WITH, for sure."""
        first, second = self.tokens[opening + 1 : opening + 3]
        if first.is_word("SELECT"):
            return not second.is_symbol(")", ",", ".", "=", "==", "<", ">", "[")
        if first.is_word("FROM"):
            before = self.tokens[opening - 1 : opening]
            return second.is_name and not (before and before[0].is_word(*FROM_FUNCTIONS))
        return first.is_word("WITH") and second.is_name

    def require_operand(self, last: int) -> None:
        """Refuse an expression that ends, before the token ``last``, in an operator, for sure.

        Raises:
            RequestError: SYNTAX_ERROR.
        """
        token = self.tokens[last - 1]
        is_open = token.kind == "symbol" and _OPEN_END.search(self.text[: token.end])
        if is_open or (last > 1 and self._lacks_operand(last - 1)):
            problem = f"the expression ends in {token.text}, and nothing follows"
            remedy = f"Write what belongs behind {token.text}, or remove it."
            raise self.error(token.start, problem, remedy)

    def _lacks_operand(self, index: int) -> bool:
        """Whether the token goes on from the operand before it; a name does not."""
        before, token = self.tokens[index - 1 : index + 1]
        if token.is_symbol("*"):
            return before.kind != "symbol" or before.is_symbol(")", "]")
        if not (self._is_keyword(index) and token.is_word(*_NEEDS_OPERAND)):
            return False
        is_name = before.is_word(*_BEFORE_NAME) and self._is_keyword(index - 1)
        return before.is_symbol(")", "]") if before.kind == "symbol" else not is_name

    def _closing(self, deepest: int | None) -> dict[int, int]:
        closing: dict[int, int] = {}
        opened: list[int] = []
        for index, token in enumerate(self.tokens):
            if token.is_symbol("(", "["):
                opened.append(index)
                if deepest is not None and len(opened) > deepest:
                    raise self.error(token.start, f"more than {deepest} nested parentheses")
            elif token.is_symbol(")", "]"):
                if not opened or _CLOSING[self.tokens[opened[-1]].text] != token.text:
                    raise self.error(token.start, f"{token.text} closes nothing")
                closing[opened.pop()] = index
        if opened:
            token = self.tokens[opened[-1]]
            raise self.error(token.start, f"{token.text} is not closed")
        return closing

    def _is_keyword(self, index: int) -> bool:
        """Whether the token is a word that is no part of a dotted name."""
        return (
            self.tokens[index].kind == "word"
            and not (index and self.tokens[index - 1].is_symbol("."))
            and not self.tokens[index + 1].is_symbol(".")
        )

    def _opens_case(self, index: int) -> bool:
        if not self.tokens[index].is_word("CASE"):
            return False
        following, second = self.tokens[index + 1], self.tokens[index + 2 : index + 3]
        if following.is_word("NOT"):
            return not (second and second[0].is_word(*_INFIX))
        if following.kind == "symbol":
            return following.text in _PREFIX_SYMBOLS
        return following.kind != "end" and not following.is_word(*_INFIX)

    def _closes_case(self, index: int) -> bool:
        if not self.tokens[index].is_word("END"):
            return False
        before = self.tokens[index - 1]
        if before.kind == "symbol":
            return before.text in (")", "]", "?", "}")
        return not (before.kind == "word" and self._is_operator(index - 1))

    def _is_operator(self, index: int) -> bool:
        return self._is_keyword(index) and self.tokens[index].is_word(*_OPERATORS)

    def _stops(self, index: int, stops: tuple[str, ...], comma: bool) -> bool:
        token = self.tokens[index]
        if token.kind == "symbol":
            return token.text == ";" or (comma and token.text == ",")
        return self._is_keyword(index) and token.is_word(*stops)

    def _type_end(self, index: int, last: int) -> int:
        """The index behind a type, whose commas (``::MAP<STRING, INT>``) separate no values."""
        if not self.tokens[index + 1 : index + 2] or not self.tokens[index + 1].is_symbol("<"):
            return index
        depth = 0
        for position in range(index + 1, last):
            token = self.tokens[position]
            if token.kind == "symbol":
                depth += token.text.count("<") - token.text.count(">")
            if depth <= 0:
                return position + 1
        raise self.error(self.tokens[index].start, "the type is not closed")


def require_whole(expression: str) -> None:
    """Refuse an expression that Spark cannot parse for sure, without reading it as SQL.

    A very long one is left to Spark: DAG files are parsed again and again.

    Raises:
        RequestError: SYNTAX_ERROR: quotes or parentheses do not fit, or it ends in an operator.
    """
    if len(expression) > _MOST_CHARACTERS:
        return
    text = SqlText(expression, rough_tokens)
    text.require_operand(len(text.tokens) - 1)
