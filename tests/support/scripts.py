"""Scenarios for tests: those of the fixture, and small ones written in place."""

import json
from pathlib import Path

from actors.play.script.steps import Scenario
from actors.play.script.reader import read_script, read_script_lines

FIXTURE = Path(__file__).parents[1] / "fixtures" / "scenarios.jsonl"


def golden(name: str) -> Scenario:
    """Return a scenario of the fixture."""
    return next(one for one in read_script(FIXTURE) if one.name == name)


def scenario(*steps: dict) -> Scenario:
    """Write a scenario: its steps without name and numbers."""
    lines = [json.dumps({"sc": "T", "n": n, **step}) for n, step in enumerate(steps, start=1)]
    (read,) = read_script_lines("test.jsonl", [line.encode() for line in lines])
    return read


def msg(hop: str, message: str, body: dict | None = None, **flags: object) -> dict:
    """Write a message step; `message` is such as `1 read HA HB`."""
    number, type_, from_, to = message.split()
    told = {"id": int(number), "type": type_, "from": from_, "to": to, "body": body or {}}
    return {"k": "msg", "hop": hop, "msg": told, **flags}


def state(machine: str, key: str, old: str | None, new: str) -> dict:
    return {"k": "state", "machine": machine, "key": key, "old": old, "new": new, "cause": ""}


def fault(what: str) -> dict:
    return {"k": "fault", "what": what}
