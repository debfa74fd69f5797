"""The parameter ``sql``: the text of a statement, or the path of a ``.sql`` file."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeGuard

from jinja2 import TemplateNotFound

from airflow_provider_merge.exceptions import invalid
from airflow_provider_merge.parameters import ParameterOperator
from airflow_provider_merge.sql.queries import QUERY_WORDS
from airflow_provider_merge.task_errors import naming_task
from airflow_provider_merge.templates import PLACEHOLDER, are_all_known, is_template, with_words
from spark_jobs.errors import JobError

if TYPE_CHECKING:
    from jinja2 import Environment


_SQL_FILE: Final = ".sql"
_LINE_END: Final = re.compile(r"[\r\n]")
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


class SqlOperator(ParameterOperator):
    """An operator that takes ``sql``. ``sql_file`` is the path that it was given as, if it was.

    Airflow's own ``template_ext`` would take every text for a path, in any parameter at any depth.
    """

    sql: str | None
    database: str | None
    sql_file: str = ""

    @abstractmethod
    def check_parameters(self) -> None:
        """Check what is known when the DAG is parsed.

        Raises:
            JobError: naming the parameter, and line and column of the text.
        """

    def resolve_template_files(self) -> None:
        """Read the file when the DAG is parsed."""
        with naming_task(self.task_id):
            self._read_file()
            super().resolve_template_files()

    def before_rendering(self, resolved: Collection[str]) -> None:
        """Read the file of a mapped task; what another task returned is no path."""
        if "sql" not in resolved:
            self._read_file()

    def prepare_template(self) -> None:
        """Check the text that was read from a file, when the DAG is parsed."""
        if isinstance(self.sql, str):
            self.check_parameters()

    def _read_file(self) -> None:
        if not self.sql_file and names_sql_file(self.sql):
            self.sql_file = self.sql
            self.sql = sql_of_file(self.sql, self.get_template_env())

    def drop_default_text(self, parts: Iterable[str]) -> None:
        """Ignore a text of ``default_args`` if the task itself has parts of a statement."""
        if "sql" in self.from_defaults and (self.given - self.from_defaults) & set(parts):
            self.refuse("sql", "cannot be combined with the parts of a statement")

    def reads_later(self) -> bool:
        """Whether the text is not known yet."""
        return is_template(self.sql) or (not self.sql_file and names_sql_file(self.sql))

    def readable_text(self) -> tuple[str, str | None] | None:
        """The text and its default database with words for templates (``with_words``), if it can
        be read so.
        """
        text = with_words(self.sql) if isinstance(self.sql, str) else None
        return None if text is None else (text, self.readable_database())

    def readable_database(self) -> str | None:
        """The default database with words for templates; a name that is a template has its own."""
        return with_words(self.database) if isinstance(self.database, str) else PLACEHOLDER

    def sql_label(self) -> str:
        """What errors call the text."""
        return f"sql ({self.sql_file})" if self.sql_file else "sql"


def names_sql_file(sql: Any) -> TypeGuard[str]:
    """Whether all of a text of the DAG file is the path of a file: one line, and no statement."""
    if are_all_known() or not isinstance(sql, str) or not sql.endswith(_SQL_FILE):
        return False
    return not _LINE_END.search(sql) and not _begins_statement(sql)


def sql_of_file(path: str, environment: Environment) -> str:
    """The text of a file, which may have templates.

    Raises:
        RequestError: REQUEST_INVALID: there is no such file, it cannot be read, or only a template
            tells which one it is.
    """
    if is_template(path):
        remedy = "Write {% include 'sql/' ~ params.name ~ '.sql' %}, which is text."
        raise invalid("sql", f"the path {path!r} is a template", remedy)
    assert environment.loader is not None  # noqa: S101 - Airflow's environments have one
    try:
        return environment.loader.get_source(environment, path)[0]
    except TemplateNotFound:
        folders = [str(each) for each in getattr(environment.loader, "searchpath", ())]
        raise invalid(
            "sql",
            f"there is no file {path!r}",
            "Give its path below the folder of the DAG file or below one of the DAG's "
            f"template_searchpath: {', '.join(folders)}. If it is a statement, put a blank behind "
            "its first word.",
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise invalid("sql", f"the file {path!r} cannot be read: {error}") from None


@contextmanager
def of_parameter(name: str) -> Iterator[None]:
    """Errors of a text name the parameter that holds it."""
    try:
        yield
    except JobError as error:
        raise error.within(name) from None


def _begins_statement(text: str) -> bool:
    """Whether a line of text begins with a comment or the first word of a statement."""
    begins = _BEFORE.match(text)
    rest = text[begins.end() :] if begins else text
    word = _FIRST_WORD.match(rest)
    return rest.startswith(_COMMENT) or (word is not None and word[1].upper() in FIRST_WORDS)
