"""What a runtime shows its user: ADR-03."""

from contextlib import asynccontextmanager

import attrs
import pytest
import trio

import actors
from actors.node.app import open_node
from actors.node.config import NodeConfig
from actors.runtime.app import open_runtime
from actors.runtime.config import RuntimeConfig
from specs.limits.discovery import GUI_WAITING
from specs.message import MessageType
from tests.support.runtime.domain import DomainOptions, open_domain
from tests.support.trace.memory import MemoryTracer
from transports.memory import MemoryNetwork

PAGE = "https://idp.ex/login"
CHOICE = {"identities": [{"identity": "alice"}], "idps": [{"domain": "idp.ex"}]}


@attrs.define
class User(actors.IdentityGui):
    """A user who looks at each page for a time."""

    takes: float = 0.0
    answer: object = "code"
    seen: list = attrs.field(factory=list)
    at_once: int = 0

    async def show(self, url):
        self.seen.append(url)
        self.at_once += 1
        await trio.sleep(self.takes)
        self.at_once -= 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    async def choose(self, identities, providers):
        self.seen.append((identities, providers))
        return identities[0]


@asynccontextmanager
async def runtime_of(gui):
    network = MemoryNetwork()
    async with open_node(NodeConfig(domain="a.ex"), network, MemoryTracer()) as node:
        config = RuntimeConfig(domain="a.ex", name="ra", node=node.url, identity_gui=gui)
        async with open_runtime(config, network, MemoryTracer()) as runtime:
            yield runtime


async def ask(runtime, kind=MessageType.EXECUTE, **body):
    return await runtime.order("ua", kind, f"{runtime.url}/identity-gui", body)


async def show(runtime, url=PAGE):
    return await ask(runtime, method="openPopup", params={"urlreq": url})


async def test_a_login_page_is_shown_by_the_application(autojump_clock):
    """ADR-03: the requester waits longer than for other answers."""
    user = User(takes=60.0)
    async with runtime_of(user) as runtime:
        answer = await show(runtime)
        assert (answer.code, answer.body["value"], user.seen) == (200, "code", [PAGE])
        assert trio.current_time() >= 60


async def test_the_user_chooses_an_identity(autojump_clock):
    user = User()
    async with runtime_of(user) as runtime:
        answer = await ask(runtime, MessageType.CREATE, value=CHOICE)
        assert (answer.code, answer.body["value"]) == (200, {"identity": "alice"})
        assert user.seen == [(CHOICE["identities"], CHOICE["idps"])]


async def test_no_hyperty_shows_a_login_page(autojump_clock):
    """SEC-38: it could show one of its own, and get the code that a user has for a provider."""
    user = User()
    options = DomainOptions(more={"alice": {"identity_gui": user}})
    async with open_domain("alice", options=options) as domain:
        hyperty, to = domain["alice"].hyperty, f"{domain['alice'].runtime.url}/identity-gui"
        popup = {"method": "openPopup", "params": {"urlreq": PAGE}}
        assert (await hyperty.ask(to, MessageType.EXECUTE, popup)).code == 403
        assert (await hyperty.ask(to, MessageType.CREATE, {"value": CHOICE})).code == 403
        assert (await hyperty.ask(to, MessageType.READ, {})).code == 200
        assert user.seen == []


async def test_something_else_is_refused(autojump_clock):
    async with runtime_of(User()) as runtime:
        assert (await ask(runtime, method="format")).code == 400
        assert (await ask(runtime, MessageType.CREATE, value={})).code == 400
        assert (await ask(runtime, MessageType.DELETE)).code == 400


@pytest.mark.parametrize(("answer", "code"), [(None, 403), (OSError("no display"), 500)])
async def test_no_answer_is_a_refusal(answer, code, autojump_clock):
    async with runtime_of(User(answer=answer)) as runtime:
        assert (await show(runtime)).code == code
        assert (await ask(runtime, MessageType.READ)).code == 200


async def test_the_user_is_asked_for_one_thing_at_a_time(autojump_clock):
    user, codes = User(takes=5.0), []

    async def one(runtime):
        codes.append((await show(runtime)).code)

    async with runtime_of(user) as runtime:
        async with trio.open_nursery() as nursery:
            for _ in range(GUI_WAITING + 3):
                nursery.start_soon(one, runtime)
            await trio.sleep(1)
            assert user.at_once == 1
        assert codes.count(200) == GUI_WAITING + 1
        assert codes.count(503) == 2
        assert (await show(runtime)).code == 200
