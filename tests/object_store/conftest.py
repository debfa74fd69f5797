from __future__ import annotations

import pytest

from tests.support.gateway import GatewayMissingError, gateway_program
from tests.support.stores import ObjectStore, gateway, moto

__all__ = ["gateway", "moto"]

pytest.register_assert_rewrite("tests.conformance.check")


@pytest.fixture(params=["moto", "gateway"])
def each_store(request: pytest.FixtureRequest) -> ObjectStore:
    """Each of the servers."""
    found = request.getfixturevalue(request.param)
    assert isinstance(found, ObjectStore)
    return found


@pytest.fixture(scope="session")
def store(request: pytest.FixtureRequest) -> ObjectStore:
    """The real server, or the other one where it cannot be built."""
    try:
        gateway_program()
    except GatewayMissingError:
        name = "moto"
    else:
        name = "gateway"
    found = request.getfixturevalue(name)
    assert isinstance(found, ObjectStore)
    return found
