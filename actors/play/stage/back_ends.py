"""The back ends of a scenario's nodes, with the state that is given.

Behind a connector stands a small back end in memory: records by GUID, relays in the order
in which they are granted, people by what they log in with.
"""

from collections.abc import Iterable, Mapping
from typing import Final, final

import trio
from typing_extensions import override

from actors.node.connectors.back_ends import BackEnds
from actors.node.connectors.global_registry import GlobalRecords
from actors.node.connectors.quality import QualityBroker
from actors.node.connectors.service import Replied, with_value
from actors.node.login.errors import LoginRefusedError
from actors.node.login.login import Admission, Login
from actors.node.login.provider import IdentityProvider
from actors.play.script.vocabulary import Node
from specs.addresses.address import host_of
from specs.bodies.body import QualityWish, TurnServer
from specs.identity import Identity
from specs.jsonvalue import JsonObject
from specs.reply_code import Code

__all__ = [
    "PeopleFake",
    "RecordsFake",
    "RelaysFake",
    "back_ends_of",
    "login_of",
]

_FOUND: Final = "OK"
_MISSING: Final = "Not Found"


@final
class RecordsFake(GlobalRecords):
    """A global registry in memory.

    Args:
        records: What it holds, by GUID.
    """

    def __init__(self, records: Mapping[str, str]) -> None:
        self._records = dict(records)

    @override
    async def read(self, guid: str) -> Replied:
        await trio.lowlevel.checkpoint()
        token = self._records.get(guid)
        if token is None:
            return Replied(Code.NOT_FOUND, {"description": _MISSING})
        return with_value(Code.OK, token, _FOUND)

    @override
    async def publish(self, guid: str, token: str) -> Replied:
        await trio.lowlevel.checkpoint()
        self._records[guid] = token
        return Replied(Code.OK)

    @override
    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()


@final
class RelaysFake(QualityBroker):
    """A quality broker with so many relays; what is released is granted again.

    Args:
        relays: What it grants, in this order.
    """

    def __init__(self, relays: Iterable[TurnServer]) -> None:
        self._free = list(relays)
        self._granted: dict[str, TurnServer] = {}

    @override
    async def reserve(self, name: str, wish: QualityWish) -> TurnServer | None:
        await trio.lowlevel.checkpoint()
        if name not in self._granted and self._free:
            self._granted[name] = self._free.pop(0)
        return self._granted.get(name)

    @override
    async def status(self, name: str) -> JsonObject | None:
        await trio.lowlevel.checkpoint()
        granted = self._granted.get(name)
        return None if granted is None else {"turn": granted.turn}

    @override
    async def release(self, name: str) -> None:
        await trio.lowlevel.checkpoint()
        granted = self._granted.pop(name, None)
        if granted is not None:
            self._free.append(granted)

    @override
    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()


@final
class PeopleFake(IdentityProvider):
    """An identity provider that knows people by what they log in with.

    Args:
        people: Addresses of users, by assertion.
    """

    def __init__(self, people: Mapping[str, str]) -> None:
        self._people = dict(people)

    @override
    async def validate(self, assertion: str) -> Identity:
        await trio.lowlevel.checkpoint()
        user = self._people.get(assertion)
        if user is None:
            raise LoginRefusedError("the token vouches for nobody")
        return Identity(user=user, issuer=host_of(user), until=float("inf"))

    @override
    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()


def back_ends_of(node: Node) -> BackEnds:
    """Return what a node relays to."""
    records, relays = node.records, node.relays
    return BackEnds(
        global_registry=None if records is None else lambda: RecordsFake(_texts(records)),
        quality=None if relays is None else lambda: RelaysFake(map(_relay, relays)),
    )


def login_of(node: Node) -> Login | None:
    """Return how people log in at a node; None: nobody does."""
    people = node.people
    if people is None:
        return None
    return Login(provider=lambda _: PeopleFake(_texts(people)), admission=Admission.ANYBODY)


def _texts(value: JsonObject) -> dict[str, str]:
    return {key: str(one) for key, one in value.items()}


def _relay(value: JsonObject) -> TurnServer:
    turn, username, credential = (
        str(value.get(name, "")) for name in ("turn", "username", "credential")
    )
    return TurnServer(turn, username, credential)
