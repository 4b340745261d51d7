"""Only the parts of a runtime command its stubs: nobody else ends sessions and links (P2P-29)."""

import pytest

from actors.hyperties import Caller
from specs.addresses.address import domain_of
from specs.message import MessageType
from specs.trace import Op
from tests.support.runtime.domain import DomainOptions, go_live, open_domain

METHODS = ("connect", "disconnect")
NODE = DomainOptions(kinds=())


@pytest.mark.parametrize("kind", [MessageType.EXECUTE, MessageType.READ, MessageType.SUBSCRIBE])
@pytest.mark.parametrize("who", ["another runtime", "a peer by its link", "an own hyperty"])
async def test_a_command_of_anybody_else_is_refused(who, kind, autojump_clock):
    """SEC-36, STB-04: a disconnect would close the session of the runtime at its node."""
    by_link = who == "a peer by its link"
    async with open_domain("alice", "bob", options=DomainOptions() if by_link else NODE) as domain:
        alice, bob = domain["alice"], domain["bob"]
        if by_link:
            await go_live(domain)
        sender = bob if who == "an own hyperty" else alice
        stubs = [f"{bob.runtime.url}/protostub/1"]
        if kind is not MessageType.READ:
            # Stubs of links take other requests of other runtimes: invitations.
            stubs += [link.stub for link in await bob.runtime.links()]
        steps = len(bob.facts(Op.STEP))
        for stub in stubs:
            for method in METHODS:
                params = [alice.runtime.url]
                body = {"method": method, "params": params, "resources": params}
                answer = await sender.hyperty.ask(stub, kind, body)
                assert answer.code == 403
        assert len(bob.facts(Op.STEP)) == steps
        assert (await alice.ask(bob, 1)).code == 200


async def test_no_hyperty_asks_the_node_for_what_concerns_its_whole_runtime(autojump_clock):
    """SEC-36: for the node all of a session is one; a search is free to all."""
    async with open_domain("alice", "bob", options=NODE) as domain:
        alice, bob = domain["alice"], domain["bob"]
        url, evil = bob.address, Caller()
        await bob.runtime.deploy("evil", lambda: evil)
        domain_name = domain_of(url)
        node, registry = f"domain://msg-node.{domain_name}", f"domain://registry.{domain_name}"
        asked = (
            (f"{node}/session", MessageType.EXECUTE, {"method": "close", "params": {}}),
            (f"{node}/address-allocation", MessageType.DELETE, {"childrenResources": [url]}),
            (f"{node}/sm", MessageType.UNSUBSCRIBE, {"resources": [f"{url}/changes"]}),
            (registry, MessageType.UPDATE, {"resource": url, "value": {"status": "dead"}}),
            (registry, MessageType.READ, {"resource": url}),
        )
        codes = [(await evil.ask(to, kind, body)).code for to, kind, body in asked]
        assert codes == [403, 403, 403, 403, 200]
        assert (await alice.ask(bob, 1)).code == 200
