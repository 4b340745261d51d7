"""Targets of request lines, and the web origin of a listener."""

import pytest

from transports.urls import own_origin, read_target, split_target


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
