"""A quality broker that is asked over HTTP; the form is ours (C-60).

| call | answers |
|---|---|
| `PUT /reservations/<name>` and the wish | 200 `{turn, username, credential}`; 503: no resources |
| `GET /reservations/<name>` | 200, any JSON object; 404 |
| `DELETE /reservations/<name>` | 200, 204 or 404 |

The wish is `{cspId, mediaType, clientName}`. The first call is upstream's `getTurnAddr` and
`getTurnCredentials` in one.
"""

from typing import final

from typing_extensions import override

from actors.kit.http_client import HttpAnswer, HttpClient, ServerUrl, path_of
from actors.node.connectors.quality import QualityBroker
from actors.node.connectors.service import BackEndError
from actors.node.connectors.statuses import code_of
from specs.bodies.body import QualityWish, TurnServer
from specs.jsonvalue import Json, JsonObject
from specs.reply_code import Code
from transports.bodies import write_body

__all__ = ["HttpQualityBroker"]


@final
class HttpQualityBroker(QualityBroker):
    """Asks one server.

    Args:
        server: Where it is.
    """

    def __init__(self, server: ServerUrl) -> None:
        self._client = HttpClient(server)

    @override
    async def reserve(self, name: str, wish: QualityWish) -> TurnServer | None:
        answer = await self._client.ask("PUT", _path(name), write_body(wish))
        match code_of(answer):
            case Code.OK:
                return _turn(answer)
            case Code.UNAVAILABLE:
                return None
            case _:
                raise _broken(answer)

    @override
    async def status(self, name: str) -> JsonObject | None:
        answer = await self._client.ask("GET", _path(name))
        match code_of(answer):
            case Code.OK:
                return _object(answer)
            case Code.NOT_FOUND:
                return None
            case _:
                raise _broken(answer)

    @override
    async def release(self, name: str) -> None:
        answer = await self._client.ask("DELETE", _path(name))
        if code_of(answer) not in {Code.OK, Code.NOT_FOUND}:
            raise _broken(answer)

    @override
    async def aclose(self) -> None:
        await self._client.aclose()


def _path(name: str) -> str:
    return path_of("reservations", name)


def _broken(answer: HttpAnswer) -> BackEndError:
    return BackEndError(f"{answer.server} answered with status {answer.status}")


def _object(answer: HttpAnswer) -> JsonObject:
    said: Json = answer.json()
    if not isinstance(said, dict):
        raise BackEndError(f"{answer.server} answered with JSON that is no object")
    return said


def _turn(answer: HttpAnswer) -> TurnServer:
    said = _object(answer)
    turn, username, credential = (said.get(one) for one in ("turn", "username", "credential"))
    if not (isinstance(turn, str) and isinstance(username, str) and isinstance(credential, str)):
        raise BackEndError(f"{answer.server} granted a relay without saying how it is opened")
    return TurnServer(turn, username, credential)
