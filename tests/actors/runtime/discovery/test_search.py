"""A runtime searches a domain registry, and reads no further page than it needs (M-26..M-28)."""

import pytest

from actors.runtime.discovery.search import RecordSearch, RegistryReader
from specs.addresses.address import domain_registry
from specs.bodies.registry import ReadRecord
from specs.errors import BadMessageError
from specs.message import Message, MessageType
from tests.support.runtime.domain import DOMAIN, Echo, open_domain

USER = "user://idp.ex/bob"
DR = domain_registry(DOMAIN)


async def found(search):
    return [record.url async for record in search]


async def test_all_pages_are_read_newest_first(autojump_clock):
    async with open_domain("alice", "bob") as domain:
        alice, bob = domain["alice"].hyperty, domain["bob"].runtime
        urls = [await bob.deploy("many", Echo) for _ in range(5)]
        assert await found(alice.discover(name="many", limit=2)) == urls[::-1]
        assert [one.url for one in await alice.discover(name="many")] == urls[::-1]
        assert await found(alice.discover(name="none")) == []


async def test_a_wrong_limit_is_refused_at_once(autojump_clock):
    async with open_domain("alice") as domain:
        with pytest.raises(BadMessageError, match="limit must be >= 1"):
            domain["alice"].hyperty.discover(user=USER, limit=0)


class Registry:
    """Answers as it is told, and keeps what it was asked."""

    def __init__(self, *answers):
        self.answers, self.asked = list(answers), []

    def reader(self):
        return RegistryReader(DOMAIN, self.read)

    async def read(self, body):
        self.asked.append(body)
        code, body = self.answers.pop(0)
        return Message(1, MessageType.RESPONSE, DR, "x://a/b", {"code": code, **body})


def page(*urls, code=200, **more):
    return code, {"value": [{"url": url} for url in urls], **more}


H = [f"hyperty://{DOMAIN}/h{n}" for n in range(5)]


async def test_records_that_are_away_are_returned_and_malformed_ones_left_out():
    bad = [{"url": "nonsense"}, 7, {"url": H[0], "resources": 7}, {"url": "hyperty://b.ex/h"}]
    registry = Registry((408, {"value": [*bad, {"url": H[1], "status": "disconnected"}]}))
    (record,) = [one async for one in RecordSearch(registry.reader(), ReadRecord(USER))]
    assert (record.url, record.status) == (H[1], "disconnected")


async def test_a_registry_that_never_ends_with_empty_pages_is_left():
    registry = Registry(page(H[0], next="c"), page(next="c"))
    assert await found(RecordSearch(registry.reader(), ReadRecord(USER))) == H[:1]
