"""What the server of a Paimon REST catalog says: its databases, and where a table lies.

After the calls *config*, *list databases* and *get table* of Paimon's REST catalog API. Of a
server's errors nothing but the kind is repeated: its text may hold what was sent.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import quote

from airflow_provider_merge.metadata.listed import listed_names
from spark_jobs.contract.request import TableName
from spark_jobs.errors import CatalogError, ErrorCode, InternalError, JobError, NotSupportedError
from spark_jobs.formats.paimon.options import DATA_TOKENS

_SECONDS: Final = 30.0
_MAX_BYTES: Final = 16 * 1024 * 1024
_CHUNK_BYTES: Final = 64 * 1024
_PAGE: Final = 1000
_MOST_PAGES: Final = 200


@dataclass(frozen=True, slots=True)
class RestCatalog:
    """The catalog that the server at ``uri`` calls ``warehouse``; ``token`` is a bearer token."""

    uri: str
    warehouse: str
    token: str = field(repr=False)

    def options(self) -> dict[str, str]:
        """The catalog options that the server decides; whether it can be reached.

        Raises:
            CatalogError: WAREHOUSE_ACCESS_DENIED, WAREHOUSE_NOT_FOUND.
            InternalError: STORAGE_UNAVAILABLE.
        """
        answer = self._get("/v1/config", {"warehouse": self.warehouse})
        if answer is None:
            raise CatalogError(
                ErrorCode.WAREHOUSE_NOT_FOUND,
                f"The catalog's server at {self.uri} does not know the warehouse {self.warehouse}.",
                "Correct uri, or the option rest.warehouse, of the catalog connection.",
            )
        merged: dict[str, Any] = {}
        for part in ("defaults", "overrides"):
            given = answer.get(part) or {}
            if not isinstance(given, dict):
                raise self._failed(f"{part} that are not a JSON object")
            merged |= given
        return {str(name): str(value) for name, value in merged.items()}

    def databases(self) -> list[str] | None:
        """The names of databases, those of the server's first page; None: it does not list them.

        Raises:
            CatalogError, InternalError: as ``options`` does.
        """
        base = _base(self.options())
        try:
            answer = self._get(f"{base}/databases")
        except JobError:
            # Who may use a table may still not list what else there is.
            return None
        names = (answer or {}).get("databases")
        return sorted(map(str, names)) if isinstance(names, list) else None

    def tables(self, most: int) -> list[TableName]:
        """The names of the tables of all databases, at most so many; raises as ``options`` does."""
        base = _base(self.options())
        tables: list[TableName] = []
        for database in self._listed(f"{base}/databases", "databases", most):
            path = f"{base}/databases/{quote(database, safe='')}/tables"
            tables += listed_names(database, self._listed(path, "tables", most - len(tables)))
            if len(tables) >= most:
                break
        return tables

    def location(self, name: TableName) -> str:
        """The path or URI of a table; of a branch, that of its table.

        Raises:
            CatalogError: TABLE_NOT_FOUND. And as ``options`` does.
            NotSupportedError: the server hands out a key of the storage for each table.
        """
        options = self.options()
        if options.get(DATA_TOKENS, "").lower() == "true":
            raise NotSupportedError(
                f"The catalog's server at {self.uri} hands out a key of the storage for each table "
                "(option data-token.enabled).",
                "Switch the option off, and give the storage's key to the catalog connection.",
            )
        table = name.table.partition("$")[0]
        parts = (quote(part, safe="") for part in (name.database, table))
        answer = self._get("{}/databases/{}/tables/{}".format(_base(options), *parts))
        path = (answer or {}).get("path")
        if not isinstance(path, str) or not path:
            raise CatalogError(
                ErrorCode.TABLE_NOT_FOUND,
                f"the catalog's server at {self.uri} knows no table {name}",
                "Correct the table's name, or the connection.",
            )
        return path

    def _listed(self, path: str, key: str, most: int) -> list[str]:
        """The names that the pages of a list have."""
        all_names: list[str] = []
        token: Any = None
        for _ in range(_MOST_PAGES):
            query = {"maxResults": str(_PAGE), **({"pageToken": str(token)} if token else {})}
            answer = self._get(path, query) or {}
            names = answer.get(key)
            if not isinstance(names, list):
                break
            all_names += map(str, names)
            token = answer.get("nextPageToken")
            if not token or not names or len(all_names) >= most:
                break
        return all_names[:most]

    def _get(self, path: str, query: Mapping[str, str] | None = None) -> dict[str, Any] | None:
        """The JSON object of an answer; None: the server knows nothing of that name."""
        import requests

        def authorized(request: Any) -> Any:
            request.headers["Authorization"] = f"Bearer {self.token}"
            return request

        url, content = f"{self.uri.rstrip('/')}{path}", b""
        try:
            # A redirect would take the token elsewhere.
            with requests.get(
                url,
                query,
                auth=authorized,
                timeout=_SECONDS,
                allow_redirects=False,
                stream=True,
            ) as response:
                status = response.status_code
                for chunk in response.iter_content(_CHUNK_BYTES):
                    content += chunk
                    if len(content) > _MAX_BYTES:
                        raise self._failed("an answer that is too long")
        except requests.RequestException as error:
            raise self._failed(type(error).__name__) from None
        if status == HTTPStatus.NOT_FOUND:
            return None
        if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            raise CatalogError(
                ErrorCode.WAREHOUSE_ACCESS_DENIED,
                f"The catalog's server at {self.uri} does not accept the token.",
                "Correct the token (password) of the catalog connection, or its rights.",
            )
        if status != HTTPStatus.OK:
            raise self._failed(f"status {status}")
        return self._parsed(content)

    def _parsed(self, content: bytes) -> dict[str, Any]:
        try:
            answer = json.loads(content)
        except ValueError:
            raise self._failed("an answer that is not JSON") from None
        if not isinstance(answer, dict):
            raise self._failed("an answer that is not a JSON object")
        return answer

    def _failed(self, problem: str) -> JobError:
        return InternalError(
            ErrorCode.STORAGE_UNAVAILABLE,
            f"The catalog's server at {self.uri} did not answer as it should ({problem}).",
            "Check the field uri of the catalog connection, and look at the server's own log.",
        )


def _base(options: Mapping[str, str]) -> str:
    """The path of the calls other than *config*."""
    prefix = options.get("prefix", "")
    return f"/v1/{quote(prefix, safe='')}" if prefix else "/v1"
