"""What operator and job add to pyiceberg's client of AWS Glue, and what its failures mean.

Of Amazon's answers only the code is repeated: their text may hold what was sent.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, Final

from spark_jobs.contract.secret_names import code_of, keep_requests_out_of_logs
from spark_jobs.errors import CatalogError, ErrorCode, InternalError, JobError, RequestError
from spark_jobs.formats.iceberg.options import WAREHOUSE

# No request is sent twice unasked: an answer to the second one tells nothing of the first.
_RETRIES: Final = "glue.max-retries"
_SESSION: Final = "botocore_session"

_EXPIRED: Final = (
    *("ExpiredToken", "ExpiredTokenException", "RequestExpired", "TokenRefreshRequired"),
)
_DENIED: Final = (
    *("AccessDenied", "AccessDeniedException", "UnrecognizedClientException", "NotAuthorized"),
    *("InvalidClientTokenId", "InvalidSignatureException", "SignatureDoesNotMatch"),
    *("IncompleteSignature", "IncompleteSignatureException", "OptInRequired"),
    *("MissingAuthenticationToken", "MissingAuthenticationTokenException", "401", "403"),
)
_INVALID: Final = ("InvalidInputException", "ValidationException")
# Errors of botocore by their class, which is not imported here.
_NO_KEY: Final = ("NoCredentialsError", "PartialCredentialsError")
_SETTINGS: Final = ("NoRegionError", "InvalidRegionError", "ProfileNotFound")


class OwnGlue:
    """A base before pyiceberg's ``GlueCatalog``.

    Each request is sent once, through a session of this project; a table of another format says so;
    a database that exists need not be created, which takes a right of its own.
    """

    properties: dict[str, Any]

    def __init__(self, name: str, **properties: Any) -> None:
        keep_requests_out_of_logs()
        own = {_SESSION: self._session(), _RETRIES: 0}
        super().__init__(name, **{**properties, **own})  # type: ignore[call-arg]
        # Files are opened with these, on executors too.
        self.properties = properties

    @abstractmethod
    def _session(self) -> Any:
        """A new session of botocore."""

    def _convert_glue_to_iceberg(self, glue_table: Mapping[str, Any]) -> Any:
        kind = (glue_table.get("Parameters") or {}).get("table_type", "")
        if kind.lower() != "iceberg":
            raise CatalogError(
                ErrorCode.TABLE_NOT_FOUND,
                f"{glue_table['DatabaseName']}.{glue_table['Name']} is in AWS Glue, but is no "
                "Iceberg table.",
                "Correct the table's name, or give the new table another one.",
            )
        return super()._convert_glue_to_iceberg(glue_table)  # type: ignore[misc]

    def create_namespace_if_not_exists(self, namespace: Any, properties: Any = None) -> None:
        """Create a database."""
        if not self.namespace_exists(namespace):  # type: ignore[attr-defined]
            super().create_namespace_if_not_exists(namespace, properties or {})  # type: ignore[misc]

    def _get_default_warehouse_location(self, database_name: str, table_name: str) -> Any:
        try:
            return super()._get_default_warehouse_location(  # type: ignore[misc]
                database_name, table_name
            )
        except ValueError:
            raise RequestError(
                ErrorCode.REQUEST_INVALID,
                f"{WAREHOUSE}: is empty, and the database {database_name} has no location, so "
                "where a new table is to be is not known.",
                f"Write {WAREHOUSE} into the extra of the catalog connection.",
            ) from None


def is_refusal(error: Exception) -> bool:
    """Whether Amazon certainly did not, and will not, do what it was asked for."""
    return code_of(error) in (*_EXPIRED, *_DENIED, *_INVALID, *_NO_KEY)


def glue_failure(error: Exception, place: str) -> JobError | None:
    """The error with a code for a failure of Amazon's client; None: it is none."""
    if not any(each.__module__.startswith("botocore.") for each in type(error).__mro__):
        return None
    code = code_of(error)
    if code in _SETTINGS:
        return RequestError(
            ErrorCode.REQUEST_INVALID,
            f"{place} cannot be opened ({code}).",
            "Write client.region (and glue.profile-name, if you use it) into the extra of the "
            "catalog connection, or into the environment of this machine.",
        )
    if code in _NO_KEY:
        return CatalogError(
            ErrorCode.WAREHOUSE_ACCESS_DENIED,
            f"There is no key for {place}: the catalog connection has none, and this machine "
            "offers none.",
            "Set access key (login) and secret key (password) of the catalog connection, or give "
            "the machine a role.",
        )
    if code in _DENIED:
        return CatalogError(
            ErrorCode.WAREHOUSE_ACCESS_DENIED,
            f"{place} does not accept the key of the connection, or gives it no right ({code}).",
            "Correct login and password of the catalog connection, or its rights.",
        )
    problem = "the credentials have expired" if code in _EXPIRED else code
    return InternalError(
        ErrorCode.STORAGE_UNAVAILABLE,
        f"{place} did not answer as it should ({problem}).",
        "Check host and region of the catalog connection; the same run may succeed later.",
    )


def no_boto3(where: str) -> CatalogError:
    """The error where Amazon's client is not installed."""
    return CatalogError(
        ErrorCode.LIBRARY_MISSING,
        f"Catalogs of the type glue need the package boto3 {where}.",
        "Install it there: pip install 'boto3>=1.43,<2' (the extra glue of this project).",
    )
