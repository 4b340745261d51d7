"""`python -m tests.simulation`: as many runs as one likes; a run that fails is made small.

    --seeds N [--first M] [--jobs J]   seeds M to M+N-1, in J processes
    --groups                           several nodes of one domain over an engine
    --stored                           objects that are stored, on disks that are slow or fail
    --windows                          objects that keep a window of children
    --plan FILE                        one plan, as it was printed
    --digest                           print the hash of each run's trace; judge nothing

Exit code 1: a rule was broken; the shrunk plan is on stdout, to be put into a file.
"""

import argparse
import faulthandler
import logging
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path

import cattrs

from fsm.commands.judge import Progress, progress_of
from tests.simulation.plans.generation import plan_of
from tests.simulation.plans.groups import group_plan_of
from tests.simulation.plans.plan import Plan, read_plan, write_plan
from tests.simulation.plans.shrinking import shrunk
from tests.simulation.plans.stored import stored_plan_of
from tests.simulation.plans.windows import window_plan_of
from tests.simulation.world.simulator import Outcome, run

_KINDS = {"groups": group_plan_of, "stored": stored_plan_of, "windows": window_plan_of}
"""What makes plans, by option."""

_WORK = 180.0
"""Seconds of processor time that a run may take, of which most take two: while a task never rests,
no virtual time passes, so that nothing else would end the run."""

_TOLD = 4096
"""Bytes that are read at once of what other processes tell: one for each run."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seeds", type=_count, default=200)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--jobs", type=_count, default=1)
    parser.add_argument("--plan", type=_plan, metavar="FILE")
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument("--groups", action="store_true")
    kinds.add_argument("--stored", action="store_true")
    kinds.add_argument("--windows", action="store_true")
    parser.add_argument("--digest", action="store_true")
    parser.add_argument("--tell", type=int, metavar="FD", help=argparse.SUPPRESS)
    reported = parser.parse_args()
    logging.getLogger("actors").setLevel(logging.CRITICAL)
    if reported.jobs > 1:
        return _share(reported)
    made = next((_KINDS[kind] for kind in _KINDS if getattr(reported, kind)), plan_of)
    plans = map(made, range(reported.first, reported.first + reported.seeds))
    total = reported.seeds
    if reported.plan is not None:
        plans, total = iter([reported.plan]), 1
    if reported.digest:
        return _digest(plans)
    if reported.tell is not None:
        return _try(plans, Progress(lambda _done, _total: _tell(reported.tell)), total)
    with progress_of("runs", total) as progress:
        return _try(plans, progress, total)


def _tell(descriptor: int) -> None:
    os.write(descriptor, b".")


def _digest(plans: Iterator[Plan]) -> int:
    for plan in plans:
        print(plan.seed, run(plan).evidence.digest())
    return 0


def _count(text: str) -> int:
    """Read how many; none would pass without having tried anything."""
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of at least 1")
    return int(text)


def _plan(name: str) -> Plan:
    """Read the plan in a file."""
    try:
        return read_plan(Path(name).read_text())
    except OSError as exc:
        raise argparse.ArgumentTypeError(
            f"cannot read {name}: {exc.strerror}; name another file"
        ) from exc
    except (ValueError, TypeError, KeyError, cattrs.BaseValidationError) as exc:
        raise argparse.ArgumentTypeError(
            f"{name} holds no plan; take what a run that failed has printed"
        ) from exc


def _share(reported: argparse.Namespace) -> int:
    """Let processes run a part of the seeds each."""
    jobs = min(reported.jobs, reported.seeds)
    parts = [reported.seeds * job // jobs for job in range(jobs + 1)]
    command = [sys.executable, "-m", "tests.simulation"]
    command += [f"--{kind}" for kind in _KINDS if getattr(reported, kind)]
    outer, inner = os.pipe()
    command.append(f"--tell={inner}")
    running = [
        subprocess.Popen(  # noqa: S603 - ourselves
            [*command, f"--first={reported.first + start}", f"--seeds={end - start}"],
            pass_fds=[inner],
        )
        for start, end in pairwise(parts)
    ]
    os.close(inner)
    with progress_of("runs", reported.seeds) as progress, os.fdopen(outer, "rb", 0) as told:
        runs = 0
        while ended := told.read(_TOLD):
            runs += len(ended)
            progress.set(runs, reported.seeds)
    return max(job.wait() for job in running)


def _try(plans: Iterable[Plan], progress: Progress, total: int) -> int:
    began, runs, broken = time.monotonic(), 0, Counter[str]()
    for plan in plans:
        signal.signal(signal.SIGVTALRM, partial(_give_up, plan))
        signal.setitimer(signal.ITIMER_VIRTUAL, _WORK)
        outcome = run(plan)
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        runs += 1
        progress.set(runs, total)
        broken.update(outcome.broken)
        if outcome.broken:
            progress.clear()
            _report(plan, outcome)
    took = time.monotonic() - began
    progress.clear()
    reported = ", ".join(f"{rule} in {count}" for rule, count in sorted(broken.items()))
    print(f"{runs} runs in {took:.0f} s: {reported or 'nothing was broken'}", file=sys.stderr)
    return 1 if broken else 0


def _give_up(plan: Plan, *_: object) -> None:
    """Report a run that does not end, and end the process: what it has left open runs for ever."""
    faulthandler.dump_traceback()
    print(f"seed {plan.seed}: it did not end in {_WORK:g} s of processor time", file=sys.stderr)
    print(write_plan(plan), flush=True)
    os._exit(1)


def _report(plan: Plan, outcome: Outcome) -> None:
    first = outcome.breaches[0]
    print(f"seed {plan.seed}: {first.rule}: {first.what}", file=sys.stderr)
    small = shrunk(plan, lambda smaller: first.rule in run(smaller).broken)
    for breach in run(small).breaches:
        print(f"  {breach.rule}: {breach.what}", file=sys.stderr)
    print(write_plan(small), flush=True)


if __name__ == "__main__":
    sys.exit(main())
