"""`--identity FILE`, `--domain-key FILE` and tokens that are bound to keys, among processes."""

import json
import os
import stat

import jwt
import pytest

from actors.cli.group import ExitCode
from actors.commands.token import issue
from actors.commands.token import make_keys as keys
from actors.commands.token import show_key as key_command
from tests.support.command import call, called, serving, typed
from tests.support.node.web import get

NODE = ("node", "--domain", "a.example")
ECHO = ("--hyperty", "echo=actors.hyperties:Echo", "--p2p", "none")
NOWHERE = "ws://127.0.0.1:1/link"


def runtime(node, *more):
    return ("runtime", "--domain", "a.example", "--name", "ra", "--node", node, *more)


async def test_a_token_serves_the_holder_of_its_key_only(tmp_path):
    """The thief has the token, and another key; the owner comes afterwards, with the same token."""
    key = json.loads(called(keys, "--out", str(tmp_path / "issuer")).out[0])
    domain = json.loads(called(keys, "--out", str(tmp_path / "domain"), "--kid", "d1").out[0])
    mine, eves, token = (tmp_path / name for name in ("mine", "eves", "token"))
    [thumbprint] = called(key_command, str(mine)).out
    [text] = called(
        issue, "--key", key["key"], "--user", "user://a.example/alice", "--domain", "a.example",
        "--for-key", thumbprint,
    ).out  # fmt: skip
    token.write_text(text)
    options = ("--jwks", key["jwks"], "--domain-key", domain["key"], "--http", "127.0.0.1:0")
    async with serving(*NODE, *options) as node:
        login = ("--token-file", str(token))
        ask = ("request", "--domain", "a.example", "--node", node.url, "--identity", str(eves))
        stolen = await call(*ask, "hyperty://a.example/x", "1", *login)
        bare = await call(*runtime(node.url, "--p2p", "none"), *login)
        async with serving(*runtime(node.url, *ECHO, "--identity", str(mine)), *login) as owner:
            assert owner.ready["hyperties"]["echo"]
        shown = await get(f"{node.ready['http_url']}/.well-known/jwks.json")

    for refused in (stolen, bare):
        assert (refused.status, len(refused.err)) == (ExitCode.REFUSED, 1)
        assert "bound to a key" in refused.err[0]
    assert stat.S_IMODE(eves.stat().st_mode) == 0o600
    [public] = jwt.PyJWKSet.from_dict(shown.json).keys
    assert public.key_id == "d1"


@pytest.mark.parametrize("by", ["option", "environment", "file"])
def test_a_file_that_is_no_key_is_reported_before_any_dial(by, tmp_path):
    path, config = tmp_path / "key", tmp_path / "protofly.toml"
    path.write_text("{}")
    config.write_text(f'[runtime]\nidentity = "{path}"\n')
    more = {"option": ("--identity", str(path)), "file": ("--config", str(config))}.get(by, ())
    env = {**os.environ, "PROTOFLY_RUNTIME_IDENTITY": str(path)} if by == "environment" else None
    ended = typed(*runtime(NOWHERE, *more), **({} if env is None else {"env": env}))

    assert (ended.status, len(ended.err)) == (ExitCode.CONFIGURATION, 1)
    assert f"cannot use the key file {path}" in ended.err[0]
    assert "--identity" in ended.err[0]


@pytest.mark.parametrize("content", [None, "{}"])
def test_a_domain_key_that_is_none_is_reported(content, tmp_path):
    path = tmp_path / "key"
    if content is not None:
        path.write_text(content)
    ended = typed(*NODE, "--allow-legacy", "--domain-key", str(path))

    assert (ended.status, len(ended.err)) == (ExitCode.CONFIGURATION, 1)
    assert str(path) in ended.err[0]
