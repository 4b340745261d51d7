"""What hyperties had at a node that was killed, they have again before they use it (STB-09).

The hyperties request, search, watch, report and observe all the time. They get answers, or 503
with `retryAfter`: nothing is refused because the node has forgotten whose an address is, or
where a hyperty lives.
"""

import json
from contextlib import AsyncExitStack
from signal import SIGKILL

import attrs
import pytest
import trio
import trio.testing

import actors
from actors.commands.token import issue
from actors.commands.token import make_keys as keys
from actors.runtime.config import RuntimeConfig
from tests.support.command import called
from tests.support.node.node_process import DOMAIN, UNHURRIED, node_process

pytestmark = pytest.mark.timeout(240)

CALLERS = 10
WITHIN = 60.0
"""Seconds; both cores may be busy."""

KEPT = {
    "nothing": (),
    "sessions": ("--state", "state.sqlite"),
    "records": ("--registry", "records.sqlite"),
}


class Echo(actors.Hyperty):
    async def on_request(self, message):
        return message.body.get("value")

    async def on_subscribe(self, url, observer):
        """Let every hyperty observe."""


@attrs.frozen
class FreshTokens(actors.Credentials):
    """A new login token for each session."""

    key: str
    user: str

    async def token(self, audience):
        who = ("--user", f"user://{DOMAIN}/{self.user}", "--domain", audience)
        return called(issue, "--key", self.key, *who).out[0]


@attrs.define
class Course:
    """What the hyperties were answered.

    Attributes:
        up: How often the node has started.
        wrong: Answers that nobody may get.
    """

    up: int = 0
    wrong: list = attrs.field(factory=list)

    def note(self, begun, what, code, retry_after, why):
        """Note an answer; what a killed process had may be answered by nobody (408)."""
        is_lost = code == 408 and begun < self.up
        is_later = code == 503 and (retry_after is not None or begun < self.up)
        if not (code < 300 or is_later or is_lost):
            self.wrong.append((what, code, why))


@attrs.define
class Caller:
    """A hyperty that asks, searches, watches and observes.

    Attributes:
        answers: How many requests were answered since the last start of the node.
    """

    course: Course
    hyperty: actors.Deployed
    echo: str
    answers: int = 0
    finds: int = 0
    seen: set = attrs.field(factory=set)

    async def request(self):
        while True:
            begun = self.course.up
            answer = await self.hyperty.request(self.echo, 7)
            later, why = answer.body.get("retryAfter"), answer.body.get("description")
            self.course.note(begun, "request", answer.code, later, why)
            self.answers += answer.code == 200 and begun == self.course.up
            await trio.sleep(later or 0.02)  # real time: a pace, no patience

    async def search(self):
        while True:
            begun = self.course.up
            try:
                entries = await self.hyperty.discover(resources=["echo"])
            except actors.SearchError as error:
                self.course.note(begun, "search", error.code, 0, error.reason)
            else:
                is_whole = any(entry.url == self.echo for entry in entries)
                if not is_whole:
                    self.course.wrong.append(("search", 200, "without what was registered"))
                self.finds += begun == self.course.up
            await trio.sleep(0.05)  # real time: a pace, no patience

    async def watch(self):
        async with self.hyperty.watch(resources=["echo"]) as watching:
            async for change in watching:
                self.seen.add((change.entry.url, change.change))


async def until(condition):
    with trio.fail_after(WITHIN):
        while not condition():  # noqa: ASYNC110 - other processes
            await trio.sleep(0.05)  # real time: a pace, no patience


async def killed(node):
    """Kill a node, and let its runtimes notice that their links are broken.

    They are in this process, which stands still while a node starts: what they sent first after
    that would go to the killed one.
    """
    node.process.send_signal(SIGKILL)
    node.process.wait(60.0)
    await trio.testing.wait_all_tasks_blocked()


@pytest.mark.parametrize("kept", KEPT)
async def test_a_killed_node_is_used_as_before(tmp_path, kept):
    course = Course()
    key = json.loads(called(keys, "--out", str(tmp_path / "keys")).out[0])
    files = [part if part.startswith("-") else str(tmp_path / part) for part in KEPT[kept]]

    def started(listen="127.0.0.1:0"):
        options = (
            "--domain",
            DOMAIN,
            "--jwks",
            key["jwks"],
            "--listen",
            listen,
            *files,
            *UNHURRIED,
        )
        return node_process(tmp_path / "node.log", *options)

    async with AsyncExitStack() as opened:
        with started() as node:
            url = node.ready["url"]
            here, there = [
                await opened.enter_async_context(
                    actors.open_runtime(RuntimeConfig(
                            domain=DOMAIN, name=name, node=url,
                            credentials=FreshTokens(key["key"], name),
                        )
                    )
                )
                for name in ("here", "there")
            ]  # fmt: skip
            echo = await there.deploy(Echo, resources=["echo"])
            hyperties = [await here.deploy(Echo) for _ in range(CALLERS)]
            callers = [Caller(course, hyperty, echo.url) for hyperty in hyperties]
            thing = await opened.enter_async_context(echo.report("comm", {"n": 0}))
            copies = [await opened.enter_async_context(one.observe(thing.url)) for one in hyperties]
            nursery = await opened.enter_async_context(trio.open_nursery())
            for caller in callers:
                nursery.start_soon(caller.request)
                nursery.start_soon(caller.search)
                nursery.start_soon(caller.watch)
            await until(lambda: all(one.answers > 2 and one.seen for one in callers))
            await killed(node)

        for number in (1, 2):
            with started(url.removeprefix("ws://").removesuffix("/link")) as node:
                course.up += 1
                for one in callers:
                    one.answers = one.finds = 0
                await until(lambda: all(one.answers > 2 and one.finds > 2 for one in callers))
                await thing.set("n", number)
                await until(lambda: all(copy.value["n"] == number for copy in copies))  # noqa: B023
                late = await there.deploy(Echo, resources=["echo"])
                wanted = (late.url, actors.Change.APPEARED)
                await until(lambda: all(wanted in one.seen for one in callers))  # noqa: B023
                assert course.wrong == []
                if number == 1:
                    await killed(node)
                else:
                    nursery.cancel_scope.cancel()
                    await opened.aclose()
                    assert node.complaints == []
