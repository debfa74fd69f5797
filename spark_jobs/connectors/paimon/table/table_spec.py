"""The schema that a request asks for, and how an existing table differs from it."""

from __future__ import annotations

from collections.abc import Iterator

from spark_jobs.connectors.paimon.format.types import is_nullable, to_paimon, to_spark
from spark_jobs.connectors.paimon.library.table_schema import PaimonColumn, PaimonSchema
from spark_jobs.contract.partition_keys import IDENTITY
from spark_jobs.contract.statements import CreateTableSpec
from spark_jobs.errors import NotSupportedError


def requested_schema(spec: CreateTableSpec) -> PaimonSchema:
    """The schema that ``spec`` describes; keys get the case of their columns.

    Columns of the primary key are NOT NULL, even if the request does not say so.

    Raises:
        NotSupportedError: Paimon cannot store a type, or partition by a transform.
        AnalysisError: EXPRESSION_INVALID: the text of a type is not a type.
    """
    spelled = {column.name.lower(): column.name for column in spec.columns}
    primary_key = tuple(spelled[key.lower()] for key in spec.primary_key)
    partition = spec.partitioned_by()
    computed = next((key for key in partition if key.transform != IDENTITY), None)
    if computed is not None:
        raise NotSupportedError(
            f"partition_keys: {computed}: Paimon's tables are partitioned by columns, not by "
            "transforms.",
            "Give it a column of its own.",
        )
    return PaimonSchema(
        columns=tuple(
            PaimonColumn(
                column.name,
                to_paimon(
                    column.type,
                    column.name,
                    nullable=column.nullable and column.name not in primary_key,
                ),
                column.comment or None,
            )
            for column in spec.columns
        ),
        partition_keys=tuple(key.column for key in partition),
        primary_keys=primary_key,
        options=dict(spec.table_options),
        comment=spec.comment or None,
    )


def differences(wanted: PaimonSchema, found: PaimonSchema) -> list[str]:
    """The differences of an existing table, one phrase each; compares only requested options."""
    return [
        *_column_differences(wanted, found),
        *_order_differences(wanted, found),
        *_key_differences("partition keys", wanted.partition_keys, found.partition_keys),
        *_key_differences("primary key", wanted.primary_keys, found.primary_keys),
        *_option_differences(wanted, found),
    ]


def _column_differences(wanted: PaimonSchema, found: PaimonSchema) -> Iterator[str]:
    existing = {column.name: column for column in found.columns}
    names = {column.name for column in wanted.columns}
    for column in wanted.columns:
        if column.name not in existing:
            yield f"column {column.name} is missing"
        else:
            yield from _definition_differences(column, existing[column.name])
    for name in existing:
        if name not in names:
            yield f"column {name} was not asked for"


def _definition_differences(wanted: PaimonColumn, found: PaimonColumn) -> Iterator[str]:
    name = wanted.name
    asked, is_now = to_spark(wanted.type, name), to_spark(found.type, name)
    if asked != is_now:
        yield f"column {name} is {is_now}, not {asked}"
    if is_nullable(wanted.type) != is_nullable(found.type):
        yield f"column {name} {'admits' if is_nullable(found.type) else 'does not admit'} NULL"
    if wanted.comment != (found.comment or None):
        yield f"column {name} has {_comment(found.comment)}, not {_comment(wanted.comment)}"


def _order_differences(wanted: PaimonSchema, found: PaimonSchema) -> Iterator[str]:
    asked = [column.name for column in wanted.columns]
    is_now = [column.name for column in found.columns]
    if asked != is_now and sorted(asked) == sorted(is_now):
        yield f"the columns are in the order {', '.join(is_now)}"


def _key_differences(what: str, wanted: tuple[str, ...], found: tuple[str, ...]) -> Iterator[str]:
    if wanted != found:
        yield f"{what}: ({', '.join(found)}), not ({', '.join(wanted)})"


def _option_differences(wanted: PaimonSchema, found: PaimonSchema) -> Iterator[str]:
    for option, value in wanted.options.items():
        if found.options.get(option) != value:
            is_now = repr(found.options[option]) if option in found.options else "not set"
            yield f"option {option} is {is_now}, not {value!r}"
    if wanted.comment is not None and wanted.comment != found.comment:
        yield f"the table has {_comment(found.comment)}, not {_comment(wanted.comment)}"


def _comment(text: str | None) -> str:
    return f"the comment {text!r}" if text else "no comment"
