"""The report of the command ``check``, and the edits that it makes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from airflow_provider_merge.file_check.edits import changed_lines
from airflow_provider_merge.file_check.verdicts import FileVerdict, Verdict, text_of
from spark_jobs.errors import ErrorCode, JobError

_WIDTH: Final = 34
_WRONG: Final = "wrong"
_REFUSED: Final = "not supported"


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


def edited_text(file: FileVerdict) -> str:
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
