"""Addresses: ADR-01..09, C-36, C-37, N12."""

import pytest

from specs.addresses import address

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


@pytest.mark.parametrize(
    ("text", "below"),
    [(R, True), (f"{R}/sm", True), (f"{R}2", False), (f"{R}2/sm", False), (f"{R}/", True)],
)
def test_below_respects_the_borders_of_segments(text, below):
    """ADR-08."""
    assert address.is_below(text, R) is below
