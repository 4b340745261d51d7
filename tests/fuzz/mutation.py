"""Frames that are nearly messages: valid traces of every kind, spoilt. Seeded throughout."""

import json
from collections.abc import Callable
from enum import Enum
from functools import cache
from pathlib import Path
from random import Random

import attrs

from tests.fuzz import evil
from tests.support.node_process import DOMAIN
from tests.support.raw_websocket import head
from tests.support.wire_socket import BINARY, CLOSE, PING, PONG, TEXT, frame_of, masked

BATCH_OF_CI = 50_000
SEED_OF_CI = 1

SCENARIOS = Path(__file__).parents[1] / "fixtures" / "scenarios.jsonl"
Message = dict[str, object]


class Temper(Enum):
    """What a frame does to its link."""

    CALM = "nothing"
    WILD = "it, or the session, may be gone"
    LAST = "what follows is taken for a part of it"


@attrs.frozen
class Shot:
    """One frame.

    Attributes:
        raw: Its bytes on the wire.
        text: What it says, if it is a whole text; None: it is no such thing.
    """

    raw: bytes
    text: bytes | None
    temper: Temper


@cache
def valid() -> tuple[str, ...]:
    """Return the messages of the golden scenarios as text, each shape once."""
    shapes: dict[tuple, str] = {}
    for line in SCENARIOS.read_text().splitlines():
        message = json.loads(line).get("msg")
        if isinstance(message, dict) and "type" in message:
            to = str(message.get("to")).rpartition("/")[2]
            shape = message["type"], to, tuple(sorted(message.get("body") or ()))
            shapes.setdefault(shape, json.dumps(message))
    return tuple(shapes.values())


class Mutator:
    """Makes frames as a runtime that means harm.

    Args:
        dice: Where chance comes from.
        runtime: Its own runtime, as it spells it.
        first_id: Ids go on from here.
    """

    def __init__(self, dice: Random, runtime: str, first_id: int = 1) -> None:
        self.dice = dice
        self.runtime = runtime
        self._id = first_id

    def shot(self, wildness: float = 0.06) -> Shot:
        """Return the next frame; `wildness`: the share of those that spoil link or session."""
        chance = self.dice.random()
        if chance < wildness:
            return self._wild()
        if chance < wildness + 0.15:
            return self._text_shot(self._spoilt_text(self._text()))
        return self._text_shot(self._text())

    def _text_shot(self, text: bytes) -> Shot:
        if not _is_unicode(text):
            if self.dice.random() < 0.01:
                return Shot(frame_of(text), text, Temper.LAST)
            text = text.decode(errors="replace").encode()
        is_calm = b"session" not in text and b"cmd" not in text and len(text) < 60_000
        return Shot(frame_of(text), text, Temper.CALM if is_calm else Temper.WILD)

    # ---- messages

    def _text(self) -> bytes:
        message = self._message()
        for _ in range(self.dice.choice((0, 1, 1, 1, 2, 4))):
            self.dice.choice(_SPOIL)(self, message)
        return json.dumps(message, ensure_ascii=self.dice.random() < 0.5).encode(
            errors="surrogatepass"
        )

    def _message(self) -> Message:
        self._id += 1
        text = self.dice.choice(valid())
        own = self.dice.choice((self.runtime, f"hyperty://{DOMAIN}/own-{self._name}"))
        text = text.replace("hyperty-runtime://a.ex/ra", self.runtime)
        text = text.replace("hyperty://a.ex/ha", own).replace("comm://a.ex/o1", self._object)
        text = text.replace("hyperty-runtime://b.ex/rb", evil.BOB).replace("hyperty://b.ex/hb", evil.HB)
        message = json.loads(text)
        message["id"] = self._id
        if self.dice.random() < 0.3:
            message["to"] = self.dice.choice((*evil.PARTS[:2], evil.HA, evil.GHOST))
        return message

    @property
    def _name(self) -> str:
        return self.runtime.rpartition("/")[2]

    @property
    def _object(self) -> str:
        return f"comm://{DOMAIN}/own-{self._name}"

    def _body(self, message: Message) -> Message:
        body = message.get("body")
        return body if isinstance(body, dict) else {}

    def _other_field(self, message: Message) -> None:
        message[self.dice.choice(("type", "from", "to", "body"))] = evil.anything(
            self.dice, self.runtime
        )

    def _no_field(self, message: Message) -> None:
        message.pop(self.dice.choice(("id", "type", "from", "to", "body")), None)

    def _more_field(self, message: Message) -> None:
        message[self.dice.choice(evil.KEYS)] = evil.anything(self.dice, self.runtime)

    def _other_id(self, message: Message) -> None:
        message["id"] = self.dice.choice((*evil.NUMBERS, *evil.TEXTS[:5], [1], None, "7", "x"))

    def _text_id(self, message: Message) -> None:
        message["id"] = str(message.get("id"))

    def _other_type(self, message: Message) -> None:
        message["type"] = self.dice.choice(evil.TYPES)

    def _forged_from(self, message: Message) -> None:
        message["from"] = evil.address(self.dice, self.runtime)

    def _other_to(self, message: Message) -> None:
        message["to"] = evil.address(self.dice, self.runtime)

    def _ends_swapped(self, message: Message) -> None:
        message["from"], message["to"] = message.get("to"), message.get("from")

    def _forged_source(self, message: Message) -> None:
        key = self.dice.choice(("source", "subscriber"))
        self._body(message)[key] = evil.address(self.dice, self.runtime)

    def _forged_via(self, message: Message) -> None:
        many = self.dice.choice((1, 2, 9, 300))
        self._body(message)["via"] = [evil.address(self.dice, self.runtime) for _ in range(many)]

    def _other_value(self, message: Message) -> None:
        body = self._body(message)
        key = self.dice.choice((*body, self.dice.choice(evil.KEYS)))
        body[key] = evil.anything(self.dice, self.runtime)

    def _no_value(self, message: Message) -> None:
        body = self._body(message)
        if body:
            del body[self.dice.choice(list(body))]

    def _eavesdropping(self, message: Message) -> None:
        """Ask for what is somebody else's to hear."""
        part = self.dice.choice(("", "/changes", "/status", "/registration", "/children/x", "/sm"))
        message |= {"type": "subscribe", "from": self.runtime, "to": evil.PARTS[0]}
        message["body"] = {"resources": [self.dice.choice(evil.VICTIMS) + part]}

    def _another_dialect(self, message: Message) -> None:
        for old, new in self.dice.choice(_DIALECTS):
            text = json.dumps(message).replace(old, new)
            message.clear()
            message |= json.loads(text)

    # ---- texts

    def _spoilt_text(self, text: bytes) -> bytes:
        return self.dice.choice(_SPOIL_TEXT)(self, text)

    def _cut(self, text: bytes) -> bytes:
        return text[: self.dice.randrange(len(text) + 1)]

    def _flipped(self, text: bytes) -> bytes:
        spoilt = bytearray(text)
        for _ in range(self.dice.randint(1, 4)):
            spoilt[self.dice.randrange(len(spoilt))] = self.dice.randrange(256)
        return bytes(spoilt)

    def _inserted(self, text: bytes) -> bytes:
        place = self.dice.randrange(len(text) + 1)
        return text[:place] + self.dice.choice(_BYTES) + text[place:]

    def _doubled_key(self, text: bytes) -> bytes:
        key = self.dice.choice(("id", "type", "from", "to", "body"))
        value = json.dumps(evil.anything(self.dice, self.runtime))
        more = f'"{key}":{value}'.encode()
        return b"{" + more + b"," + text[1:] if self.dice.random() < 0.5 else text[:-1] + b"," + more + b"}"

    def _odd_number(self, text: bytes) -> bytes:
        number = self.dice.choice(evil.RAW_NUMBERS).encode()
        key = self.dice.choice((b'"id"', b'"x"', b'"body"'))
        return b"{" + key + b":" + number + b"," + text[1:]

    def _lines(self, text: bytes) -> bytes:
        others = [self._text() for _ in range(self.dice.choice((1, 3, 70)))]
        return b"\n".join([text, *others])

    def _other_encoding(self, text: bytes) -> bytes:
        way = self.dice.choice(("utf-16", "utf-32", "utf-7", "cp037"))
        return text.decode(errors="replace").encode(way, errors="replace")

    # ---- frames that spoil the link or the session

    def _wild(self) -> Shot:
        make = self.dice.choice(_WILD)
        return Shot(make(self), None, Temper.LAST if make in _LAST else Temper.WILD)

    def _control(self) -> bytes:
        self._id += 1
        runtime = self.dice.choice((self.runtime, self.runtime, evil.ALICE, evil.BOB))
        method = self.dice.choice(("open", "re-open", "close", "ping", "dance", "", 7))
        params = {"runtimeURL": runtime, "token": self.dice.choice(("0" * 64, "", 7, None, "x"))}
        message = {
            "id": self._id, "type": "execute", "from": f"{runtime}/protostub/1",
            "to": evil.PARTS[2], "body": {"method": method, "params": params},
        }  # fmt: skip
        return frame_of(json.dumps(message).encode())

    def _upstream_control(self) -> bytes:
        self._id += 1
        type_ = self.dice.choice(("open", "re-open", "close", "OPEN", "", None, "read"))
        from_ = self.dice.choice((self.runtime, evil.ALICE)) + self.dice.choice(("", "/x", "/0"))
        message = {"id": self._id, "type": type_, "from": from_, "to": "mn:/session"}
        return frame_of(json.dumps(message).encode())

    def _command(self) -> bytes:
        body = self.dice.choice((None, {}, {"runtimeURL": self.runtime}, {"runtimeURL": evil.ALICE}, 7))
        cmd = self.dice.choice(("disconnect", "connect", "ping", None))
        return frame_of(json.dumps({"cmd": cmd, "body": body}).encode())

    def _binary(self) -> bytes:
        return frame_of(self._text(), BINARY)

    def _pieces(self) -> bytes:
        text = self._text()
        place = self.dice.randrange(len(text) + 1)
        more = frame_of(b"x", PING) if self.dice.random() < 0.5 else b""
        return frame_of(text[:place], TEXT, 0) + more + frame_of(text[place:], 0)

    def _half(self) -> bytes:
        """Return a beginning without an end: what follows is taken for its rest."""
        return head(TEXT, self.dice.choice((500, 70_000, 2**20, 2**62))) + self._text()

    def _no_frame(self) -> bytes:
        return self.dice.randbytes(self.dice.randrange(1, 40))

    def _odd_head(self) -> bytes:
        first = self.dice.choice((0xF1, 0xC1, 0x83, 0x8B, 0x80, 0x09, 0x08))
        text = self._text()[:100]
        return bytes([first, 0x80 | len(text)]) + b"\x01\x02\x03\x04" + masked(text)

    def _unmasked(self) -> bytes:
        text = self._text()[:100]
        return bytes([0x81, len(text)]) + text

    def _ping(self) -> bytes:
        size = self.dice.choice((0, 5, 125, 126, 70_000))
        return frame_of(b"p" * size, self.dice.choice((PING, PONG)))

    def _closing(self) -> bytes:
        code = self.dice.choice((0, 999, 1000, 1001, 1005, 1006, 2999, 3000, 65535))
        reason = self.dice.choice((b"", b"bye", b"\xff\xfe", b"x" * 123))
        data = code.to_bytes(2) + reason
        return frame_of(self.dice.choice((data, b"", b"\x03")), CLOSE)

    def _huge(self) -> bytes:
        return frame_of(b'{"x":"' + b"y" * self.dice.choice((66_000, 262_000, 300_000)) + b'"}')


def _is_unicode(text: bytes) -> bool:
    """Say whether a text frame may hold this; if not, the link is closed for it (1007)."""
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


_SPOIL: tuple[Callable[[Mutator, Message], None], ...] = (
    Mutator._other_field, Mutator._no_field, Mutator._more_field, Mutator._other_id,
    Mutator._text_id, Mutator._other_type, Mutator._forged_from, Mutator._forged_from,
    Mutator._other_to, Mutator._other_to, Mutator._ends_swapped, Mutator._forged_source,
    Mutator._forged_via, Mutator._other_value, Mutator._other_value, Mutator._no_value,
    Mutator._eavesdropping, Mutator._another_dialect,
)  # fmt: skip
_SPOIL_TEXT: tuple[Callable[[Mutator, bytes], bytes], ...] = (
    Mutator._cut, Mutator._flipped, Mutator._inserted, Mutator._doubled_key, Mutator._odd_number,
    Mutator._lines, Mutator._other_encoding,
)  # fmt: skip
_WILD: tuple[Callable[[Mutator], bytes], ...] = (
    *(Mutator._control,) * 6, *(Mutator._upstream_control,) * 6, *(Mutator._command,) * 6,
    *(Mutator._binary,) * 3, *(Mutator._pieces,) * 3, *(Mutator._ping,) * 4, Mutator._half,
    Mutator._no_frame, Mutator._odd_head, Mutator._unmasked, Mutator._closing, Mutator._huge,
)  # fmt: skip
_LAST = frozenset({Mutator._half, Mutator._no_frame})
_BYTES = (
    b"\x00", b"\xff", b"\xed\xa0\x80", b"\\ud800", b"\xef\xbb\xbf", b"[" * 200, b"\n", b"\r", b"{",
    b"}", b'"', b"\\", b"/**/", b",", b"\xf4\x90\x80\x80", b"1e999",
)  # fmt: skip
_DIALECTS = (
    (("hyperty-runtime://", "runtime://"),),
    (("runtime://", "RUNTIME://"),),
    (('"resources"', '"subscribe"'),),
    (('"description"', '"desc"'), ('"value"', '"Value"')),
    (("/address-allocation", "/object-address-allocation"),),
    (('"source"', '"subscriber"'),),
)
