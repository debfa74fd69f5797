"""What a task says when its ``execution_timeout`` passes: its phase, and what it waited for."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from airflow.providers.common.compat.sdk import AirflowTaskTimeout

from airflow_provider_merge.submit.phases import PREPARE, Phases
from airflow_provider_merge.task_errors import task_place

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_provider_merge.operators._shared.spark_job import SparkJobOperator

_Operator = TypeVar("_Operator", bound="SparkJobOperator")


def telling_timeouts(
    execute: Callable[[_Operator, Context], dict[str, Any]],
) -> Callable[[_Operator, Context], dict[str, Any]]:
    """An operator's ``execute`` whose time-out names the phase."""

    @functools.wraps(execute)
    def told(operator: _Operator, context: Context) -> dict[str, Any]:
        operator.phases = Phases()
        operator.phases.enter(PREPARE)
        try:
            return execute(operator, context)
        except AirflowTaskTimeout as error:
            limit, phase = operator.execution_timeout, operator.phases.text()
            raise AirflowTaskTimeout(
                f"{error}. The task was ended by its execution_timeout, {limit}, {phase}.\n"
                f"Where: {task_place(context)}\n"
                "Remedy: Find out why that takes so long, or raise execution_timeout. "
                "A retry finds what was committed."
            ) from None

    return told
