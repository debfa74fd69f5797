"""Change events that are documents of Debezium, Maxwell or Canal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spark_jobs.contract.source_names import source_text
from spark_jobs.errors import NotSupportedError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from spark_jobs.contract.cdc import CdcSource


def document_rows(source: CdcSource, rows: DataFrame) -> DataFrame:
    """The rows of documents."""
    raise NotSupportedError(f"{source_text(source)}: format {source.format} is not read yet.", "")
