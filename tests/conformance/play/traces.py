"""Trace files of a play, as if each process had written its own."""

from pathlib import Path
from typing import Final

import attrs
import orjson

from fsm.judge.trace_line import wire_name
from fsm.machine_list import MACHINES
from specs.trace import SCHEMA, Fact, Kind, Stamp, trace_folder
from tests.conformance.play.route import Observer

_SECOND: Final = 10**9


def write_traces(observer: Observer, directory: Path, run: str) -> None:
    """Write what the processes of a play reported, a folder for each.

    Times of records are those of the clock of the play; a nanosecond for each record keeps the
    order of records at the same time.
    """
    last = observer.items[-1].number + 1 if observer.items else 0
    end = observer.items[-1].time if observer.items else 0.0
    for who in sorted(observer.processes):
        mine = [
            (one.number, one.time, one.actor, one.fact) for one in observer.items if one.who == who
        ]
        start = Fact(k=Kind.START, val=SCHEMA, machine="|".join(sorted(MACHINES)))
        facts = [(0, 0.0, "trace", start), *mine, (last, end, "trace", Fact(k=Kind.END))]
        folder = directory / trace_folder(run, who)
        folder.mkdir(parents=True, exist_ok=True)
        lines = []
        for ln, (number, time, actor, fact) in enumerate(facts, start=1):
            now = int(time * _SECOND) + number
            stamp = Stamp(run=run, node=who, ln=ln, wall_ns=now, mono_ns=now, t=time, actor=actor)
            fields = attrs.asdict(stamp) | attrs.asdict(fact)
            row = {wire_name(name): value for name, value in fields.items() if value is not None}
            lines.append(orjson.dumps(row))
        (folder / "part-00000.jsonl").write_bytes(b"\n".join([*lines, b""]))
