"""Reading a file source as a statement does, up to its rows."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_jobs.contract.inserts import InsertIntoSpec
from spark_jobs.contract.operation_files import new_scratch_folder
from spark_jobs.contract.request import CatalogSpec, FileSource, JobRequest, TableName
from spark_jobs.engine.analysis.statement_time import StatementTime
from spark_jobs.engine.runtime.failures import translated
from spark_jobs.engine.runtime.older_spark import collected_as_arrow
from spark_jobs.engine.runtime.operations import OperationLog
from spark_jobs.engine.runtime.progress import Progress
from spark_jobs.engine.runtime.session import fixed_settings, meaningful_settings
from spark_jobs.engine.source.sources import Sources
from spark_jobs.errors import JobError
from spark_jobs.spi.connector import Connector
from tests.support.source_traps import Rows, Trap


def evaluated(
    spark: SparkSession, connector: Connector, target: TableName, source: FileSource
) -> Sources:
    """The source, opened and landed beside the table ``target``."""
    request = JobRequest(
        operation_id="operation-1",
        target=target,
        catalog=CatalogSpec("paimon", "/unused"),
        statement=InsertIntoSpec(source.name),
        sources=(source,),
    )
    handle = connector.metadata.load_table(target)
    moment = StatementTime(spark)
    log = OperationLog(connector.storage)
    folder = new_scratch_folder(request.operation_id, 1)
    log.lease(folder).take()
    sources = Sources(spark, connector, request, handle, folder, Progress(), moment)
    sources.open()
    sources.land()
    return sources


def rows_of(
    spark: SparkSession, connector: Connector, target: TableName, source: FileSource
) -> Rows:
    """The source's rows, in a fixed order; timestamps are UTC.

    Raises:
        JobError: as a statement would.
    """
    try:
        with fixed_settings(spark, meaningful_settings("UTC")):
            frame = evaluated(spark, connector, target, source)[source.name].frame
            found = collected_as_arrow(frame).to_pylist()
    except Exception as error:
        raise translated(error) from error
    finally:
        spark.catalog.dropTempView(source.name)
    rows: list[tuple[Any, ...]] = [tuple(row.values()) for row in found]
    return sorted(rows, key=repr)


def check_trap(
    spark: SparkSession, connector: Connector, target: TableName, trap: Trap, path: str
) -> None:
    """The trap at ``path`` does what it says."""
    source = FileSource("s", path, trap.format, trap.options, trap.schema)
    if trap.code is None:
        assert rows_of(spark, connector, target, source) == trap.rows
        return
    with pytest.raises(JobError) as raised:
        rows_of(spark, connector, target, source)
    error = raised.value
    assert trap.code in ("*", error.code.name), error
    assert [text for text in trap.says if text not in error.message] == [], error
    # `mode` would take whatever comes; a remedy names what is meant for the trap.
    named = [name for name in trap.accepting if name != "mode"]
    assert [name for name in named if name not in error.remedy] == [], error
    if trap.accepting:
        options = {**trap.options, **trap.accepting}
        accepted = FileSource("s", path, trap.format, options, trap.schema)
        assert rows_of(spark, connector, target, accepted) == trap.rows
