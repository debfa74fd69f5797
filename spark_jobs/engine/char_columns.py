"""CHAR columns in expressions: their values are padded with blanks, texts beside them are not.

Spark pads a text that it compares with a column of its own CHAR type. The frames here have STRING
columns, so such a comparison would silently be another one: it is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pyspark.sql.types import CharType, DataType

from spark_jobs.engine.catalyst import BoundExpression
from spark_jobs.errors import NotSupportedError

_COMPARISONS = (
    "EqualTo",
    "EqualNullSafe",
    "LessThan",
    "LessThanOrEqual",
    "GreaterThan",
    "GreaterThanOrEqual",
    "In",
)


def char_lengths(types: Mapping[str, DataType]) -> dict[str, int]:
    """The lengths of the CHAR columns among columns that are declared with these types."""
    return {name: kind.length for name, kind in types.items() if isinstance(kind, CharType)}


def refuse_unpadded(
    expression: BoundExpression, columns: Mapping[int, tuple[str, int]], where: str
) -> None:
    """Refuse comparisons of CHAR columns with texts of other lengths.

    ``columns`` are names and lengths of the CHAR columns by their ids in ``expression``; ``where``
    names the expression in the error.

    Raises:
        NotSupportedError: with the column and the text.
    """
    for attribute, text in _compared(expression):
        name, length = columns.get(attribute, ("", len(text)))
        if len(text) != length:
            raise NotSupportedError(
                f"{where}: {name} is CHAR({length}), whose values end in blanks, "
                f"and is compared with {text!r}, which does not have them",
                f"Compare rtrim({name}) with the text without blanks at its end, or pad the text "
                f"to {length} characters.",
            )


def _compared(node: BoundExpression) -> Iterator[tuple[int, str]]:
    """The ids of columns, and the texts to which they are compared."""
    if node.kind in _COMPARISONS:
        columns = [each.attribute for each in node.children if each.attribute is not None]
        texts = [each.text for each in node.children if each.text is not None]
        yield from ((column, text) for column in columns for text in texts)
    for child in node.children:
        yield from _compared(child)
