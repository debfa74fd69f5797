"""A client of the tables' API with users of Airflow's simple auth manager."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from airflow.api_fastapi.app import init_auth_manager
from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
from fastapi import FastAPI
from fastapi.testclient import TestClient

from airflow_provider_merge.ui.app import tables_app

ROLES = ("ADMIN", "OP", "VIEWER")


@dataclass
class Caller:
    """One user, who asks about ``shop.orders`` of ``paimon_default`` unless told otherwise."""

    client: TestClient
    token: str

    @property
    def app(self) -> FastAPI:
        """The server."""
        assert isinstance(self.client.app, FastAPI)
        return self.client.app

    def get(self, path: str, **query: Any) -> Any:
        """Status and JSON of an answer."""
        table = {"connection": "paimon_default", "database": "shop", "table": "orders"}
        answer = self.raw(f"v1/{path}", {**table, **query})
        return answer.status_code, answer.json()

    def told(self, path: str, **query: Any) -> Any:
        """The JSON of a good answer."""
        status, told = self.get(path, **query)
        assert status == 200, told
        return told

    def raw(self, path: str, query: Mapping[str, Any] | None = None, **headers: str) -> Any:
        """An answer."""
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        return self.client.get(f"/{path}", params=query, headers=headers, follow_redirects=False)


def callers() -> dict[str, Caller]:
    """By role, and one without a token."""
    manager = init_auth_manager()
    client = TestClient(tables_app())
    tokens = {
        role: manager.generate_jwt(SimpleAuthManagerUser(username=role.lower(), role=role))
        for role in ROLES
    }
    return {role: Caller(client, token) for role, token in {**tokens, "": ""}.items()}
