"""Whether a text begins like a statement, without reading it: paths of files stand there, too."""

from __future__ import annotations

import re
from typing import Final

from airflow_provider_merge.sql.queries import QUERY_WORDS

# The words with which a statement can begin that a task runs, or refuses by its name.
FIRST_WORDS: Final = frozenset(
    {
        *QUERY_WORDS,
        *("SET", "MERGE", "UPDATE", "DELETE", "INSERT", "TRUNCATE", "ALTER", "CREATE"),
        *("DROP", "REPLACE", "EXPLAIN", "COMMENT"),
    }
)
_BEFORE: Final = re.compile(
    r"""(?: [\s\ufeff(]            # a byte order mark, blanks, parentheses of queries
          | {%.*?%}                # what sets a variable
          | {{.*?}}(?=\s)          # a whole word
        )*""",
    re.VERBOSE,
)
_COMMENT: Final = ("--", "/*", "{#")
# Behind a statement's first word, but not within the name of a file or a folder.
_FIRST_WORD: Final = re.compile(r"(\w+)(?=\s|/\*|{\#|[*('\"`])", re.VERBOSE)


def begins_statement(text: str) -> bool:
    """Whether a line of text begins with a comment or the first word of a statement."""
    begins = _BEFORE.match(text)
    rest = text[begins.end() :] if begins else text
    word = _FIRST_WORD.match(rest)
    return rest.startswith(_COMMENT) or (word is not None and word[1].upper() in FIRST_WORDS)
