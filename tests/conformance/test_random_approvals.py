"""Random changes between a preview and its approved run: what was previewed is done, or nothing.

What was previewed are the rows that the dry run kept for its page, old and new.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spark_jobs.contract.alter_table import AddColumn, AlterTableSpec
from spark_jobs.contract.guards import Guards, Limit
from spark_jobs.contract.inserts import InsertIntoSpec, InsertOverwriteSpec, TruncateTableSpec
from spark_jobs.contract.operation_files import preview_path
from spark_jobs.contract.request import FileSource, JobRequest, SqlSource, TableName, TableSource
from spark_jobs.contract.result import JobResult
from spark_jobs.contract.row_preview import RowPreview
from spark_jobs.contract.statements import ColumnSpec, CreateTableSpec, MergeSpec, Statement
from spark_jobs.engine.job.statement_job import Job
from spark_jobs.engine.job.table_jobs import AlterTableJob
from tests.conformance.behaviour import delete, insert, insert_all, matched, not_matched, update
from tests.conformance.changing import KINDS, STATEMENTS
from tests.conformance.check import request_of
from tests.conformance.conftest import MakeTable
from tests.conformance.harness import TARGET, Harness
from tests.conformance.tables import ORDERS_WITHOUT_NULL
from tests.support.turns import EVERYTHING

_SEEDS = range(60 if EVERYTHING else 12)
_SOURCE = TableName("db", "source")
_MERGE = MergeSpec(
    "s",
    "t.id = s.id",
    (matched(delete(), "s.n = 9"), matched(update(v="s.v")), not_matched(insert_all())),
    "t",
    "s",
)
Rows = Counter[tuple[str | None, ...]]


@dataclass
class Play:
    """One table, one statement with its sources, and what changes meanwhile."""

    harness: Harness
    chance: random.Random
    folder: Path
    kind: str
    number: int = 0
    done: list[str] = field(default_factory=list)

    def request(self) -> JobRequest:
        """A statement, with a source of any kind."""
        statement: Statement = _MERGE
        if self.chance.random() < 0.6:
            statements: list[Any] = [
                STATEMENTS[1].statement,
                STATEMENTS[2].statement,
                InsertOverwriteSpec("s", "dynamic"),
                TruncateTableSpec(),
            ]
            if self.kind != "primary-key":
                statements.append(InsertIntoSpec("s"))
            statement = self.chance.choice(statements)
        base = request_of(STATEMENTS[0], self.harness)
        needs = isinstance(statement, MergeSpec | InsertOverwriteSpec | InsertIntoSpec)
        source = self._source(base) if needs else ()
        return replace(base, statement=statement, sources=source)

    def _source(self, base: JobRequest) -> tuple[Any, ...]:
        kind = self.chance.choice(["files", "table", "query"])
        if kind == "files":
            self._write_file("one")
            return (FileSource("s", str(self.folder), "parquet"),)
        if kind == "query":
            return (SqlSource("s", f"SELECT * FROM {_values(self._rows())}"),)
        columns = tuple(ColumnSpec(each.name, each.type) for each in ORDERS_WITHOUT_NULL.columns)
        self.harness.connector.metadata.create_table(_SOURCE, CreateTableSpec(columns))
        self._fill(base)
        return (TableSource("s", _SOURCE),)

    def _rows(self) -> list[dict[str, Any]]:
        ids = self.chance.sample([100, 101, 120, 125, 140, 201, 330, 700, 701], 4)
        parts = {1: "a", 2: "b", 4: "c"}
        return [
            {
                "id": each,
                "k": 1,
                "v": f"x{self.chance.randint(0, 9)}",
                "n": self.chance.choice([1, 9]),
                "req": "r",
                "p": parts.get(each // 20 % 5, "a") if each < 500 else "a",
            }
            for each in ids
        ]

    def _write_file(self, name: str) -> None:
        types = {"id": pa.int64(), "k": pa.int32(), "v": pa.string()}
        types |= {"n": pa.int32(), "req": pa.string(), "p": pa.string()}
        pq.write_table(
            pa.Table.from_pylist(self._rows(), schema=pa.schema(list(types.items()))),
            self.folder / f"{name}.parquet",
        )

    def _fill(self, base: JobRequest) -> None:
        rows = SqlSource("s", f"SELECT * FROM {_values(self._rows())}")
        cleared = replace(base, approved=None, guards=None)
        statement = InsertIntoSpec("s")
        self._run(replace(cleared, target=_SOURCE, sources=(rows,), statement=statement))

    def change(self, request: JobRequest) -> JobRequest:
        """Change something; returns the request as it is then."""
        ways: list[Callable[[JobRequest], JobRequest]] = [
            self._others_elsewhere,
            self._others_here,
            self._others_insert,
            self._statement,
            self._guards,
            self._columns,
        ]
        if any(isinstance(each, FileSource) for each in request.sources):
            ways += [self._file_again, self._file_more] * 2
        if any(isinstance(each, TableSource) for each in request.sources):
            ways += [self._table_more] * 3
        way = self.chance.choice(ways)
        self.done.append(way.__name__)
        return way(request)

    def _others(self, number: int, condition: str) -> None:
        statement = replace(STATEMENTS[number].statement, where=condition)
        base = request_of(STATEMENTS[number], self.harness)
        self._run(replace(base, statement=statement, sources=()))

    def _others_elsewhere(self, request: JobRequest) -> JobRequest:
        self._others(2, f"id = {self.chance.choice([305, 349, 222])}")
        return request

    def _others_here(self, request: JobRequest) -> JobRequest:
        self._others(self.chance.choice([1, 2]), f"id = {self.chance.choice([100, 101, 120, 140])}")
        return request

    def _others_insert(self, request: JobRequest) -> JobRequest:
        row = {"id": 900, "k": 1, "v": "o", "n": 1, "req": "r", "p": self.chance.choice("abc")}
        source = SqlSource("s", f"SELECT * FROM {_values([row])}")
        base = request_of(STATEMENTS[0], self.harness)
        values = insert({name: f"s.{name}" for name in row})  # the table may have more columns now
        merge = replace(_MERGE, cases=(not_matched(values),))
        self._run(replace(base, statement=merge, sources=(source,)))
        return request

    def _statement(self, request: JobRequest) -> JobRequest:
        if isinstance(request.statement, MergeSpec):
            return replace(request, statement=replace(request.statement, on="t.k = s.k"))
        return replace(request, statement=replace(STATEMENTS[2].statement, where="id = 340"))

    def _guards(self, request: JobRequest) -> JobRequest:
        if isinstance(request.statement, InsertIntoSpec):
            return replace(request, guards=Guards(max_inserted_rows=Limit(1000)))
        if request.statement.kind == "update":
            return replace(request, guards=Guards(max_updated_rows=Limit(1000)))
        return replace(request, guards=Guards(max_deleted_rows=Limit(1000)))

    def _columns(self, request: JobRequest) -> JobRequest:
        spec = AlterTableSpec((AddColumn("added", "INT"),))
        alter = replace(
            request, operation_id=self._id(), sources=(), statement=spec, approved=None, guards=None
        )
        job = AlterTableJob(alter, self.harness.spark, self.harness.open())
        assert job.run().error is None
        return request

    def _file_again(self, request: JobRequest) -> JobRequest:
        self._write_file("one")
        return request

    def _file_more(self, request: JobRequest) -> JobRequest:
        self._write_file("two")
        return request

    def _table_more(self, request: JobRequest) -> JobRequest:
        self._fill(request)
        return request

    def run(self, request: JobRequest, operation_id: str) -> JobResult:
        """What becomes of a request."""
        asked = JobRequest.from_json(replace(request, operation_id=operation_id).to_json())
        return Job(asked, self.harness.spark, self.harness.open()).run()

    def _id(self) -> str:
        self.number += 1
        return f"others-{self.number}"

    def _run(self, request: JobRequest) -> None:
        assert self.run(request, self._id()).error is None

    def rows(self, names: tuple[str, ...]) -> Rows:
        """The table's rows as texts of these columns."""
        state = self.harness.state()
        return Counter(tuple(_text(row[name]) for name in names) for row in state.rows)


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _values(rows: list[dict[str, Any]]) -> str:
    texts = [f"({r['id']}, {r['k']}, '{r['v']}', {r['n']}, '{r['req']}', '{r['p']}')" for r in rows]
    return f"VALUES {', '.join(texts)} AS s(id, k, v, n, req, p)"


@pytest.mark.slow
@pytest.mark.by_turns(12)
@pytest.mark.parametrize("seed", _SEEDS)
def test_what_was_previewed_or_nothing(seed: int, make_table: MakeTable, tmp_path: Path) -> None:
    chance, kind = random.Random(seed), KINDS[seed % len(KINDS)]
    folder = tmp_path / "source"
    folder.mkdir()
    play = Play(make_table(kind, ORDERS_WITHOUT_NULL, partitioned=True), chance, folder, kind)
    request = play.request()
    options = replace(request.options, preview_rows=100)
    told = play.run(replace(request, dry_run=True, options=options), "preview")
    assert (told.error, told.row_preview) == (None, True)
    text = (play.harness.warehouse / preview_path("preview")).read_text()
    found = RowPreview.from_json(text)
    now = replace(request, approved=told.ticket)
    for _ in range(chance.choice([0, 1, 1, 1, 2])):
        now = play.change(now)
    before, known = play.rows(found.columns), play.harness.state()

    done = play.run(now, "real")

    what = (kind, request.statement.kind, play.done)
    if done.error is not None:
        assert done.error.code == "APPROVAL_STALE", (what, done.error)
        assert play.done, what
        assert play.harness.state().snapshot_id == known.snapshot_id, what
        assert play.harness.state().on_disk == known.on_disk, what
        print("stale", *what)  # noqa: T201 - what became of it is a result
        return
    expected = Counter(before)
    expected.update(each.new for each in found.rows if each.new is not None)
    expected.subtract(each.old for each in found.rows if each.old is not None)
    assert min(expected.values(), default=0) >= 0, what
    assert play.rows(found.columns) == +expected, what
    assert not {"_statement", "_guards", "_file_again", "_file_more"} & set(play.done), what
    print(done.status, *what)  # noqa: T201 - what became of it is a result
    assert TARGET.table in done.target
