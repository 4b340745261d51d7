"""Ways to spoil one step of a scenario, so that no run can match it."""

import re
from collections.abc import Callable, Iterator

import attrs
import orjson

from fsm.machine_list import MACHINES
from tests.conformance.play.order import Order
from tests.conformance.play.script import LINK, MACHINE_WORDS
from tests.support.trace.recorded import scenario_of

BORROWED = {"send", "answer", "change", "publish", "order", "control", "forge"}
"""What is done with the message of the step behind it."""


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


def expected(lines: list[dict]) -> list[int]:
    """Numbers of the steps that are the actors' to do."""
    found, is_done = [], False
    for line in lines:
        is_done = is_done or line.get("do") in BORROWED
        if "k" in line:
            if not is_done and line["k"] in WAYS:
                found.append(line["n"])
            is_done = False
    return found


def spoilt(lines: list[dict]) -> Iterator[Spoilt]:
    """Every way to spoil every expectation of a scenario, and the ways of its cues."""
    mine = expected(lines)
    for line in (one for one in lines if "k" in one):
        number = line["n"]
        # A message that is denied reaches none of the places it was meant for.
        is_denied = any(one.get("ref") == number and one["decision"] == "deny" for one in lines)
        # If a message is ruled otherwise, it goes otherwise.
        at = (number, line["ref"]) if line["k"] == "authz" else (number,)
        for how, change in WAYS.get(line["k"], {}).items():
            # A cue is carried out as written; the actors decide its route.
            if number not in mine and how != "link":
                continue
            changed = _copy(line)
            change(changed)
            if changed != line and not (how == "part" and is_denied):
                kept = [changed if one.get("n") == number else one for one in lines]
                yield Spoilt(kept, how, at)
    yield from _swapped(lines, mine)


def _swapped(lines: list[dict], mine: list[int]) -> Iterator[Spoilt]:
    """Exchange two steps whose order the protocol fixes."""
    order = Order(scenario_of(lines))
    by_number = {line["n"]: line for line in lines if line.get("n") in mine}
    for number, later in by_number.items():
        for before in order.before(number) & by_number.keys():
            earlier = by_number[before]
            # Two changes of a row may be one.
            is_row = earlier.get("op") == later.get("op") == "upd"
            aside = {"n": 0, "cause": "", "why": ""}
            if not is_row and earlier | aside != later | aside:
                first, second = _copy(later) | {"n": before}, _copy(earlier) | {"n": number}
                swapped = {before: first, number: second}
                kept = [swapped.get(line.get("n"), line) for line in lines]
                yield Spoilt(kept, "order", tuple(range(before, number + 1)))


def _copy(line: dict) -> dict:
    return orjson.loads(orjson.dumps(line))


# ---- messages


def _type(line: dict) -> None:
    if line["msg"]["type"] in {"create", "read", "update", "delete", "execute"}:
        line["msg"]["type"] = "unsubscribe"


def _code(line: dict) -> None:
    body = line["msg"].get("body", {})
    if "code" in body:
        body["code"] = 404 if body["code"] != 404 else 200


def _by_node_or_by_link(line: dict) -> None:
    """Not by the link, but by the node, or the other way round."""
    hop = re.sub(r"[\w/]+=\w+=[\w/]+", "SAB~wire~MN.b~wire~SB", line["hop"])
    line["hop"] = hop if hop != line["hop"] else hop.replace("SAB~wire~MN.b~wire~SB", "PQ=L1=PHC")


def _place(line: dict, one: str, other: str) -> None:
    hop = line["hop"]
    line["hop"] = hop.replace(one, other) if one in hop else hop.replace(other, one)


def _node(line: dict) -> None:
    """Not for control: the nodes do not show theirs."""
    if "control" not in line:
        _place(line, "MN.a", "MN.b")


def _synthetic(line: dict) -> None:
    """Not for refusals: these are made by routers, written so or not."""
    if line["msg"].get("body", {}).get("code", 0) < 400:
        line["synthetic"] = True


def _queued(line: dict) -> None:
    if "~wire~" not in line["hop"]:
        line["queued"] = True


# ---- facts


def _state_beside(line: dict) -> str:
    """A late state of the machine that the step does not tell, if it has any."""
    name = MACHINE_WORDS[line["machine"]]
    states = ["open", "closed"] if name == LINK else [str(one) for one in MACHINES[name].states]
    return ["nowhere", *(one for one in states if one not in {line["new"], line["old"]})][-1]


def _key(line: dict) -> None:
    if line["machine"] != LINK:
        first = "hyperty-runtime://c.ex/rz"
        is_list = isinstance(line["key"], list)
        line["key"] = [first, *line["key"][1:]] if is_list else f"{first}/protostub/1"


def _val(line: dict) -> None:
    if "val" in line and line["table"] != "listeners":
        is_link = isinstance(line["val"], dict)
        line["val"] = {"status": "failed"} if is_link else "hyperty-runtime://c.ex/rz"


WAYS: dict[str, dict[str, Callable[[dict], object]]] = {
    "msg": {
        "type": _type,
        "code": _code,
        "to": lambda line: line["msg"].update(to=line["msg"]["to"] + "/elsewhere"),
        "from": lambda line: line["msg"].update({"from": line["msg"]["from"] + "/elsewhere"}),
        "body": lambda line: line["msg"].setdefault("body", {}).update(unheard="of"),
        "node": _node,
        "part": lambda line: _place(line, ".registry", ".sm"),
        "link": _by_node_or_by_link,
        "drop": lambda line: line.setdefault("drop", "overflow"),
        "synthetic": _synthetic,
        "queued": _queued,
    },
    "state": {
        "new": lambda line: line.update(new=_state_beside(line)),
        "old": lambda line: line.update(old=_state_beside(line)),
        "key": _key,
    },
    "table": {
        "op": lambda line: line.update(op="del" if line["op"] != "del" else "add"),
        "row": lambda line: line.update(key=line["key"] + "/elsewhere"),
        "val": _val,
    },
    "resolve": {"result": lambda line: line.update(result="hyperty-runtime://c.ex/rz/protostub/1")},
    "authz": {
        "decision": lambda line: line.update(
            decision="deny" if line["decision"] == "permit" else "permit"
        )
    },
}
