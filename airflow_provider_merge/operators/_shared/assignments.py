"""Assignments that contradict each other, found in the names alone.

Without the schemas only equal names, and a struct beside its own field, are sure; the analyzer in
the job resolves every name.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from airflow_provider_merge.sql.lexer import LexicalError, tokenize
from spark_jobs.contract.statements import (
    DeleteSpec,
    InsertAction,
    MergeSpec,
    UpdateAction,
    UpdateSpec,
)
from spark_jobs.errors import ErrorCode, error_of

Path = tuple[str, ...]


def check_assignments(spec: MergeSpec | UpdateSpec | DeleteSpec, *, is_text: bool = False) -> None:
    """Check that no column is assigned twice, and no struct together with a field of it.

    ``is_text``: the statement was SQL text, so errors count the clauses and name no ``when``.

    Raises:
        AnalysisError: DUPLICATE_ASSIGNMENT, naming the place and the column.
    """
    for place, columns in _assigned(spec, is_text):
        paths: list[Path] = []
        for column in columns:
            path = _path(column, spec.target_alias)
            for other in paths:
                if path and path[: len(other)] == other[: len(path)]:
                    raise _conflict(place, path, other)
            paths += [path] if path else []


def _assigned(
    spec: MergeSpec | UpdateSpec | DeleteSpec, is_text: bool
) -> Iterator[tuple[str, Sequence[str]]]:
    if isinstance(spec, UpdateSpec):
        yield "sql: SET" if is_text else "set", [each.column for each in spec.assignments]
    if isinstance(spec, MergeSpec):
        for index, case in enumerate(spec.cases):
            place = f"sql: clause {index + 1}" if is_text else f"when[{index}]"
            if isinstance(case.action, UpdateAction):
                yield place, [each.column for each in case.action.assignments]
            if isinstance(case.action, InsertAction):
                yield place, case.action.columns


def _path(column: str, alias: str) -> Path:
    """The parts of a column's name in lower case, without the alias; empty if they are not sure."""
    try:
        *tokens, _ = tokenize(column)
    except LexicalError:
        return ()
    dots = all(token.is_symbol(".") for token in tokens[1::2])
    if not (dots and len(tokens) % 2 and all(token.is_name for token in tokens[::2])):
        return ()
    path = tuple(token.name.lower() for token in tokens[::2])
    return path[1:] if len(path) > 1 and path[0] == alias.lower() else path


def _conflict(place: str, one: Path, other: Path) -> Exception:
    shorter, longer = sorted((".".join(one), ".".join(other)), key=len)
    problem = (
        f"{shorter} is assigned twice"
        if one == other
        else f"both {shorter} and its field {longer} are assigned"
    )
    return error_of(
        ErrorCode.DUPLICATE_ASSIGNMENT, f"{place}: {problem}", "Assign each column once."
    )
