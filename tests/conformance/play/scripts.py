"""Scenarios for tests: those of the fixture, and small ones written in place."""

import json
from pathlib import Path

from tests.conformance.play.script.reader import read_script, read_script_lines
from tests.conformance.play.script.steps import Scenario

FIXTURE = Path(__file__).parents[2] / "fixtures" / "scenarios.jsonl"


def golden(name: str) -> Scenario:
    """Return a scenario of the fixture."""
    return next(one for one in read_script(FIXTURE) if one.name == name)


TWO = (
    {"given": "node", "domain": "a.ex"},
    {"given": "node", "domain": "b.ex"},
    {"given": "runtime", "is": "RA", "p2p": True},
    {"given": "runtime", "is": "RB", "p2p": True},
    {"given": "hyperty", "is": "HA", "in": "RA"},
    {"given": "hyperty", "is": "HA2", "in": "RA"},
    {"given": "hyperty", "is": "HB", "in": "RB"},
    {"given": "hyperty", "is": "hyperty://b.ex/zoe", "in": "RB"},
)
"""Two runtimes of two domains, and four hyperties."""


def written(*lines: dict, name: str = "T") -> list[dict]:
    """Put a name before all lines, and numbers before the steps."""
    steps = (one for one in range(1, len(lines) + 1))
    return [{"sc": name, **({"n": next(steps)} if "k" in one else {}), **one} for one in lines]


def scenario(*lines: dict, given: tuple[dict, ...] = TWO) -> Scenario:
    """Write a scenario: its lines without name and numbers."""
    raw = [json.dumps(one).encode() for one in written(*given, *lines)]
    (read,) = read_script_lines("test.jsonl", raw)
    return read


def done(by: str, step: dict) -> tuple[dict, dict]:
    """Have a hyperty send, or answer with, the message of a step."""
    is_answer = step["msg"]["type"] == "response"
    return {"do": "answer" if is_answer else "send", "by": by}, step


def msg(hop: str, message: str, body: dict | None = None, **flags: object) -> dict:
    """Write a message step; `message` is such as `1 read HA HB`."""
    number, type_, from_, to = message.split()
    reported = {"id": int(number), "type": type_, "from": from_, "to": to, "body": body or {}}
    return {"k": "msg", "hop": hop, "msg": reported, **flags}


def state(machine: str, key: str, old: str | None, new: str) -> dict:
    return {"k": "state", "machine": machine, "key": key, "old": old, "new": new, "cause": ""}


def time(seconds: float) -> dict:
    return {"k": "time", "dt": seconds}
