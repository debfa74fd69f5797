"""A parquet file as pyarrow writes it, but with another footer. Runs on executors."""

from __future__ import annotations

import io
from collections.abc import Callable

import pyarrow as pa

from spark_jobs.datafiles.parquet import footer as footers
from spark_jobs.datafiles.parquet import thrift
from spark_jobs.datafiles.parquet.thrift import Struct


class EditedStream(io.RawIOBase):
    """Passes a file on to ``stream``, but for its end: the page indexes and the footer."""

    def __init__(self, stream: pa.NativeFile) -> None:
        super().__init__()
        self._stream = stream
        self._end: bytearray | None = None

    def writable(self) -> bool:
        """True."""
        return True

    def tell(self) -> int:
        """The size of the file so far, in bytes."""
        return int(self._stream.tell()) + len(self._end or b"")

    def write(self, data: bytes) -> int:  # type: ignore[override]
        """Take the next bytes of the file."""
        if self._end is None:
            self._stream.write(data)
        else:
            self._end += data
        return len(data)

    def begin_end(self) -> None:
        """Hold back what follows, which has no pages any more."""
        self._end = bytearray()

    def finish(self, edit: Callable[[Struct], Struct]) -> None:
        """Write the footer that ``edit`` makes of the one held back, without page indexes."""
        end = bytes(self._end or b"")
        start = len(end) - footers.TRAILER - int.from_bytes(end[-footers.TRAILER : -4], "little")
        fields, _ = thrift.parse(end[start : -footers.TRAILER])
        self._end = None
        self._stream.write(footers.framed(edit(fields)))
