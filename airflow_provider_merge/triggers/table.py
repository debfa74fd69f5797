"""The trigger behind all sensors, which also watches tables for ``AssetWatcher``."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Hashable, Mapping
from dataclasses import asdict
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar

from airflow.triggers.base import BaseEventTrigger, TriggerEvent

from airflow_provider_merge.table_names import parse_table_name
from airflow_provider_merge.times import seconds_of
from airflow_provider_merge.triggers.gates import gate_of
from airflow_provider_merge.triggers.polling import Poll, answers, is_passing
from airflow_provider_merge.triggers.watching import new_snapshots
from spark_jobs.contract.result import ErrorInfo
from spark_jobs.errors import JobError

if TYPE_CHECKING:
    from airflow.triggers.shared_stream import SharedStreamProducer

log = logging.getLogger(__name__)


class TableTrigger(BaseEventTrigger):
    """Sends an event for every new snapshot of a table; with a condition, one when it is met.

    As the watcher of an asset::

        Asset("orders", watchers=[AssetWatcher("orders", TableTrigger("shop.orders"))])

    The payload of an event has ``table``, ``snapshot_id``, ``commit_kind``, ``time`` and, for
    snapshots created by this provider, ``statement``, ``operation_id``, ``dag_id``, ``run_id`` and
    ``task_id``. Guide: docs/gates.md.

    On Airflow 3.3, the asset's state store keeps the last snapshot whose event is stored: no event
    is lost while no triggerer runs, as long as the table retains the snapshots. Airflow 3.2 keeps
    no state: there a trigger begins with the next snapshot after its own start, and logs this.

    :param table: ``database.table``
    :param catalog_conn_id: connection to the catalog, for example of the type ``paimon``
    :param poll_interval: seconds between two polls, or a ``timedelta``; triggers on one table with
        the same interval share them
    :param gate: a sensor's condition (``gates.gate_arguments``); None: every snapshot
    :param deadline: when to give up waiting, in seconds since 1970
    :param seen: what the sensor's own poll found, for the message after a timeout
    """

    # One for each trigger that is running: the producer of its events finds its state store here.
    _running: ClassVar[dict[str, TableTrigger]] = {}

    def __init__(
        self,
        table: str,
        catalog_conn_id: str = "paimon_default",
        poll_interval: float | timedelta = 30.0,
        gate: Mapping[str, Any] | None = None,
        deadline: float | None = None,
        seen: str = "nothing yet",
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        parse_table_name(table, "table")
        self.table = table
        self.catalog_conn_id = catalog_conn_id
        self.poll_interval = seconds_of("poll_interval", poll_interval)
        self.gate = gate
        self.deadline = deadline
        self.seen = seen

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Class and arguments; watchers with the same ones share one trigger."""
        arguments = {
            "table": self.table,
            "catalog_conn_id": self.catalog_conn_id,
            "poll_interval": self.poll_interval,
        }
        if self.gate is not None:
            arguments |= {"gate": dict(self.gate), "deadline": self.deadline, "seen": self.seen}
        return f"{type(self).__module__}.{type(self).__qualname__}", arguments

    @property
    def poll(self) -> Poll:
        """What is polled."""
        return Poll(self.catalog_conn_id, self.table, self.poll_interval)

    async def run(self) -> AsyncGenerator[TriggerEvent, None]:
        """One event when the condition is met, times out or fails; without one, every snapshot."""
        events = self._watch() if self.gate is None else self._wait(self.gate)
        async for event in events:
            yield _event(event)

    def shared_stream_key(self) -> Hashable | None:
        """A stream of its own for each watcher: Airflow then confirms which events it stored."""
        if self.gate is not None or self.asset_state_store is None:
            return None
        key = _key(self.serialize()[1])
        self._running[key] = self
        return key

    @classmethod
    def create_shared_stream_producer(cls, kwargs: dict[str, Any]) -> SharedStreamProducer:
        """The producer of a watcher's events, which keeps its state."""
        from airflow_provider_merge.triggers.stored_events import StoredEvents

        trigger = cls._running[_key(kwargs)]
        return StoredEvents(trigger.poll, trigger.asset_state_store)

    async def filter_shared_stream(
        self, shared_stream: AsyncIterator[Any]
    ) -> AsyncIterator[TriggerEvent]:
        """Every payload is an event."""
        async for payload in shared_stream:
            yield _event(payload)

    async def cleanup(self) -> None:
        """Forget the running trigger."""
        key = _key(self.serialize()[1])
        if self._running.get(key) is self:
            del self._running[key]

    async def _watch(self) -> AsyncIterator[dict[str, Any]]:
        log.warning(
            "Watching %s without a state store (Airflow before 3.3): events begin with the next "
            "snapshot. Snapshots that are created while no triggerer runs have no event.",
            self.table,
        )
        async for payload, _ in new_snapshots(self.poll, None):
            if payload:
                yield payload

    async def _wait(self, arguments: Mapping[str, Any]) -> AsyncIterator[dict[str, Any]]:
        gate, seen = gate_of(arguments), self.seen
        async with answers(self.poll, gate.observe) as stream:
            while True:
                try:
                    answer = await asyncio.wait_for(anext(stream), self._seconds_left())
                except TimeoutError:
                    yield {"status": "timeout", "seen": seen}
                    return
                if is_passing(answer):
                    log.warning("%s could not be polled: %s", self.table, answer)
                    seen = str(answer)
                elif isinstance(answer, JobError):
                    yield {"status": "error", "error": asdict(ErrorInfo.of(answer))}
                    return
                elif isinstance(answer, Exception):
                    raise answer
                elif answer.facts is not None:
                    yield {"status": "open", "facts": answer.facts, "seen": answer.seen}
                    return
                elif answer.seen != seen:
                    seen = answer.seen
                    log.info("%s: %s", self.table, seen)

    def _seconds_left(self) -> float | None:
        return None if self.deadline is None else max(self.deadline - time.time(), 0)


def _event(payload: Mapping[str, Any]) -> TriggerEvent:
    return TriggerEvent(dict(payload))  # type: ignore[no-untyped-call]


def _key(arguments: Mapping[str, Any]) -> str:
    return json.dumps(arguments, sort_keys=True)
