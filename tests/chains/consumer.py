"""A task that follows the changes of a table, and what its target must have: a replay in Python."""

from __future__ import annotations

import json
import uuid
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from airflow_provider_merge.sql.parser import parse_statement
from spark_jobs.contract.request import JobRequest, Origin, TableName, TableSource
from spark_jobs.contract.result import JobResult
from spark_jobs.contract.table_versions import ChangeRange, OnGap
from spark_jobs.run import run
from tests.chains.lakes import Lake, Row, Rows, State
from tests.chains.source_table import COLUMNS, TWINS, Logged, SourceTable

DAG = "chain"
# Before the first snapshot of a source.
NOTHING = State(0, "")
_MERGE = f"""
MERGE INTO {{t}} t
USING (
    SELECT * FROM (
        SELECT *, row_number() OVER (PARTITION BY id ORDER BY _change_type = 'delete') AS nth
        FROM s WHERE id < {TWINS})
    WHERE nth = 1) s
ON t.id = s.id
WHEN MATCHED AND s._change_type = 'delete' THEN DELETE
WHEN MATCHED THEN UPDATE SET v = s.v, p = s.p
WHEN NOT MATCHED AND s._change_type <> 'delete' THEN INSERT (id, v, p) VALUES (s.id, s.v, s.p)
"""
_APPEND = "INSERT INTO {t} SELECT id, v, p, _change_type AS kind, _snapshot_id AS snapshot FROM s"
# A table with a key cannot have equal rows; it counts them.
_COUNT = """
MERGE INTO {t} t
USING (
    SELECT id, coalesce(v, '-') AS v, p, _change_type AS kind, _snapshot_id AS snapshot,
        count(*) AS n
    FROM s GROUP BY ALL) s
ON t.id = s.id AND t.v = s.v AND t.p = s.p AND t.kind = s.kind AND t.snapshot = s.snapshot
WHEN MATCHED THEN UPDATE SET n = t.n + s.n
WHEN NOT MATCHED THEN INSERT *
"""
_LOGGED = {**COLUMNS, "kind": "STRING", "snapshot": "BIGINT"}
Expected = Literal["committed", "unchanged", "gap", "lost"]


@dataclass(frozen=True)
class Applied:
    """How far the target is: the state of the source, the rows, and those that others added.

    ``commits``: the runs whose commits count, each with what was there before it.
    """

    mark: State | None = None
    rows: tuple[tuple[Row, int], ...] = ()
    others: tuple[Row, ...] = ()
    commits: tuple[tuple[str, Applied], ...] = ()

    @property
    def counted(self) -> Rows:
        """The rows."""
        return Counter(dict(self.rows))


class Consumer:
    """The task: ``net`` changes by MERGE, or each change appended."""

    def __init__(
        self, source: SourceTable, lake: Lake, name: TableName, kind: str, *, net: bool, start: Any
    ) -> None:
        self.source, self.lake, self.name, self.kind = source, lake, name, kind
        self.net, self.start = net, start
        self.named = 1
        self.applied = Applied()
        self.known: dict[State, Applied] = {}
        self.has_begun = False
        counts = kind == "key" and not net
        self.text = _MERGE if net else _COUNT if counts else _APPEND
        columns = dict(COLUMNS) if net else {**_LOGGED, "n": "BIGINT"} if counts else _LOGGED
        lake.make(name, kind, columns, ["id"] if net else list(_LOGGED))
        self.counts = counts

    @property
    def task(self) -> str:
        """The task's id."""
        return self.name.table

    def request(self, *, on_gap: OnGap = "fail", **origin: Any) -> JobRequest:
        """A new run."""
        parsed = parse_statement(self.text.format(t=self.name), ["s"])
        told: dict[str, Any] = {}
        if self.lake.catalog != self.source.lake.catalog:
            told = {"connection": "other", "catalog": self.source.lake.catalog}
        asked = ChangeRange(self.start, net=self.net, on_gap=on_gap)
        name = f"s{self.named}" if self.named > 1 else "s"
        parsed = parse_statement(
            self.text.format(t=self.name).replace("FROM s", f"FROM {name}"), [name]
        )
        source = TableSource(name, self.source.name, changes=asked, **told)
        return JobRequest(
            *(str(uuid.uuid4()), self.name, self.lake.catalog, parsed.statement),
            sources=(source, *parsed.sources),
            origin=Origin(DAG, str(uuid.uuid4()), self.task, **origin),
        )

    def run(self, request: JobRequest, spark: Any = None) -> JobResult:
        """Run it here."""
        return run(request, spark or self.source.spark)

    # What is expected.

    def expected(self, *, full: bool = False) -> tuple[Expected, Applied]:
        """How a run ends, and what the target then has."""
        before, newest = self.applied, self.source.newest()
        to = NOTHING if newest is None else newest.state
        if before.mark is None:
            if self.start == "now":
                return ("lost", before) if self.has_begun else ("committed", self._moved(to, ()))
            return "committed", self._moved(to, self._whole())
        if before.mark == to:
            return "unchanged", before
        if before.mark == NOTHING:
            return "committed", self._moved(to, self._whole())
        found = self.source.since(before.mark)
        if found is None and not full:
            return "gap", before
        return "committed", self._moved(
            to, self._whole() if found is None else self._changes(found)
        )

    def committed(self, run_id: str, after: Applied) -> None:
        """The run's commit is the newest snapshot."""
        self.has_begun = True
        self.became(replace(after, commits=(*after.commits, (run_id, self.applied))))

    def became(self, after: Applied) -> None:
        """The newest snapshot is one with this content."""
        self.applied = after
        states = self.lake.states(self.name)
        if states:
            self.known[states[-1]] = after

    def require_right(self) -> None:
        """Check the target's rows, which another library reads."""
        found: Rows = Counter()
        for row, count in self.lake.rows(self.name, self.kind).items():
            found[self._projected(row[:-1] if self.counts else row)] += (
                count * row[-1] if self.counts else count
            )
        wanted = self.applied.counted
        wanted.update(map(self._projected, self.applied.others))
        assert found == wanted, {
            "target": str(self.name),
            "too many": found - wanted,
            "missing": wanted - found,
        }

    def _moved(self, mark: State, changes: Sequence[tuple[str, Row, int]]) -> Applied:
        return replace(self.applied, mark=mark, rows=tuple(self._after(changes).items()))

    def _after(self, changes: Sequence[tuple[str, Row, int]]) -> Rows:
        """The rows after changes, in their order."""
        rows = self.applied.counted
        if not self.net:
            rows.update(self._projected((*row, kind, at)) for kind, row, at in changes)
            return rows
        by_id = {row[0]: row for row in rows}
        for kind, row, _ in changes:
            if row[0] >= TWINS or kind == "update_before":
                continue
            if kind == "delete":
                by_id.pop(row[0], None)
            else:
                by_id[row[0]] = row
        return Counter(by_id.values())

    def _projected(self, row: Row) -> Row:
        """A row of the log as it can be compared."""
        if self.net or len(row) < len(_LOGGED):
            return row
        text = "-" if row[1] is None and self.counts else row[1]
        kind = row[3]
        if not self.source.is_keyed:  # only some tables have ids, which tell that rows are one
            kind = {"update_before": "delete", "update_after": "insert"}.get(kind, kind)
        # Paimon's stream does not say of which snapshot a record is.
        return (row[0], text, row[2], kind, None if self.source.is_keyed else row[4])

    def _whole(self) -> list[tuple[str, Row, int]]:
        newest = self.source.newest()
        if newest is None:
            return []
        return [("insert", row, newest.state.id) for row in newest.rows.elements()]

    def _changes(self, found: Sequence[Logged]) -> list[tuple[str, Row, int]]:
        if self.source.is_keyed:
            return [(kind, row, each.state.id) for each in found for kind, row in each.records]
        changes: list[tuple[str, Row, int]] = []
        if not found:
            return changes
        first = next(n for n, e in enumerate(self.source.log) if e.state == found[0].state)
        before = self.source.log[first - 1].rows
        # What came and went between is no change in the end.
        for each in found[-1:] if self.net else found:
            gone, came = before - each.rows, each.rows - before
            changes += [("delete", row, each.state.id) for row in gone.elements()]
            changes += [("insert", row, each.state.id) for row in came.elements()]
            before = each.rows
        return changes


def told(result: JobResult) -> dict[str, Any]:
    """What a process says of a result."""
    error = result.error
    found = {
        "status": result.status,
        "snapshot": result.new_snapshot_id,
        "code": None if error is None else str(error.code),
        "message": None if error is None else error.message,
    }
    return dict(json.loads(json.dumps(found)))
