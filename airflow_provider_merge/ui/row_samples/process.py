"""Reads rows in a process of its own, which is ended if it takes too long.

Data files may be damaged or hostile: what they do to their reader must not reach Airflow's server.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict
from typing import Final

from airflow_provider_merge.ui.row_samples.documents import PartRows, Question
from spark_jobs.errors import CatalogError, ErrorCode

_READER: Final = "airflow_provider_merge.ui.row_samples.reader"
_SECONDS: Final = 15.0
_NOT_INSTALLED: Final = 3


def read_rows(question: Question, environment: Mapping[str, str]) -> list[PartRows]:
    """The rows of each part, in their order; ``environment`` is that of the process.

    Raises:
        CatalogError: LIBRARY_MISSING, DATA_FILE_UNREADABLE.
        TimeoutError: it took too long.
    """
    command = [sys.executable, "-P", "-m", _READER]
    try:
        # The question holds secrets, which arguments and the environment would show.
        done = subprocess.run(
            command,
            input=json.dumps(asdict(question)).encode(),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=dict(environment),
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise TimeoutError from None
    if done.returncode == _NOT_INSTALLED:
        raise CatalogError(
            ErrorCode.LIBRARY_MISSING,
            "pyarrow, which reads rows, is not installed beside the API server.",
            'Install it: pip install "airflow-provider-merge[ui]".',
        )
    if done.returncode:
        raise CatalogError(
            ErrorCode.DATA_FILE_UNREADABLE,
            f"The process that reads rows has ended ({done.returncode}).",
            "A data file may be damaged, or too large to be read here.",
        )
    return [PartRows(**each) for each in json.loads(done.stdout)]
