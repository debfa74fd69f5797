"""An archive of Spark's classes, with which Java starts a driver some seconds sooner.

Java's class-data sharing (JEP 350): classes that were loaded, checked and linked once are mapped
into memory. An archive fits one Java and one class path, which Java checks, and then goes without.
Here it is looked for under a name made of both, so that an old one is not even tried.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from airflow_provider_merge.submit.java import HOME, java_of
from airflow_provider_merge.submit.linked_home import home_in, is_home
from airflow_provider_merge.submit.spark_environment import SparkEnvironment

CLASS_PATH = "spark.driver.extraClassPath"
OPTIONS = "SPARK_SUBMIT_OPTS"
_SHARED = "SharedArchiveFile"


@dataclass(frozen=True, slots=True)
class ClassArchive:
    """An archive, and the Spark home that it was made with."""

    path: Path
    spark_home: Path

    @property
    def class_path(self) -> str:
        """What the class path begins with: Java shares no classes behind a folder with files.

        Spark puts the folder with its settings in front of its jars, none of which holds such.
        """
        return str(self.spark_home / "jars" / "*")


class NoArchiveError(Exception):
    """Drivers start without an archive; the text says why."""


class MissingArchiveError(NoArchiveError):
    """There is none yet, or not a whole one: to make one helps."""


def usable_archive(
    folder: Path,
    environment: SparkEnvironment,
    conf: Mapping[str, str],
    variables: Mapping[str, str],
) -> ClassArchive:
    """The archive in ``folder`` for a driver with these settings.

    Raises:
        NoArchiveError: the driver starts without.
    """
    _require_no_other_choice(environment, conf, variables)
    key = archive_key(environment, variables)
    if not folder.exists():
        raise MissingArchiveError(f"there is no folder {folder}")
    return archive_in(folder, key)


def archive_key(environment: SparkEnvironment, variables: Mapping[str, str]) -> str:
    """What names the archive of a Java and a Spark; changes with either.

    Raises:
        NoArchiveError: there is no Java, or it or Spark cannot be looked at.
    """
    java, jars = java_of(variables), environment.spark_home / "jars"
    if java is None:
        raise NoArchiveError(f"there is no Java in {variables.get(HOME) or 'PATH'}")
    digest = hashlib.sha256(str(java).encode())
    try:
        release = java.parents[1] / "release"
        if release.is_file():
            digest.update(release.read_bytes())
        # In the order of the folder, which is the one in which Java finds them.
        for entry in os.scandir(jars):
            about = entry.stat()
            digest.update(f"\n{entry.path} {about.st_size} {about.st_mtime_ns}".encode())
    except OSError as error:
        raise NoArchiveError(f"{error.filename}: {error.strerror}") from error
    return digest.hexdigest()[:16]


def archive_name(key: str, size: int) -> str:
    """The name of an archive of that many bytes: Java aborts on one that was cut off."""
    return f"spark-{key}-{size}.jsa"


def archive_in(folder: Path, key: str) -> ClassArchive:
    """The archive of that key, which belongs to this user alone.

    Raises:
        NoArchiveError: there is none, or it cannot be trusted.
    """
    require_own(folder)
    paths = sorted(folder.glob(f"spark-{key}-*.jsa"))
    if not paths:
        raise MissingArchiveError(f"{folder} has none for this Java and Spark")
    path = paths[-1]
    about = path.lstat()
    if not stat.S_ISREG(about.st_mode) or about.st_uid != os.geteuid() or about.st_mode & 0o077:
        raise NoArchiveError(f"{path} is not a file of this user alone")
    if path.name != archive_name(key, about.st_size):
        raise MissingArchiveError(f"{path} was cut off")
    home = home_in(folder, key)
    if not is_home(home):
        raise MissingArchiveError(f"{home} is missing")
    return ClassArchive(path, home)


def require_own(folder: Path) -> None:
    """Check that nobody else may write to the folder.

    Raises:
        NoArchiveError: somebody may, or it cannot be looked at.
    """
    try:
        about = folder.stat()
    except OSError as error:
        raise NoArchiveError(f"{folder}: {error.strerror}") from error
    if about.st_uid != os.geteuid() or about.st_mode & 0o022:
        raise NoArchiveError(f"others may write to {folder}")


def launcher_options(archive: ClassArchive, variables: Mapping[str, str]) -> str:
    """What the variable OPTIONS says, after what it says in ``variables``.

    The archive is mapped to the address that it was made for: elsewhere Java would have to adapt
    all of it first.
    """
    quoted = re.sub(r'(["\\])', r"\\\1", str(archive.path))
    flags = "-Xshare:auto -XX:+VerifySharedSpaces"
    address = "-XX:+UnlockDiagnosticVMOptions -XX:ArchiveRelocationMode=0"
    own = f'{flags} {address} "-XX:{_SHARED}={quoted}"'
    return f"{variables.get(OPTIONS, '')} {own}".strip()


def _require_no_other_choice(
    environment: SparkEnvironment, conf: Mapping[str, str], variables: Mapping[str, str]
) -> None:
    """The archive is in the way of no setting of the user's."""
    said = [*conf.values(), variables.get(OPTIONS, ""), variables.get("JDK_JAVA_OPTIONS", "")]
    if any(_SHARED in str(each) for each in said):
        raise NoArchiveError(f"another {_SHARED} is set")
    if CLASS_PATH in conf:
        raise NoArchiveError(f"{CLASS_PATH} is set")
    settings = Path(variables.get("SPARK_CONF_DIR") or environment.spark_home / "conf")
    try:
        text = (settings / "spark-defaults.conf").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return
    if re.search(rf"(?m)^[^\S\n]*{CLASS_PATH}\b", text):
        raise NoArchiveError(f"{settings}/spark-defaults.conf sets {CLASS_PATH}")
