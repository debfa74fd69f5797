"""The application that Airflow's API server mounts: the API, and the pages that show it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Final

from fastapi import FastAPI, Request
from fastapi.responses import FileResponse, JSONResponse, Response
from fastapi.staticfiles import StaticFiles

from airflow_provider_merge.ui.access import PageUser
from airflow_provider_merge.ui.failures import handle_failures
from airflow_provider_merge.ui.routes import Service, router

_STATIC: Final = Path(__file__).parent / "static"
PAGES: Final = ("", "table", "compare", "preview")
_DESCRIPTION: Final = "/v1/openapi.json"
_PLOTS: Final = "plotly/package_data/plotly.min.js"
_HEADERS: Final = {
    # Plots set styles of their own; no text of a table is ever taken for one.
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
        "img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'self'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
}


def tables_app() -> FastAPI:
    """A new application; its state is empty."""
    app = FastAPI(
        title="Lakehouse tables",
        version="1",
        description="What the metadata of tables tells. Read-only.",
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
    )
    app.state.service = Service()
    app.middleware("http")(_with_headers)
    handle_failures(app)
    app.include_router(router)
    app.add_api_route(_DESCRIPTION, _described, include_in_schema=False)
    for name in PAGES:
        app.add_api_route(f"/{name}", _page, include_in_schema=False)
    app.add_api_route("/static/plotly.min.js", _plots, include_in_schema=False)
    app.mount("/static", StaticFiles(directory=_STATIC), name="static")
    return app


def _described(request: Request, _: PageUser) -> JSONResponse:
    """FastAPI's own would be open to everybody."""
    return JSONResponse(request.app.openapi())


def _page(_: PageUser) -> FileResponse:
    return FileResponse(_STATIC / "page.html", media_type="text/html")


def _plots() -> Response:
    """The plots' library, from its own package; 404 where that is not installed."""
    try:
        library = Path(str(distribution("plotly").locate_file(_PLOTS)))
    except PackageNotFoundError:
        library = _STATIC / "none"
    if not library.is_file():
        return Response(status_code=404)
    headers = {"Cache-Control": "public, max-age=86400"}
    return FileResponse(library, media_type="text/javascript", headers=headers)


async def _with_headers(
    request: Request, call_next: Callable[[Request], Awaitable[Response]]
) -> Response:
    response = await call_next(request)
    response.headers.update(_HEADERS)
    # What one user may see another may not; and code belongs to the server's version.
    response.headers.setdefault(
        "Cache-Control", "no-cache" if "/static/" in request.url.path else "no-store"
    )
    return response
