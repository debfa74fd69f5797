"""The rows of tables and sources: parquet files below ``.bench/natives``, from which all load.

Everything follows from row numbers, so each run measures the same work.
"""

from __future__ import annotations

import math
import shutil
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks import lineitem
from benchmarks.comparison import ROOT

FOLDER: Final = ROOT / "natives"
PARTITIONS: Final = 10
MANY: Final = 2_000
# The tables by their partition columns.
TABLES: Final[dict[str, tuple[str, ...]]] = {
    "lineitem": (),
    "wide": (),
    "keys": (),
    "daily": ("part",),
    "staging": (),
    "many": ("part",),
}
_WIDE: Final = 200
# A prime that no number of rows here shares: multiples of it scatter ids.
STEP: Final = 7919 * 31
_NEW_VALUES: Final = "(id % 1000)::DECIMAL(15, 2) AS price, 'upd ' || id AS comment"
_KEYS: Final = (
    "'K' || lpad(id::VARCHAR, 12, '0') AS skey, (id // 1000)::INT AS k1, (id % 1000)::INT AS k2"
)


@dataclass(frozen=True, slots=True)
class Data:
    """Tables and sources of one size.

    A table has ``rows`` rows in ``files`` files; the wide one has a tenth of the rows.
    """

    rows: int
    files: int = lineitem.FILES

    def __post_init__(self) -> None:
        if math.gcd(self.rows, STEP) != 1 or self.rows % 1000:
            raise ValueError(f"{self.rows} rows: the number must be a multiple of 1,000")

    @property
    def folder(self) -> Path:
        """Where they are."""
        return FOLDER / f"{self.rows}-{self.files}"

    def table(self, name: str) -> list[Path]:
        """The files of a table, written unless they are there."""
        parts = {
            "lineitem": self._lineitem,
            "wide": self._wide,
            "keys": self._keys,
            "daily": self._daily,
            "staging": self._landed,
            "many": lambda: (part.schema.empty_table() for part in [next(self._landed())]),
        }[name]
        return sorted(made(self.folder / "tables" / name, lambda to: _write(parts(), to)).iterdir())

    def source(self, name: str) -> Path:
        """The file of a source, or the folder of landed ones, written unless it is there."""
        if name == "rows":
            return self.table("daily")[0].parent
        if name == "files":
            return made(self.folder / "landed-files", lambda to: _write(self._landed(), to))
        if name == "file":
            whole = lambda to: _write([pa.concat_tables(self._landed())], to)  # noqa: E731
            return made(self.folder / "landed-file", whole)
        file = self.folder / "sources" / f"{name}.parquet"
        if not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            query = self._source_query(name)
            duckdb.sql(f"COPY ({query}) TO '{file}' (FORMAT parquet, COMPRESSION zstd)")
        return file

    def _source_query(self, name: str) -> str:
        """Five of six ids are in the target, unless all are; the others are new."""
        if name.startswith("rows-"):
            ids = self._ids(round(self.rows * float(name.removeprefix("rows-")) / 100))
            return f"SELECT * REPLACE ({_NEW_VALUES}) FROM ({lineitem.rows_of(ids)})"
        if name.startswith("existing-"):
            count = round(self.rows * float(name.removeprefix("existing-")) / 100)
            ids = f"SELECT (i * {STEP}) % {self.rows} AS id FROM range({count}) r(i)"
            return f"SELECT id, {_NEW_VALUES}, id % 10 = 0 AS del FROM ({ids})"
        if name == "wide":
            rows = self.rows // 10
            ids = f"SELECT (i * {STEP}) % {rows} AS id FROM range({rows // 100}) r(i)"
            return f"SELECT id, (id % 77)::INT AS c5, 'upd ' || id AS c6 FROM ({ids})"
        if name == "keys":
            ids = self._ids(self.rows * 12 // 1000)
            return f"SELECT id, {_KEYS}, {_NEW_VALUES}, id % 10 = 0 AS del FROM ({ids})"
        hundredth = self.rows // 100
        middle = self.rows // 2
        ids = {
            "changes": self._ids(self.rows * 12 // 1000),
            "clustered": f"SELECT i AS id FROM range({middle}, {middle + hundredth}) r(i)",
            # Half of them in one file.
            "skewed": (
                f"{self._ids(hundredth // 2)} UNION "
                f"SELECT i AS id FROM range({middle}, {middle + hundredth // 2}) r(i)"
            ),
        }[name]
        return f"SELECT id, {_NEW_VALUES}, id % 10 = 0 AS del FROM ({ids})"

    def _ids(self, count: int) -> str:
        scattered = f"(i * {STEP}) % {self.rows}"
        return (
            f"SELECT CASE WHEN i % 6 = 5 THEN {self.rows} + i ELSE {scattered} END AS id "
            f"FROM range({count}) r(i)"
        )

    def _ranges(self, rows: int) -> Iterator[tuple[int, int]]:
        return ((n * rows // self.files, (n + 1) * rows // self.files) for n in range(self.files))

    def _lineitem(self) -> Iterator[pa.Table]:
        return (lineitem.rows_between(*ids) for ids in self._ranges(self.rows))

    def _keys(self) -> Iterator[pa.Table]:
        for part in self._lineitem():
            yield duckdb.from_arrow(part).project(f"{_KEYS}, *").to_arrow_table()

    def _daily(self) -> Iterator[pa.Table]:
        for number, part in enumerate(self._lineitem()):
            yield _with_partition(part, number * PARTITIONS // self.files)

    def _landed(self) -> Iterator[pa.Table]:
        """New rows of the first two partitions, whose ids are those of the old rows."""
        for number, part in enumerate(self._daily()):
            if number * PARTITIONS // self.files >= 2:
                return
            yield duckdb.from_arrow(part).project(f"* REPLACE ({_NEW_VALUES})").to_arrow_table()

    def _wide(self) -> Iterator[pa.Table]:
        return (wide_rows(*ids) for ids in self._ranges(self.rows // 10))


def wide_rows(low: int, high: int) -> pa.Table:
    """Rows of ``id`` and 199 columns; c5, c11 … are numbers, c6, c12 … texts."""
    columns = ", ".join(_wide_column(number) for number in range(1, _WIDE))
    return duckdb.sql(f"SELECT i AS id, {columns} FROM range({low}, {high}) r(i)").to_arrow_table()


def _wide_column(number: int) -> str:
    value = f"hash(i + {number})"
    kinds = (
        f"md5({value}::VARCHAR)[:12]",
        f"({value} % 2000000)::INT",
        f"['new', 'open', 'paid', 'sent', 'done'][1 + ({value} % 5)::BIGINT]",
        f"({value} % 1000)::DECIMAL(15, 2)",
        f"DATE '2020-01-01' + ({value} % 2500)::INT",
        f"({value} % 1000)::INT",
    )
    return f"{kinds[number % len(kinds)]} AS c{number}"


def _with_partition(rows: pa.Table, partition: int) -> pa.Table:
    return rows.append_column("part", pa.array([partition] * rows.num_rows, pa.int32()))


def _write(parts: Iterator[pa.Table] | Sequence[pa.Table], folder: Path) -> None:
    for number, part in enumerate(parts):
        pq.write_table(part, folder / f"part-{number:04d}.parquet", compression="zstd")


def made(folder: Path, make: Callable[[Path], None]) -> Path:
    """The folder, which ``make`` fills unless an earlier call did."""
    if not folder.exists():
        building = folder.with_name(f"building-{uuid.uuid4().hex}")
        building.mkdir(parents=True)
        try:
            make(building)
        except BaseException:
            shutil.rmtree(building)
            raise
        building.rename(folder)
    return folder
