"""What the filter of system calls refuses to a process of its host's own user (S17, T16).

Landlock leaves alone what the owner of a file, of a socket in the file system or of a
process may do to it. So each attack is made by a process that is no other user, in no
namespace and under no Landlock: done without the filter, refused with it.
"""

import socket
import subprocess
import sys
from pathlib import Path

import orjson
import pytest

ROOT = Path(__file__).parents[3]

TRY = """
import ctypes, json, os, resource, socket, sys
sys.path.insert(0, sys.argv[1])
from actors.sandbox.confine import filter_system_calls

def far(path):
    with socket.socket(socket.AF_UNIX) as one:
        one.connect(path)

def by_pair(path):
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    ours.sendto(b"x", path)

def by_message(path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as one:
        one.sendmsg([b"x"], [], 0, path)

def limit(who):
    resource.prlimit(who, resource.RLIMIT_CORE, resource.prlimit(who, resource.RLIMIT_CORE))

def look_into(who):
    class Part(ctypes.Structure):
        _fields_ = [("base", ctypes.c_void_p), ("size", ctypes.c_size_t)]
    there = ctypes.create_string_buffer(8)
    place = Part(ctypes.addressof(there), 8)
    # Of itself it could: only whether it is asked at all is tried.
    if libc.process_vm_readv(who, ctypes.byref(place), 1, ctypes.byref(place), 1, 0) < 0:
        raise OSError(ctypes.get_errno(), "look")

def streams():
    ours, theirs = socket.socketpair()
    ours.send(b"x")
    return theirs.recv(1)

libc = ctypes.CDLL(None, use_errno=True)
attacks = json.loads(sys.stdin.read())
names = dict(far=far, by_pair=by_pair, by_message=by_message, limit=limit, look_into=look_into,
             streams=streams, os=os, socket=socket, resource=resource)
if sys.argv[2] == "filtered":
    libc.prctl(38, 1, 0, 0, 0)
    assert filter_system_calls(libc)

def outcome(attack):
    try:
        eval(attack, names)
    except OSError as error:
        return type(error).__name__
    return "done"

print(json.dumps({name: outcome(attack) for name, attack in attacks.items()}))
"""

REFUSED = {
    "a socket in the file system": "far({stream!r})",
    "a pair that sends elsewhere": "by_pair({datagram!r})",
    "a message to elsewhere": "by_message({datagram!r})",
    "a socket at all": "socket.socket().close()",
    "limits of its host": "limit(os.getppid())",
    "a signal to its host": "os.kill(os.getppid(), 0)",
    "priority of its host": "os.setpriority(os.PRIO_PROCESS, os.getppid(), 0)",
    "processors of its host": "os.sched_setaffinity(os.getppid(), os.sched_getaffinity(0))",
    "memory of another": "look_into(os.getpid())",
    "a handle of its host": "os.close(os.pidfd_open(os.getppid()))",
    "who may read a file": "os.chmod({file!r}, 0o777)",
    "when a file was changed": "os.utime({file!r}, (1, 1))",
    "what is written beside a file": "os.setxattr({file!r}, 'user.x', b'x')",
}

STILL_DONE = {
    "a pair of streams": "streams()",
    "limits of its own": "resource.getrlimit(resource.RLIMIT_NOFILE)",
    "a pipe": "os.pipe()",
}


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """What became of each attack, without the filter and with it."""
    folder = tmp_path_factory.mktemp("seccomp")
    file = folder / "file"
    file.write_text("of somebody")
    places = {one: str(folder / one) for one in ("stream", "datagram")}
    attacks = {**REFUSED, **STILL_DONE}
    reported = {name: text.format(file=str(file), **places) for name, text in attacks.items()}
    with socket.socket(socket.AF_UNIX) as stream:
        stream.bind(places["stream"])
        stream.listen()
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as datagram:
            datagram.bind(places["datagram"])
            return {how: tried(reported, how) for how in ("free", "filtered")}


def tried(attacks, how):
    done = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-I", "-c", TRY, str(ROOT), how],
        input=orjson.dumps(attacks),
        capture_output=True,
        check=False,
        env={},
    )
    assert done.stdout, done.stderr.decode()
    return orjson.loads(done.stdout)


@pytest.mark.parametrize("attack", REFUSED)
def test_system_calls_to_other_processes_are_refused(outcomes, attack):
    if outcomes["free"][attack] != "done":
        pytest.skip("this machine refuses it anyway")
    assert outcomes["filtered"][attack] == "PermissionError"


@pytest.mark.parametrize("name", STILL_DONE)
def test_necessary_system_calls_are_permitted(outcomes, name):
    assert outcomes["filtered"][name] == "done"
