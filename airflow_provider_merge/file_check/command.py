"""``python -m airflow_provider_merge check``: its arguments, its report, and the edits it makes."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from airflow_provider_merge.exceptions import invalid
from airflow_provider_merge.file_check.edits import changed_lines
from airflow_provider_merge.file_check.skeleton import skeleton
from airflow_provider_merge.file_check.templates import template_values
from airflow_provider_merge.file_check.verdicts import FileCheck, FileVerdict, Verdict, text_of
from airflow_provider_merge.hooks.catalog import catalog_hook
from airflow_provider_merge.operators.sources import file_source, sql_source
from airflow_provider_merge.sql.schemas import columns_of_schema
from spark_jobs.contract.sql_text import quote
from spark_jobs.errors import ErrorCode, JobError

# Where the files of a source are is known to the task only.
_SOMEWHERE: Final = "elsewhere://source"
_HINT: Final = (
    "--source NAME[=SCHEMA] declares a source of the tasks, --database NAME the database of tables "
    "that are named without one\n"
)
_WIDTH: Final = 34
_WRONG: Final = "wrong"
_REFUSED: Final = "not supported"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("paths", type=Path, nargs="+", help="folders, or .sql files")
    parser.add_argument(
        "--conn", default="paimon_default", help="the catalog connection (%(default)s)"
    )
    parser.add_argument("--database", help="the database of tables that are named without one")
    parser.add_argument(
        "--source",
        action="append",
        default=[],
        metavar="NAME[=SCHEMA]",
        help='a named source of the tasks, such as "changes=id BIGINT, name STRING"',
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a value for templates, such as params.table=orders",
    )
    parser.add_argument("--params", type=Path, help="a JSON file with the params of templates")
    parser.add_argument(
        "--write",
        type=Path,
        metavar="DAG_FILE",
        help="make the edits in the files, and a new DAG file with a task for each",
    )


def run(parsed: argparse.Namespace) -> int:
    """Print what becomes of each statement; 1 if one does not run as it is.

    Raises:
        RequestError: REQUEST_INVALID, naming the option.
    """
    if parsed.write is not None and parsed.write.exists():
        raise invalid("--write", f"{parsed.write} exists", "Name a new file.")
    sources = dict(map(_source, parsed.source))
    values = template_values(parsed.set, parsed.params)
    check = FileCheck(catalog_hook(parsed.conn), parsed.conn, values, sources, parsed.database)
    verdicts = check.files(_files(parsed.paths))
    for line in report(verdicts):
        sys.stdout.write(f"{line}\n")
    if not all(file.runs for file in verdicts):
        sys.stdout.write(_HINT)
    if parsed.write is None:
        return int(any(not file.runs or any(s.edit for s in file.statements) for file in verdicts))
    _write(parsed.write, skeleton(parsed.write, verdicts, parsed.conn, parsed.database, sources))
    for file in verdicts:
        # Of a file that gets no task, what the edits leave to the task would be lost.
        if file.runs and any(each.edit for each in file.statements):
            _write(file.path, _edited_text(file))
    sys.stdout.write(f"written: {parsed.write}\n")
    return int(any(not file.runs for file in verdicts))


def _write(path: Path, text: str) -> None:
    try:
        path.write_bytes(text.encode())
    except OSError as error:
        raise invalid("--write", f"{path} cannot be written: {error.strerror}") from None


def _files(paths: list[Path]) -> list[Path]:
    sql_files = []
    for path in paths:
        here = [path] if path.is_file() else sorted(path.rglob("*.sql"))
        if not path.exists():
            raise invalid("paths", f"{path} does not exist", "Name folders, or .sql files.")
        if not here:
            raise invalid("paths", f"there is no .sql file in {path}", "Name another folder.")
        sql_files += [each for each in here if each not in sql_files]
    return sql_files


def _source(text: str) -> tuple[str, dict[str, Any]]:
    """A source as a query without rows, or as files that are elsewhere.

    Raises:
        RequestError: REQUEST_INVALID: the schema is not one.
    """
    name, separator, schema = text.partition("=")
    if not separator:
        return name.strip(), file_source(_SOMEWHERE, "parquet")
    columns = columns_of_schema(schema)
    if not columns:
        raise invalid("--source", f"{text!r} is not NAME or NAME=SCHEMA")
    values = (f"CAST(NULL AS {type_}) AS {quote(column)}" for column, type_ in columns.items())
    return name.strip(), sql_source(f"SELECT {', '.join(values)}", sources={})


def report(files: Sequence[FileVerdict]) -> Iterator[str]:
    """The lines: what becomes of each statement, then the sums."""
    for file in files:
        yield str(file.path)
        if file.error is not None:
            yield from _refusal(file.error)
        for each in file.statements:
            yield from _told(each, is_query=file.is_query)
        if file.drops:
            yield "    of the task: allow_drop=True"
    statements = [each for file in files for each in file.statements]
    edited = sum(each.edit is not None and each.error is None for each in statements)
    wrong, refused = (
        sum(each.error is not None and _word(each.error) == word for each in statements)
        for word in (_WRONG, _REFUSED)
    )
    unread = sum(file.error is not None for file in files)
    yield (
        f"files: {len(files)}, with errors: {sum(not file.runs for file in files)}; "
        f"statements: {len(statements)}, run as they are: "
        f"{len(statements) - edited - wrong - refused}, after an edit: {edited}, "
        f"{_WRONG}: {wrong}, {_REFUSED}: {refused}, files not read: {unread}"
    )


def _edited_text(file: FileVerdict) -> str:
    """The text of a file with its edits, but without a byte order mark."""
    text = text_of(file.path)
    for statement in reversed(file.statements):
        if statement.edit is not None:
            end = statement.start + len(statement.written)
            text = text[: statement.start] + statement.edit.text + text[end:]
    return text


def _told(verdict: Verdict, *, is_query: bool) -> Iterator[str]:
    head = f"  line {verdict.line:<4} {verdict.words[:_WIDTH]:<{_WIDTH}}"
    if verdict.error is not None:
        yield f"{head} {_word(verdict.error)}"
        yield from _refusal(verdict.error)
    elif verdict.edit is not None:
        yield f"{head} runs after this edit"
        for line in changed_lines(verdict.written, verdict.edit.text):
            yield f"    {line}"
        for key, value in verdict.edit.conf.items():
            yield f"    of the task: conf={{{key!r}: {value!r}}}"
        for name in verdict.edit.params:
            yield f"    of the DAG: params={{{name!r}: ...}}"
    else:
        yield f"{head} {'runs with QueryOperator' if is_query else 'runs as it is'}"


def _word(error: JobError) -> str:
    return _REFUSED if error.code is ErrorCode.NOT_SUPPORTED else _WRONG


def _refusal(error: JobError) -> Iterator[str]:
    message = " ".join(filter(None, map(str.strip, error.message.split("\n"))))
    yield f"    {error.code.name}: {message}"
    if error.remedy:
        yield f"    Remedy: {error.remedy}"
