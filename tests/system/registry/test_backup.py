"""Backup and restore of a node's files by the commands of `docs/operating.md`."""

import re
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing

import orjson
import pytest
import trio

import actors
from actors.commands.token import issue
from actors.commands.token import make_keys as keys
from actors.hyperties import Caller, Echo
from actors.keys.signing import make_domain_key
from actors.kit.database import DatabaseForm
from actors.node.connectors import push
from actors.node.login import provider
from actors.node.registry import record_file
from actors.node.state import file as state_file
from actors.runtime.store import file as store_file
from actors.runtime.stubs.credentials import token_credentials
from tests.support.command import ROOT, call, called, serving
from tests.support.ports import free_port

pytestmark = pytest.mark.timeout(180)

PAGE = (ROOT / "docs" / "operating.md").read_text()
SECTION = PAGE.partition("\n## The registry file\n")[2].partition("\n## ")[0]
WITH_SQLITE, WITH_PYTHON, RESTORE = re.findall(r"```sh\n(.*?)```", SECTION, re.DOTALL)
DOMAIN = "a.example"


def run_commands(text, folder):
    """Run commands of the page, with folders of this test."""
    places = {
        "/opt/protofly/bin/python": sys.executable,
        "/var/lib/protofly": str(folder / "data"),
        "/backup": str(folder / "backup"),
    }
    for there, here in places.items():
        text = text.replace(there, here)
    subprocess.run(["sh", "-e", "-c", text], check=True)  # noqa: S603, S607 - of the page


@pytest.fixture
def folder(tmp_path):
    for name in ("data", "backup"):
        (tmp_path / name).mkdir(mode=0o700)
    domain_key = tmp_path / "domain.key"
    domain_key.write_bytes(orjson.dumps(make_domain_key(b"1" * 32).private()))
    domain_key.chmod(0o600)
    return tmp_path


@pytest.mark.parametrize("backup", [WITH_SQLITE, WITH_PYTHON], ids=["sqlite3", "python"])
async def test_a_restored_node_has_records_and_sessions(folder, backup):
    """The runtime's only login token is used up: it comes back by the session in the backup."""
    if backup is WITH_SQLITE and shutil.which("sqlite3") is None:
        pytest.skip("there is no program sqlite3")
    key = orjson.loads(called(keys, "--out", str(folder / "keys")).out[0])
    who = ("--key", key["key"], "--domain", DOMAIN, "--user")
    tokens = [called(issue, *who, f"user://{DOMAIN}/{name}").out[0] for name in ("ra", "rb")]
    options = (
        *("node", "--domain", DOMAIN, "--jwks", key["jwks"]),
        *("--listen", f"127.0.0.1:{free_port()}", "--domain-key", str(folder / "domain.key")),
        *("--registry", str(folder / "data" / f"{DOMAIN}.sqlite")),
    )

    def opened(name, token, node):
        login = token_credentials(token)
        return actors.open_runtime(DOMAIN, name, node=node.url, credentials=login)

    async with serving(*options) as node, opened("ra", tokens[0], node) as there:
        echo = await there.deploy(Echo)
        await trio.to_thread.run_sync(run_commands, backup, folder)
        assert await node.stop() == 0
        shutil.rmtree(folder / "data")
        (folder / "data").mkdir(mode=0o700)
        run_commands(RESTORE, folder)
        async with serving(*options) as restored, opened("rb", tokens[1], restored) as here:
            assert (await here.read_record(echo.url))["url"] == echo.url
            caller = await here.deploy(Caller)
            with trio.fail_after(60):
                while (answer := await caller.request(echo.url, 7)).code != 200:  # noqa: ASYNC110
                    await trio.sleep(0.05)
            assert answer.value == 7


@pytest.mark.parametrize("name", ["", "-state"])
async def test_a_damaged_or_newer_backup_is_named_and_refused(folder, name):
    registry = folder / "data" / f"{DOMAIN}.sqlite"
    options = ("node", "--domain", DOMAIN, "--allow-legacy", "--registry", str(registry))
    async with serving(*options) as node:
        assert await node.stop() == 0
    file = registry.with_name(registry.name + name)
    whole = file.read_bytes()
    config = folder / "node.toml"
    config.write_text(f"[node]\ndomain = '{DOMAIN}'\nallow-legacy = true\nregistry = '{registry}'")
    damaged = [whole[:-4096], whole[:4096] + b"\0" * 4096 + whole[8192:]]
    for content in damaged:
        file.write_bytes(content)
        checked = await call("config", "check", str(config))
        assert checked.status == 3
        assert str(file) in " ".join(checked.err)
    file.write_bytes(damaged[0])
    ended = await call(*options)
    assert ended.status == 3
    assert f"{file}: database disk image is malformed" in ended.err[-1]
    file.write_bytes(whole)
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA user_version = 99")
    ended = await call(*options)
    assert ended.status == 3
    assert "it was written by a newer version of the node" in ended.err[-1]


def test_the_page_has_the_forms_of_this_version():
    (text,) = re.findall(r"The forms of this version .* are (.*)\.", PAGE)
    nodes = (record_file.FORM, state_file.FORM, provider._FORM, push._FORM)
    assert {form.version for form in nodes} == {1}
    assert isinstance(store_file.FORM, DatabaseForm)
    assert text.startswith("1 for registry, state file, used tokens and devices, and 2 for the")
    assert store_file.FORM.version == 2
