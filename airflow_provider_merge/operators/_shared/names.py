"""References to a side of the merge that does not exist, found in the text of expressions.

Only what is wrong for sure is reported: without the schemas, ``address.city`` may be a field of a
struct column. The analyzer in the job checks every name against the schemas.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from airflow_provider_merge.exceptions import invalid
from spark_jobs.contract.request import Source, TableName, TableSource
from spark_jobs.contract.sql_text import unquoted
from spark_jobs.contract.statements import (
    DeleteSpec,
    InsertAction,
    MergeCase,
    MergeSpec,
    UpdateAction,
    UpdateSpec,
    When,
)

_IGNORED = re.compile(
    r"""'(?:[^'\\]|\\.|'')*' | "(?:[^"\\]|\\.|"")*" | --[^\n]* | /\*.*?(?:\*/|\Z)""",
    re.VERBOSE | re.DOTALL,
)
# The first two parts of a dotted name that is neither a number nor a function.
_QUALIFIED = re.compile(
    r"""(?<![\w.`]) (`(?:[^`]|``)+` | [A-Za-z_]\w*) \s*\.\s* (?:`(?:[^`]|``)+` | [A-Za-z_]\w*\b)
        (?!\s*\() """,
    re.VERBOSE,
)
# Lambda variables and subqueries have names of their own: nothing is certain there.
_OWN_NAMES = re.compile(r"->|\bselect\b", re.IGNORECASE)


def qualifiers(text: str) -> set[str]:
    """The lower-case first parts of all dotted names; empty where nothing is certain."""
    plain = _IGNORED.sub(" ", text)
    if _OWN_NAMES.search(plain):
        return set()
    return {unquoted(match[1]).lower() for match in _QUALIFIED.finditer(plain)}


def check_names(
    spec: MergeSpec, target: TableName, sources: tuple[Source, ...], *, is_text: bool = False
) -> None:
    """Check the qualified names in ON, conditions and values.

    ``is_text``: the statement was SQL text, so errors count the clauses and name no ``when``.

    Raises:
        RequestError: REQUEST_INVALID, naming the field, the name and the aliases.
    """
    aliases = {spec.target_alias.lower(), spec.source_alias.lower()}
    source = next((each for each in sources if each.name == spec.source), None)
    hidden = {target.table.lower()}
    if isinstance(source, TableSource):
        hidden.add(source.table.table.lower())
    texts = list(_texts(spec, is_text))
    for text in texts:
        for name in sorted(qualifiers(text.text) & (hidden - aliases)):
            raise _unknown(text.field, name, spec)
    _check_on(texts[0], spec, aliases)
    for text in texts:
        _check_sides(text, spec)


def check_row_names(
    spec: DeleteSpec | UpdateSpec, target: TableName, *, is_text: bool = False
) -> None:
    """Check that WHERE and values call the table by its alias; raises alike."""
    name, alias = target.table.lower(), spec.target_alias
    if name == alias.lower():
        return
    texts = [("sql: WHERE" if is_text else "where", spec.where or "")]
    if isinstance(spec, UpdateSpec):
        place = "sql: value of {}" if is_text else "set.{}"
        texts += [(place.format(each.column), each.value) for each in spec.assignments]
    for field, text in texts:
        if name in qualifiers(text):
            raise invalid(
                field,
                f"unknown alias {name!r}; the target is called {alias!r}",
                f"For a struct column of that name write {alias}.{name}.",
            )


@dataclass(frozen=True, slots=True)
class _Text:
    """An expression of a statement; ``when`` None: that of ON."""

    field: str
    text: str
    when: When | None = None


def _check_on(on: _Text, spec: MergeSpec, aliases: set[str]) -> None:
    """A name of neither side stands in ON, while a side is not mentioned at all."""
    used = qualifiers(on.text)
    unknown = sorted(used - aliases)
    if unknown and not aliases <= used:
        raise _unknown(on.field, unknown[0], spec)


def _check_sides(text: _Text, spec: MergeSpec) -> None:
    """NOT MATCHED sees only the source, NOT MATCHED BY SOURCE only the target."""
    unseen = {"not_matched": spec.target_alias, "not_matched_by_source": spec.source_alias}
    alias = unseen.get(text.when or "")
    if alias is not None and alias.lower() in qualifiers(text.text):
        clause = "WHEN " + str(text.when).replace("_", " ").upper()
        problem = f"{clause} has no row of {alias!r}, which {text.text!r} refers to"
        raise invalid(text.field, problem)


def _texts(spec: MergeSpec, is_text: bool) -> Iterator[_Text]:
    yield _Text("sql: ON" if is_text else "on", spec.on)
    for index, case in enumerate(spec.cases):
        place = f"sql: clause {index + 1}, " if is_text else f"when[{index}]."
        for part, text in _case_texts(case, is_text):
            yield _Text(place + part, text, case.when)


def _case_texts(case: MergeCase, is_text: bool) -> Iterator[tuple[str, str]]:
    if case.condition is not None:
        yield "condition", case.condition
    if isinstance(case.action, UpdateAction):
        for number, assignment in enumerate(case.action.assignments):
            field = f"action.assignments[{number}].value"
            yield f"value of {assignment.column}" if is_text else field, assignment.value
    if isinstance(case.action, InsertAction):
        for number, value in enumerate(case.action.values):
            yield f"value {number + 1}" if is_text else f"action.values[{number}]", value


def _unknown(field: str, name: str, spec: MergeSpec) -> Exception:
    return invalid(
        field,
        f"unknown alias {name!r}; the target is called {spec.target_alias!r}, the source "
        f"{spec.source_alias!r}",
        f"For a struct column of that name write {spec.target_alias}.{name} or "
        f"{spec.source_alias}.{name}.",
    )
