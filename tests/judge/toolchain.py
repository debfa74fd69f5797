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
from dataclasses import dataclass
from pathlib import Path

VERSION = "1.4.2"
ARTIFACT = f"org.apache.paimon:paimon-bundle:{VERSION}"
SHA256 = "85a1587409e6c044b46eb20370a46ecd288576b8bc7aadf6b0432a4f2370f5d1"
MAVEN_GOAL = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy"
SOURCES = tuple(Path(__file__).with_name(f"{name}.java") for name in ("ReadPaimon", "WritePaimon"))
TOOLS = Path(__file__).resolve().parents[2] / ".tools" / "judge"


class JudgeMissingError(Exception):
    """The judge can not run on this machine; the text says what is missing."""


@dataclass(frozen=True, slots=True)
class Toolchain:
    """A Java and the class path on which it finds the judge."""

    java: str
    classpath: str


def prepare() -> Toolchain:
    """Fetch and compile what is not there yet.

    Raises:
        JudgeMissingError: with what is missing.
    """
    java, javac = _tool("java"), _tool("javac")
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise JudgeMissingError("there is no pyspark, whose jars the judge needs")
    jars = Path(spec.origin).parent / "jars"  # Hadoop, which the bundle leaves out
    TOOLS.mkdir(parents=True, exist_ok=True)
    libraries = f"{_bundle()}{os.pathsep}{jars}{os.sep}*"
    return Toolchain(java, f"{_classes(javac, libraries)}{os.pathsep}{libraries}")


def _tool(name: str) -> str:
    home = os.environ.get("JAVA_HOME")
    found = shutil.which(name, path=str(Path(home) / "bin") if home else None)
    if found is None:
        raise JudgeMissingError(f"there is no {name}: install a JDK 17 or 21")
    return found


def _bundle() -> Path:
    """The jar, of the pinned content."""
    jar = TOOLS / f"paimon-bundle-{VERSION}.jar"
    if jar.exists() and _sha256(jar) == SHA256:
        return jar
    maven = shutil.which("mvn")
    if maven is None:
        raise JudgeMissingError(f"there is no mvn to fetch {ARTIFACT}: install Maven")
    with tempfile.TemporaryDirectory(dir=TOOLS) as folder:
        command = [maven, "-B", "-q", MAVEN_GOAL, f"-Dartifact={ARTIFACT}"]
        _run([*command, f"-DoutputDirectory={folder}"], f"mvn could not fetch {ARTIFACT}")
        fetched = Path(folder) / jar.name
        if (found := _sha256(fetched)) != SHA256:
            raise RuntimeError(f"{ARTIFACT} has SHA-256 {found}, not the pinned {SHA256}")
        fetched.replace(jar)
    return jar


def _classes(javac: str, libraries: str) -> Path:
    """The compiled judge, in a folder named after everything that decides its content."""
    version = subprocess.run([javac, "-version"], capture_output=True, text=True, check=False)
    content = b"".join(source.read_bytes() for source in SOURCES)
    key = hashlib.sha256(content + f"{SHA256} {version.stdout}".encode()).hexdigest()
    folder = TOOLS / f"classes-{key[:16]}"
    if folder.exists():
        return folder
    with tempfile.TemporaryDirectory(dir=TOOLS) as temporary:
        classes = Path(temporary) / "classes"
        command = [javac, "-nowarn", "-d", str(classes), "-cp", libraries, *map(str, SOURCES)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"The judge does not compile:\n{done.stderr}")
        try:
            classes.rename(folder)
        except OSError:  # another run was faster
            if not folder.exists():
                raise
    return folder


def _run(command: list[str], problem: str) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    except subprocess.TimeoutExpired as error:
        raise JudgeMissingError(f"{problem}: no answer in 300 s") from error
    if done.returncode:
        errors = (line for line in done.stdout.splitlines() if "ERROR" in line)
        raise JudgeMissingError(f"{problem}: {next(errors, f'exit {done.returncode}')[:300]}")


def _sha256(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
