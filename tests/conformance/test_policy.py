"""A node that judges by a policy file: who is denied hears so, and nothing else happens."""

import shutil
import signal
from pathlib import Path

import pytest
import trio

from tests.support.node.node_process import DOMAIN, EVERY_FORM, UNHURRIED, node_process
from tests.support.wire.wire_forms import needs
from tests.support.wire.wire_guests import Joining
from tests.support.wire.wire_socket import Left

HOUSE = Path(__file__).with_name("house.toml")
LATER = """
[[policies]]
id = "later"
target = { msgTo = { like = "*/later" } }

[[policies.rules]]
id = "no"
effect = "deny"
"""


@pytest.fixture(scope="module")
def policies(tmp_path_factory):
    """The policy file of the node, to be changed."""
    return Path(shutil.copy(HOUSE, tmp_path_factory.mktemp("policy") / "house.toml"))


@pytest.fixture(scope="module")
def strict_node(tmp_path_factory, policies):
    log = tmp_path_factory.mktemp("strict") / "log"
    options = ("--domain", DOMAIN, *EVERY_FORM, "--policy", str(policies), *UNHURRIED)
    with node_process(log, *options) as node:
        yield node
        assert node.stop() == 0
        assert [line for line in node.complaints if "policy" not in line] == []


@pytest.fixture
def node(strict_node):
    return strict_node


@pytest.mark.parametrize(
    ("where", "type_", "id_", "is_denied"),
    [
        ("by-type", "read", 1, True),
        ("by-type", "create", 1, False),
        ("by-list", "delete", 1, True),
        ("by-list", "create", 1, False),
        ("by-number", "create", 150, True),
        ("by-number", "create", 99, False),
        ("by-either", "read", 1, True),
        ("by-either", "create", 501, True),
        ("by-either", "create", 1, False),
        ("by-not", "read", 1, True),
        ("by-not", "create", 1, False),
        ("by-domain", "create", 1, False),
        ("by-mismatch", "create", 1, True),
        ("deny-wins", "read", 1, True),
        ("deny-wins", "create", 1, False),
        ("permit-wins", "read", 1, False),
        ("permit-wins", "create", 1, True),
        ("first-wins", "read", 1, False),
        ("first-wins", "create", 1, True),
        ("nothing-is-said-of-it", "create", 1, False),
    ],
)
async def test_policies_decide_before_anything_happens(join, where, type_, id_, is_denied):
    """MN-03, POL-01, POL-02, POL-04, POL-06..POL-12, POL-14, POL-15, POL-17, I-B9, I-K4: 403."""
    alice, bob = await join(), await join()
    shown = alice.shown_id(id_)
    body = {"value": 1}
    await alice.say_as(shown, type_, alice.part("ua"), alice.spelt(f"{bob.inside}/{where}"), body)

    if is_denied:
        answer = await alice.answer_to(shown)
        assert answer["body"]["code"] == 403
        assert await bob.rest() == []
    else:
        assert (await bob.hear())["to"] == bob.part(where)


async def test_a_denied_allocation_allocates_nothing(join):
    """POL-01, C-62, S8, U-36: parts of the node are behind the policy too."""
    peer = await join()
    to = f"{peer.node}/address-allocation"
    body = {"scheme": "hyperty", "value": {"number": 1}}

    assert await peer.code("create", peer.part("poor"), to, **body) == 403
    assert await peer.code("create", peer.part("rich"), to, **body) == 200


async def test_a_runtime_that_is_banned_gets_no_session(join):
    """POL-18: who may open a session is a matter of policy too."""
    banned = await join.outsider(name=f"banned-{join.named().name}")

    if banned.form == "plain":
        assert (await banned.hear())["body"]["code"] in {401, 403}
        with pytest.raises(Left):
            await banned.farewell()
    else:
        assert (await banned.open())["body"]["code"] in {401, 403}
        assert await banned.code("read", banned.part("ua"), banned.part("x")) == 401


@pytest.mark.parametrize("type_", ["read", "create", "update", "delete", "execute"])
async def test_policies_are_managed_by_administrators_only(join, type_):
    """POL-05: 403 for who did not log in as one."""
    peer = await join()
    body = {"method": "reload", "resource": "house", "value": {"id": "mine"}}
    assert await peer.code(type_, peer.part("ua"), f"{peer.node}/policy", **body) == 403


@needs("a token")
async def test_policies_are_read_again_and_a_bad_file_changes_nothing(join, policies):
    """POL-03, S9: at SIGHUP, whole or not at all."""
    alice, bob = await join(), await join()
    to = alice.spelt(f"{bob.inside}/later")
    sound = policies.read_text()
    try:
        await alice.say("create", alice.part("ua"), to)
        await bob.hear()
        policies.write_text(sound + LATER)
        await reloaded(join.node, alice, to, denied=True)
        policies.write_text(sound + "[[policies]\n")
        join.node.process.send_signal(signal.SIGHUP)
        assert await alice.code("create", alice.part("ua"), to) == 403
    finally:
        policies.write_text(sound)
        await reloaded(join.node, alice, to, denied=False)


async def reloaded(node, alice, to, *, denied):
    """Have the files read again; ask until it shows, which is soon."""
    node.process.send_signal(signal.SIGHUP)
    with trio.fail_after(30):
        while True:
            sent = await alice.say("create", alice.part("ua"), to)
            with trio.move_on_after(1) as waiting:
                answer = await alice.answer_to(sent)
            is_denied = not waiting.cancelled_caught and answer["body"]["code"] == 403
            if is_denied == denied:
                return


async def test_a_foreign_hyperty_is_reported_by_its_domain(guests):
    """POL-11: srcSPDomain."""
    bob, foreign = await guests(), await guests.connect(guests.abroad("b.ex", "plain"))
    sent = await foreign.say("create", f"hyperty://b.ex/{foreign.name}", f"{bob.inside}/by-domain")

    assert (await foreign.answer_to(sent))["body"]["code"] == 403
    assert await bob.rest() == []


def test_a_policy_file_that_is_none_starts_no_node(tmp_path):
    """POL-03: fail closed."""
    bad = tmp_path / "bad.toml"
    bad.write_text("id = ")
    starting = node_process(tmp_path / "log", "--domain", DOMAIN, "--policy", str(bad))
    with pytest.raises(AssertionError, match="before it was ready"):
        starting.__enter__()


async def test_a_node_without_policy_files_may_deny_what_no_policy_permits(tmp_path):
    """POL-15, POL-18: not even a session is opened there."""
    options = ("--domain", DOMAIN, *EVERY_FORM, "--policy-default", "deny", *UNHURRIED)
    with node_process(tmp_path / "log", *options) as node:
        joining = Joining(node, "link")
        async with joining.stack:
            peer = await joining.outsider()
            assert (await peer.open())["body"]["code"] == 403
        assert node.stop() == 0
