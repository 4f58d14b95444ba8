"""The page at ``/``: its files are read once and sent as they are."""

from pathlib import Path

from fastapi import APIRouter, Response

from tercet.serve.problems import status_problem

FOLDER = Path(__file__).parents[1] / "playground"
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
}
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {"Content-Security-Policy": CONTENT_SECURITY_POLICY, "Cache-Control": "no-cache"}

router = APIRouter(include_in_schema=False)
_files = {path.name: path.read_bytes() for path in FOLDER.glob("*.*") if path.suffix in TYPES}


@router.get("/")
async def page() -> Response:
    """The playground."""
    return _file("index.html")


@router.get("/playground/{name}")
async def asset(name: str) -> Response:
    """A script, a style sheet or a picture of the playground."""
    return _file(name)


def _file(name: str) -> Response:
    content = _files.get(name)
    if content is None:
        raise status_problem(404, "there is no such file")
    return Response(content, media_type=TYPES[Path(name).suffix], headers=HEADERS)
