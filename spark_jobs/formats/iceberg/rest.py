"""What operator and job add to pyiceberg's client of a REST catalog."""

from __future__ import annotations

import io
from typing import Any

from spark_jobs.formats.iceberg.foreign_types import readable
from spark_jobs.formats.iceberg.options import FILE_IO, NESTED


class OwnProperties:
    """A base before pyiceberg's ``RestCatalog``: a server's properties do not override these.

    They say how requests are signed, and name classes.
    """

    properties: dict[str, Any]

    def __init__(self, name: str, **properties: Any) -> None:
        self._own = {each: properties.get(each) for each in (*NESTED, FILE_IO)}
        super().__init__(name, **properties)  # type: ignore[call-arg]

    def _create_session(self) -> Any:
        # Called again once the server has overridden properties.
        for name, value in self._own.items():
            self.properties.pop(name, None)
            if value is not None:
                self.properties[name] = value
        session = super()._create_session()  # type: ignore[misc]
        session.hooks["response"].append(_readable)
        return session


def with_content(answer: Any, content: bytes) -> Any:
    """The same answer of ``requests`` with another content, which is not packed."""
    from requests import Response

    copied = Response()
    for name in ("status_code", "headers", "url", "encoding", "reason", "request"):
        setattr(copied, name, getattr(answer, name))
    copied.headers.pop("Content-Encoding", None)
    copied.raw = io.BytesIO(content)
    return copied


def _readable(answer: Any, **asked: Any) -> Any:
    """The answer of a server, such that pyiceberg can read a table in it."""
    del asked
    known = readable(answer.content)
    return answer if known is answer.content else with_content(answer, known)
