"""The archive of Spark's classes: which one a driver is started with, and how it is made."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from airflow_provider_merge.__main__ import main
from airflow_provider_merge.submit.class_archive import (
    CLASS_PATH,
    ClassArchive,
    MissingArchiveError,
    NoArchiveError,
    archive_in,
    archive_key,
    archive_name,
    launcher_options,
    usable_archive,
)
from airflow_provider_merge.submit.linked_home import home_in, make_home
from airflow_provider_merge.submit.spark_environment import SparkEnvironment

VARIABLES = {"PATH": os.environ["PATH"]}


@pytest.fixture
def environment(tmp_path: Path) -> SparkEnvironment:
    """As much of a Spark as names an archive."""
    home = tmp_path / "spark"
    (home / "jars").mkdir(parents=True)
    (home / "jars" / "spark-core.jar").write_bytes(b"jar")
    return SparkEnvironment(tmp_path / "python", home)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "archives"
    folder.mkdir(mode=0o700)
    return folder


def stored(folder: Path, key: str) -> Path:
    path = folder / archive_name(key, 4)
    path.write_bytes(b"data")
    path.chmod(0o400)
    (home_in(folder, key) / "jars").mkdir(parents=True, exist_ok=True)
    return path


class TestChoice:
    def test_the_archive_of_this_java_and_spark(
        self, folder: Path, environment: SparkEnvironment
    ) -> None:
        key = archive_key(environment, VARIABLES)
        path = stored(folder, key)
        stored(folder, "0123456789abcdef")

        found = usable_archive(folder, environment, {}, VARIABLES)

        assert found == ClassArchive(path, folder / f"spark-{key}")

    def test_a_jar_that_changed_needs_another(
        self, folder: Path, environment: SparkEnvironment
    ) -> None:
        stored(folder, archive_key(environment, VARIABLES))
        (environment.spark_home / "jars" / "spark-core.jar").write_bytes(b"other")

        with pytest.raises(MissingArchiveError, match="has none for this Java and Spark"):
            usable_archive(folder, environment, {}, VARIABLES)

    def test_another_java_needs_another(
        self, folder: Path, environment: SparkEnvironment, tmp_path: Path
    ) -> None:
        java = tmp_path / "jdk" / "bin" / "java"
        java.parent.mkdir(parents=True)
        java.touch()
        keys = {archive_key(environment, VARIABLES)}
        keys.add(archive_key(environment, {"JAVA_HOME": str(tmp_path / "jdk")}))
        (tmp_path / "jdk" / "release").write_text('JAVA_VERSION="21.0.1"')
        keys.add(archive_key(environment, {"JAVA_HOME": str(tmp_path / "jdk")}))

        assert len(keys) == 3

    def test_a_spark_without_jars(self, folder: Path, environment: SparkEnvironment) -> None:
        (environment.spark_home / "jars" / "spark-core.jar").unlink()
        (environment.spark_home / "jars").rmdir()

        with pytest.raises(NoArchiveError) as raised:
            usable_archive(folder, environment, {}, VARIABLES)

        assert not isinstance(raised.value, MissingArchiveError), "to make one would not help"

    def test_no_java(self, folder: Path, environment: SparkEnvironment, tmp_path: Path) -> None:
        with pytest.raises(NoArchiveError) as raised:
            usable_archive(folder, environment, {}, {"JAVA_HOME": str(tmp_path)})

        assert not isinstance(raised.value, MissingArchiveError), "to make one would not help"

    @pytest.mark.parametrize(
        ("conf", "variables"),
        [
            ({CLASS_PATH: "/opt/jars/*"}, {}),
            ({"spark.driver.extraJavaOptions": "-XX:SharedArchiveFile=/mine.jsa"}, {}),
            ({}, {"SPARK_SUBMIT_OPTS": "-XX:SharedArchiveFile=/mine.jsa"}),
            ({}, {"JDK_JAVA_OPTIONS": "-XX:SharedArchiveFile=/mine.jsa"}),
        ],
    )
    def test_settings_of_the_user_win(
        self,
        folder: Path,
        environment: SparkEnvironment,
        conf: dict[str, str],
        variables: dict[str, str],
    ) -> None:
        stored(folder, archive_key(environment, VARIABLES))

        with pytest.raises(NoArchiveError) as raised:
            usable_archive(folder, environment, conf, VARIABLES | variables)

        assert not isinstance(raised.value, MissingArchiveError), "to make one would not help"

    @pytest.mark.parametrize("line", [f"{CLASS_PATH} /opt/*", f"  {CLASS_PATH}=/opt/*"])
    def test_a_class_path_of_sparks_defaults_wins(
        self, folder: Path, environment: SparkEnvironment, tmp_path: Path, line: str
    ) -> None:
        stored(folder, archive_key(environment, VARIABLES))
        (tmp_path / "spark-defaults.conf").write_text(f"# {CLASS_PATH}\nspark.ui.port 1\n{line}\n")
        variables = VARIABLES | {"SPARK_CONF_DIR": str(tmp_path)}

        with pytest.raises(NoArchiveError) as raised:
            usable_archive(folder, environment, {}, variables)

        assert not isinstance(raised.value, MissingArchiveError), "to make one would not help"

    def test_the_launchers_options_keep_those_of_the_user(self) -> None:
        archive = ClassArchive(Path('/a "b"/c.jsa'), Path("/home"))
        said = launcher_options(archive, {"SPARK_SUBMIT_OPTS": "-Da=b"})

        assert said.startswith("-Da=b -Xshare:auto ")
        assert said.endswith(' "-XX:SharedArchiveFile=/a \\"b\\"/c.jsa"')

    def test_without_its_home_there_is_none(
        self, folder: Path, environment: SparkEnvironment
    ) -> None:
        key = archive_key(environment, VARIABLES)
        stored(folder, key)
        (home_in(folder, key) / "jars").rmdir()

        with pytest.raises(MissingArchiveError, match=f"spark-{key} is missing"):
            usable_archive(folder, environment, {}, VARIABLES)


class TestHome:
    def test_links_to_all_but_mllib(self, environment: SparkEnvironment, tmp_path: Path) -> None:
        home = environment.spark_home
        for name in ("spark-mllib_2.13-4.1.4.jar", "spark-mllib-local_2.13-4.1.4.jar"):
            (home / "jars" / name).touch()
        (home / "bin").mkdir()
        target = tmp_path / "linked"
        target.mkdir()
        (target / "left").touch()

        make_home(home, target)

        assert {path.name for path in target.iterdir()} == {"bin", "jars"}
        assert (target / "bin").resolve() == home / "bin"
        jars = {path.name: path.resolve().parent for path in (target / "jars").iterdir()}
        names = ("spark-core.jar", "spark-mllib-local_2.13-4.1.4.jar")
        assert jars == dict.fromkeys(names, home / "jars")


class TestTrust:
    def test_others_may_read_it(self, folder: Path) -> None:
        stored(folder, "k").chmod(0o440)

        with pytest.raises(NoArchiveError, match="not a file of this user alone"):
            archive_in(folder, "k")

    def test_another_users(self, folder: Path) -> None:
        if os.geteuid() != 0:
            pytest.skip("only root may give a file away")
        os.chown(stored(folder, "k"), 12345, -1)

        with pytest.raises(NoArchiveError, match="not a file of this user alone"):
            archive_in(folder, "k")

    def test_a_link(self, folder: Path, tmp_path: Path) -> None:
        (folder / archive_name("k", 4)).symlink_to(stored(tmp_path, "k"))

        with pytest.raises(NoArchiveError, match="not a file of this user alone"):
            archive_in(folder, "k")

    def test_a_folder_that_others_may_write_to(self, folder: Path) -> None:
        stored(folder, "k")
        folder.chmod(0o770)

        with pytest.raises(NoArchiveError, match="others may write to"):
            archive_in(folder, "k")

    def test_one_that_was_cut_off(self, folder: Path) -> None:
        path = stored(folder, "k")
        path.chmod(0o600)
        path.write_bytes(b"dat")

        with pytest.raises(NoArchiveError, match="was cut off"):
            archive_in(folder, "k")

    def test_no_folder(self, tmp_path: Path) -> None:
        with pytest.raises(NoArchiveError, match="No such file"):
            archive_in(tmp_path / "none", "k")


class TestCommand:
    def test_no_spark(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["class-archive"]) == 1
        assert "--spark-env: is missing" in capsys.readouterr().err

    def test_a_folder_that_can_not_be_made(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str], spark_env: str
    ) -> None:
        (tmp_path / "file").touch()
        arguments = ["--spark-env", spark_env, "--folder", str(tmp_path / "file" / "archives")]

        assert main(["class-archive", *arguments]) == 1
        assert "Not a directory" in capsys.readouterr().err


@pytest.fixture(scope="module")
def spark_env() -> str:
    folder = os.environ.get("MERGE_SPARK_ENV")
    assert folder, "MERGE_SPARK_ENV must name the Spark environment"
    return folder


Make = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def make(spark_env: str, folder: Path) -> Iterator[Make]:
    """Starts the command, in a process group of its own."""
    started: list[subprocess.Popen[str]] = []

    def start(**settings: object) -> subprocess.Popen[str]:
        command = [sys.executable, "-W", "ignore", "-m", "airflow_provider_merge", "class-archive"]
        process = subprocess.Popen(
            [*command, "--spark-env", spark_env, "--folder", str(folder)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            **settings,  # type: ignore[call-overload]
        )
        started.append(process)
        return process

    yield start
    for process in started:
        # Closes its pipes, and waits for its end.
        with process:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


def _limited() -> None:
    """No file may be larger than 32 MiB, as on a disk that is nearly full."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (2**25, 2**25))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)


# `make setup-classes` makes one, with which all jobs of the tests run.
@pytest.mark.extended
class TestMaking:
    def test_a_disk_that_gets_full(self, make: Make, folder: Path) -> None:
        done = make(preexec_fn=_limited)
        _, said = done.communicate(timeout=600)

        assert done.returncode == 1
        assert "Spark ended with" in said
        assert [path.name for path in folder.iterdir()] == [".lock"]

    def test_killed_then_two_at_once(self, make: Make, folder: Path, spark_env: str) -> None:
        killed = make()
        while not (folder / ".lock").exists():
            time.sleep(0.1)
        time.sleep(5)
        os.killpg(killed.pid, signal.SIGKILL)
        (folder / "spark-killed.unfinished").touch()

        makers = [make(), make()]
        said = sorted(each.communicate(timeout=600)[0].partition(":")[0] for each in makers)

        assert [each.returncode for each in makers] == [0, 0]
        assert said == ["made", "there already"]
        environment = SparkEnvironment.at(spark_env, "spark_env")
        archive = archive_in(folder, archive_key(environment, os.environ))
        names = {".lock", archive.path.name, archive.spark_home.name}
        assert {path.name for path in folder.iterdir()} == names


@pytest.mark.slow
def test_a_driver_takes_its_classes_from_an_archive_but_not_from_a_damaged_one(
    spark_env: str, tmp_path: Path
) -> None:
    made = Path(os.environ["AIRFLOW__MERGE__CLASS_ARCHIVE_FOLDER"])
    if not (made / "path").exists():
        pytest.skip("no archive was made: make setup-classes")
    environment = SparkEnvironment.at(spark_env, "spark_env")
    archive = archive_in(made, archive_key(environment, os.environ))
    whole = _driver(environment, archive, tmp_path)
    assert _shared(whole) > 5_000
    damaged = tmp_path / "damaged.jsa"
    data = bytearray(archive.path.read_bytes())
    for place in range(100_000, len(data), 500_000):
        data[place : place + 8] = b"\xff" * 8
    damaged.write_bytes(data)
    without = _driver(environment, replace(archive, path=damaged), tmp_path)
    assert _shared(without) == 0
    assert "Unable to use shared archive" in without


def _shared(said: str) -> int:
    return said.count("source: shared objects file (top)")


def _driver(environment: SparkEnvironment, archive: ClassArchive, work: Path) -> str:
    """What Java says of the classes of a driver that ends well, beside a folder with settings."""
    settings = work / "settings"
    settings.mkdir(exist_ok=True)
    (settings / "spark-defaults.conf").write_text("spark.ui.enabled false\n")
    script = work / "driver.py"
    script.write_text(
        "from pyspark.sql import SparkSession\n"
        "spark = SparkSession.builder.getOrCreate()\n"
        "assert spark.range(3).count() == 3\n"
        "spark.stop()\n"
    )
    options = launcher_options(archive, {"SPARK_SUBMIT_OPTS": "-Xlog:class+load"})
    python = str(environment.python)
    variables = {"SPARK_CONF_DIR": str(settings), "SPARK_SUBMIT_OPTS": options}
    variables |= {"PYSPARK_PYTHON": python, "PYSPARK_DRIVER_PYTHON": python}
    variables["SPARK_HOME"] = str(archive.spark_home)
    conf = f"{CLASS_PATH}={archive.class_path}"
    done = subprocess.run(
        [environment.spark_submit, "--master", "local[1]", "--conf", conf, script],
        env=os.environ | variables,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout
