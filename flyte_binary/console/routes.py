"""Serves the console's files; every other path below the base is a page of its own and gets the index.

All addresses are relative, in redirects as in the page, because proxies in front may have taken off more of the path.
"""

from __future__ import annotations

from pathlib import Path

from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

BASE_PATH = "/v2"
_HEADERS = {
    "cache-control": "no-cache",
    "content-security-policy": "default-src 'self'; frame-ancestors 'none'; base-uri 'self'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
}


def console_folder() -> Path:
    """A link to `console_stub/` in the source tree, the files themselves in an installed package."""
    return Path(__file__).parent / "static"


def console_routes(folder: Path, base_path: str = BASE_PATH) -> list[Route]:
    """`base_path` has no slash at its end. Pages find the services of the server by `data-root`."""
    files = {path.name: path for path in folder.iterdir() if path.is_file() and path.name != "index.html"}
    index = (folder / "index.html").read_text()

    async def console(request: Request) -> Response:
        name = request.path_params["path"]
        if name in files:
            return FileResponse(files[name], headers=_HEADERS)
        if "." in name.rsplit("/", 1)[-1] and not name.startswith("domain/"):
            return PlainTextResponse("Not Found", status_code=404)
        up = "../" * name.count("/")
        root = up + "../" * base_path.count("/")
        page = index.replace('="./', f'="./{up}').replace('data-root="../"', f'data-root="{root}"')
        return HTMLResponse(page, headers=_HEADERS)

    async def to_console(request: Request) -> Response:
        to = base_path[1:] if request.url.path == "/" else base_path.rpartition("/")[2]
        return RedirectResponse(f"{to}/")

    return [
        Route("/", to_console),
        Route(base_path, to_console),
        Route(base_path + "/{path:path}", console),
    ]
