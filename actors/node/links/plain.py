"""The door of upstream's plain stubs: a message is a frame, the session is in the URL."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Final, final

from typing_extensions import override

from actors.kit.counting.tally import Form
from actors.node.links.acceptor import Acceptor, Claim, Item, spelt
from fsm.session.node_session_io import Liveness, Parcel
from specs.addresses.address import canonical
from specs.dialects.dialect import PLAIN, dialect_of
from specs.errors import BadMessageError, BadUrlError
from specs.jsonvalue import Json, JsonObject
from specs.message import Message, MessageType
from specs.reply_code import Code
from transports.codec import decode_line, decode_object, glance, read_object
from transports.link import Upgrade

__all__ = ["PlainDoor"]

_RUNTIME: Final = "runtimeURL"
_WISH: Final = 1
"""Id of what this door says in the peer's place; no answer to it but a refusal is told."""


@final
class PlainDoor(Acceptor):
    """`/stub/connect?runtimeURL=`: whoever comes has the session of the runtime it names.

    Upstream's command `disconnect` closes it. The dialect is learnt from all that can
    be read, so that a refusal too is spelt as the peer does.

    Args:
        control: Address of the node's session manager.
        upgrade: What the peer asked for when it came.
    """

    wire = Form.PLAIN
    liveness = Liveness.BY_LINK

    def __init__(self, control: str, upgrade: Upgrade) -> None:
        self._control = control
        self._named = upgrade.query.get(_RUNTIME, "")
        self._runtime: str | None = None
        with suppress(BadUrlError):
            self._runtime = canonical(self._named)
        named = dialect_of({"from": self._named})
        self.dialect = PLAIN if named == PLAIN else named

    @override
    def greeting(self) -> Sequence[Item]:
        return (Claim(self._say("open")),)

    @override
    def read(self, frame: bytes) -> Sequence[Item]:
        try:
            raw = read_object(frame)
        except BadMessageError:
            self.learn(glance(frame))
            return (decode_line(frame),)
        if raw.get("cmd") == "disconnect" and self._is_own(raw.get("body")):
            return (self._say("close"),)
        self.learn(raw)
        return (decode_object(frame, raw),)

    @override
    def write(self, parcels: Sequence[Parcel]) -> Iterable[bytes]:
        for parcel in parcels:
            if parcel.message.from_ != self._control or parcel.message.code != Code.OK:
                yield spelt(parcel, self.dialect)

    def _say(self, method: str) -> Message:
        body: JsonObject = {"method": method, "params": {_RUNTIME: self._named}}
        return Message(
            id=_WISH,
            type=MessageType.EXECUTE,
            from_=self._runtime or self._control,
            to=self._control,
            body=body,
        )

    def _is_own(self, body: Json) -> bool:
        """Say whether a command is about this peer's runtime: it names that, or none."""
        named = body.get(_RUNTIME) if isinstance(body, dict) else None
        if not isinstance(named, str):
            return named is None
        try:
            return canonical(named) == self._runtime
        except BadUrlError:
            return False
