"""Foreign code in a sandbox tries what it can: nothing succeeds (S17, T16).

The same table of attacks is tried by a hyperty, by a stub of a package, and by processes from
whose confinement one rule was taken out: so the table finds each rule.
"""

import os
import socket
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

import orjson
import pytest

from fsm.limits import timers
from tests.actors.sandbox import attacks
from tests.actors.sandbox.sandbox_world import H, open_sandbox_world, sandboxes_of
from tests.support.packages import StubCode, code_of, zipped

pytestmark = pytest.mark.timeout(240)

ROOT = Path(__file__).parents[3]
HOSTILE = "tests.actors.sandbox.hostile"
STUB = """
import trio

from actors.kit.supervision.actor import Actor
from actors.runtime.stubs.stub import StubConnection
from attacks import attempts
from fsm.machines.stub_connection import Trigger
from specs.message import reply_to

def activate(context):
    return Stub(context)

class Stub(Actor):
    def __init__(self, context):
        self.context = context
        self.connection = StubConnection(context)

    async def start(self):
        await self.connection.step(Trigger.CONSTRUCTED)

    async def handle(self, delivery):
        message = delivery.message
        if message.is_request:
            value = {}
            for name, result in attempts(message.body["value"]):
                if result is not None:
                    value[name] = result
                await trio.lowlevel.checkpoint()
            await self.context.bus.post(reply_to(message, 200, {"value": value}))
"""

SOURCES = {"guest.py": STUB, "attacks.py": Path(attacks.__file__).read_text()}


WITHIN = Path(sysconfig.get_path("stdlib"), "site-packages")
"""Distributions of the interpreter, in the folder of its standard library."""
DISTRIBUTIONS = WITHIN if WITHIN.is_dir() else Path("/usr/lib/python3/dist-packages")
"""The same, also for an interpreter of Debian, which has them elsewhere."""


@pytest.fixture
def places():
    """Put keys where an embedding program may keep them: in the checkout and elsewhere.

    The folder is open to all users, as a sandbox process that root started may be another one:
    only the rules of the sandbox protect the keys.
    """
    with (
        tempfile.TemporaryDirectory() as made,
        tempfile.NamedTemporaryFile(dir=Path.home(), prefix=".attacked-") as home_file,
    ):
        Path(made).chmod(0o755)
        yield from placed(Path(made) / "keys", home_file.name)


def placed(folder, home_file):
    (folder / "empty").mkdir(parents=True)
    secrets = {"folder": str(folder)}
    for name in ("key", "token", "victim"):
        (folder / name).write_text("SECRET")
        secrets[name] = str(folder / name)
    (folder / "link").symlink_to(folder / "key")
    (folder / "secret_module.py").write_text("")
    (folder / "a.zip").write_bytes(zipped({"b.py": ""}))
    secrets["link"] = str(folder / "link")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as one, (folder / "key").open() as held:
        one.bind(str(folder / "socket"))
        # A program that embeds a runtime may leave descriptors open for those it starts.
        inherited = held.fileno()
        os.set_inheritable(inherited, True)  # noqa: FBT003
        yield {
            "secrets": secrets,
            "checkout": str(ROOT),
            "installed": sysconfig.get_path("purelib"),
            "distribution": str(next(DISTRIBUTIONS.glob("*/__init__.py"))),
            "home": str(Path.home()),
            "home_file": home_file,
        }
    assert (folder / "victim").read_text() == "SECRET"
    assert not Path("/tmp/escaped-by-attack").exists()  # noqa: S108


@pytest.fixture
def patience(monkeypatch):
    """Have attacks take as long as a machine needs for them: some ask for all there is."""
    monkeypatch.setattr(timers, "SANDBOX_SILENCE", 60)


def test_the_table_is_as_long_as_it_is_said_to_be():
    assert len(attacks.ATTACKS) >= 120


async def test_a_hostile_hyperty_succeeds_with_nothing(places, patience):
    """SEC-30."""
    async with open_sandbox_world(code_of("")) as world:
        await world.host(f"{HOSTILE}:Hostile", sandboxes_of(HOSTILE))
        answer = await world.ask(places, H)
        assert (answer.code, answer.body["value"]) == (200, {})


async def test_a_hostile_stub_succeeds_with_nothing(places, patience):
    """SEC-30."""
    async with open_sandbox_world(StubCode(zipped(SOURCES), "guest:activate")) as world:
        assert await world.load() is None
        answer = await world.ask(places)
        assert (answer.code, answer.body["value"]) == (200, {})


# ---- rules that are taken out

WEAK = """
import json, sys
sys.path[:0] = [sys.argv[1], sys.argv[2]]
from pathlib import Path
from actors.sandbox import confine
import tests.actors.sandbox.attacks as attacks
exec(sys.argv[3])
confined = confine.confine(__import__("os").getppid(), readable)
tried = attacks.attempts(*json.loads(sys.stdin.read()))
print(json.dumps({name: result for name, result in tried if result is not None}))
"""


def without(call):
    """Let a call be made with any arguments, or at all."""
    return f"""
numbers = {{**confine._LIMITED, "kill": ((62, 129), ())}}[{call!r}][0]
confine._ALLOWED = {{**confine._ALLOWED, {call!r}: numbers}}
confine._LIMITED = {{**confine._LIMITED}}
confine._LIMITED.pop({call!r}, None)
"""


DEFECTS = {
    "files": ("confine.restrict_files = lambda *_: True", "a signing key of the checkout"),
    "the checkout": ("readable = [sys.argv[1]]", "a file of the checkout"),
    "what is installed": ("confine._INSTALLED = ()", "distributions of the interpreter"),
    "calls": ("confine.filter_system_calls = lambda _: True", "the call io_uring_setup"),
    "limits": ("confine._limit = lambda: True", "a gigabyte of pages"),
    "prctl": (without("prctl"), "prctl: outlive its host"),
    "kill": (without("kill"), "a signal to itself"),
    "fcntl": (without("fcntl"), "a signal at input"),
    "ioctl": (without("ioctl"), "signals at input"),
    "openat": (without("openat"), "a path descriptor of a key"),
    "sendto": (without("sendto"), "send elsewhere"),
    "socketpair": (without("socketpair"), "a pair of datagrams"),
    "setsockopt": (without("setsockopt"), "credentials with messages"),
    "prlimit64": (without("prlimit64"), "change a limit"),
}


@pytest.mark.parametrize(("defect", "attack"), DEFECTS.values(), ids=DEFECTS)
def test_a_rule_that_is_taken_out_is_missed(places, defect, attack):
    if "_INSTALLED" in defect and DISTRIBUTIONS != WITHIN:
        pytest.skip("this interpreter has no distributions beside its standard library")
    assert list(attempted(places, defect, attack)) == [attack]


def test_no_rule_is_missed_where_none_is_taken_out(places):
    assert attempted(places, "", *(attack for _, attack in DEFECTS.values())) == {}


def attempted(places, defect, *names):
    """Try attacks in a process that was confined with a defect."""
    weak = f"readable = []\n{defect}"
    done = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-I", "-S", "-c", WEAK, str(ROOT), sysconfig.get_path("purelib"), weak],
        input=orjson.dumps([places, names]),
        capture_output=True,
        check=False,
        env={},
        cwd="/",
        timeout=60,
        start_new_session=True,  # its priority is lowered
    )
    assert done.stdout, done.stderr.decode()
    return orjson.loads(done.stdout)
