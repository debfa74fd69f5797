"""Options of an Iceberg catalog: pyiceberg's properties. Operator and job read them.

Every value is text: what pyiceberg nests is flat here, such as ``auth.basic.password``, so that
each secret has a value of its own, which is hidden wherever it shows up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from spark_jobs.contract import s3_options
from spark_jobs.contract.checks import require
from spark_jobs.errors import NotSupportedError

if TYPE_CHECKING:
    from spark_jobs.contract.request import TableName

TYPE: Final = "type"
URI: Final = "uri"
WAREHOUSE: Final = "warehouse"
# By what name a database of a SQL catalog knows the catalog: several may share one.
CATALOG_NAME: Final = "catalog-name"
REST: Final = "rest"
SQL: Final = "sql"
GLUE: Final = "glue"
CATALOGS: Final = (REST, SQL, GLUE)

# Login and password of a connection; pyiceberg has both in one, as "client id:client secret".
CLIENT_ID: Final = "oauth2.client-id"
CLIENT_SECRET: Final = "oauth2.client-secret"  # noqa: S105 - the name of an option
CREDENTIAL: Final = "credential"
SQL_USER: Final = "jdbc.user"
SQL_PASSWORD: Final = "jdbc.password"  # noqa: S105 - the name of an option
AWS_KEY_ID: Final = "client.access-key-id"
AWS_SECRET: Final = "client.secret-access-key"  # noqa: S105 - the name of an option

SNAPSHOTS: Final = "snapshot-loading-mode"
GLUE_ENDPOINT: Final = "glue.endpoint"
TOKEN_SERVER: Final = "oauth2-server-uri"  # noqa: S105 - the name of an option
NESTED: Final = ("auth", "ssl")
# The name of the class that reads files.
FILE_IO: Final = "py-io-impl"
_AUTH_TYPE: Final = "auth.type"
# All that a request may show; every other option travels with the credentials.
PUBLIC: Final = frozenset(
    (
        *(TYPE, URI, WAREHOUSE, CATALOG_NAME, SNAPSHOTS, TOKEN_SERVER),
        *("prefix", "scope", "audience", "resource", "namespace-separator", "rest-page-size"),
        *("rest.sigv4-enabled", "rest.signing-region", "rest.signing-name"),
        *(GLUE_ENDPOINT, "glue.region", "glue.id", "glue.profile-name", "glue.skip-archive"),
        *("client.region", "s3.endpoint", "s3.region", "s3.force-virtual-addressing"),
        *("s3.connect-timeout", "s3.request-timeout"),
    )
)
_AUTHS: Final = ("noop", "basic")
_HTTP: Final = ("http://", "https://")
_SCHEMES: Final = {REST: _HTTP, SQL: ("sqlite", "postgresql"), GLUE: _HTTP}
_REFUSED: Final = {
    "hadoop": "on an object store two writers could publish the same version of a table",
    "hive": "it was not tried against a metastore",
    "dynamodb": "it was not tried",
    "bigquery": "it was not tried",
    "in-memory": "its tables end with the process that made them",
}
# pyiceberg would use these for some of the requests to AWS, and the storage for none.
_OTHER_IDENTITIES: Final = (
    *("client.profile-name", "client.role-arn", "s3.profile-name", "s3.role-arn"),
    "botocore_session",
)
_S3: Final = {
    s3_options.ENDPOINT: ("s3.endpoint",),
    s3_options.REGION: ("s3.region", "client.region"),
    s3_options.ACCESS_KEY: ("s3.access-key-id", AWS_KEY_ID),
    s3_options.SECRET_KEY: ("s3.secret-access-key", AWS_SECRET),
    s3_options.SESSION_TOKEN: ("s3.session-token", "client.session-token"),
}
_VIRTUAL: Final = "s3.force-virtual-addressing"


def require_catalog(options: Mapping[str, str]) -> str:
    """The type of the catalog; refuses what cannot be opened.

    Raises:
        NotSupportedError: another type of catalog, remote signing, another authentication.
        RequestError: REQUEST_INVALID, naming the option.
    """
    kind = options.get(TYPE, REST)
    if kind in _REFUSED:
        raise NotSupportedError(
            f"Catalogs of the type {kind} are not supported: {_REFUSED[kind]}.",
            f"Use one of the types {', '.join(CATALOGS)}.",
        )
    require(kind in CATALOGS, TYPE, f"{kind!r} is not one of: {', '.join(CATALOGS)}")
    schemes = _SCHEMES[kind]
    # Amazon's client knows where Glue is.
    is_known = kind == GLUE and URI not in options
    require(
        is_known or options.get(URI, "").startswith(schemes),
        URI,
        f"does not begin with {' or '.join(schemes)}, as that of a {kind} catalog does",
    )
    _require_known_ways(options)
    if kind == GLUE:
        _require_known_glue(options)
    return kind


def _require_known_ways(options: Mapping[str, str]) -> None:
    if "py-catalog-impl" in options:
        raise NotSupportedError(
            "Catalogs that a class of your own opens (py-catalog-impl) are not supported.",
            f"Use one of the types {', '.join(CATALOGS)}.",
        )
    if "s3.signer" in options or options.get("s3.remote-signing-enabled", "").lower() == "true":
        raise NotSupportedError(
            "Remote signing of requests to S3 is not supported.",
            "Let the catalog's server hand out keys, or give keys to the connection.",
        )
    require(
        options.get(SNAPSHOTS, "all") == "all",
        SNAPSHOTS,
        "is not 'all', but the history of tables is needed",
    )
    way = options.get(_AUTH_TYPE)
    if way is not None and way not in _AUTHS:
        raise NotSupportedError(
            f"{_AUTH_TYPE}: the authentication {way!r} is not supported.",
            "For OAuth 2 write client id and secret into login and password, and the address of "
            f"the token's server into {TOKEN_SERVER}.",
        )


def _require_known_glue(options: Mapping[str, str]) -> None:
    require(
        options.get(GLUE_ENDPOINT, _HTTP[0]).startswith(_HTTP),
        GLUE_ENDPOINT,
        f"does not begin with {' or '.join(_HTTP)}",
    )
    for name in _OTHER_IDENTITIES:
        if name in options:
            raise NotSupportedError(
                f"{name}: is not supported, because it would not hold for all requests.",
                "Write a key into login and password, or give this machine and the driver a role "
                "or the environment variable AWS_PROFILE.",
            )
    if "s3tablescatalog" in options.get("glue.id", ""):
        raise NotSupportedError(
            "glue.id: Amazon S3 Tables were not tried through Glue's own interface.",
            f"Use their REST interface: type {REST}.",
        )


def properties_of(options: Mapping[str, str]) -> dict[str, Any]:
    """The options as pyiceberg takes them."""
    properties: dict[str, Any] = {}
    for name, value in options.items():
        first, *inner = name.split(".")
        if first not in NESTED or not inner:
            properties[name] = value
            continue
        place = properties.setdefault(first, {})
        for each in inner[:-1]:
            place = place.setdefault(each, {})
        place[inner[-1]] = value
    client, secret = (properties.pop(each, "") for each in (CLIENT_ID, CLIENT_SECRET))
    if secret:
        properties[CREDENTIAL] = f"{client}:{secret}"
    if CREDENTIAL in properties and properties.get(TYPE, REST) == REST:
        properties.setdefault(TOKEN_SERVER, f"{properties[URI].rstrip('/')}/v1/oauth/tokens")
    if properties.get(TYPE) == GLUE and URI in properties:
        properties[GLUE_ENDPOINT] = properties.pop(URI)
    return properties


def flat(name: str, value: Mapping[str, Any]) -> dict[str, str]:
    """A nested property as options, each named by its path.

    Raises:
        RequestError: REQUEST_INVALID, naming the property with something else than texts.
    """
    options: dict[str, str] = {}
    for key, inner in value.items():
        path = f"{name}.{key}"
        require("." not in key, path, "the name has a dot")
        if isinstance(inner, Mapping):
            options |= flat(path, inner)
        else:
            require(isinstance(inner, str | int), path, "is not text")
            options[path] = str(inner)
    return options


def storage_options(options: Mapping[str, str]) -> dict[str, str]:
    """The options of the storage, by the names of ``s3_options``; holds secrets."""
    by_name = {
        name: next((options[each] for each in names if options.get(each)), "")
        for name, names in _S3.items()
    }
    if virtual := options.get(_VIRTUAL):
        by_name["fs.s3.path-style-access"] = "false" if virtual.lower() == "true" else "true"
    return {name: value for name, value in by_name.items() if value}


def identifier_of(options: Mapping[str, str], name: TableName) -> tuple[str, ...]:
    """Namespace and table as the catalog of ``options`` takes them; the branch is left out.

    Raises:
        NotSupportedError: a namespace in a namespace, which this type of catalog does not have.
    """
    if options.get(TYPE) == GLUE and "." in name.database:
        raise NotSupportedError(
            f"{name} is in a namespace of several levels, which catalogs of the type {GLUE} do "
            "not have.",
            "Name the database of Glue and the table.",
        )
    return (*name.database.split("."), name.without_branch)


def in_another_case(
    identifier: tuple[str, ...], known: Iterable[tuple[str, ...]]
) -> tuple[str, ...] | None:
    """The only one of the ``known`` tables with this name in another case; None: none, or several.

    As in all catalogs here, this is what a name means that no table has exactly.
    """
    same = [each for each in known if each[-1].lower() == identifier[-1].lower()]
    return same[0] if len(same) == 1 else None
