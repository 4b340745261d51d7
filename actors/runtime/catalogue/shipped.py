"""The stubs that ship, by the name a declarative profile calls them (PFY-01, STB-01)."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from actors.kit.supervision.actor import Actor
from actors.runtime.stubs import node_stub
from actors.runtime.stubs.node_stub import NodeStub, NodeStubMessage
from actors.runtime.stubs.stub import StubContext, StubFactory
from actors.runtime.stubs.upstream_wires import PlainWire, SessionWire, dialect_for

__all__ = ["SHIPPED"]


def _plain(context: StubContext) -> Actor[NodeStubMessage]:
    """Make the stub that speaks upstream's plain form.

    Raises:
        StubOptionError: Its profile says what it does not know.
    """
    dialect = dialect_for("legacy-websocket", context.config.options)
    return NodeStub(context, lambda: PlainWire(context, dialect))


def _session(context: StubContext) -> Actor[NodeStubMessage]:
    """Make the stub that opens a session as upstream's do.

    Raises:
        StubOptionError: Its profile says what it does not know.
    """
    dialect = dialect_for("legacy-session", context.config.options)
    return NodeStub(context, lambda: SessionWire(context, dialect))


def _rest(context: StubContext) -> Actor[NodeStubMessage]:
    """Make the stub that speaks `protofly.v1` over HTTP.

    Raises:
        StubOptionError: Its profile says what it does not know.
    """
    # Slow to import, and not needed by who has no such node to ask.
    from actors.runtime.stubs.rest_wire import RestPast, RestWire, receive_of  # noqa: PLC0415

    receive, past = receive_of(context), RestPast()
    return NodeStub(context, lambda: RestWire(context, receive, past))


SHIPPED: Final[Mapping[str, StubFactory]] = MappingProxyType(
    {
        "websocket": node_stub.activate,
        "legacy-websocket": _plain,
        "legacy-session": _session,
        "rest": _rest,
    }
)
"""What a profile may name: our own code, which a foreign domain only points at its node."""
