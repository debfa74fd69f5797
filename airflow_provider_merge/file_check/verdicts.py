"""What becomes of each statement of SQL files, read in order and compared with metadata."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from airflow_provider_merge.checks.lines import on_line
from airflow_provider_merge.checks.requests import MetadataCheck
from airflow_provider_merge.exceptions import invalid
from airflow_provider_merge.file_check.edits import Edit, edit_of
from airflow_provider_merge.file_check.templates import MaskedText, masked, rendered, rendered_text
from airflow_provider_merge.hooks.catalog import CatalogHook
from airflow_provider_merge.hooks.source_connections import of_connection
from airflow_provider_merge.operators._shared.configured_limits import configured_limits
from airflow_provider_merge.operators._shared.source_parameters import to_named_sources
from airflow_provider_merge.operators._shared.sql_parameter import SqlOperator
from airflow_provider_merge.operators._shared.sql_scripts import require_used_catalogs
from airflow_provider_merge.operators._shared.table_operator import TableOperator
from airflow_provider_merge.operators.statement_list import operator_of
from airflow_provider_merge.sql.parser import parse_query
from airflow_provider_merge.sql.script import (
    ScriptReader,
    ScriptStatement,
    pieces,
    refuse_variables,
    spans,
)
from airflow_provider_merge.sql.text import SqlText, without_mark
from spark_jobs.contract.drop_table import DropTableSpec
from spark_jobs.contract.request import JobRequest, TableName
from spark_jobs.contract.statements import redefines
from spark_jobs.errors import JobError

_MOST_WORDS: Final = 3


@dataclass(frozen=True, slots=True)
class Verdict:
    """What becomes of one statement; it runs as it is if it has neither ``edit`` nor ``error``.

    ``line`` is that in which it begins, from 1; ``words`` are its first ones. ``written`` is its
    text in the file, from the position ``start``, and ``edit`` what to write instead.
    ``operator`` knows what it means: None for a query, and for what only matters to the statements
    behind it.
    """

    line: int
    words: str
    written: str
    operator: TableOperator | None = None
    edit: Edit | None = None
    error: JobError | None = None
    start: int = 0


@dataclass(frozen=True, slots=True)
class FileVerdict:
    """What becomes of a file; ``error`` is that of all of it: nothing of it was read.

    ``sources``: the names of those that it reads.
    """

    path: Path
    statements: tuple[Verdict, ...] = ()
    is_query: bool = False
    error: JobError | None = None
    sources: frozenset[str] = frozenset()

    @property
    def makes_task(self) -> bool:
        """Whether it runs, and does something."""
        return self.runs and (self.is_query or any(each.operator for each in self.statements))

    @property
    def drops(self) -> bool:
        """Whether it drops tables, which its task has to allow."""
        operators = (each.operator for each in self.statements)
        return any(each and isinstance(each.statement(), DropTableSpec) for each in operators)

    @property
    def runs(self) -> bool:
        """Whether all of it runs, perhaps after edits."""
        return self.error is None and not any(each.error for each in self.statements)


@dataclass(slots=True)
class FileCheck:
    """Reads files as StatementsOperator would, or QueryOperator where a file is one query.

    ``sources`` are those that tasks name, as plain dicts; ``values`` are those of templates.
    """

    hook: CatalogHook
    conn_id: str
    values: Mapping[str, Any]
    sources: Mapping[str, Any] = field(default_factory=dict)
    database: str | None = None

    def files(self, paths: Sequence[Path]) -> list[FileVerdict]:
        """A verdict for each file; tables that one creates or alters need not exist yet."""
        read = [self._file(path) for path in paths]
        made = [table for each in read for table in self._made(each)]
        check = MetadataCheck(self.hook, shares_files=True, made=made)
        return [self._compared(each, check) for each in read]

    def _file(self, path: Path) -> FileVerdict:
        try:
            text = rendered(path, self.values)
            texts = list(pieces(text))
            if len(texts) == 1 and self._is_query(texts[0]):
                refuse_variables(SqlText(texts[0]))
                names = {each.name.lower() for each in SqlText(texts[0]).tokens if each.is_name}
                read = frozenset(each for each in self.sources if each.lower() in names)
                return FileVerdict(path, (_verdict(texts[0]),), is_query=True, sources=read)
            written, reader = masked(text_of(path)), ScriptReader(self.sources, self.database)
            verdicts = tuple(self._statements(path, texts, written, reader))
            return FileVerdict(path, verdicts, sources=frozenset(reader.views.used))
        except JobError as error:
            return FileVerdict(path, error=on_line(error, "", str(path)))

    def _is_query(self, piece: str) -> bool:
        try:
            parse_query(piece, tuple(self.sources), self.database)
        except JobError:
            return False
        return True

    def _statements(
        self, path: Path, found: list[str], written: MaskedText | None, reader: ScriptReader
    ) -> Iterator[Verdict]:
        places = [] if written is None else list(spans(written.text))
        for at, piece in enumerate(found):
            original, start = "", 0
            if written is not None and len(places) == len(found):
                original, start = written.text[slice(*places[at])], places[at][0]
            text = original if written is None else written.restored(original)
            try:
                operator = self._read(path, reader, piece)
                yield _verdict(piece, text, operator=operator, start=start)
            except JobError as error:
                edit = None if written is None else self._edit(written, original)
                try:
                    if edit is None:
                        raise
                    operator = self._read(path, reader, self._edited(edit))
                except JobError:
                    yield _verdict(piece, text, error=error, start=start)
                else:
                    yield _verdict(piece, text, operator=operator, edit=edit, start=start)

    def _edit(self, written: MaskedText, original: str) -> Edit | None:
        edit = edit_of(original)
        if edit is None:
            return None
        conf = {name: written.restored(value) for name, value in edit.conf.items()}
        return replace(edit, text=written.restored(edit.text), conf=conf)

    def _edited(self, edit: Edit) -> str:
        """The edited statement with its templates filled in; "" if nothing is left."""
        # Parameters that the edit adds have no value yet: any word will do.
        params = {**dict.fromkeys(edit.params, "1"), **self.values["params"]}
        text = rendered_text(edit.text, {**self.values, "params": params})
        return next(pieces(text), "")

    def _read(self, path: Path, reader: ScriptReader, piece: str) -> TableOperator | None:
        """The operator of a statement, which has read its text."""
        if not piece:
            return None
        reader.named.clear()
        reader.formats.clear()
        statement = reader.statement(piece)
        require_used_catalogs(self.hook, reader.named, reader.formats)
        if statement is None:
            return None
        operator = self._operator(statement, path)
        operator.statement()
        return operator

    def _made(self, file: FileVerdict) -> Iterator[TableName]:
        for verdict in file.statements:
            if verdict.operator is not None and redefines(verdict.operator.statement()):
                yield verdict.operator.target_table()

    def _compared(self, file: FileVerdict, check: MetadataCheck) -> FileVerdict:
        if file.is_query:
            (query,) = file.statements
            return replace(file, statements=(self._of_query(file.path, query, check),))
        found = (self._of_metadata(file.path, each, check) for each in file.statements)
        return replace(file, statements=tuple(found))

    def _of_query(self, path: Path, query: Verdict, check: MetadataCheck) -> Verdict:
        text = rendered(path, self.values)
        try:
            given = to_named_sources(dict(self.sources))
            _, own = parse_query(text, tuple(self.sources), self.database)
            check.require_sources((*given, *own))
        except JobError as error:
            located = on_line(error, text, str(path))
            return replace(query, error=_in_file(located, str(path), path))
        return query

    def _of_metadata(self, path: Path, verdict: Verdict, check: MetadataCheck) -> Verdict:
        if verdict.error is not None:
            return replace(verdict, error=verdict.error.within(str(path)))
        if verdict.operator is None:
            return verdict
        try:
            verdict.operator.require_valid(self._request(verdict.operator), check)
        except JobError as error:
            operator = verdict.operator
            label = operator.sql_label() if isinstance(operator, SqlOperator) else ""
            return replace(verdict, error=_in_file(error, label, path))
        return verdict

    def _operator(self, statement: ScriptStatement, path: Path) -> TableOperator:
        operator = operator_of(
            {"name": path.stem, "operation": statement.operation, **statement.parameters},
            file=str(path),
            is_written=True,
            after_ended_try="skip",
            dry_run=False,
            catalog_conn_id=self.conn_id,
        )
        if operator is None:
            raise invalid("sql", "only a template tells which statement it is")
        return operator

    def _request(self, operator: TableOperator) -> JobRequest:
        request = JobRequest(
            operation_id=str(uuid.uuid4()),
            target=operator.target_table(),
            catalog=self.hook.catalog_spec(),
            statement=operator.statement(),
            sources=operator.request_sources(),
            options=operator.job_options(),
            text_limits=configured_limits(),
        )
        return of_connection(request, self.hook)


def text_of(path: Path) -> str:
    """The text of a file as it is, with the ends of its lines, but without a byte order mark."""
    return without_mark(path.read_bytes().decode())


def _in_file(error: JobError, label: str, path: Path) -> JobError:
    """The error with its place as errors of the text have theirs; tasks call the text ``label``."""
    if not label or not error.places:
        return error.within(str(path))
    first, *others = error.places
    return error.at(first.replace(f"{label},", f"{path}:").replace(label, str(path)), *others)


def _verdict(piece: str, written: str = "", **found: Any) -> Verdict:
    line = piece.count("\n", 0, len(piece) - len(piece.lstrip())) + 1
    words = " ".join(piece.split()[:_MOST_WORDS])
    if words.upper().startswith("SET "):
        # A value may be a secret.
        words = " ".join(words.partition("=")[0].split()[:2])
    return Verdict(line, words, written or piece.strip(), **found)
