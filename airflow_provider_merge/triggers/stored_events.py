"""Events of a watcher, with a state that follows what Airflow has stored (Airflow 3.3)."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import AsyncGenerator, Sequence
from typing import Any, Final

from airflow.triggers.shared_stream import AdvanceItem, SharedStreamProducer

from airflow_provider_merge.triggers.polling import Poll
from airflow_provider_merge.triggers.watching import StreamPosition, new_snapshots

log = logging.getLogger(__name__)
# Airflow fails a subscriber whose queue is longer than 1024.
_MOST_UNSTORED: Final = 500


class StoredEvents(SharedStreamProducer):
    """Snapshots after the last one whose event is stored.

    ``store`` is the state store of the watched asset.
    """

    def __init__(self, poll: Poll, store: Any) -> None:
        self._poll = poll
        self._store = store
        self._key = state_key(poll)
        self._unstored = 0
        self._is_broken = False
        self._room = asyncio.Event()

    async def open_stream(self) -> AsyncGenerator[tuple[Any, Any], None]:
        """Payload and position of each snapshot."""
        async for payload, position in new_snapshots(self._poll, await self._stored()):
            if not payload:
                await self._store.aset(self._key, position.document())
                continue
            while self._unstored >= _MOST_UNSTORED:
                self._room.clear()
                await self._room.wait()
            self._unstored += 1
            yield payload, position
            # Let the event be taken.
            await asyncio.sleep(0)

    async def advance(self, batch: Sequence[AdvanceItem]) -> None:
        """Keep the position of the last event that is stored."""
        self._unstored -= len(batch)
        self._room.set()
        stored = None
        for item in batch:
            if self._is_broken or not item.outcome.is_clean:
                # The next start goes on before it, and tells it again.
                log.error("An event of %s was not stored: %s", self._poll.table, item.outcome)
                self._is_broken = True
                break
            stored = item.broker_payload
        if stored is not None:
            await self._store.aset(self._key, stored.document())

    async def _stored(self) -> StreamPosition | None:
        document = await self._store.aget(self._key)
        if not isinstance(document, dict):
            return None
        return StreamPosition(int(document["snapshot_id"]), int(document["time_millis"]))


def state_key(poll: Poll) -> str:
    """The key of a watcher's position among the state of its asset, whatever its interval."""
    text = f"{poll.catalog_conn_id} {poll.table}"
    return f"paimon-snapshot-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
