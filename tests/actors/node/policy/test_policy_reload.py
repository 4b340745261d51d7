"""Policies are read again as a whole or not at all, while messages pass: POL-03, S9, T5."""

import re
from pathlib import Path

import pytest
import trio

from actors.policy.store import PolicyFileError
from specs.limits.node import MAX_POLICY_BYTES
from tests.support.log import captured_log
from tests.support.node.issuer import Issuer
from tests.support.node.node_peer import RA, RB, open_world
from tests.support.node.policing import (
    POLICY,
    logged_in,
    one_policy,
    optional_login,
    policed,
    rule,
    rulings,
)

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


def lay_out(folder, name: str) -> None:
    """Put an edition where the node reads it; each file is replaced as a whole."""
    for number, text in enumerate(edition(name)):
        (folder / "new").write_text(text)
        (folder / "new").rename(folder / f"{number}.toml")


async def denial(peer, number: int) -> str:
    answer = await peer.ask(VERBS[number % 2], f"{peer.runtime}/ua", f"{RB}/ua")
    assert answer.code == 403
    return answer.body["description"]


async def test_the_next_message_is_judged_by_the_new_policies(tmp_path):
    async with open_world(**policed(tmp_path, *edition("one"))) as world:
        ra = await world.peer(RA)
        assert await denial(ra, 0) == "one"
        lay_out(tmp_path, "two")
        assert await denial(ra, 0) == "one"
        assert await world.node.reload_policies() == ""
        assert await denial(ra, 0) == "two"
        assert [one.version for one in rulings(world)][-3:] == [1, 1, 2]


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


@pytest.mark.parametrize(("content", "why"), BROKEN, ids=[one[1] + str(n) for n, one in enumerate(BROKEN)])  # fmt: skip # noqa: E501
async def test_a_file_that_cannot_be_used_changes_nothing_and_is_reported_once(
    content, why, tmp_path
):
    async with open_world(**policed(tmp_path, *edition("one"))) as world:
        ra = await world.peer(RA)
        lay_out(tmp_path, "two")
        bad = tmp_path / "1.toml"
        bad.unlink() if content is None else bad.write_bytes(
            content if isinstance(content, bytes) else content.encode()
        )
        with captured_log() as logs:
            reported = await world.node.reload_policies()

        assert why in reported
        assert str(bad) in reported
        assert [one["event"] for one in logs] == ["policies kept"]
        assert why in logs[0]["why"]
        assert [await denial(ra, 0), await denial(ra, 1)] == ["one", "one"]


@pytest.mark.parametrize(("content", "why"), BROKEN[:3], ids=["toml", "key", "size"])
async def test_a_node_does_not_start_with_a_file_that_cannot_be_used(content, why, tmp_path):
    with pytest.raises(PolicyFileError, match=re.escape(why)):
        async with open_world(**policed(tmp_path, *edition("one"), content)):
            pass


async def test_an_administrator_has_the_files_read_again(tmp_path):
    issuer = Issuer()
    reported = {**policed(tmp_path, one_policy()), **optional_login(issuer)}
    async with open_world(**reported) as world:
        issuer.now = trio.current_time()
        admin = await logged_in(world, issuer, roles=["admin"])
        ask = ("execute", f"{RA}/ua", POLICY)
        (tmp_path / "0.toml").write_text("id = 7\npolicies = 1")
        refused = await admin.ask(*ask, method="reload")
        assert (refused.code, "policies: must be a list" in refused.body["description"]) == (
            502, True,
        )  # fmt: skip
        assert "stay as they are" in refused.body["description"]

        (tmp_path / "0.toml").write_text('id = "other"')
        answer = await admin.ask(*ask, method="reload")
        assert answer.body["value"]["version"] == 2
        listed = await admin.ask("read", f"{RA}/ua", POLICY)
        assert [one["id"] for one in listed.body["value"]["sets"]] == ["other"]


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


@pytest.mark.timeout(240)
async def test_each_message_is_judged_by_exactly_one_version(tmp_path):
    """Two files change together; nobody ever sees one of them new and the other old."""
    editions: dict[int, str] = {1: "edition 1"}
    said: list[str] = []

    async def reload(world, done: trio.Event) -> None:
        while not done.is_set():
            version = len(editions) + 1
            lay_out(tmp_path, f"edition {version}")
            # Known before it can hold.
            editions[version] = f"edition {version}"
            assert await world.node.reload_policies() == ""

    async def talk(world, name: str) -> None:
        peer = await world.peer(f"hyperty-runtime://a.ex/{name}")
        number = 0
        # However fast files are read here: until there was something to see.
        while number < 400 or len(set(said)) <= 5:
            number += 1
            said.append(await denial(peer, number))

    async with open_world(**policed(tmp_path, *edition("edition 1"))) as world:
        done = trio.Event()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(reload, world, done)
            async with trio.open_nursery() as talkers:
                for number in range(5):
                    talkers.start_soon(talk, world, f"r{number}")
            done.set()
        judged = [one for one in rulings(world) if one.decision == "deny"]
        by_version = [editions[one.version] for one in judged]

    assert len(said) == len(judged) >= 2000
    assert sorted(said) == sorted(by_version)
    versions = [one.version for one in judged]
    assert versions == sorted(versions)
