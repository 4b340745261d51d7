"""Cost of the monitor of a runtime for a message.

A request and its answer pass what a runtime's bus does for its tracer: the transaction steps, and
every hop is reported. That is done with the monitor and without, by turns, in one process.
"""

import gc
import time
from typing import Final

import click
import trio

from actors.kit.counters import Counters
from actors.kit.self_check import SelfCheck
from actors.kit.trace import NULL_TRACER, Tracer
from actors.policy.engine import Decision, Ruling
from actors.runtime.hop_trace import HopTrace
from bench.verdict import Verdict
from fsm.bus.transactions import TransactionsCore
from specs.message import Message, MessageType, reply_to
from specs.reply_code import Code
from specs.trace import Op

REACH: Final = 1.0
"""Microseconds of CPU that the monitor may cost a message."""

_MICRO: Final = 1e6
_PERMIT: Final = Ruling(Decision.PERMIT, "")
_HOME: Final = "hyperty-runtime://a.example/local"
_ONE: Final = "hyperty://a.example/1"
_OTHER: Final = "hyperty://a.example/2"


async def measure(requests: int, rounds: int) -> tuple[float, float]:
    """Return microseconds of CPU for what is reported of a message: without the monitor, with it.

    Args:
        requests: How many in a round.
        rounds: How many rounds; the best of each counts.
    """
    watched = SelfCheck.of(NULL_TRACER, "local", _HOME, Counters())
    best = dict.fromkeys((False, True), float("inf"))
    first = 0
    for turn in range(2 * rounds):
        is_watched = bool(turn % 2)
        made = [Message(first + n, MessageType.CREATE, _ONE, _OTHER) for n in range(requests)]
        first += requests
        taken = _taken(watched if is_watched else NULL_TRACER, made)
        best[is_watched] = min(best[is_watched], taken / (2 * requests) * _MICRO)
    return best[False], best[True]


def _taken(tracer: Tracer, requests: list[Message]) -> float:
    """Return the seconds of CPU for what is reported of requests and their answers."""
    hops = HopTrace(tracer, "bus", Counters())
    core: TransactionsCore[None] = TransactionsCore(hops.steps)
    both = [(request, reply_to(request, Code.OK)) for request in requests]
    gc.collect()
    began = time.process_time()
    for request, response in both:
        hops.decided(request, _PERMIT)
        hops.submitted(request, _ONE)
        hops.step(core.open(request, None, 0.0))
        hops.say(Op.DELIVER, request, listener=_OTHER)
        hops.submitted(response, _OTHER)
        hops.step(core.answered(response, 0.0).step)
        hops.say(Op.CALLBACK, response)
    return time.process_time() - began


@click.command("bench.monitor")
@click.option("--requests", default=20_000, show_default=True, help="Requests in a round.")
@click.option("--rounds", default=7, show_default=True, help="Rounds the best is taken of.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def main(requests: int, rounds: int, *, as_json: bool) -> None:
    """Measure what the monitor costs; exit with 1 if that is too much."""
    without, watched = trio.run(measure, requests, rounds)
    cost = watched - without
    Verdict(
        bench="monitor",
        what="us of CPU for what is reported of a message, with the monitor / without",
        ours=watched,
        peer=without,
        ratio=watched / without,
        reach=None,
        missed=() if cost <= REACH else (f"{cost:.2f} us of {REACH:.2f} us a message",),
        not_measured=("the rest of the route of a message, which is the same",),
        figures={"cost_us": round(cost, 3), "cost_us_to_reach": REACH},
    ).tell(as_json=as_json)


if __name__ == "__main__":
    main()
