"""HTTP requests of pyiceberg and Amazon's client within bounds of time and size.

pyiceberg has no time-outs.
"""

from __future__ import annotations

import io
import time
from contextlib import closing
from functools import partial
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
            found: Response = with_content(answer, _content_until(deadline, answer.raw))
            return found

    def close(self) -> None:
        """Close the connections."""
        self.inner.close()


def _content_until(deadline: float, raw: Any) -> bytes:
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


def bounded_session() -> Any:
    """A session of botocore whose requests to Glue have bounds."""
    from botocore.config import Config
    from botocore.session import Session

    session = Session()
    # Requests to other services are for keys.
    seconds = SECONDS
    session.set_default_client_config(Config(connect_timeout=seconds, read_timeout=seconds))
    certificates = session.get_config_variable("ca_bundle") or True
    session.register("before-send.glue", partial(_answer, certificates))
    return session


def _answer(certificates: Any, request: Any, **_: Any) -> Any:
    """The whole answer to a request, in place of the one that botocore would wait for.

    Raises:
        HTTPClientError: there is none.
        RequestException: it came too slowly, is too long or ends early.
    """
    from botocore.httpsession import URLLib3Session
    from botocore.utils import get_environ_proxies
    from urllib3 import HTTPResponse

    deadline = time.monotonic() + SECONDS
    proxies = get_environ_proxies(request.url)
    # Else all of it is read at once.
    request.stream_output = True
    with closing(URLLib3Session(certificates, proxies, SECONDS)) as sender:
        answer = sender.send(request)
        with closing(answer.raw):
            content = _content_until(deadline, answer.raw)
    answer.raw = HTTPResponse(io.BytesIO(content), preload_content=False)
    return answer
