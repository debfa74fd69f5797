"""References to a side of the merge that does not exist, found in the text of expressions.

Only what is wrong for sure is reported: without the schemas, ``address.city`` may be a field of a
struct column. The analyzer in the job checks every name against the schemas.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from airflow_provider_merge.exceptions import invalid
from spark_jobs.contract.request import Source, TableName, TableSource
from spark_jobs.contract.statements import InsertAction, MergeCase, MergeSpec, UpdateAction

_IGNORED = re.compile(
    r"""'(?:[^'\\]|\\.|'')*' | "(?:[^"\\]|\\.|"")*" | --[^\n]* | /\*.*?\*/""",
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
    return {match[1].strip("`").replace("``", "`").lower() for match in _QUALIFIED.finditer(plain)}


def check_names(spec: MergeSpec, target: TableName, sources: tuple[Source, ...]) -> None:
    """Check the qualified names in ON, conditions and values.

    Raises:
        RequestError: REQUEST_INVALID, naming the field, the name and the aliases.
    """
    aliases = {spec.target_alias.lower(), spec.source_alias.lower()}
    hidden = {target.table.lower()}
    if isinstance(sources[-1], TableSource):
        hidden.add(sources[-1].table.table.lower())
    for field, text in _texts(spec):
        for name in sorted(qualifiers(text) & (hidden - aliases)):
            raise _unknown(field, name, spec)
    _check_on(spec, aliases)
    for index, case in enumerate(spec.cases):
        _check_sides(index, case, spec)


def _check_on(spec: MergeSpec, aliases: set[str]) -> None:
    """A name of neither side stands in ON, while a side is not mentioned at all."""
    used = qualifiers(spec.on)
    unknown = sorted(used - aliases)
    if unknown and not aliases <= used:
        raise _unknown("on", unknown[0], spec)


def _check_sides(index: int, case: MergeCase, spec: MergeSpec) -> None:
    """NOT MATCHED sees only the source, NOT MATCHED BY SOURCE only the target."""
    unseen = {"not_matched": spec.target_alias, "not_matched_by_source": spec.source_alias}
    alias = unseen.get(case.when)
    if alias is None:
        return
    for field, text in _case_texts(index, case):
        if alias.lower() in qualifiers(text):
            clause = "WHEN " + case.when.replace("_", " ").upper()
            raise invalid(field, f"{clause} has no row of {alias!r}, which {text!r} refers to")


def _texts(spec: MergeSpec) -> Iterator[tuple[str, str]]:
    yield "on", spec.on
    for index, case in enumerate(spec.cases):
        yield from _case_texts(index, case)


def _case_texts(index: int, case: MergeCase) -> Iterator[tuple[str, str]]:
    if case.condition is not None:
        yield f"when[{index}].condition", case.condition
    if isinstance(case.action, UpdateAction):
        for number, assignment in enumerate(case.action.assignments):
            yield f"when[{index}].action.assignments[{number}].value", assignment.value
    if isinstance(case.action, InsertAction):
        for number, value in enumerate(case.action.values):
            yield f"when[{index}].action.values[{number}]", value


def _unknown(field: str, name: str, spec: MergeSpec) -> Exception:
    return invalid(
        field,
        f"unknown alias {name!r}; the target is called {spec.target_alias!r}, the source "
        f"{spec.source_alias!r}",
        f"For a struct column of that name write {spec.target_alias}.{name} or "
        f"{spec.source_alias}.{name}.",
    )
