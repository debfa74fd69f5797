"""What operator and job add to pyiceberg's client of a REST catalog."""

from __future__ import annotations

from typing import Any

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
        return super()._create_session()  # type: ignore[misc]
