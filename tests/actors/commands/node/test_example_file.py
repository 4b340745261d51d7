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
    for name, file in {
        "https://sso.example/realms/main/protocol/openid-connect/certs": "keys/jwks.json",
        "/etc/protofly/node.pem": "listener.pem",
        "/var/lib/protofly/node.key": "listener.key",
        "/var/lib/protofly/domain.key.json": "keys/domain.key.json",
        "/var/lib/protofly/": "",
    }.items():
        assert text.count(name) == 1
        text = text.replace(name, f"{tmp_path}/{file}")
    file = tmp_path / "node.toml"
    file.write_text(text.replace(":8440", ":0").replace(":9440", ":0"))
    Certificates(tmp_path)
    assert typed("token", "keys", "--out", str(tmp_path / "keys"), "--kid", "domain").err == []
    checked = typed("config", "check", str(file))
    assert (checked.status, checked.err) == (ExitCode.OK, [])
    async with serving("node", "--config", str(file)) as node:
        assert node.url.startswith("wss://")
        assert await node.stop() == ExitCode.OK
    assert {each.name for each in tmp_path.glob("*.sqlite*")} >= {
        "a.example.sqlite",
        "a.example.sqlite-state",
    }
