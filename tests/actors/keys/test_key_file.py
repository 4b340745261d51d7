"""The file of a runtime's key: made once, for its owner alone, never replaced (SEC-40)."""

import os
import stat
from concurrent.futures import ThreadPoolExecutor

import pytest

from actors.keys.key_file import KeyFileError, open_key_file
from actors.keys.runtime_key import make_runtime_key
from tests.support.log import captured_log


def test_a_file_that_is_not_there_is_made_for_its_owner(tmp_path):
    path = tmp_path / "ra.key.json"
    old = os.umask(0)
    try:
        key = open_key_file(path)
    finally:
        os.umask(old)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert open_key_file(path).thumbprint == key.thumbprint
    assert list(tmp_path.iterdir()) == [path]


def test_two_processes_that_make_it_at_once_have_one_key(tmp_path):
    path = tmp_path / "ra.key.json"
    with ThreadPoolExecutor(8) as pool:
        names = {key.thumbprint for key in pool.map(open_key_file, [path] * 8)}
    assert names == {open_key_file(path).thumbprint}


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o666])
def test_a_file_that_others_may_read_is_used_and_reported(mode, tmp_path):
    path = tmp_path / "ra.key.json"
    key = open_key_file(path)
    path.chmod(mode)
    with captured_log() as logs:
        assert open_key_file(path).thumbprint == key.thumbprint
    [line] = logs
    assert (line["log_level"], line["mode"]) == ("warning", f"{mode:o}")
    assert "chmod 600" in line["why"]


def test_a_safe_file_causes_no_warning(tmp_path):
    with captured_log() as logs:
        open_key_file(tmp_path / "ra.key.json")
        open_key_file(tmp_path / "ra.key.json")
    assert logs == []


@pytest.mark.parametrize("text", [b"", b"{}", b'{"kty":"OKP"}', b"\x00" * 100_000])
def test_what_is_no_key_is_refused_and_left(text, tmp_path):
    path = tmp_path / "ra.key.json"
    path.write_bytes(text)
    with pytest.raises(KeyFileError):
        open_key_file(path)
    assert path.read_bytes() == text


def test_a_place_that_cannot_be_used_is_named(tmp_path):
    with pytest.raises(KeyFileError, match=r"cannot use the key file .*/away/ra: No such file"):
        open_key_file(tmp_path / "away" / "ra")
    with pytest.raises(KeyFileError, match="Is a directory"):
        open_key_file(tmp_path)


def test_no_error_shows_the_key(tmp_path):
    path = tmp_path / "ra.key.json"
    key = make_runtime_key()
    path.write_bytes(key.to_jwk().replace(key.public.encode(), b"A" * 43))
    with pytest.raises(KeyFileError) as refused:
        open_key_file(path)
    assert key.to_jwk().decode().split('"d":"')[1][:20] not in str(refused.value)
    assert "_key" not in repr(key)
