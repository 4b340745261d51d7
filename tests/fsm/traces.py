"""Traces by hand: state records of one process."""

from collections.abc import Iterable

from fsm.judge.trace_line import TraceLine

RUN = "run-1"
NODE = "alice"


def record(ln: int, k: str = "msg", **fields: str) -> TraceLine:
    return TraceLine(**{"run": RUN, "node": NODE, **fields}, ln=ln, k=k)


def step(path: str, key: str = "url-1", machine: str = "address") -> dict[str, str]:
    """The fields of a step, written `old trigger new`."""
    old, cause, new = path.split()
    fields = {"op": "step", "machine": machine, "key": key}
    return {**fields, "old": old, "cause": cause, "new": new}


def trace(*states: dict[str, str], ends: Iterable[str] = ("end",)) -> list[TraceLine]:
    """A whole trace of one process: `start`, the state records, `end`."""
    kinds = [("start", {}), *(("state", fields) for fields in states), *((k, {}) for k in ends)]
    return [record(ln, k, **fields) for ln, (k, fields) in enumerate(kinds, start=1)]
