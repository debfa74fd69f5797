"""Tables written and read with pypaimon, the other library that knows the format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pypaimon import CatalogFactory, Schema

from tests.judge.judge import DataFile, facts_from_java, read_with_java
from tests.support.judged_values import Row, differences, from_arrow, is_bounded


@dataclass(frozen=True, slots=True)
class Warehouse:
    """A folder with a filesystem catalog."""

    path: Path

    def create(
        self,
        name: str,
        schema: pa.Schema,
        partition_keys: Sequence[str] = (),
        primary_keys: Sequence[str] = (),
        options: Mapping[str, str] | None = None,
    ) -> None:
        catalog = CatalogFactory.create({"warehouse": str(self.path)})
        catalog.create_database(name.partition(".")[0], True)
        native = Schema.from_pyarrow_schema(
            schema, list(partition_keys), list(primary_keys), dict(options or {})
        )
        catalog.create_table(name, native, False)

    def table(self, name: str):
        return CatalogFactory.create({"warehouse": str(self.path)}).get_table(name)

    def append(self, name: str, rows: pa.Table) -> None:
        builder = self.table(name).new_batch_write_builder()
        writer, commit = builder.new_write(), builder.new_commit()
        try:
            writer.write_arrow(rows)
            commit.commit(writer.prepare_commit())
        finally:
            writer.close()
            commit.close()

    def read_with_python(self, name: str) -> list[Row]:
        builder = self.table(name).new_read_builder()
        return from_arrow(builder.new_read().to_arrow(builder.new_scan().plan().splits()))

    def both_readers(self, name: str) -> list[Row]:
        """The rows, on which Python and Java agree."""
        java = read_with_java(self.path, name)
        assert not differences(java, self.read_with_python(name)), "left: Java, right: pypaimon"
        return java

    def checked_files(self, name: str) -> list[DataFile]:
        """The data files as Java sees them, after holding their entries against their content.

        ORC and Avro files, which only Java wrote, are not looked into.
        """
        folder = Path(self.table(name).table_path)
        files = facts_from_java(self.path, name).files
        for file in files:
            if not file.name.endswith(".parquet"):
                continue
            (path,) = folder.rglob(file.name)
            rows = from_arrow(pq.ParquetFile(path).read())
            assert (file.rows, file.bytes) == (len(rows), path.stat().st_size), file
            for column, found in file.statistics.items():
                values = [row[column] for row in rows]
                assert found.null_count in (None, values.count(None)), (file, column)
                wrong = [v for v in values if not is_bounded(v, found.minimum, found.maximum)]
                assert not wrong, (file, column)
        return files
