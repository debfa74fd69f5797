"""The values of Debezium's logical types, exactly.

Source: Debezium's documentation of temporal and decimal values; Kafka Connect's Decimal, whose
bytes are the unscaled value, big-endian, in two's complement.
"""

from __future__ import annotations

from spark_jobs.contract.cdc import CdcSource
from spark_jobs.contract.event_documents import (
    DAYS,
    MICROS,
    MILLIS,
    NANOS,
    UNSCALED,
    VARIABLE,
    RowColumn,
)
from spark_jobs.contract.source_names import source_text
from spark_jobs.engine.analysis.store_assignment import raised
from spark_jobs.engine.runtime.sql_text import text_literal
from spark_jobs.errors import ErrorCode

_PER_SECOND = {MILLIS: 1_000, MICROS: 1_000_000, NANOS: 1_000_000_000}
# Of the years 1 to 9999; the end is the first that does not belong to them.
_DAYS = (-719_162, 2_932_897)
_SECONDS = (-62_135_596_800, 253_402_300_800)
# The longest numbers of 38 digits.
_MOST_BYTES = 16
_WORD = "CAST('18446744073709551616' AS DECIMAL(20,0))"


def decoded(value: str, column: RowColumn, source: CdcSource) -> str:
    """``value``, as it stands in documents, as a value of the column's type.

    Raises, when it is evaluated:
        DataError: VALUE_NOT_STORABLE, naming column and value.
    """
    encoding = column.encoding
    if encoding == DAYS:
        told = f"date_add(DATE'1970-01-01', {value})"
        return _if_exact(_within(value, _DAYS), told, value, column, source)
    if encoding in _PER_SECOND:
        return _time(value, column, source, _PER_SECOND[encoding])
    if encoding == UNSCALED:
        scale = column.type.rpartition(",")[2].rstrip(")")
        return _decimal(value, scale, value, column, source)
    if encoding == VARIABLE:
        return _decimal(f"{value}.value", f"{value}.scale", value, column, source)
    return value


def _time(value: str, column: RowColumn, source: CdcSource, per_second: int) -> str:
    exact = f"CAST(CAST({value} AS DECIMAL(20,0)) / {per_second} AS DECIMAL(18,6))"
    start = "TIMESTAMP_NTZ'1970-01-01 00:00:00'"
    if column.type == "TIMESTAMP":
        start = "TIMESTAMP'1970-01-01 00:00:00Z'"
    told = f"{start} + make_dt_interval(0, 0, 0, {exact})"
    is_exact = is_time(value, per_second)
    if per_second > _PER_SECOND[MICROS]:
        is_exact += f" AND {value} % 1000 = 0"
    return _if_exact(is_exact, told, value, column, source)


def is_time(number: str, per_second: int) -> str:
    """Whether a number of parts of seconds since 1970 is a time of the years 1 to 9999."""
    first, end = (each * per_second for each in _SECONDS)
    return _within(number, (first, end))


def _within(number: str, bounds: tuple[int, int]) -> str:
    return f"{number} >= {bounds[0]} AND {number} < {bounds[1]}"


def _if_exact(is_exact: str, told: str, value: str, column: RowColumn, source: CdcSource) -> str:
    failure = _failure(f"CAST({value} AS STRING)", column, source)
    return f"CASE WHEN {value} IS NULL OR ({is_exact}) THEN {told} ELSE {failure} END"


def _decimal(bytes_: str, scale: str, value: str, column: RowColumn, source: CdcSource) -> str:
    digits = f"hex({bytes_})"
    sign = f"IF(conv(substring({digits}, 1, 1), 16, 10) >= 8, 'F', '0')"
    padded = f"lpad({digits}, {2 * _MOST_BYTES}, {sign})"
    high = f"CAST(conv(substring({padded}, 1, 16), 16, -10) AS DECIMAL(20,0))"
    low = f"CAST(conv(substring({padded}, 17, 16), 16, 10) AS DECIMAL(20,0))"
    # Of a negative number, the part above may have more digits than the whole.
    above = f"try_multiply({high} + IF({high} < 0, 1, 0), {_WORD})"
    whole = f"try_add({above}, {low} - IF({high} < 0, {_WORD}, 0))"
    text = f"concat(CAST({whole} AS STRING), 'E', CAST(-1 * {scale} AS STRING))"
    cast = f"TRY_CAST({text} AS {column.type})"
    is_exact = f"octet_length({bytes_}) <= {_MOST_BYTES} AND {cast} IS NOT NULL"
    column_scale = column.type.rpartition(",")[2].rstrip(")")
    if scale != column_scale:
        lost = f"greatest({scale} - {column_scale}, 0)"
        zeros = f"right(CAST({whole} AS STRING), {lost}) = repeat('0', {lost})"
        is_exact += f" AND ({lost} = 0 OR {whole} = 0 OR {zeros})"
    failure = _failure(f"to_json(struct({bytes_} AS value))", column, source)
    return f"CASE WHEN {value} IS NULL THEN NULL WHEN {is_exact} THEN {cast} ELSE {failure} END"


def _failure(shown: str, column: RowColumn, source: CdcSource) -> str:
    start = text_literal(
        f"{source_text(source)}: column {column.name}: {column.type} cannot hold exactly the value "
    )
    return raised(
        ErrorCode.VALUE_NOT_STORABLE,
        f"concat({start}, {shown})",
        "Declare a wider type in schema, and in the target.",
    )
