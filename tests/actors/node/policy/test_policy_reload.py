"""Policies are read again as a whole or not at all, while messages pass: POL-03, S9, T5."""

import re
from pathlib import Path

import pytest
import trio

from actors.policy.store import PolicyFileError
from specs.limits.node import MAX_POLICY_BYTES
from tests.support.node.issuer import Issuer
from tests.support.node.node_peer import RA, open_world
from tests.support.node.policing import POLICY, logged_in, one_policy, optional_login, policed, rule

VERBS = ("create", "read")


def edition(name: str) -> list[str]:
    """Two files that deny everything together, each half of it, and say which edition it is."""
    return [
        one_policy(
            rule("all", f'effect = "deny"\nreason = "{name}"\ntarget.actionType.equals = "{verb}"'),
            name=verb,
        )
        for verb in VERBS
    ]


BROKEN = [
    ("id = ", "no TOML"),
    ("id = 'x'\nrulez = []", "no key here"),
    ("x" * (MAX_POLICY_BYTES + 1), "more than"),
    ("id = 'create'", "that of"),
    ("a = " + "[" * 5000 + "]" * 5000, "nested too deep"),
    ("id = " + "9" * 5000, "no TOML"),
    (b"\xff", "no TOML"),
    (None, "No such file"),
]


@pytest.mark.parametrize(("content", "why"), BROKEN[:3], ids=["toml", "key", "size"])
async def test_a_node_does_not_start_with_a_file_that_cannot_be_used(content, why, tmp_path):
    with pytest.raises(PolicyFileError, match=re.escape(why)):
        async with open_world(**policed(tmp_path, *edition("one"), content)):
            pass


@pytest.mark.parametrize(("error", "code"), [(PermissionError(13, "no"), 502), (KeyError(), 503)])
async def test_files_that_cannot_be_looked_at_end_no_session(error, code, tmp_path, monkeypatch):
    def fail(_path):
        raise error

    issuer = Issuer()
    async with open_world(**policed(tmp_path, one_policy()), **optional_login(issuer)) as world:
        issuer.now = trio.current_time()
        admin = await logged_in(world, issuer, roles=["admin"])
        ask = ("execute", f"{RA}/ua", POLICY)
        with monkeypatch.context() as patched:
            patched.setattr(Path, "is_dir", fail)
            assert (await admin.ask(*ask, method="reload")).code == code
        assert (await admin.ask(*ask, method="reload")).code == 200


async def test_a_reload_replaces_changes_by_message(tmp_path):
    issuer = Issuer()
    reported = {**policed(tmp_path, one_policy()), **optional_login(issuer)}
    async with open_world(**reported) as world:
        issuer.now = trio.current_time()
        admin = await logged_in(world, issuer, roles=["admin"])
        await admin.ask("create", f"{RA}/ua", POLICY, value={"id": "more"})
        await world.node.reload_policies()

        listed = await admin.ask("read", f"{RA}/ua", POLICY)
        assert [one["id"] for one in listed.body["value"]["sets"]] == ["s"]
