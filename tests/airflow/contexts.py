"""The contexts that Airflow makes for tasks, and its server's answers to what rendering asks."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from airflow.sdk import DAG, task
from airflow.sdk.api.datamodels import _generated as models
from airflow.sdk.execution_time import comms, task_runner
from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance
from airflow.serialization.serialized_objects import DagSerialization

DAY = datetime(2026, 1, 31, tzinfo=UTC)


def context_of(
    task: Any,
    run_type: str = "manual",
    logical_date: datetime | None = None,
    partition_key: str | None = None,
    conf: dict[str, Any] | None = None,
    map_index: int = -1,
) -> Any:
    """The context of a task of such a run."""
    run = {
        "dag_id": task.dag_id,
        "run_id": "r",
        "logical_date": logical_date,
        "data_interval_start": logical_date,
        "data_interval_end": logical_date,
        "run_after": DAY,
        "start_date": DAY,
        "end_date": None,
        "run_type": run_type,
        "state": "running",
        "conf": conf or {},
        "consumed_asset_events": [],
        "partition_key": partition_key,
    }
    known = {name: value for name, value in run.items() if name in models.DagRun.model_fields}
    server = models.TIRunContext(dag_run=models.DagRun(**known), max_tries=0)
    instance = RuntimeTaskInstance.model_construct(
        id=uuid.uuid4(),
        task=task,
        task_id=task.task_id,
        dag_id=task.dag_id,
        run_id="r",
        try_number=1,
        map_index=map_index,
        max_tries=0,
        start_date=DAY,
    )
    instance._ti_context_from_server = server
    return instance.get_template_context()


class Server:
    """Answers for XComs; ``results`` has what each task returned, those of mapped ones as lists.

    A task that is not in it was skipped.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.results: Mapping[str, Any] = {}
        monkeypatch.setattr(task_runner, "SUPERVISOR_COMMS", self, raising=False)

    def send(self, msg: Any) -> Any:
        """What the supervisor of a task's process answers."""
        found = self.results.get(getattr(msg, "task_id", ""))
        if isinstance(msg, comms.GetXCom):
            return comms.XComResult(key=msg.key, value=found)
        if isinstance(msg, comms.GetXComCount):
            return comms.XComCountResponse(len=len(found or ()))
        if isinstance(msg, comms.GetXComSequenceItem):
            return comms.XComSequenceIndexResult(root=found[msg.offset])
        if isinstance(msg, comms.GetXComSequenceSlice):
            return comms.XComSequenceSliceResult(root=list(found or ()))
        raise AssertionError(f"rendering asks for {msg!r}")


def rendered_task(
    make: Callable[[Any], object],
    map_index: int = -1,
    conf: dict[str, Any] | None = None,
    **dag: Any,
) -> Any:
    """The task ``t`` that ``make`` defines with the result of the task ``up``, rendered."""
    with DAG("d", schedule=None, start_date=DAY, **dag) as found:

        @task(task_id="up")
        def up() -> None: ...

        @task(task_id="ups")
        def ups(number: int) -> None: ...

        ups.expand(number=[1, 2])
        make(up())
    found.resolve_template_files()
    json.dumps(DagSerialization.to_dict(found))
    (name,) = (each for each in found.task_dict if each.split(".")[-1] == "t")
    operator = found.task_dict[name].prepare_for_execution()
    context = context_of(operator, map_index=map_index, conf=conf)
    operator.render_template_fields(context, found.get_template_env())
    return context["task"]
