"""Makes an archive of Spark's classes: small statements, then Java's dump of what they loaded."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from airflow_provider_merge import job_package
from airflow_provider_merge.submit.class_archive import (
    CLASS_PATH,
    ClassArchive,
    NoArchiveError,
    archive_in,
    archive_key,
    archive_name,
    require_own,
)
from airflow_provider_merge.submit.java import is_packaged, java_of, java_variables
from airflow_provider_merge.submit.linked_home import home_in, make_home, remove_home
from airflow_provider_merge.submit.locales import utf8_variables
from airflow_provider_merge.submit.spark_environment import SparkEnvironment

_UNFINISHED = ".unfinished"
_LOCK = ".lock"
_LAST_LINES = 20


def make(
    folder: Path, environment: SparkEnvironment, variables: Mapping[str, str]
) -> tuple[Path, bool]:
    """Make an archive, about 170 MB in a minute; False beside its path if it is there already.

    Makers in one folder wait for each other. What a killed one left goes with the next.

    Raises:
        NoArchiveError: with what was said last.
        CatalogError: JAVA_NOT_FOUND.
    """
    variables = {**variables, **java_variables(environment, variables)}
    key = archive_key(environment, variables)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        require_own(folder)
        with _alone(folder):
            with contextlib.suppress(NoArchiveError):
                return archive_in(folder, key).path, False
            for left in [*folder.glob(f"*{_UNFINISHED}"), *folder.glob(f"spark-{key}-*")]:
                left.unlink()
            java = java_of(variables)
            if java is not None and is_packaged(variables):
                _make_base(java.parents[1] / "lib" / "server" / "classes.jsa", java)
            unfinished = ClassArchive(folder / f"spark-{key}{_UNFINISHED}", home_in(folder, key))
            _make(environment, unfinished, variables, key)
    except OSError as error:
        raise NoArchiveError(f"{folder}: {error.strerror or error}") from error
    return archive_in(folder, key).path, True


def is_being_made(folder: Path) -> bool:
    """Whether a maker works in the folder; raises OSError."""
    descriptor = os.open(folder / _LOCK, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def _make(
    environment: SparkEnvironment, unfinished: ClassArchive, variables: Mapping[str, str], key: str
) -> None:
    path = unfinished.path
    try:
        make_home(environment.spark_home, unfinished.spark_home)
        _dump(environment, unfinished, variables)
        path.chmod(0o400)
        path.replace(path.with_name(archive_name(key, path.stat().st_size)))
    except BaseException:
        path.unlink(missing_ok=True)
        remove_home(unfinished.spark_home)
        raise


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """While no other maker works in the folder; a killed one holds nothing."""
    descriptor = os.open(folder / _LOCK, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _make_base(path: Path, java: Path) -> None:
    """Java's archive of its own classes, which others build on; a stripped Java lacks it."""
    if path.exists():
        return
    unfinished = path.with_name(f"{path.name}.{os.getpid()}")
    done = _run([str(java), "-Xshare:dump", f"-XX:SharedArchiveFile={unfinished}"])
    if done.returncode != 0 or not unfinished.is_file():
        raise NoArchiveError(f"Java could not make {path}:\n{_last_lines(done)}")
    unfinished.replace(path)


def _dump(
    environment: SparkEnvironment, target: ClassArchive, variables: Mapping[str, str]
) -> None:
    # Settings of Spark or Hadoop would bring folders into the class path.
    own = ("SPARK_", "HADOOP_", "YARN_", "PYSPARK_", "JDK_JAVA_OPTIONS")
    plain_variables = {key: value for key, value in variables.items() if not key.startswith(own)}
    plain_variables |= utf8_variables(plain_variables) or {}
    home = str(target.spark_home)
    with tempfile.TemporaryDirectory(prefix="merge-class-archive-") as work:
        command = _command(environment, target, Path(work))
        own_variables = {"SPARK_HOME": home, "SPARK_LOCAL_IP": "127.0.0.1"}
        done = _run(command, env=plain_variables | own_variables, cwd=work)
    if done.returncode != 0 or not target.path.is_file():
        said = _last_lines(done)
        raise NoArchiveError(f"Spark ended with exit code {done.returncode}:\n{said}")


def _run(
    command: list[str], env: Mapping[str, str] | None = None, cwd: str | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        env=env,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="backslashreplace",
        check=False,
    )


def _last_lines(done: subprocess.CompletedProcess[str]) -> str:
    return "\n".join(done.stdout.splitlines()[-_LAST_LINES:])


def _command(environment: SparkEnvironment, target: ClassArchive, work: Path) -> list[str]:
    # A copy: beside the package, its modules would be found under their short names.
    script, package = work / "training.py", work / "package.zip"
    shutil.copyfile(job_package.main_file().with_name(script.name), script)
    job_package.write_zip(package)
    python = str(environment.python)
    settings = {
        CLASS_PATH: target.class_path,
        "spark.authenticate": "true",
        "spark.driver.extraJavaOptions": f'-Xlog:disable "-XX:ArchiveClassesAtExit={target.path}"',
        "spark.pyspark.python": python,
        "spark.pyspark.driver.python": python,
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
    }
    conf = [part for key, value in settings.items() for part in ("--conf", f"{key}={value}")]
    launcher = [str(environment.spark_submit), "--master", "local[2]", *conf]
    return [*launcher, "--py-files", str(package), str(script), str(work / "warehouse")]
