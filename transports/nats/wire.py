"""Parser and encoder of the NATS client protocol, without network input or output.

Source: https://docs.nats.io/reference/reference-protocols/nats-protocol
"""

import base64
import binascii
import re
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar, Final, Self, TypeAlias, final

import attrs
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from specs.errors import PlaceError, ProtoflyError
from specs.limits.engine import NATS_LINE, NATS_MESSAGE

# The errors of a NATS client.


class NatsError(ProtoflyError):
    """A NATS server cannot be used; the text is the reason, as half a sentence."""


@final
class CredentialsError(PlaceError):
    """A file with the credentials of a NATS user cannot be used."""

    summary: ClassVar[str] = "cannot use the credentials in {}"


PING: Final = b"PING\r\n"
PONG: Final = b"PONG\r\n"
_END: Final = b"\r\n"
_VERSION: Final = b"NATS/1.0"
_STATUS: Final = b"NATS/1.0 "
_SIGNS: Final = frozenset({b"PING", b"PONG"})
_TEXTS: Final = frozenset({b"INFO", b"-ERR"})
_WORDS: Final = {b"MSG": 4, b"HMSG": 5}
"""Number of words in the first line of a message, by its first word; one more with a reply subject.
"""


@attrs.define(slots=True)
class Delivery:
    """A message that a NATS server delivers for a subscription.

    Attributes:
        subscription: Number of the subscription.
        subject: Subject of the message.
        reply: Subject for answers; empty: none.
        headers: Raw headers; empty: none.
        payload: Payload of the message.
    """

    subscription: int
    subject: bytes
    reply: bytes
    headers: bytes
    payload: bytes


@attrs.frozen
class Line:
    """A line from a NATS server that is no message.

    Attributes:
        word: First word: INFO, -ERR, PING or PONG.
        text: Rest of the line.
    """

    word: bytes
    text: str = ""


Received: TypeAlias = Delivery | Line


class Wire:
    """Incremental parser of the bytes that a NATS server sends."""

    def __init__(self) -> None:
        self._rest = b""

    def receive(self, data: bytes) -> Iterator[Received]:
        """Parse further bytes; yield the complete messages and lines, and keep the rest.

        Raises:
            NatsError: The bytes are not of the protocol, or exceed its limits.
        """
        data = self._rest + data if self._rest else data
        at = 0
        try:
            while (end := data.find(_END, at)) >= 0:
                if data[at] in b"MH":
                    size, head, delivery = _sizes(data[at:end])
                    start = end + 2
                    if len(data) < start + size + 2:
                        break
                    at = start + size + 2
                    delivery.headers = data[start : start + head]
                    delivery.payload = data[start + head : at - 2]
                    yield delivery
                else:
                    line_start, at = at, end + 2
                    item = _read(data[line_start:end])
                    if item is not None:
                        yield item
        finally:
            self._rest = data[at:]
        if end < 0 and len(self._rest) > NATS_LINE:
            raise NatsError("the server sends a line that does not end")


def _sizes(line: bytes) -> tuple[int, int, Delivery]:
    """Parse the first line of a message.

    Return the size of headers and payload, the size of the headers, and the message.
    """
    words = line.split()
    plain = _WORDS.get(words[0], 0)
    try:
        reply = words[3] if len(words) == plain + 1 else b""
        if not plain or len(words) != plain + bool(reply):
            raise NatsError("the server sends a line of no known form")
        size = int(words[-1])
        head = int(words[-2]) if plain == _WORDS[b"HMSG"] else 0
        delivery = Delivery(int(words[2]), words[1], reply, b"", b"")
    except ValueError as exc:
        raise NatsError("the server sends a line of no known form") from exc
    if not 0 <= head <= size <= NATS_MESSAGE:
        raise NatsError("the server sends a message over the limit")
    return size, head, delivery


def _read(line: bytes) -> Line | None:
    """Parse a line that is no message; None: the line is an acknowledgement (`+OK`)."""
    word, _, rest = line.partition(b" ")
    if line in _SIGNS or word in _TEXTS:
        return Line(word, rest.decode(errors="replace").strip(" '"))
    if word != b"+OK":
        raise NatsError("the server sends a line of no known form")
    return None


def publication(subject: bytes, payload: bytes, reply: bytes = b"", head: bytes = b"") -> bytes:
    """Encode the publication of a message.

    Args:
        subject: Subject of the message.
        payload: Payload of the message.
        reply: Subject for an answer; empty: no answer.
        head: Headers, from `headers`; empty: none.
    """
    where = b"%b %b" % (subject, reply) if reply else subject
    if head:
        size = len(head) + len(payload)
        return b"HPUB %b %d %d\r\n%b%b\r\n" % (where, len(head), size, head, payload)
    return b"PUB %b %d\r\n%b\r\n" % (where, len(payload), payload)


def headers(*pairs: tuple[bytes, bytes]) -> bytes:
    """Encode pairs of names and values as the headers of a message."""
    return b"%b\r\n%b\r\n" % (_VERSION, b"".join(b"%b: %b\r\n" % pair for pair in pairs))


def subscription(number: int, subject: bytes) -> bytes:
    """Encode a subscription to a subject, under a number that the client chooses."""
    return b"SUB %b %d\r\n" % (subject, number)


def unsubscription(number: int) -> bytes:
    """Encode the end of the subscription with a number."""
    return b"UNSUB %d\r\n" % number


def status(head: bytes) -> int:
    """Return the status code at the beginning of a message's headers; 0: there is none."""
    if not head.startswith(_STATUS):
        return 0
    code = head[len(_STATUS) : len(_STATUS) + 3]
    return int(code) if code.isdigit() else 0


# Credentials of a NATS user: a signed statement of the account, and the key of the user.

_BLOCK: Final = re.compile(r"-+BEGIN ([A-Z ]+)-+\s*(\S+)\s*-+END [A-Z ]+-+")
_SEED: Final = re.compile(r"SU[A-Z2-7]{56}")
_SEED_BYTES: Final = 36
"""Two bytes of prefixes, the seed of Ed25519, a checksum."""
_USER: Final = 20 << 3
"""Prefix of a public key of a user."""


@final
@attrs.frozen
class Credentials:
    """Credentials of a NATS user: a private key, and an optional statement of the account.

    Attributes:
        statement: The statement (JWT) of the account about the user; empty: the server knows the
            key.
        key: The private key.
    """

    statement: str = attrs.field(repr=False)
    key: Ed25519PrivateKey = attrs.field(repr=False)

    @classmethod
    def load(cls, file: Path) -> Self:
        """Read the credentials in a file.

        Raises:
            CredentialsError: The file cannot be read, or has another form.
        """
        try:
            text = file.read_text()
        except (OSError, UnicodeDecodeError) as exc:
            reason = str(exc.strerror).lower() if isinstance(exc, OSError) else "it is no text"
            raise CredentialsError(file, reason) from exc
        blocks = dict(_BLOCK.findall(text))
        seed = blocks.get("USER NKEY SEED", text.strip())
        if not _SEED.fullmatch(seed):
            raise CredentialsError(file, "it holds no seed of a user's key")
        return cls(blocks.get("NATS USER JWT", ""), _private(file, seed))

    def proof(self, challenge: str) -> dict[str, str]:
        """Return the fields for the client's first message that answer a server's challenge."""
        signed = base64.urlsafe_b64encode(self.key.sign(challenge.encode())).rstrip(b"=").decode()
        if self.statement:
            return {"jwt": self.statement, "sig": signed}
        public = self.key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
        raw = bytes([_USER]) + public
        key = base64.b32encode(raw + _checksum(raw)).rstrip(b"=").decode()
        return {"nkey": key, "sig": signed}


def _private(file: Path, seed: str) -> Ed25519PrivateKey:
    raw = base64.b32decode(seed + "=" * (-len(seed) % 8))
    if len(raw) != _SEED_BYTES or _checksum(raw[:-2]) != raw[-2:]:
        raise CredentialsError(file, "the seed of the key has a wrong checksum")
    return Ed25519PrivateKey.from_private_bytes(raw[2:-2])


def _checksum(raw: bytes) -> bytes:
    return binascii.crc_hqx(raw, 0).to_bytes(2, "little")
