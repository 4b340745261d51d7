"""Records a simulated run: what users saw, what went over each link, the trace, the cores."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Final

import attrs

from actors.testing.chaos.network import ChaosLink
from tests.golden.cores import PROCESS, watched_cores
from tests.golden.form import Part, body_text, hop
from tests.golden.notes import Notes, noted_frames
from tests.simulation.judgement.history import Answered, Asked, Executed, History
from tests.simulation.plans.generation import plan_of
from tests.simulation.plans.groups import group_plan_of
from tests.simulation.plans.plan import Plan
from tests.simulation.plans.stored import stored_plan_of
from tests.simulation.world.process import NodeProcess, RuntimeProcess
from tests.simulation.world.simulator import run

KINDS: Final[Mapping[str, Callable[[int], Plan]]] = {
    "plain": plan_of,
    "group": group_plan_of,
    "stored": stored_plan_of,
}


def record_run(kind: str, seed: int, *, has_cores: bool = False) -> Part:
    """Run a seed, and record it."""
    notes = Notes()
    plan = attrs.evolve(KINDS[kind](seed), steady=True)
    with ExitStack() as stack:
        if has_cores:
            stack.enter_context(watched_cores(notes.add_core, notes.ids))
        stack.enter_context(noted_frames(notes, ChaosLink, _ends))
        stack.enter_context(_named_processes())
        outcome = run(plan)
    for process, _, at, _, fact in outcome.evidence.reported:
        grade, subject, line = hop(fact, notes.ids)
        notes.add(grade, f"{process} {subject}", line, at)
    _add_history(notes, outcome.history)
    for rule in sorted(outcome.broken):
        notes.add("users", "judgement", rule)
    return notes.part()


def _ends(link: ChaosLink) -> str:
    return f"{link._own} > {link._peer} {link.kind.value}"


@contextmanager
def _named_processes() -> Iterator[None]:
    """Let cores know in whose process they are."""
    sound = {kind: kind._live for kind in (NodeProcess, RuntimeProcess)}

    def named(live):
        async def live_named(process, *args):
            PROCESS.set(process.life)
            await live(process, *args)

        return live_named

    try:
        for kind, live in sound.items():
            kind._live = named(live)
        yield
    finally:
        for kind, live in sound.items():
            kind._live = live


def _add_history(notes: Notes, history: History) -> None:
    """Add what applications did and saw, each request and each object of somebody by itself."""
    asked = {one.number: one for one in history.remarks if isinstance(one, Asked)}
    for remark in history.remarks:
        about = attrs.asdict(remark)
        at, word = about.pop("at"), type(remark).__name__.lower()
        match remark:
            case Asked() | Answered() | Executed():
                request = asked[remark.number]
                subject = f"{request.by} asks {request.to}, request {remark.number}"
            case _:
                who = about.pop("by", "the reporter")
                subject = f"{who} {about.pop('url', '')}".strip()
        notes.add("users", subject, f"{word} {body_text(about)}", at)
    for what in history.left_over + history.different:
        notes.add("users", "left over", what)
