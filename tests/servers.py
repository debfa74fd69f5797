"""Builds and fetches the servers that tests need: ``python -m tests.servers``.

``make test`` calls it before the suites start, which would wait for each other's downloads. What
is missing on this machine is said and is no failure: the tests that need it are skipped.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from tests.judge.hdfs_server import hdfs_toolchain
from tests.judge.iceberg_server import iceberg_toolchain
from tests.judge.rest_server import rest_toolchain
from tests.judge.toolchain import JudgeMissingError, prepare
from tests.judge.yarn_toolchain import yarn_toolchain
from tests.support.gateway import GatewayMissingError, gateway_program


def main() -> None:
    """Make all of them, Go's server beside those of Java."""
    with ThreadPoolExecutor() as pool:
        list(pool.map(_say_what_is_missing, (gateway_program, _java_programs)))


def _java_programs() -> None:
    prepare()
    hdfs_toolchain()
    rest_toolchain()
    iceberg_toolchain()
    yarn_toolchain()


def _say_what_is_missing(make: Callable[[], object]) -> None:
    try:
        make()
    except (GatewayMissingError, JudgeMissingError) as missing:
        sys.stderr.write(f"Tests will be skipped: {missing}\n")


if __name__ == "__main__":
    main()
