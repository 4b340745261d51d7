"""The stub `http-json`: messages to a domain become calls of a plain REST server (PFY-05).

| message | call |
|---|---|
| `read` | `GET` |
| `create` | `POST`, with `value` |
| `update` | `PUT`, with `value` |
| `delete` | `DELETE` |
| `execute` | `POST` to the method below it, with `params` |

The path of the call is that of `resource`, if that is an address of the domain, else that of the
receiver: `item://shop.example/items/3` is `/items/3` below the endpoint. Statuses become reply
codes; the JSON of an answer becomes its `value`.
"""

from typing import Final
from urllib.parse import quote

from typing_extensions import override

from actors.kit.back_ends.requests import code_of, words
from actors.kit.http_client import HttpAnswer
from actors.runtime.stubs.client_server.stub import ClientServerStub
from actors.runtime.stubs.stub import StubContext
from specs.addresses.address import domain_of
from specs.errors import BadMessageError
from specs.jsonvalue import Json
from specs.message import Message, MessageType, refuse, reply_to
from specs.reply_code import LAST_SUCCESS, Code

NAME: Final = "http-json"

_METHODS: Final = {
    MessageType.READ: "GET",
    MessageType.CREATE: "POST",
    MessageType.UPDATE: "PUT",
    MessageType.DELETE: "DELETE",
    MessageType.EXECUTE: "POST",
}
_FAILURES: Final = {
    500: Code.INTERNAL,
    502: Code.BAD_BACKEND,
    504: Code.BACKEND_TIMEOUT,
}
"""Failures that the server itself reports; they are kept beside those that all back ends share."""

_DOTS: Final = frozenset({".", ".."})


class HttpJsonStub(ClientServerStub):
    """Converts messages to calls of a plain REST server.

    Args:
        context: Context of the stub.

    Raises:
        StubOptionError: The profile names no server, or has options; there are none.
    """

    def __init__(self, context: StubContext) -> None:
        super().__init__(NAME, context)

    @override
    async def answer(self, request: Message) -> Message:
        method = _METHODS.get(request.type)
        if method is None:
            why = f"{self.context.config.domain} has no message node, so nothing can be followed"
            raise BadMessageError(f"{why}; it can be read, created, updated, deleted or executed")
        return _reply(request, await self.client.ask(method, self._path(request), _body(request)))

    def _path(self, request: Message) -> str:
        """Return the path of a call, each segment quoted; it leads nowhere but below the endpoint.

        Raises:
            BadMessageError: A segment would lead upwards.
        """
        resource = request.body.get("resource")
        named = isinstance(resource, str) and domain_of(resource) == self.context.config.domain
        address = str(resource) if named else request.to
        segments = address.partition("://")[2].split("/")[1:]
        if request.type is MessageType.EXECUTE:
            segments = [*segments, str(request.body.get("method", ""))]
        if _DOTS & {*segments}:
            raise BadMessageError("a part of the address is a dot")
        return "".join(f"/{quote(one, safe='')}" for one in segments if one)


def _body(request: Message) -> Json:
    name = "params" if request.type is MessageType.EXECUTE else "value"
    return request.body.get(name)


def _reply(request: Message, answer: HttpAnswer) -> Message:
    code = _FAILURES.get(answer.status) or code_of(answer)
    if code > LAST_SUCCESS:
        return refuse(request, code, words(answer))
    value = answer.json() if answer.body else None
    return reply_to(request, code, {} if value is None else {"value": value})
