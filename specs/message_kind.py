"""What a row of the message catalogue says, and how a message is held against it.

Forms of addresses, as the message catalogue writes them: `R/registry`, `PX/status`.

The part before the first slash names a form, the rest is meant literally, `<n>`
is any one segment. Forms that differ only by a number or a small letter behind
(`R`, `R2`, `H`, `Hx`) are the same form of, usually, another address.
"""

import re
from functools import lru_cache
from typing import Final, Literal, TypeAlias

import attrs

from specs.bodies.answer import Provisional, Refusal
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
"""What each form looks like, as a regular expression for canonical addresses.

`x` any; `R` a runtime; `PQ` and `PH` its P2P stubs, `PC` a handler's end of one
link, `PX` any end; `S` any stub; `H` a hyperty, or a stub that acts like one; `O` a
data object; `MN`, `DR`, `IDM`, `QOS` the services of a domain; `GR` the global
registry; the rest is what a registry can be asked for.
"""


@lru_cache(maxsize=256)
def _compiled(form: str) -> re.Pattern[str]:
    head, slash, rest = form.partition("/")
    looks = FORMS.get(head) or FORMS.get(head.rstrip("12xy"))
    if looks is None:
        raise SpecError(f"{form!r} begins with no known form of an address")
    tail = re.escape(slash + rest).replace("<n>", _PART)
    return re.compile(f"({looks}){tail}")


def bound(form: str, address: str) -> str | None:
    """Return which address the form's first part stands for; None if the form does not fit.

    Raises:
        SpecError: There is no such form.
    """
    found = _compiled(form).fullmatch(address)
    return None if found is None else found[1]


BodyClass: TypeAlias = type[attrs.AttrsInstance]


@attrs.frozen(slots=True)
class Answers:
    """Into which class an answer is read, by its code.

    Attributes:
        yes: From 200 to 299.
        wait: Below 200.
        no: From 300 on.
        late: At 408, which a registry may fill with what it knows (M-25).
    """

    yes: BodyClass
    wait: BodyClass = Provisional
    no: BodyClass = Refusal
    late: BodyClass = Refusal

    def body(self, code: int) -> BodyClass:
        """Return the class for a code."""
        if code < FIRST_FINAL:
            return self.wait
        if code == Code.TIMEOUT:
            return self.late
        return self.yes if code <= LAST_SUCCESS else self.no


_Test: TypeAlias = Literal["has", "lacks", "object", "says", "names"]

_MARK: Final = re.compile(r"(?P<lacks>!)?(?P<field>\w+)(?P<how>[=:])?(?P<what>.+)?")


@attrs.frozen(slots=True)
class Mark:
    """What a body must have for a message to be of a row.

    Written `resource` (given), `!resource` (not given), `value:{}` (an object),
    `method=open` (this word), `resources:PQ` (an address of this form; the first,
    in a list).
    """

    field: str
    test: _Test
    what: str = ""

    @classmethod
    def read(cls, text: str) -> "Mark":
        """Read a mark as it is written in the table.

        Raises:
            SpecError: It is none.
        """
        found = _MARK.fullmatch(text)
        if found is None:
            raise SpecError(f"{text!r} is no mark of a body")
        field, how, what = found["field"], found["how"], found["what"] or ""
        if found["lacks"]:
            return cls(field, "lacks")
        if what == "{}":
            return cls(field, "object")
        return cls(field, {"=": "says", ":": "names", None: "has"}[how], what)  # type: ignore[arg-type] # of the pattern

    def fits(self, body: JsonObject) -> bool:
        """Say whether a body has the mark."""
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
                return self._named(value)

    def _named(self, value: Json) -> bool:
        first = value[0] if isinstance(value, list) and value else value
        return isinstance(first, str) and bound(self.what, first) is not None


def marks_of(text: str) -> tuple[Mark, ...]:
    """Read the marks of a row; spaces stand between them."""
    return tuple(Mark.read(one) for one in text.split())


@attrs.frozen(slots=True)
class Kind:
    """One row of the catalogue.

    Attributes:
        id: Its name in the protocol.
        type: The verb.
        from_: Form of the sender's address.
        to: Form of the receiver's; what stands before the first slash is the
            sender's where both write it the same way.
        marks: What its body must have, to tell it from other rows.
        body: The class of its body.
        answers: Classes of the answers' bodies; None: it is an event.
        name: What it does.
        cite: Contradictions of the sources that were decided here.
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
        """Whether nobody answers it."""
        return self.answers is None

    def fits(self, message: Message) -> bool:
        """Say whether a message is of this row."""
        if message.type is not self.type:
            return False
        sender, receiver = bound(self.from_, message.from_), bound(self.to, message.to)
        if sender is None or receiver is None:
            return False
        is_same = self.from_.partition("/")[0] == self.to.partition("/")[0]
        if is_same and sender != receiver:
            return False
        return all(mark.fits(message.body) for mark in self.marks)
