"""The local authority: its files are private, kept as long as they are good, and fit."""

import datetime as dt

import pytest

from actors.dev.authority import open_authority

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


@pytest.mark.parametrize("name", ["ca.pem", "ca-key.pem"])
def test_all_is_made_anew_if_the_authority_is_damaged(tmp_path, name):
    first = opened(tmp_path)
    (tmp_path / name).write_text("nonsense")
    second = opened(tmp_path)
    assert second[0] != first[0]
    assert second[1] != first[1]
