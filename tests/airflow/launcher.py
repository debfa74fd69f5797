"""A Spark environment whose spark-submit, or Python, is a script that tells how it was started."""

from __future__ import annotations

import json
import shutil
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TABLE_LIBRARIES = ("pyiceberg-0.12.0", "pypaimon-2.1.0")
_RECORD = """\
#!{python}
import json, os, subprocess, sys, time
arguments = sys.argv[1:]
files = {{}}
for argument in arguments:
    for path in argument.split(","):
        if os.path.isfile(path):
            mode = oct(os.stat(path).st_mode & 0o777)
            folder_mode = oct(os.stat(os.path.dirname(path)).st_mode & 0o777)
            text = open(path, "rb").read().decode("utf-8", "replace")
            files[path] = {{"mode": mode, "folder_mode": folder_mode, "text": text}}
record = {{"arguments": arguments, "environment": dict(os.environ), "files": files}}
with open({record!r} + ".part", "w") as file:
    json.dump(record, file)
os.rename({record!r} + ".part", {record!r})
print("the launcher's last words")
{then}
"""


@dataclass(frozen=True)
class Launcher:
    """The environment's folder, and what its spark-submit or Python saw."""

    folder: Path
    record: Path

    @classmethod
    def make(cls, folder: Path, then: str = "") -> Launcher:
        """``then``: Python lines that the launcher runs at the end."""
        launcher = cls(folder, folder / "record.json")
        home = folder / "lib" / "python3.11" / "site-packages" / "pyspark" / "bin"
        home.mkdir(parents=True)
        for name in ("numpy-2.4.6", "pandas-2.3.3", "pyarrow-19.0.1", *TABLE_LIBRARIES):
            about = home.parents[1] / f"{name}.dist-info" / "METADATA"
            about.parent.mkdir()
            about.write_text(f"Version: {name.partition('-')[2]}\n")
        (folder / "bin").mkdir()
        (folder / "bin" / "python").symlink_to(sys.executable)
        script = home / "spark-submit"
        text = _RECORD.format(
            python=sys.executable, record=str(launcher.record), then=textwrap.dedent(then)
        )
        script.write_text(text)
        script.chmod(0o755)
        return launcher

    @classmethod
    def of_python(cls, folder: Path, then: str = "") -> Launcher:
        """As ``make``, for the environment's Python."""
        launcher = cls.make(folder, then)
        (script,) = folder.rglob("spark-submit")
        python = folder / "bin" / "python"
        python.unlink()
        shutil.copy(script, python)
        return launcher

    @property
    def seen(self) -> dict[str, Any]:
        """The arguments, environment and files of the only start."""
        document: dict[str, Any] = json.loads(self.record.read_text())
        return document

    @property
    def arguments(self) -> list[str]:
        return list(self.seen["arguments"])

    def given(self, name: str) -> str:
        """The value behind an option that was given."""
        value = self.option(name)
        assert value is not None
        return value

    def option(self, name: str) -> str | None:
        """The value behind an option; None when it was not given."""
        arguments = self.arguments
        return arguments[arguments.index(name) + 1] if name in arguments else None

    @property
    def conf(self) -> dict[str, str]:
        pairs = zip(self.arguments, self.arguments[1:], strict=False)
        return dict(value.split("=", 1) for name, value in pairs if name == "--conf")
