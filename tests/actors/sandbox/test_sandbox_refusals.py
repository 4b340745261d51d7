"""A sandbox runs code that nobody here has read only where it is really kept in (S17, T13, T16).

Whatever that code does not read, the sandbox obeys its host.
"""

import trio

from actors.pipe.plan import (
    Contents,
    ContentsKind,
    PipeMessage,
    SandboxPlan,
    Word,
    parts_of,
    read_message,
    write_message,
    write_plan,
)
from actors.sandbox.sandbox import run_sandbox
from specs.limits.protocol import MAILBOX, OUTBOX_MESSAGES
from specs.message import Message, MessageType
from tests.support.packages import code_of
from transports.codec import encode
from transports.link import Kind, Upgrade
from transports.memory import Wire

STUB = "runtime://a.ex/r/s"
QUIET = (
    "from actors.kit.supervision.actor import Actor\n"
    "def activate(context): return Quiet()\n"
    "class Quiet(Actor):\n"
    "    async def handle(self, message): pass\n"
)


STUCK = (
    "import trio\n"
    "from actors.kit.supervision.actor import Actor\n"
    "def activate(context): return Stuck()\n"
    "class Stuck(Actor):\n"
    "    async def handle(self, message): await trio.sleep_forever()\n"
)


def packaged(code):
    return Contents(ContentsKind.PACKAGE, code.entry_point, {})


async def first_word(contents, archive, lacking):
    """Open a sandbox that could not give up everything; return what it says of itself."""
    wire = Wire(Kind.UNIX, "sandbox", 1, Upgrade())
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(run_sandbox, wire.acceptor, lacking)
            said = await start(wire.dialler, contents, archive)
            nursery.cancel_scope.cancel()
    return said.text


async def start(host, contents, archive):
    """Have a sandbox start; return what it says then."""
    plan = SandboxPlan(STUB, "runtime://a.ex/r", "chat.ex", contents, (), None, 0, hops=False)
    await host.send(write_message(PipeMessage(Word.PLAN, fields=write_plan(plan))))
    if archive:
        for part in parts_of(0, archive, Word.CODE):
            await host.send(write_message(part))
    while (said := read_message(await host.receive())).word is not Word.READY:
        pass
    return said


async def test_a_package_is_run_where_only_what_is_not_needed_is_lacking():
    """Namespaces are not to be had in many containers; sockets are refused by the filter."""
    code = code_of(QUIET)
    lacking = ["namespaces", "priority"]
    assert await first_word(packaged(code), code.archive, lacking) == ""


async def test_a_sandbox_leaves_while_neither_its_code_nor_its_host_reads(autojump_clock):
    """R11: what its code does not take does not delay the words of the host."""
    code = code_of(STUCK)
    wire = Wire(Kind.UNIX, "sandbox", 1, Upgrade())
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(run_sandbox, wire.acceptor)
            await start(wire.dialler, packaged(code), code.archive)
            for number in range(1, MAILBOX + OUTBOX_MESSAGES + 500):
                message = Message(number, MessageType.READ, "hyperty://chat.ex/1", STUB, {})
                item = PipeMessage(Word.HAND, rest=encode(message))
                await wire.dialler.send(write_message(item))
            await wire.dialler.send(write_message(PipeMessage(Word.LEAVE)))
