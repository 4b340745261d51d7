"""Whether a descriptor may be acted upon: pure, and on the side of no (T12..T15, S16, CAT-08)."""

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsm.catalogue.descriptor import (
    Here,
    Level,
    Reach,
    Reason,
    Refused,
    Seen,
    Terms,
    judge_entry,
    judge_package,
    judge_revocations,
    judge_use,
)
from specs.addresses.address import CatalogueType, Entry
from specs.descriptor import (
    Revocations,
    Revoked,
    SourcePackage,
    StubDescriptor,
    StubProfile,
)
from specs.limits.foreign_code import DESCRIPTOR_LIFE

ENTRY = Entry("b.ex", CatalogueType.STUB, "default")
MACHINE = "5" * 64
HERE = Here(frozenset({"websocket"}), frozenset({MACHINE}), frozenset(Level))
PROFILE = StubDescriptor(
    cguid=ENTRY.address,
    type="protocolstub",
    version="1",
    object_name="default",
    counter=5,
    expires=1000,
    profile=StubProfile(stub="websocket", endpoint="ws://b.example/link"),
)
PACKAGE = SourcePackage(
    entry_point="a:b", sha256="1" * 64, size=10, publisher="acme", signature="s"
)
CODE = attrs.evolve(
    PROFILE, profile=None, source_package=PACKAGE, machine=MACHINE, endpoints=("ws://b.example/",)
)
LINKING = attrs.evolve(
    HERE, link_stubs=frozenset({"p2p-requester"}), link_machines=frozenset({MACHINE})
)
ACME = Terms(frozenset({"acme"}))
LIST = Revocations(domain="b.ex", counter=3, expires=1000)


def verdict(descriptor, terms=ACME, seen=None, revoked=None, here=HERE):
    refused = judge_entry(ENTRY, descriptor, "d", 0.0, seen, revoked)
    return refused or judge_use(descriptor, terms, here, revoked)


def reason(descriptor=PROFILE, **more):
    found = verdict(descriptor, **more)
    assert isinstance(found, Refused)
    return found.reason


def leads_to(endpoint):
    return StubProfile(stub="websocket", endpoint=endpoint)


def changed(**fields):
    return attrs.evolve(PROFILE, **fields)


def test_a_valid_descriptor_is_trusted():
    assert verdict(PROFILE) is None
    assert verdict(CODE) is None


@pytest.mark.parametrize(
    ("now", "refused"),
    [(999.9, None), (1000.0, Reason.EXPIRED), (1000 - DESCRIPTOR_LIFE - 1, Reason.LIVES_TOO_LONG)],
)
def test_a_descriptor_is_good_until_its_second_and_not_for_ever(now, refused):
    found = judge_entry(ENTRY, PROFILE, "d", now)
    assert (None if found is None else found.reason) is refused


@pytest.mark.parametrize(
    ("seen", "refused"),
    [
        (Seen(4, "x"), None),
        (Seen(5, "d"), None),
        (Seen(5, "x"), Reason.ROLLED_BACK),
        (Seen(6, "d"), Reason.ROLLED_BACK),
    ],
)
def test_no_counter_goes_back_and_none_is_used_twice(seen, refused):
    found = judge_entry(ENTRY, PROFILE, "d", 0, seen)
    assert (None if found is None else found.reason) is refused


@pytest.mark.parametrize(
    "fields",
    [
        {"cguid": "hyperty-catalogue://catalogue.c.ex/.well-known/protocolstub/default"},
        {"type": "idp-proxy"},
        {"object_name": "other"},
    ],
)
def test_a_descriptor_is_valid_only_at_its_own_place(fields):
    assert reason(changed(**fields)) is Reason.MISPLACED


@pytest.mark.parametrize(
    ("fields", "refused"),
    [
        ({"profile": None}, Reason.NOTHING_TO_DEPLOY),
        ({"profile": StubProfile(stub="telnet", endpoint="ws://b.ex/")}, Reason.UNKNOWN_STUB),
        (
            {"profile": StubProfile(stub="websocket", endpoint="ws://10.1.2.3/")},
            Reason.PRIVATE_PLACE,
        ),
        ({"profile": leads_to("ws://[::1/")}, Reason.PRIVATE_PLACE),
        ({"profile": leads_to(None)}, Reason.NO_ENDPOINTS),
    ],
)
def test_a_profile_that_cannot_be_followed(fields, refused):
    assert reason(changed(**fields)) is refused


def test_a_stub_of_direct_links_needs_no_endpoint():
    """CAT-10: it dials what its peers offer."""
    link = changed(profile=StubProfile(stub="p2p-requester"))
    assert verdict(link, here=LINKING) is None
    assert reason(link) is Reason.UNKNOWN_STUB


def test_an_operator_may_let_a_domain_name_private_places():
    profile = leads_to("ws://10.1.2.3/")
    assert verdict(changed(profile=profile), terms=Terms(reach=Reach.ANYWHERE)) is None


@pytest.mark.parametrize(
    ("fields", "more", "refused"),
    [
        ({}, {"terms": Terms()}, Reason.UNKNOWN_PUBLISHER),
        ({}, {"here": Here(frozenset(), frozenset({MACHINE}))}, Reason.NO_SANDBOX),
        ({}, {"here": Here(frozenset(), levels=frozenset(Level))}, Reason.UNKNOWN_MACHINE),
        ({"machine": None}, {}, Reason.UNKNOWN_MACHINE),
        ({"endpoints": ()}, {}, Reason.NO_ENDPOINTS),
        ({"endpoints": ("ws://b.ex/", "tcp://127.0.0.1:1")}, {}, Reason.PRIVATE_PLACE),
        ({"language": "javascript"}, {}, Reason.LANGUAGE),
        ({}, {"here": LINKING}, Reason.LINK_CODE),
    ],
)
def test_code_that_is_not_run(fields, more, refused):
    assert reason(attrs.evolve(CODE, **fields), **more) is refused


@pytest.mark.parametrize("descriptor", [PROFILE, CODE])
@pytest.mark.parametrize(
    ("constraints", "is_met"),
    [(None, True), ({"memory": 64}, True), ({"memory": 512}, False), ({"windows": True}, False)],
)
def test_a_stub_is_deployed_if_its_constraints_are_met(descriptor, constraints, is_met):
    """STB-12, CAT-03, CAT-04."""
    here = attrs.evolve(HERE, protocols={"memory": 256})
    found = verdict(attrs.evolve(descriptor, constraints=constraints), here=here)
    assert (found is None) == is_met
    assert is_met or found.reason is Reason.CONSTRAINT


def test_code_is_not_let_pass_because_a_profile_stands_beside_it():
    both = attrs.evolve(CODE, profile=PROFILE.profile)
    assert reason(both, terms=Terms()) is Reason.UNKNOWN_PUBLISHER


@pytest.mark.parametrize(
    ("counter", "refused"), [(4, None), (5, Reason.REVOKED), (6, Reason.REVOKED)]
)
def test_a_revoked_descriptor_is_refused_up_to_its_counter(counter, refused):
    revoked = attrs.evolve(LIST, revoked=(Revoked(cguid=ENTRY.address, counter=counter),))
    found = judge_entry(ENTRY, PROFILE, "d", 0, None, revoked)
    assert (None if found is None else found.reason) is refused


def test_a_revoked_package_is_refused():
    revoked = attrs.evolve(LIST, revoked=(Revoked(sha256="1" * 64),))
    assert reason(CODE, revoked=revoked) is Reason.REVOKED


def test_a_list_that_is_over_lets_nothing_pass():
    old = attrs.evolve(LIST, expires=1)
    assert judge_entry(ENTRY, PROFILE, "d", 2, None, old).reason is Reason.LIST_EXPIRED


@pytest.mark.parametrize(
    ("found", "refused"),
    [
        (LIST, None),
        (attrs.evolve(LIST, counter=4), None),
        (attrs.evolve(LIST, counter=2), Reason.LIST_ROLLED_BACK),
        (attrs.evolve(LIST, revoked=(Revoked(sha256="1" * 64),)), Reason.LIST_ROLLED_BACK),
        (attrs.evolve(LIST, counter=4, domain="c.ex"), Reason.MISPLACED),
        (attrs.evolve(LIST, counter=4, expires=10), Reason.LIST_EXPIRED),
    ],
)
def test_a_list_takes_the_place_of_an_older_one_only(found, refused):
    reported = judge_revocations("b.ex", found, LIST, 10)
    assert (None if reported is None else reported.reason) is refused


@pytest.mark.parametrize(
    ("package", "refused"),
    [
        ((10, "1" * 64, None), None),
        ((11, "1" * 64, None), Reason.TOO_LARGE),
        ((10, "2" * 64, None), Reason.WRONG_HASH),
        ((10, "1" * 64, "is a bomb"), Reason.BAD_ARCHIVE),
    ],
)
def test_a_package_is_the_promised_one_or_none(package, refused):
    reported = judge_package(PACKAGE, *package)
    assert (None if reported is None else reported.reason) is refused


@given(
    counters=st.lists(st.tuples(st.integers(1, 6), st.sampled_from("de")), max_size=20),
)
def test_for_any_served_text_the_trusted_counter_never_falls(counters):
    """A catalogue serves what it likes; what is trusted only ever goes up."""
    trusted: list[Seen | None] = [None]
    for counter, digest in counters:
        if judge_entry(ENTRY, changed(counter=counter), digest, 0, trusted[-1]) is None:
            trusted.append(Seen(counter, digest))
    del trusted[0]
    assert [one.counter for one in trusted] == sorted(one.counter for one in trusted)
    assert len({one.counter for one in trusted}) == len(set(trusted))


def test_every_refusal_is_half_a_sentence_and_says_what_to_do():
    found = verdict(changed(counter=1), seen=Seen(2, "x"))
    assert isinstance(found, Refused)
    for text in (found.why, found.advice):
        assert text[0].islower()
        assert not text.endswith(".")
