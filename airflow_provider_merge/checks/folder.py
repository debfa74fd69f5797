"""SQL files against the tables of a catalog, without a task."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jinja2 import FileSystemLoader, StrictUndefined, TemplateError
from jinja2.sandbox import SandboxedEnvironment

from airflow_provider_merge.checks.lines import on_line
from airflow_provider_merge.checks.requests import MetadataCheck
from airflow_provider_merge.exceptions import invalid
from airflow_provider_merge.hooks.catalog import catalog_hook
from airflow_provider_merge.sql.alter_table import parse_alter_table
from airflow_provider_merge.sql.create_table import parse_create_table
from airflow_provider_merge.sql.lexer import LexicalError, tokenize
from airflow_provider_merge.sql.parser import parse_statement
from airflow_provider_merge.sql.schemas import columns_of_schema
from spark_jobs.contract.identifiers import quote
from spark_jobs.contract.request import FileSource, Source, SqlSource, TableName
from spark_jobs.errors import JobError

# Where the files of a source are is known to the task only.
_SOMEWHERE = "elsewhere://source"


@dataclass(frozen=True, slots=True)
class FolderCheck:
    """Which files to check, and what their statements may use.

    ``folder``: a folder, or one file. ``sources``: named sources, each ``NAME`` or ``NAME=SCHEMA``.
    ``values``: values for templates, each ``NAME=VALUE``.
    """

    folder: Path
    conn_id: str
    database: str | None = None
    sources: Sequence[str] = ()
    values: Sequence[str] = ()

    def files(self) -> list[Path]:
        """The files, sorted.

        Raises:
            RequestError: REQUEST_INVALID: there are none.
        """
        found = [self.folder] if self.folder.is_file() else sorted(self.folder.rglob("*.sql"))
        if not found:
            raise invalid("folder", f"there is no .sql file in {self.folder}")
        return found

    def errors(self) -> Iterator[JobError]:
        """The first error of each file that has one, with its file and line.

        Raises:
            RequestError: REQUEST_INVALID: the connection or a setting of the check.
        """
        sources = tuple(map(_source, self.sources))
        values = _template_values(self.values)
        read: list[_SqlFile] = []
        created: list[TableName] = []
        for path in self.files():
            try:
                file = _SqlFile(str(path), _rendered(path, values))
                if file.creates_table:
                    created.append(parse_create_table(file.text, self.database)[0])
                elif file.alters_table:
                    # What it is afterwards, only the job knows.
                    created.append(parse_alter_table(file.text, self.database)[0])
                else:
                    read.append(file)
            except JobError as error:
                yield on_line(error, "", str(path))
        check = MetadataCheck(catalog_hook(self.conn_id), shares_files=True, made=created)
        for file in read:
            try:
                parsed = parse_statement(file.text, [s.name for s in sources], self.database)
                everything = (*sources, *parsed.sources)
                check.require_valid(parsed.target, parsed.statement, everything)
            except JobError as error:
                yield on_line(error, file.text, file.name)


@dataclass(frozen=True, slots=True)
class _SqlFile:
    """A file, called ``name`` in errors, and its text with the templates filled in."""

    name: str
    text: str

    @property
    def creates_table(self) -> bool:
        """Whether its statement is CREATE TABLE."""
        return self._words()[:1] == ["CREATE"]

    @property
    def alters_table(self) -> bool:
        """Whether its statement is an ALTER TABLE that drops no partition, or COMMENT ON TABLE."""
        words = self._words()
        drops = "DROP" in words and "PARTITION" in words and "FIELD" not in words
        return words[:1] in (["ALTER"], ["COMMENT"]) and not drops

    def _words(self) -> list[str]:
        try:
            return [each.text.upper() for each in tokenize(self.text) if each.kind == "word"]
        except LexicalError:
            return []


def _source(text: str) -> Source:
    """A source as a query without rows, or as files that are elsewhere.

    Raises:
        RequestError: REQUEST_INVALID: the schema is not one.
    """
    name, separator, schema = text.partition("=")
    if not separator:
        return FileSource(name.strip(), _SOMEWHERE, "parquet")
    columns = columns_of_schema(schema)
    if not columns:
        raise invalid("--source", f"{text!r} is not NAME or NAME=SCHEMA")
    values = (f"CAST(NULL AS {type_}) AS {quote(column)}" for column, type_ in columns.items())
    return SqlSource(name.strip(), f"SELECT {', '.join(values)}")


def _template_values(settings: Sequence[str]) -> dict[str, Any]:
    """What templates can name: the time of a run that starts now, and what is given.

    Raises:
        RequestError: REQUEST_INVALID: a setting is not NAME=VALUE.
    """
    now = datetime.now(UTC)
    day = now.strftime("%Y-%m-%d")
    values: dict[str, Any] = {
        "ds": day,
        "ds_nodash": now.strftime("%Y%m%d"),
        "ts": now.isoformat(),
        "ts_nodash": now.strftime("%Y%m%dT%H%M%S"),
        **dict.fromkeys(("logical_date", "data_interval_start", "data_interval_end"), now),
        "run_partition": lambda *_, **__: day,
        "params": {},
    }
    for setting in settings:
        path, separator, value = setting.partition("=")
        *parents, name = path.strip().split(".")
        place = values
        for parent in parents:
            place = place.setdefault(parent, {})
        if not separator or not isinstance(place, dict):
            raise invalid("--set", f"{setting!r} is not NAME=VALUE")
        place[name] = value
    return values


def _rendered(path: Path, values: Mapping[str, Any]) -> str:
    environment = SandboxedEnvironment(
        loader=FileSystemLoader(path.parent), undefined=StrictUndefined, autoescape=False
    )
    try:
        return environment.get_template(path.name).render(values)
    except (TemplateError, UnicodeDecodeError) as error:
        remedy = "Give values for templates with --set NAME=VALUE."
        raise invalid("template", str(error), remedy) from None
