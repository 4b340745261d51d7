"""The files of the package `web`, which browsers load: pages, styles and modules.

They hold no data of the process, so that everybody may have them; what a page shows is read from
guarded paths. The list of files is made once, and only a path that stands in it is read.
"""

from collections.abc import Iterator, Mapping
from http import HTTPStatus
from pathlib import Path
from types import MappingProxyType
from typing import Final, final

import trio

from actors.http.site import METHODS, READ_ONLY, Page, Visit, json_page, unless_known

WEB: Final = "/web/"
"""Prefix of the paths of the files."""

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""The Content-Security-Policy of pages: nothing inline, nothing of other origins, no frames."""

MODULE_POLICY: Final = "default-src 'none'; script-src blob:"
"""The policy of modules, which holds where a browser runs one as a Worker, or shows it as a page:
code that the Worker is given may be run, and nothing is loaded from anywhere."""

_DIALLING: Final = POLICY.replace("connect-src 'self'", "connect-src 'self' ws: wss:")
"""The policy of pages with a runtime: it dials a node, whose address the user names."""

_FOLDERS: Final = ("dashboard", "demo", "example", "src")
"""Folders that are served, beside the files next to them; a checkout may have others there."""

_ROOT: Final = Path(__file__).parents[2] / "web"
"""The package: the one beside this one, as an application may have its own of that name."""

_RUNNING: Final = ("demo/", "example/")
"""Folders of pages with a runtime."""

_PAGE: Final = "text/html; charset=utf-8"
_KINDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        ".html": _PAGE,
        ".css": "text/css; charset=utf-8",
        ".js": "text/javascript; charset=utf-8",
        ".json": "application/json",
        ".svg": "image/svg+xml",
        ".ts": "text/plain; charset=utf-8",
    }
)
"""Media types by suffix; no other file is served."""

_MODULE: Final = _KINDS[".js"]
_PAGE_HEADERS: Final = (
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
)
_MISSING: Final = json_page(HTTPStatus.NOT_FOUND, {"error": "no file is served here"})


@final
class WebFiles:
    """Answers visits below `WEB`."""

    def __init__(self) -> None:
        self._files: Final = dict(_files())

    async def answer(self, visit: Visit) -> Page:
        """Return the file at a path, or what is said instead."""
        if visit.method not in METHODS:
            return READ_ONLY
        name = visit.path.removeprefix(WEB)
        file = self._files.get(name)
        if file is None:
            return _MISSING
        try:
            content = await trio.Path(file).read_bytes()
        except OSError:
            return _MISSING
        kind = _KINDS[file.suffix]
        return unless_known(visit, content, kind, *_headers(name, kind))


def _headers(name: str, kind: str) -> tuple[tuple[str, str], ...]:
    if kind == _PAGE:
        policy = _DIALLING if name.startswith(_RUNNING) else POLICY
        return ("content-security-policy", policy), *_PAGE_HEADERS
    return (("content-security-policy", MODULE_POLICY),) if kind == _MODULE else ()


def _files() -> Iterator[tuple[str, Path]]:
    """Yield the files of the package by their paths in it; none where it is not installed."""
    inside = (path for one in _FOLDERS for path in (_ROOT / one).rglob("*"))
    for path in sorted((*_ROOT.glob("protofly*.*"), *inside)):
        if path.suffix in _KINDS and path.is_file():
            yield path.relative_to(_ROOT).as_posix(), path
