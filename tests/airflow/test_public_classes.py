"""Bad input, tried on every public class: a typed error that names the field and the remedy.

What only the job can find, such as a table that does not exist or a wrong partition column of an
operator, is tried on tables (tests/conformance, tests/connectors); here it is shown that each
operator ends for good with the job's error.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import json
import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException, BaseHook, BaseOperator
from airflow.sdk import Asset
from airflow.sdk.bases.sensor import PokeReturnValue
from airflow.triggers.base import BaseTrigger

from airflow_provider_merge.assets import create_asset, table_asset
from airflow_provider_merge.get_provider_info import get_provider_info
from airflow_provider_merge.hooks.iceberg import IcebergHook
from airflow_provider_merge.hooks.paimon import PaimonHook
from airflow_provider_merge.operators._shared.row_operator import RowOperator
from airflow_provider_merge.operators._shared.table_operator import TableOperator
from airflow_provider_merge.operators.alter_table import AlterTableOperator
from airflow_provider_merge.operators.branches import (
    CherryPickOperator,
    CreateBranchOperator,
    DeleteBranchOperator,
    FastForwardOperator,
)
from airflow_provider_merge.operators.clauses import when_matched
from airflow_provider_merge.operators.compact import CompactOperator
from airflow_provider_merge.operators.create_table import CreateTableOperator, column
from airflow_provider_merge.operators.delete_from import DeleteFromOperator
from airflow_provider_merge.operators.drop_partitions import DropPartitionsOperator
from airflow_provider_merge.operators.expire_snapshots import ExpireSnapshotsOperator
from airflow_provider_merge.operators.insert_into import InsertIntoOperator
from airflow_provider_merge.operators.insert_overwrite import InsertOverwriteOperator
from airflow_provider_merge.operators.merge_into import MergeIntoOperator
from airflow_provider_merge.operators.query import QueryOperator
from airflow_provider_merge.operators.remove_orphan_files import RemoveOrphanFilesOperator
from airflow_provider_merge.operators.rollback import RollbackOperator, SetCurrentSnapshotOperator
from airflow_provider_merge.operators.scd2 import Scd2Operator
from airflow_provider_merge.operators.sources import table_source
from airflow_provider_merge.operators.statements import StatementsOperator
from airflow_provider_merge.operators.table_care import TableCareOperator
from airflow_provider_merge.operators.table_changes import drop_column
from airflow_provider_merge.operators.tags import CreateTagOperator, DeleteTagOperator
from airflow_provider_merge.operators.truncate_table import TruncateTableOperator
from airflow_provider_merge.operators.undo_run import UndoRunOperator
from airflow_provider_merge.operators.update import UpdateOperator
from airflow_provider_merge.parameters import ParameterOperator
from airflow_provider_merge.sensors.base import TableSensor
from airflow_provider_merge.sensors.compaction import CompactionSensor
from airflow_provider_merge.sensors.freshness import FreshnessSensor
from airflow_provider_merge.sensors.partition import PartitionSensor
from airflow_provider_merge.sensors.snapshot import SnapshotSensor
from airflow_provider_merge.sensors.source_lag import SourceLagSensor
from airflow_provider_merge.sensors.tag import TagSensor
from airflow_provider_merge.triggers.gates import gate_arguments
from airflow_provider_merge.triggers.table import TableTrigger
from spark_jobs.contract.result import ErrorInfo
from spark_jobs.errors import CatalogError, ErrorCode, JobError, RequestError
from tests.airflow.support import PASSWORD, FakeSubmitter, connection, failed
from tests.support.gateway import gateway_program_or_skip, serving
from tests.support.paimon_metadata import TableFiles

HOOKS = (IcebergHook, PaimonHook)

SOURCE = table_source("shop.updates")
OPERATORS: dict[type, dict[str, Any]] = {
    MergeIntoOperator: {"source": SOURCE, "on": "t.id = s.id", "when": [when_matched().delete()]},
    DeleteFromOperator: {},
    UpdateOperator: {"set": {"id": "1"}},
    InsertOverwriteOperator: {"source": SOURCE, "mode": "dynamic"},
    InsertIntoOperator: {"source": SOURCE},
    Scd2Operator: {"source": SOURCE, "keys": ["id"], "as_of": "2026-01-31"},
    TruncateTableOperator: {},
    DropPartitionsOperator: {"partitions": [{"day": "2026-01-31"}]},
    CreateTableOperator: {"columns": [column("id", "BIGINT")]},
    AlterTableOperator: {"changes": [drop_column("n")]},
    CompactOperator: {},
    ExpireSnapshotsOperator: {"retain_max": 3},
    RemoveOrphanFilesOperator: {},
    CreateTagOperator: {"tag": "daily"},
    DeleteTagOperator: {"tag": "daily"},
    RollbackOperator: {"snapshot_id": 1},
    SetCurrentSnapshotOperator: {"snapshot_id": 1},
    CreateBranchOperator: {"branch": "audit"},
    DeleteBranchOperator: {"branch": "audit"},
    FastForwardOperator: {"to": "audit"},
    CherryPickOperator: {"snapshot_id": 1},
}
CHANGE_ROWS = {each for each in OPERATORS if issubclass(each, RowOperator)}
OF_ROWS = {
    "isolation": "snapshot",
    "rewrite_share": 0.5,
    "max_new_partitions": 5,
    "emit_partition_keys": True,
    "after_ended_try": "skip",
}
SENSORS: dict[type, dict[str, Any]] = {
    SnapshotSensor: {"after_id": 0},
    PartitionSensor: {"partition": {"day": "2026-01-31"}},
    TagSensor: {"tag": "daily"},
    FreshnessSensor: {"max_age": 60},
    CompactionSensor: {"min_small_files": 5},
    SourceLagSensor: {},
}
READS = {
    "latest_snapshot": (),
    "snapshot": (1,),
    "snapshots": (),
    "partitions": (),
    "compaction_facts": (),
    "tags": (),
    "branches": (),
    "schema": (),
    "row_count": (),
    "diff": (1, 2),
}
NO_NAME = r"(target|table): 'orders' is not a table name.*Write database\.table"


def public_classes() -> set[type[BaseOperator | BaseHook | BaseTrigger]]:
    """Every operator, sensor, hook and trigger of the modules that Airflow is told of."""
    found = set()
    info = get_provider_info()
    for kind in ("operators", "sensors", "hooks", "triggers"):
        for name in (each for entry in info[kind] for each in entry["python-modules"]):
            module = importlib.import_module(name)
            for _, value in inspect.getmembers(module, inspect.isclass):
                own = value.__module__ == name and not value.__name__.startswith("_")
                if own and issubclass(value, BaseOperator | BaseHook | BaseTrigger):
                    found.add(value)
    return found


def test_no_class_is_left_out() -> None:
    of_tables = {StatementsOperator, TableCareOperator, UndoRunOperator}
    others = {QueryOperator, *of_tables, *HOOKS, TableTrigger}
    assert public_classes() == {*OPERATORS, *SENSORS, *others}


def test_every_class_has_docs() -> None:
    for each in public_classes():
        assert inspect.getdoc(each) not in (None, inspect.getdoc(each.__mro__[1])), each
        own = set(inspect.signature(each).parameters) - {"kwargs", "args", "connection"}
        known = "\n".join(inspect.getdoc(base) or "" for base in each.__mro__)
        missing = {name for name in own if f"param {name}:" not in known}
        assert each in HOOKS or missing == set(), each


@pytest.mark.parametrize("operator", OPERATORS)
def test_an_operator_without_a_table_name(operator: type[TableOperator]) -> None:
    with pytest.raises(RequestError, match=NO_NAME):
        operator(task_id="t", target="orders", **OPERATORS[operator])


@pytest.mark.parametrize("operator", [each for each in OPERATORS if each not in CHANGE_ROWS])
@pytest.mark.parametrize("name", OF_ROWS)
def test_an_operator_that_changes_no_row_takes_nothing_for_rows(
    operator: type[ParameterOperator], name: str
) -> None:
    given = {"task_id": "t", "target": "shop.orders", **OPERATORS[operator]}

    with pytest.raises(TypeError, match=f"'{name}': {OF_ROWS[name]!r}"):
        operator(**given, **{name: OF_ROWS[name]})
    # Those of default_args are for other tasks.
    assert not hasattr(operator(**given, default_args=OF_ROWS), "isolation")


@pytest.mark.parametrize("sensor", SENSORS)
def test_a_sensor_without_a_table_name(sensor: type[TableSensor]) -> None:
    with pytest.raises(RequestError, match=NO_NAME):
        sensor(task_id="t", table="orders", **SENSORS[sensor])


@pytest.mark.parametrize(
    "use",
    [
        TableTrigger,
        partial(table_asset, "lake"),
        lambda name: create_asset(catalog_conn_id="lake", table=name),
        lambda name: PaimonHook().table(name),
    ],
    ids=["trigger", "table_asset", "create_asset", "hook"],
)
@pytest.mark.usefixtures("warehouse")
def test_another_class_without_a_table_name(
    use: type[TableTrigger] | partial[Asset] | Callable[..., Any],
) -> None:
    with pytest.raises(RequestError, match=NO_NAME):
        use("orders")


def poked(sensor: type[TableSensor], **parameters: Any) -> bool | PokeReturnValue:
    """One look of a sensor, in a task."""
    parameters = {"table": "shop.orders", **SENSORS[sensor], **parameters}
    context: Any = {"ti": SimpleNamespace(dag_id="d", task_id="t", map_index=-1)}
    return sensor(task_id="t", **parameters).poke(context)


TAG_GATE = gate_arguments(TagSensor(task_id="t", table="a.b", tag="daily").gate({}))


def fired(**arguments: Any) -> Any:
    """What a trigger tells that waits for a tag."""
    trigger = TableTrigger(
        **{"table": "shop.orders", **arguments}, poll_interval=0.05, gate=TAG_GATE, deadline=9e9
    )

    async def first() -> Any:
        async for event in trigger.run():
            return event.payload
        return None

    return asyncio.run(asyncio.wait_for(first(), 60))


class TestReaders:
    """Hook, sensors and trigger find out by themselves."""

    @pytest.fixture
    def orders(self, warehouse: Path) -> TableFiles:
        table = TableFiles(warehouse).create()
        table.add()
        table.add()
        return table

    @pytest.mark.parametrize("read", READS)
    def test_unknown_table(self, orders: TableFiles, read: str) -> None:
        with pytest.raises(CatalogError, match=r"TABLE_NOT_FOUND: .*shop\.nothing.*Correct the"):
            getattr(PaimonHook(), read)("shop.nothing", *READS[read])

    @pytest.mark.parametrize("sensor", SENSORS)
    def test_unknown_table_of_a_sensor(self, orders: TableFiles, sensor: type[TableSensor]) -> None:
        with pytest.raises(AirflowFailException, match=r"TABLE_NOT_FOUND(.|\n)*Remedy: Correct"):
            poked(sensor, table="shop.nothing")

    def test_unknown_table_of_a_trigger(self, orders: TableFiles) -> None:
        told = fired(table="shop.nothing")
        assert (told["status"], told["error"]["code"]) == ("error", "TABLE_NOT_FOUND")
        assert told["error"]["remedy"].startswith("Correct the table's name")

    WRONG_COLUMN = r"partition: 'hour' is not a partition column of the table(.|\n)*columns: day"

    def test_wrong_partition_column(self, orders: TableFiles) -> None:
        with pytest.raises(RequestError, match=self.WRONG_COLUMN):
            PaimonHook().partitions("shop.orders", {"hour": 1})
        with pytest.raises(RequestError, match=self.WRONG_COLUMN):
            PaimonHook().compaction_facts("shop.orders", {"hour": 1})

    @pytest.mark.parametrize("sensor", [PartitionSensor, FreshnessSensor, CompactionSensor])
    def test_wrong_partition_column_of_a_sensor(
        self, orders: TableFiles, sensor: type[PartitionSensor | FreshnessSensor | CompactionSensor]
    ) -> None:
        with pytest.raises(AirflowFailException, match=self.WRONG_COLUMN):
            poked(sensor, partition={"hour": 1})

    NOWHERE = r"catalog_conn_id: there is no connection 'nowhere'(.|\n)*Create it with"

    def test_unknown_connection(self) -> None:
        with pytest.raises(RequestError, match=self.NOWHERE):
            PaimonHook("nowhere").latest_snapshot("shop.orders")

    @pytest.mark.parametrize("sensor", SENSORS)
    def test_unknown_connection_of_a_sensor(self, sensor: type[TableSensor]) -> None:
        with pytest.raises(AirflowFailException, match=self.NOWHERE):
            poked(sensor, catalog_conn_id="nowhere")

    @pytest.mark.usefixtures("airflow_db")
    def test_unknown_connection_of_a_trigger(self) -> None:
        told = fired(catalog_conn_id="nowhere")
        assert told["status"] == "error"
        assert told["error"]["message"].startswith("catalog_conn_id: there is no connection")

    def test_a_connection_of_another_type(self, monkeypatch: pytest.MonkeyPatch) -> None:
        connection(monkeypatch, "lake", conn_type="http", host="http://x")
        with pytest.raises(RequestError, match=r"has the type 'http'.*Use a connection of"):
            PaimonHook("lake").latest_snapshot("shop.orders")

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything; see TestPermissions")
    def test_no_permission_in_a_folder(self, orders: TableFiles) -> None:
        orders.folder.chmod(0)
        try:
            with pytest.raises(CatalogError, match="WAREHOUSE_ACCESS_DENIED"):
                PaimonHook().latest_snapshot("shop.orders")
        finally:
            orders.folder.chmod(0o700)


def ended(operator: type[TableOperator], **parameters: Any) -> str:
    """The error with which a task of the operator ends."""
    task = operator(task_id="t", target="shop.orders", **{**OPERATORS[operator], **parameters})
    ti = SimpleNamespace(
        dag_id="d", run_id="r", task_id="t", map_index=-1, max_tries=0, try_number=1,
        xcom_push=lambda *_: None,
    )  # fmt: skip
    run = SimpleNamespace(start_date=datetime(2026, 1, 31, tzinfo=UTC))
    with pytest.raises(AirflowFailException) as raised:
        inspect.unwrap(type(task).execute)(task, {"ti": ti, "dag_run": run})
    return str(raised.value)


@pytest.mark.usefixtures("warehouse")
class TestOperators:
    @pytest.mark.parametrize("operator", OPERATORS)
    def test_unknown_connection(
        self, operator: type[TableOperator], submitter: FakeSubmitter
    ) -> None:
        error = ended(operator, catalog_conn_id="nowhere")
        assert error.startswith("REQUEST_INVALID: catalog_conn_id: there is no connection")
        assert "Remedy: Create it with" in error
        assert submitter.jobs == []

    JOB_ERRORS = (
        CatalogError(ErrorCode.TABLE_NOT_FOUND, "Table shop.orders does not exist.", "Check it."),
        CatalogError(ErrorCode.WAREHOUSE_ACCESS_DENIED, "s3://lake refuses.", "Check login."),
        RequestError(ErrorCode.REQUEST_INVALID, "partition: hour is not a column.", "Use: day."),
    )

    @pytest.mark.parametrize("error", JOB_ERRORS, ids=lambda error: error.code.name)
    @pytest.mark.parametrize("operator", OPERATORS)
    def test_what_the_job_finds_ends_the_task_for_good(
        self,
        operator: type[TableOperator],
        error: CatalogError | RequestError,
        submitter: FakeSubmitter,
    ) -> None:
        submitter.outcomes = [lambda request: failed(request, ErrorInfo.of(error))]
        told = ended(operator)
        where = "Where: task d.t, table shop.orders"
        more = f"More: docs/errors.md#{error.code.name.lower()}"
        assert (
            told == f"{error.code.name}: {error.message}\n{where}\nRemedy: {error.remedy}\n{more}"
        )


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    program = gateway_program_or_skip()
    with serving(program, tmp_path_factory.mktemp("gateway"), "AKIATESTS", PASSWORD) as url:
        yield url


@pytest.mark.slow  # the first run builds the server
class TestPermissions:
    """A store that knows the key, but not this secret."""

    @pytest.fixture(autouse=True)
    def lake(self, endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
        extra = {"warehouse": "s3://lake/wh", "endpoint": endpoint}
        fields = {"conn_type": "paimon", "login": "AKIATESTS", "password": "planted-2"}
        connection(monkeypatch, "paimon_default", extra=extra, **fields)
        connection(monkeypatch, "spark_default", conn_type="spark", host="local[1]")

    @staticmethod
    def check(text: str) -> None:
        assert text.startswith("WAREHOUSE_ACCESS_DENIED: ")
        assert "login" in text
        assert "planted-2" not in text

    @pytest.mark.parametrize("operator", OPERATORS)
    def test_operators(self, operator: type[TableOperator], submitter: FakeSubmitter) -> None:
        self.check(ended(operator))
        assert submitter.jobs == []

    @pytest.mark.parametrize("sensor", SENSORS)
    def test_sensors(self, sensor: type[TableSensor]) -> None:
        with pytest.raises(AirflowFailException) as raised:
            poked(sensor)
        self.check(str(raised.value))

    @pytest.mark.parametrize("read", READS)
    def test_the_hook(self, read: str) -> None:
        with pytest.raises(JobError) as raised:
            getattr(PaimonHook(), read)("shop.orders", *READS[read])
        self.check(str(raised.value))

    @pytest.mark.usefixtures("airflow_db")
    def test_the_trigger(self) -> None:
        told = fired()
        self.check(f"{told['error']['code']}: {json.dumps(told['error'])}")
