"""A login token of the user's identity provider, by the stub of its catalogue (PFY-12, CAT-06)."""

from contextlib import asynccontextmanager

import attrs
import pytest
import trio

import actors
from actors.catalogue.archive import pack
from actors.catalogue.client import CatalogueAccess
from actors.kit.trace import NULL_TRACER
from actors.node.app import open_node
from actors.node.config import NodeConfig
from actors.runtime.app import open_runtime
from actors.runtime.config import RuntimeConfig
from fsm.catalogue.descriptor import Reach
from specs.addresses.address import CatalogueType, Entry
from specs.message import MessageType
from tests.actors.runtime.stubs.client_server.test_http_json import HTTP_STUB
from tests.support.catalogues import Publishing, Wall, sources
from tests.support.node.http_server import Said, open_http_server
from tests.support.node.issuer import ALICE, Issuer, login_by
from tests.support.runtime.domain import Echo
from transports.system import open_system_network

IDP = "idp.ex"
WORD = "correct horse"

PACKAGE = (
    HTTP_STUB.replace('message.body.get("value") or ', "")
    + """

def request_of(message):
    body = json.dumps(message.body["params"]).encode()
    head = f"POST /{message.body['method']} HTTP/1.0\\r\\nHost: idp.ex\\r\\n"
    kind = f"Content-Type: application/json\\r\\nContent-Length: {len(body)}\\r\\n\\r\\n"
    return (head + kind).encode() + body
"""
)


@attrs.define
class Provider:
    """An identity provider behind HTTP, with one user."""

    issuer: Issuer
    asked: list = attrs.field(factory=list)

    async def __call__(self, call):
        self.asked.append((call.segments, call.body))
        params = call.body
        if call.segments == ("validateAssertion",):
            return Said(200, {"identity": ALICE, "contents": params["assertion"]})
        if params.get("word") is None and params["usernameHint"] == ALICE:
            return Said(200, {"loginUrl": "https://idp.ex/login"})
        words = {params.get("word"), params["usernameHint"]}
        if call.segments != ("generateAssertion",) or WORD not in words:
            return Said(401, {"message": "who are you?"})
        self.issuer.now = trio.current_time()
        claims = {"cnf": {"jkt": params["key"]}, "runtime": params["origin"]}
        return Said(200, {"assertion": self.issuer.token(aud=params["contents"], **claims)})


@attrs.frozen
class World:
    provider: Provider
    runtime: object


def by_profile(publishing, server, _folder):
    publishing.describes(
        CatalogueType.IDP_PROXY, "default", profile={"stub": "http-json", "endpoint": server.url}
    )


def by_code(publishing, server, folder):
    entry = Entry(IDP, CatalogueType.IDP_PROXY, "default")
    offering = PublishingIdp(**attrs.asdict(publishing, recurse=False))
    archive = pack(sources(folder / "code", {"stub.py": PACKAGE}))
    place = f"stream://{server.url.removeprefix('http://')}"
    assert offering.entry == entry
    offering.serves({**offering.code(archive), "endpoints": [place]})


@attrs.define
class PublishingIdp(Publishing):
    """Publishes at the place of a stub to an identity provider."""

    @property
    def entry(self):
        return Entry(self.domain, CatalogueType.IDP_PROXY, "default")


@asynccontextmanager
async def open_world(publish, folder, word=WORD, gui=None):
    issuer, publishing = Issuer(), Publishing(domain=IDP)
    provider = Provider(issuer)
    async with (
        open_http_server(provider) as server,
        open_system_network() as network,
        open_node(NodeConfig(domain="a.ex", login=login_by(issuer)), network, NULL_TRACER) as node,
    ):
        publish(publishing, server, folder)
        access = CatalogueAccess(
            publishing.places,
            publishing.trust(Reach.ANYWHERE, publishers=("acme",)),
            clock_offset=Wall(publishing).offset,
        )
        config = RuntimeConfig(
            domain="a.ex",
            name="ra",
            node=node.url,
            catalogues=access,
            credentials=actors.IdpCredentials(ALICE, {"word": word} if word else {}),
            identity_gui=gui,
        )
        async with open_runtime(config, network, NULL_TRACER) as runtime:
            yield World(provider, runtime)


@pytest.mark.parametrize("publish", [by_profile, by_code])
async def test_a_login_token_comes_by_the_stub_of_the_providers_catalogue(publish, tmp_path):
    async with open_world(publish, tmp_path) as world:
        await world.runtime.enter()
        assert await world.runtime.deploy("echo", Echo)
        ((segments, params),) = world.provider.asked
        assert segments == ("generateAssertion",)
        assert (params["contents"], params["origin"]) == ("a.ex", world.runtime.url)
        assert params["usernameHint"] == ALICE
        answer = await world.runtime.order(
            "idm",
            MessageType.EXECUTE,
            f"domain-idp://{IDP}",
            {"method": "validateAssertion", "params": {"assertion": "abc"}},
        )
        assert answer.body["value"] == {"identity": ALICE, "contents": "abc"}
