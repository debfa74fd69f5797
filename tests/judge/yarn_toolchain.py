"""What YARN's daemons run on: Apache's own jars, fetched once into ``.tools/judge``."""

from __future__ import annotations

import os
from pathlib import Path

from tests.judge.toolchain import Toolchain, compiled, fetched_tree, java_tool

_PROJECT = Path(__file__).with_name("yarn") / "pom.xml"


def yarn_toolchain() -> Toolchain:
    """What the daemons run on.

    Raises:
        JudgeMissingError: there is no JDK, or the jars cannot be fetched.
    """
    java = java_tool("java")
    libraries = f"{fetched_tree(_PROJECT)}{os.sep}*"
    return Toolchain(java, f"{compiled(libraries, ('YarnDaemon',))}{os.pathsep}{libraries}")
