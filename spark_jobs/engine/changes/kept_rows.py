"""Rows for other tables than the target, in files that are there until their table has them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow.fs as pafs
from pyspark.sql.types import StructType

from spark_jobs.contract.operation_files import FOLDER, new_side_part, operation_of_side_folder
from spark_jobs.contract.side_outputs import SideKind, SideOutput
from spark_jobs.engine.source.materialized import materialize, spilled_frame
from spark_jobs.errors import CatalogError, ErrorCode
from spark_jobs.storage.files import read_file, remove_folder, replace_file

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from spark_jobs.engine.write.statement_run import StatementRun
    from spark_jobs.spi.storage import WarehouseStorage

_NOTE: Final = "rows.json"


@dataclass(frozen=True, slots=True)
class KeptRows:
    """What stands in a folder beside the rows, so that nothing else has to be known of them.

    ``operation_id`` is about to commit ``target``, on the snapshot ``base``, and leaves ``rows``
    rows for ``table``. ``files`` are names in the folder, ``schema`` is Spark's as JSON, and
    ``stored_names`` are the names of its columns in the files.
    """

    operation_id: str
    target: str
    base: int | None
    kind: SideKind
    table: str
    rows: int
    files: Sequence[str]
    schema: str
    stored_names: Mapping[str, str]

    def frame(self, spark: SparkSession, storage: WarehouseStorage, folder: str) -> DataFrame:
        """The rows."""
        fields = StructType.fromJson(json.loads(self.schema)).fields
        names = [f"{folder}/{name}" for name in self.files]
        return spilled_frame(spark, storage, names, fields, self.stored_names)


def keep(
    run: StatementRun[Any], spark: SparkSession, kind: SideKind, table: str, frame: DataFrame
) -> SideOutput:
    """Store the rows of ``frame``, which ``run`` leaves for ``table``, in its folder for them.

    Raises:
        CommitError: RUN_GIVEN_UP.
        InternalError: STORAGE_UNAVAILABLE.
    """
    storage, folder = run.connector.storage, new_side_part(run.side_folder, kind)
    materialized = materialize(spark, frame, frame.columns, storage, run.scratch, folder)
    start = f"{storage.root}/{folder}/"
    note = KeptRows(
        operation_id=run.operation.operation_id,
        target=str(run.table.name),
        base=run.table.snapshot_id,
        kind=kind,
        table=table,
        rows=materialized.row_count,
        files=[path.removeprefix(start) for path in materialized.files],
        schema=frame.schema.json(),
        stored_names=dict(materialized.stored_names),
    )
    # Last, so that rows with a note are whole.
    replace_file(storage.filesystem, f"{start}{_NOTE}", json.dumps(asdict(note)).encode())
    return SideOutput(kind, table, folder, materialized.row_count)


def kept_rows(storage: WarehouseStorage, folder: str) -> KeptRows | None:
    """What stands in ``folder``; None: it is gone, or was not finished.

    Raises:
        CatalogError: METADATA_UNREADABLE.
    """
    path = f"{storage.root}/{folder}/{_NOTE}"
    try:
        return KeptRows(**json.loads(read_file(storage.filesystem, path)))
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, RecursionError) as error:
        raise CatalogError(
            ErrorCode.METADATA_UNREADABLE,
            f"{path}, which says what rows are kept there, is not readable: {error}",
            "Look which release of this project wrote it.",
        ) from error


def side_folders(
    storage: WarehouseStorage, catalog: str, operation_id: str | None = None
) -> list[str]:
    """The folders in the workspace of rows for other tables, of one operation or of all.

    ``catalog``: its mark.
    """
    selector = pafs.FileSelector(f"{storage.root}/{FOLDER}", allow_not_found=True)
    found = (
        info.base_name
        for info in storage.filesystem.get_file_info(selector)
        if info.type == pafs.FileType.Directory
    )
    operations = {name: operation_of_side_folder(name, catalog) for name in found}
    return [
        f"{FOLDER}/{name}"
        for name, of in operations.items()
        if of is not None and operation_id in (None, of)
    ]


def remove_side_folder(storage: WarehouseStorage, folder: str) -> None:
    """Remove a folder of rows whose table has them, or never will."""
    remove_folder(storage.filesystem, f"{storage.root}/{folder}")
