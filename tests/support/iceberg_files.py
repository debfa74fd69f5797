"""What tests need of pyiceberg's tables beyond pyiceberg: buckets, days, rows as files have them.

pyiceberg transforms columns with a package that is not installed, and reads NULL lists of structs
as empty ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg import transforms
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.types import IcebergType

from spark_jobs.contract.request import CatalogSpec
from tests.support.iceberg_vectors import vectors_in
from tests.support.optional_packages import require_package

if TYPE_CHECKING:
    from pyiceberg.catalog.sql import SqlCatalog

_CATALOG = "tests"
_FIRST_FIELD = 1000
_TRANSFORMS = (
    transforms.BucketTransform,
    transforms.TruncateTransform,
    transforms.YearTransform,
    transforms.MonthTransform,
    transforms.DayTransform,
    transforms.HourTransform,
)


def catalog_spec(warehouse: Path) -> CatalogSpec:
    """A SQL catalog on a file in a folder, as a request names it."""
    require_package("sqlalchemy")
    options = {
        "type": "sql",
        "uri": f"sqlite:///{warehouse}/catalog.db",
        "warehouse": str(warehouse),
        "catalog-name": _CATALOG,
    }
    return CatalogSpec("iceberg", str(warehouse), options)


def open_catalog(warehouse: Path) -> SqlCatalog:
    """The same one, opened with pyiceberg."""
    uri = catalog_spec(warehouse).options["uri"]
    from pyiceberg.catalog.sql import SqlCatalog

    return SqlCatalog(_CATALOG, uri=uri, warehouse=f"file://{warehouse}")


def spec_by(schema: Schema, column: str, transform: str) -> PartitionSpec:
    """A partition spec of one field."""
    name = column if transform == "identity" else f"{column}_{transform.partition('[')[0]}"
    source = schema.find_field(column).field_id
    parsed = transforms.parse_transform(transform)
    return PartitionSpec(PartitionField(source, _FIRST_FIELD, parsed, name))


@contextmanager
def transforms_by_value() -> Iterator[None]:
    """Within it, pyiceberg transforms values by its own functions of one value."""
    with ExitStack() as patches:
        for each in _TRANSFORMS:
            patches.enter_context(mock.patch.object(each, "pyarrow_transform", _by_value))
        yield


def _by_value(
    transform: transforms.Transform[Any, Any], source: IcebergType
) -> Callable[[pa.ChunkedArray], pa.Array]:
    function = transform.transform(source)
    keeps_type = isinstance(transform, transforms.TruncateTransform)
    return lambda values: pa.array(
        map(function, values.to_pylist()), values.type if keeps_type else pa.int32()
    )


def data_paths(table: Any) -> list[Path]:
    """The data files of the latest snapshot of pyiceberg's ``table``."""
    return [_path(task.file.file_path) for task in table.scan().plan_files()]


def delete_paths(table: Any) -> list[Path]:
    """The files of position deletes of the latest snapshot."""
    tasks = table.scan().plan_files()
    return sorted({_path(each.file_path) for task in tasks for each in task.delete_files})


def deleted_rows(table: Any) -> dict[Path, list[int]]:
    """The positions of deleted rows by data file."""
    found: dict[Path, list[int]] = {}
    for path in delete_paths(table):
        if path.suffix == ".puffin":
            for location, positions in vectors_in(path).items():
                found.setdefault(_path(location), []).extend(positions)
            continue
        for row in pq.ParquetFile(path).read().to_pylist():
            found.setdefault(_path(row["file_path"]), []).append(row["pos"])
    return found


def rows_of(table: Any) -> list[dict[str, Any]]:
    """The rows as the files have them."""
    deleted, schema = deleted_rows(table), table.schema()
    found = []
    for path in data_paths(table):
        gone = set(deleted.get(path, ()))
        found += [row for n, row in enumerate(rows_in(path, schema)) if n not in gone]
    return found


def rows_in(path: Path, schema: Schema) -> list[dict[str, Any]]:
    """All rows of a data file, in the columns of pyiceberg's schema that it has."""
    rows = pq.ParquetFile(path).read()
    # Without the ids of rows, which no schema has.
    known = {each.field_id for each in schema.fields}
    rows = rows.select([each.name for each in rows.schema if _id(each) in known])
    kind = pa.struct(rows.schema)
    return [_named(row, kind, schema) for row in rows.to_pylist()]


def _named(value: Any, kind: pa.DataType, schema: Schema) -> Any:
    """A value whose fields have the table's names; files have others for those with blanks."""
    if value is None:
        return None
    if pa.types.is_struct(kind):
        ids = {each.name: _id(each) for each in kind}
        return {
            schema.find_field(ids[each.name]).name: _named(value[each.name], each.type, schema)
            for each in kind
        }
    if pa.types.is_map(kind):
        return [(key, _named(each, kind.item_type, schema)) for key, each in value]
    if pa.types.is_list(kind):
        return [_named(each, kind.value_type, schema) for each in value]
    return value


def _id(field: pa.Field) -> int:
    return int(field.metadata[b"PARQUET:field_id"])


def _path(location: str) -> Path:
    return Path(urlsplit(location).path)
