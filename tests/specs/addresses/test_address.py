"""Addresses: ADR-01..09, C-36, C-37, N12."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specs.addresses import address
from specs.errors import BadUrlError

R = "hyperty-runtime://a.ex/ra"


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("hyperty://a.ex/1", "hyperty://a.ex/1"),
        ("HYPERTY://A.Ex/Ha", "hyperty://a.ex/Ha"),
        ("runtime://a.ex/ra/sm", "hyperty-runtime://a.ex/ra/sm"),
        ("RunTime://a.ex/ra", "hyperty-runtime://a.ex/ra"),
        ("global://registry/", "global://registry"),
        ("domain://registry.a.ex", "domain://registry.a.ex"),
        ("hyperty://a.ex/with%20percent", "hyperty://a.ex/with%20percent"),
        ("hyperty://a.ex/%2e%2e", "hyperty://a.ex/%2e%2e"),
        ("hyperty://127.0.0.1/x", "hyperty://127.0.0.1/x"),
        ("user://idp.ex/alice@mail.ex", "user://idp.ex/alice@mail.ex"),
        ("hyperty://a.ex/ha#1", "hyperty://a.ex/ha#1"),
    ],
)
def test_spellings_of_one_address_have_one_canonical_text(written, meant):
    """ADR-01, ADR-02, C-36, C-37."""
    assert address.canonical(written) == meant


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nonsense",
        "hyperty:/a.ex/1",
        "://a.ex/1",
        "hyperty://",
        "hyperty:///1",
        "hyperty://./1",
        "hyperty://a..ex/1",
        "hyperty://.a.ex/1",
        "hyperty://a.ex./1",
        "hyperty://-a.ex/1",
        "hyperty://a.ex:8080/1",
        "hyperty://alice@a.ex/1",
        "hyperty://alice:secret@a.ex/1",
        "hyperty://a.ex//1",
        "hyperty://a.ex/1//",
        "hyperty://a.ex/./1",
        "hyperty://a.ex/../1",
        "hyperty://a.ex/..",
        "hyperty://a.ex/1?x=2",
        "hyperty://a.ex/a b",
        " hyperty://a.ex/1",
        "hyperty://a.ex/1\n",
        "hyperty://a.ex/1\x00",
        "hyperty://a\x00.ex/1",
        "hyperty://ä.ex/1",
        "hyperty://a.ex/ä",
        "hyperty://а.ex/1",  # noqa: RUF001 a Cyrillic letter that looks like ours
        "hyperty://a\u3002ex/1",
        "hyperty://a.ex/1\u200b",
        "hyperty://a.ex/\u202e1",
        'hyperty://a.ex/1"',
        "hyperty://a.ex\\1",
        "1hyperty://a.ex/1",
        "hy perty://a.ex/1",
        "hyperty://%61.ex/1",
    ],
)
def test_an_invalid_address_is_refused(text):
    with pytest.raises(BadUrlError) as caught:
        address.parse(text)
    assert caught.value.text == text


def test_an_address_may_be_as_long_as_the_limit_and_no_longer():
    longest = "hyperty://a.ex/".ljust(address.MAX_ADDRESS, "x")
    assert address.canonical(longest) == longest
    with pytest.raises(BadUrlError):
        address.parse(longest + "x")


def test_a_refusal_of_a_long_text_does_not_repeat_it():
    with pytest.raises(BadUrlError) as caught:
        address.parse("x" * 100_000)
    assert len(str(caught.value)) < 200


@given(st.text(max_size=40))
def test_any_text_is_an_address_or_is_refused(text):
    try:
        canonical = address.canonical(text)
    except BadUrlError:
        return
    assert address.canonical(canonical) == canonical


@given(
    st.from_regex(r"[a-z][a-z0-9+.-]{0,9}", fullmatch=True),
    st.from_regex(r"[a-zA-Z0-9]([a-z0-9-]{0,6}[a-z0-9])?(\.[a-z]{2,5})?", fullmatch=True),
    st.lists(st.from_regex(r"[A-Za-z0-9_~-]{1,8}", fullmatch=True), max_size=4),
)
def test_a_parsed_address_has_the_parts_it_was_made_of(scheme, domain, path):
    url = address.parse("/".join([f"{scheme}://{domain}", *path]))
    assert url.scheme == address.SCHEME_ALIASES.get(scheme, scheme)
    assert url.domain == domain.lower()
    assert url.path == tuple(path)


@pytest.mark.parametrize(
    ("served", "backend"),
    [
        ("domain://registry.a.ex", True),
        ("domain-idp://a.ex", True),
        ("global://registry", True),
        ("hyperty://a.ex/1", False),
        ("domainx://a.ex/1", False),
        (R, False),
    ],
)
def test_only_service_schemes_belong_to_nodes(served, backend):
    """RES-01, ADR-04."""
    assert address.is_backend(served) is backend


@pytest.mark.parametrize(
    ("text", "domain"),
    [
        ("domain://msg-node.a.ex/sm", "a.ex"),
        ("domain://registry.a.ex", "a.ex"),
        ("domain://idm.a.ex", "a.ex"),
        ("domain://qos.a.ex", "a.ex"),
        ("domain-idp://a.ex", "a.ex"),
        ("hyperty://a.ex/1", "a.ex"),
        ("hyperty://msg-node.a.ex/1", "msg-node.a.ex"),
    ],
)
def test_the_domain_of_a_service_is_without_its_service_name(text, domain):
    assert address.domain_of(text) == domain


@pytest.mark.parametrize(
    ("text", "below"),
    [(R, True), (f"{R}/sm", True), (f"{R}2", False), (f"{R}2/sm", False), (f"{R}/", True)],
)
def test_below_respects_the_borders_of_segments(text, below):
    """ADR-08."""
    assert address.is_below(text, R) is below


def test_the_parts_of_a_domain_have_their_addresses():
    """ADR-03, ADR-04, ADR-06, ADR-09, C-42."""
    assert address.runtime("A.ex", "ra") == R
    assert address.runtime_of(f"{R}/p2phandler/1/conn/2") == R
    assert address.message_node("a.ex") == "domain://msg-node.a.ex"
    assert address.subscription_manager("a.ex") == "domain://msg-node.a.ex/sm"
    assert address.address_allocation("a.ex") == "domain://msg-node.a.ex/address-allocation"
    assert address.session_manager("a.ex") == "domain://msg-node.a.ex/session"
    assert address.domain_registry("a.ex") == "domain://registry.a.ex"
    assert address.status_of(f"{R}/protostub/1") == f"{R}/protostub/1/status"
    assert address.last_segment(f"{R}/protostub/1") == "1"
    assert address.host_of(f"{R}/sm") == "a.ex"
    assert address.catalogue_stub("a.ex").endswith(
        "catalogue.a.ex/.well-known/protocolstub/default"
    )
