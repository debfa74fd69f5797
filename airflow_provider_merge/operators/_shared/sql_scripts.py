"""The parameter ``sql`` of a task with several statements: texts, or paths of files of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any, ClassVar, Final

from airflow_provider_merge.exceptions import invalid, no_text
from airflow_provider_merge.hooks.catalog import CatalogHook
from airflow_provider_merge.operators._shared.drop_table import DropTableStatement
from airflow_provider_merge.operators._shared.spark_conf import spark_conf
from airflow_provider_merge.operators._shared.spark_job import SparkJobOperator
from airflow_provider_merge.operators._shared.sql_parameter import (
    names_sql_file,
    of_parameter,
    sql_of_file,
)
from airflow_provider_merge.operators._shared.table_operator import TableOperator
from airflow_provider_merge.operators._shared.values import flag
from airflow_provider_merge.sql.script import Script, outline, read_script
from airflow_provider_merge.submit.submitter import SparkSettings
from airflow_provider_merge.task_errors import naming_task
from airflow_provider_merge.templates import is_known_name, is_template, with_words
from spark_jobs.contract.request import TableName
from spark_jobs.errors import JobError

_NO_NAME: Final = re.compile(r"[^\w.-]+")
_LONGEST_NAME: Final = 90
_ONE_TEXT: Final = "sql"
_VALUES: Final = "The value of an expression is no statement: write {% if %} around what may vary."


@dataclass(frozen=True, slots=True)
class FileStatement:
    """A statement of a text: ``listed`` as in a list; ``place``: its file and line."""

    listed: dict[str, Any]
    place: str


class SqlScriptsOperator(SparkJobOperator):
    """Takes ``sql``: texts of several statements, which become statements of a list.

    :param sql: statements as people write them for spark-sql, separated by semicolons, or the path
        of a ``.sql`` file of them; or a list of such
    :param sources: name → source; ``sql`` uses the names like tables
    :param database: the database of tables that ``sql`` names without a database
    :param allow_drop: true: statements may drop tables
    """

    template_fields: Sequence[str] = (
        *SparkJobOperator.template_fields,
        "sql",
        "sources",
        "database",
        "allow_drop",
    )
    template_fields_renderers: ClassVar[dict[str, str]] = {
        **SparkJobOperator.template_fields_renderers,
        "sql": "sql",
        "sources": "json",
    }

    def __init__(
        self,
        *,
        sql: str | Sequence[str] | None = None,
        sources: Mapping[str, Any] | None = None,
        database: str | None = None,
        allow_drop: bool | str = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.sql = sql
        self.sources = sources
        self.database = database
        self.allow_drop = allow_drop
        # By the places of texts: the files that they are of, and what those with templates hold.
        self._sql_files: dict[int, str] = {}
        self._outlines: dict[int, tuple[str, ...]] = {}
        self._scripts: dict[tuple[str, str, str], Script] = {}

    def spark_settings(self) -> SparkSettings:
        """Those of the parameters, with what SET sets for the whole job."""
        settings = super().spark_settings()
        # The base asks for them, too, before it is known whether there is a text.
        if "_scripts" not in vars(self) or not self._knows_names():
            return settings
        conf = dict(settings.conf)
        for at, text in enumerate(self._texts()):
            if not (is_template(text) or self._is_path(at, text)):
                conf |= self._labelled(at, text).conf
        return replace(settings, conf=spark_conf(conf))

    def resolve_template_files(self) -> None:
        """Read the files when the DAG is parsed."""
        with naming_task(self.task_id):
            self._read_sql_files()
            super().resolve_template_files()

    def before_rendering(self, resolved: Collection[str]) -> None:
        """Read the files of a mapped task; note which statements are in texts with templates."""
        if "sql" in resolved:
            return
        self._read_sql_files()
        for at, text in enumerate(self._texts()):
            if is_template(text) and isinstance(text, str):
                written = _outline(text)
                if written is not None:
                    self._outlines[at] = written

    def after_rendering(self) -> None:
        """Check that templates rendered to no other statements than those that are written."""
        super().after_rendering()
        for at, text in enumerate(self._texts()):
            written = self._outlines.get(at)
            if written is not None and isinstance(text, str):
                with of_parameter(self._label(at)):
                    _require_outline(written, outline(text))

    def require_allowed(self, operators: Mapping[str, TableOperator | None]) -> None:
        """Check that no statement drops a table, unless the task allows it.

        Raises:
            RequestError: REQUEST_INVALID, naming the parameter and the statement.
        """
        if is_template(self.allow_drop) or flag("allow_drop", self.allow_drop):
            return
        for name, operator in operators.items():
            if isinstance(operator, DropTableStatement):
                place = f" ({operator.sql_file})" if operator.sql_file else ""
                problem = f"statement {name!r}{place} drops {operator.target}"
                raise invalid("allow_drop", problem, "Write allow_drop=True if that is meant.")

    def file_statements(self) -> Iterator[FileStatement]:
        """The statements of all texts that are known; names are those of files, with numbers.

        Raises:
            JobError: the first statement that cannot be run, with file, line and column.
        """
        yield from self._statements(lambda text: None if is_template(text) else text)

    def readable_statements(self) -> Iterator[FileStatement]:
        """Those of texts with templates that can be read with words for the templates."""
        try:
            yield from self._statements(_readable)
        except JobError:
            return  # the rendered text decides

    def require_used_catalogs(self, hook: CatalogHook) -> None:
        """Check the catalogs that USE and CALL name, and the formats that CALL is for.

        Raises:
            RequestError: REQUEST_INVALID: it is not the connection's.
        """
        for at, text in enumerate(self._texts()):
            script = self._labelled(at, text)
            with of_parameter(self._label(at)):
                require_used_catalogs(hook, script.named, script.formats)

    def check_sql(self) -> None:
        """Check the texts that are known, and that each source is read by one of them.

        Raises:
            JobError: as ``file_statements``; or it names a source.
        """
        texts = self._texts()
        if is_template(self.sql) and not texts:
            return
        if not texts:
            raise invalid("sql", "there is no text", "Give at least one.")
        later = (is_template(each) or self._is_path(at, each) for at, each in enumerate(texts))
        if self._knows_names() and not any(later):
            read = [self._labelled(at, text) for at, text in enumerate(texts)]
            found = frozenset[str]().union(*(each.read for each in read))
            for name in self.sources or ():
                if name not in found and "sources" not in self.from_defaults:
                    raise invalid(
                        f"sources.{name}",
                        "no statement reads it",
                        "Remove it, or write its name where a statement names a table.",
                    )
            if not any(each.statements for each in read):
                raise invalid("sql", "there is no statement", "Write at least one.")

    def _statements(self, known: Callable[[Any], str | None]) -> Iterator[FileStatement]:
        if not self._knows_names():
            return
        texts = self._texts()
        names = self._names(len(texts))
        for at, text in enumerate(texts):
            known_text = None if self._is_path(at, text) else known(text)
            if known_text is None:
                continue
            script = self._labelled(at, known_text)
            for number, statement in enumerate(script.statements, start=1):
                name = f"{names[at]}-{number}"
                listed = {"name": name, "operation": statement.operation, **statement.parameters}
                file = self._sql_files.get(at, "")
                yield FileStatement(listed, f"{file}, line {statement.line}" if file else "")

    def _labelled(self, at: int, text: Any) -> Script:
        """The script in a text, which is read once; errors name the text."""
        if not isinstance(text, str):
            raise no_text(self._label(at), text)
        key = (text, str(self.database), repr(self.sources))
        if key not in self._scripts:
            with of_parameter(self._label(at)):
                self._scripts[key] = read_script(text, self.sources, self.database)
        return self._scripts[key]

    def _texts(self) -> list[Any]:
        if self.sql is None or (is_template(self.sql) and not isinstance(self.sql, str)):
            return []
        if isinstance(self.sql, str):
            return [self.sql]
        if not isinstance(self.sql, list | tuple):
            raise invalid("sql", f"expected text or a list, found {type(self.sql).__name__}")
        return list(self.sql)

    def _knows_names(self) -> bool:
        """Whether it is known what texts can read like tables."""
        if self.sources is not None and is_template(self.sources):
            return False
        if self.sources is not None and not isinstance(self.sources, Mapping):
            raise invalid("sources", "expected a dict of name -> source")
        return self.database is None or not is_template(self.database)

    def _is_path(self, at: int, text: Any) -> bool:
        """Whether this is the path of a file that has not been read yet."""
        return at not in self._sql_files and names_sql_file(text)

    def _read_sql_files(self) -> None:
        texts = self._texts()
        read = [self._text(at, each) for at, each in enumerate(texts)]
        if read != texts:
            self.sql = read[0] if isinstance(self.sql, str) else read

    def _text(self, at: int, text: Any) -> Any:
        if at in self._sql_files or not names_sql_file(text):
            return text
        with of_parameter("sql" if isinstance(self.sql, str) else f"sql[{at}]"):
            content = sql_of_file(text, self.get_template_env())
        self._sql_files[at] = text
        return content

    def _label(self, at: int) -> str:
        place = "sql" if isinstance(self.sql, str) else f"sql[{at}]"
        return f"{place} ({self._sql_files[at]})" if at in self._sql_files else place

    def _names(self, count: int) -> list[str]:
        """The names of texts: those of their files, with folders where they would be the same."""
        names = [self._name(at, count, folders=False) for at in range(count)]
        if len(set(names)) < count:
            names = [self._name(at, count, folders=True) for at in range(count)]
        for name in names:
            if names.count(name) > 1:
                raise invalid("sql", f"two files are called {name!r}", "Rename one of them.")
        return names

    def _name(self, at: int, count: int, *, folders: bool) -> str:
        file = self._sql_files.get(at)
        if file is None:
            return _ONE_TEXT if count == 1 else f"{_ONE_TEXT}.{at + 1}"
        path = PurePosixPath(file)
        parts = [each for each in path.parent.parts if each not in (".", "..", "/")]
        whole = ".".join([*parts, path.stem]) if folders else path.stem
        return _NO_NAME.sub("_", whole)[-_LONGEST_NAME:]


def require_used_catalogs(
    hook: CatalogHook, named: Iterable[TableName], formats: Mapping[str, int]
) -> None:
    """Check the catalogs that a text names, and the ``formats`` of its procedures, by their lines.

    Raises:
        RequestError: REQUEST_INVALID: it is not the connection's.
    """
    own = hook.catalog_spec().connector
    for table in named:
        hook.require_catalog(table)
    for name, line in formats.items():
        if name != own:
            problem = f"line {line}: the procedure is for tables of {name}, not {own}"
            raise invalid("CALL", problem, "Write the one of the catalog's tables.")


def _readable(text: Any) -> str | None:
    return with_words(text) if is_template(text) and isinstance(text, str) else None


def _outline(text: str) -> tuple[str, ...] | None:
    """The statements of a text with templates; None: they decide which there are."""
    readable = with_words(text)
    try:
        return None if readable is None else outline(readable)
    except JobError:
        return None


def _require_outline(written: Sequence[str], rendered: Sequence[str]) -> None:
    if len(written) != len(rendered):
        problem = f"templates make {len(rendered)} statements of {len(written)} that are written"
        raise invalid("sql", problem, _VALUES)
    for number, (before, after) in enumerate(zip(written, rendered, strict=True), start=1):
        if before != after and is_known_name(before.lower()):
            raise invalid("sql", f"statement {number}, {before}, becomes {after}", _VALUES)
