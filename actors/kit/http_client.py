"""An HTTP client for one server that the operator has named; nothing else can be reached by it.

Every request is bounded: by the caller's deadline (`with trio.fail_after(...)`), by the
size of the answer, by the number of connections. Redirects are not followed, and no
connection is dialled but to the server itself, whatever an answer says (S15).
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, final

import orjson
import trio

from actors.kit.egress import ANYWHERE, Egress
from actors.kit.http_message import HttpAnswer, HttpRequest, ServerUrl
from specs.limits.back_ends import BACKEND_ANSWER_BYTES
from specs.limits.protocol import GOODBYE_TIMEOUT

if TYPE_CHECKING:
    from specs.jsonvalue import Json

__all__ = ["HttpClient"]

_JSON: Final = "application/json"
_BYTES: Final = "application/octet-stream"


@final
class HttpClient:
    """Asks one server.

    Args:
        server: The server.
        limit: Bytes an answer may have.
        headers: Sent with every request, such as what the operator's key is shown by.
        egress: Which of its addresses are dialled.
    """

    def __init__(
        self,
        server: ServerUrl,
        limit: int = BACKEND_ANSWER_BYTES,
        headers: Iterable[tuple[str, str]] = (),
        egress: Egress = ANYWHERE,
    ) -> None:
        self.server: Final = server
        self._limit = limit
        self._headers = [("Host", server.authority), ("Accept", _JSON), *headers]
        # Slow to import, and not needed by who has no server to ask.
        from actors.kit.http_pool import HttpPool  # noqa: PLC0415

        self._pool = HttpPool(server, egress)

    async def ask(self, method: str, path: str, body: "Json | bytes" = None) -> HttpAnswer:
        """Send a request and return the answer, whatever its status.

        The body is sent as JSON, or as it is if it is bytes; None: there is none.

        Cancelled: its connection is closed; the server may have done what was asked.

        Raises:
            HttpError: No answer came, it is too large, or it points elsewhere.
        """
        headers = list(self._headers)
        content = None
        if body is not None:
            content = body if isinstance(body, bytes) else orjson.dumps(body)
            headers.append(("Content-Type", _BYTES if content is body else _JSON))
            headers.append(("Content-Length", str(len(content))))
        asked = HttpRequest(method, self.server.text + path, headers, content)
        return await self._exchange(asked, self._limit)

    async def read(self, path: str, limit: int) -> HttpAnswer:
        """Ask for what stands at a path; of an answer no more than these bytes are taken.

        Cancelled: its connection is closed.

        Raises:
            HttpError: As of `ask`.
        """
        asked = HttpRequest("GET", self.server.text + path, self._headers, None)
        return await self._exchange(asked, limit)

    async def _exchange(self, asked: HttpRequest, limit: int) -> HttpAnswer:
        status, answer = await self._pool.exchange(asked, limit)
        return HttpAnswer(status, answer, self.server.text)

    async def aclose(self) -> None:
        """Close every connection."""
        with trio.move_on_after(GOODBYE_TIMEOUT, shield=True):
            await self._pool.aclose()
