"""Nothing that others chose commands the terminal, log or page that shows it (TRC-09)."""

import ast
import io
import json
import logging
import re
import shutil
import subprocess
import sys
from pathlib import Path

import orjson
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import actors
from actors.cli.group import ExitCode
from actors.kit.log import Level, Style, configure_log, get_logger
from fsm.__main__ import cli
from fsm.drawing.draw import dot
from fsm.machine_list import MACHINES
from specs.jsonvalue import one_line, visible
from tests.fsm.commands.test_judge_command import write
from tests.support.command import ROOT, call

ODD = "\x1b[2J\x1b]0;x\x07\r\x9b2J\u2028\u2029\u202e\u2066\x7f\x00\u200b"
EVIL = f"be{ODD}low"
ACTIVE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069]")
STYLED = re.compile(r"\x1b\[[0-9;]*m")


@given(st.text(st.characters() | st.sampled_from(ODD)))
def test_no_active_character_is_left_and_text_stays(text):
    assert not ACTIVE.search(visible(text))
    assert visible(visible(text)) == visible(text)
    assert "\n" not in one_line(text)
    assert "\t" not in one_line(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a b",
        "\u017elu\u0165ou\u010dk\u00fd\n\tk\u016f\u0148",
        "\U0001f477\u200d\u2640\ufe0f \u05e9\u05dc\u05d5\u05dd",
    ],
)
def test_text_of_people_stays_as_it_is(text):
    assert visible(text) == text


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(JSON)
def test_a_line_of_json_stays_the_same_json(value):
    assert json.loads(visible(json.dumps(value, ensure_ascii=False))) == value


# ---- every place that prints

PRINTERS = {
    "actors/__main__.py": 1,  # its version
    "actors/cli/group.py": 1,
    "actors/cli/lifetime.py": 1,  # its own reason, cleaned
    "actors/kit/log.py": 1,  # a cleaned line
    "actors/sandbox/__main__.py": 1,  # the filter, in the child; its parent logs what comes
    "fsm/commands/judge.py": 2,  # clears a line
    "spark/__main__.py": 8,
    "specs/__main__.py": 1,  # names of the files that it wrote
}
"""How often each file writes to standard output or error by itself; all others use `echo`."""


def prints(tree):
    """Return the calls that write to standard output or standard error."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            is_write = name == "os.write" and ast.unparse(node.args[0]) in {"1", "2"}
            direct = {"print", "click.echo", "click.secho", "sys.stdout.write", "sys.stderr.write"}
            if is_write or name in direct:
                yield node


def test_all_output_passes_the_cleaner():
    """A new command uses `echo`; a file of this table says why it prints by itself."""
    found = {}
    for package in ("actors", "fsm", "spark", "specs", "transports"):
        for file in sorted((Path(ROOT) / package).rglob("*.py")):
            count = len(list(prints(ast.parse(file.read_text()))))
            if count:
                found[str(file.relative_to(ROOT))] = count
    assert found == PRINTERS


def test_spark_prints_cleaned_lines_only():
    tree = ast.parse((Path(ROOT) / "spark" / "__main__.py").read_text())
    own = ('f"lines that are no records: {bad}"', "claims_page()", "text")
    for node in prints(tree):
        shown = ast.unparse(node.args[0]).replace("'", '"')
        assert "one_line(" in shown or shown in own


# ---- peers that answer with such texts


class Evil(actors.Hyperty):
    async def on_request(self, message):
        if message.body.get("value") == "refuse":
            raise actors.Refused(actors.Code.FORBIDDEN, EVIL)
        return {"text": EVIL}


def clean(command):
    shown = "\n".join([*command.out, *command.err])
    assert not ACTIVE.search(shown), ascii(shown)
    return shown


@pytest.fixture
async def evil():
    async with (
        actors.open_node("a.example") as node,
        actors.open_runtime("a.example", "evil", node=node.url) as runtime,
    ):
        hyperty = await runtime.deploy(Evil, name="evil")
        yield ("--domain", "a.example", "--node", node.url), hyperty


async def test_the_refusal_and_the_answer_of_a_peer(evil):
    place, hyperty = evil
    refused = await call("request", *place, hyperty.url, '"refuse"')
    assert refused.status != ExitCode.OK
    assert "be\\u001b" in clean(refused)

    answered = await call("request", *place, hyperty.url, "1")
    assert answered.status == ExitCode.OK
    clean(answered)
    assert orjson.loads(answered.out[0])["value"] == {"text": EVIL}


# ---- logs

LOG = get_logger("actors.test")


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("style", [Style.TEXT, Style.JSON, Style.CONSOLE])
def test_a_line_of_the_log(style):
    stream = Terminal()
    configure_log(Level.INFO, style, stream)
    try:
        try:
            int(EVIL + "\nforged")
        except ValueError as error:
            LOG.warning("it went wrong", why=EVIL + "\nforged", more=[EVIL], exc_info=error)
    finally:
        configure_log(Level.WARNING, Style.TEXT, sys.stderr)
    line = STYLED.sub("", stream.getvalue())
    assert "it went wrong" in line
    assert not ACTIVE.search(line), ascii(line)
    if style is Style.JSON:
        assert json.loads(line)["why"] == EVIL + "\nforged"
    else:
        assert "\nforged" not in line.partition("Traceback")[0]
    logging.getLogger("actors").handlers.clear()


# ---- pages


@pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is not installed")
def test_the_dashboard_spells_out_what_python_does():
    dom = (Path(ROOT) / "web" / "dashboard" / "dom.js").as_uri()
    texts = [EVIL, "a b\n\tc", "\U000e0041", "\ud83d", "\U0001f477\u200d\u2640\ufe0f", "\xad\ufeff"]
    shown = f"JSON.stringify({json.dumps(texts)}.map(plain))"
    code = f"import {{plain}} from {json.dumps(dom)}; console.log({shown})"
    words = ["node", "--input-type=module", "-e", code]
    done = subprocess.run(words, capture_output=True, text=True, check=True)  # noqa: S603
    assert json.loads(done.stdout) == [visible(text) for text in texts]


# ---- traces and drawings


def test_a_trace_of_others(tmp_path):
    """States, causes and names in a trace are texts of the process that wrote it."""
    folder = write(tmp_path, "x step address URL [*] odd released")
    for file in folder.rglob("*.jsonl"):
        file.write_text(file.read_text().replace('"odd"', json.dumps(EVIL + "\nforged")))
    for more in ([], ["--json"]):
        done = CliRunner().invoke(cli, ["judge", str(folder), *more])
        assert done.exit_code
        assert "\nforged" not in done.output
        assert not ACTIVE.search(done.output), ascii(done.output)


def test_a_drawing_of_an_illegal_step():
    drawn = dot(next(iter(MACHINES.values())), None, (EVIL, EVIL, EVIL))
    assert not ACTIVE.search(drawn)
