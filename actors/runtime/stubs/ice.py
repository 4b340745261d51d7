"""The servers of STUN and TURN that data channels of a runtime use (CON-04)."""

from typing import Final

import attrs
import trio

from actors.kit.back_ends.ice import IcePlan
from actors.kit.ids import IdSource
from actors.runtime.bus.mini_bus import MiniBusPort
from specs.addresses.address import domain_of, quality_broker, runtime_of
from specs.bodies.answer import IceServersGiven
from specs.bodies.session import IceServer
from specs.errors import BadMessageError
from specs.limits.webrtc import ICE_INQUIRY
from specs.message import Message, MessageType
from specs.reply_code import Code
from transports.bodies import read_body


@attrs.frozen(slots=True)
class IceSource:
    """Where a runtime gets its servers from.

    Attributes:
        plan: Those that are configured; None: the broker of the domain is asked.
        relay_only: Whether data channels use nothing but servers of TURN.
        clock_offset: Seconds from the Trio clock to the epoch.
    """

    plan: IcePlan | None = None
    relay_only: bool = False
    clock_offset: float = 0.0

    async def servers(self, bus: MiniBusPort, ids: IdSource, url: str) -> tuple[IceServer, ...]:
        """Return the servers that can be used now; none, if the broker does not answer.

        Args:
            bus: Port of the stub that uses them.
            ids: Message ids of its address.
            url: Its address.

        If cancelled, the answer of the broker is dropped.
        """
        runtime = runtime_of(url)
        if self.plan is not None:
            now = trio.current_time() + self.clock_offset
            return self.plan.servers_for(runtime, now).servers
        broker = quality_broker(domain_of(runtime))
        inquiry = Message(ids.next(url), MessageType.READ, url, broker, {})
        with trio.move_on_after(ICE_INQUIRY):
            answer = await bus.request(inquiry)
            if answer.code == Code.OK:
                return _servers(answer)
        return ()


def _servers(answer: Message) -> tuple[IceServer, ...]:
    try:
        return read_body(answer, IceServersGiven).value.servers
    except BadMessageError:
        return ()


NO_SERVERS: Final = IceSource(IcePlan())
"""No servers, and no broker that is asked."""
