"""Tables that a run has changed, and the request of its undo; without a JVM."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from spark_jobs.connectors.registry import open_connector
from spark_jobs.contract.request import CatalogSpec, JobRequest, Origin, TableName
from spark_jobs.contract.undo import UndoRunSpec
from spark_jobs.spi.connector import Connector
from tests.support.direct_merges import merge_rows
from tests.support.paimon_tables import create, read
from tests.support.undone_runs import of_run


def changed_tables(catalog: CatalogSpec, names: Sequence[TableName]) -> Connector:
    """New tables with the ids 1 and 2, of which the run ``r`` has made 2 and 3, in turn."""
    found = open_connector(catalog, {})
    for name in names:
        create(found, {"id": "int", "s": "string"}, name=name)
        write(found, name, "base", "base", {1: "a", 2: "a"})
    for name in names:
        write(found, name, f"r-{name.table}", "r", {1: None, 2: "b", 3: "b"})
    return found


def write(
    connector: Connector,
    name: TableName,
    operation_id: str,
    run_id: str,
    rows: dict[int, Any],
    marks: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Set ``s`` of these ids in a commit of the run; None: delete the row."""
    source = [{"id": id_, "s": s} for id_, s in rows.items()]
    properties = {**of_run(run_id, operation_id), **marks}
    told: dict[str, Any] = {"operation_id": operation_id, "properties": properties}
    merge_rows(connector, name, ["id"], source, ["s"], lambda row: row["s"] is None, **told)


def undo_request(
    catalog: CatalogSpec,
    names: Sequence[TableName],
    operation_id: str = "u",
    try_number: int = 1,
    run_id: str = "r",
    **more: Any,
) -> JobRequest:
    """The request that takes a run of the DAG ``d`` back."""
    spec = UndoRunSpec("d", run_id, tuple(map(str, names)), more.pop("on_refused", "fail"))
    own = Origin("care", f"{operation_id}-run", "t", try_number=try_number, retries=1)
    return JobRequest(operation_id, names[0], catalog, spec, origin=own, **more)


def ids(connector: Connector, names: Sequence[TableName]) -> dict[str, list[int]]:
    """The ids in each table."""
    return {name.table: sorted(row["id"] for row in read(connector, name)) for name in names}
