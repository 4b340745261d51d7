"""`python -m actors token`: keys that nobody else reads, tokens that open sessions."""

import json

import pytest

from actors.cli.group import ExitCode
from actors.commands.token import issue, show
from actors.commands.token import make_keys as keys
from actors.commands.token import show_key as key_command
from actors.keys.key_set import ALGORITHMS
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


def test_a_token_of_another_key_would_be_refused(tmp_path):
    ours, theirs = made(tmp_path / "ours"), made(tmp_path / "theirs")
    done, reported = shown(token(theirs), "--jwks", ours["jwks"], "--domain", "a.example")

    assert (done.status, reported, len(done.err)) == (ExitCode.REFUSED, [], 1)
    assert "the key that it names is unknown" in done.err[0]


# ---- keys of runtimes


def thumbprint(path):
    done = called(key_command, str(path))
    assert (done.status, done.err) == (ExitCode.OK, [])
    return done.out


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
