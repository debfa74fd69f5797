"""What the judge runs on: Paimon's Java library, fetched once into ``.tools/judge``, and a JDK.

Maven decides from where it downloads. A file of another content than the pinned one is an error; a
missing tool or an unreachable repository is a reason to skip, which the suites' summary shows.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

MAVEN_GOAL = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy"
_TREE_GOAL = f"{MAVEN_GOAL}-dependencies"
PROGRAMS = ("ReadPaimon", "WritePaimon", "LinkingFileIO")
_ATTEMPTS = 3
_SECONDS = 600
_PAUSE_SECONDS = 5
TOOLS = Path(__file__).resolve().parents[2] / ".tools" / "judge"


@dataclass(frozen=True, slots=True)
class Jar:
    """A file of Maven's repository and its pinned content."""

    artifact: str
    sha256: str

    @property
    def file_name(self) -> str:
        """As Maven spells it: name, version, classifier."""
        _, name, version, *kind = self.artifact.split(":")
        return "-".join([name, version, *kind[1:]]) + ".jar"


BUNDLE = Jar(
    "org.apache.paimon:paimon-bundle:1.4.2",
    "85a1587409e6c044b46eb20370a46ecd288576b8bc7aadf6b0432a4f2370f5d1",
)


class JudgeMissingError(Exception):
    """The judge cannot run on this machine; the text says what is missing."""


@dataclass(frozen=True, slots=True)
class Toolchain:
    """A Java and the class path on which it finds the judge."""

    java: str
    classpath: str


def prepare(programs: Sequence[str] = PROGRAMS, jars: Sequence[Jar] = ()) -> Toolchain:
    """Fetch and compile what is not there yet; ``jars`` are needed besides the bundle.

    Raises:
        JudgeMissingError: with what is missing.
    """
    java = java_tool("java")
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise JudgeMissingError("there is no pyspark, whose jars the judge needs")
    hadoop = Path(spec.origin).parent / "jars"  # which the bundle leaves out
    TOOLS.mkdir(parents=True, exist_ok=True)
    fetched = [str(fetched_jar(jar)) for jar in (BUNDLE, *jars)]
    libraries = os.pathsep.join([*fetched, f"{hadoop}{os.sep}*"])
    return Toolchain(java, f"{compiled(libraries, programs)}{os.pathsep}{libraries}")


def java_tool(name: str) -> str:
    """The program of the JDK.

    Raises:
        JudgeMissingError: there is none.
    """
    home = os.environ.get("JAVA_HOME")
    found = shutil.which(name, path=str(Path(home) / "bin") if home else None)
    if found is None:
        raise JudgeMissingError(f"there is no {name}: install a JDK 17 or 21")
    return found


def fetched_jar(jar: Jar) -> Path:
    """The file, of the pinned content."""
    file = TOOLS / jar.file_name
    if file.exists() and _sha256(file) == jar.sha256:
        return file
    with tempfile.TemporaryDirectory(dir=TOOLS) as folder:
        arguments = [MAVEN_GOAL, f"-Dartifact={jar.artifact}", f"-DoutputDirectory={folder}"]
        _fetch(jar.artifact, arguments)
        fetched = Path(folder) / jar.file_name
        if (found := _sha256(fetched)) != jar.sha256:
            raise RuntimeError(f"{jar.artifact} has SHA-256 {found}, not the pinned {jar.sha256}")
        fetched.replace(file)
    return file


def fetched_tree(project: Path) -> Path:
    """A folder with what a project of Maven's needs to run; ``jars.sha256`` beside it pins all.

    Raises:
        JudgeMissingError: Maven is missing, or cannot fetch it.
    """
    text = project.with_name("jars.sha256").read_text()
    pinned = {name: sha256 for sha256, name in map(str.split, text.splitlines())}
    folder = TOOLS / f"{project.parent.name}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    if folder.exists() and _contents(folder) == pinned:
        return folder
    TOOLS.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=TOOLS) as temporary:
        jars = Path(temporary, "jars")
        place = ["-f", str(project), "-DincludeScope=runtime", f"-DoutputDirectory={jars}"]
        _fetch(project.parent.name, [_TREE_GOAL, *place])
        if (found := _contents(jars)) != pinned:
            different = sorted(name for name, _ in found.items() ^ pinned.items())
            raise RuntimeError(f"Maven resolves other jars than the pinned ones: {different}")
        shutil.rmtree(folder, ignore_errors=True)
        jars.replace(folder)
    return folder


def _contents(folder: Path) -> dict[str, str]:
    return {file.name: _sha256(file) for file in folder.iterdir()}


def compiled(libraries: str, programs: Sequence[str]) -> Path:
    """The compiled programs, in a folder named after everything that decides its content.

    Raises:
        JudgeMissingError: there is no JDK.
    """
    javac = java_tool("javac")
    sources = [Path(__file__).with_name(f"{name}.java") for name in programs]
    version = subprocess.run([javac, "-version"], capture_output=True, text=True, check=False)
    content = b"".join(source.read_bytes() for source in sources)
    key = hashlib.sha256(content + f"{BUNDLE.sha256} {version.stdout}".encode()).hexdigest()
    folder = TOOLS / f"classes-{key[:16]}"
    if folder.exists():
        return folder
    with tempfile.TemporaryDirectory(dir=TOOLS) as temporary:
        classes = Path(temporary) / "classes"
        command = [javac, "-nowarn", "-d", str(classes), "-cp", libraries, *map(str, sources)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"The judge does not compile:\n{done.stderr}")
        try:
            classes.rename(folder)
        except OSError:  # another run was faster
            if not folder.exists():
                raise
    return folder


def _fetch(what: str, arguments: Sequence[str]) -> None:
    """Run Maven, and again when it fails: repositories have bad moments."""
    maven = shutil.which("mvn")
    if maven is None:
        raise JudgeMissingError(f"there is no mvn to fetch {what}: install Maven")
    command, problem = [maven, "-B", "-q", *arguments], f"mvn could not fetch {what}"
    for _ in range(_ATTEMPTS):
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=_SECONDS, check=False
            )
        except subprocess.TimeoutExpired as error:
            raise JudgeMissingError(f"{problem}: no answer in {_SECONDS} s") from error
        if done.returncode == 0:
            return
        time.sleep(_PAUSE_SECONDS)
    errors = (line for line in done.stdout.splitlines() if "ERROR" in line)
    raise JudgeMissingError(f"{problem}: {next(errors, f'exit {done.returncode}')[:300]}")


def _sha256(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
