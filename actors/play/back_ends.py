"""The back ends of a scenario's nodes: each answers what the scenario says it answers.

A node has a connector if the scenario asks something at its address. Behind it stands a
small back end with a state of its own: records by GUID, relays in the order in which they
are granted, people by what they log in with.
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
from actors.play.answered import answers_to
from actors.play.script import MessageStep, Scenario
from specs.address import GLOBAL_REGISTRY, host_of, identity_manager, quality_broker
from specs.body import QualityWish, TurnServer
from specs.identity import Identity
from specs.jsonvalue import Json, JsonObject
from specs.message import MessageType
from specs.reply_code import Code

__all__ = [
    "PeopleFake",
    "RecordsFake",
    "RelaysFake",
    "assertion_in",
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


def back_ends_of(scenario: Scenario, domain: str) -> BackEnds:
    """Return what the node of a domain relays to."""
    asked = {step.message.to for step in scenario.steps if isinstance(step, MessageStep)}
    broker = quality_broker(domain)
    return BackEnds(
        global_registry=(lambda: RecordsFake(_tokens(scenario)))
        if GLOBAL_REGISTRY in asked
        else None,
        quality=(lambda: RelaysFake(_relays(scenario, broker))) if broker in asked else None,
    )


def login_of(scenario: Scenario, domain: str) -> Login | None:
    """Return how people log in at the node of a domain; None: nobody does."""
    manager = identity_manager(domain)
    asked = {step.message.to for step in scenario.steps if isinstance(step, MessageStep)}
    if manager not in asked:
        return None
    people = dict(_people(scenario, manager))
    return Login(provider=lambda _: PeopleFake(people), admission=Admission.ANYBODY)


def assertion_in(body: Mapping[str, Json]) -> str | None:
    """Return what somebody logs in with, as a question to an identity manager says it."""
    params = body.get("params")
    assertion = params.get("assertion") if isinstance(params, dict) else None
    return assertion if isinstance(assertion, str) else None


def _tokens(scenario: Scenario) -> dict[str, str]:
    """Return the records that the scenario reads before they are published, by GUID."""
    read = answers_to(scenario, MessageType.READ)
    return {
        guid: token
        for request, answer in read
        if request.to == GLOBAL_REGISTRY
        and isinstance(guid := request.body.get("resource"), str)
        and isinstance(token := answer.body.get("value"), str)
    }


def _relays(scenario: Scenario, broker: str) -> Iterable[TurnServer]:
    for request, answer in answers_to(scenario, MessageType.CREATE):
        value = answer.body.get("value")
        if request.to == broker and isinstance(value, dict):
            turn, username, credential = (
                str(value.get(name, "")) for name in ("turn", "username", "credential")
            )
            yield TurnServer(turn, username, credential)


def _people(scenario: Scenario, manager: str) -> Iterable[tuple[str, str]]:
    for request, answer in answers_to(scenario, MessageType.EXECUTE):
        assertion, value = assertion_in(request.body), answer.body.get("value")
        user = value.get("user") if isinstance(value, dict) else None
        if request.to == manager and assertion is not None and isinstance(user, str):
            yield assertion, user
