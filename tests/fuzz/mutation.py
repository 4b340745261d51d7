"""Frames that are nearly messages, and some that are nearly frames. Seeded throughout."""

import json
from collections.abc import Callable
from enum import Enum

import attrs

from tests.fuzz import evil
from tests.fuzz.texts import Texts
from tests.support.wire.raw_websocket import head
from tests.support.wire.wire_socket import BINARY, CLOSE, PING, PONG, TEXT, frame_of, masked

BATCH_OF_CI = 30_000
SEED_OF_CI = 1


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


class Mutator(Texts):
    """Makes frames as a runtime that means harm."""

    def shot(self, wildness: float = 0.06) -> Shot:
        """Return the next frame; `wildness`: the share of those that spoil link or session."""
        chance = self.dice.random()
        if chance < wildness:
            return self._wild()
        if chance < wildness + 0.15:
            return self._text_shot(self.spoilt(self.text()))
        return self._text_shot(self.text())

    def _text_shot(self, text: bytes) -> Shot:
        if not _is_unicode(text):
            if self.dice.random() < 0.01:
                return Shot(frame_of(text), text, Temper.LAST)
            text = text.decode(errors="replace").encode()
        is_calm = b"session" not in text and b"cmd" not in text and len(text) < 60_000
        return Shot(frame_of(text), text, Temper.CALM if is_calm else Temper.WILD)

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
        body = self.dice.choice(
            (None, {}, {"runtimeURL": self.runtime}, {"runtimeURL": evil.ALICE}, 7)
        )
        cmd = self.dice.choice(("disconnect", "connect", "ping", None))
        return frame_of(json.dumps({"cmd": cmd, "body": body}).encode())

    def _binary(self) -> bytes:
        return frame_of(self.text(), BINARY)

    def _pieces(self) -> bytes:
        text = self.text()
        place = self.dice.randrange(len(text) + 1)
        more = frame_of(b"x", PING) if self.dice.random() < 0.5 else b""
        return frame_of(text[:place], TEXT, 0) + more + frame_of(text[place:], 0)

    def _half(self) -> bytes:
        """Return a beginning without an end: what follows is taken for its rest."""
        return head(TEXT, self.dice.choice((500, 70_000, 2**20, 2**62))) + self.text()

    def _no_frame(self) -> bytes:
        return self.dice.randbytes(self.dice.randrange(1, 40))

    def _odd_head(self) -> bytes:
        first = self.dice.choice((0xF1, 0xC1, 0x83, 0x8B, 0x80, 0x09, 0x08))
        text = self.text()[:100]
        return bytes([first, 0x80 | len(text)]) + b"\x01\x02\x03\x04" + masked(text)

    def _unmasked(self) -> bytes:
        text = self.text()[:100]
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


_WILD: tuple[Callable[[Mutator], bytes], ...] = (
    *(Mutator._control,) * 6, *(Mutator._upstream_control,) * 6, *(Mutator._command,) * 6,
    *(Mutator._binary,) * 3, *(Mutator._pieces,) * 3, *(Mutator._ping,) * 4, Mutator._half,
    Mutator._no_frame, Mutator._odd_head, Mutator._unmasked, Mutator._closing, Mutator._huge,
)  # fmt: skip
_LAST = frozenset({Mutator._half, Mutator._no_frame})
