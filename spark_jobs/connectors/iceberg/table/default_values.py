"""The defaults of new rows, as Spark evaluates them. Driver only."""

from __future__ import annotations

from spark_jobs.connectors.iceberg.format.schema import IcebergField, spark_type


def default_text(field: IcebergField) -> str | None:
    """The write default of a column that Spark has, as an expression; None: it has none.

    Raises:
        ValueError: it is not the JSON of a primitive value.
    """
    value = field.write_default
    if value is None:
        return None
    if not field.type.is_primitive or isinstance(value, dict | list):
        raise ValueError(f"the default of {field.name} is not that of a primitive type")
    if field.type.name == "binary":
        return f"X'{bytes.fromhex(value).hex()}'"
    text = str(value).lower() if isinstance(value, bool) else str(value)
    # The session's settings decide what a backslash means in a literal, but not in bytes.
    return f"CAST(CAST(X'{text.encode().hex()}' AS STRING) AS {spark_type(field.type)})"
