"""Requests of Amazon's client within the same bounds of time and size as those of others."""

from __future__ import annotations

import io
import time
from contextlib import closing
from functools import partial
from typing import Any

from airflow_provider_merge.metadata.iceberg import bounded_http


def bounded_session() -> Any:
    """A session of botocore whose requests to Glue have bounds."""
    from botocore.config import Config
    from botocore.session import Session

    session = Session()
    # Requests to other services are for keys.
    seconds = bounded_http.SECONDS
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

    deadline = time.monotonic() + bounded_http.SECONDS
    proxies = get_environ_proxies(request.url)
    # Else all of it is read at once.
    request.stream_output = True
    with closing(URLLib3Session(certificates, proxies, bounded_http.SECONDS)) as sender:
        answer = sender.send(request)
        with closing(answer.raw):
            content = bounded_http.content_until(deadline, answer.raw)
    answer.raw = HTTPResponse(io.BytesIO(content), preload_content=False)
    return answer
