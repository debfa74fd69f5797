"""CHAR columns: their values are padded with blanks, and Spark pads what it compares with them.

In frames they are STRING columns. Frames of sources keep the declared length where Spark looks for
it, so queries over sources compare as Spark does. The expressions of a statement are evaluated on
other frames, without the length, so a comparison that Spark would pad there is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import CharType, DataType, StructField, StructType

from spark_jobs.contract.sql_text import quote
from spark_jobs.engine.analysis.catalyst_nodes import DECLARED_TYPE, Operand, char_length
from spark_jobs.errors import NotSupportedError


def char_lengths(types: Mapping[str, DataType]) -> dict[str, int]:
    """The lengths of the CHAR columns, given the declared types by column."""
    return {name: kind.length for name, kind in types.items() if isinstance(kind, CharType)}


def noted_lengths(schema: StructType) -> dict[str, int]:
    """The lengths of a frame's columns that Spark knows as CHAR."""
    found = {each.name: char_length(each.metadata.get(DECLARED_TYPE, "")) for each in schema}
    return {name: length for name, length in found.items() if length is not None}


def without_lengths(schema: StructType) -> StructType:
    """``schema`` without metadata, so that Spark does not know its columns as CHAR."""
    return StructType([StructField(each.name, each.dataType, each.nullable) for each in schema])


def with_noted_lengths(frame: DataFrame, lengths: Mapping[str, int]) -> DataFrame:
    """``frame`` with columns of these lengths known to Spark as CHAR; values are already padded."""
    return _with_columns(frame, lengths, {name: F.col(quote(name)) for name in lengths})


def padded(frame: DataFrame, lengths: Mapping[str, int]) -> DataFrame:
    """As ``with_noted_lengths``, for a frame whose values may lack their padding."""
    values = {name: _padded(F.col(quote(name)), length) for name, length in lengths.items()}
    return _with_columns(frame, lengths, values)


def _padded(value: Column, length: int) -> Column:
    """``value`` padded with blanks; a longer one stays as it is and is checked when stored."""
    return F.when(F.char_length(value) < length, F.rpad(value, length, " ")).otherwise(value)


def _with_columns(
    frame: DataFrame, lengths: Mapping[str, int], values: Mapping[str, Column]
) -> DataFrame:
    if not lengths:
        return frame
    return frame.select(
        *(
            values[name].alias(name, metadata={DECLARED_TYPE: f"char({lengths[name]})"})
            if name in lengths
            else F.col(quote(name))
            for name in frame.columns
        )
    )


def refuse_unpadded(
    comparisons: Iterable[Sequence[Operand]], columns: Mapping[int, tuple[str, int]], where: str
) -> None:
    """Refuse comparisons of CHAR columns with string literals or CHAR columns of other lengths.

    ``columns`` are the names and lengths of the statement's own CHAR columns, by id; ``where``
    names the expression in the error.

    Raises:
        NotSupportedError: names the column and what it is compared with.
    """
    for operands in comparisons:
        for one in operands:
            if one.attribute is not None and one.attribute in columns:
                name, length = columns[one.attribute]
                for other in operands:
                    _require_length(name, length, other, columns, where)


def _require_length(
    name: str, length: int, other: Operand, columns: Mapping[int, tuple[str, int]], where: str
) -> None:
    problem = f"{where}: {name} is CHAR({length}), whose values end in blanks, and is compared with"
    if other.text is not None and len(other.text) != length:
        raise NotSupportedError(
            f"{problem} {other.text!r}, which does not have them",
            f"Compare rtrim({name}) with the text without blanks at its end, or pad the text "
            f"to {length} characters.",
        )
    known = other.name, other.char_length
    other_name, other_length = (
        known if other.attribute is None else columns.get(other.attribute, known)
    )
    if other_length is not None and other_length != length:
        raise NotSupportedError(
            f"{problem} {other_name}, which is CHAR({other_length})",
            f"Compare rtrim({name}) with rtrim({other_name}).",
        )
