"""Many histories side by side: they take each step together, and share what checks it."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from decimal import Decimal
from functools import reduce
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_jobs.connectors.iceberg.read.scan import IcebergScan, Reader
from spark_jobs.contract.request import TableName
from spark_jobs.contract.sql_text import quote
from spark_jobs.engine.runtime.session import fixed_settings, meaningful_settings
from spark_jobs.spi.connector import ConnectorMetadata
from spark_jobs.spi.rows import ROW_ID
from tests.connectors.iceberg.histories.history import History
from tests.connectors.iceberg.histories.model import told
from tests.connectors.iceberg.tables import READERS, opened
from tests.judge.iceberg_spark import CATALOG, IcebergSpark, IcebergSparkError

_JSON: Final = {"ignoreNullFields": "false", "timestampFormat": "yyyy-MM-dd HH:mm:ss.SSSSSS"}
_AT_A_TIME: Final = 2
Found = Mapping[str, list[str]]


@dataclass
class Histories:
    """Those of ``seeds``; ``kinds`` counts what they did.

    ``problems`` are texts, none of which may be there.
    """

    spark: SparkSession
    java: IcebergSpark
    seeds: Iterable[int]
    kinds: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)

    def run(self, steps: int) -> None:
        """Let each make so many steps, then maintain its table; compare all rows after each.

        This project reads the rows in the end, by one of its readers; before, its statements do.
        """
        histories = [History(self.spark.newSession(), self.java, seed) for seed in self.seeds]
        self._going = list(histories)
        self._compare_others()
        for act in (*[History.step] * steps, History.end):
            self._all(act)
            self._compare_others()
        halves = [self._going[number :: len(READERS)] for number in range(len(READERS))]
        for reader, half in zip(READERS, halves, strict=True):
            self._compare(f"this project, by {reader}", self._here(reader, half), half)
        self.kinds.update(kind for each in histories for kind in each.kinds)

    def _all(self, act: Callable[[History], None]) -> None:
        """Let one history run here while another one waits for Java."""

        def problem_of(history: History) -> str | None:
            try:
                act(history)
            except (AssertionError, IcebergSparkError) as error:
                return str(error)[-2000:]
            return None

        with ThreadPoolExecutor(_AT_A_TIME) as pool:
            problems = list(pool.map(problem_of, self._going))
        for history, problem in zip(list(self._going), problems, strict=True):
            if problem is not None:
                self._end(history, problem)

    def _compare_others(self) -> None:
        others = self._by_pyiceberg()
        self._compare("pyiceberg", others, [each for each in self._going if each.name in others])
        self._compare("Java", self._by_java(), self._going)

    def _compare(self, reader: str, found: Found, histories: Sequence[History]) -> None:
        for history in list(histories):
            rows, wanted = found.get(history.name, []), history.model.visible()
            if rows != wanted:
                self._end(history, _difference(reader, rows, wanted))

    def _end(self, history: History, problem: str) -> None:
        self._going.remove(history)
        steps = "\n  ".join(history.done)
        self.problems.append(f"seed {history.seed}, {history.mode}:\n  {steps}\n{problem}")

    def _by_pyiceberg(self) -> Found:
        found = {}
        for history in self._going:
            table = history.library()
            history.note(table.metadata.current_snapshot_id)
            if history.is_deleted_by_value or history.file_format != "parquet":
                continue
            rows = table.scan().to_arrow().to_pylist()
            found[history.name] = told([{k: _text(v) for k, v in row.items()} for row in rows])
        return found

    def _by_java(self) -> Found:
        options = ", ".join(f"'{k}', '{v}'" for k, v in _JSON.items())
        queries = (
            f"SELECT '{each.name}' AS name, to_json(struct(*), map({options})) AS row, "
            f"{'_row_id' if each.version == 3 else 'CAST(NULL AS BIGINT)'} AS id "
            f"FROM {CATALOG}.db.{each.name}"
            for each in self._going
        )
        rows = self.java.sql(" UNION ALL ".join(queries))
        self._check_ids(rows)
        return _by_name((row["name"], row["row"]) for row in rows)

    def _check_ids(self, rows: Sequence[Mapping[str, Any]]) -> None:
        for history in list(self._going):
            found = [(row["row"], row["id"]) for row in rows if row["name"] == history.name]
            told_ids = [(repr(_parsed(text)), each) for text, each in found]
            is_right = sorted(text for text, _ in told_ids) == history.model.visible()
            problem = history.ids.problem(history.model, told_ids) if is_right else ""
            if problem:
                self._end(history, problem)

    def _here(self, reader: Reader, histories: Sequence[History]) -> Found:
        metadata = opened(self.java).metadata
        with fixed_settings(self.spark, meaningful_settings("UTC")):
            frames = [self._frame(metadata, each.name, reader) for each in histories]
            rows = reduce(DataFrame.union, frames).collect()
        assert len({(name, row_id) for name, _, row_id in rows}) == len(rows)
        return _by_name((name, row) for name, row, _ in rows)

    def _frame(self, metadata: ConnectorMetadata, name: str, reader: Reader) -> DataFrame:
        table = metadata.load_table(TableName("db", name))
        files, names = metadata.plan_files(table), table.column_names
        frame = IcebergScan(reader).read(self.spark, table, files, names)
        row = F.to_json(F.struct(*map(quote, names)), _JSON)
        return frame.select(F.lit(name), row, ROW_ID)


def _by_name(rows: Iterable[tuple[str, str]]) -> Found:
    found = defaultdict(list)
    for name, row in rows:
        found[name].append(_parsed(row))
    return {name: told(each) for name, each in found.items()}


def _parsed(row: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(row, parse_float=Decimal)
    return found


def _text(value: Any) -> Any:
    """Times and dates as ``_JSON`` writes them."""
    if hasattr(value, "tzinfo"):
        return value.replace(tzinfo=None).isoformat(" ", "microseconds")
    return value.isoformat() if hasattr(value, "isoformat") else value


def _difference(reader: str, found: list[str], wanted: list[str]) -> str:
    many, few = Counter(found) - Counter(wanted), Counter(wanted) - Counter(found)
    texts = (f"{what}: {', '.join(rows)}" for what, rows in (("too many", many), ("missing", few)))
    return "\n".join((f"{reader} reads {len(found)} rows for {len(wanted)}", *texts))
