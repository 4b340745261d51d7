"""The local authority: its files are private, kept as long as they are good, and fit."""

import datetime as dt
import ssl
from contextlib import suppress

import pytest
from cryptography import x509

from actors.dev.authority import open_authority
from transports.tls import client_context, server_context

NOW = dt.datetime(2026, 11, 25, tzinfo=dt.UTC)
HOSTS = ("localhost", "127.0.0.1")


def contents(files):
    return [path.read_bytes() for path in (files.ca, files.cert, files.key)]


def opened(folder, hosts=HOSTS, days=0):
    return contents(open_authority(folder, hosts, NOW + dt.timedelta(days=days)))


def test_files_are_private_and_used_again(tmp_path):
    first = opened(tmp_path)
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}
    assert opened(tmp_path) == first


def test_a_certificate_that_is_nearly_over_is_replaced_under_the_same_authority(tmp_path):
    ca, cert, _ = opened(tmp_path)
    later = opened(tmp_path, days=85)
    assert later[0] == ca
    assert later[1] != cert


def test_another_host_gets_another_certificate(tmp_path):
    first = opened(tmp_path)
    second = opened(tmp_path, (*HOSTS, "dev.example"))
    assert second[0] == first[0]
    names = x509.load_pem_x509_certificate(second[1]).extensions.get_extension_for_class(
        x509.SubjectAlternativeName
    )
    assert names.value.get_values_for_type(x509.DNSName) == ["localhost", "dev.example"]


@pytest.mark.parametrize("name", ["ca.pem", "ca-key.pem"])
def test_all_is_made_anew_if_the_authority_is_damaged(tmp_path, name):
    first = opened(tmp_path)
    (tmp_path / name).write_text("nonsense")
    second = opened(tmp_path)
    assert second[0] != first[0]
    assert second[1] != first[1]


def test_the_certificate_is_accepted_by_what_trusts_the_authority(tmp_path):
    files = open_authority(tmp_path, HOSTS, dt.datetime.now(dt.UTC))
    a, b, c, d = (ssl.MemoryBIO() for _ in range(4))
    server = server_context(files.cert, files.key).wrap_bio(a, b, server_side=True)
    client = client_context(files.ca).wrap_bio(c, d, server_hostname="127.0.0.1")
    for _ in range(4):
        for end, mine, theirs in ((client, d, a), (server, b, c)):
            with suppress(ssl.SSLWantReadError):
                end.do_handshake()
            theirs.write(mine.read())
    assert client.getpeercert()["subject"] == ((("commonName", "Protofly development node"),),)
