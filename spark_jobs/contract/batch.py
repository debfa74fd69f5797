"""Several statements for one Spark application."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from spark_jobs.contract import codec
from spark_jobs.contract.checks import require, require_among
from spark_jobs.contract.drop_table import DropTableSpec
from spark_jobs.contract.request import (
    VERSION,
    CatalogSpec,
    JobRequest,
    TableName,
    TableSource,
)
from spark_jobs.contract.statements import CreateTableSpec

OnFailure = Literal["stop", "continue"]
# The number of a catalog, and a table's name there.
_Table = tuple[int, str]


@dataclass(frozen=True, slots=True)
class JobBatch:
    """Requests in their order, each with an operation and a snapshot of its own.

    ``operation_id`` marks the job's files and processes; nothing is committed under it.

    Up to ``max_parallel`` requests run at once, unless one needs another. ``on_failure``: whether
    the requests after a failed one are not run (``stop``) or run anyway (``continue``).
    ``max_seconds``: requests whose turn comes later than that after the first one's begin are not
    run, and fail with TIME_LIMIT_REACHED.
    """

    operation_id: str
    requests: tuple[JobRequest, ...]
    max_parallel: int = 1
    on_failure: OnFailure = "stop"
    max_seconds: int | None = None
    version: int = VERSION

    def __post_init__(self) -> None:
        require(bool(self.requests), "requests", "there are none")
        ids = [request.operation_id for request in self.requests]
        require(len(set(ids)) == len(ids), "requests", "two have the same operation_id")
        require(self.max_parallel > 0, "max_parallel", "must be positive")
        most = self.max_seconds
        require(most is None or most > 0, "max_seconds", "must be positive")
        policies = get_args(OnFailure)
        require_among(self.on_failure, policies, "on_failure")

    def needs(self) -> list[frozenset[int]]:
        """For each request, the positions of earlier ones that must end before it starts.

        One request needs another if either changes a table that the other one reads or changes.
        Those that only leave rows in the same table, as in an audit, do not need each other.
        """
        changers: dict[_Table, set[int]] = defaultdict(set)
        users: dict[_Table, set[int]] = defaultdict(set)
        adders: dict[_Table, set[int]] = defaultdict(set)
        needs = []
        pairs = zip(self._tables(), self._side_tables(), strict=True)
        for index, ((changed, used), added) in enumerate(pairs):
            needed = [users[each] for each in (*changed, *added)]
            needed += [changers[each] for each in (*used, *added)]
            needed += [adders[each] for each in used]
            needs.append(frozenset[int]().union(*needed))
            for table in added:
                adders[table].add(index)
            for table in changed:
                changers[table].add(index)
            for table in used:
                users[table].add(index)
        return needs

    def drops_behind(self) -> dict[str, JobRequest]:
        """By the operations of requests whose table a later one drops: the first that does."""
        drops: dict[_Table, JobRequest] = {}
        droppers = {}
        pairs = zip(self.requests, self._tables(), strict=True)
        for request, (changed, _) in reversed(list(pairs)):
            for table in changed:
                if table in drops:
                    droppers[request.operation_id] = drops[table]
                if isinstance(request.statement, DropTableSpec):
                    drops[table] = request
        return droppers

    def _side_tables(self) -> Iterable[list[_Table]]:
        """The tables in which each request leaves rows beside what it changes."""
        places = self._places()
        for request, place in zip(self.requests, places, strict=True):
            tables = request.guards.side_tables.values() if request.guards else ()
            yield [(place, TableName.parse(each).folded) for each in tables]

    def _places(self) -> list[int]:
        """A number for the catalog of each request."""
        known: list[CatalogSpec] = []
        return [_number(request.catalog, known) for request in self.requests]

    def _tables(self) -> Iterable[tuple[list[_Table], list[_Table]]]:
        """What each request changes, and what it reads or changes."""
        known: list[CatalogSpec] = []
        places = [_number(request.catalog, known) for request in self.requests]
        for request, place in zip(self.requests, places, strict=True):
            changed = [] if request.target is None else [(place, request.target.folded)]
            tables = [each for each in request.sources if isinstance(each, TableSource)]
            read = [(_number(e.catalog or request.catalog, known), e.table) for e in tables]
            if isinstance(request.statement, CreateTableSpec) and request.statement.like:
                read.append((place, TableName.parse(request.statement.like)))
            yield changed, [*changed, *((each, table.folded) for each, table in read)]

    @property
    def catalogs(self) -> list[CatalogSpec]:
        """The catalogs of the requests, each once, in the order in which requests name them."""
        catalogs: list[CatalogSpec] = []
        for request in self.requests:
            if request.catalog not in catalogs:
                catalogs.append(request.catalog)
        return catalogs

    def all_credentials(self, by_catalog: Iterable[Mapping[str, str]]) -> dict[str, str]:
        """The job's credentials: those of each of ``catalogs``, apart if there are several."""
        credentials = list(by_catalog)
        if len(credentials) == 1:
            return dict(credentials[0])
        return {
            f"{_scope(index)}{name}": secret
            for index, each in enumerate(credentials)
            for name, secret in each.items()
        }

    def credentials_of(
        self, catalog: CatalogSpec, credentials: Mapping[str, str]
    ) -> Mapping[str, str]:
        """Those of the job's credentials that are for a catalog: no catalog gets another one's."""
        catalogs = self.catalogs
        if len(catalogs) == 1:
            return credentials
        scope = _scope(catalogs.index(catalog))
        own = (each for each in credentials.items() if each[0].startswith(scope))
        return {name.removeprefix(scope): secret for name, secret in own}

    def to_json(self) -> str:
        """The batch as a JSON document."""
        return json.dumps(codec.encode(self), indent=2, ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> JobBatch:
        """The batch in a JSON document.

        Raises:
            RequestError: REQUEST_VERSION_UNKNOWN, or REQUEST_INVALID with the JSON path.
        """
        return codec.decode(cls, codec.load_versioned(text, VERSION))


def _number(catalog: CatalogSpec, known: list[CatalogSpec]) -> int:
    """The number of a catalog among the ``known`` ones, which it joins."""
    place = next((i for i, each in enumerate(known) if catalog.is_same_catalog(each)), None)
    if place is None:
        place = len(known)
        known.append(catalog)
    return place


def _scope(catalog: int) -> str:
    return f"catalogs[{catalog}]."
