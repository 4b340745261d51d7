"""`python -m actors node`, as a process."""

import os
import signal

import orjson
import pytest

from actors.cli.group import ExitCode
from tests.support.command import serving, typed

NODE = ("node", "--domain", "a.example")


async def test_a_node_says_it_is_ready_before_anything_else():
    async with serving(*NODE, "--allow-legacy") as node:
        port = node.url.removeprefix("ws://127.0.0.1:").removesuffix("/link")
        assert node.ready == {
            "schema": "protofly.ready/1",
            "role": "node",
            "domain": "a.example",
            "url": f"ws://127.0.0.1:{port}/link",
            "legacy_url": f"ws://127.0.0.1:{port}/stub/connect",
            "session_url": f"ws://127.0.0.1:{port}/ws",
            "http_url": None,
            "rest_url": None,
            "pid": node.process.pid,
        }


async def test_legacy_forms_are_announced_only_when_served():
    async with serving(*NODE) as node:
        assert node.ready["legacy_url"] is None
        assert node.ready["session_url"] is None


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_drains_and_ends_with_0(how):
    async with serving(*NODE) as node:
        assert await node.stop(how) == ExitCode.OK


async def test_a_trace_begins_and_ends(tmp_path):
    async with serving(*NODE, "--trace", str(tmp_path)) as node:
        await node.stop()
    (part,) = tmp_path.glob("run=*/node=node.a.example/part-00000.jsonl")
    lines = part.read_bytes().splitlines()
    assert [orjson.loads(lines[n])["k"] for n in (0, -1)] == ["start", "end"]


def test_a_registry_file_that_cannot_be_used_is_reported_in_one_sentence(tmp_path):
    ended = typed(*NODE, "--registry", str(tmp_path / "missing" / "r.sqlite"))
    assert ended.status == ExitCode.CONFIGURATION
    assert len(ended.err) == 1
    assert "--registry" in ended.err[0]


def test_a_trace_directory_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "file").write_text("in the way")
    ended = typed(*NODE, "--trace", str(tmp_path / "file" / "traces"))
    assert ended.status == ExitCode.CONFIGURATION
    assert len(ended.err) == 1
    assert "choose another directory" in ended.err[0]


async def test_a_file_may_say_what_the_command_line_does_not(tmp_path):
    """Flag > environment > file > default."""
    file = tmp_path / "node.toml"
    file.write_text('[node]\ndomain = "file.example"\nallow-legacy = true\n')
    async with serving("node", "--config", str(file)) as node:
        assert node.ready["domain"] == "file.example"
        assert node.ready["legacy_url"]
    env = {**os.environ, "PROTOFLY_NODE_DOMAIN": "environment.example"}
    async with serving("node", "--config", str(file), env=env) as node:
        assert node.ready["domain"] == "environment.example"
    async with serving(*NODE, "--config", str(file), env=env) as node:
        assert node.ready["domain"] == "a.example"


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (None, "cannot read"),
        ("domain = ", "no TOML"),
        ('[node]\nfrobnicate = 1\ndomain = "a.ex"', "'frobnicate'"),
        ("node = 7", "a table [node] belongs"),
        ('[node]\nconfig = "x"', "'config'"),
    ],
)
def test_a_file_that_makes_no_sense_is_reported_in_one_sentence(tmp_path, content, complaint):
    file = tmp_path / "node.toml"
    if content is not None:
        file.write_text(content)
    ended = typed("node", "--config", str(file))
    assert ended.status == ExitCode.CONFIGURATION
    assert len(ended.err) == 1
    assert complaint in ended.err[0]
