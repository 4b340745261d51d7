"""`python -m actors token`: keys that nobody else reads, tokens that open sessions."""

import json
import os
import stat
import time
from pathlib import Path

import pytest

from actors.cli.group import ExitCode
from actors.commands.token import issue, show
from actors.commands.token import make_keys as keys
from actors.commands.token import show_key as key_command
from actors.keys.key_file import open_key_file
from actors.keys.key_set import ALGORITHMS
from actors.keys.signing import read_key
from tests.support.command import called

ALICE = "user://a.example/alice"


def made(directory, *more):
    """Make a key; return the report of it."""
    done = called(keys, "--out", str(directory), *more)
    assert done.status == ExitCode.OK, done.err
    return json.loads(done.out[0])


def token(key, *more):
    who = ("--user", ALICE, "--domain", "a.example")
    done = called(issue, "--key", key["key"], *who, *more)
    assert done.status == ExitCode.OK, done.err
    [text] = done.out
    return text


def shown(text, *more):
    done = called(show, *more, text)
    return done, [json.loads(line) for line in done.out]


@pytest.mark.parametrize("alg", ALGORITHMS)
def test_a_token_of_a_made_key_is_good(tmp_path, alg):
    key = made(tmp_path, "--alg", alg)
    done, [reported] = shown(
        token(key, "--role", "admin", "--runtime", "runtime://a.example/ra"),
        "--jwks", key["jwks"], "--domain", "a.example",
    )  # fmt: skip

    assert (done.status, reported["verified"], reported["alg"]) == (ExitCode.OK, True, alg)
    assert reported["claims"]["sub"] == ALICE
    assert reported["claims"]["roles"] == ["admin"]
    assert reported["claims"]["runtime"] == "hyperty-runtime://a.example/ra"
    assert reported["claims"]["exp"] - reported["claims"]["iat"] == 300


def test_a_private_key_that_others_can_read_is_used_and_reported_of(tmp_path):
    key = made(tmp_path)
    Path(key["key"]).chmod(0o640)
    done = called(issue, "--key", key["key"], "--user", ALICE, "--domain", "a.example")

    assert (done.status, len(done.out), len(done.err)) == (ExitCode.OK, 1, 1)
    assert "chmod 600" in done.err[0]


def test_a_private_key_with_safe_rights_causes_no_warning(tmp_path):
    key = made(tmp_path)
    done = called(issue, "--key", key["key"], "--user", ALICE, "--domain", "a.example")

    assert done.err == []


def mode_of(path):
    return stat.S_IMODE(Path(path).stat().st_mode)


def test_the_private_key_is_readable_by_its_owner_only_and_in_no_public_file(tmp_path):
    old = os.umask(0)
    try:
        key = made(tmp_path)
    finally:
        os.umask(old)

    assert mode_of(key["key"]) == 0o600
    assert mode_of(key["jwks"]) == 0o644
    secret = json.loads((tmp_path / f"{key['kid']}.key.json").read_text())["d"]
    assert secret not in (tmp_path / "jwks.json").read_text()
    assert secret not in json.dumps(key)


def test_a_second_key_joins_the_first(tmp_path):
    first, second = made(tmp_path), made(tmp_path, "--alg", "ES256", "--kid", "second")

    for key in (first, second):
        done, _ = shown(token(key), "--jwks", second["jwks"], "--domain", "a.example")
        assert done.status == ExitCode.OK


def test_no_key_is_overwritten(tmp_path):
    made(tmp_path, "--kid", "one")
    before = (tmp_path / "one.key.json").read_bytes()
    again = called(keys, "--out", str(tmp_path), "--kid", "one")
    (tmp_path / "jwks.json").unlink()
    alone = called(keys, "--out", str(tmp_path), "--kid", "one")

    for done in (again, alone):
        assert done.status == ExitCode.CONFIGURATION
        assert len(done.err) == 1
        assert "choose another --kid" in done.err[0]
    assert (tmp_path / "one.key.json").read_bytes() == before


def test_a_damaged_set_is_not_written_over(tmp_path):
    (tmp_path / "jwks.json").write_text("{")
    done = called(keys, "--out", str(tmp_path))

    assert (done.status, len(done.err)) == (ExitCode.CONFIGURATION, 1)
    assert "cannot add to" in done.err[0]
    assert [one.name for one in tmp_path.iterdir()] == ["jwks.json"]


def test_a_directory_that_cannot_be_made_is_said(tmp_path):
    (tmp_path / "file").write_text("")
    done = called(keys, "--out", str(tmp_path / "file" / "x"))

    assert (done.status, len(done.err)) == (ExitCode.CONFIGURATION, 1)


def test_nothing_but_the_token_is_printed(tmp_path):
    text = token(made(tmp_path))

    assert text.count(".") == 2
    assert text != token(made(tmp_path, "--kid", "k2"))


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--user", "hyperty://a.example/1"), "no user"),
        (("--user", "alice"), "no address"),
        (("--user", ALICE, "--life", "86401"), "86401"),
        (("--user", ALICE, "--life", "0"), "0"),
        (("--user", ALICE, "--not-before", "-1"), "-1"),
        (("--user", ALICE, "--runtime", "hyperty://a.example/1"), "no runtime"),
        (("--user", ALICE, "--domain", "a b"), "no domain"),
        ((), "--user"),
    ],
)
def test_options_that_make_no_token_are_reported(tmp_path, more, said):
    done = called(issue, "--key", made(tmp_path)["key"], "--domain", "a.example", *more)

    assert done.status == ExitCode.USAGE
    assert said in " ".join(done.err)


@pytest.mark.parametrize("content", [None, "", "{}", "[]", '{"keys":[]}', '{"kty":"oct","d":"x"}'])
def test_a_key_file_that_is_none_is_said(tmp_path, content):
    file = tmp_path / "key.json"
    if content is not None:
        file.write_text(content)
    done = called(issue, "--key", str(file), "--user", ALICE, "--domain", "a.example")

    assert (done.status, len(done.err)) == (ExitCode.CONFIGURATION, 1)
    assert "token keys" in done.err[0]


def test_without_keys_nothing_is_believed(tmp_path):
    done, [reported] = shown(token(made(tmp_path)))

    assert (done.status, reported["verified"]) == (ExitCode.OK, False)
    assert "nothing of this is verified" in done.err[0]


@pytest.mark.parametrize(
    ("made_for", "domain", "said"),
    [
        (("--not-before", "200"), "a.example", "becomes good in"),
        ((), "b.example", "audience"),
    ],
)
def test_why_a_node_would_refuse_it_is_said(tmp_path, made_for, domain, said):
    key = made(tmp_path)
    done, _ = shown(token(key, *made_for), "--jwks", key["jwks"], "--domain", domain)

    assert (done.status, len(done.err)) == (ExitCode.REFUSED, 1)
    assert said in done.err[0]


def test_a_token_of_another_key_would_be_refused(tmp_path):
    ours, theirs = made(tmp_path / "ours"), made(tmp_path / "theirs")
    done, reported = shown(token(theirs), "--jwks", ours["jwks"], "--domain", "a.example")

    assert (done.status, reported, len(done.err)) == (ExitCode.REFUSED, [], 1)
    assert "the key that it names is unknown" in done.err[0]


def test_no_keys_are_verified_without_a_domain(tmp_path):
    done, _ = shown("x.y.z", "--jwks", made(tmp_path)["jwks"])

    assert done.status == ExitCode.USAGE


@pytest.mark.parametrize("text", ["nonsense", "a.b.c", ""])
def test_an_invalid_token_is_reported(text):
    done, reported = shown(text)

    assert (done.status, reported, len(done.err)) == (ExitCode.FAILED, [], 1)


# ---- keys of runtimes


def thumbprint(path):
    done = called(key_command, str(path))
    assert (done.status, done.err) == (ExitCode.OK, [])
    return done.out


def test_the_key_of_a_runtime_is_made_once_and_its_thumbprint_shown(tmp_path):
    path = tmp_path / "ra.key.json"
    [first], [again] = thumbprint(path), thumbprint(path)

    assert first == again == open_key_file(path).thumbprint
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_key_file_in_no_directory_is_reported(tmp_path):
    done = called(key_command, str(tmp_path / "away" / "ra"))

    assert (done.status, len(done.err)) == (ExitCode.CONFIGURATION, 1)


@pytest.mark.parametrize("by", ["thumbprint", "file"])
def test_a_token_is_bound_to_a_key(tmp_path, by):
    key, path = made(tmp_path), tmp_path / "ra.key.json"
    [name] = thumbprint(path)
    text = token(key, "--for-key", name if by == "thumbprint" else str(path))
    done, [reported] = shown(text, "--jwks", key["jwks"], "--domain", "a.example")

    assert (done.status, reported["claims"]["cnf"]) == (ExitCode.OK, {"jkt": name})


@pytest.mark.parametrize("value", ["", "x" * 42, "x" * 44, "=" * 43, "away.json"])
def test_a_token_is_bound_to_nothing_else(tmp_path, value):
    done = called(
        issue, "--key", made(tmp_path)["key"], "--user", ALICE, "--domain", "a.example",
        "--for-key", value,
    )  # fmt: skip

    assert done.status == ExitCode.USAGE


def test_a_signing_key_is_no_key_of_a_runtime(tmp_path):
    key = made(tmp_path, "--alg", "ES256")
    done = called(
        issue,
        "--key",
        key["key"],
        "--user",
        ALICE,
        "--domain",
        "a.example",
        "--for-key",
        key["key"],
    )

    assert done.status == ExitCode.USAGE
    assert "no private key for Ed25519" in " ".join(done.err)


@pytest.mark.parametrize(
    ("claims", "more", "said"),
    [
        ({"azp": "app"}, (), "another party"),
        ({"azp": "app"}, ("--client", "app"), None),
        ({}, ("--max-token-life", "100"), "lives longer than 100 s"),
        ({}, ("--max-token-life", "300"), None),
        ({"cnf": {"kid": "k"}}, (), "'cnf'"),
    ],
)
def test_show_judges_by_the_options_of_the_node(tmp_path, claims, more, said):
    key = made(tmp_path)
    now = int(time.time())  # noqa: TID251 - tokens are of the wall clock
    text = read_key(Path(key["key"]).read_bytes()).signed(
        {"iss": "a.example", "sub": ALICE, "aud": "a.example", "iat": now, "exp": now + 300,
         "jti": "1", **claims}
    )  # fmt: skip
    done, _ = shown(text, "--jwks", key["jwks"], "--domain", "a.example", *more)

    assert done.status == (ExitCode.OK if said is None else ExitCode.REFUSED)
    assert said is None or said in done.err[0]
