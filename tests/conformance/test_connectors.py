"""What stands behind a node: back ends that are not there, and nodes of other domains."""

import pytest
import trio

from tests.support.node.node_process import DOMAIN, EVERY_FORM, UNHURRIED, node_process
from tests.support.wire.wire_forms import WIRE_FORMS
from tests.support.wire.wire_guests import Joining
from tests.support.wire.wire_socket import Left
from tests.support.wire.wire_speakers import FORMS
from tests.support.wire.wire_sync import an_object, change, observe, values

OTHER = "b.ex"


class Abroad(Joining):
    """Peers of the other domain, at its own node."""

    def named(self, form=None, name=None):
        peer = super().named(form, name)
        return FORMS[peer.form](self.node.urls, OTHER, peer.name)


@pytest.fixture(scope="module")
def far(tmp_path_factory):
    """The node of another domain."""
    log = tmp_path_factory.mktemp("far") / "log"
    with node_process(log, "--domain", OTHER, *EVERY_FORM, *UNHURRIED) as node:
        yield node
        assert node.stop() == 0


@pytest.fixture(scope="module")
def near(tmp_path_factory, far):
    """A node that knows the way there, and a way to a place where nobody is."""
    log = tmp_path_factory.mktemp("near") / "log"
    ways = ("--foreign", f"{OTHER}={far.urls['url']}",
            "--foreign", "dead.ex=ws://127.0.0.1:9/link")  # fmt: skip
    with node_process(log, "--domain", DOMAIN, *EVERY_FORM, *ways, *UNHURRIED) as node:
        yield node
        assert node.stop() == 0


@pytest.fixture
def node(near):
    return near


@pytest.fixture
async def abroad(far):
    joining = Abroad(far, "link")
    async with joining.stack:
        yield joining


@pytest.mark.parametrize("far_form", WIRE_FORMS)
async def test_a_message_to_another_domain_goes_by_its_node(join, abroad, far_form):
    """MN-19, PFY-03, PFY-06, PFY-07, I-M10, SC-15: there, and its answer back."""
    alice, bob = await join(), await abroad(far_form)
    (ha,), (hb,) = await alice.allocate(), await bob.allocate()
    assert hb.startswith(f"hyperty://{OTHER}/")

    sent = await alice.say("create", ha, hb, value="over the border")
    request = await bob.hear()
    await bob.answer(request, value="and back")
    answer = await alice.answer_to(sent)

    assert (request["from"], request["body"]["value"]) == (ha, "over the border")
    assert (answer["body"]["code"], answer["body"]["value"]) == (200, "and back")


async def test_a_requested_peer_of_another_domain_may_send_a_request_back(join, abroad):
    """MN-19, MN-18: the session between the nodes carries both ways."""
    alice, bob = await join(), await abroad()
    (ha,), (hb,) = await alice.allocate(), await bob.allocate()
    sent = await alice.say("create", ha, hb, value=1)
    await bob.answer(await bob.hear())
    await alice.answer_to(sent)

    back = await bob.say("create", hb, ha, value=2)
    request = await alice.hear()
    await alice.answer(request)

    assert (request["from"], request["body"]["value"]) == (hb, 2)
    assert (await bob.answer_to(back))["body"]["code"] == 200


async def test_messages_between_domains_keep_their_order(join, abroad):
    """MN-19, I-L3."""
    alice, bob = await join(), await abroad()
    (hb,) = await bob.allocate()
    for number in range(50):
        await alice.say("create", alice.part("ua"), hb, value=number)

    assert [(await bob.hear())["body"]["value"] for _ in range(50)] == list(range(50))


async def test_an_unknown_address_of_the_other_domain_is_refused_here(join):
    """MN-19, MN-27: 404 of the other node comes back."""
    peer = await join()
    assert await peer.code("read", peer.part("ua"), f"hyperty://{OTHER}/nobody") == 404


async def test_a_domain_whose_node_cannot_be_reached_gets_503(join):
    """MN-19, MN-20, CON-07: each who waits, and the node goes on."""
    peer = await join()
    assert await peer.code("read", peer.part("ua"), "hyperty://dead.ex/x") == 503
    assert await peer.allocate()


async def test_a_local_runtime_cannot_send_as_an_address_of_the_other_domain(join, abroad):
    """MN-13, MN-19, I-B10, S14."""
    alice, bob = await join(), await abroad()
    (hb,) = await bob.allocate()

    for from_ in (hb, bob.inside, f"domain://msg-node.{OTHER}/sm"):
        await alice.say("create", alice.spelt(from_), hb, value="forged")

    assert await bob.rest() == []


@pytest.mark.parametrize("far_form", WIRE_FORMS)
async def test_an_object_of_another_domain_is_observed_through_both_nodes(join, abroad, far_form):
    """MN-19, C-49, M-37: the own node subscribes onward."""
    bob, alice = await join(), await abroad(far_form)
    thing = await an_object(alice)
    await observe(alice, thing, bob)

    for number in (1, 2):
        await change(alice, thing, number)

    assert values([await bob.hear(), await bob.hear()]) == [1, 2]


@pytest.mark.parametrize("address", ["global://registry", f"domain://qos.{DOMAIN}"])
@pytest.mark.parametrize("type_", ["read", "create", "delete"])
async def test_a_connector_that_is_not_there_is_said_to_be_so(join, address, type_):
    """CON-03, CON-04, CON-07, MN-09, ADR-04: 404, at once."""
    peer = await join()
    answer = await peer.ask(type_, peer.part("ua"), address, resource="x", value={})

    assert answer["body"]["code"] == 404
    assert answer["from"] == address


async def code_after_a_kill(peer, to):
    """Ask again if nothing comes: a request may reach a socket whose other end has just died."""
    with trio.move_on_after(5):
        return await peer.code("read", peer.part("ua"), to)
    return await peer.code("read", peer.part("ua"), to)


async def test_a_dead_stub_removes_only_its_own_route(tmp_path, guests):
    """MN-20, SC-15: the other node ends; who asks for it hears 503, others hear nothing of it."""
    options = ("--domain", "c.ex", *EVERY_FORM, *UNHURRIED)
    with node_process(tmp_path / "third", *options) as third:
        ways = ("--foreign", f"c.ex={third.urls['url']}")
        with node_process(
            tmp_path / "log", "--domain", DOMAIN, *EVERY_FORM, *ways, *UNHURRIED
        ) as node:
            here = Joining(node, "plain")
            async with here.stack:
                alice, bob = await here(), await here()
                assert await alice.code("read", alice.part("ua"), "hyperty://c.ex/x") == 404
                third.process.kill()
                third.process.wait()
                codes = {await code_after_a_kill(alice, "hyperty://c.ex/x")}
                await alice.say("create", alice.part("ua"), bob.part("ua"))
                assert (await bob.hear())["type"] == "create"
            assert codes <= {503, 504, 404}
            assert node.stop() == 0
    assert Left is not None
