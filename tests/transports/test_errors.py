"""What the errors of links say."""

import pytest

from transports.errors import CertificateError, DialError

EVERYWHERE = "0.0.0.0"  # noqa: S104 - dialled, not listened on


@pytest.mark.parametrize("kind", [DialError, CertificateError])
@pytest.mark.parametrize(
    ("address", "host"),
    [
        (f"ws://{EVERYWHERE}:4443/link", EVERYWHERE),
        (f"{EVERYWHERE}:4443", EVERYWHERE),
        ("wss://[::]/link", "[::]"),
    ],
)
def test_an_address_to_listen_at_is_none_to_dial(kind, address, host):
    error = kind(address, "refused")
    why = f"refused; {host} stands for all addresses of a machine, dial one"
    assert (str(error), error.reason) == (f"cannot connect to {address}: {why}", why)


@pytest.mark.parametrize(
    "address", ["ws://10.0.0.0:1/link", "[::1]:4443", "/run/node", "0.0.0.0.ex"]
)
def test_other_addresses_are_not_explained(address):
    assert DialError(address, "refused").reason == "refused"
