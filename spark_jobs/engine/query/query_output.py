"""The files of a query: all rows, in a new folder of its own. Driver only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow.fs as pafs

from spark_jobs.arrow_types import arrow_schema
from spark_jobs.contract.operation_files import is_scratch_of, new_output_folder
from spark_jobs.engine.query.json_values import csv_column, is_nested
from spark_jobs.engine.query.output_writer import OUTPUT_REPORT, OutputWriter
from spark_jobs.engine.runtime.arrow_batches import arrow_batches
from spark_jobs.engine.source.materialized import refuse_unstorable
from spark_jobs.engine.source.source_files import located_folder
from spark_jobs.engine.write.derivation import by_position
from spark_jobs.errors import (
    AnalysisError,
    ErrorCode,
    InternalError,
    NotSupportedError,
)
from spark_jobs.spi.arrow_tasks import map_in_arrow
from spark_jobs.storage.files import make_folder, remove_folder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from spark_jobs.contract.query import OutputFormat, QuerySpec
    from spark_jobs.engine.runtime.lease import Lease
    from spark_jobs.spi.connector import Connector


@dataclass(frozen=True, slots=True)
class QueryOutput:
    """The folder of one run of a query: ``path`` in ``filesystem``, of the name ``location``."""

    filesystem: pafs.FileSystem
    path: str
    location: str
    format: OutputFormat

    def write(self, frame: DataFrame, lease: Lease) -> int:
        """Write all rows, of the run that holds ``lease``; return their number.

        Either the folder has every row once, or there is no folder.

        Raises:
            AnalysisError, NotSupportedError: a column that such files cannot have.
            CommitError: RUN_GIVEN_UP, another try of the operation has begun.
            InternalError: STORAGE_UNAVAILABLE, the folder cannot be made.
        """
        fitting = self._fitting(frame)
        writer = OutputWriter(self.filesystem, self.path, self.format, lease, tuple(frame.columns))
        self._make_folder()
        try:
            with arrow_batches(fitting):
                reports = map_in_arrow(fitting, writer, OUTPUT_REPORT).collect()
            lease.require()
            # From now on no late task leaves a file; those of tasks that failed are removed.
            lease.end()
            self._remove_all_but([report["file"] for report in reports])
            if not reports:
                writer.write_empty(arrow_schema(fitting.schema))
        except BaseException:
            lease.end()
            remove_folder(self.filesystem, self.path)
            raise
        return sum(report["row_count"] for report in reports)

    def _fitting(self, frame: DataFrame) -> DataFrame:
        """The rows as the files have them, with columns by position."""
        fields = frame.schema.fields
        names = [field.name.lower() for field in fields]
        for field in fields:
            if names.count(field.name.lower()) > 1:
                raise AnalysisError(
                    ErrorCode.AMBIGUOUS_REFERENCE,
                    f"output_path: the query has two columns called {field.name}",
                    "Give one of them another name, with AS.",
                )
        if self.format != "csv":
            refuse_unstorable(fields)
            return by_position(frame)
        for field in fields:
            if is_nested(field.dataType):
                raise NotSupportedError(
                    f"output_format: csv has no place for the column {field.name}, which is "
                    f"{field.dataType.simpleString()}",
                    "Write parquet, or wrap the column in to_json(...).",
                )
        return by_position(frame).select(
            *[csv_column(f"c{i}", field.dataType) for i, field in enumerate(fields)]
        )

    def _make_folder(self) -> None:
        try:
            make_folder(self.filesystem, self.path)
        except OSError as error:
            raise InternalError(
                ErrorCode.STORAGE_UNAVAILABLE,
                f"output_path: the folder {self.location} cannot be made: {error}",
                "See that the job may write there.",
            ) from error

    def _remove_all_but(self, names: Sequence[str]) -> None:
        folder = pafs.FileSelector(self.path, allow_not_found=True)
        for info in self.filesystem.get_file_info(folder):
            if info.base_name not in names:
                self.filesystem.delete_file(info.path)


def query_output(
    spark: SparkSession, connector: Connector, spec: QuerySpec, operation_id: str
) -> QueryOutput | None:
    """The folder for this run of the query, which is not made yet; None without ``output_path``.

    What earlier tries of the operation left is removed: no task has heard of it.

    Raises:
        NotSupportedError: Python cannot reach the place.
    """
    if spec.output_path is None:
        return None
    place = located_folder(spark, connector, spec.output_path)
    if place is None:
        raise NotSupportedError(
            f"output_path: {spec.output_path} is neither a local path nor on a storage that the "
            "catalog connection knows.",
            "Name a folder there.",
        )
    for info in place.filesystem.get_file_info(pafs.FileSelector(place.path, allow_not_found=True)):
        if is_scratch_of(operation_id, info.base_name):
            remove_folder(place.filesystem, info.path)
    folder = new_output_folder(operation_id)
    location = f"{spec.output_path.rstrip('/')}/{folder}"
    return QueryOutput(place.filesystem, f"{place.path}/{folder}", location, spec.output_format)
