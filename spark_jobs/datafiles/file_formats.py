"""The format of a data file, by the end of its name, as readers of table formats go."""

from __future__ import annotations


def is_parquet(path: str) -> bool:
    """Whether a data file is parquet, which Spark reads."""
    return path.endswith(".parquet")


def is_orc(path: str) -> bool:
    """Whether a data file is ORC."""
    return path.endswith(".orc")


def is_avro(path: str) -> bool:
    """Whether a data file is Avro."""
    return path.endswith(".avro")


def is_for_pyarrow(path: str) -> bool:
    """Whether a data file is of a format that Spark does not read here: ORC or Avro."""
    return is_orc(path) or is_avro(path)
