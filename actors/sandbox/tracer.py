"""The evidence of a sandbox: told over the pipe, believed by nobody before it is checked."""

from typing import Unpack, final

from typing_extensions import override

from actors.kit.trace import More, Tracer
from actors.pipe.outlet import Outlet
from actors.pipe.said import Said, Word
from fsm.engine import Step
from specs.message import Message
from specs.trace import Fact, Op
from transports.codec import encode

__all__ = ["PipeTracer"]


@final
class PipeTracer(Tracer):
    """Tells steps always, and hops where they are wanted and there is room for them."""

    def __init__(self, outlet: Outlet, *, hops: bool) -> None:
        self.hops = hops
        self._outlet = outlet

    @override
    def record(self, actor: str, fact: Fact) -> None:
        """Let go of it: what is neither a step nor a message is nobody's business outside."""

    @override
    def step(self, actor: str, step: Step) -> None:
        told = {"cause": step.cause, "new": step.new, "machine": step.machine, "key": step.key}
        self._outlet.put(Said(Word.STEP, 0, actor, {**told, "why": step.why}))

    @override
    def message(self, actor: str, op: Op, message: Message, **more: Unpack[More]) -> None:
        said = Said(Word.HOP, 0, actor, {"op": op.value}, encode(message))
        for name in ("listener", "stub", "link", "reason"):
            value = more.get(name)
            if isinstance(value, str):
                said.told[name] = value
        self._outlet.offer(said)
