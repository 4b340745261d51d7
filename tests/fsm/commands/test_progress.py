"""Long work shows its progress on a terminal, and nowhere else."""

import os
import pty
from contextlib import suppress
from tempfile import TemporaryFile

from tests.support.warm import fork_warm

PRODUCT = ("fsm", "check", "--product", "transaction")
SIMULATION = ("tests.simulation", "--seeds", "2")


def on_a_terminal(*arguments):
    """Run a command whose standard error is a terminal; its output, and what the terminal got."""
    master, slave = pty.openpty()
    shown = b""
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    with TemporaryFile() as out:
        process = fork_warm(["-m", *arguments], (None, out.fileno(), slave), env=environment)
        os.close(slave)
        # A terminal that nobody writes to any more is an error, not an end.
        with suppress(OSError):
            while piece := os.read(master, 4096):
                shown += piece
        os.close(master)
        return process.wait(), text_of(out), shown.decode()


def in_a_pipe(*arguments):
    with TemporaryFile() as out, TemporaryFile() as err:
        process = fork_warm(["-m", *arguments], (None, out.fileno(), err.fileno()))
        return process.wait(), text_of(out), text_of(err)


def text_of(file):
    file.seek(0)
    return file.read().decode()


def test_the_check_of_a_composition_shows_its_states():
    status, out, shown = on_a_terminal(*PRODUCT)
    assert (status, "holds" in out) == (0, True)
    assert "states of transaction" in shown
    status, _, errors = in_a_pipe(*PRODUCT)
    assert (status, errors) == (0, "")


def test_the_simulation_shows_the_runs_of_all_its_processes():
    status, out, shown = on_a_terminal(*SIMULATION, "--jobs", "2")
    assert (status, out) == (0, "")
    assert "runs" in shown
    assert "100%" in shown
    assert "nothing was broken" in shown


def test_the_simulation_is_quiet_in_a_pipe():
    status, out, errors = in_a_pipe(*SIMULATION)
    assert (status, out) == (0, "")
    assert errors.startswith("2 runs in")
