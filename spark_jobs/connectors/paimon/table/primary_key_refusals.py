"""Refuses tables with a primary key whose records this connector cannot merge or write.

docs/primary-key.md explains each case.
"""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Final

from spark_jobs.connectors.paimon.format.types import atomic_parts
from spark_jobs.connectors.paimon.keyed.aggregates import FUNCTIONS
from spark_jobs.connectors.paimon.library.table_schema import PaimonColumn, PaimonSchema
from spark_jobs.connectors.paimon.table.primary_key import merge_engine, trimmed_key
from spark_jobs.contract.request import TableName
from spark_jobs.formats.paimon.refused_options import key_problems, refusal_of_key

_ENGINES: Final = ("deduplicate", "first-row", "partial-update", "aggregation")
_FLOATING: Final = ("FLOAT", "DOUBLE")
_FOLDED: Final = ("sum", "max", "min")
_NUMBERS: Final = ("TINYINT", "SMALLINT", "INT", "BIGINT", "DECIMAL", "FLOAT", "DOUBLE")


def refuse_primary_key(name: TableName, schema: PaimonSchema) -> None:
    """Refuse a primary key, or options of its table, that this connector does not support.

    Raises:
        NotSupportedError: the table is refused; gives the reason.
    """
    if not schema.primary_keys:
        return
    for problem in _problems(schema):
        raise refusal_of_key(name, schema.primary_keys, problem)


def _problems(schema: PaimonSchema) -> Iterator[str]:
    """What is not supported; each continues a sentence about the table."""
    yield from _of_buckets(schema)
    yield from _of_key(schema)
    yield from key_problems(schema.options)
    yield from _of_engine(schema)


def _of_buckets(schema: PaimonSchema) -> Iterator[str]:
    bucket = schema.options.get("bucket", "-1")
    if bucket not in ("-1", "-2") and (not bucket.isdecimal() or int(bucket) == 0):
        yield f"a number of buckets that there is not (option bucket = {bucket})"
    missing = [key for key in schema.partition_keys if key not in schema.primary_keys]
    if missing:
        yield f"the partition key {missing[0]}, which is not part of it (cross-partition key)"


def _of_key(schema: PaimonSchema) -> Iterator[str]:
    for column in _columns(schema, trimmed_key(schema)):
        kind = atomic_parts(column.type)[0] if isinstance(column.type, str) else "nested"
        if kind in _FLOATING or kind == "nested":
            yield f"the key column {column.name} of a {kind} type"
    outside = [key for key in schema.bucket_key if key not in trimmed_key(schema)]
    if outside:
        yield f"the bucket key {outside[0]}, which is not part of it"


def _of_engine(schema: PaimonSchema) -> Iterator[str]:
    kind = schema.options.get("merge-engine", "deduplicate").lower()
    if kind not in _ENGINES:
        yield f"the option merge-engine = {kind}"
    elif kind == "first-row":
        if schema.marks_rows:
            yield "the merge engine first-row with deletion vectors"
        if merge_engine(schema).sequence_fields:
            yield "the merge engine first-row with sequence.field"
        producer = schema.options.get("changelog-producer", "none").strip().lower()
        if producer in ("input", "full-compaction"):
            yield f"the merge engine first-row with changelog-producer = {producer}"
    elif kind == "partial-update":
        for option in schema.options:
            if fnmatchcase(option, "fields.*aggregate-function"):
                yield f"the option {option} beside merge-engine = {kind}"
    elif kind == "aggregation":
        yield from _of_functions(schema)


def _of_functions(schema: PaimonSchema) -> Iterator[str]:
    functions = merge_engine(schema).functions
    for column in _columns(schema, tuple(functions)):
        function = functions[column.name]
        type_name = atomic_parts(column.type)[0] if isinstance(column.type, str) else "nested"
        if function not in FUNCTIONS:
            yield f"the aggregate function {function} of column {column.name}"
        elif function == "sum" and type_name not in _NUMBERS:
            yield f"the aggregate function sum of column {column.name}, which is not a number"
        elif function in _FOLDED and type_name in ("nested", *_FLOATING):
            yield f"the aggregate function {function} of column {column.name} of type {type_name}"


def _columns(schema: PaimonSchema, names: tuple[str, ...]) -> Iterator[PaimonColumn]:
    return (column for column in schema.columns if column.name in names)
