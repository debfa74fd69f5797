"""A field of a source that is None: its remedy says to leave it out only if it has a default."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from airflow.sdk.definitions._internal.types import ArgNotSet

from airflow_provider_merge.operators import sources
from airflow_provider_merge.operators._shared.source_parameters import to_sources
from spark_jobs.errors import RequestError

# Values of what is required, by the names of parameters.
GIVEN: Mapping[str, Any] = {
    "path": "/a",
    "format": "csv",
    "start": "all",
    "table": "a.s",
    "query": "SELECT 1 AS one",
    "sources": {},
    "source": sources.table_source("a.s"),
    "by": ["id"],
    "keys": ["id"],
    "conn_id": "shop_db",
    "function": "module:function",
}
# Without it, another one has to be there.
ONE_OF = {
    *(("changes_source", each) for each in ("start", "from_snapshot")),
    *(("jdbc_source", each) for each in ("query", "table")),
}


def builders() -> Iterator[tuple[str, Callable[..., dict[str, Any]]]]:
    for name, each in vars(sources).items():
        is_public = inspect.isfunction(each) and not name.startswith("_")
        if is_public and each.__module__ == sources.__name__:
            yield name, each


def fields() -> Iterator[tuple[str, str, bool]]:
    for name, builder in builders():
        for each in inspect.signature(builder).parameters.values():
            has_default = isinstance(each.default, ArgNotSet)
            yield name, each.name, has_default and (name, each.name) not in ONE_OF


@pytest.mark.parametrize(("name", "field", "has_default"), [*fields()])
@pytest.mark.parametrize("nothing", [None, " "], ids=["none", "blank"])
def test_a_field_that_is_nothing(name: str, field: str, has_default: bool, nothing: Any) -> None:
    if has_default and nothing is not None:
        return  # what an empty text of it means, its own checks tell
    builder = dict(builders())[name]
    needed = {
        each.name: GIVEN[each.name]
        for each in inspect.signature(builder).parameters.values()
        if not isinstance(each.default, ArgNotSet) and each.name != field
    }
    with pytest.raises(RequestError) as caught:
        to_sources(builder(**needed, **{field: nothing}))
    assert caught.value.places[:1] == (f"source.{field}",)
    if nothing is None:
        assert ("leave it out" in caught.value.remedy.lower()) is has_default, caught.value.remedy
    assert has_default or "its default applies" not in caught.value.remedy
