"""The files for operators: units of systemd and the Dockerfile, as far as a test can run them."""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner

from actors.__main__ import _commands as commands

ROOT = Path(__file__).parents[3]
DEPLOY = ROOT / "deploy"
UNITS = sorted(DEPLOY.glob("*.service"))
INSTALLED = "/opt/protofly/bin/protofly"


def settings(unit):
    """The settings of a unit, each with its values in order."""
    found = {}
    for line in unit.read_text().splitlines():
        name, is_one, value = line.partition("=")
        if is_one and not line.startswith("#"):
            found.setdefault(name, []).append(value)
    return found


def steps():
    """The instructions of the Dockerfile: each word, and what follows it."""
    text = re.sub(r"\\\n", " ", (DEPLOY / "Dockerfile").read_text())
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [tuple(line.split(maxsplit=1)) for line in lines]


def last(word):
    return [rest for first, rest in steps() if first == word][-1]


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_systemd_takes_each_unit(unit, tmp_path):
    """What it says of a unit is only that the program is not installed here."""
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("systemd is not installed")
    said = subprocess.run(  # noqa: S603 - our own files
        [program, "verify", unit], capture_output=True, text=True, check=False
    )
    rest = [
        line for line in said.stderr.splitlines() if f"{INSTALLED} is not executable" not in line
    ]
    assert rest == []


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_each_unit_runs_without_rights(unit):
    said = settings(unit)
    assert said["DynamicUser"] == said["NoNewPrivileges"] == ["yes"]
    assert said["CapabilityBoundingSet"] == [""]
    assert said["ProtectSystem"] == ["strict"]
    assert "User" not in said


@pytest.mark.parametrize(
    "command",
    [
        *[line for unit in UNITS for line in settings(unit)["ExecStart"]],
        *[line for unit in UNITS for line in settings(unit).get("ExecStartPre", [])],
        " ".join([*json.loads(last("ENTRYPOINT")), *json.loads(last("CMD"))]),
    ],
)
def test_each_command_has_options_that_are_there(command):
    """Only the file of options is missing here."""
    program, *arguments = shlex.split(command.replace("%i", "ra"))
    assert program == INSTALLED
    ended = CliRunner().invoke(commands, arguments)
    assert f"cannot read {arguments[-1]}" in f"{ended.exception} {ended.output}"


def test_the_image_copies_what_is_there_and_runs_as_nobody_special():
    copied = [
        rest.split()[:-1] for word, rest in steps() if word == "COPY" and "--from" not in rest
    ]
    missing = [name for names in copied for name in names if not (ROOT / name).exists()]
    assert missing == []
    packages = {"actors", "fsm", "spark", "specs", "transports"}
    assert packages <= {name for names in copied for name in names}
    uid, gid = last("USER").split(":")
    assert int(uid) > 0 < int(gid)
    assert all(
        "--require-hashes" in part for part in last_build().split("&&") if "requirement " in part
    )


def last_build():
    return next(rest for word, rest in steps() if word == "RUN" and "--requirement" in rest)


CONFINED = """
mount --make-rprivate /
mount --bind "$STATE" "$STATE"
mount -o remount,bind,ro /
! touch "$STATE/../elsewhere" 2>/dev/null || exit 99
exec setpriv --bounding-set=-all --inh-caps=-all --no-new-privs "$@"
"""
"""Runs a command as the image does: all is read-only but one directory, and no right is left."""


def confined(*command, place):
    script = ["unshare", "--mount", "sh", "-c", CONFINED, "sh"]
    return [*script, *map(str, command)], os.environ | {"STATE": str(place)}


def can_confine(place):
    if os.getuid() != 0 or shutil.which("unshare") is None or shutil.which("setpriv") is None:
        return False
    command, environ = confined("true", place=place)
    return subprocess.run(command, env=environ, check=False).returncode == 0  # noqa: S603


@contextmanager
def node(place):
    options = ROOT / "examples" / "node.toml"
    state = ["--registry", place / "records.sqlite", "--allow-legacy"]
    command, environ = confined(
        sys.executable, "-m", "actors", "node", "--config", options, *state, place=place
    )
    environ |= {
        "PYTHONDONTWRITEBYTECODE": "1",
        "PROTOFLY_NODE_LISTEN": "127.0.0.1:0",
        "PROTOFLY_NODE_HTTP": "127.0.0.1:0",
    }
    with subprocess.Popen(  # noqa: S603 - our own program
        command, cwd=ROOT, env=environ, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process, json.loads(process.stdout.readline() or "{}")
        finally:
            process.send_signal(signal.SIGTERM)


def test_a_node_runs_without_rights_where_all_but_its_state_is_read_only(tmp_path):
    place = tmp_path / "state"
    place.mkdir(mode=0o700)
    if not can_confine(place):
        pytest.skip("needs root, unshare and setpriv")
    probe = json.loads(last("HEALTHCHECK").partition("CMD")[2])[1:]
    with node(place) as (process, ready):
        asked = [
            sys.executable,
            *(one.replace("http://127.0.0.1:9440", ready["http_url"]) for one in probe),
        ]
        assert subprocess.run(asked, check=False).returncode == 0  # noqa: S603 - of the Dockerfile
    assert process.returncode == 0
    assert (place / "records.sqlite").stat().st_size
    gone = subprocess.run(asked, check=False, stderr=subprocess.DEVNULL)  # noqa: S603 - the same
    assert gone.returncode != 0
