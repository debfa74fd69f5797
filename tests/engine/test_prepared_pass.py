"""What the tasks of the prepared plan read, and what comes back from them."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from spark_jobs.datafiles.file_scan import FileScan
from spark_jobs.datafiles.parquet.row_groups import RowGroup
from spark_jobs.engine.merge import located_plan
from spark_jobs.engine.merge.located_tasks import LOCATED_SCHEMA
from spark_jobs.engine.merge.physical_plan import PlanLimits
from spark_jobs.engine.write import change_writer
from spark_jobs.spi.arrow_tasks import map_tasks
from tests.conformance.behaviour import Behaviour, delete, insert, matched, not_matched, update
from tests.conformance.conftest import MakeTable
from tests.conformance.tables import ORDERS
from tests.engine.outcomes import run

pytestmark = pytest.mark.slow

_SOURCE = "VALUES (101, 'a'), (104, 'b'), (205, 'c'), (9, 'new') AS s(id, v)"
_UPDATE = matched(update(v="s.v"), "s.id <> 104")
UPDATE = Behaviour("", _SOURCE, (_UPDATE,))
MIXED = Behaviour(
    "", _SOURCE, (_UPDATE, matched(delete()), not_matched(insert(id="s.id", v="s.v", req="'r'")))
)


class Seen:
    """What tasks, run in this process, do."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.schemas: list[Any] = []
        self.scans: Counter[str] = Counter()
        self.decoded: Counter[tuple[str, str]] = Counter()
        self._tasks: list[str] = []
        self._path = ""
        monkeypatch.setattr(located_plan, "map_tasks", self._run)
        monkeypatch.setattr(change_writer, "task_key", lambda: self._tasks[-1])
        self._watch(monkeypatch, FileScan, "rows", self._scan)
        self._watch(monkeypatch, RowGroup, "column", self._decode)

    def _run(self, spark: SparkSession, tasks: int, function: Any, schema: Any) -> Any:
        if schema != LOCATED_SCHEMA:  # what is unmatched goes another way
            return map_tasks(spark, tasks, function, schema)
        self.schemas.append(schema)
        rows: list[dict[str, Any]] = []
        for number in range(tasks):
            self._tasks.append(f"task-{number}")
            task = pickle.loads(pickle.dumps(function))
            for batch in task(iter([pa.RecordBatch.from_pydict({"id": [number]})])):
                rows += batch.to_pylist()
        return SimpleNamespace(collect=lambda: rows)

    def _watch(
        self, monkeypatch: pytest.MonkeyPatch, kind: type, name: str, note: Callable[..., None]
    ) -> None:
        original = getattr(kind, name)

        def noted(*parts: Any) -> Any:
            note(*parts)
            return original(*parts)

        monkeypatch.setattr(kind, name, noted)

    def _scan(self, scan: FileScan, path: str, *_: object) -> None:
        self.scans[path] += 1
        self._path = path

    def _decode(self, group: Any, name: str) -> None:
        self.decoded[f"{self._path} {group._number}", name] += 1


@pytest.mark.parametrize("behaviour", [UPDATE, MIXED], ids=["update", "mixed"])
@pytest.mark.parametrize("kind", ["append-cow", "append-dv"])
def test_a_file_is_read_by_one_task_and_nothing_but_a_report_comes_back(
    kind: str, behaviour: Behaviour, make_table: MakeTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness = make_table(kind, ORDERS, partitioned=True)
    seen = Seen(monkeypatch)

    result = run(behaviour, harness, PlanLimits(plan="prepared"))

    assert result.error is None, result.error
    assert result.metrics.updated == 2
    assert seen.schemas == [LOCATED_SCHEMA]
    assert len(seen.scans) == result.metrics.files_scanned
    assert set(seen.scans.values()) == {1}
    names = {name for _, name in seen.decoded}
    assert "v" not in names, "an assigned column was decoded"
    if kind == "append-cow":
        assert names == {"id"}
        assert set(seen.decoded.values()) == {1}
