"""The DAG that the command ``check --write`` begins: a task for each file that runs."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from airflow_provider_merge.file_check.verdicts import FileVerdict

_PARAM = "Param(type='string')"
_NO_NAME = re.compile(r"\W+")


def skeleton(
    dag_file: Path,
    files: Sequence[FileVerdict],
    conn_id: str,
    database: str | None,
    sources: Mapping[str, Any],
) -> str:
    """The text of a DAG file; it says what is left to do.

    ``sources``: those that the command was told of; where their files are, the person has to say.
    """
    running = [file for file in files if file.makes_task]
    params = dict.fromkeys(
        name
        for file in running
        for statement in file.statements
        if statement.edit
        for name in statement.edit.params
    )
    params_text = ", ".join(f"{name!r}: {_PARAM}" for name in params)
    folder = dag_file.absolute().parent
    outside = any(".." in _relative(file.path, folder).split("/") for file in running)
    lines = [
        '"""A task for each SQL file. To do: the order of the tasks, the schedule."""',
        "",
        "from datetime import datetime",
        "",
        f"from airflow.sdk import DAG{', Param' if params else ''}",
        "",
        *_imports(running, sources),
        "",
        *(f"{name.upper()} = file_source('...', 'parquet')  # to do" for name in sources),
        *([""] if sources else []),
        "with DAG(",
        f"    {_name(dag_file.stem)!r},",
        "    schedule=None,",
        "    start_date=datetime(2026, 1, 1),",
        *([f"    template_searchpath=[{str(_common(running))!r}],"] if outside else []),
        # Without a default: a run that is given no value must not begin.
        *([f"    params={{{params_text}}},"] if params else []),
        f"    default_args={{'catalog_conn_id': {conn_id!r}}},",
        "):",
    ]
    base = _common(running) if outside else folder
    names: list[str] = []
    for file in running:
        path = _relative(file.path, base)
        name = _name(PurePosixPath(path).with_suffix("").as_posix())
        names.append(name)
        again = f"_{names.count(name)}" if names.count(name) > 1 else ""
        lines += _task(file, f"{name}{again}", path, database, sources)
    for file in files:
        if not file.runs:
            lines.append(f"    # Not yet: {_relative(file.path, folder)}; see the report.")
        elif not file.makes_task:
            lines.append(f"    # Nothing to run is left in {_relative(file.path, folder)}.")
    if not running:
        lines.append("    pass")
    return "\n".join([*lines, ""])


def _imports(running: Sequence[FileVerdict], sources: Mapping[str, Any]) -> Iterator[str]:
    package = "airflow_provider_merge.operators"
    if any(file.is_query for file in running):
        yield f"from {package}.query import QueryOperator"
    if sources:
        yield f"from {package}.sources import file_source"
    if not all(file.is_query for file in running):
        yield f"from {package}.statements import StatementsOperator"


def _task(
    file: FileVerdict, name: str, path: str, database: str | None, sources: Mapping[str, Any]
) -> Iterator[str]:
    kind = "QueryOperator" if file.is_query else "StatementsOperator"
    conf = {k: v for each in file.statements if each.edit for k, v in each.edit.conf.items()}
    read = [name for name in sources if name in file.sources]
    yield f"    {kind}("
    yield f"        task_id={name!r},"
    yield f"        sql={path!r},"
    if database is not None:
        yield f"        database={database!r},"
    if read:
        yield f"        sources={{{', '.join(f'{name!r}: {name.upper()}' for name in read)}}},"
    if file.drops:
        yield "        allow_drop=True,"
    if conf:
        yield f"        conf={conf!r},"
    yield "    )"


def _common(running: Sequence[FileVerdict]) -> Path:
    return Path(os.path.commonpath([file.path.absolute().parent for file in running]))


def _relative(path: Path, folder: Path) -> str:
    return Path(os.path.relpath(path.absolute(), folder)).as_posix()


def _name(text: str) -> str:
    return _NO_NAME.sub("_", text).strip("_")
