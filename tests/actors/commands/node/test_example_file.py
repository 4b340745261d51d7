"""`examples/node.toml` names every option of a node; the file of the page for operators serves."""

import re
import tomllib

from actors.cli.group import ExitCode, command_of
from actors.commands.config import read_context
from tests.support.command import ROOT, serving, typed
from tests.support.wire.certificates import Certificates

EXAMPLE = ROOT / "examples" / "node.toml"
PAGE = ROOT / "docs" / "operating.md"
NODE = command_of("node")
NAMES = sorted(one.name.replace("_", "-") for one in NODE.params if one.name != "config")

_OPTION = re.compile(r"^(?:# )?([a-z0-9-]+) = ", re.MULTILINE)


def test_every_option_stands_in_the_example_and_nothing_else_and_nothing_twice():
    assert sorted(_OPTION.findall(EXAMPLE.read_text())) == NAMES


def test_every_value_of_the_example_would_be_taken(tmp_path):
    whole = re.sub(r"^# ([a-z0-9-]+ = )", r"\1", EXAMPLE.read_text(), flags=re.MULTILINE)
    assert sorted(tomllib.loads(whole)["node"]) == NAMES
    file, ice = tmp_path / "whole.toml", tmp_path / "ice.toml"
    ice.write_text('[[server]]\nurls = ["stun:stun.a.example"]\n')
    ice.chmod(0o600)
    file.write_text(whole.replace("/etc/protofly/ice.toml", str(ice)))
    assert read_context(NODE, ("--config", str(file))).params["domain"] == "a.example"


async def test_the_file_of_the_page_for_operators_is_complete(tmp_path):
    (text,) = re.findall(r"```toml\n(\[node\]\n.*?)```", PAGE.read_text(), re.DOTALL)
    text = re.sub(r"https://\S+/certs|/(etc|var/lib)/protofly(?=/)", str(tmp_path), text)
    text = text.replace(f'jwks = ["{tmp_path}', f'jwks = ["{tmp_path}/jwks.json')
    file = tmp_path / "node.toml"
    file.write_text(text.replace(":8440", ":0").replace(":9440", ":0"))
    Certificates(tmp_path).issue(tmp_path, "node", "127.0.0.1")
    typed("token", "keys", "--out", str(tmp_path), "--kid", "domain")
    checked = typed("config", "check", str(file))
    assert (checked.status, checked.err) == (ExitCode.OK, [])
    async with serving("node", "--config", str(file)) as node:
        assert node.url.startswith("wss://")
        assert await node.stop() == ExitCode.OK
    assert (tmp_path / "a.example.sqlite-state").exists()
