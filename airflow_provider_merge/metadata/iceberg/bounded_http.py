"""HTTP requests of pyiceberg, which has no time-outs, within bounds of time and size."""

from __future__ import annotations

import time
from contextlib import closing
from typing import Any, Final

from requests import PreparedRequest, RequestException, Response
from requests.adapters import BaseAdapter, HTTPAdapter
from urllib3.exceptions import HTTPError

from spark_jobs.formats.iceberg.rest import with_content

SECONDS: Final = 30.0
MAX_ANSWER: Final = 64 * 1024 * 1024
_CHUNK: Final = 256 * 1024


class BoundedAdapter(BaseAdapter):
    """Sends through ``inner``; an answer is there as a whole, in time, and is no redirect.

    A redirect would take the credentials elsewhere.
    """

    def __init__(self, inner: BaseAdapter | None = None) -> None:
        super().__init__()
        self.inner = inner or HTTPAdapter()

    def send(
        self,
        request: PreparedRequest,
        stream: bool = False,
        timeout: Any = None,
        verify: bool | str = True,
        cert: Any = None,
        proxies: dict[str, str] | None = None,
    ) -> Response:
        """The answer.

        Raises:
            RequestException: there is none, it came too slowly, is too long or a redirect.
        """
        deadline = time.monotonic() + SECONDS
        answer = self.inner.send(request, True, SECONDS, verify, cert, proxies)
        with closing(answer):
            if answer.is_redirect:
                raise RequestException("an answer that leads elsewhere")
            found: Response = with_content(answer, content_until(deadline, answer.raw))
            return found

    def close(self) -> None:
        """Close the connections."""
        self.inner.close()


def content_until(deadline: float, raw: Any) -> bytes:
    """The content of urllib3's answer ``raw``, which ends before a time of the monotonic clock.

    Raises:
        RequestException: it came too slowly, is too long or ends early.
    """
    content = bytearray()
    try:
        # What has come, be it a byte: who drips has an end, too.
        while chunk := raw.read1(_CHUNK, decode_content=True):
            content += chunk
            if len(content) > MAX_ANSWER:
                raise RequestException("an answer that is too long")
            if time.monotonic() > deadline:
                raise RequestException("an answer that came too slowly")
    except HTTPError as error:
        raise RequestException(type(error).__name__) from None
    return bytes(content)
