"""Access to S3 through pyarrow and Amazon's client, from the catalog's options. Driver only.

Sessions of that client for other services of Amazon's are made here, too.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from spark_jobs.contract.s3_options import S3Options
from spark_jobs.errors import CatalogError, ErrorCode

if TYPE_CHECKING:
    import pyarrow.fs as pafs


_CONNECT_SECONDS: Final = 10
ANSWER_SECONDS: Final = 60
# Seconds before a request is repeated.
_PAUSES: Final = (0.5, 1.0, 2.0, 4.0)
_BUSY: Final = ("ThrottlingException", "Throttling", "RequestLimitExceeded", "TooManyRequests")


def bounded_session(repeated: Iterable[str]) -> Any:
    """A session of botocore whose requests have time-outs.

    Requests of the kinds ``repeated`` (``glue.GetTable``) are sent again where the service was too
    busy to answer them: they must change nothing.
    """
    from botocore.config import Config
    from botocore.session import Session

    session = Session()
    bounds = Config(connect_timeout=_CONNECT_SECONDS, read_timeout=ANSWER_SECONDS)
    session.set_default_client_config(bounds)
    for each in repeated:
        session.register(f"needs-retry.{each}", _pause)
    return session


def _pause(attempts: int, response: Any, **_: Any) -> float | None:
    """Seconds before a request is sent again; None: its answer, or the lack of one, stands."""
    if response is None or attempts > len(_PAUSES):
        return None
    http, parsed = response
    code = parsed.get("Error", {}).get("Code") if isinstance(parsed, dict) else None
    is_busy = http.status_code in (429, 503) or code in _BUSY
    return _PAUSES[attempts - 1] if is_busy else None


def s3_filesystem(access: S3Options) -> pafs.S3FileSystem:
    """The file system of pyarrow; it is picklable with its keys, for executors."""
    import pyarrow.fs as pafs

    return pafs.S3FileSystem(
        endpoint_override=access.endpoint,
        region=access.region,
        access_key=access.access_key,
        secret_key=access.secret_key,
        session_token=access.session_token,
        connect_timeout=_CONNECT_SECONDS,
        request_timeout=ANSWER_SECONDS,
        force_virtual_addressing=not access.path_style,
    )


def s3_client(access: S3Options) -> Any:
    """Amazon's own client, configured not to retry requests.

    Raises:
        CatalogError: LIBRARY_MISSING; WAREHOUSE_ACCESS_DENIED if only one of access key and secret
            key is set; WAREHOUSE_NOT_FOUND if the endpoint is not a URL.
    """
    try:
        import botocore.session
        from botocore.config import Config
        from botocore.exceptions import PartialCredentialsError
    except ImportError as error:
        raise CatalogError(
            ErrorCode.LIBRARY_MISSING,
            "A warehouse on s3:// needs the package botocore in the driver's environment.",
            "Install it there: pip install botocore.",
        ) from error
    config = Config(
        connect_timeout=_CONNECT_SECONDS,
        read_timeout=ANSWER_SECONDS,
        retries={"total_max_attempts": 1},
        # Many stores do not support Amazon's newer checksums.
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
        s3={"addressing_style": access.addressing_style},
    )
    try:
        return botocore.session.Session().create_client(
            "s3",
            endpoint_url=access.endpoint,
            region_name=access.region,
            aws_access_key_id=access.access_key,
            aws_secret_access_key=access.secret_key,
            aws_session_token=access.session_token,
            config=config,
        )
    except PartialCredentialsError:
        raise CatalogError(
            ErrorCode.WAREHOUSE_ACCESS_DENIED,
            "The catalog connection has one of access key (login) and secret key (password), "
            "but not the other.",
            "Set both, or neither where access is ambient.",
        ) from None
    except ValueError as error:
        raise CatalogError(
            ErrorCode.WAREHOUSE_NOT_FOUND,
            f"The endpoint {access.endpoint} of the object store is not usable: {error}",
            "Correct the field endpoint of the catalog connection: scheme://host:port.",
        ) from None
