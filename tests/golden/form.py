"""The normal form: what must not change is a line of text, what may change is left out.

README.md says what is left out, and why.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from enum import Enum
from hashlib import blake2b
from typing import Final, TypeAlias

import attrs

from actors.runtime.bus.messages import InFlight
from fsm.effects import RowChanged
from fsm.engine import Step
from specs.message import Message
from specs.trace import ABSENT, Fact, Kind

GRADES: Final = ("users", "links", "states", "hops", "tables", "figures", "moves", "cores")
"""From what no rewrite may change to what a rewrite of a core replaces."""

Lines: TypeAlias = list[tuple[int, str]]
"""What happened to one subject, in order, each with its milliseconds of virtual time."""

Part: TypeAlias = dict[str, dict[str, Lines]]
"""A recording of one run: by grade, by subject."""

_SECRET: Final = frozenset(
    {
        *("assertion", "auth", "certificate", "challenge", "host", "proof", "publicKey"),
        *("runtimeToken", "secret", "sessionToken", "signature", "statement", "token"),
    }
)
"""Keys of bodies whose values are of chance, and long."""

_OURS: Final = ("domain://", "hyperty-runtime://")
_ROUTE: Final = "route to "

BESIDE: Final = " (any order)"
"""Behind a pair of components: what is sent at the same time has no order."""

_PORT: Final = re.compile(r"127\.0\.0\.1:40\d{3}")
_PLACE: Final = re.compile(r"/simulated/[^/\"]*")
_LINK: Final = re.compile(r"-\d+-")
_NUMBERED: Final = re.compile(r"(.+)\|(.+)\|(\d+)")
_MARK: Final = re.compile("\ue000(\\d+)\ue001")
_WORD: Final = re.compile("(?<=[a-z0-9])(?=[A-Z])")


class Ids:
    """Ids of messages as ranks: the first, second, ... request of a sender to a receiver.

    Ids increase with each sender. What is ranked is known only in the end: until then a text has a
    mark where the rank will be.
    """

    def __init__(self) -> None:
        self._marks: dict[tuple[str, str, int], int] = {}

    def mark(self, from_: str, to: str, number: int) -> str:
        """Stand for the rank of a request of a sender to a receiver."""
        number = self._marks.setdefault((from_, to, number), len(self._marks))
        return f"\ue000{number}\ue001"

    def of(self, message: Message) -> str:
        """Stand for the rank of a message: a response has that of its request."""
        ends = message.from_, message.to
        return self.mark(*(ends[::-1] if message.is_response else ends), message.id)

    def ranked(self, part: Part) -> Part:
        """Put the ranks into all texts."""
        pairs = defaultdict(list)
        for (from_, to, number), mark in self._marks.items():
            pairs[from_, to].append((number, mark))
        ranks = {
            mark: f"#{rank}"
            for listed in pairs.values()
            for rank, (_, mark) in enumerate(sorted(listed), start=1)
        }

        def put(text: str) -> str:
            return _MARK.sub(lambda found: ranks[int(found[1])], text)

        return {
            grade: {
                put(subject): [(at, put(line)) for at, line in lines]
                for subject, lines in subjects.items()
            }
            for grade, subjects in part.items()
        }


def message_text(message: Message, ids: Ids) -> str:
    """Return a message on a line."""
    head = message_head(message, ids) if _is_of_users(message) else _bare_head(message)
    body = {key: value for key, value in message.body.items() if key != "code"}
    return f"{head} {body_text(body)}" if body else head


def message_head(message: Message, ids: Ids) -> str:
    """Return a message on a line, without its body."""
    return f"{_bare_head(message)} {ids.of(message)}"


def _bare_head(message: Message) -> str:
    kind = str(message.code) if message.is_response else message.type.value
    return f"{kind} {message.from_} > {message.to}"


def _is_of_users(message: Message) -> bool:
    """Return whether somebody in an application waits for the answer to just this message."""
    return not (message.from_.startswith(_OURS) and message.to.startswith(_OURS))


def settled(grade: str, subject: str, lines: Lines) -> Lines:
    """Return lines of a subject without what depends on how many steps tasks take."""
    if "resolve_job " in subject:
        return _without_repeats(lines)
    if _ROUTE in subject:
        known = dict.fromkeys(line for _, line in lines if not line.startswith("start"))
        first = {line: at for at, line in reversed(lines)}
        return [(first[line], line) for line in known]
    is_unordered = grade == "hops" or (grade == "links" and subject.endswith(BESIDE))
    return sorted(lines) if is_unordered else lines


def _without_repeats(lines: Lines) -> Lines:
    """Leave out a life of an entity that is as the life before it."""
    lives: list[Lines] = []
    for at, line in lines:
        if not lives or line.startswith(ABSENT):
            lives.append([])
        lives[-1].append((at, line))
    kept = lives[:1]
    for life in lives[1:]:
        if [line for _, line in life] != [line for _, line in kept[-1]]:
            kept.append(life)
    return [one for life in kept for one in life]


def subject_of(message: Message) -> str:
    """Return what a message on a link belongs to: order is held within a pair only."""
    ends = f"{message.from_} > {message.to}"
    return ends if _is_of_users(message) else ends + BESIDE


def _digest(text: str) -> str:
    return blake2b(text.encode(errors="replace"), digest_size=2).hexdigest()


def body_text(value: object) -> str:
    """Return JSON on a line, without what is of chance."""
    text = json.dumps(_open(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return _PLACE.sub("/simulated/*", _PORT.sub("127.0.0.1:*", text))


def _open(value: object) -> object:
    if isinstance(value, Mapping):
        return {key: "..." if key in _SECRET else _open(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_open(part) for part in value]
    return value


# --- facts of a trace


def hop(fact: Fact, ids: Ids) -> tuple[str, str, str]:
    """Return the grade, the subject and the line of a fact."""
    match fact.k:
        case Kind.STATE:
            key = _NUMBERED.sub(lambda one: f"{one[1]}|{one[2]}|{_rank(one, ids)}", fact.key or "")
            return "states", f"{fact.machine} {key}", f"{fact.old} > {fact.new} by {fact.cause}"
        case Kind.MSG:
            return "hops", _subject(fact, ids), _hop_text(fact)
        case Kind.AUTHZ:
            words = (fact.direction, fact.decision, fact.policy, fact.obligations)
            return "hops", _mid(fact.mid or "", ids), _joined("ruling", *words)
        case Kind.RESOLVE:
            return "hops", _ROUTE + (fact.to or ""), _joined(fact.op, fact.kind, fact.result)
        case Kind.TABLE:
            return "tables", f"{fact.table} {fact.key}", _joined(fact.op, _listener(fact.val))
        case _:
            link = None if fact.link is None else _link(fact.link)
            subject = _joined(fact.k, fact.key, fact.a, fact.b, fact.kind)
            return "hops", subject, _joined(fact.op, link, fact.reason)


def _rank(found: re.Match[str], ids: Ids) -> str:
    return ids.mark(found[1], found[2], int(found[3]))


def _subject(fact: Fact, ids: Ids) -> str:
    ends = fact.from_ or "", fact.to or ""
    is_response = fact.type == "response"
    rank = ids.mark(*(ends[::-1] if is_response else ends), fact.id or 0)
    return f"{fact.code if is_response else fact.type} {ends[0]} > {ends[1]} {rank}"


def _mid(mid: str, ids: Ids) -> str:
    """Rulings name messages by their instance only, which is the sender's."""
    head, _, number = mid.partition(">")[0].rpartition("#")
    if head.startswith(_OURS):
        return f"messages of {head}"
    return f"message of {head} {ids.mark(head, '', int(number))}" if number.isdecimal() else mid


def _hop_text(fact: Fact) -> str:
    words = [fact.op.value if fact.op else ""]
    named = {
        "by": fact.by,
        "to": _listener(fact.listener),
        "stub": fact.stub,
        "link": None if fact.link is None else _link(fact.link),
        "targets": fact.targets,
        "reason": fact.reason,
        "via": fact.via,
        "kind": fact.kind,
    }
    words += [f"{name}={value}" for name, value in named.items() if value is not None]
    return " ".join(words)


def _listener(name: str | None) -> str | None:
    return None if name is None else name.removeprefix("minibus:")


def _link(text: str) -> str:
    return _LINK.sub("-", text)


def _joined(*words: object) -> str:
    return " ".join(str(getattr(word, "value", word)) for word in words if word is not None)


# --- values of cores


def snake(name: str) -> str:
    """Return the name of a class as the name of a method."""
    return _WORD.sub("_", name.lstrip("_")).lower()


_NEW: Final = frozenset({"children_window", "child"})
"""Fields that came after the recordings, which leave them out where they are absent."""


def plain(value: object, ids: Ids) -> object:  # noqa: PLR0911 - a table
    """Return a value of a core as plain data: names and arguments, no classes of ours."""
    match value:
        case Message():
            body = {key: part for key, part in value.body.items() if key not in {"code", "via"}}
            return f"{message_head(value, ids)} {_digest(body_text(body))}"
        case Step():
            return f"{value.machine} {value.old or ABSENT} > {value.new} by {value.cause}"
        case RowChanged():
            return f"{value.op.value} {value.table} {value.key} {_listener(value.val)}"
        case Enum():
            return value.value
        case None | bool() | int() | str():
            return value
        case float():
            return round(value, 3)
        case bytes():
            return "..."
        case Mapping():
            return {str(plain(key, ids)): plain(part, ids) for key, part in value.items()}
        case set() | frozenset():
            return sorted((plain(part, ids) for part in value), key=str)
        case list() | tuple():
            return [plain(part, ids) for part in value]
        case _ if attrs.has(type(value)):
            return {snake(type(value).__name__): _fields(value, ids)}
        case _:
            return "*"


def _fields(value: object, ids: Ids) -> Mapping[str, object]:
    names: Iterable[str] = (one.name for one in attrs.fields(type(value)))
    if isinstance(value, InFlight):
        # A core keeps it for its host; the rest stands in the message that the core gets beside it.
        names = ("by", "intent", "is_copy", "is_outgoing")
    return {
        name: "..." if name in _SECRET else plain(getattr(value, name), ids)
        for name in names
        if not name.startswith("_") and (name not in _NEW or getattr(value, name) is not None)
    }
