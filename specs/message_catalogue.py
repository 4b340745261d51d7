"""The message catalogue: all messages of the protocol, with senders, receivers and bodies.

The catalogue (M-01..M-59) assigns a class to each message's body, and to the bodies of its answers.
Tests and tools for traces look up messages in the catalogue; routers do not use it. It does not
contain the requests, events and answers of hyperties, as their bodies are free.

Addresses are written as forms: `R/registry`, `PX/status`. The text before the first slash names a
pattern, the rest is literal, and `<n>` is any one segment. A number or small letter at the end of
a name (`R`, `R2`, `H`, `Hx`) distinguishes different addresses of the same pattern.
"""

import re
from functools import lru_cache
from typing import Final, Literal, TypeAlias

import attrs

from specs.bodies import answer, registry, session
from specs.bodies import object as bodies
from specs.bodies.link import (
    Command,
    LinkStatus,
    ListChange,
    Nothing,
    Path,
    RequestGivenUp,
)
from specs.errors import SpecError
from specs.jsonvalue import Json, JsonObject
from specs.message import Message, MessageType
from specs.reply_code import FIRST_FINAL, LAST_SUCCESS, Code

_PART: Final = "[^/]+"
_RUNTIME: Final = f"hyperty-runtime://{_PART}/{_PART}"
_NO_OBJECTS: Final = "hyperty(?:-[^:]*)?|domain(?:-[^:]*)?|user(?:-[^:]*)?|global"

# fmt: off
FORMS: Final = {
    "x":    ".+://.+",
    "R":    _RUNTIME,
    "PQ":   f"{_RUNTIME}/p2prequester/{_PART}",
    "PH":   f"{_RUNTIME}/p2phandler/{_PART}",
    "PC":   f"{_RUNTIME}/p2phandler/{_PART}/conn/{_PART}",
    "PX":   f"{_RUNTIME}/(?:p2prequester|p2phandler)/{_PART}(?:/conn/{_PART})?",
    "S":    f"{_RUNTIME}/(?:protostub|p2prequester|p2phandler)/{_PART}",
    "H":    f"(?:hyperty://{_PART}/.+|{_RUNTIME}/(?:p2prequester|p2phandler)/{_PART})",
    "O":    f"(?!(?:{_NO_OBJECTS})://)[a-z][^/:]*://{_PART}/{_PART}",
    "MN":   f"domain://msg-node[.]{_PART}",
    "DR":   f"domain://registry[.]{_PART}",
    "GR":   "global://registry",
    "IDM":  f"(?:domain://idm[.]|domain-idp://){_PART}",
    "QOS":  f"domain://qos[.]{_PART}",
    "USER": f"(?:/{_PART}/user/.+|user://.+)",
    "GUID": f"(?:/{_PART}/guid/.+|user-guid://.+)",
    "IDP":  f"/{_PART}/idp-identifier/.+",
    "URL":  "(?!user)[a-z][^/:]*://.+",
}
# fmt: on
"""Regular expressions for canonical addresses, by the names that forms of addresses begin with.

`x` is any address; `R` a runtime; `PQ` and `PH` its requester and handler stubs for P2P links,
`PC` the address of a handler stub for one link, `PX` any of these; `S` any stub; `H` a hyperty, or
a stub that acts as such; `O` a data object; `MN`, `DR`, `IDM`, `QOS` the services of a domain; `GR`
the global registry. The remaining names stand for what a registry can be asked for.
"""


@lru_cache(maxsize=256)
def _compile(form: str) -> re.Pattern[str]:
    head, slash, rest = form.partition("/")
    looks = FORMS.get(head) or FORMS.get(head.rstrip("12xy"))
    if looks is None:
        raise SpecError(f"{form!r} begins with no known form of an address")
    tail = re.escape(slash + rest).replace("<n>", _PART)
    return re.compile(f"({looks}){tail}")


def match_form(form: str, address: str) -> str | None:
    """Match an address with a form; return the beginning that the form's name stands for, or None.

    Raises:
        SpecError: There is no such form.
    """
    match = _compile(form).fullmatch(address)
    return None if match is None else match[1]


BodyClass: TypeAlias = type[attrs.AttrsInstance]


@attrs.frozen(slots=True)
class Answers:
    """Classes for the bodies of the answers to one kind of request, by the code of the answer.

    Attributes:
        yes: For codes from 200 to 299.
        wait: For codes below 200.
        no: For codes from 300 on.
        late: For code 408, with which a registry may send known records (M-25).
    """

    yes: BodyClass
    wait: BodyClass = answer.Provisional
    no: BodyClass = answer.Refusal
    late: BodyClass = answer.Refusal

    def body(self, code: int) -> BodyClass:
        """Return the class for the body of an answer with this code."""
        if code < FIRST_FINAL:
            return self.wait
        if code == Code.TIMEOUT:
            return self.late
        return self.yes if code <= LAST_SUCCESS else self.no


_Test: TypeAlias = Literal["has", "lacks", "object", "says", "names"]

_MARK: Final = re.compile(r"(?P<lacks>!)?(?P<field>\w+)(?P<how>[=:])?(?P<what>.+)?")


@attrs.frozen(slots=True)
class Mark:
    """Condition on a field of a body, which distinguishes kinds of messages in the catalogue.

    Written `resource` (present), `!resource` (absent), `value:{}` (an object), `method=open` (this
    value), `resources:PQ` (an address of this form, or a list whose first address has this form).
    """

    field: str
    test: _Test
    what: str = ""

    @classmethod
    def read(cls, text: str) -> "Mark":
        """Read a condition as it is written in the catalogue.

        Raises:
            SpecError: The text has another form.
        """
        match = _MARK.fullmatch(text)
        if match is None:
            raise SpecError(f"{text!r} is no mark of a body")
        field, how, what = match["field"], match["how"], match["what"] or ""
        if match["lacks"]:
            return cls(field, "lacks")
        if what == "{}":
            return cls(field, "object")
        return cls(field, {"=": "says", ":": "names", None: "has"}[how], what)  # type: ignore[arg-type] # of the pattern

    def fits(self, body: JsonObject) -> bool:
        """Return whether a body meets the condition."""
        value = body.get(self.field)
        match self.test:
            case "has":
                return value is not None
            case "lacks":
                return value is None
            case "object":
                return isinstance(value, dict)
            case "says":
                return value == self.what or (value is True and self.what == "true")
            case "names":
                return self._fits(value)

    def _fits(self, value: Json) -> bool:
        first = value[0] if isinstance(value, list) and value else value
        return isinstance(first, str) and match_form(self.what, first) is not None


def marks_of(text: str) -> tuple[Mark, ...]:
    """Read the conditions of a kind of message, which are separated by spaces."""
    return tuple(Mark.read(each) for each in text.split())


@attrs.frozen(slots=True)
class Kind:
    """One kind of message of the protocol, as the catalogue describes it.

    Attributes:
        id: Label of the kind in the protocol, such as M-01.
        type: The verb.
        from_: Form of the sender's address.
        to: Form of the receiver's address. The same text before the first slash as in `from_`
            stands for the same address.
        marks: The conditions on the body that distinguish the kind from others.
        body: The class of the body.
        answers: Classes of the answers' bodies; None: the message is an event.
        name: The purpose of the message.
        cite: Requirements, or contradictions of the sources, that the kind decides.
    """

    id: str
    type: MessageType
    from_: str
    to: str
    marks: tuple[Mark, ...] = attrs.field(converter=marks_of)
    body: BodyClass
    answers: Answers | None
    name: str
    cite: str = ""

    @property
    def is_event(self) -> bool:
        """True if messages of this kind are events, which get no answer."""
        return self.answers is None

    def fits(self, message: Message) -> bool:
        """Return whether a message is of this kind."""
        if message.type is not self.type:
            return False
        sender, receiver = match_form(self.from_, message.from_), match_form(self.to, message.to)
        if sender is None or receiver is None:
            return False
        is_same = self.from_.partition("/")[0] == self.to.partition("/")[0]
        if is_same and sender != receiver:
            return False
        return all(mark.fits(message.body) for mark in self.marks)


_CRE, _REA, _UPD = MessageType.CREATE, MessageType.READ, MessageType.UPDATE
_DEL, _SUB, _UNS = MessageType.DELETE, MessageType.SUBSCRIBE, MessageType.UNSUBSCRIBE
_EXE, _FWD = MessageType.EXECUTE, MessageType.FORWARD

_DONE: Final = Answers(answer.Done)
_SOURCED: Final = Answers(answer.Sourced)
_LISTED: Final = Answers(answer.Listed)
_OPENED: Final = Answers(answer.SessionOpened)
_RESUMED: Final = Answers(answer.SessionResumed)
_STATED: Final = Answers(answer.StatementRenewed)
_GIVEN: Final = Answers(answer.AddressesGiven)
_RECORD: Final = Answers(answer.RecordFound, late=answer.RecordsAway)
_ATTRIBUTE: Final = Answers(answer.AttributeRead, late=answer.AttributeAway)
_FOUND: Final = Answers(answer.RecordsFound, late=answer.RecordsAway)
_CREATED: Final = Answers(answer.ObjectCreated)
_OBSERVED: Final = Answers(answer.ObjectShown, wait=answer.ChildrenReported)
_SHOWN: Final = Answers(answer.ObjectShown)
_GRANTED: Final = Answers(answer.SubscriptionGranted)
_RENEWED: Final = Answers(answer.SubscriptionRenewed)
_OBJECTS: Final = Answers(answer.ObjectsResumed)
_VALUE: Final = Answers(answer.ValueGiven)
_TOKEN: Final = Answers(answer.TokenGiven)
_TURN: Final = Answers(answer.TurnGiven)
_ICE: Final = Answers(answer.IceServersGiven)

# fmt: off
# ruff: noqa: E501 - a row of the table is one line

KINDS: Final = (
    # Paths and P2P links
    Kind("M-01", _SUB, "R/ua",                 "MN/sm",                 "resources:PH",                      Path,            _DONE,     "set the path of a handler", "C-09, C-28, C-29"),
    Kind("M-02", _UNS, "R/ua",                 "MN/sm",                 "resources:PH",                      Path,            _DONE,     "remove the path of a handler"),
    Kind("M-03", _SUB, "R/registry",           "MN/sm",                 "resources:PQ",                      Path,            _DONE,     "set the path of a requester", "C-28"),
    Kind("M-04", _UNS, "R/registry",           "MN/sm",                 "resources:PQ",                      Path,            _DONE,     "remove the path of a requester"),
    Kind("M-05", _SUB, "R/registry",           "PH",                    "resources:PC",                      Path,            _DONE,     "set a listener for one link of a handler"),
    Kind("M-06", _CRE, "PX",                   "PX/status",             "resource value=created",            LinkStatus,      None,      "report a new link", "C-13"),
    Kind("M-07", _UPD, "PX",                   "PX/status",             "resource",                          LinkStatus,      None,      "report a step of a link", "C-12"),
    Kind("M-08", _SUB, "R1/registry",          "R2/registry",           "resources:R2/registry/changes",     Path,            _LISTED,   "follow what lives in a runtime", "C-33, C-34"),
    Kind("M-09", _UPD, "R2/registry",          "R2/registry/changes",   "operation",                         ListChange,      None,      "report arrivals at a runtime, and departures", "C-35"),
    Kind("M-10", _UNS, "R1/registry",          "R2/registry",           "resources:R2/registry/changes",     Path,            _DONE,     "follow it no more"),
    Kind("M-11", _EXE, "R/registry",           "PQ",                    "method=connect",                    Command,         _DONE,     "have a link established again"),
    Kind("M-12", _EXE, "R/registry",           "PX",                    "method=disconnect",                 Command,         _DONE,     "have a link ended"),
    Kind("M-12", _EXE, "R/registry",           "PQ",                    "method=yield",                      Command,         _DONE,     "have a link wait for the peer's", "P2P-27"),
    Kind("M-12", _EXE, "R/registry",           "PQ",                    "method=resume",                     Command,         _DONE,     "have a link wait no longer", "P2P-27"),
    # Stubs and sessions
    Kind("M-13", _UPD, "S",                    "S/status",              "!resource",                         session.Status,          None,      "report a step of a stub", "C-12"),
    Kind("M-14", _EXE, "S",                    "MN/session",            "method=open",                       session.SessionControl,  _OPENED,   "open a session", "C-65, C-79"),
    Kind("M-15", _EXE, "S",                    "MN/session",            "method=re-open",                    session.SessionControl,  _RESUMED,  "take up a session again", "C-65, C-79"),
    Kind("M-16", _EXE, "S",                    "MN/session",            "method=close",                      session.SessionControl,  _DONE,     "close a session"),
    Kind("M-17", _EXE, "S",                    "MN/session",            "method=ping",                       session.SessionControl,  _DONE,     "keep a session alive"),
    Kind("M-17", _EXE, "R/ua",                 "MN/session",            "method=release",                    session.SessionControl,  _DONE,     "give back a name of a runtime", "MN-21"),
    Kind("M-17", _EXE, "S",                    "MN/session",            "method=renew",                      session.SessionControl,  _STATED,   "renew the domain's statement about a runtime"),
    # Addresses
    Kind("M-18", _CRE, "R/address-allocation", "MN/address-allocation", "",                                  registry.Allocate,        _GIVEN,    "allocate addresses", "C-42..C-45"),
    Kind("M-19", _DEL, "R/address-allocation", "MN/address-allocation", "resource",                          registry.Free,            _DONE,     "free a block of addresses", "C-46"),
    Kind("M-20", _DEL, "R/address-allocation", "MN/address-allocation", "childrenResources",                 registry.Free,            _DONE,     "free addresses", "C-47"),
    # Registry
    Kind("M-21", _CRE, "R/registry",           "DR",                    "value:{}",                          registry.Register,        _DONE,     "register", "REG-07, REG-10"),
    Kind("M-22", _UPD, "R/registry",           "DR",                    "value:{} !attribute",               registry.UpdateRecord,    _DONE,     "change a record"),
    Kind("M-23", _UPD, "R/registry",           "DR",                    "attribute=status value",            registry.UpdateRecord,    _DONE,     "unregister", "C-52"),
    Kind("M-24", _UPD, "R/registry",           "DR",                    "!value !attribute",                 registry.UpdateRecord,    _DONE,     "keep a registration alive", "C-53"),
    Kind("M-25", _REA, "R/registry",           "DR",                    "resource:URL !attribute",           registry.ReadRecord,      _RECORD,   "read a record", "C-54"),
    Kind("M-25", _REA, "R/registry",           "DR",                    "resource:URL attribute",            registry.ReadRecord,      _ATTRIBUTE,"read one attribute of a record", "C-54"),
    Kind("M-26", _REA, "x",                    "DR",                    "resource:USER",                     registry.ReadRecord,      _FOUND,    "search by user"),
    Kind("M-27", _REA, "x",                    "DR",                    "resource:GUID",                     registry.ReadRecord,      _FOUND,    "search by global identifier"),
    Kind("M-28", _REA, "x",                    "DR",                    "resource:IDP",                      registry.ReadRecord,      _FOUND,    "search by an identity provider's name"),
    Kind("M-29", _SUB, "x",                    "MN/sm",                 "resources:x/registration",          Path,            _DONE,     "follow the status of a registration"),
    Kind("M-30", _UPD, "DR",                   "x/registration",        "",                                  registry.RecordChanged,   None,      "report the status of a registration", "C-55"),
    Kind("M-31", _REA, "H",                    "R/discovery",           "resource",                          registry.Discover,        _VALUE,    "search in the own runtime"),
    # Data objects
    Kind("M-32", _CRE, "H",                    "R/sm",                  "value schema !authorise",           bodies.CreateObject,    _CREATED,  "create an object"),
    Kind("M-33", _CRE, "H",                    "R/sm",                  "resource authorise",                bodies.InviteObservers, _SOURCED,  "have an observer invited", "C-80"),
    Kind("M-34", _CRE, "O/subscription",       "H",                     "source",                            bodies.Invitation,      _DONE,     "invite an observer"),
    Kind("M-35", _SUB, "R/sm",                 "MN/sm",                 "resources:O",                       Path,            _DONE,     "set the paths of an object"),
    Kind("M-36", _SUB, "H",                    "R/sm",                  "resource",                          bodies.Observe,         _OBSERVED, "observe an object", "C-51"),
    Kind("M-36", _UPD, "R/sm",                 "H",                     "resource value:{}",                 bodies.ObjectAnew,      _DONE,     "show an observer the object again"),
    Kind("M-37", _SUB, "R/sm",                 "MN/sm",                 "resources:O/changes",               Path,            _DONE,     "set the path of an observer", "C-49"),
    Kind("M-38", _SUB, "R/sm",                 "O/subscription",        "source !version",                   bodies.Subscription,    _GRANTED,  "subscribe an observer"),
    Kind("M-38", _SUB, "R/sm",                 "O/subscription",        "source version",                    bodies.Subscription,    _RENEWED,  "renew the subscription of an observer"),
    Kind("M-39", _FWD, "O",                    "H",                     "message:{}",                        bodies.Forward,         _DONE,     "ask the reporter about an observer"),
    Kind("M-40", _UPD, "O",                    "O/changes",             "version",                           bodies.Change,          None,      "publish a change", "C-35, C-77"),
    Kind("M-41", _REA, "H",                    "O",                     "!attribute !childrenAfter",         Nothing,         _SHOWN,    "read an object"),
    Kind("M-41", _REA, "H",                    "O",                     "attribute",                         bodies.ReadAttribute,   _ATTRIBUTE,"read one attribute of an object"),
    Kind("M-41", _REA, "H",                    "O",                     "childrenAfter",                     bodies.ReadChildren,    _VALUE,    "read a page of the children of an object"),
    Kind("M-42", _UNS, "H",                    "R/sm",                  "resource",                          bodies.ObjectName,      _DONE,     "observe no more"),
    Kind("M-43", _UNS, "R/sm",                 "O/subscription",        "source",                            bodies.Subscription,    _DONE,     "unsubscribe an observer", "C-75"),
    Kind("M-44", _UNS, "R/sm",                 "MN/sm",                 "resources:O/changes",               Path,            _DONE,     "remove the path of an observer"),
    Kind("M-45", _UNS, "H",                    "H2",                    "resource:O",                        bodies.ObjectName,      _DONE,     "expel an observer"),
    Kind("M-46", _DEL, "H",                    "R/sm",                  "resource",                          bodies.EndReport,       _DONE,     "delete an object, or one attribute or child of it"),
    Kind("M-47", _DEL, "O/subscription",       "O/changes",             "",                                  Nothing,         _SOURCED,  "notify that an object is deleted", "C-74, C-81"),
    Kind("M-48", _CRE, "H",                    "O/children/<n>",        "resource",                          bodies.Child,           _SOURCED,  "create a child object", "C-81"),
    Kind("M-49", _UPD, "H",                    "O/children/<n>",        "resource value",                    bodies.Child,           None,      "change a child object"),
    Kind("M-49", _UPD, "O",                    "O/children/<n>",        "digest !ended !resource",           bodies.ChildrenSign,    None,      "report what children there are"),
    Kind("M-49", _UPD, "O",                    "O/children/<n>",        "digest ended !resource",            bodies.ChildrenEnded,   None,      "report which children the object has removed"),
    Kind("M-49", _UPD, "O",                    "O/children/<n>",        "resource value version",            bodies.ChildReport,     None,      "report a child to observers by links"),
    Kind("M-50", _DEL, "H",                    "O/children/<n>",        "resource !attribute",               bodies.ChildName,       None,      "delete a child object"),
    Kind("M-50", _DEL, "H",                    "O/children/<n>",        "resource attribute",                bodies.ChildAttribute,  None,      "delete one attribute of a child object"),
    Kind("M-50", _DEL, "O",                    "O/children/<n>",        "resource version",                  bodies.ChildEnd,        None,      "report its end to observers by links"),
    Kind("M-51", _CRE, "H",                    "R/sm",                  "resume=true !value !resource",      bodies.Resume,          _OBJECTS,  "resume reported objects"),
    Kind("M-52", _SUB, "H",                    "R/sm",                  "resume=true !resource",             bodies.Resume,          _DONE,     "resume observed objects"),
    Kind("M-52", _SUB, "O/subscription",       "R/sm",                  "resource",                          bodies.ObjectBack,      _VALUE,    "notify that an object is back"),
    Kind("M-53", _UPD, "O",                    "O/observers",           "operation",                         bodies.ObserversChange, None,      "report observers that join or leave"),
    # Connectors
    Kind("M-55", _EXE, "x",                    "IDM",                   "method",                            session.IdentityCall,    _VALUE,    "call an identity provider", "C-59"),
    Kind("M-56", _REA, "R/graph-connector",    "GR",                    "resource",                          bodies.ObjectName,      _TOKEN,    "read a user's global record", "C-58"),
    Kind("M-57", _CRE, "R/graph-connector",    "GR",                    "resource value",                    session.GlobalRecord,    _DONE,     "publish a user's global record", "C-58"),
    Kind("M-58", _CRE, "H",                    "QOS",                   "value:{}",                          session.AskQuality,      _TURN,     "ask for network resources", "C-60"),
    Kind("M-58", _REA, "H",                    "QOS",                   "resource",                          session.QualityClient,   _VALUE,    "ask what became of them", "C-60"),
    Kind("M-58", _REA, "x",                    "QOS",                   "!resource",                         Nothing,         _ICE,      "ask for the servers of STUN and TURN", "C-60"),
    Kind("M-58", _DEL, "H",                    "QOS",                   "resource",                          session.QualityClient,   _DONE,     "release them", "C-60"),
    # Requests of hyperties (ours)
    Kind("M-59", _CRE, "H",                    "H2/events",             "givenUp",                           RequestGivenUp,  None,      "give up a request"),
)
# fmt: on
"""All kinds of messages, in the sections of the protocol page; a message has at most one kind."""

_BY_TYPE: Final = {
    type_: tuple(kind for kind in KINDS if kind.type is type_) for type_ in MessageType
}


def message_kind(message: Message) -> Kind | None:
    """Return the catalogue's kind of a message; None for answers and messages of hyperties."""
    return next((kind for kind in _BY_TYPE[message.type] if kind.fits(message)), None)
