"""Long work shows its progress on a terminal, and nowhere else."""

import os
import pty
import subprocess
import sys
from contextlib import suppress

import pytest

from tests.fsm.commands.test_judge_command import KEPT, write
from tests.support.command import ROOT

PRODUCT = ("fsm", "check", "--product", "transaction")
SIMULATION = ("tests.simulation", "--seeds", "2")
SHARED = (*SIMULATION, "--jobs", "2")


def on_a_terminal(*arguments):
    """Run a command whose standard error is a terminal; its output, and what the terminal got."""
    master, slave = pty.openpty()
    shown = b""
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    with subprocess.Popen(  # noqa: S603 - our own commands
        [sys.executable, "-m", *arguments],
        cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=slave,
    ) as process:  # fmt: skip
        os.close(slave)
        # A terminal that nobody writes to any more is an error, not an end.
        with suppress(OSError):
            while piece := os.read(master, 4096):
                shown += piece
        os.close(master)
        out = process.stdout.read().decode()
    return process.returncode, out, shown.decode()


def in_a_pipe(*arguments):
    done = subprocess.run(  # noqa: S603 - our own commands
        [sys.executable, "-m", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout, done.stderr


def test_the_judge_shows_how_much_it_has_read(tmp_path):
    traces = str(write(tmp_path, KEPT))
    status, out, shown = on_a_terminal("fsm", "judge", traces)
    assert (status, out.split(":")[0]) == (0, "conformant")
    assert "traces" in shown
    assert "100%" in shown
    assert in_a_pipe("fsm", "judge", traces) == (0, out, "")


def test_the_check_of_a_composition_shows_its_states():
    status, out, shown = on_a_terminal(*PRODUCT)
    assert (status, "holds" in out) == (0, True)
    assert "states of transaction" in shown
    status, _, errors = in_a_pipe(*PRODUCT)
    assert (status, errors) == (0, "")


@pytest.mark.parametrize("command", [SIMULATION, SHARED])
def test_the_simulation_shows_its_runs(command):
    status, out, shown = on_a_terminal(*command)
    assert (status, out) == (0, "")
    assert "runs" in shown
    assert "100%" in shown
    assert "nothing was broken" in shown


def test_the_simulation_is_quiet_in_a_pipe():
    status, out, errors = in_a_pipe(*SHARED)
    assert (status, out) == (0, "")
    assert all("1 runs in" in line for line in errors.splitlines()), errors
