"""Evidence that can be waited for."""

from collections.abc import Awaitable, Callable

from typing_extensions import override

from fsm.judge.replay import Judgement
from fsm.judge.trace_line import read_record
from fsm.judge.verdict import judge
from specs.trace import Fact, Kind
from tests.support.trace.growing import Growing
from tests.support.trace.memory import MemoryTracer
from tests.support.trace.trace_files import records, whole


class AwaitableTracer(MemoryTracer):
    """Keeps everything, in order.

    Attributes:
        records: What was reported, each with its reporter.
        news: The part of it that is not of messages.
    """

    def __init__(self) -> None:
        super().__init__()
        self.news: Growing[Fact] = Growing()

    @override
    def record(self, actor: str, fact: Fact) -> None:
        super().record(actor, fact)
        if fact.k is not Kind.MSG:
            self.news.append(fact)

    def judged(self) -> Judgement:
        """What is judged of it all; whoever reported it has ended."""
        return judge(read_record(line) for line in records(whole(self.facts)))

    async def until(self, is_so: Callable[[], Awaitable[bool]]) -> None:
        """Wait until something is so, and look at it whenever there is news."""
        seen = len(self.news)
        while not await is_so():
            await self.news.until(lambda news, seen=seen: len(news) > seen)
            seen = len(self.news)
