"""Texts that certainly do more than compute rows, told before Spark starts; the job knows all."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Final

from airflow_provider_merge.sql.lexer import LexicalError, Token, tokenize
from spark_jobs.contract.request import JobRequest, SqlSource
from spark_jobs.contract.source_names import source_text
from spark_jobs.contract.text_limits import CODE_FUNCTIONS, code_refused, expressions, not_a_query

# No query begins with one of these.
_COMMANDS: Final = (
    *("ADD", "ALTER", "ANALYZE", "BEGIN", "CACHE", "CALL", "CREATE", "DECLARE", "DELETE", "DESC"),
    *("DESCRIBE", "DROP", "EXECUTE", "EXPLAIN", "INSERT", "LOAD", "MERGE", "REFRESH", "RESET"),
    *("SET", "SHOW", "TRUNCATE", "UNCACHE", "UPDATE", "USE"),
)

_WORDS: Final = ("using", *CODE_FUNCTIONS)
# The first word, behind blanks and comments.
_FIRST: Final = re.compile(r"(?:\s|--[^\n]*\n|/\*(?:[^*]|\*(?!/))*\*/)*(\w+)")


def require_plain(request: JobRequest) -> None:
    """Check the texts of a request.

    Raises:
        NotSupportedError: naming the text and what it does.
    """
    for source in request.sources:
        if isinstance(source, SqlSource):
            where, tokens = f"query of {source_text(source)}", _tokens(source.query)
            if tokens and tokens[0].is_word(*_COMMANDS):
                raise not_a_query(where, tokens[0].text.upper())
            _require_no_code(request, where, tokens)
    for where, text in expressions(request.statement):
        _require_no_code(request, where, _tokens(text))


def _require_no_code(request: JobRequest, where: str, tokens: list[Token]) -> None:
    if request.text_limits.allow_code:
        return
    for (name, bracket), (_, argument) in pairwise(pairwise(tokens)):
        # A name in front of names may be a table's with its columns.
        is_call = bracket.is_symbol("(") and argument.kind == "string"
        if is_call and name.is_name and name.name.lower() in CODE_FUNCTIONS:
            raise code_refused(where, f"the function {name.name} runs code")
    for using, program in pairwise(tokens):
        if using.is_word("USING") and program.kind == "string":
            raise code_refused(where, "it runs a program, with TRANSFORM, MAP or REDUCE")


def _tokens(text: str) -> list[Token]:
    """The tokens of a text that may have any of this; splitting long ones takes long."""
    first = _FIRST.match(text)
    has_command = first is not None and first[1].upper() in _COMMANDS
    if not has_command and not any(word in text.lower() for word in _WORDS):
        return []
    try:
        return tokenize(text)
    except LexicalError:
        return []  # Spark tells what is wrong
