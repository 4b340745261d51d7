"""Scenario files: JSON Lines, one word or step in each; docs/scenarios.md lists all of them."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import get_close_matches
from itertools import pairwise
from pathlib import Path
from typing import Final, Literal, NamedTuple

import attrs
import orjson

from actors.runtime.hyperty.typed import read_value
from fsm.machine_list import MACHINES
from specs.addresses import address as urls
from specs.dialects.normalise import normalise
from specs.errors import ProtoflyError
from specs.jsonvalue import Json
from specs.message import Message
from specs.reply_code import DropReason

_CATALOGUE: Final = "hyperty-catalogue://catalogue.{}.ex/.well-known/{}"

MACROS: Final = {
    "RA": "hyperty-runtime://a.ex/ra",
    "RB": "hyperty-runtime://b.ex/rb",
    "RC": "hyperty-runtime://c.ex/rc",
    "HA": "hyperty://a.ex/ha",
    "HA2": "hyperty://a.ex/ha2",
    "HB": "hyperty://b.ex/hb",
    "HB2": "hyperty://b.ex/hb2",
    "HC": "hyperty://c.ex/hc",
    "MNA": "domain://msg-node.a.ex",
    "MNB": "domain://msg-node.b.ex",
    "DRA": "domain://registry.a.ex",
    "DRB": "domain://registry.b.ex",
    "C1": "connection://a.ex/c1",
    "C2": "connection://b.ex/c2",
    "OBJ": "comm://a.ex/o1",
    "SA": "hyperty-runtime://a.ex/ra/protostub/1",
    "SAB": "hyperty-runtime://a.ex/ra/protostub/2",
    "SB": "hyperty-runtime://b.ex/rb/protostub/1",
    "SBA": "hyperty-runtime://b.ex/rb/protostub/2",
    "PQ": "hyperty-runtime://a.ex/ra/p2prequester/1",
    "PH": "hyperty-runtime://b.ex/rb/p2phandler/1",
    "PHC": "hyperty-runtime://b.ex/rb/p2phandler/1/conn/1",
    "SCH": _CATALOGUE.format("a", "dataschema/Connection"),
    "SCM": _CATALOGUE.format("a", "dataschema/Communication"),
    "CRQ": _CATALOGUE.format("b", "protocolstub/P2PRequester"),
}
"""Addresses by macro."""

LINK: Final = "link"
"""The name of a direct link itself, which no table describes."""

MACHINE_WORDS: Final = {
    **{name: name for name in (*MACHINES, LINK)},
    "alloc": "address",
    "deploy": "stub_deployment",
    "p2p": "p2p_connection",
    "stub": "stub_connection",
    "subscription": "object_subscription",
}
"""Tables by the names that scenarios use."""

LOST: Final = "lost"
"""In place of the reason of a drop: no component dropped it, the network lost it."""


class ScriptError(ProtoflyError):
    """A scenario file cannot be played; its author must act.

    Attributes:
        line: Its line, from 1; 0 for the file as a whole.
    """

    def __init__(self, file: str, line: int, what: str) -> None:
        super().__init__(f"{file}, line {line}: {what}" if line else f"{file}: {what}")
        self.line = line


def _known(word: object, known: Iterable[str], what: str) -> None:
    """Refuse an unknown word, and name the nearest known one."""
    words = sorted(known)
    if word not in words:
        near = get_close_matches(str(word), words, n=1, cutoff=0.0)
        raise ValueError(f"{what}; {f'the nearest known is {near[0]!r}' if near else 'none is'}")


# ---- hops

HANDED, WIRE, UNSAID = ">", "~wire~", ".."
"""What carries a message from one place to the next, beside `=L1=`, a direct link called L1."""

_TOKEN: Final = re.compile(r">|~wire~|=[^=>~]+=|\.\.|\{[^{}]*\}|(?:(?!\.\.|~wire~)[^=>{}])+")
_PLACE: Final = re.compile(
    r"(?P<root>[a-z-]+://[^( ]+|MN\.[^.( ]+|[^.( ]+)"
    r"(?:[. ](?P<part>[^.( ]+))?(?:\((?P<note>[^()]*)\))?"
)


class Place(NamedTuple):
    """A place that a message passes, or where something happens: `RA.bus`, `HA(OBJ)`, `MN.a`."""

    text: str
    root: str
    part: str = ""
    note: str = ""


GAP: Final = Place("..", "..")
"""The first place of a route whose first hops are not repeated."""


class Hop(NamedTuple):
    """The route of a message: groups of places, and what lies between one and the next."""

    text: str
    stations: tuple[tuple[Place, ...], ...]
    carriers: tuple[str, ...]

    @property
    def first(self) -> Place:
        return self.stations[0][0]

    @property
    def last(self) -> Place:
        """The last place; of several receivers the first."""
        return self.stations[-1][0]


def read_place(text: str) -> Place:
    match = _PLACE.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is no place such as RA.bus or MN.a")
    return Place(text.strip(), match["root"], match["part"] or "", match["note"] or "")


def read_hop(text: str) -> Hop:
    """Read the route of a message; beside `..` a `>` says nothing more, a link says all."""
    stations: list[tuple[Place, ...]] = []
    carriers: list[str] = []
    tokens, held = _TOKEN.findall(text), ""
    if "".join(tokens) != text:
        raise ValueError(f"{text!r} has a sign that is none of a hop")
    for token in tokens:
        if token in {HANDED, UNSAID, WIRE} or token[0] == "=":
            if token == UNSAID and not stations and not held:
                stations.append((GAP,))
            if not _is_link(held) and (token != HANDED or not held):
                held = token
            elif _is_link(held) and _is_link(token):
                raise ValueError(f"{text!r} has two links without a place between")
            continue
        if stations:
            carriers.append(held or UNSAID)
        elif held:
            raise ValueError(f"{text!r} does not begin with a place")
        names = token[1:-1].split(",") if token[0] == "{" else [token]
        stations.append(tuple(map(read_place, names)))
        held = ""
    if stations in ([], [(GAP,)]) or (held and (held != UNSAID or len(stations) == 1)):
        raise ValueError(f"{text!r} does not end with a place")
    return Hop(text, tuple(stations), tuple(carriers))


def _is_link(carrier: str) -> bool:
    return carrier == WIRE or carrier[:1] == "="


# ---- words and their fields


def _address(text: str) -> str:
    return urls.canonical(text)


def _drop(text: str) -> str:
    """Read `loop: own stub already in via`: the reason, then words for people."""
    word = text.partition(":")[0].strip()
    _known(word, (*DropReason, LOST), f"it begins with no reason, but {word!r}")
    return word


def _machine(word: str) -> str:
    _known(word, MACHINE_WORDS, f"it names no machine, but {word!r}")
    return MACHINE_WORDS[word]


def _key(value: str | list[str]) -> tuple[str, ...]:
    parts = value.split("|") if isinstance(value, str) else value
    return tuple(str(expanded(part)) for part in parts)


def _message(raw: dict[str, Json]) -> Message:
    for name in raw:
        _known(name, _MESSAGE_KEYS, f"a message has no key {name!r}")
    return normalise(raw)


def _places(texts: tuple[str, ...]) -> tuple[Place, ...]:
    return tuple(map(read_place, texts))


def _pair(texts: tuple[str, ...]) -> tuple[Place, ...]:
    if len(texts) != len(("one", "other")):
        raise ValueError("it must name two")
    return _places(texts)


def _same(value: object) -> object:
    return value


_KINDS: Final[Mapping[str, tuple[object, Callable]]] = {
    "text": (str, _same),
    "text|null": (str | None, _same),
    "texts": (tuple[str, ...], _same),
    "flag": (bool, _same),
    "count": (int, _same),
    "number": (float, _same),
    "object": (dict[str, object], _same),
    "objects": (tuple[dict[str, object], ...], _same),
    "any": (object, _same),
    "address": (str, _address),
    "given": (str, read_place),
    "given+": (tuple[str, ...], _places),
    "ends": (tuple[str, ...], _pair),
    "hop": (str, read_hop),
    "place": (str, read_place),
    "message": (dict[str, object], _message),
    "drop": (str, _drop),
    "machine": (str, _machine),
    "key": (object, _key),
    "status": (Literal["live", "disconnected"], _same),
    "link": (Literal["live", "connecting", "broken"], _same),
    "before": (Literal["boot", "observers"], _same),
    "op": (Literal["add", "del", "upd"], _same),
    "decision": (Literal["permit", "deny"], _same),
}
"""The types of fields, and what is read further; `given` is the place of something given."""

_MESSAGE_KEYS: Final = ("id", "type", "from", "to", "body")

_MESSAGE_MARKS: Final = (
    "drop?:drop doubled?:flag p2p?:text deliver_to?:texts event?:flag dup?:flag synthetic?:flag "
    "queued?:flag control?:flag"
)
_PROFILE: Final = "resources?:texts data_schemes?:texts"

WORDS: Final = {
    "given": {
        "node": "domain:text stubs?:texts records?:object relays?:objects people?:object",
        "runtime": "is:address p2p?:flag user?:text",
        "hyperty": f"is:address in:given answers?:flag {_PROFILE} status?:status",
        "kept address": "is:address in:given descriptor:text",
        "object": "is:address schema:text by?:given version?:count data?:object allowed?:given+ "
        "observers?:given+",
        "link": "from:given to:given state:link asking:given+ asked:given+",
        "denial": "at:given type:text from:text to:text why:text",
        "name": "is:text for:address",
        "beginning": "before:before",
    },
    "do": {
        "send": "by:given",
        "answer": "by:given",
        "change": "by:given",
        "publish": "object:given",
        "order": "by:place",
        "ask": "by:given of:given",
        "observe": "by:given object:given",
        "watch": "in:given hyperty:given",
        "deploy": f"is:address in:given descriptor?:text {_PROFILE}",
        "reuse": "in:given result:text descriptor?:text address?:text",
        "log in": "assertion:text",
        "control": "",
        "forge": "from:given to:given",
    },
    "fault": {
        "link cut": "between:ends",
        "peer vanishes": "of:given",
        "peer silent": "between:ends",
        "runtime shutdown": "of:given",
    },
    "k": {
        "msg": f"n:count hop:hop msg:message {_MESSAGE_MARKS}",
        "state": "n:count machine:machine key:key old:text|null new:text cause?:text",
        "table": "n:count table:text op:op at:place key:text val?:any",
        "resolve": "n:count at:place to:text result:text|null why?:text",
        "authz": "n:count at:place ref:count decision:decision why?:text",
        "time": "n:count dt:number why?:text",
        "fault": "n:count what:text",
        "call": "n:count what:text",
        "ingest": "n:count raw:object norm:message",
    },
}
"""The words of each kind of line, with the fields of each; `?`: the field may be absent."""

_GIVEN: Final = frozenset({"given", "given+", "ends"})
"""Types of fields that name what is given, by its place."""

_PLACES: Final = _GIVEN | {"hop", "place"}
"""Types of fields that name places."""

_UNEXPANDED: Final = frozenset({"p2p", "machine", "table"})
"""Fields of steps in which macros stay as they are, beside those that name places."""


def fields_of(kind: str, word: str) -> dict[str, tuple[bool, str]]:
    """Return whether a field is optional, and its type, by its name."""
    found = {}
    for field in WORDS[kind][word].split():
        name, _, type_ = field.partition(":")
        found[name.rstrip("?")] = name.endswith("?"), type_
    return found


_FIELD_NAMES: Final = {
    name for kind in WORDS for one in WORDS[kind] for name in fields_of(kind, one)
}


@attrs.frozen(eq=False)
class Line:
    """One line; its fields are its attributes, with `_` behind a keyword; absent ones are None."""

    place: int
    kind: str
    word: str
    fields: Mapping[str, object]

    def __getattr__(self, name: str) -> object:
        field = name.rstrip("_")
        if field not in _FIELD_NAMES:
            raise AttributeError(name)
        return self.fields.get(field)

    @property
    def is_lost(self) -> bool:
        """Whether the network loses it."""
        return self.drop == LOST


def expanded(value: Json) -> Json:
    """Write out the macros in a value: a whole text, or what stands before its first slash."""
    match value:
        case str():
            head, slash, tail = value.partition("/")
            return MACROS.get(head, head) + slash + tail
        case list():
            return [expanded(one) for one in value]
        case dict():
            return {key: expanded(one) for key, one in value.items()}
        case _:
            return value


def _read_line(number: int, line: dict[str, Json]) -> Line:
    kind = next((kind for kind in WORDS if kind in line), "")
    if not kind:
        _known(next(iter(line), ""), WORDS, f"one of {', '.join(WORDS)} is missing")
    word = line.pop(kind)
    _known(word, WORDS[kind], f"there is no {kind} {word!r}")
    forms, fields = fields_of(kind, word), {}
    for name, value in line.items():
        if not name.endswith("_"):
            _known(name, forms, f"unknown field {name}: end the name of a remark with _")
            type_ = forms[name][1]
            is_whole = type_ in _PLACES or (kind == "k" and name in _UNEXPANDED)
            fields[name] = _read_field(name, type_, value if is_whole else expanded(value))
    for name, (is_optional, _) in forms.items():
        if name not in fields and not is_optional:
            raise ValueError(f"{name} is missing")
    return Line(number, kind, word, fields)


def _read_field(name: str, type_: str, value: Json) -> object:
    kind, meaning = _KINDS[type_]
    try:
        return meaning(read_value(value, kind))
    except (ProtoflyError, ValueError, TypeError) as error:
        raise ValueError(f"{name}: {str(error).removeprefix('value: ')}") from error


# ---- scenarios

SANDBOX: Final = "sandbox"
"""Sender address of a component that forges it."""

_PATHS: Final = {
    "alloc": "address-allocation",
    "graph": "graph-connector",
    "registry": "registry",
    "sm": "sm",
    "ua": "ua",
}
"""Paths of a runtime's parts, by their short names."""

PARTS: Final = frozenset({*_PATHS, "bus", "minibus", "stub", "session", "idm", "reporter"})
"""The words for parts of a place: of runtimes, of nodes, and of data objects."""

_LISTENERS: Final = {"alloc": "address-allocation", "registry": "registry", "sm": "sync-manager"}
"""The listeners of a Message BUS, by their short names."""


@attrs.frozen
class Scenario:
    """A scenario; what is done before a step is kept by the step's number.

    A place has one name: an alias, `MN.b` for the node of the domain whose first word is b, a
    macro, or the last part of an address that is given; `sandbox(HA)` is the sandbox of HA. All
    addresses returned are the scenario's.
    """

    name: str
    given: tuple[Line, ...]
    steps: tuple[Line, ...]
    actions: Mapping[int, tuple[Line, ...]]
    _named: dict[str, str] = attrs.field(init=False)

    @_named.default
    def _name_places(self) -> dict[str, str]:
        lines = (*self.all("runtime"), *self.hyperties, *self.all("object"))
        named = {one.is_.rpartition("/")[2].lower(): one.is_ for one in reversed(lines)}
        nodes = {f"mn.{one.domain.partition('.')[0]}": one for one in self.all("node")}
        named |= {name: urls.message_node(one.domain) for name, one in nodes.items()}
        return named | {one.is_.lower(): one.for_ for one in self.all("name")}

    def all(self, word: str) -> tuple[Line, ...]:
        """Return what is given of a word."""
        return tuple(one for one in self.given if one.word == word)

    @property
    def hyperties(self) -> tuple[Line, ...]:
        """All hyperties that have a runtime at any time."""
        deployed = (one for acts in self.actions.values() for one in acts if one.word == "deploy")
        return (*self.all("hyperty"), *self.all("kept address"), *deployed)

    def home(self, hyperty: str | None) -> str | None:
        """Return the runtime of a hyperty."""
        return next((one.in_ for one in self.hyperties if one.is_ == hyperty), None)

    def is_acted(self, step: Line) -> bool:
        """Return whether the player does something at a step."""
        return step.word == "time" or step.n in self.actions

    def breaks(self, step: Line) -> bool:
        """Return whether a fault happens right before a step: it is seen only behind it."""
        return any(one.kind == "fault" for one in self.actions.get(step.n, ()))

    def step(self, number: int) -> Line | None:
        return next((one for one in self.steps if one.n == number), None)

    def messages(self) -> Iterator[Line]:
        yield from (one for one in self.steps if one.word == "msg")

    def denied_at(self, number: int) -> Place | None:
        """Return where the message of a step is denied; None: nowhere."""
        rulings = (one for one in self.steps if one.word == "authz" and one.ref == number)
        return next((one.at for one in rulings if one.decision == "deny"), None)

    # ---- places

    def address(self, place: Place) -> str | None:
        """Return the address that a place means; None if nothing says which."""
        word = place.note if place.root == SANDBOX else place.root
        written = str(expanded(word))
        if "://" in written:
            return written
        head, slash, rest = word.partition("/")
        named = self._named.get(head.lower())
        return None if named is None else named + slash + rest

    def name_of(self, address: str) -> str:
        """Return the name by which places call an address."""
        aliases = {one.for_: one.is_ for one in self.all("name")}
        nodes = {urls.message_node(one.domain): one.domain for one in self.all("node")}
        macros = {url: name for name, url in MACROS.items()}
        if address in aliases:
            return aliases[address]
        if address in nodes:
            return f"MN.{nodes[address].partition('.')[0]}"
        if address in macros:
            return macros[address]
        above, _, last = address.rpartition("/")
        if self._named.get(last.lower()) == address:
            return last
        return address if above.endswith("/") else f"{self.name_of(above)}/{last}"

    def process(self, place: Place) -> str | None:
        """Return the runtime or node that a place is in; None if nothing says it."""
        root = self.address(place)
        scheme = urls.scheme_of(root or "")
        if scheme == urls.RUNTIME_SCHEME:
            return urls.runtime_of(root)
        return root if scheme == "domain" else None

    def is_node(self, place: Place) -> bool:
        return urls.scheme_of(self.address(place) or "") == "domain"

    def sender(self, place: Place) -> str | None:
        """Return the address under which a place submits; None if unknown."""
        root = self.address(place)
        if root is None or place.part in {"", SANDBOX}:
            return root
        path = _PATHS.get(place.part)
        return None if path is None else f"{root}/{path}"

    def listener(self, place: Place) -> str | None:
        """Return what a Message BUS calls the listener at a place; None if nothing says it.

        `HA(OBJ)` is an object of HA; its listener there is not specified.
        """
        if place.part in _LISTENERS:
            return _LISTENERS[place.part]
        root = self.address(place)
        is_named = place.part in {"", SANDBOX} and (not place.note or place.root == SANDBOX)
        return f"minibus:{root}" if root is not None and is_named else None

    # ---- checks

    def resolve(self, line: Line) -> Line:
        """Return a line whose fields have addresses for the places of what is given."""
        fields = dict(line.fields)
        for name, (_, type_) in fields_of(line.kind, line.word).items():
            value = fields.get(name)
            if type_ in _GIVEN and value is not None:
                is_one = isinstance(value, Place)
                urls_ = tuple(map(self._resolve, (value,) if is_one else value))
                fields[name] = urls_[0] if is_one else urls_
        return attrs.evolve(line, fields=fields)

    def _resolve(self, place: Place) -> str:
        """Return the address of a place; refuse another name than its own."""
        address = self.address(place)
        if address is None:
            what = f"nothing given is called {place.root!r}"
            _known(place.root, (*MACROS, *self._named), what)
        written = place.note if place.root == SANDBOX else place.root
        head = written if "://" in written else written.partition("/")[0]
        name = self.name_of(address[: len(address) - len(written) + len(head)])
        if head.lower() != name.lower():
            raise ValueError(f"{head!r} is not the name of this place: write {name!r}")
        return address

    def check(self, line: Line) -> None:
        """Refuse a line that names what is not there."""
        if line.kind != "k":
            self._check_references(line)
        elif line.word == "authz" and (self.step(line.ref) or line).word != "msg":
            raise ValueError(f"ref {line.ref} is no message step of {self.name}")
        elif line.word == "fault" and not self.breaks(line):
            raise ValueError(f"nothing breaks at step {line.n}: write a fault before it")
        places = [place for group in line.hop.stations for place in group] if line.hop else []
        places += [one for one in (line.at, line.by) if isinstance(one, Place)]
        for place in places:
            if place != GAP:
                self._resolve(place)
                _known(place.part, ("", *PARTS), f"{place.text}: no part {place.part!r}")

    def _check_references(self, line: Line) -> None:
        known = [one.is_ for one in (*self.all("runtime"), *self.hyperties, *self.all("object"))]
        domains = [one.domain for one in self.all("node")]
        known += map(urls.message_node, domains)
        for name, (_, type_) in fields_of(line.kind, line.word).items():
            value = line.fields.get(name) if type_ in _GIVEN else None
            for one in value if isinstance(value, tuple) else [value] if value else []:
                _known(one, known, f"{name}: {one} is not given")
        if line.word == "runtime":
            domain = urls.host_of(line.is_)
            _known(domain, domains, f"no node of {domain} is given")


def read_script(path: Path) -> tuple[Scenario, ...]:
    """Read all scenarios of a file, in the order of their first lines."""
    try:
        return read_script_lines(str(path), path.read_bytes().splitlines())
    except OSError as error:
        raise ScriptError(str(path), 0, f"it cannot be read: {error.strerror}") from error


def read_script_lines(file: str, lines: Iterable[bytes]) -> tuple[Scenario, ...]:
    """Read all scenarios of some lines; `file` is for error messages."""
    found: dict[str, list[Line]] = {}
    for number, line in enumerate(lines, start=1):
        if line.strip():
            try:
                value = orjson.loads(line)
                scenario = value.pop("sc")
                found.setdefault(scenario, []).append(_read_line(number, value))
            except (KeyError, TypeError, AttributeError) as error:
                raise ScriptError(file, number, "it is no JSON object with sc, a name") from error
            except ValueError as error:
                raise ScriptError(file, number, str(error)) from error
    if not found:
        raise ScriptError(file, 0, "it holds no step; write one JSON object per line")
    return tuple(_scenario(file, name, said) for name, said in found.items())


def _resolve_lines(file: str, name: str, lines: list[Line]) -> list[Line]:
    """Return lines with addresses for the places of what is given."""
    given = tuple(one for one in lines if one.kind == "given")
    acts = tuple(one for one in lines if one.kind == "do")
    scenario, resolved = Scenario(name, given, (), {0: acts}), []
    for line in lines:
        try:
            resolved.append(scenario.resolve(line))
        except ValueError as error:
            raise ScriptError(file, line.place, str(error)) from error
    return resolved


def _scenario(file: str, name: str, lines: list[Line]) -> Scenario:
    """Put the lines of a scenario together."""
    lines = _resolve_lines(file, name, lines)
    given, steps, actions, waiting = [], [], {}, []
    for line in lines:
        if line.kind == "given":
            given.append(line)
            if steps or waiting:
                raise ScriptError(file, line.place, "given lines stand before all others")
        elif line.kind != "k":
            waiting.append(line)
        else:
            steps.append(line)
            if waiting:
                actions[line.n], waiting = tuple(waiting), []
    if waiting or not steps:
        raise ScriptError(file, lines[-1].place, f"{name} does not end with a step")
    for one, following in pairwise(steps):
        if following.n <= one.n:
            what = f"step {following.n} comes after step {one.n}; number the steps upwards"
            raise ScriptError(file, following.place, what)
    scenario = Scenario(name, tuple(given), tuple(steps), actions)
    for line in lines:
        try:
            scenario.check(line)
        except ValueError as error:
            raise ScriptError(file, line.place, str(error)) from error
    return scenario
