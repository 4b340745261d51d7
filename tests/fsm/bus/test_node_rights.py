"""Who may speak as what, and hear what (S1, S3, T3, T4, I-A3, I-B10, C-43, MN-13)."""

import pytest

from fsm.bus.node_routing import Admitted, NodeRouting, Refusal
from fsm.registry.node_rights import Hearing, NodeRights, Observation, Ownership, RightsRules
from fsm.session.node_session_io import PeerForm
from specs.addresses.address import canonical, domain_of, is_backend, is_below, scheme_of
from specs.dialects.normalise import normalise
from specs.errors import BadMessageError
from specs.message import MessageType
from tests.support.lone_paths import lone_addresses, lone_paths
from tests.support.runtime.forgery import (
    BOUND,
    DOMAIN,
    GONE,
    HA,
    HB,
    HO,
    MN,
    OA,
    OB,
    OLD,
    RA,
    RB,
    VICTIMS,
    variants,
)

FORMS = {RA: PeerForm.OWN, RB: PeerForm.OWN, OLD: PeerForm.UPSTREAM}


class Node:
    """The tables of a node with three sessions, and what they own."""

    def __init__(self, observation=Observation.OWNER):
        self.allocation, self.subscriptions = lone_addresses(), lone_paths()
        for owner, addresses in ((RA, (HA, OA)), (RB, (HB, OB)), (OLD, (HO,))):
            self.allocation.allocate(owner, addresses)
        self.allocation.bind(RB, BOUND)
        self.rights = NodeRights(DOMAIN, self.allocation, FORMS.get, RightsRules(observation))
        self.routing = NodeRouting(
            DOMAIN, self.rights, self.subscriptions, {MN, f"{MN}/sm", f"domain://registry.{DOMAIN}"}
        )


NODE = Node()

# ---- S1: forged sources


def raw(text, where):
    body = {"value": 1, **({"source": text} if where == "source" else {})}
    from_ = f"{RA}/ua" if where == "source" else text
    return {"id": 1, "type": "create", "from": from_, "to": HB, "body": body}


def owned(address):
    """Whose word may be taken for it, distinguished from the code that decides."""
    return any(is_below(address, mine) for mine in (RA, HA, OA))


def foreign_and_free(address):
    taken = is_below(address, BOUND) or is_backend(address)
    at_home = domain_of(address) == DOMAIN or scheme_of(address) == "hyperty-runtime"
    return not taken and not at_home


@pytest.mark.parametrize("where", ["from", "source"])
@pytest.mark.parametrize("seed", range(5))
def test_s1_no_variant_of_a_forged_source_passes_for_another_session(seed, where):
    """10^5 in all: refused as malformed or foreign, or canonicalised to something owned."""
    refused = 0
    for text in variants(seed, 10_000):
        try:
            message = normalise(raw(text, where))
        except BadMessageError:
            refused += 1
            continue
        reported = message.from_ if where == "from" else message.body["source"]
        assert canonical(reported) == reported
        admission = NODE.routing.admit(message, RA)
        if isinstance(admission, Admitted):
            assert owned(reported) or foreign_and_free(reported), text
        else:
            refused += 1
    assert refused > 5_000


@pytest.mark.parametrize("victim", VICTIMS)
def test_s1_the_address_itself_is_refused(victim):
    admission = NODE.routing.admit(normalise(raw(victim, "from")), RA)

    assert isinstance(admission, Refusal)
    assert admission.code == 401


@pytest.mark.parametrize("type_", [one for one in MessageType if one is not MessageType.FORWARD])
def test_s1_in_any_spelling(type_):
    body = {"code": 200} if type_ is MessageType.RESPONSE else {"resources": [f"{RA}/x"]}
    for to in (HB, f"{MN}/sm", RB, OA):
        message = normalise({"id": 1, "type": type_, "from": HB, "to": to, "body": body})
        assert isinstance(NODE.routing.admit(message, RA), Refusal)


def test_a_path_for_another_runtime_is_forbidden():
    """MN-14: 403, where any other foreign source gets 401."""
    path = {"id": 1, "type": "subscribe", "from": f"{RA}/sm", "to": f"{MN}/sm"}
    for to, code in ((f"{MN}/sm", 403), (f"{OB}/subscription", 401)):
        message = normalise({**path, "to": to, "body": {"resources": [OA], "source": RB}})
        assert NODE.routing.admit(message, RA).code == code
    forged = normalise({**path, "from": f"{RB}/sm", "body": {"resources": [OA], "source": RB}})
    assert NODE.routing.admit(forged, RA).code == 401


# ---- S3: other people's addresses


def test_s3_the_status_of_a_runtime_is_heard_only_if_that_publishes_it():
    """REG-12."""
    assert NODE.rights.hearing(f"{RB}/status", RA) is Hearing.IF_PUBLISHED
    assert NODE.rights.hearing(f"{RA}/status", RA) is Hearing.AT_ONCE


@pytest.mark.parametrize(
    "resource",
    [
        *VICTIMS,
        f"{RB}/status/x", f"{RB}/registry/changes", f"{RB}/registry/registration",
        f"{RB}/p2phandler/1/status", f"{RB}/children/chat", f"{HB}/status", f"{OB}/status",
        f"{OB}/x/changes", f"{OB}/x/children/chat", f"{OB}/changesx", f"{OB}/xchanges",
        f"{OB}/children", "comm://a.ex/changes", "comm://a.ex/registration", f"{MN}/sm/changes",
        f"{MN}/changes", "global://registry/changes", "domain://registry.a.ex/registration",
    ],
)  # fmt: skip
def test_s3_messages_for_another_session_cannot_be_subscribed_to(resource):
    part = resource.removeprefix(OB)
    is_observed = part in {"/changes", "/children/chat"}

    hearing = NODE.rights.hearing(resource, RA)

    assert hearing is (Hearing.BY_CONSENT if is_observed else Hearing.NEVER)


@pytest.mark.parametrize("seed", range(3))
def test_s3_no_variant_of_it_is_heard_either(seed):
    """What can be read at all is one's own, nobody's to hear, or waits for its owner."""
    for text in variants(seed + 100, 10_000):
        path = {"id": 1, "type": "subscribe", "from": f"{RA}/sm", "to": f"{MN}/sm"}
        try:
            message = normalise({**path, "body": {"resources": [text]}})
        except BadMessageError:
            continue
        (resource,) = message.body["resources"]
        if NODE.rights.hearing(resource, RA) is Hearing.AT_ONCE:
            assert owned(resource), text


@pytest.mark.parametrize("part", ["changes", "observers", "children/chat", "children/a/b"])
@pytest.mark.parametrize("observed", [OB, HB, BOUND, "comm://a.ex/nobody", "comm://b.ex/nobody"])
def test_s3_what_is_made_to_be_observed_waits_for_its_owner(observed, part):
    assert NODE.rights.hearing(f"{observed}/{part}", RA) is Hearing.BY_CONSENT


@pytest.mark.parametrize("part", ["", "/x", "/changes", "/status", "/subscription", "/children/x"])
@pytest.mark.parametrize("own", [RA, f"{RA}/sm", HA, OA])
def test_ones_own_is_heard_at_once(own, part):
    assert NODE.rights.hearing(f"{own}{part}", RA) is Hearing.AT_ONCE


@pytest.mark.parametrize("url", [HB, OB, "hyperty://b.ex/hz"])
def test_registrations_are_public(url):
    assert NODE.rights.hearing(f"{url}/registration", RA) is Hearing.AT_ONCE


@pytest.mark.parametrize("part", ["changes", "children/chat"])
def test_an_owner_without_consents_is_not_asked_for_one(part):
    """An object of an upstream peer is open; so is every one, if nobody is to be asked."""
    assert NODE.rights.hearing(f"{HO}/{part}", RA) is Hearing.AT_ONCE
    assert Node(Observation.OPEN).rights.hearing(f"{OB}/{part}", RA) is Hearing.AT_ONCE
    assert Node(Observation.OPEN).rights.hearing(OB, RA) is Hearing.NEVER


# ---- C-43: what upstream's peers call themselves


@pytest.mark.parametrize(
    ("address", "wanted"),
    [
        ("hyperty-runtime://a.ex/registry/1", Ownership.BINDABLE),
        ("hyperty-runtime://a.ex/p2phandler/3", Ownership.BINDABLE),
        (f"{GONE}/registry/allocation", Ownership.BINDABLE),
        (f"{GONE}/a/b/c", Ownership.BINDABLE),
        (GONE, Ownership.FOREIGN),
        ("hyperty-runtime://a.ex", Ownership.FOREIGN),
        (f"{RA}/sm", Ownership.FOREIGN),
        (f"{RB}/p2phandler/3", Ownership.FOREIGN),
        ("hyperty-runtime://b.ex/registry/1", Ownership.FOREIGN),
        ("hyperty://a.ex/nobody", Ownership.FOREIGN),
        ("comm://a.ex/nobody/part", Ownership.FOREIGN),
        ("domain://msg-node.a.ex/x/y", Ownership.FOREIGN),
        ("user://a.ex/old/x", Ownership.FOREIGN),
        (f"{OLD}/registry/1", Ownership.OWN),
    ],
)
def test_a_component_of_a_runtime_without_session_may_be_used_first_by_an_upstream_peer(
    address, wanted
):
    assert NODE.rights.ownership(address, OLD) is wanted
    if wanted is Ownership.BINDABLE:
        assert NODE.rights.bound_as(address) == address
        assert NODE.rights.ownership(address, RA) is Ownership.FOREIGN


def test_an_address_of_one_session_is_forbidden_to_others():
    node, address = Node(), "hyperty-runtime://a.ex/registry/1"
    node.allocation.bind(OLD, address)

    assert node.rights.ownership(f"{address}/x", OLD) is Ownership.OWN
    for other in (RA, RB):
        assert node.rights.ownership(address, other) is Ownership.FOREIGN
    assert node.rights.ownership("hyperty-runtime://a.ex/registry/2", OLD) is Ownership.BINDABLE
    assert node.rights.owner_of(address) == OLD


def test_a_held_path_gives_no_right_to_answer():
    """C-81: who is delivered a request to many may answer it; who is not may not."""
    node = Node()
    node.subscriptions.subscribe(RA, (f"{OB}/changes",), {f"{OB}/changes"})
    answer = {"id": 1, "type": "response", "from": f"{OB}/changes", "to": f"{OB}/subscription"}

    assert isinstance(node.routing.admit(normalise({**answer, "body": {"code": 200}}), RA), Refusal)


def test_the_node_of_another_domain_claims_nothing_and_needs_consent():
    """S14: its session stands for all who observe there."""
    other = "domain://msg-node.b.ex"

    assert NODE.rights.may_claim("comm://a.ex/nobody", RA)
    assert not NODE.rights.may_claim("comm://a.ex/nobody", other)
    assert NODE.rights.hearing(f"{OB}/changes", other) is Hearing.BY_CONSENT
    assert NODE.rights.hearing(OB, other) is Hearing.NEVER
