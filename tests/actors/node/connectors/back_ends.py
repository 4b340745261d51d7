"""Back ends of connectors of a node, in memory: a global registry, a quality broker, users."""

from collections.abc import Mapping, Sequence

import trio
from typing_extensions import override

from actors.node.connectors.global_registry import GlobalRecords
from actors.node.connectors.quality import QualityBroker
from actors.node.connectors.service import Replied, with_value
from actors.node.login.provider import IdentityProvider, LoginRefusedError
from specs.addresses.address import host_of
from specs.bodies.session import IceServer, IceServers, QualityRequest, TurnServer
from specs.identity import Identity
from specs.jsonvalue import JsonObject
from specs.reply_code import Code


class RecordsFake(GlobalRecords):
    """A global registry with these records, by GUID."""

    def __init__(self, records: Mapping[str, str]) -> None:
        self._records = dict(records)

    @override
    async def read(self, guid: str) -> Replied:
        await trio.lowlevel.checkpoint()
        token = self._records.get(guid)
        if token is None:
            return Replied(Code.NOT_FOUND, {"description": "Not Found"})
        return with_value(Code.OK, token, "OK")

    @override
    async def publish(self, guid: str, token: str) -> Replied:
        await trio.lowlevel.checkpoint()
        self._records[guid] = token
        return Replied(Code.OK)

    @override
    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()


class RelaysFake(QualityBroker):
    """A quality broker with these relays, in this order; what is released is granted again."""

    def __init__(self, relays: Sequence[TurnServer]) -> None:
        self._free = list(relays)
        self._granted: dict[str, TurnServer] = {}

    @override
    async def reserve(self, name: str, quality: QualityRequest) -> TurnServer | None:
        await trio.lowlevel.checkpoint()
        if name not in self._granted and self._free:
            self._granted[name] = self._free.pop(0)
        return self._granted.get(name)

    @override
    async def resources(self, user: str) -> IceServers | None:
        await trio.lowlevel.checkpoint()
        free = tuple(IceServer((one.turn,), one.username, one.credential) for one in self._free)
        return IceServers(free) if free else None

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


class PeopleFake(IdentityProvider):
    """An identity provider that knows addresses of users, by what they log in with."""

    def __init__(self, people: Mapping[str, str]) -> None:
        self._people = dict(people)

    @override
    async def validate(self, assertion: str, key: str | None) -> Identity:
        await trio.lowlevel.checkpoint()
        user = self._people.get(assertion)
        if user is None:
            raise LoginRefusedError("the token proves no identity")
        return Identity(user=user, issuer=host_of(user), until=float("inf"))

    @override
    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()
