"""``python -m airflow_provider_merge check``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any, Final

from airflow_provider_merge.exceptions import invalid
from airflow_provider_merge.file_check.report import edited_text, report
from airflow_provider_merge.file_check.skeleton import skeleton
from airflow_provider_merge.file_check.templates import template_values
from airflow_provider_merge.file_check.verdicts import FileCheck
from airflow_provider_merge.hooks.catalog import catalog_hook
from airflow_provider_merge.operators.sources import file_source, sql_source
from airflow_provider_merge.sql.schemas import columns_of_schema
from spark_jobs.contract.sql_text import quote

# Where the files of a source are is known to the task only.
_SOMEWHERE: Final = "elsewhere://source"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("paths", type=Path, nargs="+", help="folders, or .sql files")
    parser.add_argument("--conn", default="paimon_default", help="the catalog connection")
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
    if parsed.write is None:
        return int(any(not file.runs or any(s.edit for s in file.statements) for file in verdicts))
    _write(parsed.write, skeleton(parsed.write, verdicts, parsed.conn, parsed.database, sources))
    for file in verdicts:
        if file.error is None and any(each.edit for each in file.statements):
            _write(file.path, edited_text(file))
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
        if not here:
            raise invalid("paths", f"there is no .sql file in {path}")
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
