"""Keys that a REST catalog's server hands out for the storage of a table."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa

from spark_jobs.connectors.iceberg.library.catalogs import IcebergCatalog
from spark_jobs.connectors.iceberg.library.files import table_storage
from spark_jobs.storage.table_storage import TableStorage
from tests.connectors.iceberg.plain_tables import NAME, PlainCatalog
from tests.support.small_server import Answer, serving

_BUCKET = "s3://bucket/tables"


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

    def answer_to(path: str) -> Answer:
        settings = {"defaults": {}, "overrides": {}}
        return 200, settings if path == "/v1/config" else loaded

    with serving(answer_to) as uri:
        table = IcebergCatalog({"type": "rest", "uri": uri, "token": "t", **own}).load(NAME)

    def storage(name: str) -> TableStorage:
        return table_storage(_BUCKET, {**own, **keys(name)})

    assert table is not None
    assert table.storage == storage("of the table")
    assert table.storage != storage("configured")
