"""Everything that a run leaves where somebody could read it: on disk, and in its processes."""

from __future__ import annotations

import base64
import os
from pathlib import Path
from urllib.parse import quote

import psutil

from airflow_provider_merge.submit.processes import OPERATION
from tests.live.server import Server
from tests.support.sampler import Sampler

_CREDENTIALS = "credentials.json"


def forms_of(secret: str) -> list[bytes]:
    """The secret as it is, and as it may be encoded on its way."""
    plain = secret.encode()
    return [
        plain,
        base64.b64encode(plain)[:-4],
        quote(secret, safe="").encode(),
        plain.hex().encode(),
    ]


def places_of(secret: str, found: dict[str, bytes]) -> list[str]:
    """Where in ``found`` the secret is, in any form."""
    return sorted(name for name, text in found.items() if any(f in text for f in forms_of(secret)))


def files_below(folder: Path) -> dict[str, bytes]:
    """All files by path; those that go while they are read are left out."""
    found = {}
    # Not Path.rglob: it does not go on where a folder goes meanwhile.
    for below, _, names in os.walk(folder):
        for path in (Path(below, name) for name in names):
            try:
                if path.is_file() and not path.is_symlink():
                    found[str(path.relative_to(folder))] = path.read_bytes()
            except OSError:
                continue
    return found


class Watch(Sampler):
    """Looks at the jobs of a server while they run, many times a second.

    ``seen`` has command lines, environments and files of jobs, but not the file of credentials:
    ``credentials`` has the modes of that and of its folder.
    """

    def __init__(self, server: Server) -> None:
        self.server = server
        self.seen: dict[str, bytes] = {}
        self.credentials: set[tuple[int, int]] = set()
        super().__init__(0.1)

    def kinds(self) -> set[str]:
        """Names of the programs that were seen."""
        return {name.split()[1] for name in self.seen if name.startswith("arguments")}

    def sample(self) -> None:
        """See ``Sampler``."""
        for process in self.server.processes():
            self._look_at(process)
        self._look_at_files()

    def _look_at(self, process: psutil.Process) -> None:
        try:
            environment = process.environ()
            if OPERATION not in environment:
                return
            name = f"{process.name()} {process.pid}"
            self.seen[f"arguments {name}"] = "\0".join(process.cmdline()).encode()
            text = "\0".join(f"{key}={value}" for key, value in environment.items())
            self.seen[f"environment {name}"] = text.encode()
        except (psutil.Error, OSError):
            return

    def _look_at_files(self) -> None:
        for path in self._files():
            try:
                if path.name == _CREDENTIALS:
                    modes = path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777
                    self.credentials.add(modes)
                elif path.suffix == ".json":
                    self.seen[f"file {path.parent.name}/{path.name}"] = path.read_bytes()
            except OSError:
                continue

    def _files(self) -> list[Path]:
        try:
            return list((self.server.folder / "tmp").glob("merge-job-*/*"))
        except OSError:  # a folder went while it was walked through
            return []
