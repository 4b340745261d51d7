"""Messages that are nearly valid, as text: golden messages of every kind, spoilt."""

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random

from tests.fuzz import evil
from tests.support.node.node_process import DOMAIN

SCENARIOS = Path(__file__).parents[1] / "fixtures" / "golden-steps.jsonl"
Message = dict[str, object]


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


class Texts:
    """Makes texts as a runtime that means harm.

    Args:
        dice: Where chance comes from.
        runtime: Its own runtime, as it spells it.
        first_id: Ids go on from here.
    """

    def __init__(self, dice: Random, runtime: str, first_id: int = 1) -> None:
        self.dice = dice
        self.runtime = runtime
        self._id = first_id

    def text(self) -> bytes:
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
        text = text.replace("hyperty-runtime://b.ex/rb", evil.BOB).replace(
            "hyperty://b.ex/hb", evil.HB
        )
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

    def spoilt(self, text: bytes) -> bytes:
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
        return (
            b"{" + more + b"," + text[1:]
            if self.dice.random() < 0.5
            else text[:-1] + b"," + more + b"}"
        )

    def _odd_number(self, text: bytes) -> bytes:
        number = self.dice.choice(evil.RAW_NUMBERS).encode()
        key = self.dice.choice((b'"id"', b'"x"', b'"body"'))
        return b"{" + key + b":" + number + b"," + text[1:]

    def _lines(self, text: bytes) -> bytes:
        others = [self.text() for _ in range(self.dice.choice((1, 3, 70)))]
        return b"\n".join([text, *others])

    def _other_encoding(self, text: bytes) -> bytes:
        way = self.dice.choice(("utf-16", "utf-32", "utf-7", "cp037"))
        return text.decode(errors="replace").encode(way, errors="replace")


_SPOIL: tuple[Callable[[Texts, Message], None], ...] = (
    Texts._other_field, Texts._no_field, Texts._more_field, Texts._other_id,
    Texts._text_id, Texts._other_type, Texts._forged_from, Texts._forged_from,
    Texts._other_to, Texts._other_to, Texts._ends_swapped, Texts._forged_source,
    Texts._forged_via, Texts._other_value, Texts._other_value, Texts._no_value,
    Texts._eavesdropping, Texts._another_dialect,
)  # fmt: skip
_SPOIL_TEXT: tuple[Callable[[Texts, bytes], bytes], ...] = (
    Texts._cut, Texts._flipped, Texts._inserted, Texts._doubled_key, Texts._odd_number,
    Texts._lines, Texts._other_encoding,
)  # fmt: skip
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
