"""Ways to spoil one step of a scenario, so that no run can match it."""

import re
from collections.abc import Callable, Iterator

import attrs
import orjson

from fsm.machine_list import MACHINES
from tests.conformance.play.match.order import Order
from tests.conformance.play.script.steps import LINK, MACHINE_WORDS
from tests.support.trace.recorded import scenario_of

REQUESTS = ("create", "read", "update", "delete", "execute")


@attrs.frozen
class Spoilt:
    """A spoilt scenario.

    Attributes:
        lines: Its lines.
        how: What was done.
        at: Numbers of the steps that the player may name.
    """

    lines: list[dict]
    how: str
    at: tuple[int, ...]


BORROWED = {"send", "answer", "change", "publish", "order", "control", "forge"}
"""What is done with the message of the step behind it."""


def expected(lines: list[dict]) -> list[int]:
    """Numbers of the steps that are the actors' to do."""
    found, is_done = [], False
    for line in lines:
        is_done = is_done or line.get("do") in BORROWED
        if "k" in line:
            if not is_done and line["k"] not in {"time", "fault", "call", "ingest"}:
                found.append(line["n"])
            is_done = False
    return found


def spoilt(lines: list[dict]) -> Iterator[Spoilt]:
    """Every way to spoil every expectation of a scenario, and the ways of its cues."""
    mine = expected(lines)
    for line in (one for one in lines if "k" in one):
        number = line["n"]
        ways = WAYS.get(line["k"], {})
        # A cue is carried out as written; the actors decide its route.
        for how, changes in ways.items() if number in mine else [("link", _by_node_or_by_link)]:
            if how not in ways:
                continue
            changed = _copy(line)
            if changes(changed) and not (how == "part" and _is_denied(number, lines)):
                kept = [changed if one.get("n") == number else one for one in lines]
                yield Spoilt(kept, how, (number, *_blamed(line)))
    yield from _swapped(lines, mine)


def _is_denied(number: int, lines: list[dict]) -> bool:
    """A message that is denied reaches none of the places it was meant for."""
    return any(one.get("ref") == number and one["decision"] == "deny" for one in lines)


def _blamed(line: dict) -> tuple[int, ...]:
    """The message that a ruling is on: if it is ruled otherwise, it goes otherwise."""
    return (line["ref"],) if line["k"] == "authz" else ()


def _swapped(lines: list[dict], mine: list[int]) -> Iterator[Spoilt]:
    """Exchange two steps whose order the protocol fixes."""
    order = Order(scenario_of(lines))
    by_number = {line["n"]: line for line in lines if line.get("n") in mine}
    for number, later in by_number.items():
        for before in {one for one, _ in order.before(number)} & by_number.keys():
            earlier = by_number[before]
            if _is_alike(earlier, later):
                continue
            first, second = _copy(later) | {"n": before}, _copy(earlier) | {"n": number}
            swapped = {before: first, number: second}
            kept = [swapped.get(line.get("n"), line) for line in lines]
            yield Spoilt(kept, "order", tuple(range(before, number + 1)))


def _is_alike(one: dict, other: dict) -> bool:
    """Two that are written alike, and two changes of a row, which may be one."""
    if one.get("op") == other.get("op") == "upd":
        return True
    aside = {"n", "cause", "why"}
    return all(one.get(key) == other.get(key) for key in (one.keys() | other.keys()) - aside)


def _copy(line: dict) -> dict:
    return orjson.loads(orjson.dumps(line))


# ---- messages


def _another_type(line: dict) -> bool:
    if line["msg"]["type"] not in REQUESTS:
        return False
    line["msg"]["type"] = "unsubscribe"
    return True


def _another_code(line: dict) -> bool:
    body = line["msg"].get("body", {})
    if "code" not in body:
        return False
    body["code"] = 404 if body["code"] != 404 else 200
    return True


def _another_receiver(line: dict) -> bool:
    line["msg"]["to"] += "/elsewhere"
    return True


def _another_sender(line: dict) -> bool:
    line["msg"]["from"] += "/elsewhere"
    return True


def _more_in_the_body(line: dict) -> bool:
    line["msg"].setdefault("body", {})["unheard"] = "of"
    return True


def _another_node(line: dict) -> bool:
    """Not for control: the nodes do not show theirs."""
    return "control" not in line and _another_word(line, "MN.a", "MN.b")


def _another_part(line: dict) -> bool:
    return _another_word(line, ".registry", ".sm")


def _by_node_or_by_link(line: dict) -> bool:
    """Not by the link, but by the node, or the other way round."""
    hop = line["hop"]
    line["hop"] = re.sub(r"[\w/]+=\w+=[\w/]+", "SAB~wire~MN.b~wire~SB", hop)
    if line["hop"] == hop:
        line["hop"] = hop.replace("SAB~wire~MN.b~wire~SB", "PQ=L1=PHC")
    return line["hop"] != hop


def _another_word(line: dict, one: str, other: str) -> bool:
    hop = line["hop"]
    line["hop"] = hop.replace(one, other) if one in hop else hop.replace(other, one)
    return line["hop"] != hop


def _dropped(line: dict) -> bool:
    is_reported = "drop" in line
    line["drop"] = "overflow"
    return not is_reported


def _made_by_a_router(line: dict) -> bool:
    """Not for refusals: these are made by routers, written so or not."""
    line["synthetic"] = True
    return line["msg"].get("body", {}).get("code", 0) < 400


def _queued(line: dict) -> bool:
    is_reported = line.get("queued")
    line["queued"] = True
    return not is_reported and "~wire~" not in line["hop"]


# ---- facts


def _another_state(line: dict) -> bool:
    line["new"] = _state_beside(line)
    return True


def _another_old_state(line: dict) -> bool:
    line["old"] = _state_beside(line)
    return True


def _state_beside(line: dict) -> str:
    """A late state of the machine that the step does not tell, if it has any."""
    name = MACHINE_WORDS[line["machine"]]
    states = ["open", "closed"] if name == LINK else [str(one) for one in MACHINES[name].states]
    beside = [one for one in states if one not in {line["new"], line["old"]}]
    return beside[-1] if beside else "nowhere"


def _another_entity(line: dict) -> bool:
    if isinstance(line["key"], list):
        line["key"][0] = "hyperty-runtime://c.ex/rz"
    else:
        line["key"] = "hyperty-runtime://c.ex/rz/protostub/1"
    return line["machine"] != LINK


def _another_op(line: dict) -> bool:
    line["op"] = "del" if line["op"] != "del" else "add"
    return True


def _another_row(line: dict) -> bool:
    line["key"] += "/elsewhere"
    return True


def _another_value(line: dict) -> bool:
    if "val" not in line:
        return False
    is_link = isinstance(line["val"], dict)
    line["val"] = {"status": "failed"} if is_link else "hyperty-runtime://c.ex/rz"
    return line["table"] != "listeners"


def _another_route(line: dict) -> bool:
    line["result"] = "hyperty-runtime://c.ex/rz/protostub/1"
    return True


def _another_ruling(line: dict) -> bool:
    line["decision"] = "deny" if line["decision"] == "permit" else "permit"
    return True


WAYS: dict[str, dict[str, Callable[[dict], bool]]] = {
    "msg": {
        "type": _another_type,
        "code": _another_code,
        "to": _another_receiver,
        "from": _another_sender,
        "body": _more_in_the_body,
        "node": _another_node,
        "part": _another_part,
        "link": _by_node_or_by_link,
        "drop": _dropped,
        "synthetic": _made_by_a_router,
        "queued": _queued,
    },
    "state": {"new": _another_state, "old": _another_old_state, "key": _another_entity},
    "table": {"op": _another_op, "row": _another_row, "val": _another_value},
    "resolve": {"result": _another_route},
    "authz": {"decision": _another_ruling},
}
