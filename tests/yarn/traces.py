"""Everything of an application that somebody could read on YARN: files, processes, pages."""

from __future__ import annotations

import re
from pathlib import Path

import requests

from tests.live.evidence import files_below, places_of
from tests.support.waiting import wait_for
from tests.yarn.cluster import Cluster


def files(cluster: Cluster) -> dict[str, bytes]:
    """Those of the node and of the staging area."""
    found = {"node": cluster.yarn.folder, "staging": cluster.staging}
    return {
        f"{kind}/{name}": content
        for kind, folder in found.items()
        for name, content in files_below(folder).items()
    }


def while_it_runs(cluster: Cluster) -> dict[str, bytes]:
    """Files of node and staging area, and what ``ps`` shows of all containers."""
    seen = files(cluster)
    for process in cluster.yarn.processes():
        name = f"{process.name()} {process.pid}"
        seen[f"arguments {name}"] = "\0".join(process.cmdline()).encode()
        seen[f"environment {name}"] = str(process.environ()).encode()
    return seen


def afterwards(cluster: Cluster, application_id: str) -> dict[str, bytes]:
    """What is left once the node has removed what it removes: logs, above all; and all pages."""
    wait_for("the removal of its files", lambda: not _has_files(cluster, application_id))
    seen = files(cluster)
    paths = [f"ws/v1/cluster/apps/{application_id}", f"cluster/app/{application_id}"]
    paths.append(f"{paths[0]}/appattempts")
    for path in paths:
        answer = requests.get(f"{cluster.yarn.address}/{path}", timeout=60)
        answer.raise_for_status()
        seen[f"page {path}"] = answer.content
    return seen


def places_left(cluster: Cluster, application_id: str, secret: str) -> list[str]:
    """Where a secret is afterwards, but for YARN's cache of the files that it sent for a user.

    That is what docs/cluster.md tells of; nobody but the user can read it.
    """
    cached = re.compile(r"node/(local/usercache/[^/]+/filecache/\d+/credentials.json)")
    left = []
    for place in places_of(secret, afterwards(cluster, application_id)):
        found = cached.fullmatch(place)
        if found is None or Path(cluster.yarn.folder, found[1]).stat().st_mode & 0o077:
            left.append(place)
    return left


def _has_files(cluster: Cluster, application_id: str) -> bool:
    folders = cluster.yarn.containers.glob(f"usercache/*/appcache/{application_id}")
    return any(True for _ in folders)
