"""An S3 server that a test can stop and start again."""

from __future__ import annotations

import json
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.support.gateway import serving

ACCESS_KEY, SECRET_KEY = "LIVEACCESSKEY", "live-store-secret"


@dataclass
class Store:
    """The bucket ``lake`` of a server, on the same port whenever it runs."""

    program: Path
    folder: Path
    endpoint: str = ""
    access_key: str = ACCESS_KEY
    secret_key: str = SECRET_KEY
    _running: ExitStack = field(default_factory=ExitStack)

    @property
    def bucket(self) -> Path:
        """The folder behind the bucket."""
        return self.folder / "data" / "lake"

    def start(self) -> None:
        """Start the server."""
        self.bucket.mkdir(parents=True, exist_ok=True)
        port = urlsplit(self.endpoint).port
        server = serving(self.program, self.folder, self.access_key, self.secret_key, port)
        self.endpoint = self._running.enter_context(server)

    def stop(self) -> None:
        """Kill the server, if it runs."""
        self._running.close()

    def connection(self, conn_id: str) -> dict[str, Any]:
        """A connection to the warehouse ``s3://lake``, as Airflow's API takes it."""
        return {
            "connection_id": conn_id,
            "conn_type": "paimon",
            "login": self.access_key,
            "password": self.secret_key,
            "extra": json.dumps({"warehouse": "s3://lake", "endpoint": self.endpoint}),
        }
