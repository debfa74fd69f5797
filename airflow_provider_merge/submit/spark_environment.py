"""The Python environment that holds pyspark: where its spark-submit is, and how Spark is told."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from airflow_provider_merge.exceptions import invalid


@dataclass(frozen=True, slots=True)
class SparkEnvironment:
    """Absolute paths inside the environment."""

    python: Path
    spark_home: Path

    @property
    def spark_submit(self) -> Path:
        """The launcher; it needs neither PATH nor an activated environment."""
        return self.spark_home / "bin" / "spark-submit"

    @property
    def version(self) -> tuple[int, int] | None:
        """The first two numbers of Spark's version; None if pyspark does not tell it."""
        try:
            text = (self.spark_home / "version.py").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return None
        found = re.search(r"^__version__[^=\n]*= *['\"](\d+)\.(\d+)", text, re.MULTILINE)
        return (int(found[1]), int(found[2])) if found else None

    @classmethod
    def at(cls, folder: str, field: str) -> SparkEnvironment:
        """The environment in ``folder``; ``field`` is where that folder was configured.

        Raises:
            RequestError: REQUEST_INVALID when it holds no Python or no pyspark.
        """
        remedy = "Name the folder of a Python environment in which pyspark is installed."
        try:
            root = Path(folder).expanduser()
        except RuntimeError as error:
            raise invalid(field, f"{folder!r}: {error}", remedy) from None
        if not root.is_absolute():
            raise invalid(field, f"{folder!r} is not an absolute path", remedy)
        python = root / "bin" / "python"
        if not python.exists():
            raise invalid(field, f"{python} does not exist", remedy)
        homes = sorted(root.glob("lib/python*/site-packages/pyspark"))
        environments = [cls(python, home) for home in homes]
        for environment in environments:
            if environment.spark_submit.is_file():
                return environment
        raise invalid(field, f"{root} has no pyspark/bin/spark-submit", remedy)
