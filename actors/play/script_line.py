"""Reads one line of a scenario file into its step."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, TypeVar, final

from actors.play.hop import Hop, Place, read_hop, read_place
from actors.play.macros import expanded
from actors.play.script import (
    AuthzStep,
    CallStep,
    FaultStep,
    Flag,
    IngestStep,
    MessageStep,
    ResolveStep,
    StateStep,
    Step,
    TableStep,
    TimeStep,
)
from specs.errors import ProtoflyError
from specs.jsonvalue import Json, JsonObject
from specs.message import Message
from specs.normalise import normalise
from specs.reply_code import DropReason
from specs.trace import Op

__all__ = ["Fields", "read_step"]

T = TypeVar("T")

_ROW_OPS: Final = frozenset({Op.ADD, Op.UPD, Op.DEL})
_LONGEST: Final = 30 * 86_400
"""Seconds that may pass at once (ours); sessions are pinged all the while."""

_LOST: Final = "lost"
"""In place of the reason of a drop (ours): nobody dropped it, the network lost it."""

_DECISIONS: Final = frozenset({"permit", "deny"})


@final
class Fields:
    """The fields of one line; each is taken once, and none may be left.

    All methods raise `ValueError` saying what is wrong.
    """

    def __init__(self, line: JsonObject) -> None:
        # A name that ends so is a remark: nobody reads it.
        self._left = {name: value for name, value in line.items() if not name.endswith("_")}

    def take(self, name: str) -> Json:
        """Take a field, whatever it holds."""
        if name not in self._left:
            raise ValueError(f"{name} is missing")
        return self._left.pop(name)

    def text(self, name: str) -> str:
        """Take a text."""
        value = self.take(name)
        if isinstance(value, str):
            return value
        raise ValueError(f"{name} must be a text")

    def some_text(self, name: str) -> str:
        """Take a text that may be missing."""
        return self.text(name) if name in self._left else ""

    def text_or_null(self, name: str) -> str | None:
        """Take a text or null."""
        if name in self._left and self._left[name] is None:
            self._left.pop(name)
            return None
        return self.text(name)

    def whole(self, name: str) -> int:
        """Take a whole number from 1."""
        value = self.take(name)
        if type(value) is not int or value < 1:
            raise ValueError(f"{name} must be a whole number from 1")
        return value

    def mark(self, name: str) -> bool:
        """Take a mark: true, or false as if it were missing."""
        value = self.take(name)
        if isinstance(value, bool):
            return value
        raise ValueError(f"{name} must be true or false")

    def object(self, name: str) -> JsonObject:
        """Take an object."""
        value = self.take(name)
        if isinstance(value, dict):
            return value
        raise ValueError(f"{name} must be an object")

    def texts(self, name: str) -> tuple[str, ...]:
        """Take a list of texts."""
        value = self.take(name)
        listed = value if isinstance(value, list) else [value]
        found = tuple(one for one in listed if isinstance(one, str))
        if listed is not value or len(found) != len(listed):
            raise ValueError(f"{name} must be a list of texts")
        return found

    def maybe(self, name: str, take: Callable[[str], T]) -> T | None:
        """Take a field by one of the methods above if it is there."""
        return take(name) if name in self._left else None

    def done(self) -> None:
        """Make sure that everything was taken."""
        if self._left:
            unknown = ", ".join(self._left)
            raise ValueError(f"unknown fields {unknown}: end the name of a remark with _")


def read_step(number: int, fields: Fields) -> Step:
    """Read the fields of a line, behind its scenario and number.

    Raises:
        ValueError: They are no step; says what is wrong.
    """
    kind = fields.text("k")
    reader = _READERS.get(kind)
    if reader is None:
        raise ValueError(f"k must be one of {', '.join(_READERS)}, not {kind!r}")
    step = reader(number, fields)
    fields.done()
    return step


def _message(fields: Fields, name: str) -> Message:
    try:
        return normalise(fields.object(name))
    except ProtoflyError as error:
        raise ValueError(f"{name} is no message: {error}") from error


def _hop(fields: Fields) -> Hop:
    return read_hop(fields.text("hop"))


def _place(fields: Fields) -> Place:
    return read_place(fields.text("at"))


def _message_step(number: int, fields: Fields) -> Step:
    drop = fields.some_text("drop")
    is_lost = _first_word(drop) == _LOST
    return MessageStep(
        number=number,
        hop=_hop(fields),
        message=_message(fields, "msg"),
        flags=frozenset(flag for flag in Flag if fields.maybe(flag, fields.mark)),
        drop=None if is_lost else _drop(drop),
        is_lost=is_lost,
        link=fields.maybe("p2p", fields.text),
        deliver_to=fields.maybe("deliver_to", fields.texts),
    )


def _drop(text: str) -> DropReason | None:
    """Read `loop: own stub already in via`: the reason, then words for people."""
    if not text:
        return None
    word = _first_word(text)
    if word not in set(DropReason):
        raise ValueError(f"drop must begin with one of {', '.join(DropReason)}, {_LOST}")
    return DropReason(word)


def _first_word(text: str) -> str:
    return text.partition(":")[0].strip()


def _state_step(number: int, fields: Fields) -> Step:
    key = fields.take("key")
    parts = key.split("|") if isinstance(key, str) else key
    if not isinstance(parts, list) or not all(isinstance(part, str) for part in parts):
        raise ValueError("key must be a text or a list of texts")
    return StateStep(
        number=number,
        machine=fields.text("machine"),
        key=tuple(str(expanded(part)) for part in parts),
        old=fields.text_or_null("old"),
        new=fields.text("new"),
        cause=fields.some_text("cause"),
    )


def _table_step(number: int, fields: Fields) -> Step:
    op = fields.text("op")
    if op not in _ROW_OPS:
        raise ValueError(f"op must be one of {', '.join(sorted(_ROW_OPS))}")
    return TableStep(
        number=number,
        table=fields.text("table"),
        op=Op(op),
        at=_place(fields),
        key=fields.text("key"),
        val=fields.maybe("val", fields.take),
    )


def _resolve_step(number: int, fields: Fields) -> Step:
    return ResolveStep(
        number=number,
        at=_place(fields),
        to=fields.text("to"),
        result=fields.text_or_null("result"),
        why=fields.some_text("why"),
    )


def _authz_step(number: int, fields: Fields) -> Step:
    decision = fields.text("decision")
    if decision not in _DECISIONS:
        raise ValueError("decision must be permit or deny")
    return AuthzStep(
        number=number,
        at=_place(fields),
        ref=fields.whole("ref"),
        decision=decision,
        why=fields.some_text("why"),
    )


def _time_step(number: int, fields: Fields) -> Step:
    seconds = fields.take("dt")
    if isinstance(seconds, bool | str | list | dict | None) or not 0 <= seconds <= _LONGEST:
        raise ValueError(f"dt must be a number of seconds up to {_LONGEST}: 30 days")
    return TimeStep(number=number, seconds=float(seconds), why=fields.some_text("why"))


def _fault_step(number: int, fields: Fields) -> Step:
    return FaultStep(number=number, what=fields.text("what"))


def _call_step(number: int, fields: Fields) -> Step:
    return CallStep(number=number, what=fields.text("what"))


def _ingest_step(number: int, fields: Fields) -> Step:
    return IngestStep(number=number, raw=fields.object("raw"), normal=_message(fields, "norm"))


_READERS: Final[Mapping[str, Callable[[int, Fields], Step]]] = MappingProxyType(
    {
        "msg": _message_step,
        "state": _state_step,
        "table": _table_step,
        "resolve": _resolve_step,
        "authz": _authz_step,
        "time": _time_step,
        "fault": _fault_step,
        "call": _call_step,
        "ingest": _ingest_step,
    }
)
