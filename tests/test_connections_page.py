"""The commands of the page on connections do what it says."""

import json
import re
import subprocess
from pathlib import Path

from actors.commands.node.command import PROFILES
from tests.support.node.node_process import EVERY_FORM, node_process

PAGE = Path(__file__).parents[1] / "docs" / "connections.md"
_PLACE = "http://127.0.0.1:9440/rest"


def commands() -> str:
    (block,) = re.findall(r"## Sessions over HTTP.*?```sh\n(.*?)```", PAGE.read_text(), re.DOTALL)
    return block


def test_the_page_lists_the_options_of_the_profile():
    rows = re.findall(r"^\| `([a-z-]+)` \| (\S+) \|", PAGE.read_text(), re.MULTILINE)
    shown = {name.replace("-", "_"): value for name, value in rows}
    wanted = {name: str(value).lower() for name, value in PROFILES["upstream"].items()}
    assert {name: shown.get(name, "").lower() for name in wanted} == {
        name: value.lower() for name, value in wanted.items()
    }


def test_a_session_over_http_may_be_had_by_curl(tmp_path):
    with node_process(tmp_path / "log", "--domain", "a.example", *EVERY_FORM) as node:
        script = commands().replace(_PLACE, node.ready["rest_url"])
        assert script != commands()
        done = subprocess.run(  # noqa: S603 - the page's own commands
            ["/bin/bash", "-euc", script], capture_output=True, text=True, check=False, timeout=25
        )
    sent, received, *events, closed = done.stdout.splitlines()
    assert json.loads(sent) == {"code": 202}
    answer = json.loads(received)
    assert (answer["id"], answer["body"]["code"]) == (2, 200)
    assert [line for line in events if line][1:] == ["id: 1", f"data: {received}"]
    assert json.loads(closed)["body"] == {"code": 200}
