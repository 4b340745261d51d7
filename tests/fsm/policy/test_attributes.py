"""What conditions can ask about a message: POL-11, POL-04, POL-17, POL-18."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from fsm.policy.attributes import ATTRIBUTES, Passing, Place, Request
from specs.identity import Identity, SenderIdentity, VouchedBy
from specs.message import Message, MessageType
from tests.support.cases import for_each

RA = "hyperty-runtime://a.ex/ra"
H, B = "hyperty://a.ex/h", "hyperty://b.ex/h"
MN, DR = "domain://msg-node.a.ex", "domain://registry.a.ex"
SESSION, ALLOCATION, SM = f"{MN}/session", f"{MN}/address-allocation", f"{MN}/sm"
NOON = datetime(2026, 11, 21, 12, 30, 5, tzinfo=UTC).timestamp()
ALICE = Identity(user="user://idp.ex/alice", issuer="https://idp.ex", until=NOON + 1,
                 roles=frozenset({"admin"}))  # fmt: skip
MAIL = Identity(user="user://idp.ex/a@b.ex", issuer="https://idp.ex", until=NOON + 1)
OVER = Identity(user="user://idp.ex/alice", issuer="https://idp.ex", until=NOON)


RB = "hyperty-runtime://b.ex/rb"
ABROAD = SenderIdentity(RB, "user://b.ex/bob", VouchedBy.DOMAIN)
"""Sender of another domain, for whom its node vouches."""


class Here:
    """A runtime with one hyperty, `chat`, which reports an object."""

    def is_local(self, address):
        return address in {H, "comm://a.ex/1"}

    def hyperties(self, address):
        return frozenset({"chat"} if self.is_local(address) else ())


OUT, IN = (Passing(is_outgoing, "user://idp.ex/alice", Here()) for is_outgoing in (True, False))
"""Passages through the runtime of Alice."""

USUAL = {
    "type_": "create", "from_": H, "to": B, "identity": ALICE, "runtime": RA,
    "place": Place("a.ex", owns=lambda address, by: address.startswith(by)),
    "sender": SenderIdentity(RA, "user://idp.ex/alice", VouchedBy.IDENTITY_PROVIDER),
    "passing": None,
}  # fmt: skip


def ask(name: str, **asked: object):
    """The attribute of a message; what is not about the message itself goes into its body."""
    known = {**USUAL, **{key: value for key, value in asked.items() if key in USUAL}}
    body = {key: value for key, value in asked.items() if key not in USUAL}
    message = Message(7, MessageType(known["type_"]), known["from_"], known["to"], body)
    request = Request(
        message, known["runtime"], known["identity"], NOON, known["place"],
        sender=known["sender"], passing=known["passing"],
    )  # fmt: skip
    return ATTRIBUTES[name].read(request)


ALICES = frozenset({"user://idp.ex/alice", "alice@idp.ex"})
BOBS = frozenset({"user://b.ex/bob", "bob@b.ex"})

# fmt: off
TABLE = [
    ("srcUsername",   {},                                     "alice@idp.ex"),
    ("srcUsername",   {"identity": MAIL},                     "a@b.ex"),
    ("srcIDPDomain",  {},                                     "idp.ex"),
    ("srcIDP",        {},                                     "https://idp.ex"),
    ("srcRoles",      {},                                     frozenset({"admin"})),
    ("authenticated", {},                                     True),
    ("authenticated", {"identity": None},                     False),
    ("authenticated", {"identity": OVER},                     False),
    ("srcRuntime",    {},                                     RA),
    ("identity.user",       {},                               "user://idp.ex/alice"),
    ("identity.user",       {"sender": ABROAD, "identity": None},     "user://b.ex/bob"),
    ("identity.runtime",    {},                               RA),
    ("identity.runtime",    {"sender": ABROAD},               RB),
    ("identity.runtime",    {"identity": OVER},               RA),
    ("identity.vouched_by", {},                               "identity-provider"),
    ("identity.vouched_by", {"identity": OVER},               "none"),
    ("identity.vouched_by", {"sender": ABROAD, "identity": None},     "domain"),
    ("identity.vouched_by", {"sender": SenderIdentity(RA)},   "none"),
    ("srcSPDomain",   {},                                     "a.ex"),
    ("srcSPDomain",   {"from_": f"{MN}/sm"},                  "a.ex"),
    ("srcScheme",     {"from_": RA},                          "hyperty-runtime"),
    ("msgFrom",       {},                                     H),
    ("msgTo",         {},                                     B),
    ("dstSPDomain",   {},                                     "b.ex"),
    ("dstSPDomain",   {"to": DR},                             "a.ex"),
    ("dstScheme",     {"to": DR},                             "domain"),
    ("actionType",    {},                                     "create"),
    ("actionType",    {"type_": "execute"},                   "execute"),
    ("actionType",    {"type_": "execute", "to": SESSION, "method": "open"},    "open"),
    ("actionType",    {"type_": "execute", "to": SESSION, "method": "re-open"}, "re-open"),
    ("actionType",    {"type_": "execute", "to": SESSION, "method": "shout"},   "execute"),
    ("actionType",    {"type_": "execute", "to": SESSION},                      "execute"),
    ("actionType",    {"type_": "execute", "to": B, "method": "open"},          "execute"),
    ("actionType",    {"type_": "response"},                  "response"),
    ("resource",      {},                                     B),
    ("resource",      {"resource": "COMM://A.ex/1/"},         "comm://a.ex/1"),
    ("resource",      {"resource": "runtime://a.ex/r"},       "hyperty-runtime://a.ex/r"),
    ("resource",      {"resource": "a key"},                  "a key"),
    ("resource",      {"resource": 7},                        None),
    ("resource",      {"resources": ["comm://a.ex/1"]},       "comm://a.ex/1"),
    ("resource",      {"resources": [7]},                     None),
    ("resource",      {"resources": "comm://a.ex/1"},         "comm://a.ex/1"),
    ("resource",      {"resources": []},                      B),
    ("resource",      {"childrenResources": ["comm://a.ex/1"]}, "comm://a.ex/1"),
    ("resource",      {"to": DR, "value": {"url": "hyperty://a.ex/1"}}, "hyperty://a.ex/1"),
    ("resource",      {"to": B, "value": {"url": "https://x"}}, B),
    ("resource",      {"to": SESSION, "params": {"runtimeURL": "runtime://a.ex/r"}}, "hyperty-runtime://a.ex/r"),
    ("resource",      {"to": SESSION},                        None),
    ("resource",      {"to": SESSION, "params": 7},           None),
    ("resource",      {"to": ALLOCATION, "scheme": "comm"},   "comm://a.ex"),
    ("resource",      {"to": ALLOCATION, "scheme": "COMM"},   "comm://a.ex"),
    ("resource",      {"to": ALLOCATION, "scheme": 7},        None),
    ("resource",      {"to": ALLOCATION, "type_": "delete", "resource": "key"}, "key"),
    ("resourceScheme", {"resource": "ctxt://a.ex/1"},         "ctxt"),
    ("resourceScheme", {"to": ALLOCATION, "scheme": "comm"},  "comm"),
    ("resourceScheme", {"resource": "a key"},                 None),
    ("ownResource",   {"resource": f"{RA}/x"},                True),
    ("ownResource",   {"resource": B},                        False),
    ("ownResource",   {"resource": f"{RA}/x", "runtime": None}, False),
    ("ownResource",   {"place": Place("a.ex")},               None),
    ("resourceTypes", {"value": {"resources": ["chat", 7]}},  frozenset({"chat"})),
    ("resourceTypes", {"value": "chat"},                      frozenset()),
    ("ownUser",       {"passing": IN},                        "user://idp.ex/alice"),
    ("ownUser",       {},                                     None),
    ("hyperties",     {"passing": OUT},                       frozenset({"chat"})),
    ("hyperties",     {"passing": IN, "from_": B, "to": "comm://a.ex/1"}, frozenset({"chat"})),
    ("hyperties",     {"passing": IN, "from_": B},            frozenset()),
    ("hyperties",     {},                                     None),
    ("users",         {"passing": OUT, "sender": None},       ALICES),
    ("users",         {"passing": IN, "from_": B, "sender": ABROAD}, BOBS),
    ("users",         {},                                     None),
    ("srcUsername",   {"passing": IN, "identity": None, "sender": ABROAD}, "bob@b.ex"),
    ("srcIDPDomain",  {"passing": IN, "identity": None, "sender": ABROAD}, "b.ex"),
    ("authenticated", {"passing": IN, "identity": None, "sender": ABROAD}, True),
    ("authenticated", {"passing": IN, "sender": SenderIdentity(RB)},  False),
    ("identity.user", {"passing": IN, "identity": None},      "user://idp.ex/alice"),
    ("ownResource",   {"passing": OUT, "to": H},              True),
    ("ownResource",   {"passing": OUT},                       False),
    ("ownResource",   {"passing": IN, "to": H},               None),
    ("auth",          {},                                     False),
    ("auth",          {"auth": True},                         True),
    ("auth",          {"auth": "true"},                       None),
    ("auth",          {"auth": 1},                            None),
    ("msgId",         {},                                     7),
    ("msgType",       {},                                     "message"),
    ("msgType",       {"to": SESSION},                        "session"),
    ("msgType",       {"to": ALLOCATION},                     "addressAllocation"),
    ("msgType",       {"to": f"{MN}/policy"},                 "policyManagement"),
    ("msgType",       {"to": DR},                             "registration"),
    ("msgType",       {"to": DR, "type_": "read"},            "discovery"),
    ("msgType",       {"to": "global://registry"},            "globalRegistry"),
    ("msgType",       {"to": "domain://idm.a.ex"},            "identityManagement"),
    ("msgType",       {"to": "domain://qos.a.ex"},            "qualityManagement"),
    ("msgType",       {"to": f"{RA}/p2phandler/1"},           "p2pConnection"),
    ("msgType",       {"from_": "connection://a.ex/1"},       "p2pConnection"),
    ("msgType",       {"to": SM},                             "dataSync"),
    ("msgType",       {"to": "comm://a.ex/1/changes"},        "dataSync"),
    ("msgType",       {"to": "comm://a.ex/1/children/c"},     "dataSync"),
    ("msgType",       {"to": DR, "from_": f"{RA}/sm"},        "registration"),
    ("time",          {},                                     "12:30:05"),
    ("time",          {"place": Place("a.ex", ZoneInfo("Asia/Tokyo"))}, "21:30:05"),
    ("date",          {},                                     "2026-11-21"),
    ("date",          {"place": Place("a.ex", ZoneInfo("Pacific/Auckland"))}, "2026-11-22"),
    ("weekday",       {},                                     "saturday"),
    ("weekday",       {"place": Place("a.ex", ZoneInfo("Pacific/Auckland"))}, "sunday"),
]
# fmt: on


@for_each(TABLE)
def test_an_attribute_is_what_the_table_says(name, asked, value):
    """POL-04, POL-11."""
    found = ask(name, **asked)
    assert found == value
    assert type(found) is type(value)


def test_the_table_has_every_attribute():
    assert {name for name, *_ in TABLE} == set(ATTRIBUTES)


@pytest.mark.parametrize(
    ("to", "is_outgoing"),
    [(H, False), (B, True), (DR, False), (SM, False), ("domain://registry.b.ex", True),
     ("global://registry", True), (RA, False)],
)  # fmt: skip
def test_a_message_for_another_domain_is_outgoing(to, is_outgoing):
    """POL-17."""
    message = Message(1, MessageType.CREATE, H, to)
    assert Request(message, RA, None, NOON, Place("a.ex")).is_outgoing is is_outgoing
