"""Traces by hand, as short stories: one record a line, names for addresses.

@ra                                the next records are of this process
bodies                             the process keeps bodies; it begins with this
t 15                               time is now 15
end                                the process ends orderly; else it does by itself
cut                                it does not end orderly
bus submit read 1 HA>HB by=HA      actor, what happened, verb and id, from and to, more
bus callback 200 1 HB>HA           an answer, by its code
bus rcv read 1 RA/ua>DR body={"resource":"HA"}
bus take read 1 HA>HB              permitted, submitted and admitted
bus permit read 1 HA>HB            by policy
bus add listeners HB minibus:HB    a row: table, key, value
registry start HB                  a way is looked for; done HB RA/protostub/1
x step stub_connection KEY live link-lost disconnected
x open L1 kind=p2p a=RA b=RB       a link
x write C1 version=1 by=PQ         an object
x do del O1                        it is deleted; do add O1|HB#1: a child of it
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

from fsm.judge.trace_line import FIELDS, TraceLine, read_record
from specs.message import Message, MessageType, instance_id, request_id
from specs.trace import BODIES, Kind, Op

NAMES: Final = {
    "RA": "hyperty-runtime://a.ex/ra",
    "RB": "hyperty-runtime://a.ex/rb",
    "RC": "hyperty-runtime://a.ex/rc",
    "SA": "hyperty-runtime://a.ex/ra/protostub/1",
    "SB": "hyperty-runtime://a.ex/rb/protostub/1",
    "PQ": "hyperty-runtime://a.ex/ra/p2prequester/1",
    "PH": "hyperty-runtime://a.ex/rb/p2phandler/1",
    "PC": "hyperty-runtime://a.ex/rb/p2phandler/1/conn/1",
    "HA": "hyperty://a.ex/ha",
    "HB": "hyperty://a.ex/hb",
    "HC": "hyperty://a.ex/hc",
    "C1": "connection://a.ex/c1",
    "C2": "connection://a.ex/c2",
    "O1": "comm://a.ex/o1",
    "MN": "domain://msg-node.a.ex",
    "DR": "domain://registry.a.ex",
}
"""Each stands for itself, and for what begins with it and a slash."""

_MESSAGE_OPS: Final = frozenset(
    {
        Op.SUBMIT, Op.ADMIT, Op.DENY, Op.DELIVER, Op.CALLBACK, Op.XMIT, Op.RCV, Op.PUBLISH,
        Op.RELAY, Op.QUEUE, Op.FLUSH, Op.SYNTH, Op.DROP,
    }
)  # fmt: skip
_Fields = dict[str, object]

_NAMED: Final = re.compile(f'"({"|".join(NAMES)})(?=[/"])')


def reported(text: str) -> list[TraceLine]:
    """Read a story; each process begins with `start`, and ends with `end` if not `cut`."""
    return list(_Reader().read(text))


class _Reader:
    def __init__(self) -> None:
        self._numbers: Counter[str] = Counter()
        self._over: set[str] = set()
        self._node, self._time = "ra", 0.0

    def read(self, text: str) -> Iterator[TraceLine]:
        for line in text.strip().splitlines():
            yield from self._line(line.split())
        for node in set(self._numbers) - self._over:
            self._node = node
            yield self._record("trace", {"k": Kind.END})

    def _line(self, words: list[str]) -> Iterator[TraceLine]:
        match words:
            case [node] if node.startswith("@"):
                self._node = node[1:]
            case ["t", seconds]:
                self._time = float(seconds)
            case ["bodies"]:
                yield self._record("trace", {"k": Kind.START, "kind": BODIES})
            case ["cut"]:
                self._over.add(self._node)
            case [actor, op, *rest]:
                if not self._numbers[self._node]:
                    yield self._record("trace", {"k": Kind.START})
                for fields in _facts(op, [_full(word) for word in rest]):
                    yield self._record(_full(actor), fields)

    def _record(self, actor: str, fields: _Fields) -> TraceLine:
        self._numbers[self._node] += 1
        stamp = {"run": "run", "node": self._node, "ln": self._numbers[self._node]}
        clock = {"wall_ns": 0, "mono_ns": 0, "t": self._time, "actor": actor}
        return read_record({**stamp, **clock, **fields})


def _full(word: str) -> str:
    """Replace names in a word: between its `=`, `>`, `|` and the like, and as texts of a body."""
    if word.startswith("body="):
        return _NAMED.sub(lambda found: '"' + NAMES[found[1]], word)
    for sign in ("=", ">", "|", ":", "+", "#"):
        if sign in word and "://" not in word:
            return sign.join(_full(part) for part in word.split(sign))
    head, slash, tail = word.partition("/")
    return NAMES.get(head, head) + slash + tail


def _facts(op: str, words: list[str]) -> Iterator[_Fields]:
    plain = [word for word in words if "=" not in word]
    more = dict(word.split("=", 1) for word in words if "=" in word)
    typed = {key: int(value) if FIELDS[key] is int else value for key, value in more.items()}
    if op == "take":
        by = {"by": plain[2].partition(">")[0], **typed}
        yield _permit(plain)
        yield {**_message(plain), "k": Kind.MSG, "op": Op.SUBMIT, **by}
        yield {**_message(plain), "k": Kind.MSG, "op": Op.ADMIT, **by}
    elif op == "permit":
        yield _permit(plain)
    elif op == "authz":
        yield {**_permit(plain), **typed}
    elif op in _MESSAGE_OPS:
        yield {**_message(plain), "k": Kind.MSG, "op": op, **typed}
    else:
        yield {"op": op} | _other(op, plain) | typed


def _other(op: str, plain: list[str]) -> _Fields:
    match op, plain:
        case (("add" | "upd" | "del"), [table, key, *value]):
            return {"k": Kind.TABLE, "table": table, "key": key, "val": " ".join(value)}
        case (("start" | "done"), [to, *result]):
            return {"k": Kind.RESOLVE, "to": to, "result": (result or [None])[0]}
        case "step", [machine, key, old, cause, new]:
            moved = {"machine": machine, "key": key, "old": old, "cause": cause, "new": new}
            return {"k": Kind.STATE, **moved}
        case (("open" | "close"), [link]):
            return {"k": Kind.LINK, "link": link}
        case "session", []:
            return {"k": Kind.SESSION, "op": None}
        case (("write" | "apply" | "do"), [*done, name]):
            return {"k": Kind.OBJ, "op": (done or [op])[0], "key": name}
        case _:
            raise ValueError(f"no record: {op} {plain}")


def _permit(plain: list[str]) -> _Fields:
    return {"k": Kind.AUTHZ, "decision": "permit", "mid": _message(plain)["mid"]}


def _message(plain: list[str]) -> _Fields:
    verb, number, ends = plain
    from_, to = ends.split(">")
    is_answer = verb[0].isdigit()
    code, _, source = verb.partition("@")
    body: Mapping = (
        {"code": int(code), **({"source": source} if source else {})} if is_answer else {}
    )
    kind = MessageType.RESPONSE if is_answer else MessageType(verb)
    message = Message(int(number), kind, from_, to, dict(body))
    fields: _Fields = {"mid": instance_id(message), "type": kind.value, "id": message.id}
    fields |= {"from": from_, "to": to, "digest": f"{kind}{from_}{to}"}
    if is_answer:
        fields |= {"ref": request_id(message), "code": message.code}
    return fields
