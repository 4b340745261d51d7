"""What a stub package tries, and what comes of it (S17, T13, T16, R11).

Each runs as a real process with the code of the attack in it. It is not the code that is
believed about what it could do, but what happens outside: the rest of the runtime is asked
after each.
"""

import pytest
import trio

from actors.kit.supervision.actor import Delivery
from specs.identity import SenderIdentity
from specs.limits.protocol import MAX_FRAME_BYTES
from specs.message import Message, MessageType
from specs.reply_code import DropReason
from tests.actors.sandbox.sandbox_world import S, open_sandbox_world
from tests.support.packages import StubCode, code_of, zipped
from tests.support.runtime.runtime_parts import R
from tests.support.wire.wire import event

pytestmark = pytest.mark.timeout(240)

GUEST = """
import os, socket, struct, subprocess, sys, threading

import orjson
import trio

from actors.kit.supervision.actor import Actor
from actors.runtime.stubs.stub import StubConnection
from fsm.engine import Step
from fsm.machines.stub_connection import State, Trigger
from specs.message import Message, MessageType, reply_to
from transports.link import Kind


def activate(context):
    return Guest(context)


class Guest(Actor):
    def __init__(self, context):
        self.context = context
        self.connection = StubConnection(context)

    async def start(self):
        await self.connection.step(Trigger.CONSTRUCTED)

    async def handle(self, delivery):
        message = delivery.message
        if not message.is_request:
            return
        try:
            value = await self.attack(message)
        except Exception as error:
            value = type(error).__name__
        await self.context.bus.post(reply_to(message, 200, {"value": value}))

    async def attack(self, message):
        url, bus = self.context.url, self.context.bus
        if message.body.get("value") == "well?":
            return "well"
        ATTACK
"""

EVENT = 'Message(7, MessageType.UPDATE, "{from_}", "{to}", {{"value": {value}}})'


def guest(attack):
    return code_of(GUEST.replace("ATTACK", attack))


def event_of(from_, to, value="1"):
    return EVENT.format(from_=from_, to=to, value=value)


# ---- what it may not do, and goes on


OBEY = """space = dict(globals())
        exec(message.body["value"], space)
        return await space["attack"](self)
"""

FORBIDDEN = {
    "read a file": ("return open('/etc/passwd').read()", {"PermissionError"}),
    "list the root": ("return os.listdir('/')", {"PermissionError"}),
    "environment of its host": (
        "return open(f'/proc/{os.getppid()}/environ').read()",
        {"PermissionError"},
    ),
    "write a file": ("open('/tmp/escaped', 'w')", {"PermissionError"}),
    "environment": ("return sorted(set(os.environ) - {'LC_CTYPE'})", {"[]"}),
    "arguments": ("return [one for one in sys.argv[1:] if one]", {"[]"}),
    "connect": (
        "socket.create_connection(('127.0.0.1', 22), 1)",
        {"OSError", "PermissionError", "ConnectionRefusedError"},
    ),
    "listen": ("socket.create_server(('', 0)); return 'done'", {"PermissionError", "OSError"}),
    "fork": ("os.fork()", {"PermissionError"}),
    "start a program": ("subprocess.run(['/bin/true'])", {"PermissionError"}),
    "start a thread": ("threading.Thread(target=int).start()", {"RuntimeError"}),
    "signal its host": ("os.kill(os.getppid(), 0)", {"PermissionError"}),
    "stop itself": ("import signal; os.kill(os.getpid(), signal.SIGSTOP)", {"PermissionError"}),
    "limit its host": (
        "import resource; resource.prlimit(os.getppid(), resource.RLIMIT_CPU, (1, 1))",
        {"PermissionError"},
    ),
    "change who may read": ("os.chmod('/tmp', 0o700)", {"PermissionError"}),
    "a Unix socket": ("socket.socket(socket.AF_UNIX)", {"PermissionError"}),
    "1 GiB": ("return len(bytearray(1 << 30))", {"MemoryError"}),
    "dial elsewhere": (
        "await self.context.network.dial(Kind.WEBSOCKET, 'ws://10.0.0.1/x')",
        {"DialError"},
    ),
    "dial a Unix socket": ("await self.context.network.dial(Kind.UNIX, '/run/x')", {"DialError"}),
    "listen by the network": (
        "self.context.network.listen(Kind.TCP, '127.0.0.1:0')",
        {"ListenError"},
    ),
    # The last: whoever has all descriptors keeps them.
    "descriptors": ("return [os.pipe() for _ in range(100)]", {"OSError"}),
}


async def test_forbidden_actions_fail():
    """STB-12: one package tries everything in turn, and is asked for a sign of life after all."""
    async with open_sandbox_world(guest(OBEY), ("ws://127.0.0.1:1/link",)) as world:
        assert await world.load() is None
        came = {}
        for name, (attack, _) in FORBIDDEN.items():
            answer = await world.ask(f"async def attack(self):\n    {attack}")
            came[name] = str(answer.body["value"])
        assert (await world.ask("well?")).body["value"] == "well"
    assert {name: one for name, one in came.items() if one not in FORBIDDEN[name][1]} == {}


# ---- what ends it


def says(frame, times=1):
    """Write this frame where the host reads, past all that could refuse it; and stay."""
    return f"""frame = {frame!r}
        os.write(0, {times} * (struct.pack('>I', len(frame)) + frame))
        await trio.sleep_forever()"""


ENDS = {
    "an exception": ("raise SystemExit", "its process ended"),
    "an exit": ("os._exit(0)", "its process ended"),
    "garbage of another length": (
        "os.write(0, b'\\xff' * 64); await trio.sleep_forever()",
        "its process ended",
    ),
    "a frame that is too large": (
        f"os.write(0, struct.pack('>I', {MAX_FRAME_BYTES + 1})); await trio.sleep_forever()",
        "its process ended",
    ),
    "a frame of garbage": (says(b"\x80\x04K."), "no JSON"),
    "a line that is too long": (
        """frame = b'{"k":"pong","t":"' + 16_384 * b"x" + b'"}'
        os.write(0, struct.pack('>I', len(frame)) + frame); await trio.sleep_forever()""",
        "a line of more than 16384 bytes",
    ),
    "a word nobody knows": (says(b'{"k":"shout"}'), "an unknown word"),
    "what only a host says": (says(b'{"k":"hand"}'), "no word of a sandbox"),
    "an answer nobody asked for": (says(b'{"k":"pong"}', times=2), "no word of a sandbox"),
    "a count of a million drops": (
        says(b'{"k":"left","f":{"overflow":999999}}'),
        "a count of unknown kind",
    ),
    "a message that is none": (says(b'{"k":"post"}\n{"id":0}'), "a message that is none"),
    "a status that is not so": (
        f"""await bus.post({event_of(S, S + "/status", "'live'")})
        await trio.sleep_forever()""",
        "a status that it does not have",
    ),
    "words in the name of others": (
        f"""for _ in range(20):
            await bus.post({event_of("hyperty://a.ex/x", R + "/sm")})
        await trio.sleep_forever()""",
        "may not send",
    ),
}


@pytest.mark.parametrize(("attack", "why"), ENDS.values(), ids=ENDS)
async def test_a_message_of_an_unknown_kind_ends_the_process_and_waiting_senders_are_notified(
    attack, why
):
    async with open_sandbox_world(guest(attack)) as world:
        assert await world.load() is None
        beside = await world.bus.component(f"{R}/beside")
        answer = await world.ask("now")
        assert answer.code == 503
        assert why in answer.body["description"]
        await world.gone()
        await world.bus.agent.post(event(9, from_=world.bus.agent.url, to=f"{R}/beside"))
        await world.bus.settle()
        assert len(beside) == 1
        assert world.steps("stub_connection") == ["created", "failed"]
        assert world.bus.counters.monitor_violations == 0


async def test_a_step_that_no_table_declares_ends_it_and_is_a_violation():
    """T17, OBS-06."""
    lie = """
        self.context.tracer.step("x", Step("stub_connection", url, None, "live", "established", ""))
        await trio.sleep_forever()"""
    async with open_sandbox_world(guest(lie)) as world:
        assert await world.load() is None
        assert (await world.ask("now")).code == 503
        await world.gone()
        assert world.bus.counters.monitor_violations == 1
        assert world.statuses() == ["created"]


async def test_a_stub_that_sends_for_another_domain_is_dropped():
    """SEC-35."""
    forged = event_of("hyperty://a.ex/alice", f"{R}/beside")
    attack = f"await bus.post({forged}); return 'said'"
    async with open_sandbox_world(guest(attack)) as world:
        assert await world.load() is None
        beside = await world.bus.component(f"{R}/beside")
        assert (await world.ask("now")).body["value"] == "said"
        assert beside == []
        assert world.bus.counters.drops[DropReason.UNKNOWN_SOURCE] == 1


BY_ITSELF = """from specs.identity import SenderIdentity, VouchedBy
        alice = SenderIdentity("{runtime}/alice", "user://a.ex/alice", VouchedBy.IDENTITY_PROVIDER)
        said = Message(7, MessageType.EXECUTE, url, "{to}", {{"value": 1}}, alice)
        {send}
        return "said\""""


SENT = {
    "event": "await bus.post(said)",
    "request": "with trio.move_on_after(0.3): await bus.request(said)",
}


@pytest.mark.parametrize("send", SENT.values(), ids=SENT)
async def test_as_itself_it_speaks_for_no_user(send):
    """SEC-15, SEC-35: what it writes about its identity is not what a hyperty is told."""
    to = "hyperty://a.ex/beside"
    async with open_sandbox_world(guest(BY_ITSELF.format(runtime=R, to=to, send=send))) as world:
        assert await world.load() is None
        beside = await world.bus.component(to)
        assert (await world.ask("now")).body["value"] == "said"
        assert beside[0].message.body == {"value": 1}
        assert beside[0].message.identity == SenderIdentity(R)


async def test_an_answer_to_what_it_was_not_asked_goes_nowhere():
    """Another stub was asked; this one answers first, with the right id and ends."""
    forged = (
        f'Message(77, MessageType.RESPONSE, "hyperty://chat.ex/x", "{R}/beside", {{"code": 200}})'
    )
    async with open_sandbox_world(guest(f"await bus.post({forged}); return 'said'")) as world:
        assert await world.load() is None
        beside = await world.bus.component(f"{R}/beside")
        port = world.bus.port(f"{R}/beside")
        await port.post(Message(77, MessageType.CREATE, port.url, "hyperty://chat.ex/x", {}))
        assert (await world.ask("now")).body["value"] == "said"
        await world.bus.settle()
        assert beside == []
        assert world.bus.counters.drops[DropReason.UNMATCHED] == 1


# ---- what only time tells


EVENT_LINE = (
    f'{{"k":"post"}}\\n{{"id":7,"type":"update","from":"{S}","to":"{R}/x","body":{{"value":1}}}}'
)


def flood_of(said):
    """Say the same as fast as the pipe takes it, and do nothing else."""
    return f"""frame = b'{said}'
        pipe = socket.socket(fileno=os.dup(0))
        pipe.setblocking(True)
        while True: pipe.sendall(100 * (struct.pack('>I', len(frame)) + frame))"""


LASTING = {
    "spins": ("while True: pass", {"no sign of life"}),
    "hangs": ("import time; time.sleep(3600)", {"no sign of life"}),
    # Who floods gives no sign of life either; what shows first depends on the machine.
    "floods with messages": (flood_of(EVENT_LINE), {"too much", "no sign of life"}),
    "floods with words": (flood_of('{"k":"took","n":7}'), {"too much", "no sign of life"}),
}


async def test_a_blocking_or_flooding_process_is_ended_in_time():
    """SEC-33: all at once; each is answered 503, and in less than a request waits for 408."""
    came, now = {}, trio.Event()

    async def provoke(name, attack, task_status):
        async with open_sandbox_world(guest(attack)) as world:
            assert await world.load() is None
            task_status.started()
            await now.wait()
            came[name] = await world.ask("now")

    async with trio.open_nursery() as nursery:
        for name, (attack, _) in LASTING.items():
            await nursery.start(provoke, name, attack)
        now.set()
    assert {name: answer.code for name, answer in came.items()} == dict.fromkeys(LASTING, 503)
    for name, (_, whys) in LASTING.items():
        assert any(why in came[name].body["description"] for why in whys), came[name].body


# ---- what does not even start


MUTE = "def activate(context):\n    return None\n"


@pytest.mark.parametrize(
    ("code", "why"),
    [
        (StubCode(b"PK no zip", "guest:activate"), "no zip archive"),
        (StubCode(b"", "guest:activate"), "no zip archive"),
        (code_of(MUTE, "elsewhere:activate"), "the package has no module elsewhere"),
        (code_of(MUTE, "os:system"), "the package has no module os"),
        (code_of(MUTE, "guest:other"), "guest has no other"),
        (code_of(MUTE, "guest"), "not of the form module:name"),
        (code_of("activate = 7"), "cannot be called"),
        (code_of(MUTE), "activate returned no actor, but a NoneType"),
        (code_of("def activate(context): return 1 / 0"), "ZeroDivisionError"),
        (code_of("import nowhere"), "No module named 'nowhere'"),
        (code_of("def activate(:"), "SyntaxError"),
        (code_of("raise SystemExit"), "its process ended"),
        (StubCode(zipped({"guest.py": b"\xff\xfe"}), "guest:activate"), "not in UTF-8"),
        (StubCode(zipped({f"{n}.py": "" for n in range(300)}), "1:activate"), "than 256 files"),
    ],
    ids=[
        "no zip", "empty", "no such module", "a module of Python", "no such function", "half",
        "a number", "no actor", "it raises", "import error", "syntax error", "it exits",
        "not in UTF-8", "too many files",
    ],
)  # fmt: skip
async def test_a_package_that_cannot_start_is_not_deployed_with_a_reason(code, why):
    """STB-01."""
    async with open_sandbox_world(code) as world:
        refusal = await world.load()
        assert why in refusal
        assert world.steps("stub_deployment") == ["deploying", "deployment-failed"]
        assert not any(isinstance(one, Delivery) for one in world.reported)
