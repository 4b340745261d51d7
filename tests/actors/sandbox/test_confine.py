"""A process that has given up everything really has (S17, T16)."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import orjson
import pytest

from specs.limits.foreign_code import SANDBOX_NICE

ROOT = Path(__file__).parents[3]

TRY = """
import json, os, signal, socket, subprocess, sys, threading
sys.path.insert(0, sys.argv[1])
import actors.sandbox.sandbox
from actors.sandbox.confine import confine
summary = confine(os.getppid()).summary

def outcome(work):
    try:
        work()
    except BaseException as error:
        return type(error).__name__
    return "done"

def dial(place):
    with socket.create_connection(("127.0.0.1", int(place)), 1):
        pass

def write():
    with open("/tmp/escaped", "w") as file:
        file.write("x")

def hoard():
    return bytearray(1 << 30)

def open_many():
    return [os.pipe() for _ in range(100)]

results = {
    "passwd": outcome(lambda: open("/etc/passwd").read()),
    "tests": outcome(lambda: os.listdir(sys.argv[1] + "/..")),
    "write": outcome(write),
    "dial": outcome(lambda: dial(sys.argv[2])),
    "signal": outcome(lambda: os.kill(os.getppid(), 0)),
    "environ": outcome(lambda: open(f"/proc/{os.getppid()}/environ").read()),
    "execute": outcome(lambda: os.execv("/bin/true", ["true"])),
    "start": outcome(lambda: subprocess.run(["/bin/true"])),
    "hoard": outcome(hoard),
    "descriptors": outcome(open_many),
    "fork": outcome(os.fork),
    "thread": outcome(threading.Thread(target=int).start),
    "priority": os.getpriority(os.PRIO_PROCESS, 0),
    "import": outcome(lambda: __import__("wave")),
}
print(json.dumps({"summary": summary, "results": results}))
"""


def run(command):
    """In a session of its own: what is confined lowers the priority of its session."""
    return subprocess.run(  # noqa: S603 - our own interpreter
        command, capture_output=True, check=False, env={}, start_new_session=True
    )


def share():
    """What Linux says of the session of this process, if it groups processes by session."""
    group = Path("/proc/self/autogroup")
    return group.read_text() if group.exists() else ""


@pytest.fixture(scope="module")
def tried():
    before = share()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        place = str(listener.getsockname()[1])
        command = [sys.executable, "-I", "-c", TRY, str(ROOT), place]
        done = run(command)
    assert done.stdout, done.stderr.decode()
    return {**orjson.loads(done.stdout), "shares": (before, share())}


@pytest.mark.parametrize(
    ("what", "outcome"),
    [("hoard", {"MemoryError"}), ("descriptors", {"OSError"}), ("import", {"done"})],
)
def test_limits_prevent_excesses_and_python_still_works(tried, what, outcome):
    assert tried["results"][what] in outcome


@pytest.mark.parametrize("what", ["passwd", "tests", "write", "environ", "execute", "signal"])
def test_nothing_of_others_is_reached(tried, what):
    if "files" not in tried["summary"].partition(";")[0]:
        pytest.skip("this kernel has no Landlock")
    assert tried["results"][what] == "PermissionError"


def test_nothing_is_dialled(tried):
    assert tried["results"]["dial"] != "done"


@pytest.mark.parametrize(
    ("what", "error"),
    [("fork", "PermissionError"), ("start", "PermissionError"), ("thread", "RuntimeError")],
)
def test_no_other_process_is_started(tried, what, error):
    if "processes" not in tried["summary"].partition(";")[0]:
        pytest.skip("this kernel has no filter for system calls")
    assert tried["results"][what] == error


def test_others_go_first(tried):
    assert tried["results"]["priority"] == os.nice(0) + SANDBOX_NICE


def test_these_tests_lower_the_priority_of_no_others(tried):
    before, after = tried["shares"]
    assert before == after


def test_abandoned_measures_are_reported(tried):
    assert tried["summary"].startswith("confined: ")
    assert "limits, privileges, dumps, orphans" in tried["summary"]


def test_a_process_orphaned_before_its_confinement_ends():
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); "
        "from actors.sandbox.confine import confine; confine(1 << 30)"
    )
    command = [sys.executable, "-I", "-c", code, str(ROOT)]
    done = run(command)
    assert done.returncode == 1
    assert b"is gone" in done.stderr
