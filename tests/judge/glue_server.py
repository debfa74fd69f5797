"""AWS Glue for tests: moto's, with what it lacks and commits need.

moto stores an UpdateTable whatever ``VersionId`` it names. Here, as in AWS, one of another version
than the table's is refused. Tests of Airflow's environment, which has no moto, take
``glue_beside_airflow``.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.judge.serving import serving
from tests.support.stores import ObjectStore, moto_store

_ROOT = Path(__file__).resolve().parents[2]


@contextmanager
def versions_checked() -> Iterator[None]:
    """Within it, moto's Glue refuses an update of a version that is not the table's."""
    from moto.glue.exceptions import GlueClientError
    from moto.glue.responses import GlueResponse

    stored, lock = GlueResponse.update_table, threading.Lock()

    def update_table(self: Any) -> Any:
        with lock:
            name = self.parameters["TableInput"]["Name"]
            table = self.glue_backend.get_table(self.parameters["DatabaseName"], name)
            if self.parameters["VersionId"] != table.as_dict()["VersionId"]:
                raise GlueClientError("ConcurrentModificationException", "Another version.")
            return stored(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(GlueResponse, "update_table", update_table)
        yield


@pytest.fixture(scope="session")
def glue(moto: ObjectStore) -> Iterator[ObjectStore]:
    """The server ``moto``, as Glue and as S3."""
    with versions_checked():
        yield moto


@pytest.fixture(scope="session")
def glue_beside_airflow() -> Iterator[str]:
    """The address of a server that the Spark environment runs."""
    python = Path(os.environ.get("MERGE_SPARK_ENV", _ROOT / ".venv-spark"), "bin", "python")
    with serving([str(python), "-m", "tests.judge.glue_server"]) as endpoint:
        yield endpoint


def main() -> int:
    """Serve until standard input ends."""
    with moto_store() as store, versions_checked():
        sys.stdout.write(f"{store.endpoint}\n")
        sys.stdout.flush()
        sys.stdin.read()
    return 0


if __name__ == "__main__":
    sys.exit(main())
