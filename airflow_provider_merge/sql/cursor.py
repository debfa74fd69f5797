"""Reads a statement token by token."""

from __future__ import annotations

from airflow_provider_merge.sql.lexer import Token
from airflow_provider_merge.sql.text import Span, SqlText
from spark_jobs.errors import JobError


class Cursor:
    """A position in ``sql``; ``index`` is that of the next token."""

    def __init__(self, sql: SqlText) -> None:
        self.sql = sql
        self.index = 0

    @property
    def token(self) -> Token:
        """The next token; of the kind ``end`` behind the last one."""
        return self.sql.tokens[self.index]

    def at(self, *words: str) -> bool:
        """Whether these upper-case words come next, in this order."""
        following = self.sql.tokens[self.index : self.index + len(words)]
        return len(following) == len(words) and all(
            token.is_word(word) for token, word in zip(following, words, strict=True)
        )

    def accept(self, *words: str) -> bool:
        """Step over these words if they come next."""
        is_next = self.at(*words)
        if is_next:
            self.index += len(words)
        return is_next

    def expect(self, *words: str) -> None:
        """Step over these words.

        Raises:
            RequestError: SYNTAX_ERROR when something else comes next.
        """
        if not self.accept(*words):
            raise self.unexpected(" ".join(words))

    def at_symbol(self, *symbols: str) -> bool:
        """Whether one of these symbols comes next."""
        return self.token.is_symbol(*symbols)

    def accept_symbol(self, *symbols: str) -> bool:
        """Step over one of these symbols if it comes next."""
        is_next = self.at_symbol(*symbols)
        if is_next:
            self.index += 1
        return is_next

    def expect_symbol(self, *symbols: str) -> None:
        """Step over one of these symbols; an error when something else comes next."""
        if not self.accept_symbol(*symbols):
            raise self.unexpected(symbols[0])

    def expect_end(self) -> None:
        """Step over semicolons at the end of the text.

        Raises:
            RequestError: SYNTAX_ERROR when something else comes next, or a second statement.
        """
        if not self.accept_symbol(";"):
            if self.token.kind != "end":
                raise self.unexpected("the end of the statement")
            return
        while self.accept_symbol(";"):
            pass
        if self.token.kind != "end":
            raise self.sql.error(
                self.token.start,
                "a second statement begins",
                "Give each a task of its own, or an item of a list of statements.",
            )

    def unexpected(self, wanted: str) -> JobError:
        """The syntax error for what comes next."""
        found = "the end" if self.token.kind == "end" else repr(self.token.text)
        return self.sql.error(self.token.start, f"expected {wanted}, found {found}")

    def name(self, what: str) -> tuple[Token, ...]:
        """Step over a name and give its parts, between which dots stand."""
        parts = [self._part(what)]
        while self.accept_symbol("."):
            parts.append(self._part(what))
        return tuple(parts)

    def names(self, what: str) -> list[str]:
        """Step over names in parentheses; each as it was written, without spaces and comments."""
        self.expect_symbol("(")
        names = []
        while True:
            names.append(".".join(part.text for part in self.name(what)))
            if not self.accept_symbol(","):
                break
        self.expect_symbol(")")
        return names

    def expression(self, what: str, *stops: str, comma: bool = False) -> Span:
        """Step over an expression, up to one of the words ``stops`` or the end.

        Raises:
            RequestError: SYNTAX_ERROR when there is none.
        """
        rest = Span(self.index, len(self.sql.tokens) - 1)
        return self._expression(rest, what, stops, comma)

    def expressions(self, what: str) -> list[Span]:
        """Step over expressions in parentheses."""
        opening = self.index
        self.expect_symbol("(")
        closing = self.sql.closing[opening]
        spans = []
        while True:
            spans.append(self._expression(Span(self.index, closing), what, (), True))
            if not self.accept_symbol(","):
                break
        self.expect_symbol(")")
        return spans

    def expression_before(self, closing: int, what: str) -> Span:
        """Step over an expression, up to a comma or the parenthesis at the index ``closing``.

        Raises:
            RequestError: SYNTAX_ERROR when there is none.
        """
        return self._expression(Span(self.index, closing), what, (), True)

    def group(self) -> Span:
        """Step over parentheses and give what is in them."""
        opening = self.index
        self.expect_symbol("(")
        closing = self.sql.closing[opening]
        self.index = closing + 1
        return Span(opening + 1, closing)

    def _part(self, what: str) -> Token:
        token = self.token
        if not token.is_name:
            raise self.unexpected(what)
        self.index += 1
        return token

    def _expression(self, span: Span, what: str, stops: tuple[str, ...], comma: bool) -> Span:
        end = self.sql.expression_end(span, stops, comma)
        if end == span.first:
            raise self.unexpected(what)
        self.index = end
        return Span(span.first, end)
