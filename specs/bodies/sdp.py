"""Read and write session descriptions (SDP) of a WebRTC data channel, and read ICE candidates.

Only the fields that a data channel needs are accepted (docs/p2p.md).
"""

import re
from typing import Final

import attrs

from specs.errors import BadMessageError
from specs.limits.webrtc import MAX_ICE_CANDIDATE, MAX_ICE_CANDIDATES, MAX_SDP

_LINE: Final = re.compile(r"([a-z])=([^\r\n]*)\Z")
_MEDIA: Final = re.compile(r"application \d{1,5} UDP/DTLS/SCTP webrtc-datachannel\Z")
_USER: Final = re.compile(r"[A-Za-z0-9+/]{4,256}\Z")
_PASSWORD: Final = re.compile(r"[A-Za-z0-9+/]{22,256}\Z")
_FINGERPRINT: Final = re.compile(r"sha-256 (?:[0-9A-F]{2}:){31}[0-9A-F]{2}\Z")
_ICE: Final = re.compile(
    r"candidate:[A-Za-z0-9+/]{1,32} (\d{1,3}) (udp|tcp) \d{1,10} (\S{1,255}) (\d{1,5})"
    r" typ (host|srflx|prflx|relay)(?: .*)?\Z",
    re.IGNORECASE,
)
_ALGORITHM: Final = "sha-256 "
_PORTS: Final = range(1, 65_536)
_ROLES: Final = {"offer": "actpass", "answer": "active"}


@attrs.frozen(slots=True)
class Description:
    """The fields of a WebRTC session description (SDP) that a data channel needs.

    Attributes:
        user: User name fragment of ICE.
        password: Password of ICE.
        fingerprint: Fingerprint of the DTLS certificate: `sha-256` and 32 bytes in hexadecimal
            digits.
        port: The port of SCTP.
        max_message: Largest message that the end accepts, in bytes; 0: any size.
        candidates: ICE candidates in the description; an empty text marks their end.
    """

    user: str
    password: str = attrs.field(repr=False)
    fingerprint: str
    port: int = 5000
    max_message: int = 65_536
    candidates: tuple[str, ...] = ()


@attrs.frozen(slots=True)
class IceAddress:
    """The network address in an ICE candidate; `host` is an IP address, or a name."""

    host: str
    port: int
    protocol: str
    kind: str


def read_description(sdp: str, kind: str) -> Description:
    """Read a session description of exactly one data channel, and check all its fields.

    Args:
        sdp: Text of the description.
        kind: `offer` or `answer`.

    Raises:
        BadMessageError: The text is malformed, or describes something else than a data channel.
    """
    if len(sdp) > MAX_SDP:
        raise BadMessageError(f"a session description has more than {MAX_SDP} characters")
    lines: dict[str, list[str]] = {}
    sections = 0
    for line in sdp.removesuffix("\r\n").split("\r\n"):
        match = _LINE.match(line)
        if match is None:
            raise BadMessageError("a line of a session description is malformed")
        if match[1] == "m":
            sections += 1
            if _MEDIA.match(match[2]) is None:
                raise BadMessageError("a session description is not one of a data channel")
        elif match[1] == "a":
            name, _, value = match[2].partition(":")
            lines.setdefault(name, []).append(value)
    if sections != 1:
        raise BadMessageError("a session description has not exactly one data channel")
    return _description(lines, kind)


def _description(lines: dict[str, list[str]], kind: str) -> Description:
    listed = {_upper(each) for each in lines.get("fingerprint", ())}
    fingerprints = [item for item in listed if item.startswith(_ALGORITHM)]
    if len(fingerprints) != 1:
        raise BadMessageError(f"a session description has not exactly one {_ALGORITHM}fingerprint")
    candidates = tuple(f"candidate:{each}" for each in lines.get("candidate", ()))
    if "end-of-candidates" in lines:
        candidates = (*candidates, "")
    if len(candidates) > MAX_ICE_CANDIDATES:
        raise BadMessageError("a session description lists too many candidates")
    setup = _one(lines, "setup")
    if setup != _ROLES[kind]:
        raise BadMessageError(f"an {kind} does not have the role {setup!r} in DTLS")
    return Description(
        _fitting(lines, "ice-ufrag", _USER),
        _fitting(lines, "ice-pwd", _PASSWORD),
        _check_form(fingerprints[0], _FINGERPRINT, "fingerprint"),
        _number(lines, "sctp-port", 5000, 65_535),
        _number(lines, "max-message-size", 65_536, 1 << 62),
        candidates,
    )


def _upper(fingerprint: str) -> str:
    algorithm, _, value = fingerprint.partition(" ")
    return f"{algorithm.lower()} {value.upper()}"


def _one(lines: dict[str, list[str]], name: str) -> str:
    values = lines.get(name, [])
    if len(values) != 1:
        raise BadMessageError(f"a session description has not exactly one {name}")
    return values[0]


def _fitting(lines: dict[str, list[str]], name: str, pattern: re.Pattern[str]) -> str:
    return _check_form(_one(lines, name), pattern, name)


def _check_form(value: str, pattern: re.Pattern[str], name: str) -> str:
    if pattern.match(value) is None:
        raise BadMessageError(f"the {name} of a session description is malformed")
    return value


def _number(lines: dict[str, list[str]], name: str, absent: int, most: int) -> int:
    if name not in lines:
        return absent
    text = _one(lines, name)
    if not (text.isascii() and text.isdigit()) or len(text) > len(str(most)) or int(text) > most:
        raise BadMessageError(f"the {name} of a session description is no number, or too large")
    return int(text)


def write_description(description: Description, kind: str) -> str:
    """Write a session description without candidates, which are sent one by one.

    Args:
        description: Fields of the description.
        kind: `offer` or `answer`.
    """
    lines = (
        "v=0",
        "o=- 1 1 IN IP4 127.0.0.1",
        "s=-",
        "t=0 0",
        "a=group:BUNDLE 0",
        "a=msid-semantic:WMS *",
        "m=application 9 UDP/DTLS/SCTP webrtc-datachannel",
        "c=IN IP4 0.0.0.0",
        f"a=ice-ufrag:{description.user}",
        f"a=ice-pwd:{description.password}",
        "a=ice-options:trickle",
        f"a=fingerprint:{description.fingerprint}",
        f"a=setup:{_ROLES[kind]}",
        "a=mid:0",
        f"a=sctp-port:{description.port}",
        f"a=max-message-size:{description.max_message}",
    )
    return "".join(f"{line}\r\n" for line in lines)


def read_ice(candidate: str) -> IceAddress | None:
    """Return the network address in an ICE candidate; None if the text marks the end of candidates.

    Raises:
        BadMessageError: The text is no candidate for a data channel.
    """
    if not candidate:
        return None
    match = _ICE.match(candidate) if len(candidate) <= MAX_ICE_CANDIDATE else None
    if match is None or int(match[1]) != 1 or int(match[4]) not in _PORTS:
        raise BadMessageError("an ICE candidate is malformed")
    return IceAddress(match[3], int(match[4]), match[2].lower(), match[5].lower())
