"""Keys that a REST catalog's server hands out for the storage of a table."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pyarrow as pa

from spark_jobs.connectors.iceberg.library.catalogs import IcebergCatalog
from spark_jobs.connectors.iceberg.library.files import table_storage
from spark_jobs.storage.table_storage import TableStorage
from tests.connectors.iceberg.plain_tables import NAME, PlainCatalog

_BUCKET = "s3://bucket/tables"


@contextmanager
def _serving(loaded: dict[str, Any]) -> Iterator[str]:
    """The address of a catalog that has one table, and answers so to who loads it."""
    answers = {"/v1/config": {"defaults": {}, "overrides": {}}}

    class Answering(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            content = json.dumps(answers.get(self.path.partition("?")[0], loaded)).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answering) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_the_keys_for_the_longest_prefix_go_before_those_of_the_table_s_configuration(
    tmp_path: Path,
) -> None:
    made = PlainCatalog(tmp_path).create(pa.schema([("id", pa.int64())]), {"s3.region": "x"}, None)
    metadata = {**json.loads(made.metadata.model_dump_json()), "location": _BUCKET}

    def keys(name: str) -> dict[str, str]:
        return {"s3.access-key-id": name, "s3.secret-access-key": "secret"}

    loaded = {
        "metadata-location": f"{_BUCKET}/metadata/1.metadata.json",
        "metadata": metadata,
        "config": keys("configured"),
        "storage-credentials": [
            {"prefix": "s3://bucket", "config": keys("of the bucket")},
            {"prefix": _BUCKET, "config": keys("of the table")},
            {"prefix": f"{_BUCKET}/other", "config": keys("of another")},
        ],
    }
    own = {"s3.endpoint": "http://127.0.0.1:9", "s3.region": "y"}
    with _serving(loaded) as uri:
        table = IcebergCatalog({"type": "rest", "uri": uri, "token": "t", **own}).load(NAME)

    def storage(name: str) -> TableStorage:
        return table_storage(_BUCKET, {**own, **keys(name)})

    assert table is not None
    assert table.storage == storage("of the table")
    assert table.storage != storage("configured")
