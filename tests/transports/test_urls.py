"""Targets of request lines, the web origin of a listener, and URLs without TLS."""

import pytest

from transports.urls import (
    is_plain,
    is_this_machine,
    own_origin,
    read_target,
    read_websocket_url,
    split_target,
)


@pytest.mark.parametrize(
    ("host", "port", "is_encrypted", "origin"),
    [
        ("127.0.0.1", 4123, False, "http://127.0.0.1:4123"),
        ("127.0.0.1", 80, False, "http://127.0.0.1"),
        ("127.0.0.1", 443, False, "http://127.0.0.1:443"),
        ("::1", 443, True, "https://[::1]"),
        ("::1", 8440, True, "https://[::1]:8440"),
    ],
)
def test_an_origin_leaves_out_the_usual_port(host, port, is_encrypted, origin):
    """RFC 6454, 6.2."""
    assert own_origin(host, port, is_encrypted=is_encrypted) == origin


@pytest.mark.parametrize(
    ("target", "authority", "rest"),
    [
        ("/link?a=1", None, "/link?a=1"),
        ("ws://a.ex:80/link?a=1", "a.ex:80", "/link?a=1"),
        ("WSS://a.ex", "a.ex", "/"),
        ("https://a.ex?a=1", "a.ex", "/?a=1"),
        ("http:///link", None, "http:///link"),
        ("/http://a.ex/link", None, "/http://a.ex/link"),
    ],
)
def test_an_absolute_target_has_an_authority(target, authority, rest):
    assert split_target(target) == (authority, rest)


def test_the_query_of_an_absolute_target_is_read():
    upgrade = read_target("ws://a.ex/stub/connect?runtimeURL=runtime%3A%2F%2Fa.ex%2F1", None)
    assert (upgrade.path, upgrade.query["runtimeURL"]) == ("/stub/connect", "runtime://a.ex/1")


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST", "127.0.0.1", "127.9.9.9", "::1"])
def test_the_machine_itself_is_known_by_these(host):
    assert is_this_machine(host)


@pytest.mark.parametrize("host", ["", "0.0.0.1", "::", "10.0.0.1", "localhost.evil.example"])
def test_others_are_not_the_machine_itself(host):
    assert not is_this_machine(host)


@pytest.mark.parametrize(
    "url",
    [
        "ws://192.0.2.1:8440/link",
        "http://b.example",
        "WS://b.example",
        "ws://localhost@b.example/",
        "ws://[::1].evil/",
        "ws://[::1%evil]/",
        " ws://b.example",
        "\tws://b.example",
        "w\ts://b.example",
        "ws:\n//b.example",
        "\x01ws://b.example",
    ],
)
def test_urls_without_tls_to_other_machines_are_plain(url):
    """SEC-13."""
    assert is_plain(url)


@pytest.mark.parametrize(
    "url",
    [
        "wss://b.example/link",
        "https://b.example",
        "ws://127.0.0.2:1/link",
        "ws://[::1]:1/link",
        "ws://LocalHost/link",
        "tcp://b.example:1",
        "ws://[b.example/link",
    ],
)
def test_other_urls_are_not(url):
    assert not is_plain(url)


@pytest.mark.parametrize(
    "url",
    [
        "ws://[::1].evil/",
        "ws://[::1]evil:80/",
        "ws://127.0.0.1:80:80/",
        " ws://b.example/",
        "w\ts://b.example/",
        "ws://b.exa\nmple/",
    ],
)
def test_a_url_whose_host_is_unclear_is_not_dialled(url):
    with pytest.raises(ValueError, match=r"no URL|Port"):
        read_websocket_url(url)
