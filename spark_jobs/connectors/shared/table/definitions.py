"""Creates a table, or tells people how an existing one differs from what a request describes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from spark_jobs.contract.request import TableName
from spark_jobs.errors import CatalogError, ErrorCode
from spark_jobs.spi.tables import Column


def create_then_compare(
    name: TableName, create: Callable[[], bool] | None, differences: Callable[[], Sequence[str]]
) -> bool:
    """Whether ``create`` made the table, which is as it is wanted; None: there is a table.

    Raises:
        CatalogError: TABLE_DIFFERS, listing every difference.
    """
    created = create is not None and create()
    # Compare in both cases: another job may have created the table at the same time.
    differing_parts = differences()
    if differing_parts:
        raise CatalogError(
            ErrorCode.TABLE_DIFFERS,
            f"Table {name} exists, but differs: {'; '.join(differing_parts)}.",
            "Change the definition to what the table is, or alter the table.",
        )
    return created


def column_differences(wanted: Sequence[Column], found: Sequence[Column]) -> Iterator[str]:
    """The differences of columns, by name: missing ones, others, types, comments, their order."""
    existing = {column.name: column for column in found}
    asked = [column.name for column in wanted]
    for column in wanted:
        if column.name not in existing:
            yield f"column {column.name} is missing"
        else:
            yield from _of_column(column, existing[column.name])
    for name in existing:
        if name not in asked:
            yield f"column {name} was not asked for"
    is_now = list(existing)
    if asked != is_now and sorted(asked) == sorted(is_now):
        yield f"the columns are in the order {', '.join(is_now)}"


def _of_column(wanted: Column, found: Column) -> Iterator[str]:
    name = wanted.name
    if wanted.type != found.type:
        yield f"column {name} is {found.type}, not {wanted.type}"
    if wanted.nullable != found.nullable:
        yield f"column {name} {'admits' if found.nullable else 'does not admit'} NULL"
    yield from comment_differences(f"column {name}", wanted.comment, found.comment)


def default_differences(wanted: Mapping[str, str], found: Mapping[str, str]) -> Iterator[str]:
    """The differences of the defaults that are wanted, by column."""
    for column, default in wanted.items():
        if found.get(column) != default:
            is_now = f"the default {found[column]}" if column in found else "no default"
            yield f"column {column} has {is_now}, not the default {default}"


def comment_differences(what: str, wanted: str | None, found: str | None) -> Iterator[str]:
    """The difference of a comment; an empty one is none."""
    if (wanted or None) != (found or None):
        yield f"{what} has {_comment(found)}, not {_comment(wanted)}"


def name_differences(what: str, wanted: Sequence[str], found: Sequence[str]) -> Iterator[str]:
    """The difference of a list of names, whose case does not matter."""
    if [each.lower() for each in wanted] != [each.lower() for each in found]:
        yield f"{what}: ({', '.join(found)}), not ({', '.join(wanted)})"


def option_differences(wanted: Mapping[str, str], found: Mapping[str, str]) -> Iterator[str]:
    """The differences of the options that are wanted."""
    for option, value in wanted.items():
        if found.get(option) != value:
            is_now = repr(found[option]) if option in found else "not set"
            yield f"option {option} is {is_now}, not {value!r}"


def _comment(text: str | None) -> str:
    return f"the comment {text!r}" if text else "no comment"
