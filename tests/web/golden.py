"""What the Python side makes of many inputs: the browser runtime has to make the same of them."""

import json
import re
from collections.abc import Callable
from random import Random

import attrs

from actors.kit.trace import digest
from fsm.effects import RowChanged
from fsm.engine import Entity, Step
from fsm.limits.rates import Rate
from fsm.machine_list import MACHINES
from fsm.machines.p2p_connection import State
from fsm.registry import changes
from fsm.registry.resolve.address_owners import RecordCache
from fsm.registry.resolve.links import LinkTable
from fsm.registry.resolve.searches import RequesterPlan, ResolveJobs
from fsm.session.stub_client import SessionAnswered, StubClientCore, StubPort
from fsm.table import Table, UndeclaredTransitionError
from specs.addresses.address import canonical, domain_of, is_backend
from specs.bodies.word import Operation, SessionMethod
from specs.dialects.normalise import normal_address
from specs.errors import BadUrlError
from specs.identity import READ, write_sender
from specs.message import Message, MessageType, instance_id
from specs.reply_code import Code
from tests.fuzz.texts import Texts, valid
from tests.support import link_calls
from tests.support.runtime.registry_core import Call, RecordingPort
from tests.web.npm import WEB
from tests.web.object_cases import camel
from transports.codec import BadLine, decode_line

RUNTIME = "hyperty-runtime://a.ex/ra"
STUB = f"{RUNTIME}/protostub/1"
JITTER = 0.25
WALKS = 12
STEPS = 14


def golden(seed: int = 1) -> dict:
    """Return inputs with results, as JSON."""
    dice = Random(seed)  # noqa: S311 - inputs of a test
    lines = [*valid(), *_texts(dice, 2500), *ODD_LINES]
    return {
        "addresses": [_address(text) for text in sorted({*_addresses(lines), *ODD_ADDRESSES})],
        "lines": [_line(text) for text in lines],
        "walks": [
            _walk(MACHINES[name], dice)
            for name in machines_of_the_browser_runtime()
            for _ in range(WALKS)
        ],
        "sessions": [
            *(_session(dice, _happened) for _ in range(150)),
            *(_session(dice, _logs_in) for _ in range(40)),
            *(_session(dice, _crowds) for _ in range(5)),
        ],
        "tables": [_links(dice) for _ in range(150)],
        "lists": [_lists(dice) for _ in range(100)],
        "stub": STUB,
        "jitter": JITTER,
    }


# ---- addresses and messages

ODD_ADDRESSES = (
    "", "a", "a://", "A://B.ex/C/", "hyperty://a.ex//", "hyperty://a.ex/../x", "hyperty://a..ex",
    "runtime://A.EX/ra/", "hyperty://a.ex/\u00e4", "hyperty://a.ex/x y", "1a://b/c", "a+b.c-d://e",
    "comm://a.ex/1/resources/child", "comm://a.ex/1/resources", "comm://a.ex/1/children/resources",
    "domain://msg-node.a.ex/hyperty-address-allocation", "domain://MSG-NODE.a.ex/x/", "x://-a",
    "hyperty://a.ex/\ud83d\ude00", "hyperty://a.ex/" + "x" * 2048, "domain-idp://a.ex/x",
    "hyperty://a.ex/user://b.ex/alice", "global://registry", "a://b_c/@", "a://b:80/c", "a\n://b",
    "hyperty://a.ex/x\n", "hyperty://a.ex\n/x",
)  # fmt: skip
ODD_LINES = (
    "", "[]", "7", "null", "{}", "{", "\ufeff{}", '{"id":1,"id":2}', '{"a":NaN}', '{"a":1e999}',
    '{"id":1,"type":"read","from":"hyperty://a.ex/1","to":"hyperty://a.ex/2","body":{"a":"\\ud800"}}',
    '{"id":1,"type":"read","from":"hyperty://a.ex/1","to":"hyperty://a.ex/2","body":{"\\udc00":1}}',
    '{"id":1,"type":"read","from":"hyperty://a.ex/1","to":"hyperty://a.ex/2","body":{"__proto__":{"code":1}}}',
    '{"id":1,"type":"response","from":"hyperty://a.ex/1","to":"hyperty://a.ex/2","body":{"__proto__":{"code":200}}}',
    '{"__proto__":{"id":1,"type":"read"},"from":"hyperty://a.ex/1","to":"hyperty://a.ex/2","body":{}}',
    '{"id":1,"type":"constructor","from":"hyperty://a.ex/1","to":"hyperty://a.ex/2","body":{}}',
    '{"id":1,"type":"response","from":"hyperty://a.ex/1","to":"hyperty://a.ex/2","body":{"code":"toString"}}',
    '{"id":1,"type":"update","from":"hyperty://a.ex/1","to":"hyperty://a.ex/2/status","body":{"value":"constructor"}}',
    '{"id":9007199254740992,"type":"read","from":"hyperty://a.ex/1","to":"hyperty://a.ex/2"}',
    '{"id":true,"type":"read","from":"hyperty://a.ex/1","to":"hyperty://a.ex/2"}',
    '{"id":"12","type":"READ","from":"hyperty://a.ex/1/","to":["hyperty://a.ex/2"]}',
    json.dumps({"id": 1, "type": "read", "from": "hyperty://a.ex/1", "to": "hyperty://a.ex/2",
                "body": {"n": [1.0, 1.5, 1e16, 1e-5, 1.5e-7, 1e21, -0.0, 0.1, 5e-324, 1e300]}}),
    json.dumps({"id": 1, "type": "read", "from": "hyperty://a.ex/1", "to": "hyperty://a.ex/2",
                "body": {"\uffff": 1, "\U00010000": 2, "a": "\x7f\u2028\x01\t"}}),
    json.dumps({"id": 1, "type": "read", "from": "hyperty://a.ex/1", "to": "hyperty://a.ex/2",
                "body": {"identity": {"runtime": "runtime://a.ex/ra/", "user": "user://a.ex/b",
                                      "vouchedBy": "domain"}}}),
    json.dumps({"id": 1, "type": "read", "from": "hyperty://a.ex/1", "to": "hyperty://a.ex/2",
                "body": {"identity": {"runtime": "runtime://a.ex/ra", "vouchedBy": "domain"}}}),
    *(json.dumps({"id": 1, "type": "read", "from": "hyperty://a.ex/1", "to": "hyperty://a.ex/2",
                  "body": body})
      for body in (
          {"a": "x" * 16_384}, {"a": "x" * 16_385}, {"a": "\u00e4" * 16_385}, {"x" * 16_385: 1},
          dict.fromkeys(map(str, range(256))), dict.fromkeys(map(str, range(257))),
          {"a": ["x" * 16_000] * 4}, {"a": ["x" * 16_000] * 5},
      )),
    *(json.dumps({"id": 1, "type": "read", "from": "hyperty://a.ex/1", "to": "hyperty://a.ex/2",
                  "body": {"a": "#"}}).replace('"#"', "[" * depth + "]" * depth)
      for depth in (29, 30, 31, 32)),
)  # fmt: skip


def _texts(dice: Random, count: int) -> list[str]:
    maker = Texts(dice, RUNTIME)
    texts = [maker.spoilt(maker.text()) if at % 4 == 0 else maker.text() for at in range(count)]
    return [text.decode() for text in texts if _is_text(text) and not _is_hidden(text)]


def _is_text(text: bytes) -> bool:
    """Whether a WebSocket would bring it, in one line."""
    try:
        return "\n" not in text.decode()
    except UnicodeDecodeError:
        return False


def _is_hidden(text: bytes) -> bool:
    """Whether a browser does not see that it is no JSON: another value of the key follows."""
    try:
        json.loads(text, object_pairs_hook=_once)
    except _TwiceError:
        return re.search(rb"e400|\d{300}|\\u[dD]", text) is not None
    except ValueError:
        pass
    return False


class _TwiceError(Exception):
    pass


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    if len(dict(pairs)) < len(pairs):
        raise _TwiceError
    return dict(pairs)


def _addresses(lines: list[str]) -> set[str]:
    found = set()
    for line in lines:
        try:
            message = json.loads(line)
        except ValueError:
            continue
        if isinstance(message, dict):
            found |= {one for one in map(message.get, ("from", "to")) if isinstance(one, str)}
    return found


def _address(text: str) -> dict:
    try:
        plain = canonical(text)
    except BadUrlError:
        return {"text": text, "canonical": None}
    return {
        "text": text,
        "canonical": plain,
        "normal": normal_address(text),
        "domain": domain_of(plain),
        "isBackend": is_backend(plain),
    }


def _line(text: str) -> dict:
    read = decode_line(text.encode(), READ)
    if isinstance(read, BadLine):
        answer = None if read.answer is None else _message(read.answer)
        if answer is not None:
            del answer["body"]["description"]
        return {"text": text, "code": int(read.error.code), "answer": answer}
    return {
        "text": text,
        "message": _message(read),
        "instance": instance_id(read),
        "digest": digest(read),
        "isEvent": read.is_event,
        "isRequest": read.is_request,
    }


def _message(message: Message) -> dict:
    plain = {
        "id": message.id,
        "type": message.type.value,
        "from": message.from_,
        "to": message.to,
        "body": message.body,
    }
    if message.identity is not None:
        sender = {"user": None, **write_sender(message.identity)}
        plain["identity"] = sender
    return plain


# ---- machines


def machines_of_the_browser_runtime() -> list[str]:
    """Return the names of the machines that it has: nodes have others."""
    written = (WEB / "src" / "machines.js").read_text()
    return re.findall(r"^  (\w+): \{$", written, re.MULTILINE)


def _walk(table: Table, dice: Random) -> dict:
    """Give random triggers to an entity; a refusal does not move it."""
    entity = Entity(table, "one")
    conditions = list(table.conditions)
    triggers, steps = list(table.triggers), []
    for _ in range(STEPS):
        allowed = [one for one in triggers if table.rows_for(_state(entity), one)]
        trigger = dice.choice(allowed or triggers) if dice.random() < 0.8 else dice.choice(triggers)
        given = [one for one in conditions if dice.random() < 0.5]
        try:
            entity.step(trigger, given=frozenset(given))
            is_refused = False
        except UndeclaredTransitionError:
            is_refused = True
        patience = entity.patience
        steps.append({
            "trigger": trigger.value,
            "given": [one.value for one in given],
            "isRefused": is_refused,
            "state": None if entity.state is None else entity.state.value,
            "patience": None if patience == float("inf") else patience,
            "mayEnd": entity.may_end,
        })  # fmt: skip
    return {"machine": table.name, "steps": steps}


def _state(entity: Entity) -> str:
    return "[*]" if entity.state is None else entity.state.value


# ---- sessions of a stub


TELL = link_calls.Calls(StubClientCore)


def _answer(*about, **more) -> link_calls.Call:
    return TELL.take_answer(SessionAnswered(*about, **more))


_Happens = Callable[[Random, StubClientCore, list[Message]], list[link_calls.Call]]


def _session(dice: Random, happens: _Happens) -> dict:
    """Feed a stub's core with what may happen, and with what may not."""
    token = "first" if dice.random() < 0.2 else None
    owner = RUNTIME if dice.random() < 0.7 else None
    port = link_calls.RecordingPort(StubPort)
    core = StubClientCore(STUB, port, lambda: JITTER, token, owner, may_end=True)
    now, sent, steps = 100.0, [], []
    core.begin()
    begun = [_asked(one) for one in port.take()]
    for _ in range(40):
        now += dice.choice((0.0, 0.001, 0.3, 0.6, 2.0, 11.0, 25.0))
        deadline = core.deadline()
        if deadline != float("inf") and dice.random() < 0.4:
            now = max(now, deadline)
        happened = happens(dice, core, sent)
        for call in happened:
            link_calls.make(call, core, now)
        asked = [_asked(one) for one in port.take()]
        deadline = core.deadline()
        steps.append({
            "now": now,
            "calls": [_made(one) for one in happened],
            "asked": asked,
            "deadline": None if deadline == float("inf") else deadline,
            "queued": core.queued,
        })  # fmt: skip
    return {"token": token, "owner": owner, "begun": begun, "steps": steps}


def _logs_in(dice: Random, core: StubClientCore, sent: list[Message]) -> list[link_calls.Call]:
    """Have logins refused one after the other, and some accepted in between."""
    match core.link:
        case "dialling":
            return [TELL.dialled()]
        case "opening" | "proving":
            method = SessionMethod.REOPEN if core.has_session else SessionMethod.OPEN
            if not core.sessions or dice.random() < 0.4:
                return [_answer(method, Code.OK, "t")]
            login = dice.choice("abcdefgh")
            return [_answer(method, Code.UNAUTHENTICATED, login=login)]
        case "open" if dice.random() < 0.9:
            return [TELL.lose_link("broken")]
        case "paused":
            return [TELL.time_over()]
    return _happened(dice, core, sent)


def _crowds(dice: Random, core: StubClientCore, sent: list[Message]) -> list[link_calls.Call]:
    """Have more sent than there is room for."""
    roll = dice.random()
    match core.link:
        case "dialling":
            return [TELL.dialled()]
        case "opening":
            method = SessionMethod.REOPEN if core.has_session else SessionMethod.OPEN
            pace, is_emptied = dice.choice((None, Rate(2.0, 3))), roll < 0.7
            return [_answer(method, 200, "t", is_emptied=is_emptied, pace=pace)]
        case "paused" if roll < 0.7:
            return [TELL.time_over()]
        case "open" | "renewing" if roll < 0.4:
            return [
                dice.choice((TELL.lose_link("broken"), TELL.note_written(700), TELL.note_life()))
            ]
    kind = dice.choice((MessageType.CREATE, MessageType.RESPONSE))
    body = {"code": 200} if kind is MessageType.RESPONSE else {}
    new = [
        Message(len(sent) + nth, kind, "hyperty://a.ex/1", "hyperty://a.ex/2", body)
        for nth in range(1, 301)
    ]
    sent += new
    return [TELL.send(one) for one in new]


def _happened(dice: Random, core: StubClientCore, sent: list[Message]) -> list[link_calls.Call]:
    return [_one_of(dice, core, sent)]


def _one_of(dice: Random, core: StubClientCore, sent: list[Message]) -> link_calls.Call:
    link = core.link
    roll = dice.random()
    if link == "dialling" and roll < 0.6:
        return TELL.dialled() if roll < 0.45 else TELL.lose_link("refused")
    if link in {"opening", "proving"} and roll < 0.7:
        method = SessionMethod.REOPEN if core.has_session else SessionMethod.OPEN
        return _answered(dice, method)
    if link == "renewing" and roll < 0.2:
        return TELL.end_renewal(core.sessions - dice.choice((0, 0, 0, 1)))
    if roll < 0.2:
        source = dice.choice((None, RUNTIME, "hyperty://a.ex/1"))
        body = {} if source is None else {"source": source}
        kind = dice.choice((MessageType.SUBSCRIBE, MessageType.CREATE, MessageType.READ))
        to = dice.choice(("domain://msg-node.a.ex/sm", "domain://registry.b.ex"))
        sent.append(Message(len(sent) + 1, kind, f"{RUNTIME}/registry", to, body))
        return TELL.send(sent[-1])
    if roll < 0.45:
        kind = dice.choice((MessageType.CREATE, MessageType.RESPONSE))
        to = dice.choice(("hyperty://a.ex/2", "hyperty://a.ex/2/events"))
        body = {"code": 200} if kind is MessageType.RESPONSE else {}
        sent.append(Message(len(sent) + 1, kind, "hyperty://a.ex/1", to, body))
        return TELL.send(sent[-1])
    return dice.choice((
        TELL.connect(), TELL.dialled(), TELL.lose_link("broken"), TELL.note_life(),
        TELL.note_written(1), TELL.note_written(3), TELL.time_over(), TELL.time_over(),
        TELL.time_over(), TELL.note_statement(200.0),
        _answer(SessionMethod.PING, 200), _answered(dice, SessionMethod.OPEN),
        _answer(SessionMethod.CLOSE, 200),
        TELL.disconnect() if dice.random() < 0.3 else TELL.note_life(),
        TELL.forget(dice.choice(sent)) if sent else TELL.note_life(),
    ))  # fmt: skip


def _answered(dice: Random, method: SessionMethod) -> link_calls.Call:
    code = dice.choice((200, 200, 200, 401, 401, 410, 409, 403, 503, 100))
    if code == Code.OK:
        pace = dice.choice((None, None, Rate(2.0, 3), Rate(1000.0, 2000)))
        is_emptied = dice.random() < 0.2
        return _answer(method, code, "fresh", is_emptied=is_emptied, pace=pace)
    challenge = "sign this" if code == Code.UNAUTHENTICATED and dice.random() < 0.5 else None
    is_lasting = code == Code.CONFLICT and dice.random() < 0.5
    why = dice.choice(("", "no"))
    login = dice.choice(("", "one", "two", "three", "four", "five", "six"))
    return _answer(method, code, why=why, challenge=challenge, is_lasting=is_lasting, login=login)


def _made(call: link_calls.Call) -> list:
    """Return a call of a core as a page makes it."""
    return [camel(call.name), *(_given(value) for _, value in call.arguments)]


def _given(value: object) -> object:
    match value:
        case SessionAnswered():
            pace = value.pace
            rate = pace and {"perSecond": pace.per_second, "burst": pace.burst}
            fields = attrs.asdict(value, recurse=False)
            told = {camel(name): one for name, one in fields.items() if name != "pace"}
            return told | {"method": value.method.value, "rate": rate}
        case Message():
            return _message(value)
        case _:
            return value


def _asked(asked: Step | link_calls.Call) -> list:
    """Return what a core asks for as a page does, messages by their ids."""
    if isinstance(asked, Step):
        return ["step", {"do": "step", **attrs.asdict(asked), "old": asked.old or "[*]"}]
    given = [
        value.id if isinstance(value, Message) else getattr(value, "value", value)
        for _, value in asked.arguments
    ]
    return [camel(asked.name), *given]


# ---- tables of direct links

REMOTES = ("hyperty-runtime://a.ex/aa", "hyperty-runtime://b.ex/rb", "hyperty-runtime://a.ex/zz")
ENTITIES = ("hyperty://a.ex/1", "hyperty://b.ex/2", "hyperty://a.ex/3")


def _links(dice: Random) -> dict:
    """Give a table what stubs, nodes and peers may report, in any order."""
    port = RecordingPort()
    table = LinkTable(RUNTIME, port, ResolveJobs(port), RecordCache())
    now, steps = 100.0, []
    for _ in range(60):
        now += dice.choice((0.0, 0.001, 0.5, 1.0, 4.0))
        if table.deadline() != float("inf") and dice.random() < 0.2:
            now = max(now, table.deadline())
        name, given = _report(dice, table)
        owner = table.entities if name in {"bind", "unbind"} else table
        try:
            getattr(owner, LINK_CALLS.get(name, name))(*_python_args(name, given, now))
        except UndeclaredTransitionError:
            # No stub reports that.
            break
        deadline = table.deadline()
        steps.append({
            "now": now,
            "call": name,
            "given": given,
            "asked": [_table_asks(call) for call in port.take()],
            "deadline": None if deadline == float("inf") else deadline,
            "live": [table.live_link(one) for one in (*REMOTES, *ENTITIES)],
        })  # fmt: skip
    return {"runtime": RUNTIME, "asked": [*REMOTES, *ENTITIES], "steps": steps}


LINK_CALLS = {"pathSet": "path_set", "timeOver": "tick"}


def _python_args(name: str, given: list, now: float) -> list:
    match name:
        case "plan":
            return [RequesterPlan(**given[0]), now]
        case "status":
            link = given[0]["link"] or given[0]["stub"]
            return [given[0]["stub"], given[0]["value"], given[0]["resource"], link, now]
        case "bind" | "unbind" | "close":
            return given
        case _:
            return [*given, now]


def _report(dice: Random, table: LinkTable) -> tuple[str, list]:
    remote = dice.choice(REMOTES)
    handled = f"{RUNTIME}/p2phandler/1"
    stubs = [end.stub for entry in table.entries() for end in entry.ends]
    links = [end.link for entry in table.entries() for end in entry.ends]
    url = dice.choice([*stubs, f"{RUNTIME}/p2prequester/1", handled])
    link = dice.choice([*links, f"{handled}/pc/{dice.randrange(1, 9)}"])
    refusal = dice.choice((None, None, None, "no"))
    roll = dice.random()
    if roll < 0.15:
        handler = f"{remote}/p2phandler/1"
        return "plan", [{"remote": remote, "handler": handler, "descriptor": "x"}]
    if roll < 0.25:
        return "pathSet", [url, refusal]
    if roll < 0.65:
        return "status", [_status(dice, table, remote)]
    if roll < 0.8:
        return "registered", [link, refusal]
    if roll < 0.85:
        return "bind", [dice.choice(ENTITIES), remote]
    return dice.choice((
        ("timeOver", []), ("timeOver", []), ("unbind", [dice.choice(ENTITIES)]), ("gone", [url]),
        ("over", [url, link]), ("forged", [link]),
        ("close", []) if dice.random() < 0.1 else ("timeOver", []),
    ))  # fmt: skip


def _status(dice: Random, table: LinkTable, remote: str) -> dict:
    value = dice.choice([state.value for state in State])
    ends = [end for entry in table.entries() for end in entry.ends]
    if ends and dice.random() < 0.7:
        end = dice.choice(ends)
        if dice.random() < 0.5:
            # As most links go.
            value = {"created": "in-progress", "in-progress": "live"}.get(end.status.value, value)
        link = None if end.link == end.stub and dice.random() < 0.5 else end.link
        return {"stub": end.stub, "link": link, "resource": end.remote, "value": value}
    handled = f"{RUNTIME}/p2phandler/1"
    stub = dice.choice((handled, handled, f"{RUNTIME}/p2prequester/1"))
    link = f"{handled}/pc/{dice.randrange(1, 9)}" if stub == handled else stub
    kind = "created" if dice.random() < 0.6 else value
    return {"stub": stub, "link": link, "resource": remote, "value": kind}


def _table_asks(call: Call) -> list:
    given = [
        {"do": "step", **_fields(one)} if isinstance(one, Step)
        else _fields(one) if isinstance(one, RowChanged)
        else attrs.asdict(one) if isinstance(one, RequesterPlan)
        else one
        for one in call.arguments.values()
    ]  # fmt: skip
    return [camel(call.name), *given]


def _fields(record: object) -> dict:
    """Return the fields of a step or a row, as pages have them."""
    said = {one.name: getattr(record, one.name) for one in attrs.fields(type(record))}
    if "old" in said:
        said["old"] = said["old"] or "[*]"
    if "op" in said:
        said["op"] = str(said["op"])
    return {name: value for name, value in said.items() if name not in {"table", "writer"}}


# ---- lists of what lives at the ends of direct links

LIST_ENTITIES = tuple(f"hyperty://b.ex/{number}" for number in range(6))


def _lists(dice: Random) -> dict:
    """Give both cores what links, other registries and the own runtime may report."""
    port = _ListPort()
    publisher = changes.ChangesPublisher(RUNTIME, port)
    follower = changes.ChangesFollower(RUNTIME, port)
    now, steps, local, asks = 100.0, [], list[str](), 0
    for number in range(60):
        now += dice.choice((0.0, 0.5, 4.0))
        name, given = _list_input(dice, number, asks)
        if dice.random() < 0.2:
            one = dice.choice(LIST_ENTITIES)
            is_there = one in local
            (local.remove if is_there else local.append)(one)
            (publisher.remove_local if is_there else publisher.add_local)(one)
            port.said.clear()
        _tell_lists(publisher, follower, name, given, now)
        asked, port.said = port.said, []
        asks += sum(one[0] == "ask" for one in asked)
        deadline = publisher.deadline()
        steps.append({
            "now": now,
            "call": name,
            "given": given,
            "local": list(local),
            "asked": asked,
            "deadline": None if deadline == float("inf") else deadline,
            "isHeard": bool(publisher.followers),
        })  # fmt: skip
    return {"runtime": RUNTIME, "steps": steps}


def _list_input(dice: Random, number: int, asks: int) -> tuple[str, list]:
    remote, link = dice.choice(REMOTES[:2]), dice.choice(("one", "two"))
    sender, own = changes.registry_of(remote), changes.registry_of(RUNTIME)
    request = {"id": number, "type": "subscribe", "from": sender, "to": own, "body": {}}
    urls = dice.sample(LIST_ENTITIES, dice.randrange(5))
    is_over = dice.random() < 0.5
    change = {"isAdded": dice.random() < 0.6, "urls": urls}
    return dice.choice((
        ("linkIs", [{"remote": remote, "link": link}]),
        ("linkIs", [{"remote": remote, "link": None, "isOver": is_over}]),
        ("asked", [request, remote, link]),
        ("asked", [request, remote, link]),
        ("left", [request, remote]),
        ("answered", [remote, asks, urls if dice.random() < 0.8 else None]),
        ("answered", [remote, dice.randrange(asks + 1), urls]),
        ("reported", [remote, link, change]),
        ("reported", [remote, link, change]),
        ("timeOver", []),
    ))  # fmt: skip


def _tell_lists(
    publisher: changes.ChangesPublisher,
    follower: changes.ChangesFollower,
    name: str,
    given: list,
    now: float,
) -> None:
    match name, given:
        case "linkIs", [{"remote": remote, "link": str(link)}]:
            publisher.link_up(remote, link)
            follower.link_up(remote, link)
        case "linkIs", [{"remote": remote, "isOver": is_over}]:
            publisher.link_down(remote)
            (follower.link_gone if is_over else follower.link_down)(remote)
        case "timeOver", _:
            publisher.time_over(now)
        case "asked", [request, remote, link]:
            publisher.subscribe(_request(request), remote, link, now)
        case "left", [request, remote]:
            publisher.unsubscribe(_request(request), remote)
        case "answered", [remote, ask, urls]:
            follower.take_list(remote, ask, None if urls is None else tuple(urls))
        case _, [remote, link, change]:
            operation = Operation.ADD if change["isAdded"] else Operation.REMOVE
            follower.change(remote, link, operation, tuple(change["urls"]))


def _request(request: dict) -> Message:
    kind = MessageType(request["type"])
    return Message(request["id"], kind, request["from"], request["to"], request["body"])


class _ListPort(changes.ChangesPort):
    """Keeps what the cores ask, as pages say it."""

    def __init__(self) -> None:
        self.said: list[list] = []

    def step(self, step):
        fields = {name: value for name, value in _fields(step).items() if name != "why"}
        self.said.append(["step", {**fields, "do": "step"}])

    def answer(self, message):
        body = {key: message.body[key] for key in ("code", "value") if key in message.body}
        self.said.append(["answer", {"id": message.id, "body": body}])

    def list_entities(self, remote, there, gone):
        if there or gone:
            self.said.append(["listEntities", remote, sorted(there), sorted(gone)])

    def follow(self, link):
        self.said.append(["follow", link])

    def unfollow(self, link):
        self.said.append(["unfollow", link])

    def listen(self, remote):
        self.said.append(["listen", remote])

    def unlisten(self, remote):
        self.said.append(["unlisten", remote])

    def ask(self, remote, number):
        self.said.append(["ask", remote, number])
