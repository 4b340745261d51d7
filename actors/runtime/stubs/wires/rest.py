"""Sessions over HTTP: `protofly.v1` in requests (CON-06).

Messages are spelt as over a link of our own; only control of the session has a path of its
own. What is sent is posted in order, one post after the other, whatever waits together. What
comes is asked for, by long polls or as server-sent events.
"""

from collections.abc import Iterable, Iterator
from enum import StrEnum, unique
from typing import Final, final
from urllib.parse import urlsplit

from typing_extensions import override

from actors.runtime.stubs.options import StubOptionError, read_options
from actors.runtime.stubs.stub import StubContext
from actors.runtime.stubs.wires.protofly import OwnWire
from actors.runtime.stubs.wires.rest_http import RestHttp
from actors.runtime.stubs.wires.rest_link import EventLink, PollLink, RestLink, RestPast
from specs.bodies.word import SessionMethod
from transports.codec import frames

__all__ = ["Receive", "RestWire", "receive_of"]

_STUB: Final = "rest"


@final
@unique
class Receive(StrEnum):
    """How what comes is asked for; words of a profile."""

    LONG_POLL = "long-poll"
    SSE = "sse"


def receive_of(context: StubContext) -> Receive:
    """Read from a profile how messages are to come.

    Raises:
        StubOptionError: The profile says what the stub does not know.
    """
    known = {"receive": tuple(one.value for one in Receive)}
    chosen = read_options(_STUB, context.config.options, known)
    url = context.config.node_url or ""
    if urlsplit(url).scheme != "http":
        why = f"its endpoint {url!r} is none such as http://host:port/rest"
        raise StubOptionError(_STUB, "endpoint", why)
    return Receive(chosen["receive"])


@final
class RestWire(OwnWire):
    """Our own form over requests.

    Args:
        context: Of the stub that speaks.
        receive: How what comes is asked for.
        past: Of the links that the stub had before.
    """

    def __init__(self, context: StubContext, receive: Receive, past: RestPast) -> None:
        super().__init__(context)
        self._receive = receive
        self._past = past
        self._apart: set[bytes] = set()

    @override
    async def dial(self) -> RestLink:
        http = RestHttp(self._network, self._config.node_url or "")
        make = PollLink if self._receive is Receive.LONG_POLL else EventLink
        return make(http, self._apart, self._past)

    @override
    def ask(self, method: SessionMethod, token: str | None) -> bytes:
        line = super().ask(method, token)
        if method is not SessionMethod.PING:
            self._apart.add(line)
        return line

    @override
    def frames(self, lines: Iterable[bytes]) -> Iterator[bytes]:
        together: list[bytes] = []
        for line in lines:
            if line in self._apart:
                yield from frames(together)
                together = []
                yield line
            else:
                together.append(line)
        yield from frames(together)
