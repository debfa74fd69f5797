"""A Spark home of links to another one, with all of its jars but MLlib's.

Every new session loads the extensions that jars offer to Java's ServiceLoader. MLlib's registers
functions of its Python interface, through Scala's reflection: 0.9 of the two seconds that a session
takes, for functions that no SQL can name.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Final

_LEFT_OUT: Final = "spark-mllib_*.jar"
_JARS: Final = "jars"


def home_in(folder: Path, key: str) -> Path:
    """Where the home belongs that an archive of that key was made with."""
    return folder / f"spark-{key}"


def make_home(spark_home: Path, target: Path) -> None:
    """Make ``target`` anew.

    Raises:
        OSError: it cannot be made.
    """
    remove_home(target)
    (target / _JARS).mkdir(mode=0o700, parents=True)
    for entry in spark_home.iterdir():
        if entry.name != _JARS:
            (target / entry.name).symlink_to(entry)
    # In the order of the folder, which is the one in which Java finds them.
    for jar in os.scandir(spark_home / _JARS):
        path = Path(jar.path)
        if not path.match(_LEFT_OUT):
            (target / _JARS / jar.name).symlink_to(path)


def remove_home(target: Path) -> None:
    """Remove ``target``, if it is there; what its links name stays."""
    shutil.rmtree(target, ignore_errors=True)


def is_home(target: Path) -> bool:
    """Whether a home was made there."""
    return (target / _JARS).is_dir()
