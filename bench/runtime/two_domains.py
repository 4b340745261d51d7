"""Between two domains: the first answer through a cold sandbox, warm latency by both topologies.

Four processes of our commands and this one, which asks; medians of requests one at a time.
"""

import statistics
import time
from pathlib import Path
from typing import Final

import click
import trio

from actors.hyperties import Caller
from bench.verdict import Verdict
from specs.reply_code import Code
from tests.system.foreign.test_two_domains import two_domains

_KIB: Final = 1024
_TOPOLOGIES: Final = ("triangle", "trapezoid")


async def _asked(caller: Caller, to: str, count: int) -> list[float]:
    seconds = []
    for number in range(count):
        begun = time.perf_counter()
        answer = await caller.request(to, number)
        seconds.append(time.perf_counter() - begun)
        assert answer.code == Code.OK, answer.body  # noqa: S101 - a figure of refusals is none
    return seconds


def _resident(pid: int) -> int:
    text = Path(f"/proc/{pid}/status").read_text()
    (line,) = [one for one in text.splitlines() if one.startswith("VmRSS")]
    return int(line.split()[1]) // _KIB


async def _measure(topology: str, count: int) -> dict[str, float]:
    async with two_domains(topology) as cast:
        cold, *warm = await _asked(cast.caller, cast.relay(1), count + 1)
        cuts = statistics.quantiles(warm, n=100)
        return {
            "first_ms": round(cold * 1e3, 1),
            "p50_ms": round(cuts[49] * 1e3, 3),
            "p99_ms": round(cuts[98] * 1e3, 3),
            "sandboxes_mib": sum(map(_resident, cast.sandboxes(0))),
        }


@click.command("bench.runtime.two_domains")
@click.option("--requests", default=1000, show_default=True, help="Requests by each topology.")
@click.option("--json", "as_json", is_flag=True, help="One object instead of sentences.")
def main(requests: int, *, as_json: bool) -> None:
    """Measure requests between two domains."""
    triangle, trapezoid = (trio.run(_measure, one, requests) for one in _TOPOLOGIES)
    Verdict(
        bench="two_domains",
        what="ms of a request between domains (p50), by both nodes / by the other domain's node",
        ours=trapezoid["p50_ms"],
        peer=triangle["p50_ms"],
        ratio=trapezoid["p50_ms"] / triangle["p50_ms"],
        reach=None,
        not_measured=("several requests at a time", "direct links"),
        figures={"triangle": triangle, "trapezoid": trapezoid},
    ).tell(as_json=as_json)


if __name__ == "__main__":
    main()
