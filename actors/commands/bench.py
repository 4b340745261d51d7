"""`python -m actors bench`: measure requests between two runtimes by a node."""

import math
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

import trio

from actors.cli import failure, options, own_runtime
from actors.cli.group import CommandError, ExitCode
from fsm.commands.parameters import option
from specs.jsonvalue import one_line
from specs.limits.bus import OPEN_REQUESTS
from specs.limits.protocol import BODY_BYTES
from specs.reply_code import LAST_SUCCESS

if TYPE_CHECKING:
    from actors.hyperties import Caller
    from actors.runtime.runtime import Runtime

_WARM_UP: Final = 20
"""Requests before the measurement; the first ones look up routes (ours)."""

_MOST_REQUESTS: Final = 1_000_000
_ENVELOPE: Final = 64
"""Bytes of a body beside the text of its value (ours)."""


@options.define_command("bench", has_log=True)
def command(
    *,
    run: own_runtime.RunPair = own_runtime.temporary_runtime(
        "bench", "name", own_runtime.pair_opener
    ),
    requests: int = option("N", type=options.Count(1, _MOST_REQUESTS), default=1000),
    at_once: int = option("N", type=options.Count(1, OPEN_REQUESTS), default=16),
    size: int = option(
        "BYTES", flag="--bytes", type=options.Count(0, BODY_BYTES - _ENVELOPE), default=100
    ),
    is_json: bool = options.JSON_LINES,
) -> int:
    """Measure requests from one runtime to another by a node: one at a time, then many at once.

    Each row has the requests that were answered in a second, and the time from a request to its
    answer: the median, that of 90 and of 99 in 100, and the longest. Both runtimes are in this
    process, so the processor time of both ends is part of it. Requests above the --message-rate of
    the node wait. Each runtime opens a session of its own: if a token opens one session only, take
    --token-command or --token-url.

    Args:
        requests: Requests of each of the two measurements.
        at_once: Requests that are open at once in the second measurement.
        size: Bytes of the value of each request and answer.
    """
    return run(partial(_bench, requests, min(at_once, requests), size, is_json))


async def _bench(
    requests: int,
    at_once: int,
    size: int,
    is_json: bool,  # noqa: FBT001 - by partial
    runtime: "Runtime",
    other: "Runtime",
) -> ExitCode:
    from actors.hyperties import Echo  # noqa: PLC0415 - slow to import

    to = await other.deploy("echo", Echo)
    caller, value = await own_runtime.deploy_caller(runtime), "x" * size
    table = failure.Table(
        "REQUESTS", "BYTES", "AT ONCE", "REQUESTS/S", "P50 MS", "P90 MS", "P99 MS", "MAX MS"
    )
    await _measure(caller, to, value, _WARM_UP, 1)
    for count in (1, at_once):
        figures = await _measure(caller, to, value, requests, count)
        row = {"requests": requests, "bytes": size, "at_once": count, **figures}
        if is_json:
            failure.say("bench", **row)
        else:
            table.print([tuple(f"{figure:,}" for figure in row.values())])
    return ExitCode.OK


async def _measure(
    caller: "Caller", to: str, value: str, requests: int, at_once: int
) -> dict[str, float]:
    """Send requests, and return their rate and times in milliseconds.

    Raises:
        ExceptionGroup: Of a CommandError: a request was refused.
    """
    times: list[float] = []
    numbers = iter(range(requests))
    begin = trio.current_time()
    async with trio.open_nursery() as nursery:
        for _ in range(at_once):
            nursery.start_soon(_send_each, caller, to, value, numbers, times)
    rate = requests / (trio.current_time() - begin)
    return {"per_second": round(rate, 1), **_percentiles(sorted(times))}


async def _send_each(
    caller: "Caller", to: str, value: str, numbers: Iterator[int], times: list[float]
) -> None:
    for _ in numbers:
        begin = trio.current_time()
        answer = await caller.request(to, value)
        times.append(trio.current_time() - begin)
        if answer.code > LAST_SUCCESS:
            why = one_line(str(answer.body.get("description", "no reason given")))
            raise CommandError(
                f"a request was answered {answer.code}: {why}", own_runtime.exit_code(answer.code)
            )


def _percentiles(times: Sequence[float]) -> dict[str, float]:
    """Return percentiles in milliseconds of sorted times in seconds."""
    shares = {"p50_ms": 0.5, "p90_ms": 0.9, "p99_ms": 0.99, "max_ms": 1.0}
    chosen = {name: times[math.ceil(share * len(times)) - 1] for name, share in shares.items()}
    return {name: round(seconds * 1000, 2) for name, seconds in chosen.items()}
