"""Hyperties that report and observe data objects, through their own sync managers."""

from contextlib import asynccontextmanager

import attrs
import trio

from specs.message import MessageType
from specs.trace import Kind as Record
from specs.trace import Op
from tests.support.runtime.domain import DomainOptions, Echo, open_domain

SCHEMA = "hyperty-catalogue://catalogue.a.example/.well-known/dataschema/Communication"
SILENT = DomainOptions(kinds=())


@attrs.frozen
class Party:
    """A hyperty and what it asks of its own sync manager."""

    member: object
    domain: object = None

    @property
    def url(self):
        return self.member.address

    @property
    def manager(self):
        return f"{self.member.runtime.url}/sm"

    async def ask(self, type_, to=None, **body):
        return await self.member.hyperty.ask(to or self.manager, type_, body)

    async def create(self, **data):
        value = {"reporter": self.url, "runtime": self.member.runtime.url, "data": data}
        answer = await self.ask(MessageType.CREATE, schema=SCHEMA, value=value)
        return answer.body["resource"]

    async def invite(self, url, other):
        return await self.ask(
            MessageType.CREATE, resource=url, schema=SCHEMA, authorise=[other.url], value={}
        )

    async def observe(self, url):
        return await self.ask(MessageType.SUBSCRIBE, resource=url)

    async def change(self, url, attribute, value):
        return await self.ask(MessageType.UPDATE, resource=url, attribute=attribute, value=value)


@asynccontextmanager
async def parties(*more):
    names = "alice", "bob", *more
    async with open_domain(*names, options=SILENT) as domain:
        for member in domain.members.values():
            keep_events(member.hyperty)
        yield tuple(Party(domain[name], domain) for name in names)


def keep_events(hyperty):
    """Let a hyperty remember the events it hears."""
    hyperty.events = []

    async def keep(message):
        hyperty.events.append(message)

    hyperty.on_event = keep


async def neighbour(party, name):
    """Let one more hyperty live in a party's runtime."""
    hyperty = Echo()
    keep_events(hyperty)
    address = await party.member.runtime.deploy(name, lambda: hyperty)
    return Party(attrs.evolve(party.member, hyperty=hyperty, address=address), party.domain)


def heard(party):
    """The versions of the changes a party heard."""
    events = party.member.hyperty.events
    return [event.body["version"] for event in events if event.type is MessageType.UPDATE]


def slow(party):
    """Let a party answer what it is asked only when ordered to."""
    decide = trio.Event()

    async def on_request(_message):
        await decide.wait()

    party.member.hyperty.on_request = on_request
    return decide


def moves(party, machine):
    """The steps a party's runtime traced of a machine, in order: by what, to where."""
    return [
        (fact.cause, fact.new)
        for fact in party.member.tracer.facts
        if fact.k is Record.STATE and fact.op is Op.STEP and fact.machine == machine
    ]
