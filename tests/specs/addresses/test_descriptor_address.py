"""Where descriptors stand (ADR-09, CAT-09, C-39)."""

import pytest

from specs.addresses.address import (
    CatalogueType,
    Entry,
    catalogue_stub,
    host_in,
    is_public_address,
    is_public_host,
    read_entry,
)
from specs.errors import BadUrlError

DEFAULT = Entry("b.ex", CatalogueType.STUB, "default")


@pytest.mark.parametrize(
    "text",
    [
        "hyperty-catalogue://catalogue.b.ex/.well-known/protocolstub/default",
        "hyperty-catalogue://catalogue.b.ex/.well-known/protostub/default",
        "hyperty-catalogue://b.ex/.well-known/protocolstub/default",
        "HYPERTY-CATALOGUE://Catalogue.B.ex/.well-known/protostub/default/",
    ],
)
def test_every_spelling_is_one_place(text):
    assert read_entry(text) == (DEFAULT, None)


def test_the_canonical_spelling_is_that_of_the_rest_of_the_project():
    assert DEFAULT.address == catalogue_stub("b.ex")
    assert DEFAULT.path == ".well-known/protocolstub/default"


def test_an_attribute_may_be_named():
    assert read_entry(f"{DEFAULT.address}/sourcePackage") == (DEFAULT, "sourcePackage")


@pytest.mark.parametrize(
    "text",
    [
        "", "x", "http://b.ex/.well-known/protocolstub/default", "hyperty-catalogue://b.ex",
        "hyperty-catalogue://b.ex/.well-known", "hyperty-catalogue://b.ex/.well-known/protocolstub",
        "hyperty-catalogue://b.ex/known/protocolstub/default", "hyperty-catalogue://b.ex/.well-known/x/y",
        "hyperty-catalogue://b.ex/.well-known/protocolstub/.hidden",
        "hyperty-catalogue://b.ex/.well-known/protocolstub/a%2fb",
        "hyperty-catalogue://b.ex/.well-known/protocolstub/a/b/c",
        "hyperty-catalogue://b.ex/.well-known/protocolstub/a/1b",
        f"hyperty-catalogue://b.ex/.well-known/protocolstub/{'x' * 65}",
    ],
)  # fmt: skip
def test_an_invalid_place_is_refused(text):
    with pytest.raises(BadUrlError):
        read_entry(text)


@pytest.mark.parametrize("address", ["8.8.8.8", "2606:4700::1111"])
def test_a_public_address_is_public(address):
    """S15."""
    assert is_public_address(address)


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "10.0.0.1", "172.31.0.1", "192.168.0.1", "169.254.169.254", "100.64.0.1",
        "0.0.0.1", "192.0.2.1", "198.18.0.1", "224.0.0.1", "239.255.255.250", "240.0.0.1", "::1",
        "::", "fe80::1", "fec0::1", "fc00::1", "fd00:ec2::254", "ff02::1", "::ffff:8.8.8.8",
        "64:ff9b::1", "2002:808:808::1", "2001::1", "2001:db8::1", "b.ex", "", "8.8.8.8.8",
    ],
)  # fmt: skip
def test_any_other_address_is_not(address):
    assert not is_public_address(address)


@pytest.mark.parametrize("host", ["b.ex", "node.b.ex.", "8.8.8.8", "xn--bcher-kva.ex"])
def test_a_host_that_could_be_public(host):
    assert is_public_host(host)


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("ws://b.ex:1/x", "b.ex"), ("tcp://b.ex:1", "b.ex"), ("ws://[::1]:1/", "::1"),
        ("ws://user@b.ex/", "b.ex"), ("b.ex:1", None), ("/run/x", None), ("ws://[::1/", None),
        ("ws://[::1].evil/", None), ("ws://[::1]evil:80/", None), ("ws://u@[::1].evil/", None),
        ("ws://B.ex:/", "b.ex"), ("ws://b.ex:x/", None), ("ws://[fe80::1%eth0]:1/", "fe80::1%eth0"),
    ],
)  # fmt: skip
def test_the_host_of_a_url(url, host):
    assert host_in(url) == host
