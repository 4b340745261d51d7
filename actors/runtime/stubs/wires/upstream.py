"""What the wires of both forms of upstream's nodes have in common (protocol page 11).

A message is a frame. A node is spoken to as its own stubs spell: `runtime://`, `via` as
one address. Ids and the name of a path's list differ from node to node, so that a profile
may say which. What comes back is read as everything is, by the one way in.
"""

from collections.abc import Iterable
from types import MappingProxyType
from typing import Final, final

from typing_extensions import override

from actors.runtime.stubs.options import read_options
from actors.runtime.stubs.stub import StubContext
from actors.runtime.stubs.wires.wire import NodeWire
from specs.dialects.dialect import Dialect, spell
from specs.dialects.spellings import LIST_KEYS
from specs.jsonvalue import JsonObject
from specs.message import Message
from transports.codec import encode
from transports.link import Kind, Link

__all__ = ["LegacyWire", "dialect_for"]

_IDS: Final = "ids"
_PATHS: Final = "paths"
_NUMBER: Final = "number"
_TEXT: Final = "text"

_OPTIONS: Final = MappingProxyType({_IDS: (_NUMBER, _TEXT), _PATHS: LIST_KEYS[:2]})


def dialect_for(stub: str, options: JsonObject) -> Dialect:
    """Return how a node is spoken to.

    Raises:
        StubOptionError: The profile says what no node is known for.
    """
    chosen = read_options(stub, options, _OPTIONS)
    return Dialect(
        string_ids=chosen[_IDS] == _TEXT,
        runtime_alias=True,
        list_key=chosen[_PATHS],
        via_text=True,
    )


class LegacyWire(NodeWire):
    """One of upstream's wire forms over one link.

    Args:
        context: Of the stub that speaks.
        dialect: How its node is spoken to.
    """

    def __init__(self, context: StubContext, dialect: Dialect) -> None:
        super().__init__(context)
        self._dialect = dialect
        self._runtime = spell(context.config.runtime, dialect)

    @override
    async def dial(self) -> Link:
        return await self._network.dial(Kind.WEBSOCKET, self._address(), None)

    def _address(self) -> str:
        return self._config.node_url or ""

    @final
    @override
    def write(self, message: Message) -> bytes:
        return encode(message, self._dialect)

    @final
    @override
    def frames(self, lines: Iterable[bytes]) -> Iterable[bytes]:
        return lines
